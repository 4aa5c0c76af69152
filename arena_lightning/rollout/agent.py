"""One trajectory in the making: a small state machine between an engine and a toolset.

    next_request -> (engine) -> receive -> calls -> (tools) -> observe -> next_request -> ...

It holds the growing ids and messages of one trajectory, and never waits: the session asks it what
it needs next. Ids come from the engine as they are; only observations are tokenised, alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arena_lightning.errors import ConfigError, RolloutError
from arena_lightning.protocols import ToolResult
from arena_lightning.rng import seed_for
from arena_lightning.rollout.chat import ChatFormat
from arena_lightning.rollout.engine import Completion, Request
from arena_lightning.rollout.turns import TurnError
from arena_lightning.types import (
    FinishReason,
    Message,
    Prompt,
    Segment,
    ToolCall,
    Trajectory,
)

MAX_REQUESTS = 1024
"""Request ids of trajectory p are p * MAX_REQUESTS + turn."""
ANSWER_NOW = {"en": "Answer now, without tools.", "zh": "现在请直接回答,不再用工具。"}


@dataclass(frozen=True, slots=True)
class SamplingLimits:
    """Where a trajectory ends."""

    max_turns: int = 6
    """Tool rounds. At the last one the agent is told to answer; one more call ends it."""
    max_tokens_per_turn: int = 256
    """Tokens the policy may emit in one turn."""
    max_context_tokens: int | None = None
    """Tokens of a whole trajectory; None means the engine's max_model_len."""
    max_tool_chars: int = 2000
    """Characters of one observation; a longer one loses its middle."""
    tool_timeout_s: float = 60.0
    """Seconds a tool may take before its observation is an error."""

    def __post_init__(self) -> None:
        context = self.max_context_tokens
        for name, value, least, most in (
            ("max_turns", self.max_turns, 0, MAX_REQUESTS - 1),
            ("max_tokens_per_turn", self.max_tokens_per_turn, 1, None),
            ("max_context_tokens", 2 if context is None else context, 2, None),
            ("max_tool_chars", self.max_tool_chars, 80, None),
            ("tool_timeout_s", self.tool_timeout_s, 0.001, None),
        ):
            if value < least or (most is not None and value > most):
                limit = f"at least {least}" if value < least else f"at most {most}"
                raise ConfigError(
                    f"{name} must be {limit}, got {value} (arena.limits.{name}). Correct it."
                )


@dataclass(frozen=True, slots=True)
class TrajectoryRequest:
    """One trajectory to sample: contestant `index` of group `group`. Temperature 0 is greedy."""

    prompt: Prompt
    group: int
    index: int
    temperature: float
    seed: int


def plan_groups(
    prompts: Sequence[Prompt],
    group_size: int,
    temperature: float,
    address: tuple[int, str, int],
    greedy_anchor: bool = False,
    first_group: int = 0,
    group_stride: int = 1,
) -> list[TrajectoryRequest]:
    """Return `group_size` requests a prompt, contestants of a group in order.

    Args:
        prompts: one a group.
        group_size: trajectories a prompt.
        temperature: of all but a greedy anchor.
        address: (root seed, stream, step); group and index complete each trajectory's address.
        greedy_anchor: decode contestant 0 greedily.
        first_group: number of the first prompt's group within the step, over all processes.
        group_stride: distance between this process's groups.

    Raises:
        ConfigError: a temperature that an engine would replace by another one.
    """
    # vLLM raises small temperatures to 0.01 and refuses those above 2.
    if temperature != 0 and not 0.01 <= temperature <= 2:
        raise ConfigError(
            f"temperature must be 0 or between 0.01 and 2, got {temperature} (arena.temperature). "
            "Correct it."
        )
    root_seed, stream, step = address
    requests = []
    for position, prompt in enumerate(prompts):
        group = first_group + position * group_stride
        for index in range(group_size):
            greedy = greedy_anchor and index == 0
            seed = seed_for(root_seed, stream, step, group, index)
            requests.append(
                TrajectoryRequest(prompt, group, index, 0.0 if greedy else temperature, seed)
            )
    return requests


