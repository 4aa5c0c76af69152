"""The sweep: an Optuna study whose trials are cells of the grid, safe to kill and to share.

    SweepPlan -> Optuna study (journal file) -> workers -> cells/*.npz -> trial values

Every trial is a function of (plan, parameters), and what a cell played is kept in a file that is
written whole or not at all. So a killed sweep goes on where it was, with any number of workers, to
the same results; a trial that crashed is run once more and then reported. It draws no picture.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, get_args

from arena_lightning.analysis.cells import Cell
from arena_lightning.arena.ranking import RankingRule
from arena_lightning.arena.topology import TOPOLOGIES
from arena_lightning.errors import ConfigError, RecordError

STUDY = "topology_fidelity"
MAX_ATTEMPTS = 2
"""A crashed trial is run once more."""
LOCK_GRACE_S = 3
GRID_POINT = "grid_point"
"""User attribute of a trial: its parameters as JSON, known before it runs."""
PARAMETERS = (
    "source",
    "size",
    "groups_per_step",
    "topology",
    "presentation",
    "tie_margin",
    "ranking",
)


@dataclass(frozen=True)
class SweepPlan:
    """What is swept. Two plans that differ in anything have different folders."""

    sources: Mapping[str, Any]
    """Name -> settings of the source of verdicts, plain types: part of the plan's address."""
    sizes: tuple[int, ...] = (4, 8, 16, 32)
    groups_per_step: tuple[int, ...] = (1, 4, 16)
    topologies: tuple[str, ...] = tuple(TOPOLOGIES)
    presentations: tuple[str, ...] = ("both", "random")
    tie_margins: tuple[float, ...] = (0.0,)
    rankings: tuple[str, ...] = ("own",)
    num_groups: int = 1000
    """Groups a cell."""
    seed: int = 0
    objectives: tuple[str, ...] = field(default=("tau",))
    """("tau",), or ("tau", "calls") to search for the Pareto front instead of a full grid."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.topologies if name not in TOPOLOGIES]
        if unknown:
            raise ConfigError(
                f"topologies must be among {', '.join(TOPOLOGIES)}, got {', '.join(unknown)} "
                "(--topologies). Name those."
            )
        rules = ("own", *get_args(RankingRule))
        odd = [rule for rule in self.rankings if rule not in rules]
        if odd:
            raise ConfigError(
                f"ranking rules must be among {', '.join(rules)}, got {', '.join(odd)} "
                "(--rankings). Name those."
            )
        small = [size for size in self.sizes if not 2 <= size <= 256]
        if small or not self.sizes:
            raise ConfigError(
                f"group sizes must lie between 2 and 256, got {small or 'none'} (--sizes). A group "
                "of one has no ranking."
            )
        most = max(self.groups_per_step, default=0)
        if min(self.groups_per_step, default=0) < 1 or self.num_groups < 2 * most:
            raise ConfigError(
                "group counts K must be at least 1 and --groups at least twice the largest, got K "
                f"{list(self.groups_per_step)} and {self.num_groups} groups. Draw more groups."
            )
        for source in self.sources:
            if min(self.sizes) > self.largest(source):
                raise ConfigError(
                    f"each source must have groups of one of --sizes {list(self.sizes)}, but "
                    f"{source} has at most {self.largest(source)} contestants. Add that size."
                )
        for name in ("sources", "topologies", "presentations", "tie_margins", "rankings"):
            if not getattr(self, name):
                raise ConfigError(f"a sweep must have at least one of its {name}, got none.")

    @property
    def address(self) -> str:
        """A hash of the plan: the same plan finds its results again."""
        text = json.dumps(asdict(self), sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def largest(self, source: str) -> float:
        """Return the largest group that a source can give."""
        return self.sources[source].get("max_size", float("inf"))

    def grid(self) -> Iterator[dict[str, Any]]:
        """Yield the parameters of every trial; those that share a cell come together."""
        axes = product(
            self.sources,
            sorted(self.sizes, reverse=True),  # the long ones first: workers end together
            self.presentations,
            self.tie_margins,
            self.topologies,
            self.rankings,
            self.groups_per_step,
        )
        for source, size, presentation, tie_margin, topology, ranking, count in axes:
            if size > self.largest(source):
                continue
            yield {
                "source": source,
                "size": size,
                "groups_per_step": count,
                "topology": topology,
                "presentation": presentation,
                "tie_margin": tie_margin,
                "ranking": ranking,
            }


def cell_of(parameters: Mapping[str, Any]) -> Cell:
    """Return the cell of a trial's parameters."""
    return Cell(**{name: parameters[name] for name in PARAMETERS if name != "groups_per_step"})


