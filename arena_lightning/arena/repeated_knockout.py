"""Repeated knockout: several knockouts with different draws, side by side, wins added up.

No seeding pass: a second draw does what seeding does, and a contestant that met the best one early
gets another chance. The draws are riffles of the starting order, which is random.
"""

from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from arena_lightning.arena.options import require
from arena_lightning.arena.single_elimination import SingleEliminationTopology
from arena_lightning.arena.standings import Tally, TournamentCost, new_bye, ranks_from_keys
from arena_lightning.types import Bye, Match, Pairing, Standings


@dataclass(frozen=True, slots=True)
class RepeatedKnockoutTopology:
    """Ranks by wins over all knockouts (a tie is half of one), then by mean score."""

    repeats: int = 2
    """Knockouts of N-1 matches each; 2 cost as much as seeded single elimination."""

    def __post_init__(self) -> None:
        require(self.repeats >= 1, self, "repeats", "be at least 1")

    def cost(self, size: int) -> TournamentCost:
        depth = max(size - 1, 0).bit_length()
        return TournamentCost(self.repeats * (size - 1), depth)

    def rounds(
        self, order: Sequence[int]
    ) -> Generator[list[Pairing | Bye], list[Match], Standings]:
        tally = Tally(len(order))
        knockout = SingleEliminationTopology(seeding="order")
        draws = [list(order)]
        while len(draws) < self.repeats:
            last = draws[-1]
            draws.append(last[::2] + last[1::2][::-1])
        running = [knockout.rounds(draw) for draw in draws] if len(order) > 1 else []
        entries = [next(generator) for generator in running]
        # All have the same number of rounds.
        while entries:
            matches = yield _merged(entries)
            tally.add(matches)
            start = 0
            following = []
            for generator, entry in zip(running, entries, strict=True):
                count = sum(type(e) is Pairing for e in entry)
                with suppress(StopIteration):
                    following.append(generator.send(matches[start : start + count]))
                start += count
            entries = following
        scores = tally.score_keys()
        keys = [
            None if score is None else (points, score)
            for points, score in zip(tally.points, scores, strict=True)
        ]
        return tally.standings(ranks_from_keys(keys))


def _merged(entries: Sequence[Sequence[Pairing | Bye]]) -> list[Pairing | Bye]:
    """Put the rounds of several draws into one; who plays in any of them rests in none."""
    pairings = [entry for draw in entries for entry in draw if type(entry) is Pairing]
    playing = {contestant for pairing in pairings for contestant in pairing}
    resting = dict.fromkeys(entry[0] for draw in entries for entry in draw if type(entry) is Bye)
    return [*pairings, *(new_bye((c,)) for c in resting if c not in playing)]
