"""Any topology's schedule under another ranking rule: more out of the same judge calls.

A bracket ranks by rounds survived and forgets most of what was judged; here every result counts.
It plays exactly what the topology inside plays.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from arena_lightning.arena.options import require_choice
from arena_lightning.arena.ranking import RankingRule, rank_by
from arena_lightning.arena.single_elimination import SingleEliminationTopology
from arena_lightning.arena.standings import TournamentCost
from arena_lightning.types import Bye, Match, Pairing, Standings


@dataclass(frozen=True, slots=True)
class RerankedTopology:
    """Plays `inner` and ranks by all its results at no further call."""

    inner: Any = field(default_factory=SingleEliminationTopology)
    """The topology that is played."""
    ranking: RankingRule = "margin"

    def __post_init__(self) -> None:
        require_choice(self, "ranking", RankingRule)

    def cost(self, size: int) -> TournamentCost:
        return self.inner.cost(size)

    def rounds(
        self, order: Sequence[int]
    ) -> Generator[list[Pairing | Bye], list[Match], Standings]:
        standings = yield from self.inner.rounds(order)
        ranks = rank_by(self.ranking, order, standings.matches)
        return replace(standings, ranks=np.array(ranks, dtype=np.float64))
