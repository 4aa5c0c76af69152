"""The pages of the topology study: rows and findings into report blocks.

Everything shown comes from rows; `study_report.py` renders the blocks.
"""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from arena_lightning.analysis.bank import load_bank
from arena_lightning.analysis.cost import CallCost
from arena_lightning.analysis.findings import advise, fronts
from arena_lightning.analysis.fitting import load_fit
from arena_lightning.analysis.judging import dimension_agreement, reliability, report_judging
from arena_lightning.analysis.sources import describe
from arena_lightning.analysis.sweep import SweepPlan
from arena_lightning.analysis.sweep_table import Row, select
from arena_lightning.reporting.study_report import (
    Block,
    Bullets,
    Code,
    Heading,
    Paragraph,
    Picture,
    Table,
    show,
    table_of,
    with_interval,
)

CELL_COLUMNS = {
    "topology": "topology",
    "tau_text": "tau to round robin",
    "gain_text": "gain over seeded single elimination",
    "truth_text": "tau to the truth",
    "top1": "top 1",
    "advantage_cosine": "advantage cosine",
    "matches": "matches",
    "calls": "calls",
    "rounds": "rounds",
    "usd": "USD",
    "step_s": "s a step",
    "tau_undefined": "undefined",
    "failed_fraction": "failed",
}


