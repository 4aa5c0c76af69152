"""The cold start: supervised fine-tuning on expert dialogues, through the same `fit` command.

Dialogues are encoded as the segments that a rollout of them would have given, so the loss falls on
exactly the tokens that the policy will emit. Expert dialogues are of mixed diligence: the policy
learns the format, and a spread of habits for the arena to rank.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningDataModule

from arena_lightning.errors import ConfigError
from arena_lightning.policy.logprobs import token_logprobs
from arena_lightning.policy.losses import MAXIMA, SUMS, LossStats
from arena_lightning.policy.packing import MicroBatch, Totals, count_totals, pack
from arena_lightning.rng import generator_for
from arena_lightning.rollout.chat import encode_dialogue
from arena_lightning.rollout.formats import chat_format_for
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.training.policy_module import PolicyModule
from arena_lightning.types import Group, Message, Prompt, Trajectory


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One expert dialogue, from the first assistant turn to the answer."""

    prompt: Prompt
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class DialogueBatch:
    """One step's dialogues."""

    step: int
    dialogues: tuple[Dialogue, ...]


class DialogueStream:
    """Yields each dialogue once an epoch; resumable like `PromptStream`."""

    def __init__(
        self, dialogues: Sequence[Dialogue], dialogues_per_step: int, epochs: int, seed: int
    ) -> None:
        self._dialogues = tuple(dialogues)
        self._per_step = dialogues_per_step
        self._steps_per_epoch = len(dialogues) // dialogues_per_step
        self._num_steps = self._steps_per_epoch * epochs
        self._seed = seed
        self.next_step = 0

    def __len__(self) -> int:
        return self._num_steps

    def __iter__(self) -> Iterator[DialogueBatch]:
        while self.next_step < self._num_steps:
            step = self.next_step
            self.next_step += 1
            epoch, place = divmod(step, self._steps_per_epoch)
            generator = generator_for(self._seed, "sft/order", epoch)
            order = generator.permutation(len(self._dialogues))
            chosen = order[place * self._per_step : (place + 1) * self._per_step]
            yield DialogueBatch(step, tuple(self._dialogues[int(i)] for i in chosen))
        self.next_step = 0

    def state_dict(self) -> dict[str, Any]:
        return {"next_step": self.next_step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.next_step = int(state["next_step"])


class DialogueData(LightningDataModule):
    """Cold-start dialogues of the travel experts.

    Args:
        num_dialogues: how many to generate. The paper: 2,600.
        dialogues_per_step: dialogues an optimizer step.
        epochs: passes over them. The paper: 3.
        subtasks: None means all but multi_day_travel, which the paper holds out.
        language: "en" or "zh".
        seed: seed of the order.
    """

    def __init__(
        self,
        num_dialogues: int = 2600,
        dialogues_per_step: int = 8,
        epochs: int = 1,
        subtasks: list[str] | None = None,
        language: str = "en",
        seed: int = 0,
    ) -> None:
        super().__init__()
        if not 1 <= dialogues_per_step <= num_dialogues or epochs < 1:
            raise ConfigError(
                "dialogues_per_step must lie between 1 and num_dialogues, and epochs be at least "
                f"1, got {dialogues_per_step}, {num_dialogues} and {epochs} (data). Correct them."
            )
        self.task = TravelTask(language=language)
        made = self.task.cold_start_dialogues(num_dialogues, subtasks)
        dialogues = [Dialogue(prompt, messages) for prompt, messages in made]
        self._stream = DialogueStream(dialogues, dialogues_per_step, epochs, seed)

    def train_dataloader(self) -> DialogueStream:
        return self._stream


class SFTModule(PolicyModule):
    """Maximises the likelihood of expert turns, mean over the step's policy tokens.

    Args:
        kwargs: see `PolicyModule`.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._chat: Any = None

    def training_step(self, batch: DialogueBatch, batch_idx: int) -> None:
        started = time.monotonic()
        # One group: what all openings start with (system message, tools) is computed once.
        rows = tuple(self._trajectory(dialogue) for dialogue in batch.dialogues)
        group = Group(batch.dialogues[0].prompt, rows)
        totals = count_totals([group])
        batches = pack([group], [np.zeros(len(rows))], self.micro_batch_tokens, self.layout)
        metrics = self.update([partial(self._micro_loss, micro, totals) for micro in batches])
        seconds = time.monotonic() - started
        computed = sum(micro.num_computed_tokens for micro in batches)
        metrics = {
            "train/loss": metrics["train/loss"],
            "train/grad_norm": metrics["train/grad_norm"],
            "train/learning_rate": metrics["train/learning_rate"],
            "train/tokens_per_s": computed / seconds,
            "time/update_s": seconds,
        }
        self.log_now(metrics, batch.step + 1)

    def _trajectory(self, dialogue: Dialogue) -> Trajectory:
        task = self.trainer.datamodule.task
        if self._chat is None:
            self._chat = chat_format_for(self.model_dir)
        opening = task.opening(dialogue.prompt)
        segments = encode_dialogue(self._chat, opening, dialogue.messages, task.toolset.schemas)
        return Trajectory(dialogue.prompt.prompt_id, dialogue.messages, segments)

    def _micro_loss(self, micro: MicroBatch, totals: Totals) -> tuple[torch.Tensor, LossStats]:
        micro = micro.to(self.device)
        logprobs = token_logprobs(self.policy, micro, precision=self.precision_recipe).logprobs
        zeros = torch.zeros(len(SUMS), dtype=torch.float64)
        stats = LossStats(zeros, torch.zeros(len(MAXIMA), dtype=torch.float64))
        return -logprobs.sum() / totals.num_tokens, stats
