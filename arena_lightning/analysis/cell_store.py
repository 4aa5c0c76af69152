"""What each cell of a sweep played and how faithful it was, in files written whole or not at all.

    CellStore(root, plan, sources).played(cell) / .metrics(cell) / .step_cosines(cell, K)

A cell is played when it isn't there yet, by whoever asks first; playing it twice gives the same
file. It knows nothing of Optuna and makes no table.
"""

import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from arena_lightning.analysis.cells import Cell, Played, play_cell
from arena_lightning.analysis.fidelity import group_metrics, ranks_of_truth, step_cosine
from arena_lightning.analysis.verdict_batch import VerdictBatch, VerdictSource
from arena_lightning.errors import RecordError

Arrays = dict[str, np.ndarray]
RETEST = "retest"
"""Name under which round robin on fresh verdicts of the same groups is kept: the ceiling."""


class CellStore:
    """Played cells below a folder.

    Args:
        root: where the files are.
        sources: name -> source of verdicts.
        num_groups: groups a cell.
        seed: root seed of groups, verdicts and orders.
    """

    def __init__(
        self, root: Path, sources: Mapping[str, VerdictSource], num_groups: int, seed: int
    ) -> None:
        self.root = root
        self.num_groups = num_groups
        self.seed = seed
        self._sources = sources
        self._batch: tuple[tuple[str, int], VerdictBatch] | None = None
        root.mkdir(parents=True, exist_ok=True)

    def batch(self, source: str, size: int) -> VerdictBatch:
        """Return the verdicts of a source's groups; the last batch drawn is kept."""
        key = (source, size)
        if self._batch is None or self._batch[0] != key:
            drawn = self._sources[source].draw(size, self.num_groups, self.seed)
            self._batch = (key, drawn)
        return self._batch[1]

    def played(self, cell: Cell) -> Played:
        """Return what the cell played.

        Raises:
            RecordError: its file can't be read or written.
        """

        def play_it() -> Arrays:
            played = play_cell(cell, self.batch(cell.source, cell.size), self.seed)
            return {name: getattr(played, name) for name in Played.__slots__}

        return Played(**self._kept(cell.key, play_it))

    def metrics(self, cell: Cell) -> Arrays:
        """Return the fidelity of each group, float64 `[group]`, by metric.

        `tau` and its like are against round robin on the same verdicts; `full/tau` against round
        robin in both orders, where only one was shown; `truth/...` against the true order, where
        it is known.
        """

        def measure() -> Arrays:
            ranks = self.played(cell).ranks
            found = group_metrics(ranks, self.played(cell.target).ranks)
            if cell.presentation != "both":
                full = self.played(cell.full_target).ranks
                found |= _named("full", group_metrics(ranks, full))
            truth = self.batch(cell.source, cell.size).truth
            if truth is not None:
                found |= _named("truth", group_metrics(ranks, ranks_of_truth(truth)))
            return found

        return self._kept(f"{cell.key}.metrics", measure)

    def step_cosines(self, cell: Cell, groups_per_step: int) -> np.ndarray:
        """Return the cosine of whole steps of K groups to round robin's, float64 `[step]`."""
        target = self.played(cell.target).ranks
        return step_cosine(self.played(cell).ranks, target, groups_per_step)

    def ceiling(self, cell: Cell) -> Arrays | None:
        """Return round robin's agreement with itself on fresh verdicts about the same groups.

        No topology can be expected to agree better with round robin's truth than this. None where
        the source has no second opinion to give (a bank judged once).
        """
        retest = getattr(self._sources[cell.source], "retest", None)
        if retest is None:
            return None

        def measure() -> Arrays:
            batch = retest(cell.size, self.num_groups, self.seed)
            again = play_cell(cell.target, batch, self.seed).ranks
            return group_metrics(again, self.played(cell.target).ranks)

        return self._kept(f"{cell.target.key}.{RETEST}", measure)

    def _kept(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Return the arrays of a file, computed and written when it isn't there."""
        path = self.root / f"{name}.npz"
        if path.exists():
            try:
                with np.load(path) as arrays:
                    return {key: arrays[key] for key in arrays.files}
            except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
                raise RecordError(
                    f"a played cell must be a readable file, got {error} ({path}). Delete it: it "
                    "is played again."
                ) from error
        arrays = compute()
        partial = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            with partial.open("wb") as file:
                np.savez(file, **arrays)
            partial.replace(path)
        except OSError as error:
            raise RecordError(
                f"a played cell must be writable, got {error} ({path}). Free some space, or "
                "choose another --work folder."
            ) from error
        return arrays


def _named(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}/{name}": values for name, values in arrays.items()}