def report_blocks(
    plan: SweepPlan,
    rows: Sequence[Row],
    pictures: Sequence[Picture],
    findings: Sequence[str],
    command: str,
    call: CallCost,
    settings: dict[str, Any],
) -> list[Block]:
    """Return the report: how it was made, findings, advice, pictures, fronts, all cells."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "optuna"))
    blocks: list[Block] = [
        Paragraph(
            f"{plan.num_groups} groups a cell, seed {plan.seed}; {packages}, Python "
            f"{platform.python_version()}. Fidelity is Kendall's tau-b to round robin on the same "
            "verdicts; intervals are 95% bootstrap intervals over groups; gains are paired by "
            f"group. A judge call is taken as {call.prompt_tokens:.0f} + "
            f"{call.completion_tokens:.0f} tokens."
        ),
        Code(command),
        Heading("Findings"),
        Bullets(tuple(findings)),
        Heading("Judges"),
        Bullets(tuple(describe(name, values) for name, values in settings.items())),
        Heading("Use this topology if ..."),
        _advice_table(plan, rows),
        *_bank_blocks(settings),
        *_fit_blocks(plan, rows, settings),
        Heading("Pictures"),
        *pictures,
        Heading("Pareto fronts"),
        _front_table(plan, rows),
        Heading("All cells, both presentation orders"),
    ]
    for source in plan.sources:
        for size in sorted(plan.sizes):
            here = [
                row
                | {
                    "tau_text": with_interval(row, "tau"),
                    "gain_text": with_interval(row, "tau_gain", sign=True),
                    "truth_text": with_interval(row, "truth/tau"),
                }
                for row in select(rows, source=source, size=size, presentation="both")
            ]
            if not here:
                continue
            here.sort(key=lambda row: -row["tau"] if row["tau"] == row["tau"] else 9.0)
            ceiling = with_interval(here[0], "ceiling")
            blocks += [
                Heading(f"{source}, N = {size}", 3),
                Paragraph(f"Round robin against itself on fresh verdicts: {ceiling}."),
                table_of(here, CELL_COLUMNS),
            ]
    return blocks


def _advice_table(plan: SweepPlan, rows: Sequence[Row]) -> Table:
    lines = []
    for source in plan.sources:
        for size in sorted(plan.sizes):
            for advice in advise(rows, source, size):
                gain = (
                    "-"
                    if advice.gain != advice.gain
                    else f"{advice.gain:+.3f} [{advice.gain_low:+.3f}, {advice.gain_high:+.3f}]"
                )
                lines.append(
                    (
                        source,
                        str(size),
                        advice.situation,
                        advice.topology,
                        f"{advice.tau:.3f} [{advice.low:.3f}, {advice.high:.3f}]",
                        gain,
                        show(advice.calls),
                        show(advice.rounds),
                    )
                )
    columns = (
        "judge",
        "N",
        "if you can spend",
        "use",
        "tau to round robin",
        "over seeded single elimination",
        "calls",
        "rounds",
    )
    return Table(columns, tuple(lines))


def _front_table(plan: SweepPlan, rows: Sequence[Row]) -> Table:
    lines = []
    for source in plan.sources:
        for size in sorted(plan.sizes):
            for cost, front in fronts(rows, source, size).items():
                lines.append((source, str(size), cost, " < ".join(front)))
    return Table(("judge", "N", "cost", "front, cheapest first"), tuple(lines))


RATES = {
    "tie_rate": "calls that are ties",
    "first_share": "decided calls won by the first shown",
    "inconsistent_rate": "pairs whose orders differ",
    "flip_rate": "pairs whose winner is reversed",
    "summed_tie_rate": "pairs tied over both orders",
    "cycle_rate": "triads that are cycles, both orders",
    "one_order_cycle_rate": "triads that are cycles, one order",
    "spread": "spread within groups, points",
    "noise": "noise of one score, points",
    "discrimination": "spread / noise",
}


def _bank_blocks(settings: dict[str, Any]) -> list[Block]:
    """Return how the judges of recorded banks judge."""
    banks = {
        name: load_bank(Path(values["path"]))
        for name, values in settings.items()
        if values["kind"] == "bank"
    }
    if not banks:
        return []
    reports = {name: report_judging(bank.batch()) for name, bank in banks.items()}
    lines = [
        (
            "groups x contestants",
            *(f"{len(b.groups)} x {b.groups[0].size}" for b in banks.values()),
        ),
        ("failed calls", *(f"{r.num_failed} of {r.num_calls}" for r in reports.values())),
        ("verdicts", *(bank.scale for bank in banks.values())),
    ]
    for rate, words in RATES.items():
        lines.append((words, *(show(float(getattr(r, rate))) for r in reports.values())))
    blocks: list[Block] = [
        Heading("How the recorded judges judge"),
        Table(("", *banks), tuple(lines)),
        Paragraph(
            "What more calls buy: tau between rankings by two halves of the calls, by calls a "
            "contestant."
        ),
    ]
    for name, bank in banks.items():
        bought = reliability(bank.batch())
        cells = tuple(f"{estimate.mean:.3f}" for estimate in bought.values())
        columns = ("calls a contestant", *(f"{calls:.1f}" for calls in bought))
        blocks.append(Table(columns, ((name, *cells),)))
        agreed = dimension_agreement(bank)
        if agreed:
            parts = ", ".join(f"{dimension} {share:.2f}" for dimension, share in agreed.items())
            blocks.append(
                Paragraph(f"{name}: each dimension alone names the verdict's winner in: {parts}.")
            )
    return blocks


def _fit_blocks(plan: SweepPlan, rows: Sequence[Row], settings: dict[str, Any]) -> list[Block]:
    """Return how well fitted judges fit, and what they foretell of banks they never saw."""
    fitted = [name for name, values in settings.items() if "fitted_to" in values]
    if not fitted:
        return []
    lines = []
    for name in fitted:
        fit = load_fit(name)
        lines += [
            (name, rate, show(seen), show(fit.standard_errors[rate]), show(fit.fitted[rate]))
            for rate, seen in fit.observed.items()
        ]
    columns = ("judge", "rate", "observed", "standard error", "fitted")
    blocks: list[Block] = [
        Heading("How well the fitted judges fit"),
        Table(columns, tuple(lines)),
    ]
    for bank in (name for name, values in settings.items() if values["kind"] == "bank"):
        size = max((n for n in plan.sizes if n <= plan.largest(bank)), default=0)
        for name in fitted:
            source = Path(settings[name]["fitted_to"])
            # A fit to round robins foretells other round robins, not those it was made from.
            if source.suffix != ".jsonl" or source.stem == Path(settings[bank]["path"]).stem:
                continue
            blocks += _foretold(rows, name, bank, size)
    return blocks


def _foretold(rows: Sequence[Row], judge: str, bank: str, size: int) -> list[Block]:
    """Return the table of a fitted judge's taus beside those of a bank kept apart."""
    seen = {
        row["topology"]: row
        for row in select(rows, source=bank, size=size)
        if row["presentation"] == "both" and row["ranking"] == "own"
    }
    told = {
        row["topology"]: row
        for row in select(rows, source=judge, size=size)
        if row["presentation"] == "both" and row["ranking"] == "own"
    }
    names = [name for name in seen if name in told and name != "round_robin"]
    if not names:
        return []
    misses = [told[name]["tau"] - seen[name]["tau"] for name in names]
    inside = sum(
        seen[name]["tau_low"] <= told[name]["tau"] <= seen[name]["tau_high"] for name in names
    )
    lines = tuple(
        (name, with_interval(seen[name], "tau"), with_interval(told[name], "tau")) for name in names
    )
    return [
        Heading(f"{judge} against {bank}, which it was not fitted to (N = {size})", 3),
        Paragraph(
            f"Mean difference of tau {sum(misses) / len(misses):+.3f}, largest "
            f"{max(misses, key=abs):+.3f}; {inside} of {len(names)} topologies are foretold within "
            "the bank's interval."
        ),
        Table(("topology", f"tau, {bank}", f"tau, {judge}"), lines),
    ]
