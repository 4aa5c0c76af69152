"""One live line a step: what happened, how fast, at what judge cost. Printed by rank 0 only."""

import sys
import time
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

TRAIN_FIELDS = (
    ("loss", "train/loss", "{:.3f}"),
    ("kl", "train/kl", "{:.4f}"),
    ("win rate", "evaluation/vs_cold_start/win_rate", "{:.1%}"),
    ("judge calls", "arena/judge_calls", "{:.0f}"),
    ("tie", "arena/tie_fraction", "{:.0%}"),
    ("tokens/s", "rollout/tokens_per_s", "{:.0f}"),
    ("rollout", "time/rollout_s", "{:.0f}s"),
    ("judge wait", "time/arena_wait_s", "{:.1f}s"),
    ("update", "time/update_s", "{:.0f}s"),
)


class ProgressLine(Callback):
    """Prints `step 3/40 (7%) | loss .. | ..` with an estimate of the time left."""

    def __init__(self) -> None:
        super().__init__()
        self._started_s = 0.0
        self._first_step = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._started_s = time.monotonic()
        self._first_step = trainer.fit_loop.epoch_loop.batch_progress.current.ready

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        if not trainer.is_global_zero:
            return
        metrics = getattr(pl_module, "latest_metrics", {})
        total = int(trainer.num_training_batches)
        done = batch_idx + 1
        parts = [f"step {done}/{total}"]
        for label, key, form in TRAIN_FIELDS:
            if key in metrics:
                parts.append(f"{label} {form.format(float(metrics[key]))}")
        elapsed_s = time.monotonic() - self._started_s
        left_s = elapsed_s / max(1, done - self._first_step) * (total - done)
        parts.append(f"{elapsed_s / 60:.1f} min, {left_s / 60:.0f} min left")
        every = max(1, getattr(pl_module, "print_every_n_steps", 1))
        if done % every == 0 or done == total:
            print(" | ".join(parts), file=sys.stdout, flush=True)
