"""What a study's rows say, in words: which topology to use when, and the three main findings.

Every sentence is computed from rows (`sweep_table.py`): a study with other judges says other
things. A difference counts only when its paired interval leaves out zero.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from arena_lightning.analysis.cost import pareto_front
from arena_lightning.analysis.sweep_table import BASELINE, Row, select

ROUND_ROBIN = "round_robin"


@dataclass(frozen=True, slots=True)
class Advice:
    """Use `topology` with this judge and group size, when this is what you can spend."""

    source: str
    size: int
    situation: str
    topology: str
    tau: float
    low: float
    high: float
    calls: float
    rounds: float
    gain: float
    """Paired difference of tau to seeded single elimination; NaN where that was not played."""
    gain_low: float
    gain_high: float


def advise(rows: Sequence[Row], source: str, size: int) -> list[Advice]:
    """Return the best topology of each budget for a judge and a group size.

    Situations: at most as many matches as seeded single elimination (2N-2); at most N matches; at
    most two rounds (latency decides); at most half the matches of a round robin.
    """
    here = [
        row
        for row in select(rows, source=source, size=size, presentation="both", ranking="own")
        if row["topology"] != ROUND_ROBIN and not math.isnan(row["tau"])
    ]
    budget = 2 * size - 2
    situations = (
        (f"at most 2N-2 = {budget} matches", lambda row: row["matches"] <= budget + 1e-9),
        (f"at most N = {size} matches", lambda row: row["matches"] <= size + 1e-9),
        (
            "at most 2 rounds, 2N-2 matches",
            lambda row: row["rounds"] <= 2 and row["matches"] <= budget + 1e-9,
        ),
        (
            "at most half a round robin's matches",
            lambda row: row["matches"] <= size * (size - 1) / 4 + 1e-9,
        ),
    )
    advice = []
    for situation, fits in situations:
        fitting = [row for row in here if fits(row)]
        if fitting:
            best = max(fitting, key=lambda row: (row["tau"], -row["calls"], -row["rounds"]))
            advice.append(_advice(best, situation))
    return advice


def _advice(row: Row, situation: str) -> Advice:
    nan = float("nan")
    return Advice(
        row["source"],
        row["size"],
        situation,
        row["topology"],
        row["tau"],
        row["tau_low"],
        row["tau_high"],
        row["calls"],
        row["rounds"],
        row.get("tau_gain", nan),
        row.get("tau_gain_low", nan),
        row.get("tau_gain_high", nan),
    )


def main_findings(rows: Sequence[Row], step_rows: Sequence[Row], size: int) -> list[str]:
    """Return up to four sentences: best at equal cost, depth, one order, what K buys."""
    sources = list(dict.fromkeys(row["source"] for row in rows))
    findings = [_at_equal_cost(rows, sources, size), _on_depth(rows, sources, size)]
    findings.append(_on_orders(rows, sources, size))
    findings.append(_on_groups(step_rows, sources, size))
    return [finding for finding in findings if finding]


def _at_equal_cost(rows: Sequence[Row], sources: Sequence[str], size: int) -> str:
    parts = []
    for source in sources:
        best = next(
            (a for a in advise(rows, source, size) if a.situation.startswith("at most 2N-2")), None
        )
        if best is None:
            continue
        if best.topology == BASELINE:
            parts.append(f"{source}: nothing beats seeded single elimination ({best.tau:.3f})")
        elif math.isnan(best.gain):
            parts.append(f"{source}: {best.topology} leads ({best.tau:.3f})")
        else:
            clear = "" if best.gain_low > 0 else ", not clear of zero"
            parts.append(
                f"{source}: {best.topology} {best.tau:.3f}, {best.gain:+.3f} "
                f"[{best.gain_low:+.3f}, {best.gain_high:+.3f}] over seeded single "
                f"elimination{clear}"
            )
    if not parts:
        return ""
    return f"At N={size} and no more than 2N-2 matches, tau to round robin: {'; '.join(parts)}."


def _on_depth(rows: Sequence[Row], sources: Sequence[str], size: int) -> str:
    parts = []
    for source in sources:
        found = {a.situation.split(",")[0]: a for a in advise(rows, source, size)}
        best = next((a for name, a in found.items() if name.startswith("at most 2N-2")), None)
        shallow = found.get("at most 2 rounds")
        if best is None or shallow is None:
            continue
        parts.append(
            f"{source}: {shallow.topology} gives {shallow.tau:.3f} in {shallow.rounds:.0f} "
            f"round{'s' if shallow.rounds > 1 else ''}, {best.topology} {best.tau:.3f} in "
            f"{best.rounds:.0f}"
        )
    return f"Depth at N={size}: {'; '.join(parts)}." if parts else ""


def _on_orders(rows: Sequence[Row], sources: Sequence[str], size: int) -> str:
    parts = []
    for source in sources:
        both = {
            r["topology"]: r
            for r in select(rows, source=source, size=size, ranking="own")
            if r["presentation"] == "both"
        }
        one = {
            r["topology"]: r
            for r in select(rows, source=source, size=size, ranking="own")
            if r["presentation"] == "random"
        }
        shared = [name for name in both if name in one and name != ROUND_ROBIN]
        if BASELINE not in shared:
            continue
        drop = both[BASELINE]["tau"] - one[BASELINE].get("full/tau", float("nan"))
        parts.append(f"{source} {drop:+.3f}")
    if not parts:
        return ""
    return (
        f"Showing each pair in one random order halves the calls and costs seeded single "
        f"elimination this much tau to the round robin of both orders (N={size}): "
        f"{', '.join(parts)}."
    )


def _on_groups(step_rows: Sequence[Row], sources: Sequence[str], size: int) -> str:
    parts = []
    for source in sources:
        here = sorted(
            select(
                step_rows,
                source=source,
                size=size,
                topology=BASELINE,
                presentation="both",
                ranking="own",
            ),
            key=lambda row: row["groups_per_step"],
        )
        if len(here) < 2:
            continue
        few, many = here[0], here[-1]
        parts.append(
            f"{source}: sd {few['step_cosine_sd']:.3f} at K={few['groups_per_step']}, "
            f"{many['step_cosine_sd']:.3f} at K={many['groups_per_step']}, around "
            f"{many['step_cosine']:.3f}"
        )
    if not parts:
        return ""
    return (
        "More groups a step steady the gradient's direction but don't turn it: cosine of a step's "
        f"advantages to round robin's under seeded single elimination (N={size}): "
        f"{'; '.join(parts)}."
    )


def fronts(rows: Sequence[Row], source: str, size: int) -> dict[str, list[str]]:
    """Return the Pareto front of fidelity against each cost, cheapest first."""
    here = list(select(rows, source=source, size=size, presentation="both", ranking="own"))
    return {
        cost: pareto_front({row["topology"]: (row[cost], row["tau"]) for row in here})
        for cost in ("calls", "rounds", "usd", "step_s")
    }