def open_study(path: Path, plan: SweepPlan) -> Any:
    """Open (or make) the plan's Optuna study in a journal file.

    Raises:
        RecordError: the file isn't a study.
    """
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    directions = {"tau": "maximize", "calls": "minimize"}
    sampler = None
    if len(plan.objectives) > 1:
        sampler = optuna.samplers.NSGAIISampler(seed=plan.seed)
    # A process killed while it held the lock must not hold up the next one for long.
    lock = JournalFileSymlinkLock(str(path), grace_period=LOCK_GRACE_S)
    try:
        return optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(path), lock_obj=lock)),
            study_name=STUDY,
            directions=[directions[name] for name in plan.objectives],
            sampler=sampler,
            load_if_exists=True,
        )
    except (OSError, ValueError, KeyError) as error:
        raise RecordError(
            f"the Optuna journal must be a readable study, got {error} ({path}). Move the file "
            "away to start anew; played cells are kept."
        ) from error


def prepare_trials(study: Any, plan: SweepPlan) -> int:
    """Queue every grid point that has no result and no trial waiting; return how many are open.

    Trials that a dead process left running are failed first, and run once more.
    """
    from optuna.trial import TrialState

    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if not _is_alive(trial.user_attrs.get("process")):
            study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
    if len(plan.objectives) > 1:
        return 0
    settled, attempts = _ledger(study)
    opened = 0
    for parameters in plan.grid():
        key = json.dumps(parameters, sort_keys=True)
        if key in settled:
            opened += settled[key] == "open"
        elif attempts.get(key, 0) < MAX_ATTEMPTS:
            study.enqueue_trial(parameters, user_attrs={GRID_POINT: key})
            opened += 1
    return opened


def failures(study: Any, plan: SweepPlan) -> list[tuple[dict[str, Any], str]]:
    """Return the grid points that failed for good, each with its last error."""
    from optuna.trial import TrialState

    settled, _ = _ledger(study)
    errors = {
        trial.user_attrs.get(GRID_POINT): trial.user_attrs.get("error", "its process was killed")
        for trial in study.get_trials(deepcopy=False, states=(TrialState.FAIL,))
    }
    lost = []
    for parameters in plan.grid():
        key = json.dumps(parameters, sort_keys=True)
        if key not in settled and key in errors:
            lost.append((parameters, errors[key]))
    return lost


def _ledger(study: Any) -> tuple[dict[str, str], dict[str, int]]:
    """Return grid point -> "done" or "open", and grid point -> failed attempts."""
    from optuna.trial import TrialState

    settled: dict[str, str] = {}
    attempts: dict[str, int] = {}
    for trial in study.get_trials(deepcopy=False):
        key = trial.user_attrs.get(GRID_POINT, "")
        if trial.state == TrialState.COMPLETE:
            settled[key] = "done"
        elif trial.state in (TrialState.WAITING, TrialState.RUNNING):
            settled.setdefault(key, "open")
        else:
            attempts[key] = attempts.get(key, 0) + 1
    return settled, attempts


def _is_alive(process: str | None) -> bool:
    """Whether the process that took a trial still runs; its start time tells reused ids apart."""
    if not process:
        return False
    pid, _, started = process.partition(":")
    return process_stamp(int(pid)) == f"{pid}:{started}"


def process_stamp(pid: int) -> str:
    """Return "pid:start" of a live process, "" when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return "" if fields[0] == "Z" else f"{pid}:{fields[19]}"
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return ""
    return f"{pid}:0"
