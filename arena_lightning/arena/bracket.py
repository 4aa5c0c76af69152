"""Knockout brackets: slots with explicit byes, and how an undecided match is settled.

A bracket of N seeds has 2^k slots; the slots of the missing seeds stay empty, so the byes fall to
the top seeds for every N. Seeds are 0-based here, 0 the best. Nothing here plays a match.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal

from arena_lightning.arena.standings import ranks_from_keys, share_ranks
from arena_lightning.types import Bye, Match, Pairing

BracketKind = Literal["fold", "algorithm1"]
KnockoutTie = Literal["score", "seed", "shared"]
"""Who goes on after a tie: `score`, the higher accumulated average, then the higher seed; `seed`,
the higher seed; `shared`, the higher seed, but both share the mean of their final ranks."""

Slots = list[int | None]
Average = Callable[[int], float | None]
"""Contestant -> accumulated average score, None while nothing was counted."""


@cache
def fold_seeds(size: int) -> tuple[int, ...]:
    """Return the seed in each slot of the standard fold, `size` a power of two.

    The favourites of every round meet as late as they can: 1 and 2 only in the final.
    For 8 (1-based): 1 8 4 5 2 7 3 6.
    """
    seeds = [0]
    while len(seeds) < size:
        last = 2 * len(seeds) - 1
        seeds = [slot for seed in seeds for slot in (seed, last - seed)]
    return tuple(seeds)


@cache
def algorithm1_seeds(size: int) -> tuple[int, ...]:
    """Return the seed in each slot of the paper's bracket, `size` a power of two.

    Seed k meets size+1-k; the pairs of odd k fill the slots from the front, those of even k from
    the back. For 8 (1-based): 1 8 3 6 4 5 2 7. Seeds 3 and 4 can fall before 5 and 6 do.

    Source: ArenaRL, arXiv:2601.06487, Algorithm 1.
    """
    front: list[int] = []
    back: list[int] = []
    for seed in range(size // 2):
        pair = (seed, size - 1 - seed)
        if seed % 2 == 0:
            front += pair
        else:
            back[:0] = pair
    return tuple(front + back) if size > 1 else (0,)


_SEEDS: dict[str, Callable[[int], tuple[int, ...]]] = {
    "fold": fold_seeds,
    "algorithm1": algorithm1_seeds,
}


def bracket_slots(seeds: Sequence[int], kind: BracketKind) -> Slots:
    """Place contestants, best seed first, into 2^k slots; None where no seed is left.

    Neighbours (0, 1), (2, 3), ... meet; the neighbour of an empty slot has a bye.
    """
    count = len(seeds)
    places = _SEEDS[kind](1 << max(count - 1, 0).bit_length())
    return [seeds[seed] if seed < count else None for seed in places]


def pair_slots(slots: Slots) -> list[Pairing]:
    """Return the pairings of neighbours that are both there; none when one slot is left."""
    if len(slots) < 2:
        return []
    return [
        Pairing(first, second)
        for first, second in zip(slots[::2], slots[1::2], strict=True)
        if first is not None and second is not None
    ]


def advance(slots: Slots, winners: dict[int, int]) -> tuple[Slots, Slots]:
    """Play one round on paper.

    Args:
        slots: an even number of slots.
        winners: contestant -> who won its match, for both contestants of each match.

    Returns:
        The slots of those who go on (a bye goes on) and of those who lost, half as many each.
    """
    on: Slots = []
    out: Slots = []
    for first, second in zip(slots[::2], slots[1::2], strict=True):
        if first is None or second is None:
            on.append(second if first is None else first)
            out.append(None)
        elif winners[first] == first:
            on.append(first)
            out.append(second)
        else:
            on.append(second)
            out.append(first)
    return on, out


def winner_of(
    match: Match,
    place_of: Sequence[int],
    tie: KnockoutTie,
    average: Average,
) -> int:
    """Return who goes on.

    A failed match is settled by the seeding, as a walkover: a contestant must fill the slot, but
    neither side gets a win or a score from it.

    Args:
        match: the played match.
        place_of: contestant -> seed, 0 the best.
        tie: the tie rule.
        average: contestant -> accumulated average score so far, this match included.
    """
    first, second, score_first, score_second, status = match
    if status == "decided":
        return first if score_first > score_second else second
    if status == "tie" and tie == "score":
        average_first, average_second = average(first), average(second)
        if average_first != average_second:
            return first if average_first > average_second else second
    return first if place_of[first] < place_of[second] else second


def places(seeds: Sequence[int]) -> list[int]:
    """Return contestant -> seed, 0 the best."""
    place_of = [0] * len(seeds)
    for place, contestant in enumerate(seeds):
        place_of[contestant] = place
    return place_of


def with_byes(pairings: list[Pairing], active: Sequence[int | None]) -> list[Pairing | Bye]:
    """Add a bye for each active contestant that no pairing names."""
    if 2 * len(pairings) == len(active):
        return pairings
    busy = {contestant for pairing in pairings for contestant in pairing}
    return pairings + [Bye(c) for c in active if c is not None and c not in busy]


def knockout_ranks(
    tier_of: Sequence[int],
    place_of: Sequence[int],
    average: Average,
    tie: KnockoutTie,
    links: Sequence[tuple[int, int]],
) -> list[float]:
    """Rank by tier (higher is better), then average score, then seed.

    With the tie rule `shared`, equal averages in a tier share their ranks instead, and so do the
    two sides of each undecided match (`links`).
    """
    keys: list[tuple[float, ...] | None] = []
    for contestant, tier in enumerate(tier_of):
        score = average(contestant)
        if score is None:
            keys.append(None)
        elif tie == "shared":
            keys.append((tier, score))
        else:
            keys.append((tier, score, -place_of[contestant]))
    ranks = ranks_from_keys(keys)
    return share_ranks(ranks, links) if links else ranks
