"""The prompt stream: which prompts step s trains on, for every s, on every machine.

The stream has a length and a state, so Lightning prefetches nothing (a prefetched batch would be
one step stale) and a resumed run goes on at the next prompt. It holds prompts only: the callback
fills `PromptBatch.rollouts` in place before the training step sees the batch.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from lightning.pytorch import LightningDataModule

from arena_lightning.errors import ConfigError
from arena_lightning.rng import generator_for
from arena_lightning.tasks.prompts import load_prompts
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.types import Group, Prompt


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """What the arena made of one step's prompts; `advantages[g]` is float64 `[group]`."""

    groups: tuple[Group, ...]
    advantages: tuple[np.ndarray, ...]
    policy_version: int


@dataclass(slots=True)
class PromptBatch:
    """One iteration's prompts. The only mutable carrier: `rollouts` is filled in place."""

    step: int
    prompts: tuple[Prompt, ...]
    rollouts: RolloutBatch | None = None
    metrics: dict[str, float] = field(default_factory=dict)


class PromptStream:
    """Yields `PromptBatch`es; epoch e visits every prompt once in the order drawn at address e.

    Args:
        prompts: all training prompts.
        groups_per_step: K, prompts an iteration over all ranks.
        num_steps: iterations of the whole run; the stream's length.
        seed: root seed of the permutations.
        process: (this process's rank, number of processes); each takes its own prompts.
    """

    def __init__(
        self,
        prompts: Sequence[Prompt],
        groups_per_step: int,
        num_steps: int,
        seed: int,
        process: tuple[int, int] = (0, 1),
    ) -> None:
        self.prompts = tuple(prompts)
        self.groups_per_step = groups_per_step
        self.num_steps = num_steps
        self.seed = seed
        self.process = process
        self.next_step = 0
        self._orders: dict[int, np.ndarray] = {}
        digest = hashlib.sha256()
        for prompt in self.prompts:
            digest.update(f"{prompt.prompt_id}\0{prompt.query}\0".encode())
        self.fingerprint = digest.hexdigest()[:16]

    def __len__(self) -> int:
        return self.num_steps

    def __iter__(self) -> Iterator[PromptBatch]:
        while self.next_step < self.num_steps:
            step = self.next_step
            self.next_step += 1
            yield PromptBatch(step, self.prompts_at(step))
        self.next_step = 0

    def prompts_at(self, step: int) -> tuple[Prompt, ...]:
        """Return this process's prompts of a step."""
        rank, world = self.process
        first = step * self.groups_per_step
        return tuple(
            self.prompts[self._index(position)]
            for position in range(first + rank, first + self.groups_per_step, world)
        )

    def _index(self, position: int) -> int:
        epoch, offset = divmod(position, len(self.prompts))
        if epoch not in self._orders:
            generator = generator_for(self.seed, "prompts/order", epoch)
            self._orders[epoch] = generator.permutation(len(self.prompts))
        return int(self._orders[epoch][offset])

    def state_dict(self) -> dict[str, Any]:
        return {
            "next_step": self.next_step,
            "fingerprint": self.fingerprint,
            "seed": self.seed,
            "groups_per_step": self.groups_per_step,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on at a saved place.

        Raises:
            ConfigError: the checkpoint was made with other prompts, seed or K.
        """
        mine = self.state_dict()
        for key in ("fingerprint", "seed", "groups_per_step"):
            if state.get(key) != mine[key]:
                raise ConfigError(
                    f"a resumed run must see the same prompts in the same order, but {key} was "
                    f"{state.get(key)} in the checkpoint and is {mine[key]} now. Resume with the "
                    "config the run was started with, or start a new run."
                )
        self.next_step = int(state["next_step"])


class PromptData(LightningDataModule):
    """Training prompts: the travel task's, or a JSONL file of your own.

    Args:
        groups_per_step: K, prompts (groups) an iteration. The paper: 8.
        num_steps: iterations of the run.
        prompts_file: JSONL with `query` and optionally `reference` on each line; None takes the
            built-in travel prompts.
        subtasks: travel subtasks to train on; None means all five.
        language: "en" or "zh", for the built-in prompts.
        num_prompts: built-in prompts to generate. The paper: 1,626.
        seed: seed of the prompt order.
    """

    def __init__(
        self,
        groups_per_step: int = 8,
        num_steps: int = 100,
        prompts_file: str | None = None,
        subtasks: list[str] | None = None,
        language: str = "en",
        num_prompts: int = 1626,
        seed: int = 0,
    ) -> None:
        super().__init__()
        for name, value in (
            ("groups_per_step", groups_per_step),
            ("num_steps", num_steps),
            ("num_prompts", num_prompts),
        ):
            if value < 1:
                raise ConfigError(
                    f"{name} must be at least 1, got {value} (data.{name}). Raise it."
                )
        self.groups_per_step = groups_per_step
        self.num_steps = num_steps
        self.seed = seed
        if prompts_file is None:
            task = TravelTask(language=language)
            self.prompts = task.prompts("train", subtasks=subtasks, count=num_prompts)
        else:
            self.prompts = load_prompts(Path(prompts_file))
        self._stream: PromptStream | None = None

    def train_dataloader(self) -> PromptStream:
        if self._stream is None:
            trainer = self.trainer
            process = (trainer.global_rank, trainer.world_size) if trainer else (0, 1)
            if self.groups_per_step % process[1]:
                raise ConfigError(
                    f"groups_per_step must be a multiple of the number of processes "
                    f"({process[1]}), got {self.groups_per_step} (data.groups_per_step). "
                    "Each process rolls out and judges its own groups."
                )
            self._stream = PromptStream(
                self.prompts, self.groups_per_step, self.num_steps, self.seed, process
            )
        return self._stream

    def test_dataloader(self) -> list[int]:
        """One empty batch: a test's prompts are the evaluation's."""
        return [0]
