"""Anchor: everyone meets the anchor once, all at once, and is ranked by the score it got there.

The cheapest topology, N-1 matches; with a win/lose-only judge it can tell only two tiers apart.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from arena_lightning.arena.seeding import anchor_pairings
from arena_lightning.arena.standings import Round, Tally, TournamentCost, ranks_from_keys
from arena_lightning.types import Match, Standings


@dataclass(frozen=True, slots=True)
class AnchorTopology:
    """Ranks by raw score; the anchor's is its mean. Equal scores share their ranks."""

    anchor: int = 0
    """The contestant the others meet; 0 by contract."""

    def cost(self, size: int) -> TournamentCost:
        return TournamentCost(matches=size - 1, rounds=int(size > 1))

    def rounds(self, order: Sequence[int]) -> Generator[Round, list[Match], Standings]:
        size = len(order)
        tally = Tally(size)
        if size > 1:
            tally.add((yield anchor_pairings(order, self.anchor)))
        return tally.standings(ranks_from_keys(tally.score_keys()))
