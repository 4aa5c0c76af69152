"""The joints that rooms on one floor share without importing each other: judges and toolsets.

Topologies have their protocol in `arena/topology.py`, rollout engines in `rollout/engine.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from arena_lightning.types import Message, Prompt, ToolCall, Trajectory, Usage, Verdict


@dataclass(frozen=True, slots=True)
class Score:
    """A pointwise judgement. `score` is on the judge's own scale, finite."""

    score: float
    dimensions: Mapping[str, float] = field(default_factory=dict)
    usage: Usage = Usage()
    comment: str = ""


@runtime_checkable
class Judge(Protocol):
    """Compares two trajectories. Both methods raise `JudgeError` instead of inventing a score.

    A judge is deterministic for a question (prompt, first, second, order) unless it is a remote
    model; the same question asked twice may be answered from a ledger.
    """

    name: str

    async def compare(self, prompt: Prompt, first: Trajectory, second: Trajectory) -> Verdict:
        """Return one verdict with `first` shown first. One call, one presentation order."""
        ...

    async def score(self, prompt: Prompt, trajectory: Trajectory) -> Score:
        """Score one trajectory alone, for the pointwise baselines."""
        ...


@dataclass(frozen=True, slots=True)
class ToolResult:
    """An observation. `is_error` marks bad arguments, which the agent gets to read and mend."""

    content: str
    is_error: bool = False


@runtime_checkable
class Toolset(Protocol):
    """Tools an agent may call. A bad call is an observation, never an exception."""

    @property
    def schemas(self) -> Sequence[Mapping[str, Any]]:
        """Tools as `{"name", "description", "parameters": <JSON schema>}`."""
        ...

    async def call(self, call: ToolCall) -> ToolResult:
        """Run one call."""
        ...


@runtime_checkable
class Task(Protocol):
    """A domain: how a prompt becomes the opening messages, and the tools that go with it."""

    toolset: Toolset

    def opening(self, prompt: Prompt) -> tuple[Message, ...]:
        """Return the system and user messages; the tool schemas are added by the chat format."""
        ...
