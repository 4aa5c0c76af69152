"""Random graph: everyone meets about as many others, all at once, in one parallel round.

No bracket, no anchor, no waiting: the shallowest topology there is besides the anchor, at any
number of matches. The start order is random, so laying a fixed near-regular, well-connected graph
on it draws a random one.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from arena_lightning.arena.options import require, require_choice
from arena_lightning.arena.ranking import RankingRule, rank_by
from arena_lightning.arena.standings import Tally, TournamentCost, new_pairing, ranks_from_keys
from arena_lightning.types import Bye, Match, Pairing, Standings

GOLDEN_RATIO = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class RandomGraphTopology:
    """Ranks by mean score over a random near-regular graph, or by another rule."""

    num_matches: int | None = None
    """Matches; None takes 2N-2, as seeded single elimination. Never more than a round robin."""
    ranking: RankingRule = "mean_score"

    def __post_init__(self) -> None:
        require(
            self.num_matches is None or self.num_matches >= 1,
            self,
            "num_matches",
            "be None or at least 1",
        )
        require_choice(self, "ranking", RankingRule)

    def cost(self, size: int) -> TournamentCost:
        return TournamentCost(match_budget(self.num_matches, size), int(size > 1))

    def rounds(
        self, order: Sequence[int]
    ) -> Generator[list[Pairing | Bye], list[Match], Standings]:
        size = len(order)
        tally = Tally(size)
        if size > 1:
            edges = near_regular_edges(size, match_budget(self.num_matches, size))
            pairings: list[Pairing | Bye] = [new_pairing((order[a], order[b])) for a, b in edges]
            seen = {contestant for pairing in pairings for contestant in pairing}
            pairings += [Bye(contestant) for contestant in order if contestant not in seen]
            tally.add((yield pairings))
        if self.ranking == "mean_score":
            return tally.standings(ranks_from_keys(tally.score_keys()))
        return tally.standings(rank_by(self.ranking, order, tally.matches))


def match_budget(num_matches: int | None, size: int) -> int:
    """Return the matches of a tournament with a budget: 2N-2 by default, a round robin at most."""
    wanted = 2 * size - 2 if num_matches is None else num_matches
    return min(wanted, size * (size - 1) // 2)


@cache
def near_regular_edges(size: int, num_edges: int) -> tuple[tuple[int, int], ...]:
    """Return edges of a graph on places 0..size-1 whose degrees differ by at most 2.

    The cycle first, so that it hangs together as soon as there are `size` edges; then chords of the
    length that brings the two ends of the graph nearest (the golden ratio keeps them apart), each
    length in full as long as it fits and spread evenly over the cycle when it doesn't.
    """
    half = size // 2
    left = list(range(2, half + 1))
    lengths = [1]
    while left:
        wanted = size * ((GOLDEN_RATIO * len(lengths)) % 1.0)
        wanted = min(wanted, size - wanted)
        lengths.append(min(left, key=lambda length: (abs(length - wanted), length)))
        left.remove(lengths[-1])
    edges: list[tuple[int, int]] = []
    for length in lengths:
        count = half if 2 * length == size else size
        missing = num_edges - len(edges)
        if missing <= 0:
            break
        starts = range(count)
        if missing < count:
            starts = np.linspace(0, count, missing, endpoint=False).astype(int).tolist()
        edges += [(start, (start + length) % size) for start in starts]
    return tuple(edges)
