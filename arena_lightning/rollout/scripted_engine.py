"""An engine without a model: a function of the request decides what is "sampled".

For tests and dry runs of everything around an engine. It keeps the contract (continuous steps,
limits, versions), and its log-probabilities are a constant that no model stands behind.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from arena_lightning.rollout.engine import Completion, Request, RolloutEngine, Stopwatch

SCRIPTED_LOGPROB = -0.5


@dataclass(slots=True)
class _Pending:
    request: Request
    max_tokens: int
    steps_left: int


class ScriptedEngine(RolloutEngine):
    """Answers each request with the ids that `script` gives, stop token included.

    Args:
        script: request -> ids. The request id tells trajectory and turn: divmod(id, MAX_REQUESTS).
        max_model_len: most tokens a request may have in all.
        steps_of: request -> number of `step` calls that it takes, at least 1.
    """

    is_reproducible = True

    def __init__(
        self,
        script: Callable[[Request], Sequence[int]],
        max_model_len: int = 4096,
        steps_of: Callable[[Request], int] = lambda request: 1,
    ) -> None:
        super().__init__(max_model_len)
        self.synced: dict[str, torch.Tensor] = {}
        self._script = script
        self._steps_of = steps_of
        self._waiting: list[_Pending] = []

    def start(self, model_dir: Path, stop_ids: Sequence[int], seed: int) -> None:
        self.version = 0

    def add(self, request: Request) -> None:
        max_tokens = self._admit(request)
        self._waiting.append(_Pending(request, max_tokens, self._steps_of(request)))

    def step(self) -> list[Completion]:
        with Stopwatch(self.stats):
            for pending in self._waiting:
                pending.steps_left -= 1
            done = [pending for pending in self._waiting if pending.steps_left <= 0]
            self._waiting = [pending for pending in self._waiting if pending.steps_left > 0]
            return [self._completion(pending.request, pending.max_tokens) for pending in done]

    def _completion(self, request: Request, max_tokens: int) -> Completion:
        script = tuple(self._script(request))
        ids = script[:max_tokens]
        reason = "stop"
        if len(ids) < len(script):
            is_full = len(request.prompt_ids) + len(ids) >= self.max_model_len
            reason = "context" if is_full else "length"
        self.stats.generated_tokens += len(ids)
        logprobs = (SCRIPTED_LOGPROB,) * len(ids)
        return Completion(request.request_id, ids, logprobs, reason, self.version)

    def abort_all(self) -> None:
        self._waiting.clear()

    @property
    def num_unfinished(self) -> int:
        return len(self._waiting)

    def sync(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        self._require_idle("sync")
        self.synced = {name: tensor.detach().clone() for name, tensor in named_tensors}
        self.version = version

    def close(self) -> None:
        self.synced = {}
