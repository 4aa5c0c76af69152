"""Merge insertion: sorts with nearly as few comparisons as any method can (Ford-Johnson).

It believes every verdict and asks nothing twice, so it is exact under a perfect judge and fragile
under any other; and most comparisons wait for the one before. The baseline for "just sort them".
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cache

from arena_lightning.arena.standings import (
    Tally,
    TournamentCost,
    new_bye,
    new_pairing,
    ranks_from_keys,
)
from arena_lightning.types import Bye, Match, Pairing, Standings

Sort = Generator[list[Pairing], list[Match], list[int]]
"""Yields the pairings of a round, is sent their matches, returns contestants, worst first."""


@dataclass(frozen=True, slots=True)
class MergeInsertionTopology:
    """Ranks by the sorted order. Of two that tie or whose match fails, the one earlier in `order`
    is ahead: a sort has to know."""

    def cost(self, size: int) -> TournamentCost:
        return TournamentCost(_most_matches(size), _most_rounds(size), exact=size < 4)

    def rounds(
        self, order: Sequence[int]
    ) -> Generator[list[Pairing | Bye], list[Match], Standings]:
        tally = Tally(len(order))
        place_of = {contestant: place for place, contestant in enumerate(order)}
        sort = _sort(list(order), place_of)
        try:
            pairings = next(sort)
            while True:
                playing = {contestant for pairing in pairings for contestant in pairing}
                rests = [new_bye((c,)) for c in order if c not in playing]
                matches = yield [*pairings, *rests]
                tally.add(matches)
                pairings = sort.send(matches)
        except StopIteration as stop:
            worst_first = stop.value
        keys: list[int | None] = [None] * len(order)
        for height, contestant in enumerate(worst_first):
            if tally.played[contestant]:
                keys[contestant] = height
        return tally.standings(ranks_from_keys(keys) if len(order) > 1 else [0.0])


@cache
def _most_matches(size: int) -> int:
    """Return the worst case: sum over k to N of ceil(log2(3k/4)).

    Source: Knuth, The Art of Computer Programming, vol. 3, section 5.3.1.
    """
    return sum(((3 * k + 3) // 4 - 1).bit_length() for k in range(2, size + 1))


@cache
def _most_rounds(size: int) -> int:
    """Return the worst case: the pairs of a level meet at once, all else is one by one."""
    if size < 2:
        return 0
    half = size // 2
    insertions = _most_matches(size) - half - _most_matches(half)
    return 1 + _most_rounds(half) + insertions


def _sort(items: list[int], place_of: dict[int, int]) -> Sort:
    if len(items) < 2:
        return items
    pairs = [new_pairing(pair) for pair in zip(items[::2], items[1::2], strict=False)]
    matches = yield pairs
    worse_of: dict[int, int] = {}
    for match in matches:
        better, worse = (0, 1) if _first_is_ahead(match, place_of) else (1, 0)
        worse_of[match[better]] = match[worse]
    chain = yield from _sort(list(worse_of), place_of)
    waiting: list[tuple[int, int | None]] = [(worse_of[winner], winner) for winner in chain]
    if len(items) % 2:
        waiting.append((items[-1], None))
    # The worst winner's partner lost to it: it is the worst so far without a comparison.
    chain = [waiting[0][0], *chain]
    for contestant, bound in _insertion_order(waiting):
        yield from _insert(contestant, bound, chain, place_of)
    return chain


def _insertion_order(waiting: Sequence[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    """Return all but the first in batches, each backwards, ending at 3, 5, 11, 21, 43, ...

    Then every insertion of a batch searches among at most one less than a power of two.
    """
    ordered: list[tuple[int, int | None]] = []
    start, end = 1, 3
    while start < len(waiting):
        ordered += waiting[start:end][::-1]
        start, end = end, end + 2 * start
    return ordered


def _insert(
    contestant: int, bound: int | None, chain: list[int], place_of: dict[int, int]
) -> Generator[list[Pairing], list[Match], None]:
    """Put `contestant` into `chain` (worst first), somewhere below `bound`, by binary search."""
    low, high = 0, len(chain) if bound is None else chain.index(bound)
    while low < high:
        middle = (low + high) // 2
        (match,) = yield [new_pairing((contestant, chain[middle]))]
        if _first_is_ahead(match, place_of):
            low = middle + 1
        else:
            high = middle
    chain.insert(low, contestant)


def _first_is_ahead(match: Match, place_of: dict[int, int]) -> bool:
    if match.status == "decided":
        return match.score_first > match.score_second
    return place_of[match.first] < place_of[match.second]
