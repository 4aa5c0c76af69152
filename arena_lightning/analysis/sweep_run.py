"""Running a sweep: workers that take trials until none is left, watched by the process in front.

    SweepPlan + sources -> run_sweep -> an Optuna study and a CellStore, complete

With one worker everything runs in this process. Workers are fresh processes that rebuild the
sources from the plan, so nothing but the plan, the journal and the cells is shared.
"""

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from arena_lightning.analysis.cell_store import CellStore
from arena_lightning.analysis.sweep import (
    GRID_POINT,
    SweepPlan,
    cell_of,
    failures,
    open_study,
    prepare_trials,
    process_stamp,
)
from arena_lightning.analysis.verdict_batch import VerdictSource
from arena_lightning.errors import ArenaLightningError, RecordError

BuildSources = Callable[[Mapping[str, Any]], Mapping[str, VerdictSource]]
"""Plan's settings of the sources -> the sources; importable, since workers call it."""
POLL_S = 0.2
SHOWN_METRICS = (
    "tau",
    "truth/tau",
    "top1",
    "advantage_cosine",
    "step_cosine",
    "step_cosine_sd",
    "calls",
    "rounds",
)
"""What a trial shows in Optuna's dashboard; the tables have all of it."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep's places: its plan, study and cells."""

    plan: SweepPlan
    home: Path
    build_sources: BuildSources

    @property
    def journal(self) -> Path:
        return self.home / "optuna.journal"

    def store(self) -> CellStore:
        sources = self.build_sources(self.plan.sources)
        return CellStore(self.home / "cells", sources, self.plan.num_groups, self.plan.seed)


def run_sweep(
    sweep: Sweep, num_workers: int, progress: Callable[[int, int], None], num_trials: int = 0
) -> None:
    """Bring a sweep to its end, from wherever it is.

    Args:
        sweep: what and where.
        num_workers: processes; 1 is this one.
        progress: called with (trials done, trials in all).
        num_trials: trials of a search for the Pareto front; unused for a grid.

    Raises:
        RecordError: trials crashed twice; the message names the first, and what it raised.
    """
    sweep.home.mkdir(parents=True, exist_ok=True)
    study = open_study(sweep.journal, sweep.plan)
    total = num_trials if len(sweep.plan.objectives) > 1 else sum(1 for _ in sweep.plan.grid())
    while True:
        left = prepare_trials(study, sweep.plan)
        if len(sweep.plan.objectives) > 1:
            left = max(0, total - _num_complete(study))
        progress(_num_complete(study), total)
        if not left:
            break
        if num_workers == 1:
            stamp = process_stamp(os.getpid())
            work(sweep, total, stamp, lambda: progress(_num_complete(study), total))
        else:
            _watch(sweep, min(num_workers, left), total, study, progress)
    lost = failures(study, sweep.plan)
    if lost:
        parameters, error = lost[0]
        raise RecordError(
            f"every trial of a sweep must end, but {len(lost)} crashed twice; the first: "
            f"{parameters}: {error} ({sweep.journal}). Mend the cause and start again: what is "
            "done is kept."
        )


def _watch(
    sweep: Sweep, count: int, total: int, study: Any, progress: Callable[[int, int], None]
) -> None:
    """Run workers until all have ended, however they ended."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_worker, args=(sweep, total)) for _ in range(count)]
    for worker in workers:
        worker.start()
    try:
        while any(worker.is_alive() for worker in workers):
            progress(_num_complete(study), total)
            time.sleep(POLL_S)
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
            worker.join()


def _worker(sweep: Sweep, total: int) -> None:
    # Ctrl-C goes to the whole terminal; the process in front ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work(sweep, total, process_stamp(os.getpid()), lambda: None)


def work(sweep: Sweep, total: int, stamp: str, on_done: Callable[[], None]) -> None:
    """Take trials until none waits (grid) or `total` are complete (search)."""
    from optuna.trial import TrialState

    study = open_study(sweep.journal, sweep.plan)
    store = sweep.store()
    is_grid = len(sweep.plan.objectives) == 1
    while True:
        if is_grid and not study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
            return
        if not is_grid and _num_complete(study) >= total:
            return
        trial = study.ask()
        trial.set_user_attr("process", stamp)
        if is_grid and GRID_POINT not in trial.user_attrs:
            # Another worker took the last one between our look and our grasp.
            study.tell(trial, state=TrialState.PRUNED)
            return
        try:
            values = _objective(trial, sweep.plan, store)
        except ArenaLightningError as error:
            _fail(study, trial, str(error))
        except Exception:
            _fail(study, trial, traceback.format_exc(limit=-3))
        else:
            study.tell(trial, values)
        on_done()


def _fail(study: Any, trial: Any, error: str) -> None:
    from optuna.trial import TrialState

    trial.set_user_attr("error", error)
    study.tell(trial, state=TrialState.FAIL)


def _objective(trial: Any, plan: SweepPlan, store: CellStore) -> list[float]:
    """Play a trial's cell and return the plan's objectives."""
    parameters = {
        "source": trial.suggest_categorical("source", list(plan.sources)),
        "size": trial.suggest_categorical("size", list(plan.sizes)),
        "groups_per_step": trial.suggest_categorical("groups_per_step", list(plan.groups_per_step)),
        "topology": trial.suggest_categorical("topology", list(plan.topologies)),
        "presentation": trial.suggest_categorical("presentation", list(plan.presentations)),
        "tie_margin": trial.suggest_categorical("tie_margin", list(plan.tie_margins)),
        "ranking": trial.suggest_categorical("ranking", list(plan.rankings)),
    }
    cell = cell_of(parameters)
    played = store.played(cell)
    means = {name: _nan_mean(values) for name, values in store.metrics(cell).items()}
    cosines = store.step_cosines(cell, parameters["groups_per_step"])
    means |= {
        "step_cosine": _nan_mean(cosines),
        "step_cosine_sd": float(np.nanstd(cosines)),
        "matches": float(played.matches.mean()),
        "calls": float(played.calls.mean()),
        "rounds": float(played.rounds.mean()),
        "failed_fraction": float(played.failed.sum() / played.matches.sum()),
    }
    for name in SHOWN_METRICS:
        if name in means:
            trial.set_user_attr(name, means[name])
    # Optuna can't hold a NaN: a topology that told nobody apart stands last there. The tables, made
    # from the cells, show it as undefined.
    return [-1.0 if np.isnan(means[name]) else means[name] for name in plan.objectives]


def _nan_mean(values: np.ndarray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


def _num_complete(study: Any) -> int:
    from optuna.trial import TrialState

    return len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))
