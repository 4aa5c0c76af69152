"""Where metrics go: a CSV in the run folder always, and W&B (offline when nobody is logged in)."""

import netrc
import os
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger, WandbLogger

from arena_lightning.reporting.metrics_csv import CSVMetrics


def wandb_is_logged_in() -> bool:
    """Return whether W&B has credentials here, without asking the network."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    try:
        hosts = netrc.netrc().hosts
    except (OSError, netrc.NetrcParseError):
        return False
    return any("wandb" in host for host in hosts)


def build_loggers(run_dir: Path) -> list[Logger]:
    """Return the run's loggers. `WANDB_MODE=disabled` leaves W&B out."""
    loggers: list[Logger] = [CSVMetrics(str(run_dir))]
    if os.environ.get("WANDB_MODE") != "disabled":
        loggers.append(WandbMirror(run_dir))
    return loggers


class WandbMirror(WandbLogger):
    """A mirror of the local metrics; local files stay the source of truth.

    Each start (also a resumed one) is a W&B run of its own in one group, because offline runs
    can't be continued. `wandb sync <run_dir>/wandb/offline-run-*` uploads them later.
    """

    def __init__(self, run_dir: Path, **kwargs: Any) -> None:
        offline = os.environ.get("WANDB_MODE") == "offline" or not wandb_is_logged_in()
        super().__init__(
            project=os.environ.get("WANDB_PROJECT", "arena_lightning"),
            save_dir=str(run_dir),
            group="-".join(run_dir.parts[-2:]),
            offline=offline,
            **kwargs,
        )
        # Lightning passes it on though W&B has dropped it, and W&B warns.
        self._wandb_init.pop("anonymous", None)