class Agent:
    """The state of one trajectory.

    Args:
        position: number of the trajectory in its session; makes request ids unique.
        request: what to sample.
        opening_ids: tokens up to where the policy starts to write.
        chat: the model's format.
        limits: where it ends.
        max_context_tokens: the limit that applies, `limits` and engine considered.
    """

    def __init__(
        self,
        position: int,
        request: TrajectoryRequest,
        opening_ids: tuple[int, ...],
        chat: ChatFormat,
        limits: SamplingLimits,
        max_context_tokens: int,
    ) -> None:
        self.request = request
        self.finish: FinishReason | None = None
        self.num_parse_errors = 0
        self.position = position
        self._chat = chat
        self._limits = limits
        self._max_context_tokens = max_context_tokens
        self._context = list(opening_ids)
        self._segments = [Segment("prompt", opening_ids)]
        self._messages: list[Message] = []
        self._calls: tuple[ToolCall, ...] = ()
        self._observation: tuple[int, ...] = ()
        self._num_rounds = 0
        self._num_turns = 0
        self._was_cut = False
        self._is_short_of_room = False

    def next_request(self) -> Request | None:
        """Return the next turn to sample, None when the context is full (it is finished then)."""
        room = self._max_context_tokens - len(self._context) - len(self._observation)
        if room < 1:
            self.finish = "context"
            return None
        if self._observation:
            self._segments.append(Segment("tool", self._observation))
            self._context += self._observation
            self._observation = ()
        self._is_short_of_room = room < self._limits.max_tokens_per_turn
        turn = self._num_turns
        self._num_turns += 1
        return Request(
            self.position * MAX_REQUESTS + turn,
            tuple(self._context),
            min(room, self._limits.max_tokens_per_turn),
            self.request.temperature,
            seed_for(self.request.seed, "rollout/turn", turn),
        )

    def receive(self, completion: Completion) -> tuple[ToolCall, ...]:
        """Take a sampled turn and return the calls to run.

        () means that it is finished, or that its call was unreadable and it has been told so.
        """
        if len(completion.logprobs) != len(completion.ids) or not completion.ids:
            raise RolloutError(
                "a completion must have tokens, each with a log-probability, got "
                f"{len(completion.ids)} and {len(completion.logprobs)} "
                f"(request {completion.request_id}). The engine broke its contract."
            )
        logprobs = completion.logprobs if self.request.temperature > 0 else ()
        self._segments.append(
            Segment("policy", completion.ids, logprobs, completion.policy_version)
        )
        self._context += completion.ids
        self._was_cut = completion.ids[-1] != self._chat.stop_ids[0]
        try:
            message, problem = self._chat.parse_turn(completion.ids), ""
        except TurnError as error:
            message, problem = error.message, str(error)
        self._messages.append(message)
        self.num_parse_errors += bool(problem)
        if completion.finish_reason != "stop":
            self.finish = self._cut_reason(completion)
        elif not message.tool_calls and not problem:
            self.finish = "answered"
        elif self._num_rounds >= self._limits.max_turns:
            self.finish = "max_turns"
        elif problem:
            self._take_observations([Message("tool", f"Error: {problem}", is_error=True)])
        else:
            self._calls = message.tool_calls
        return self._calls

    def observe(self, results: Sequence[ToolResult]) -> None:
        """Take the results of the calls that `receive` returned, in their order."""
        observations = [
            Message(
                "tool",
                shortened(result.content, self._limits.max_tool_chars),
                name=call.name,
                is_error=result.is_error,
            )
            for call, result in zip(self._calls, results, strict=True)
        ]
        self._calls = ()
        self._take_observations(observations)

    def trajectory(self) -> Trajectory:
        """Return the finished trajectory."""
        assert self.finish is not None, "trajectory() is for finished agents"
        return Trajectory(
            self.request.prompt.prompt_id,
            tuple(self._messages),
            tuple(self._segments),
            self.finish,
            self.request.index,
        )

    @property
    def num_turns(self) -> int:
        return self._num_turns

    @property
    def messages(self) -> Sequence[Message]:
        return self._messages

    def _take_observations(self, observations: list[Message]) -> None:
        self._num_rounds += 1
        self._messages += observations
        shown = list(observations)
        if self._num_rounds >= self._limits.max_turns:
            # Ours, not the tool's: the policy reads it, a judge does not.
            shown[-1] = _with_notice(shown[-1], self.request.prompt.language)
        self._observation = self._chat.observation_ids(shown, self._was_cut)

    def _cut_reason(self, completion: Completion) -> FinishReason:
        if completion.finish_reason == "aborted":
            return "aborted"
        is_full = completion.finish_reason == "context" or self._is_short_of_room
        return "context" if is_full else "length"


def shortened(text: str, max_chars: int) -> str:
    """Return text with its middle left out, at most about `max_chars` characters."""
    if len(text) <= max_chars:
        return text
    mark = f"\n[... {len(text) - max_chars} characters left out ...]\n"
    kept = max(2, max_chars - len(mark))
    head = kept - kept // 2
    return f"{text[:head]}{mark}{text[len(text) - kept // 2 :]}"


def opening_ids_of(
    chat: ChatFormat, opening: Sequence[Message], tools: Sequence[Mapping[str, Any]]
) -> tuple[int, ...]:
    """Return an opening's ids, refusing one without a single token."""
    ids = chat.opening_ids(opening, tools)
    if not ids:
        raise RolloutError(
            "an opening must have tokens, got none. Check the task's opening() and the template."
        )
    return ids


def _with_notice(message: Message, language: str) -> Message:
    notice = ANSWER_NOW.get(language, ANSWER_NOW["en"])
    return Message(
        "tool", f"{message.content}\n{notice}", name=message.name, is_error=message.is_error
    )
