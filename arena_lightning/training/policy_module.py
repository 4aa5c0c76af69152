"""What supervised and arena training share: the policy, its optimizer, one update, checkpoints.

Optimisation is manual: one batch of the stream is one iteration, and an update is a sum over
micro-batches built by token budget, divided by the totals of the whole update. So no divisibility
rule, and no scaling by Lightning, can change the gradient.
"""

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import nn

from arena_lightning.errors import ConfigError
from arena_lightning.policy.embedded import EMBEDDED, check_model_dir, resolve_model
from arena_lightning.policy.losses import LossStats
from arena_lightning.policy.model import LoRAConfig, export_policy, load_policy, load_reference
from arena_lightning.policy.packing import LAYOUTS
from arena_lightning.training.memory import give_back_memory, peak_memory_gib

MODEL_CACHE = Path("runs/models")
PRECISIONS = ("float32", "bfloat16")
MicroLoss = Callable[[], tuple[torch.Tensor, LossStats]]


class PolicyModule(LightningModule):
    """Holds a policy and updates it.

    Args:
        policy: "embedded", or a Hugging Face folder.
        learning_rate: peak of AdamW's learning rate.
        warmup_steps: optimizer steps of linear warm-up.
        decay_to: learning rate at the last step as a fraction of the peak (cosine); 1 is constant.
        weight_decay: AdamW's.
        betas: AdamW's.
        max_grad_norm: gradients are clipped to this norm.
        micro_batch_tokens: most tokens computed at once, padding included.
        layout: "shared_prefix" computes a group's prompt once; "padded" once a trajectory.
        precision: of matrix products; weights and optimizer are float32 in either case.
        lora: train adapters only; the reference is then the model with them switched off.
        export_dir: where the trained model goes as a Hugging Face folder; None: the run folder.
    """

    def __init__(
        self,
        policy: str = "embedded",
        learning_rate: float = 1e-5,
        warmup_steps: int = 5,
        decay_to: float = 1.0,
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.98),
        max_grad_norm: float = 1.0,
        micro_batch_tokens: int = 4096,
        layout: str = "shared_prefix",
        precision: str = "bfloat16",
        lora: LoRAConfig | None = None,
        export_dir: str | None = None,
    ) -> None:
        super().__init__()
        if layout not in LAYOUTS:
            raise ConfigError(
                f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r} (model.layout)."
            )
        for name, value in (
            ("learning_rate", learning_rate),
            ("max_grad_norm", max_grad_norm),
            ("micro_batch_tokens", micro_batch_tokens),
        ):
            if not value > 0:
                raise ConfigError(f"{name} must be above 0, got {value} (model.{name}). Raise it.")
        if precision not in PRECISIONS:
            raise ConfigError(
                f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r} "
                "(model.precision)."
            )
        if policy != EMBEDDED:
            check_model_dir(Path(policy))
        self.automatic_optimization = False
        self.policy_source = policy
        self.learning_rate = learning_rate
        self.warmup_steps = warmup_steps
        self.decay_to = decay_to
        self.weight_decay = weight_decay
        self.betas = betas
        self.max_grad_norm = max_grad_norm
        self.micro_batch_tokens = micro_batch_tokens
        self.layout = layout
        self.precision_recipe = precision
        self.export_dir = export_dir
        self.lora = lora
        self.policy: nn.Module | None = None
        self.reference: nn.Module | None = None
        self.latest_metrics: dict[str, float] = {}

    @property
    def needs_reference(self) -> bool:
        """Whether a frozen copy is held beside the policy."""
        return False

    @cached_property
    def model_dir(self) -> Path:
        """The folder the policy starts from."""
        return resolve_model(self.policy_source, MODEL_CACHE)

    def configure_model(self) -> None:
        if self.policy is None:
            self.policy = load_policy(self.model_dir, lora=self.lora)
        if self.needs_reference and self.lora is None and self.reference is None:
            self.reference = load_reference(self.model_dir)

    def transfer_batch_to_device(
        self, batch: Any, device: torch.device, dataloader_idx: int
    ) -> Any:
        """Hand on the very object: the callback fills it, and tensors move by micro-batch."""
        return batch

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(
            self.trained_parameters(),
            lr=self.learning_rate,
            betas=self.betas,
            weight_decay=self.weight_decay,
            fused=True,
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self._rate_at)
        return {"optimizer": optimizer, "lr_scheduler": schedule}

    def trained_parameters(self) -> list[nn.Parameter]:
        return [p for p in self.parameters() if p.requires_grad]

    def _rate_at(self, step: int) -> float:
        if step < self.warmup_steps:
            return (step + 1) / (self.warmup_steps + 1)
        if self.decay_to == 1.0 or self._trainer is None:
            return 1.0
        total = max(1, int(self.trainer.num_training_batches) - self.warmup_steps)
        progress = min(1.0, (step - self.warmup_steps) / total)
        return self.decay_to + (1 - self.decay_to) * (1 + math.cos(math.pi * progress)) / 2

    def update(self, micro_losses: Sequence[MicroLoss]) -> dict[str, float]:
        """Take one optimizer step over micro-batches and return its metrics.

        The gradients of all micro-batches add up; processes are averaged by the strategy, so the
        loss of each is multiplied by their number (its totals are global).
        """
        optimizer = self.optimizers()
        world = self.trainer.world_size
        optimizer.zero_grad()
        total = torch.zeros((), dtype=torch.float64)
        stats: LossStats | None = None
        for micro_loss in micro_losses:
            loss, batch_stats = micro_loss()
            self.manual_backward(loss * world)
            if self.device.type == "cpu":
                give_back_memory()
            total += loss.detach().double().cpu()
            stats = batch_stats if stats is None else stats + batch_stats
        grad_norm = nn.utils.clip_grad_norm_(self.trained_parameters(), self.max_grad_norm)
        if not torch.isfinite(grad_norm):
            raise FloatingPointError(
                f"the gradient must be finite, got norm {float(grad_norm)} at step "
                f"{self.global_step}. Lower model.learning_rate, or check the judge's scores."
            )
        optimizer.step()
        self.lr_schedulers().step()
        optimizer.zero_grad()
        give_back_memory()
        metrics = {} if stats is None else {f"train/{k}": v for k, v in stats.means().items()}
        return metrics | {
            "train/loss": float(total),
            "train/grad_norm": float(grad_norm),
            "train/learning_rate": optimizer.param_groups[0]["lr"],
            "memory/peak_gib": peak_memory_gib(),
        }

    def log_now(self, metrics: dict[str, float], step: int) -> None:
        """Write metrics at a step to every logger, and keep the latest for the progress line."""
        self.latest_metrics.update(metrics)
        for logger in self.trainer.loggers:
            logger.log_metrics(metrics, step=step)
            logger.save()

    def test_step(self, batch: Any, batch_idx: int) -> None:
        """Nothing: a test is the evaluation callback's (`training/evaluation.py`)."""

    def on_fit_start(self) -> None:
        first = self.trainer.fit_loop.epoch_loop.batch_progress.current.ready + 1
        for logger in self.trainer.loggers:
            if hasattr(logger, "restore"):
                logger.restore(before_step=first)

    def on_train_end(self) -> None:
        if self.trainer.interrupted or not self.trainer.is_global_zero:
            return
        target = Path(self.export_dir or Path(self.trainer.default_root_dir) / "model")
        export_policy(self.policy, self.model_dir, target)
        print(f"model: {target}", flush=True)

    def recipe(self) -> str:
        """Hash of the settings that a resumed run must share."""
        settings = {
            "class": type(self).__name__,
            "rate": [self.learning_rate, self.warmup_steps, self.decay_to, self.weight_decay],
            "precision": self.precision_recipe,
        }
        return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:12]

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["arena_recipe"] = self.recipe()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        found = checkpoint.get("arena_recipe")
        if self._trainer is not None and self._trainer.testing:
            return  # weights are all that a test needs
        if found != self.recipe():
            raise ConfigError(
                f"a checkpoint must come from the same recipe, got {found} where this config is "
                f"{self.recipe()} ({type(self).__name__}, learning rate, warm-up, precision). "
                "Resume with the config.yaml in the run's folder, or start a new run."
            )
