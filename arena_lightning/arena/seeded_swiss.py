"""Seeded Swiss: a pass against the anchor gives the table's order, then Swiss rounds refine it.

The seeding tells who is near whom, so that few rounds do. All results, seeding included, rank.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from arena_lightning.arena.options import require, require_choice
from arena_lightning.arena.ranking import RankingRule, rank_by
from arena_lightning.arena.seeding import seed_by_anchor
from arena_lightning.arena.standings import Tally, TournamentCost
from arena_lightning.arena.swiss import SwissTopology
from arena_lightning.types import Bye, Match, Pairing, Standings


@dataclass(frozen=True, slots=True)
class SeededSwissTopology:
    """Ranks by expected points of a full round robin, or by another rule."""

    num_rounds: int | None = None
    """Swiss rounds after the seeding; None: as many as 2N-2 matches allow, at least one."""
    ranking: RankingRule = "expected_points"
    anchor: int = 0
    """The contestant the others meet in the seeding pass; 0 by contract."""

    def __post_init__(self) -> None:
        rounds = self.num_rounds
        require(rounds is None or rounds >= 1, self, "num_rounds", "be None or at least 1")
        require_choice(self, "ranking", RankingRule)

    def _swiss(self, size: int) -> SwissTopology:
        fitting = max((size - 1) // max(size // 2, 1), 1)
        return SwissTopology(fitting if self.num_rounds is None else self.num_rounds)

    def cost(self, size: int) -> TournamentCost:
        if size < 2:
            return TournamentCost(0, 0)
        swiss = self._swiss(size).cost(size)
        return TournamentCost(size - 1 + swiss.matches, 1 + swiss.rounds)

    def rounds(
        self, order: Sequence[int]
    ) -> Generator[list[Pairing | Bye], list[Match], Standings]:
        size = len(order)
        tally = Tally(size)
        if size < 2:
            return tally.standings([0.0] * size)
        seeds = yield from seed_by_anchor(order, self.anchor, tally)
        swiss = yield from self._swiss(size).rounds(seeds)
        tally.add(swiss.matches)
        ranks = rank_by(self.ranking, order, tally.matches)
        standings = tally.standings(ranks)
        return replace(
            standings,
            ranks=np.array(ranks, dtype=np.float64),
            num_rounds=1 + swiss.num_rounds,
        )
