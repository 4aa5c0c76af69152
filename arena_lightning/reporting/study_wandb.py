"""A study in W&B: tables and pictures as a run, a run a cell on request, a Report when published.

Without an account runs are kept offline, and `wandb sync` sends them later. The Report is built
from the same blocks as the local page.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from arena_lightning.analysis.sweep import SweepPlan
from arena_lightning.analysis.sweep_table import Row
from arena_lightning.errors import ConfigError
from arena_lightning.reporting.study_report import (
    Block,
    Bullets,
    Code,
    Heading,
    Paragraph,
    Picture,
    Table,
)

PROJECT = "arena_lightning"
CELL_KEYS = ("source", "size", "topology", "presentation", "tie_margin", "ranking")


def log_study(
    title: str,
    plan: SweepPlan,
    rows: Sequence[Row],
    steps: Sequence[Row],
    pictures: Sequence[Picture],
    findings: Sequence[str],
    options: argparse.Namespace,
    home: Path,
) -> str:
    """Log a study as a W&B run (and a run a cell), and say where it is.

    Raises:
        ConfigError: online was asked for and nobody is logged in.
    """
    import wandb

    online = options.publish or options.wandb == "online"
    _require_login(online)
    settings = wandb.Settings(silent=True, console="off")
    common: dict[str, Any] = {
        "project": PROJECT,
        "mode": "online" if online else "offline",
        "dir": str(home),
        "group": f"{title} {plan.address}",
        "settings": settings,
    }
    home.mkdir(parents=True, exist_ok=True)
    run = wandb.init(
        name=f"{title} {plan.address}", job_type="study", config=_config(plan), **common
    )
    run.log(
        {"cells": _table(wandb, rows), "steps": _table(wandb, steps)}
        | {
            picture.path.stem: wandb.Image(str(picture.path), caption=picture.caption)
            for picture in pictures
        }
    )
    run.summary["findings"] = "\n".join(findings)
    run.finish()
    if options.wandb_cells or options.publish:
        for row in rows:
            named = {key: row[key] for key in CELL_KEYS}
            cell = wandb.init(
                name=" ".join(str(value) for value in named.values()),
                job_type="cell",
                config=named | {"seed": plan.seed, "num_groups": plan.num_groups},
                **common,
            )
            cell.log({key: value for key, value in row.items() if key not in CELL_KEYS})
            cell.finish()
    if online:
        return f"W&B: {run.url or PROJECT}"
    return f"W&B, kept offline: wandb sync {home / 'wandb'}/offline-run-*"


def _require_login(online: bool) -> None:
    import wandb

    if online and not wandb.login(anonymous="never", relogin=False, force=False, verify=False):
        raise ConfigError(
            "W&B must know who you are to go online, got nobody logged in (--wandb, --publish). "
            "Run `wandb login`, or use --wandb offline."
        )


def _config(plan: SweepPlan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in plan.__dataclass_fields__}


def _table(wandb: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return wandb.Table(columns=columns, data=[[row.get(name) for name in columns] for row in rows])


def report_body(wr: Any, blocks: Sequence[Block]) -> list[Any]:
    """Return W&B Report blocks of the local report's; pictures become the panels of the run."""
    body: list[Any] = []
    for block in blocks:
        match block:
            case Heading(text, level):
                body.append((wr.H2 if level == 2 else wr.H3)(text=text))
            case Paragraph(text):
                body.append(wr.P(text=text))
            case Bullets(items):
                body.append(wr.UnorderedList(items=list(items)))
            case Code(text):
                body.append(wr.CodeBlock(code=text, language="bash"))
            case Table(columns, rows):
                lines = [columns, tuple("---" for _ in columns), *rows]
                body.append(
                    wr.MarkdownBlock(text="\n".join(f"| {' | '.join(line)} |" for line in lines))
                )
            case Picture(path, caption):
                body.append(wr.P(text=f"{caption} (panel {path.stem})"))
    return body


def publish_report(title: str, blocks: Sequence[Block], options: argparse.Namespace) -> str:
    """Save a W&B Report and return where it is.

    Raises:
        ConfigError: `wandb-workspaces` isn't installed, or nobody is logged in.
    """
    _require_login(True)
    try:
        import wandb_workspaces.reports.v2 as wr
    except ImportError as error:
        raise ConfigError(
            f"--publish needs wandb-workspaces, got {error}. Install the extra: "
            'pip install "arena_lightning[reports]".'
        ) from error
    panels = wr.PanelGrid(
        runsets=[wr.Runset(project=PROJECT, name="cells")],
        panels=[
            wr.ScatterPlot(x="calls", y="tau", title="Fidelity against judge calls"),
            wr.ScatterPlot(x="rounds", y="tau", title="Fidelity against depth"),
            wr.BarPlot(metrics=["tau"], groupby="topology", title="tau by topology"),
            wr.MediaBrowser(media_keys=["heat_tau", "critical_path", "groups_per_step"]),
        ],
    )
    report = wr.Report(
        project=PROJECT, title=title, blocks=[wr.H1(text=title), panels, *report_body(wr, blocks)]
    )
    report.save()
    return f"W&B Report: {report.url}"
