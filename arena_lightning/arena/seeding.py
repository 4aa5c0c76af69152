"""The seeding pass: everyone meets the anchor once, and the scores give the order of entry.

Shared by the topologies that start from an anchor. The anchor is contestant 0 by contract; it is
an argument so that a test can relabel it. Nothing here knows brackets.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, Literal

from arena_lightning.arena.standings import SCALE, Round, Tally, new_pairing
from arena_lightning.errors import ConfigError
from arena_lightning.types import Match

Seeding = Literal["anchor", "order"]
"""Seeds by a pass against the anchor, or a random start: seeds as `order` has them."""


class Averages:
    """Accumulated average scores: one entry for the seeding, one for each match after it.

    The anchor plays N-1 seeding matches; their mean is its one entry, as for everyone else.
    """

    __slots__ = ("_anchor", "_extra_played", "_extra_sum", "_tally")

    def __init__(self, tally: Tally, anchor: int | None) -> None:
        """Start after the seeding round; `anchor=None` when there was none."""
        self._tally = tally
        self._anchor = anchor
        self._extra_sum = 0.0
        self._extra_played = 0
        if anchor is not None and tally.played[anchor]:
            total, played = tally.score_sums[anchor], tally.played[anchor]
            self._extra_sum = total - total / played
            self._extra_played = played - 1

    def keys(self) -> list[int | None]:
        """Return contestant -> average in units of 1e-9, None for one whose matches all failed."""
        keys = self._tally.score_keys()
        anchor = self._anchor
        if anchor is not None and self._extra_played:
            total = self._tally.score_sums[anchor] - self._extra_sum
            played = self._tally.played[anchor] - self._extra_played
            keys[anchor] = round(SCALE * total / played)
        return keys

    def keys_of(self, contestants: Iterable[int]) -> dict[int, int | None]:
        """Return what `keys` has on some contestants."""
        sums, played = self._tally.score_sums, self._tally.played
        keys: dict[int, int | None] = {
            contestant: round(SCALE * sums[contestant] / played[contestant])
            if played[contestant]
            else None
            for contestant in contestants
        }
        if self._anchor in keys:
            keys[self._anchor] = self.keys()[self._anchor]
        return keys


def anchor_pairings(order: Sequence[int], anchor: int) -> Round:
    """Return one pairing of each other contestant with the anchor, in order.

    Raises:
        ConfigError: the anchor is not a contestant.
    """
    if not 0 <= anchor < len(order):
        raise ConfigError(
            f"anchor must be one of the contestants 0..{len(order) - 1}, got {anchor} (topology). "
            "Leave it at 0."
        )
    return [new_pairing((anchor, contestant)) for contestant in order if contestant != anchor]


def best_first(
    contestants: Sequence[int], keys: Sequence[int | None] | Mapping[int, int | None]
) -> list[int]:
    """Sort contestants by key, greatest first; equal keys keep their order.

    One without a key, because its matches failed, goes into the middle: neither favoured nor
    punished.
    """
    known = [contestant for contestant in contestants if keys[contestant] is not None]
    # Any: what is sorted here has a key.
    table: Any = keys
    known.sort(key=table.__getitem__, reverse=True)
    if len(known) == len(contestants):
        return known
    middle = len(known) // 2
    known[middle:middle] = [contestant for contestant in contestants if keys[contestant] is None]
    return known


def seed_by_anchor(
    order: Sequence[int], anchor: int, tally: Tally
) -> Generator[Round, list[Match], list[int]]:
    """Play the seeding round and return the contestants, best seed first.

    Equal scores keep `order`; a contestant whose seeding match failed is seeded in the middle.
    """
    tally.add((yield anchor_pairings(order, anchor)))
    return best_first(order, tally.score_keys())
