"""The carriers that cross rooms: prompts, trajectories, matches, standings. All are frozen.

Text carriers (`Prompt`, `Message`, `ToolCall`) are what judges and tasks read; token carriers
(`Segment`, `Trajectory`, `Group`) are what rollout writes and the policy trains on; tournament
carriers (`Pairing`, `Bye`, `Match`, `Standings`) are named tuples and arrays because studies make
millions of them. Nothing here knows how a carrier is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

Role = Literal["system", "user", "assistant", "tool"]
Emitter = Literal["prompt", "policy", "tool"]
MatchStatus = Literal["decided", "tie", "failed"]
FinishReason = Literal["answered", "length", "context", "max_turns", "aborted"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the agent asked for."""

    name: str
    arguments: Mapping[str, Any]
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message.

    `reasoning` is the assistant's thought before a call or answer, "" when it gave none. A `tool`
    message answers the assistant's calls: one message a call, in call order, `name` = tool name.
    """

    role: Role
    content: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    name: str = ""
    is_error: bool = False
    """True for a tool message that reports bad arguments or an unreadable call."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A query without a gold answer."""

    prompt_id: str
    query: str
    subtask: str = ""
    language: str = "en"
    reference: tuple[Message, ...] = ()
    """A baseline's messages, last one the answer; () when there is none."""
    needs: Mapping[str, Any] = field(default_factory=dict)
    """What the query asks for, machine-readable, for programmatic judges; {} for user files."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive tokens from one emitter, with the engine's ids (never tokenised again)."""

    emitter: Emitter
    ids: tuple[int, ...]
    logprobs: tuple[float, ...] = ()
    """Log-probabilities under the engine's sampling distribution, policy segments only; () for
    a greedy turn, whose distribution is a point mass: nothing to correct the loss by."""
    policy_version: int = -1
    """Weights that produced it; -1 for tokens the policy did not emit."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One finished sequence of turns: what was said (`messages`) and its tokens (`segments`)."""

    prompt_id: str
    messages: tuple[Message, ...]
    """From the first assistant turn on: assistant and tool messages (no system or user)."""
    segments: tuple[Segment, ...] = ()
    finish: FinishReason = "answered"
    index: int = 0
    """Contestant index in its group; 0 is the anchor."""

    @property
    def answer(self) -> str:
        """The final answer's text, "" when the trajectory ended without one."""
        if self.finish != "answered" or not self.messages:
            return ""
        last = self.messages[-1]
        return last.content if last.role == "assistant" and not last.tool_calls else ""

    @property
    def num_policy_tokens(self) -> int:
        return sum(len(s.ids) for s in self.segments if s.emitter == "policy")

    @property
    def num_tokens(self) -> int:
        return sum(len(s.ids) for s in self.segments)


@dataclass(frozen=True, slots=True)
class Group:
    """N trajectories of one prompt, in contestant order."""

    prompt: Prompt
    trajectories: tuple[Trajectory, ...]

    def __len__(self) -> int:
        return len(self.trajectories)


class Pairing(NamedTuple):
    """Two contestants to be compared; `first` is shown first when only one order is played."""

    first: int
    second: int


class Bye(NamedTuple):
    """A rest that costs no judge call."""

    contestant: int


class Match(NamedTuple):
    """A played pairing, merged over the presentation orders. Scores are None when it failed."""

    first: int
    second: int
    score_first: float | None
    score_second: float | None
    status: MatchStatus


@dataclass(frozen=True, slots=True)
class Usage:
    """What one judge call cost. Zero for offline judges; None where it is not known."""

    calls: int = 1
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    latency_s: float = 0.0
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judge call in one presentation order. Scores on the judge's own scale, finite."""

    score_first: float
    score_second: float
    dimensions_first: Mapping[str, float] = field(default_factory=dict)
    dimensions_second: Mapping[str, float] = field(default_factory=dict)
    usage: Usage = Usage()
    comment: str = ""
    judge: str = ""


@dataclass(frozen=True, slots=True)
class Standings:
    """A tournament's final table.

    Shapes: `ranks`, `points`, `scores` are float64 `[group]`.
    """

    ranks: np.ndarray
    """0.0 is best; contestants that can't be told apart share the mean of their ranks."""
    matches: tuple[Match, ...]
    """Every match played, in playing order, failed ones included."""
    points: np.ndarray
    """Win 1, tie 0.5, loss 0, bye as the topology defines; ranking key where it applies."""
    scores: np.ndarray
    """Mean judge score over a contestant's matches that did not fail; NaN when it has none."""
    num_rounds: int
    """Sequential rounds played: the length of the critical path."""
