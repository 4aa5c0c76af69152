"""No training on stale samples: every trajectory says which weights made it."""

from collections.abc import Iterable

from arena_lightning.errors import WeightSyncError
from arena_lightning.types import Group


def check_freshness(groups: Iterable[Group], version: int, max_lag: int) -> None:
    """Check every policy segment's version.

    Args:
        groups: what is about to be trained on.
        version: optimizer steps taken so far.
        max_lag: how many steps older a segment may be.

    Raises:
        WeightSyncError: a segment is older than allowed, or newer than the policy.
    """
    for group in groups:
        for trajectory in group.trajectories:
            for segment in trajectory.segments:
                lag = version - segment.policy_version
                if segment.emitter == "policy" and not 0 <= lag <= max_lag:
                    raise WeightSyncError(
                        f"a trajectory's weights must be at most {max_lag} steps old, got version "
                        f"{segment.policy_version} at step {version} (prompt "
                        f"{group.prompt.prompt_id}, trajectory {trajectory.index}). The engine "
                        "missed a weight sync, or raise arena.max_policy_lag."
                    )
