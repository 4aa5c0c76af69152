"""The rollout engine's contract: token ids in, token ids with their log-probabilities out.

An engine works continuously: requests are added at any time, and `step` hands back what has just
finished, so that no trajectory waits for its slowest neighbour. Only temperature shapes the
sampling. Top-p, top-k and min-p are not offered: they renormalise the log-probabilities over the
kept tokens, the trainer computes them over the whole vocabulary, and every ratio would be biased.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from arena_lightning.errors import RolloutError

CompletionReason = Literal["stop", "length", "context", "aborted"]


@dataclass(frozen=True, slots=True)
class Request:
    """One turn to sample. Temperature 0 is greedy; `seed` makes the draw addressable."""

    request_id: int
    prompt_ids: tuple[int, ...]
    max_tokens: int
    temperature: float
    seed: int


@dataclass(frozen=True, slots=True)
class Completion:
    """What was sampled. `ids` keep the stop token, so the policy is trained to stop.

    `logprobs` are of the distribution at the request's temperature; of a greedy request, at
    temperature 1 (its own distribution is a point mass).
    """

    request_id: int
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: CompletionReason
    """"stop" token, "length" (max_tokens), "context" (max_model_len), "aborted"."""
    policy_version: int


@dataclass(slots=True)
class EngineStats:
    """Counters since the engine was made."""

    requests: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    busy_s: float = 0.0
    """Seconds inside `step`."""


class RolloutEngine(ABC):
    """A source of completions. `start` loads a model; nothing heavy happens before it."""

    is_reproducible: bool = False
    """The same requests in the same steps give the same bits. A session then waits for its tools
    before each step, so that how long a tool takes can't change what is sampled."""

    def __init__(self, max_model_len: int) -> None:
        self.max_model_len = max_model_len
        self.version = 0
        self.stats = EngineStats()

    def check(self) -> None:  # noqa: B027  most engines need nothing
        """Raise ConfigError when this engine can't run here, without loading anything."""

    @abstractmethod
    def start(self, model_dir: Path, stop_ids: Sequence[int], seed: int) -> None:
        """Load a Hugging Face folder as version 0; `stop_ids` end a turn."""

    @abstractmethod
    def add(self, request: Request) -> None:
        """Queue a request. Raises RolloutError when its prompt leaves no room to answer."""

    @abstractmethod
    def step(self) -> list[Completion]:
        """Do some work and return the completions that it finished; [] when there is none."""

    @abstractmethod
    def abort_all(self) -> None:
        """Drop everything queued or running. Returns no completions."""

    @property
    @abstractmethod
    def num_unfinished(self) -> int:
        """Requests queued or running."""

    @abstractmethod
    def sync(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Take over weights under Hugging Face names; completions then carry `version`.

        The tensors are consumed one at a time, so that a sharded policy can gather them lazily.

        Raises:
            RolloutError: requests are unfinished.
            WeightSyncError: the weights don't fit, or the engine did not take them over.
        """

    def sleep(self) -> None:  # noqa: B027  not every engine can
        """Give back device memory until `wake`, where the engine can."""

    def wake(self) -> None:  # noqa: B027
        """Undo `sleep`."""

    @abstractmethod
    def close(self) -> None:
        """Free the model. The engine can be started again."""

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Run requests to their end and return completions in request order."""
        self._require_idle("generate")
        for request in requests:
            self.add(request)
        done: dict[int, Completion] = {}
        try:
            while self.num_unfinished:
                done.update((c.request_id, c) for c in self.step())
        finally:
            self.abort_all()
        return [done[request.request_id] for request in requests]

    def _require_idle(self, what: str) -> None:
        if self.num_unfinished:
            raise RolloutError(
                f"{what} needs an engine without work, got {self.num_unfinished} unfinished "
                "requests. Let them finish or call abort_all()."
            )

    def _admit(self, request: Request) -> int:
        """Count a request and return how many tokens it may sample."""
        room = self.max_model_len - len(request.prompt_ids)
        if room < 1 or not request.prompt_ids:
            raise RolloutError(
                f"a prompt must have tokens and leave room to answer, got "
                f"{len(request.prompt_ids)} tokens with max_model_len {self.max_model_len} "
                f"(request {request.request_id}). Raise arena.engine.max_model_len or shorten it."
            )
        self.stats.requests += 1
        self.stats.prompt_tokens += len(request.prompt_ids)
        return min(request.max_tokens, room)


class Stopwatch:
    """Adds the seconds inside its `with` block to `stats.busy_s`."""

    def __init__(self, stats: EngineStats) -> None:
        self._stats = stats

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *exception: object) -> None:
        self._stats.busy_s += time.perf_counter() - self._started
