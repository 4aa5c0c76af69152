"""Swiss: in each round neighbours in the table meet, never the same two twice if avoidable.

No anchor and no seeding pass: the first round pairs neighbours of `order`. With an odd group one
contestant rests each round: the lowest in the table among those who rested least.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Literal, get_args

from arena_lightning.arena.matching import augment_matching, greedy_matching
from arena_lightning.arena.options import require
from arena_lightning.arena.standings import (
    SCALE,
    Round,
    Tally,
    TournamentCost,
    new_pairing,
    ranks_from_keys,
)
from arena_lightning.types import Bye, Match, Pairing, Standings

SwissTieBreak = Literal["buchholz", "score"]


@dataclass(frozen=True, slots=True)
class SwissTopology:
    """Ranks by points, then by the tie-breaks in turn; what is still equal shares its ranks.

    Points are counted per match that was played: a bye is worth a contestant's own average, so
    that it neither lifts nor sinks anybody. Source: ArenaRL, arXiv:2601.06487, section 4; differs:
    there a bye is a full point, which ranks the one who rested above equals.
    """

    num_rounds: int | None = None
    """Rounds; None takes ceil(log2 N), as the paper."""
    tie_breaks: tuple[SwissTieBreak, ...] = ("buchholz", "score")
    """`buchholz`: mean of the opponents' points a match, each rematch counting again and byes and
    failed matches not at all; `score`: mean judge score. The paper: buchholz alone."""

    def __post_init__(self) -> None:
        rounds = self.num_rounds
        require(rounds is None or rounds >= 1, self, "num_rounds", "be None or at least 1")
        known = set(self.tie_breaks) <= set(get_args(SwissTieBreak))
        require(known, self, "tie_breaks", "hold only buchholz and score")

    def cost(self, size: int) -> TournamentCost:
        rounds = self._num_rounds(size)
        return TournamentCost(matches=rounds * (size // 2), rounds=rounds)

    def _num_rounds(self, size: int) -> int:
        if size < 2:
            return 0
        return (size - 1).bit_length() if self.num_rounds is None else self.num_rounds

    def rounds(self, order: Sequence[int]) -> Generator[Round, list[Match], Standings]:
        size = len(order)
        tally = Tally(size)
        met: list[set[int]] = [set() for _ in range(size)]
        byes = [0] * size
        for _ in range(self._num_rounds(size)):
            pairings, resting = _pair_round(_table(order, tally), met, byes)
            for first, second in pairings:
                met[first].add(second)
                met[second].add(first)
            if resting is None:
                tally.add((yield list(pairings)))
            else:
                byes[resting] += 1
                tally.add((yield [*pairings, Bye(resting)]))
        return self._standings(tally, byes)

    def _standings(self, tally: Tally, byes: Sequence[int]) -> Standings:
        rates = tally.point_rates()
        columns: list[Sequence[float | None]] = [rates]
        for tie_break in self.tie_breaks:
            if tie_break == "buchholz":
                columns.append(_buchholz(tally, rates))
            else:
                columns.append(tally.score_keys())
        keys = list(zip(*columns, strict=True))
        if None in rates:
            keys = [None if key[0] is None else key for key in keys]
        points = [
            total + rests * (rate or 0.0)
            for total, rests, rate in zip(tally.points, byes, rates, strict=True)
        ]
        return tally.standings(ranks_from_keys(keys), points)


def _buchholz(tally: Tally, rates: Sequence[float | None]) -> list[int]:
    """Return contestant -> its opponents' mean points a match, in units of 1e-9."""
    sums = [0.0] * len(rates)
    for first, second, _, _, status in tally.matches:
        if status != "failed":
            sums[first] += rates[second] or 0.0
            sums[second] += rates[first] or 0.0
    return [
        round(SCALE * total / played) if played else 0
        for total, played in zip(sums, tally.played, strict=True)
    ]


def _table(order: Sequence[int], tally: Tally) -> list[int]:
    """Return the contestants, most points a match first; equal ones keep `order`.

    Nothing counted yet is unbeaten: it meets the others that are, so that one of them is left.
    """
    played = tally.played
    if min(played) == max(played):
        return sorted(order, key=tally.points.__getitem__, reverse=True)
    keys = [1.0 if rate is None else rate for rate in tally.point_rates()]
    return sorted(order, key=keys.__getitem__, reverse=True)


def _pair_round(
    table: Sequence[int], met: Sequence[set[int]], byes: Sequence[int]
) -> tuple[list[Pairing], int | None]:
    """Pair neighbours of the table without a rematch, and name who rests if the table is odd.

    Who rests is among those with the fewest byes. Of all ways without a rematch, one that leaves
    the top of the table as it is comes first, then one that lets the lowest rest: under a perfect
    judge the unbeaten meet until one is left. Rematches happen only where no way avoids them.
    """
    resters: list[int | None] = [None]
    if len(table) % 2 == 0:
        pairs, stranded = _pair_greedily(table, met)
        if not stranded:
            return list(map(new_pairing, pairs)), None
    else:
        fewest = min(byes)
        resters = [contestant for contestant in reversed(table) if byes[contestant] == fewest]
    drafts = []
    for resting in resters:
        playing = [contestant for contestant in table if contestant != resting]
        pairs, stranded = _pair_greedily(playing, met)
        if not stranded:
            return list(map(new_pairing, pairs)), resting
        drafts.append((resting, pairs, stranded))
    place_of = {contestant: place for place, contestant in enumerate(table)}
    reopened = 0
    while True:
        mended = []
        for resting, pairs, stranded in drafts:
            kept = max(len(pairs) - reopened, 0)
            loose = sorted(chain(stranded, *pairs[kept:]), key=place_of.__getitem__)
            repaired, num_rematches = _pair_by_matching(loose, met)
            if not num_rematches:
                return list(map(new_pairing, pairs[:kept] + repaired)), resting
            mended.append((num_rematches, pairs[:kept] + repaired, resting))
        if reopened >= len(table) // 2:
            _, pairs, resting = min(mended, key=itemgetter(0))
            return list(map(new_pairing, pairs)), resting
        reopened = 2 * reopened + 1


def _pair_greedily(
    table: Sequence[int], met: Sequence[set[int]]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Pair from the top with the nearest not met before; return also who is left stranded."""
    neighbours = list(zip(table[::2], table[1::2], strict=True))
    if all([second not in met[first] for first, second in neighbours]):
        return neighbours, []
    free = list(table)
    pairs: list[tuple[int, int]] = []
    stranded: list[int] = []
    while free:
        first = free.pop(0)
        played = met[first]
        for index, second in enumerate(free):
            if second not in played:
                del free[index]
                pairs.append((first, second))
                break
        else:
            stranded.append(first)
    return pairs, stranded


def _pair_by_matching(
    table: Sequence[int], met: Sequence[set[int]]
) -> tuple[list[tuple[int, int]], int]:
    """Pair with as few rematches as possible; return also how many."""
    size = len(table)
    candidates = [
        sorted(
            (b for b in range(size) if b != a and table[b] not in met[table[a]]),
            key=lambda b, a=a: (abs(a - b), b),
        )
        for a in range(size)
    ]
    partner = greedy_matching(candidates)
    augment_matching(candidates, partner)
    alone = [vertex for vertex in range(size) if partner[vertex] < 0]
    for first, second in zip(alone[::2], alone[1::2], strict=True):
        partner[first], partner[second] = second, first
    return [(table[a], table[b]) for a, b in enumerate(partner) if a < b], len(alone) // 2
