"""The topology study from plan to page: sweep, tables, pictures, findings, report, W&B.

    options -> SweepPlan -> run_sweep -> rows -> figures + findings -> report.md, index.html, W&B

Called by `studies/topology_fidelity.py`. It prints where it is; it computes no fidelity itself.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arena_lightning.analysis.cost import CallCost, Latency, load_prices
from arena_lightning.analysis.findings import main_findings
from arena_lightning.analysis.sources import (
    build_sources,
    describe,
    effect_settings,
    source_settings,
)
from arena_lightning.analysis.sweep import SweepPlan
from arena_lightning.analysis.sweep_run import Sweep, run_sweep
from arena_lightning.analysis.sweep_table import Row, cell_rows, step_rows, write_rows
from arena_lightning.arena.topology import TOPOLOGIES
from arena_lightning.reporting import study_figures as figures
from arena_lightning.reporting.study_report import Picture, write_report
from arena_lightning.reporting.study_wandb import log_study, publish_report
from arena_lightning.reporting.topology_pages import report_blocks

TITLE = "Topology fidelity"
SIDE_GROUPS = 300
SIDE_TOPOLOGIES = (
    "round_robin",
    "anchor",
    "single_elimination",
    "double_elimination",
    "swiss",
    "random_graph_completed",
    "active_two_rounds",
)
EFFECT_SIZE = 16


def run_study(options: argparse.Namespace, command: str) -> None:
    """Run (or go on with) the study that `options` describes, and write its report.

    Raises:
        ConfigError, DataError, RecordError: bad options, banks or folders, before anything is
            played where it can be known by then.
    """
    settings = source_settings(options.judges, options.bank, options.noise)
    if options.list_judges:
        print("\n".join(describe(name, values) for name, values in settings.items()))
        return
    prompt_usd, completion_usd = load_prices(options.prices, options.price_model)
    call = CallCost(options.prompt_tokens, options.completion_tokens, prompt_usd, completion_usd)
    latency = Latency(*options.latency_s)
    plan = _plan(options, settings)
    build_sources(settings)  # unreadable banks are refused here
    started = time.monotonic()
    sweep = Sweep(plan, options.work / plan.address, build_sources)
    print(f"study {plan.address}: {len(settings)} judges, kept in {sweep.home}", flush=True)
    progress = _Progress("trials")
    run_sweep(sweep, options.workers, progress, options.pareto)
    progress.end()
    if options.pareto:
        _print_front(sweep)
        return
    store = sweep.store()
    rows = cell_rows(plan, store, call, options.concurrency, latency, options.step_groups)
    steps = step_rows(plan, store)
    if "random" not in plan.presentations:
        rows += _side_sweep(options, "one order", settings, _main_size(plan), ("random",))
    effects = _side_sweep(options, "effects", effect_settings(), EFFECT_SIZE, ("both", "random"))
    out: Path = options.out
    write_rows(out / "cells.csv", rows)
    write_rows(out / "steps.csv", steps)
    write_rows(out / "effects.csv", effects)
    findings = main_findings(rows, steps, _main_size(plan))
    pictures = _draw(plan, rows, steps, effects, out, options.step_groups)
    blocks = report_blocks(plan, rows, pictures, findings, command, call, settings)
    paths = write_report(out, TITLE, blocks)
    if options.wandb != "off" or options.publish:
        where = log_study(TITLE, plan, rows, steps, pictures, findings, options, sweep.home)
        print(where)
    if options.publish:
        print(publish_report(TITLE, blocks, options))
    tables = [out / name for name in ("cells.csv", "steps.csv", "effects.csv")]
    print(f"\nwrote in {time.monotonic() - started:.0f} s:")
    for path in (*paths, *tables, *(picture.path for picture in pictures)):
        print(f"  {path}")
    print(f"Optuna's storage: optuna-dashboard {sweep.journal}")
    print("\nmain findings (more in the report):")
    for number, finding in enumerate(findings[:3], 1):
        print(f"  {number}. {finding}")


def _plan(options: argparse.Namespace, settings: dict[str, Any]) -> SweepPlan:
    return SweepPlan(
        settings,
        tuple(options.sizes),
        tuple(options.groups_per_step),
        tuple(options.topologies or TOPOLOGIES),
        tuple(options.presentations),
        tuple(options.tie_margins),
        tuple(options.rankings),
        options.groups,
        options.seed,
        ("tau", "calls") if options.pareto else ("tau",),
    )


def _main_size(plan: SweepPlan) -> int:
    """Return the group size that the findings are about: the paper's 16, or the largest."""
    return 16 if 16 in plan.sizes else max(plan.sizes)


