"""`ArenaModule`: policy, frozen reference and KL; updates on each step's ranked groups.

The batch arrives filled by `ArenaCallback`. Advantages are used as they come: nothing here
normalises them. Environment tokens never enter the loss.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from arena_lightning.errors import ConfigError, RolloutError
from arena_lightning.policy.logprobs import TokenLogprobs, token_logprobs
from arena_lightning.policy.losses import LossConfig, LossStats, policy_loss
from arena_lightning.policy.model import reference_of
from arena_lightning.policy.packing import MicroBatch, Totals, count_totals, pack
from arena_lightning.training.data import PromptBatch, RolloutBatch
from arena_lightning.training.policy_module import PolicyModule
from arena_lightning.types import Group


class ArenaModule(PolicyModule):
    """Trains a policy on tournament advantages.

    Args:
        loss: ratio level, clips, KL, mismatch correction, normalisation.
        updates_per_rollout: optimizer steps a rollout; its groups are dealt out among them.
        trained_per_group: train on this many trajectories of each group, those with the largest
            |advantage|; None trains on all. Updates cost more than rollouts on CPU, and the
            extremes carry most of the signal (PODS, arXiv:2504.13818).
        kwargs: see `PolicyModule`.
    """

    def __init__(
        self,
        loss: LossConfig | None = None,
        updates_per_rollout: int = 1,
        trained_per_group: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if updates_per_rollout < 1:
            raise ConfigError(
                f"updates_per_rollout must be at least 1, got {updates_per_rollout} "
                "(model.updates_per_rollout). Raise it."
            )
        if trained_per_group is not None and trained_per_group < 1:
            raise ConfigError(
                f"trained_per_group must be at least 1, got {trained_per_group} "
                "(model.trained_per_group). Raise it, or leave it out to train on all."
            )
        self.loss = loss or LossConfig()
        self.trained_per_group = trained_per_group
        self.updates_per_rollout = updates_per_rollout
        self.temperature = 1.0
        self.train_on_anchor = True

    @property
    def needs_reference(self) -> bool:
        return self.loss.kl_coef > 0

    def training_step(self, batch: PromptBatch, batch_idx: int) -> None:
        rollouts = batch.rollouts
        if rollouts is None:
            raise RolloutError(
                f"a batch must hold judged groups, got an empty one at step {batch.step}. "
                "ArenaModule needs an ArenaCallback: add an `arena` section to the config."
            )
        started = time.monotonic()
        shares = [self._packed(rollouts, share) for share in range(self.updates_per_rollout)]
        shares = [(batches, totals) for batches, totals in shares if totals.num_tokens]
        # Only a second update meets weights that its rollout was not sampled from.
        old = [None] + [self._old_logprobs(batches) for batches, _ in shares[1:]]
        metrics: dict[str, float] = {}
        for (batches, totals), old_logprobs in zip(shares, old, strict=False):
            metrics = self.update(
                [
                    partial(self._micro_loss, micro, totals, old_logprobs and old_logprobs[index])
                    for index, micro in enumerate(batches)
                ]
            )
        metrics["time/update_s"] = time.monotonic() - started
        self.log_now(metrics | batch.metrics, batch.step + 1)

    def _packed(self, rollouts: RolloutBatch, share: int) -> tuple[list[MicroBatch], Totals]:
        """Pack every `updates_per_rollout`-th group; totals count all of its trained tokens."""
        chosen = slice(share, None, self.updates_per_rollout)
        groups, advantages = rollouts.groups[chosen], rollouts.advantages[chosen]
        pairs = [
            self._trained(group, values) for group, values in zip(groups, advantages, strict=True)
        ]
        groups, advantages = zip(*pairs, strict=True) if pairs else ((), ())
        batches = pack(
            groups,
            advantages,
            self.micro_batch_tokens,
            self.layout,
            drop_zero_advantages=not self.needs_reference,
        )
        return batches, self._global(count_totals(groups))

    def _trained(self, group: Group, advantages: np.ndarray) -> tuple[Group, np.ndarray]:
        """Return what of a group enters the loss; the anchor is its contestant 0."""
        if not self.train_on_anchor:
            group = Group(group.prompt, group.trajectories[1:])
            advantages = advantages[1:]
        if self.trained_per_group is None:
            return group, advantages
        return extremes(group, advantages, self.trained_per_group)

    def _global(self, totals: Totals) -> Totals:
        if self.trainer.world_size == 1:
            return totals
        counts = torch.tensor([totals.num_tokens, totals.num_sequences], device=self.device)
        return Totals(*self.trainer.strategy.reduce(counts, reduce_op="sum").tolist())

    def _old_logprobs(self, batches: Sequence[MicroBatch]) -> list[torch.Tensor]:
        with torch.no_grad():
            return [
                self._logprobs(self.policy, micro.to(self.device)).logprobs for micro in batches
            ]

    def _logprobs(
        self, model: nn.Module, micro: MicroBatch, entropy: bool = False
    ) -> TokenLogprobs:
        return token_logprobs(model, micro, self.temperature, entropy, self.precision_recipe)

    def _micro_loss(
        self, micro: MicroBatch, totals: Totals, old: torch.Tensor | None
    ) -> tuple[torch.Tensor, LossStats]:
        micro = micro.to(self.device)
        reference = None
        if self.needs_reference:
            with reference_of(self.policy, self.reference) as model:
                reference = self._logprobs(model, micro).logprobs
        mine = self._logprobs(self.policy, micro, entropy=True)
        return policy_loss(micro, self.loss, totals, mine.logprobs, old, reference, mine.entropy)


def extremes(group: Group, advantages: np.ndarray, count: int) -> tuple[Group, np.ndarray]:
    """Return the `count` trajectories with the largest |advantage| and their advantages.

    Contestant order is kept; of equals the earlier contestants are taken.
    """
    order = np.argsort(-np.abs(advantages), kind="stable")[:count]
    kept = sorted(int(index) for index in order)
    return Group(group.prompt, tuple(group.trajectories[i] for i in kept)), advantages[kept]
