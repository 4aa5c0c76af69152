"""Pictures of a topology study, from its rows: fidelity against cost, heat maps, depth, K, effects.

Each function takes rows (`analysis/sweep_table.py`) and returns a Matplotlib figure; `save` writes
it. Colours belong to topologies, the same in every picture. Nothing is computed but positions.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from arena_lightning.analysis.cost import pareto_front
from arena_lightning.analysis.sweep_table import Row, select
from arena_lightning.arena.topology import TOPOLOGIES
from arena_lightning.errors import RecordError

matplotlib.use("Agg")

PAPERS = ("round_robin", "anchor", "single_elimination", "double_elimination", "swiss")
DPI = 110


def colour_of(topology: str) -> Any:
    """Return a topology's colour; the paper's five have the strong ones."""
    if topology in PAPERS:
        return matplotlib.colormaps["tab10"](PAPERS.index(topology))
    others = [name for name in TOPOLOGIES if name not in PAPERS]
    place = others.index(topology) if topology in others else len(others)
    return matplotlib.colormaps["tab20b"](place % 20)


def marker_of(topology: str) -> str:
    return "o" if topology in PAPERS else "^"


def fidelity_against_cost(rows: Sequence[Row], source: str, sizes: Sequence[int]) -> Figure:
    """Draw tau to round robin against judge calls, one panel a group size, with the Pareto front.

    Bars are 95% bootstrap intervals over groups; the dashed line is round robin's agreement with
    itself on fresh verdicts.
    """
    sizes = [size for size in sizes if any(select(rows, source=source, size=size))]
    columns = min(2, len(sizes))
    lines = -(-len(sizes) // columns)
    figure = Figure(figsize=(6.4 * columns, 4.4 * lines + 1.2), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis in axes[len(sizes) :]:
        axis.set_visible(False)
    axes = axes[: len(sizes)]
    for axis, size in zip(axes, sizes, strict=True):
        here = list(select(rows, source=source, size=size, presentation="both", ranking="own"))
        for row in here:
            low, high = row["tau"] - row["tau_low"], row["tau_high"] - row["tau"]
            axis.errorbar(
                row["calls"],
                row["tau"],
                yerr=[[max(low, 0)], [max(high, 0)]],
                color=colour_of(row["topology"]),
                marker=marker_of(row["topology"]),
                capsize=2,
                linestyle="",
                label=row["topology"],
            )
        front = pareto_front({row["topology"]: (row["calls"], row["tau"]) for row in here})
        points = {row["topology"]: row for row in here}
        axis.plot(
            [points[name]["calls"] for name in front],
            [points[name]["tau"] for name in front],
            color="0.6",
            linewidth=1,
            zorder=0,
        )
        ceilings = [row["ceiling"] for row in here if not np.isnan(row.get("ceiling", np.nan))]
        if ceilings:
            axis.axhline(ceilings[0], color="0.4", linestyle="--", linewidth=1)
        axis.set_xscale("log")
        _plain_ticks(axis.xaxis)
        axis.set_title(f"N = {size}")
        axis.set_xlabel("judge calls a group (both orders)")
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("Kendall's tau-b to round robin")
    handles, labels = axes[-1].get_legend_handles_labels()
    fitting = 3 if columns == 1 else 5
    figure.legend(
        handles, labels, loc="outside lower center", ncols=fitting, fontsize=8, frameon=False
    )
    figure.suptitle(f"Fidelity against cost: {source}")
    return figure


def heat_map(rows: Sequence[Row], sources: Sequence[str], value: str, title: str) -> Figure:
    """Draw a value for every topology and group size, one panel a source of verdicts."""
    columns = min(3, len(sources))
    lines = -(-len(sources) // columns)
    figure = Figure(figsize=(4.4 * columns + 2.2, 7.0 * lines + 0.6), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    for axis in axes[len(sources) :]:
        axis.set_visible(False)
    axes = axes[: len(sources)]
    topologies = list(dict.fromkeys(row["topology"] for row in rows))
    sizes = sorted({row["size"] for row in rows})
    spread = [row[value] for row in rows if not np.isnan(row.get(value, np.nan))] or [0.0, 1.0]
    for axis, source in zip(axes, sources, strict=True):
        grid = np.full((len(topologies), len(sizes)), np.nan)
        for row in select(rows, source=source, presentation="both", ranking="own"):
            grid[topologies.index(row["topology"]), sizes.index(row["size"])] = row[value]
        image = axis.imshow(grid, aspect="auto", vmin=min(spread), vmax=max(spread), cmap="viridis")
        middle = (min(spread) + max(spread)) / 2
        for (y, x), number in np.ndenumerate(grid):
            colour = "black" if number > middle else "white"
            text = "-" if np.isnan(number) else f"{number:.2f}"
            axis.text(x, y, text, ha="center", va="center", color=colour, fontsize=8)
        axis.set_xticks(range(len(sizes)), [f"N={size}" for size in sizes])
        axis.set_yticks(range(len(topologies)), topologies)
        axis.set_title(source)
    figure.colorbar(image, ax=list(axes), shrink=0.6)
    figure.suptitle(title)
    return figure


def critical_path(rows: Sequence[Row], source: str, groups_per_step: int) -> Figure:
    """Draw sequential rounds, and the wall-clock of a step, against group size."""
    figure = Figure(figsize=(12, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    topologies = list(dict.fromkeys(row["topology"] for row in rows))
    for topology in topologies:
        here = sorted(
            select(rows, source=source, topology=topology, presentation="both", ranking="own"),
            key=lambda row: row["size"],
        )
        sizes = [row["size"] for row in here]
        style = {"color": colour_of(topology), "marker": marker_of(topology), "label": topology}
        left.plot(sizes, [row["rounds"] for row in here], **style)
        right.plot(sizes, [row["step_s"] for row in here], **style)
    for axis, name in ((left, "sequential rounds"), (right, "seconds a step")):
        axis.set_xlabel("group size N")
        axis.set_ylabel(name)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter(ScalarFormatter())
        axis.set_yscale("log")
        _plain_ticks(axis.yaxis)
        axis.grid(alpha=0.25)
    left.set_title("Critical path")
    right.set_title(f"Simulated wall-clock, {groups_per_step} groups a step")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    return figure


def step_curves(rows: Sequence[Row], sources: Sequence[str], size: int) -> Figure:
    """Draw what K buys: the cosine of a whole step's advantages to round robin's, mean and sd.

    A source without groups of `size` is shown at the largest size below that it has.
    """
    columns = min(3, len(sources))
    lines = -(-len(sources) // columns)
    figure = Figure(figsize=(5.0 * columns, 4.2 * lines), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False, sharey=True)
    axes = grid.ravel()
    for axis in axes[len(sources) :]:
        axis.set_visible(False)
    most = size
    for axis, source in zip(axes, sources, strict=False):
        known = {int(row["size"]) for row in select(rows, source=source)}
        size = max((one for one in known if one <= most), default=min(known, default=most))
        for topology in PAPERS:
            here = sorted(
                select(rows, source=source, topology=topology, size=size, presentation="both"),
                key=lambda row: row["groups_per_step"],
            )
            if not here:
                continue
            counts = np.array([row["groups_per_step"] for row in here], dtype=float)
            means = np.array([row["step_cosine"] for row in here])
            spreads = np.array([row["step_cosine_sd"] for row in here])
            colour = colour_of(topology)
            axis.plot(counts, means, marker="o", color=colour, label=topology)
            axis.fill_between(counts, means - spreads, means + spreads, color=colour, alpha=0.12)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter(ScalarFormatter())
        axis.set_title(f"{source}, N = {size}")
        axis.set_xlabel("groups a step K")
        axis.grid(alpha=0.25)
    for line in grid:
        line[0].set_ylabel("cosine to round robin's (band: sd)")
    axes[0].legend(fontsize=8, frameon=False)
    return figure


def effect_curves(
    rows: Sequence[Row], levels: Sequence[tuple[str, float]], title: str, xlabel: str
) -> Figure:
    """Draw tau to the truth against a fault of the judge, in both orders and in one.

    Args:
        rows: of sources that differ in that fault alone.
        levels: (source, strength of the fault), weakest first.
        title: what is shown.
        xlabel: the fault and its unit.
    """
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    topologies = list(dict.fromkeys(row["topology"] for row in rows))
    for axis, presentation in zip(axes, ("both", "random"), strict=True):
        for topology in topologies:
            here = [
                row
                for source, _ in levels
                for row in select(rows, source=source, topology=topology, presentation=presentation)
            ]
            axis.errorbar(
                [level for _, level in levels],
                [row["truth/tau"] for row in here],
                yerr=[
                    [max(row["truth/tau"] - row["truth/tau_low"], 0) for row in here],
                    [max(row["truth/tau_high"] - row["truth/tau"], 0) for row in here],
                ],
                color=colour_of(topology),
                marker=marker_of(topology),
                capsize=2,
                label=topology,
            )
        axis.set_title("both orders" if presentation == "both" else "one random order")
        axis.set_xlabel(xlabel)
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("Kendall's tau-b to the true order")
    axes[1].legend(fontsize=8, frameon=False)
    figure.suptitle(title)
    return figure


def _plain_ticks(axis: Axis) -> None:
    """Label a logarithmic axis at 1, 2 and 5 with plain numbers."""
    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ScalarFormatter())
    axis.set_minor_formatter(NullFormatter())


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG, whole or not at all.

    Raises:
        RecordError: the folder can't be written.
    """
    partial = path.with_name(f".{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(partial, dpi=DPI, format="png", metadata={"Software": None})
        partial.replace(path)
    except OSError as error:
        raise RecordError(
            f"a picture must be writable, got {error} ({path}). Choose another --out folder."
        ) from error
    return path
