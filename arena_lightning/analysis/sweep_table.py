"""A finished sweep as tables: one row a cell, one a (cell, K), and paired differences.

Rows are plain dicts in the order of the plan's grid, made from the cells alone: the same plan gives
the same table, however many workers it took and however often they died. It draws nothing.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from arena_lightning.analysis.cell_store import CellStore
from arena_lightning.analysis.cells import Cell
from arena_lightning.analysis.cost import CallCost, Latency, wall_clock_s
from arena_lightning.analysis.fidelity import Estimate, paired_difference, summarise
from arena_lightning.analysis.sweep import SweepPlan, cell_of
from arena_lightning.analysis.verdict_batch import decider
from arena_lightning.arena.topology import play
from arena_lightning.errors import RecordError
from arena_lightning.rng import generator_for
from arena_lightning.types import Match, Pairing

BASELINE = "single_elimination"
"""What every topology is compared with: the paper's choice."""
Row = dict[str, Any]


def cells_of(plan: SweepPlan) -> list[Cell]:
    """Return the plan's cells, each once, in grid order."""
    return list(dict.fromkeys(cell_of(parameters) for parameters in plan.grid()))


def cell_rows(
    plan: SweepPlan,
    store: CellStore,
    call: CallCost,
    concurrency: int,
    latency: Latency,
    groups_per_step: int,
) -> list[Row]:
    """Return one row a cell: fidelity with intervals, the difference to seeded single elimination,
    and what a step of `groups_per_step` groups costs."""
    rows = []
    for cell in cells_of(plan):
        played = store.played(cell)
        row: Row = {
            "source": cell.source,
            "size": cell.size,
            "topology": cell.topology,
            "presentation": cell.presentation,
            "tie_margin": cell.tie_margin,
            "ranking": cell.ranking,
            "num_groups": len(played.ranks),
        }
        metrics = store.metrics(cell)
        for name, values in metrics.items():
            row |= _columns(name, summarise(values, plan.seed, clusters=played.clusters))
        baseline = Cell(cell.source, cell.size, BASELINE, cell.presentation, cell.tie_margin)
        if BASELINE in plan.topologies and "own" in plan.rankings:
            theirs = store.metrics(baseline)
            for name in ("tau", "advantage_cosine", "truth/tau", "full/tau"):
                if name in metrics:
                    gain = paired_difference(
                        metrics[name], theirs[name], plan.seed, played.clusters
                    )
                    row |= _columns(f"{name}_gain", gain)
        ceiling = store.ceiling(cell)
        if ceiling is not None:
            estimate = summarise(ceiling["tau"], plan.seed, clusters=played.clusters)
            row |= _columns("ceiling", estimate)
        calls = float(played.calls.mean())
        row |= {
            "matches": float(played.matches.mean()),
            "calls": calls,
            "rounds": float(played.rounds.mean()),
            "failed_fraction": float(played.failed.sum() / max(played.matches.sum(), 1)),
            "tokens": calls * call.tokens,
            "usd": calls * call.usd,
            "step_s": _step_seconds(cell, store, concurrency, latency, groups_per_step),
        }
        rows.append(row)
    return rows


def step_rows(plan: SweepPlan, store: CellStore) -> list[Row]:
    """Return one row a (cell, K): the cosine of a whole step's advantages to round robin's."""
    rows = []
    for parameters in plan.grid():
        cosines = store.step_cosines(cell_of(parameters), parameters["groups_per_step"])
        estimate = summarise(cosines, plan.seed, "sweep/steps")
        rows.append(
            dict(parameters)
            | _columns("step_cosine", estimate)
            | {"step_cosine_sd": float(np.nanstd(cosines)), "num_steps": len(cosines)}
        )
    return rows


def _columns(name: str, estimate: Estimate) -> Row:
    return {
        name: estimate.mean,
        f"{name}_low": estimate.low,
        f"{name}_high": estimate.high,
        f"{name}_undefined": estimate.num_undefined,
    }


def _step_seconds(
    cell: Cell, store: CellStore, concurrency: int, latency: Latency, groups_per_step: int
) -> float:
    """Return the wall-clock of a step of K groups.

    Their own verdicts say how many rounds and calls the first K groups take: both depend on them,
    in tournaments that end early, and where a rematch is not paid twice.
    """
    batch = store.batch(cell.source, cell.size)
    rng = generator_for(store.seed, "sweep/clock", cell.size)
    scores, opponents = batch.merged(cell.presentation, rng)
    sizes = []
    for group in range(min(groups_per_step, batch.num_groups)):
        decide = decider(scores[group], opponents[group], cell.tie_margin)
        sizes.append(_round_sizes(cell, rng.permutation(cell.size).tolist(), decide))
    per_match = 2 if cell.presentation == "both" else 1
    calls = [[per_match * count for count in rounds] for rounds in sizes]
    return wall_clock_s(calls, concurrency, latency, store.seed)


def _round_sizes(cell: Cell, order: Sequence[int], decide: Callable[[Pairing], Match]) -> list[int]:
    """Return the pairs that each round of one tournament asks about for the first time."""
    sizes: list[int] = []
    asked: set[frozenset[int]] = set()

    class Counting:
        def cost(self, size: int) -> Any:
            return topology.cost(size)

        def rounds(self, order: Sequence[int]) -> Any:
            inner = topology.rounds(order)
            try:
                pairings = next(inner)
                while True:
                    pairs = {frozenset(entry) for entry in pairings if type(entry) is Pairing}
                    sizes.append(len(pairs - asked))
                    asked.update(pairs)
                    pairings = inner.send((yield pairings))
            except StopIteration as stop:
                return stop.value

    topology = cell.build()
    play(Counting(), cell.size, decide, order)
    return sizes


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV, whole or not at all; columns are the union of the rows' keys.

    Raises:
        RecordError: the folder can't be written.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    partial = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text.getvalue(), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise RecordError(
            f"a table must be writable, got {error} ({path}). Choose another --out folder."
        ) from error


def _plain(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def select(rows: Sequence[Row], **values: Any) -> Iterator[Row]:
    """Yield the rows whose columns have these values."""
    for row in rows:
        if all(row.get(name) == value for name, value in values.items()):
            yield row