def _side_sweep(
    options: argparse.Namespace,
    what: str,
    settings: dict[str, Any],
    size: int,
    presentations: tuple[str, ...],
) -> list[Row]:
    """Sweep a few topologies at one group size, on at most `SIDE_GROUPS` groups."""
    able = {name: v for name, v in settings.items() if v.get("max_size", size) >= size}
    if not able:
        return []
    plan = SweepPlan(
        able,
        (size,),
        (1,),
        SIDE_TOPOLOGIES,
        presentations,
        num_groups=min(options.groups, SIDE_GROUPS),
        seed=options.seed,
    )
    sweep = Sweep(plan, options.work / plan.address, build_sources)
    progress = _Progress(what)
    run_sweep(sweep, options.workers, progress)
    progress.end()
    free = CallCost(0, 0, 0, 0)
    return cell_rows(plan, sweep.store(), free, options.concurrency, Latency(), 1)


def _draw(
    plan: SweepPlan,
    rows: Sequence[Row],
    steps: Sequence[Row],
    effects: Sequence[Row],
    out: Path,
    step_groups: int,
) -> list[Picture]:
    """Draw every picture that the rows allow."""
    folder = out / "figures"
    sources = list(plan.sources)
    pictures: list[Picture] = []

    def add(figure: Any, name: str, caption: str) -> None:
        pictures.append(Picture(figures.save(figure, folder / name), caption))

    if "both" in plan.presentations and "own" in plan.rankings:
        for source in sources:
            add(
                figures.fidelity_against_cost(rows, source, sorted(plan.sizes)),
                f"cost_{source}.png",
                f"{source}: tau to round robin against judge calls; bars are 95% intervals, the "
                "line is the Pareto front, dashes are round robin against itself on fresh verdicts",
            )
        add(
            figures.heat_map(rows, sources, "tau", "Kendall's tau-b to round robin"),
            "heat_tau.png",
            "tau to round robin for every topology and group size",
        )
        add(
            figures.critical_path(rows, sources[0], step_groups),
            "critical_path.png",
            "sequential rounds, and simulated wall-clock of a step under bounded concurrency",
        )
        if len(plan.groups_per_step) > 1:
            size = _main_size(plan)
            add(
                figures.step_curves(steps, sources, size),
                "groups_per_step.png",
                "what K buys: the spread of a step's direction, not its mean",
            )
    for kind, title, unit in (
        ("bias", "Position bias", "bonus for the first shown, points"),
        ("ties", "Ties", "tie grid, points"),
    ):
        levels = _levels(effects, kind)
        here = [row for row in effects if row["source"] in dict(levels)]
        add(
            figures.effect_curves(here, levels, f"{title}, N = {EFFECT_SIZE}", unit),
            f"effect_{kind}.png",
            f"{title}: tau to the truth, both orders and one",
        )
    return pictures


def _levels(effects: Sequence[Row], kind: str) -> list[tuple[str, float]]:
    names = dict.fromkeys(row["source"] for row in effects)
    found = [(name, float(name.split("=")[1])) for name in names if name.startswith(f"{kind}=")]
    return sorted(found, key=lambda item: item[1])


def _print_front(sweep: Sweep) -> None:
    """Print the trials that no other beats on fidelity and calls."""
    from arena_lightning.analysis.sweep import open_study

    study = open_study(sweep.journal, sweep.plan)
    best = sorted(study.best_trials, key=lambda trial: trial.values[1])
    print("Pareto front (tau to round robin, judge calls a group):")
    for trial in best:
        tau, calls = trial.values
        names = ", ".join(f"{key}={value}" for key, value in trial.params.items())
        print(f"  tau {tau:.3f}  calls {calls:7.1f}  {names}")
    print(f"Optuna's storage: optuna-dashboard {sweep.journal}")


class _Progress:
    """One line that is rewritten on a terminal, and a line a tenth elsewhere."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = time.monotonic()
        self._shown = -1
        self._live = sys.stdout.isatty()

    def __call__(self, done: int, total: int) -> None:
        step = done if self._live else 10 * done // max(total, 1)
        if step == self._shown:
            return
        self._shown = step
        seconds = time.monotonic() - self._started
        filled = 30 * done // max(total, 1)
        bar = "#" * filled + "." * (30 - filled)
        end = "\r" if self._live else "\n"
        print(f"{self._what} [{bar}] {done}/{total}  {seconds:.0f} s", end=end, flush=True)

    def end(self) -> None:
        if self._live:
            print()
