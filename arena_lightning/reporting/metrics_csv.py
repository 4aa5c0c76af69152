"""Local metrics: `metrics.csv` in the run folder, one row a step, kept across resumes.

Lightning's own CSV logger deletes the files of the run that it resumes; this one reads them, drops
the rows that a resumed run trains again, and goes on. The file is replaced atomically.
"""

import csv
import os
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.utilities import rank_zero_only

from arena_lightning.errors import RecordError


class CSVMetrics(Logger):
    """Writes every logged metric to `<save_dir>/metrics.csv`.

    Args:
        save_dir: the run folder.
    """

    def __init__(self, save_dir: str) -> None:
        super().__init__()
        self._dir = Path(save_dir)
        self._rows: dict[int, dict[str, float]] = {}
        self._columns: dict[str, None] = {}

    @property
    def name(self) -> str:
        return self._dir.name

    @property
    def version(self) -> str:
        return ""

    @property
    def save_dir(self) -> str:
        return str(self._dir)

    @property
    def path(self) -> Path:
        return self._dir / "metrics.csv"

    @rank_zero_only
    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Hyperparameters live in `config.yaml`, which the command line writes."""

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        row = self._rows.setdefault(int(step or 0), {})
        row.update({key: float(value) for key, value in metrics.items() if key != "epoch"})
        for key in row:
            self._columns.setdefault(key)

    @rank_zero_only
    def save(self) -> None:
        if not self._rows:
            return
        temporary = self.path.with_suffix(".csv.tmp")
        try:
            self._dir.mkdir(parents=True, exist_ok=True)
            with temporary.open("w", newline="") as file:
                writer = csv.DictWriter(file, ["step", *sorted(self._columns)])
                writer.writeheader()
                for step in sorted(self._rows):
                    writer.writerow({"step": step, **self._rows[step]})
            os.replace(temporary, self.path)
        except OSError as error:
            raise RecordError(
                f"metrics must be writable, got {error} ({self.path}). "
                "Free space or choose another run folder."
            ) from error

    def restore(self, before_step: int) -> None:
        """Read the rows of a resumed run that came before `before_step`."""
        if not self.path.exists():
            return
        with self.path.open(newline="") as file:
            for record in csv.DictReader(file):
                step = int(record.pop("step"))
                if step < before_step:
                    self.log_metrics({k: float(v) for k, v in record.items() if v}, step)
