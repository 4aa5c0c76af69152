"""What a rollout did: tokens, turns, tool calls, and how trajectories ended, as metrics."""

from collections import Counter
from dataclasses import dataclass, field
from typing import get_args

from arena_lightning.types import FinishReason, Trajectory


@dataclass(slots=True)
class RolloutStats:
    """Counters of one rollout, filled while it runs."""

    trajectories: int = 0
    turns: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    """Observations that report an error, unreadable calls included."""
    parse_errors: int = 0
    policy_tokens: int = 0
    tokens: int = 0
    """All tokens of all trajectories."""
    finishes: Counter[str] = field(default_factory=Counter)
    generated_tokens: int = 0
    """Tokens that the engine sampled, known when the rollout has ended."""
    engine_s: float = 0.0
    wall_s: float = 0.0
    """Seconds of the rollout without what the caller did with finished trajectories."""

    def count(self, trajectory: Trajectory, num_turns: int, num_parse_errors: int) -> None:
        """Add a finished trajectory."""
        observations = [m for m in trajectory.messages if m.role == "tool"]
        self.trajectories += 1
        self.turns += num_turns
        self.tool_calls += sum(len(m.tool_calls) for m in trajectory.messages)
        self.tool_errors += sum(m.is_error for m in observations)
        self.parse_errors += num_parse_errors
        self.policy_tokens += trajectory.num_policy_tokens
        self.tokens += trajectory.num_tokens
        self.finishes[trajectory.finish] += 1

    def metrics(self) -> dict[str, float]:
        """Return the rollout's metrics under their logged names."""
        count = max(1, self.trajectories)
        wall_s = max(self.wall_s, 1e-9)
        ends = {
            f"rollout/{reason}_fraction": self.finishes[reason] / count
            for reason in get_args(FinishReason)
        }
        return ends | {
            "rollout/tokens_per_s": self.generated_tokens / wall_s,
            "rollout/generated_tokens": float(self.generated_tokens),
            "rollout/policy_tokens_mean": self.policy_tokens / count,
            "rollout/trajectory_tokens_mean": self.tokens / count,
            "rollout/turns_mean": self.turns / count,
            "rollout/tool_calls_mean": self.tool_calls / count,
            "rollout/tool_error_fraction": self.tool_errors
            / max(1, self.tool_calls + self.parse_errors),
            "rollout/parse_error_fraction": self.parse_errors / max(1, self.turns),
            "rollout/engine_s": self.engine_s,
            "rollout/outside_engine_fraction": max(0.0, 1.0 - self.engine_s / wall_s),
            "time/rollout_s": self.wall_s,
        }
