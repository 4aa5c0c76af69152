"""What the arena found out about a group: standings, advantages, and every judge call behind them.

    judge calls of a group -> JudgingLog -> ArenaResult

It counts; it judges nothing and plays nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from arena_lightning.arena.advantages import advantages_from_ranks
from arena_lightning.arena.verdicts import JudgeCall, dimension_means, is_flip, sum_usage
from arena_lightning.types import Standings, Usage


@dataclass(frozen=True, slots=True)
class ArenaResult:
    """What the arena found out about one group. Counts are of matches unless they say calls."""

    standings: Standings
    advantages: np.ndarray
    """float64 `[group]`; zeros when the group is dropped or nothing in it was decided."""
    calls: tuple[JudgeCall, ...]
    """Every judge call made, failed ones included, pair by pair in playing order."""
    usage: Usage
    num_matches: int
    """Matches of the tournament, those answered from memory included."""
    num_judged: int
    """Matches the judge was asked about; `num_matches` less rematches and identical pairs."""
    num_ties: int
    num_failed: int
    num_both_orders: int
    """Judged matches with a verdict in both orders: the denominator of `num_flips`."""
    num_flips: int
    """Judged matches whose winner was the other one in the other order."""
    decided: bool
    """False when not one match was decided: a ranking would rest on the starting order alone."""
    dropped: bool
    """True when too many matches failed."""
    dimension_means: Mapping[str, float]
    """Mean judge score of each dimension over all verdicts and both sides."""


@dataclass(slots=True)
class JudgingLog:
    """The judge calls of one group so far, and what was counted on the way."""

    calls: list[JudgeCall] = field(default_factory=list)
    num_judged: int = 0
    num_both_orders: int = 0
    num_flips: int = 0

    def add(self, calls: Sequence[JudgeCall], is_same: bool) -> None:
        """Count the one or two calls of a pair; `is_same` when its trajectories are identical."""
        self.calls += calls
        self.num_judged += 1
        if not is_same and len(calls) == 2 and not any(call.failed for call in calls):
            self.num_both_orders += 1
            self.num_flips += is_flip(calls)

    def result(self, standings: Standings, max_failed_fraction: float) -> ArenaResult:
        """Close the group."""
        statuses = [match.status for match in standings.matches]
        num_failed = statuses.count("failed")
        dropped = num_failed > max_failed_fraction * len(statuses)
        decided = "decided" in statuses
        advantages = advantages_from_ranks(standings.ranks)
        return ArenaResult(
            standings=standings,
            advantages=advantages if decided and not dropped else np.zeros_like(advantages),
            calls=tuple(self.calls),
            usage=sum_usage(call.usage for call in self.calls),
            num_matches=len(statuses),
            num_judged=self.num_judged,
            num_ties=statuses.count("tie"),
            num_failed=num_failed,
            num_both_orders=self.num_both_orders,
            num_flips=self.num_flips,
            decided=decided,
            dropped=dropped,
            dimension_means=dimension_means(self.calls),
        )
