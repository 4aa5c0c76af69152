"""Knockout brackets: who meets whom, worked out before the first match and kept for each size.

A bracket is a plan over cells. The first N cells hold the seeds, best first (seeds are 0-based);
match m puts its winner in cell N+2m and its loser in the next one. A bracket of N seeds has 2^k
slots and those of the missing seeds stay empty, so the byes fall to the top seeds for every N.
Nothing here knows results; `knockout.py` plays a plan.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

BracketKind = Literal["fold", "algorithm1"]

Slots = list[int | None]
"""Cells in bracket order, an even number: neighbours (0, 1), (2, 3), ... meet. None is empty."""


class LowerDraw(NamedTuple):
    """The cells of a round's lower bracket, among which its contestants may be drawn anew."""

    rests: tuple[int, ...]
    """Cells whose contestant has a bye in the lower bracket."""
    pairs: tuple[tuple[int, int], ...]
    """(entrant, survivor) when `enters`."""
    enters: bool
    """Whether losers of the upper bracket come in; they are then the ones who may rest."""


class BracketRound(NamedTuple):
    """One round of a plan."""

    pairs: tuple[tuple[int, int], ...]
    """The cells of those who meet."""
    resting: tuple[int, ...]
    """The cells of the others still in."""
    lower: LowerDraw | None = None
    """None where there is nothing to draw."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """A plan over cells."""

    rounds: tuple[BracketRound, ...]
    exits: tuple[tuple[int, int], ...]
    """(cell, tier) where each contestant ends, tier = the round that threw it out, from 1 on; the
    champion's is one more than the number of rounds."""


def fold_seeds(size: int) -> list[int]:
    """Return the seed in each slot of the standard fold, `size` a power of two.

    The favourites meet as late as they can: 1 and 2 only in the final. For 8 (1-based):
    1 8 4 5 2 7 3 6.
    """
    seeds = [0]
    while len(seeds) < size:
        last = 2 * len(seeds) - 1
        seeds = [slot for seed in seeds for slot in (seed, last - seed)]
    return seeds


def algorithm1_seeds(size: int) -> list[int]:
    """Return the seed in each slot of the paper's bracket, `size` a power of two.

    Seed k meets size+1-k; the pairs of odd k fill the slots from the front, those of even k from
    the back. For 8 (1-based): 1 8 3 6 4 5 2 7. From 16 on, seeds 3 and 4 fall before 5 and 6.

    Source: ArenaRL, arXiv:2601.06487, Algorithm 1.
    """
    front: list[int] = []
    back: list[int] = []
    for seed in range(size // 2):
        pair = [seed, size - 1 - seed]
        if seed % 2 == 0:
            front += pair
        else:
            back = pair + back
    return front + back if size > 1 else [0]


_SEEDS: dict[str, Callable[[int], list[int]]] = {
    "fold": fold_seeds,
    "algorithm1": algorithm1_seeds,
}


@cache
def single_bracket(size: int, kind: BracketKind) -> Bracket:
    """Return the plan of a single elimination: N-1 matches in ceil(log2 N) rounds."""
    plan = _Plan(size)
    slots = _first_slots(size, kind)
    while len(slots) > 1:
        slots, lost = plan.play(slots)
        plan.close_round(slots, lost)
    return plan.bracket(slots)


@cache
def double_bracket(size: int, kind: BracketKind) -> Bracket:
    """Return the plan of a double elimination: 2N-2 matches in 2 ceil(log2 N) rounds.

    Both brackets run side by side. The losers of the upper bracket's first round meet each other;
    from then on, entrants from the next upper round and the survivors among themselves alternate.
    Entrants are mirrored every other time, so that one comes from another part of the draw and
    rematches are late. The last round is the grand final.
    """
    plan = _Plan(size)
    upper = _first_slots(size, kind)
    lower: Slots = []
    waiting: list[Slots] = []
    turn = 0
    while len(upper) > 1 or waiting or len(lower) > 1:
        enters = turn > 0 and turn % 2 == 0
        if turn == 1:
            lower = waiting.pop(0)
        elif enters:
            entrants = waiting.pop(0)
            entrants = entrants[::-1] if turn % 4 == 2 else entrants
            lower = [slot for pair in zip(entrants, lower, strict=True) for slot in pair]
        turn += 1
        draw = _lower_draw(lower, enters)
        out: Slots = []
        lost: Slots = []
        if len(upper) > 1:
            upper, lost = plan.play(upper)
        if len(lower) > 1:
            lower, out = plan.play(lower)
        active = [*upper, *lower, *lost, *(slot for slots in waiting for slot in slots)]
        if lost:
            waiting.append(lost)
        plan.close_round(active, out, draw)
    if size == 1:
        return plan.bracket(upper)
    champion, runner_up = plan.play(upper + lower)
    plan.close_round(champion, runner_up)
    return plan.bracket(champion)


def _lower_draw(lower: Slots, enters: bool) -> LowerDraw | None:
    """Return what can be drawn anew in a round of the lower bracket."""
    if len(lower) < 2:
        return None
    neighbours = list(zip(lower[::2], lower[1::2], strict=True))
    pairs = tuple((a, b) for a, b in neighbours if a is not None and b is not None)
    alone = [one if other is None else other for one, other in neighbours if None in (one, other)]
    rests = tuple(cell for cell in alone if cell is not None)
    return LowerDraw(rests, pairs, enters) if len(rests) + len(pairs) > 1 else None


def _first_slots(size: int, kind: BracketKind) -> Slots:
    places = _SEEDS[kind](1 << (size - 1).bit_length())
    return [seed if seed < size else None for seed in places]


class _Plan:
    """A bracket being drawn up."""

    def __init__(self, size: int) -> None:
        self._next_cell = size
        self._rounds: list[BracketRound] = []
        self._exits: list[tuple[int, int]] = []
        self._pairs: list[tuple[int, int]] = []
        self._drawn: set[int] = set()
        """Cells that this round's matches fill."""

    def play(self, slots: Slots) -> tuple[Slots, Slots]:
        """Let neighbours meet; return the slots of those who go on, and of those who lose.

        The neighbour of an empty slot goes on and leaves an empty slot among the losers.
        """
        on: Slots = []
        out: Slots = []
        for first, second in zip(slots[::2], slots[1::2], strict=True):
            if first is None or second is None:
                on.append(second if first is None else first)
                out.append(None)
            else:
                self._pairs.append((first, second))
                on.append(self._next_cell)
                out.append(self._next_cell + 1)
                self._drawn |= {self._next_cell, self._next_cell + 1}
                self._next_cell += 2
        return on, out

    def close_round(
        self,
        active: Sequence[int | None],
        out: Sequence[int | None],
        lower: LowerDraw | None = None,
    ) -> None:
        """End the round: `active` are in the tournament after it, `out` are not.

        A round without a match is no round.
        """
        if self._pairs:
            resting = [cell for cell in active if cell is not None and cell not in self._drawn]
            self._rounds.append(BracketRound(tuple(self._pairs), tuple(resting), lower))
        self._exits += [(cell, len(self._rounds)) for cell in out if cell is not None]
        self._pairs, self._drawn = [], set()

    def bracket(self, champion: Slots) -> Bracket:
        """Close the plan; `champion` is the one slot that is left."""
        (cell,) = champion
        assert cell is not None, "a bracket must end with a champion"
        return Bracket(tuple(self._rounds), (*self._exits, (cell, len(self._rounds) + 1)))
