"""What `fit` adds to LightningCLI: run folders, loggers, checkpoints, the arena, the cold start.

A run never overwrites another: each gets the next numbered folder below `run_dir`, and
`--ckpt_path last` goes on in the newest; tests have folders of their own below `run_dir/test`. The
resolved configuration is written into the folder before anything expensive starts.
"""

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningDataModule, LightningModule
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI, SaveConfigCallback

from arena_lightning.errors import ConfigError
from arena_lightning.reporting.loggers import build_loggers
from arena_lightning.training.arena_callback import ArenaCallback
from arena_lightning.training.cold_start import ensure_cold_start
from arena_lightning.training.evaluation import EvaluationCallback
from arena_lightning.training.progress import ProgressLine

HARMLESS_WARNINGS = (
    ".*LeafSpec.*is deprecated",
    # The module hands batches on untouched, on purpose.
    ".*overridden `transfer_batch_to_device`",
    # What a checkpoint holds is the state after the step, as a resumed run needs it.
    ".*ModelCheckpoint with manual optimization",
    ".*does not have many workers",
)
NOTICES = ("💡 Tip", "GPU available: False", "TPU available: False", "`Trainer.fit` stopped")
"""How Lightning's notices begin that tell a user of a run nothing."""


class ArenaCLI(LightningCLI):
    """`model` and `data` are chosen by `class_path`; `arena` and `evaluation` are optional."""

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        parser.add_argument(
            "--run_dir",
            type=str,
            default="runs/run",
            help="Runs are kept in numbered folders below this one.",
        )
        parser.add_argument(
            "--cold_start",
            type=str | None,
            default=None,
            help="Config of the supervised cold start; its model is trained once and becomes "
            "model.policy.",
        )
        parser.add_argument(
            "--expected_minutes",
            type=float | None,
            default=None,
            help="How long the run takes on two CPU cores; told before a cold start begins.",
        )
        parser.add_argument(
            "--checkpoint_every_n_steps",
            type=int,
            default=5,
            help="Optimizer steps between checkpoints.",
        )
        parser.add_lightning_class_args(ArenaCallback, "arena", subclass_mode=True, required=False)
        parser.add_lightning_class_args(
            EvaluationCallback, "evaluation", subclass_mode=True, required=False
        )

    def before_instantiate_classes(self) -> None:
        if self.subcommand is None:
            return
        config = self.config[self.subcommand]
        base = Path(config["run_dir"])
        resume = config.get("ckpt_path") == "last"
        if self.subcommand == "test":
            _require_test_sections(config)
            if resume:
                config["ckpt_path"] = str(newest_checkpoint(base))
            config["run_dir"] = str(numbered_run_dir(base / "test", resume=False))
        else:
            config["run_dir"] = str(numbered_run_dir(base, resume))
        if config.get("cold_start"):
            policy = ensure_cold_start(Path(config["cold_start"]))
            config["model"]["init_args"]["policy"] = str(policy)

    def instantiate_trainer(self, **kwargs: Any) -> Any:
        run_dir = Path(self._get(self.config_init, "run_dir"))
        every = self._get(self.config_init, "checkpoint_every_n_steps")
        checkpoint = ModelCheckpoint(
            dirpath=run_dir / "checkpoints",
            filename="step-{step:06d}",
            auto_insert_metric_name=False,
            every_n_train_steps=every,
            save_last="link",
            save_top_k=1,
            save_on_train_epoch_end=True,
        )
        extra: list[Callback] = [
            callback
            for key in self._parser(self.subcommand).callback_keys
            if (callback := self._get(self.config_init, key)) is not None
        ]
        trainer_config = {**self._get(self.config_init, "trainer", default={}), **kwargs}
        trainer_config["default_root_dir"] = str(run_dir)
        trainer_config["callbacks"] = [*(trainer_config.get("callbacks") or []), checkpoint]
        if trainer_config.get("logger") is None:
            trainer_config["logger"] = build_loggers(run_dir)
        trainer_config["enable_progress_bar"] = False
        trainer = self._instantiate_trainer(trainer_config, [*extra, ProgressLine()])
        if trainer.world_size > 1:
            # Records, run folders, budgets and micro-batches are one process's so far.
            raise ConfigError(
                f"a run must have one process so far, got {trainer.world_size} (trainer.devices, "
                "trainer.num_nodes, trainer.strategy). Set trainer.devices to 1."
            )
        return trainer


class SaveConfig(SaveConfigCallback):
    """Writes the resolved configuration to `<run_dir>/config.yaml`, also on a resume."""

    def setup(self, trainer: Any, pl_module: LightningModule, stage: str) -> None:
        if self.already_saved or not trainer.is_global_zero:
            return
        path = Path(trainer.default_root_dir) / "config.yaml"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.parser.save(self.config, path, skip_none=False, overwrite=True, multifile=False)
        except OSError as error:
            raise ConfigError(
                f"run_dir must be a writable folder, got {error} ({path.parent}). "
                "Choose another with --run_dir."
            ) from error
        self.already_saved = True


def numbered_run_dir(base: Path, resume: bool) -> Path:
    """Return the next unused `<base>/<number>`, or the newest one to resume.

    Raises:
        ConfigError: the folder can't be made, or there is nothing to resume.
    """
    try:
        base.mkdir(parents=True, exist_ok=True)
        runs = sorted(path for path in base.iterdir() if path.name.isdigit())
        if resume:
            if not runs:
                raise ConfigError(
                    f"--ckpt_path last needs a run to go on with, got none in {base}. "
                    "Start one without --ckpt_path, or set --run_dir."
                )
            return runs[-1]
        path = base / f"{int(runs[-1].name) + 1 if runs else 1:03d}"
        path.mkdir()
    except OSError as error:
        raise ConfigError(
            f"run_dir must be a writable folder, got {error} ({base}). "
            "Choose another with --run_dir."
        ) from error
    return path


def newest_checkpoint(base: Path) -> Path:
    """Return the last checkpoint of the newest run below `base`.

    Raises:
        ConfigError: there is none.
    """
    path = numbered_run_dir(base, resume=True) / "checkpoints" / "last.ckpt"
    if not path.exists():
        raise ConfigError(
            f"--ckpt_path last needs a checkpoint of the newest run, got none ({path}). Let the "
            "run reach its first checkpoint, or name a file."
        )
    return path.resolve()


def _require_test_sections(config: Any) -> None:
    for section in ("arena", "evaluation"):
        if not config.get(section):
            raise ConfigError(
                f"a config to test must have the section `{section}`, got none. Name a config for "
                "`fit` with an arena and an evaluation."
            )


def _is_worth_reading(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(NOTICES)


def run_cli(arguments: list[str]) -> None:
    """Parse, build and run."""
    for harmless in HARMLESS_WARNINGS:
        warnings.filterwarnings("ignore", message=harmless)
    for name in ("lightning.pytorch.utilities.rank_zero", "lightning.fabric.utilities.rank_zero"):
        logging.getLogger(name).addFilter(_is_worth_reading)
    sys.argv = [sys.argv[0]]  # LightningCLI warns when it gets arguments twice
    ArenaCLI(
        LightningModule,
        LightningDataModule,
        save_config_callback=SaveConfig,
        subclass_mode_model=True,
        subclass_mode_data=True,
        auto_configure_optimizers=False,
        seed_everything_default=0,
        trainer_defaults={
            "max_epochs": 1,
            "accelerator": "auto",
            "devices": 1,
            "num_sanity_val_steps": 0,
            "log_every_n_steps": 1,
            "enable_model_summary": False,
            "use_distributed_sampler": False,
        },
        args=arguments,
    )
