"""Ranks a tournament's contestants by Bradley-Terry strengths fitted to all of its matches.

Wraps any topology: who meets whom and the cost stay, only the final table is read differently. It
uses what a bracket's tiers throw away, at no further judge call.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from arena_lightning.arena.bradley_terry import Outcome, strengths_from_matches
from arena_lightning.arena.options import require, require_choice
from arena_lightning.arena.single_elimination import SingleEliminationTopology
from arena_lightning.arena.standings import Round, TournamentCost, ranks_from_keys
from arena_lightning.arena.topology import Topology
from arena_lightning.types import Match, Standings

SCALE = 1e6
"""Strengths are compared in whole units of 1e-6: solver noise must never decide a rank."""


@dataclass(frozen=True, slots=True)
class BradleyTerryTopology:
    """Plays `inner`, then ranks by strength; equal strengths share their ranks.

    A contestant whose matches all failed is unmeasured: its rank is the mean over its possible
    places, not that of the prior.
    """

    inner: Topology = field(default_factory=SingleEliminationTopology)
    outcome: Outcome = "win"
    regularisation: float = 0.1
    """Precision of the Gaussian prior on strengths, above 0."""

    def __post_init__(self) -> None:
        require_choice(self, "outcome", Outcome)
        require(self.regularisation > 0, self, "regularisation", "be above 0")

    def cost(self, size: int) -> TournamentCost:
        return self.inner.cost(size)

    def rounds(self, order: Sequence[int]) -> Generator[Round, list[Match], Standings]:
        standings = yield from self.inner.rounds(order)
        size = len(order)
        fitted = strengths_from_matches(
            size, standings.matches, self.outcome, self.regularisation
        ).strengths
        measured = {
            contestant
            for match in standings.matches
            if match.status != "failed"
            for contestant in match[:2]
        }
        keys = [round(SCALE * s) if c in measured else None for c, s in enumerate(fitted.tolist())]
        ranks = standings.ranks.copy()
        ranks[:] = ranks_from_keys(keys)
        return Standings(
            ranks, standings.matches, standings.points, standings.scores, standings.num_rounds
        )
