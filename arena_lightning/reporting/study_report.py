"""A report as blocks, rendered to Markdown beside its pictures and to one page with them inside.

    blocks (headings, paragraphs, tables, pictures) -> report.md + index.html

The same blocks go to W&B (`study_wandb.py`), so that what is published is what was seen at home.
"""

import base64
import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arena_lightning.errors import RecordError


@dataclass(frozen=True, slots=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Code:
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    path: Path
    caption: str


Block = Heading | Paragraph | Bullets | Code | Table | Picture


def table_of(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> Table:
    """Return a table of some columns, given as column -> heading; numbers are shortened."""
    shown = tuple(tuple(show(row.get(name)) for name in columns) for row in rows)
    return Table(tuple(columns.values()), shown)


def show(value: Any) -> str:
    """Return a value as a reader wants it: three decimals, "-" for what is undefined."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if value == int(value) and abs(value) >= 1 else f"{value:.3f}"
    return str(value)


def with_interval(row: Mapping[str, Any], name: str, sign: bool = False) -> str:
    """Return "mean [low, high]" of an estimate's columns."""
    if name not in row or math.isnan(row[name]):
        return "-"
    form = "+.3f" if sign else ".3f"
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{row[name]:{form}} [{low:{form}}, {high:{form}}]"


def to_markdown(title: str, blocks: Sequence[Block], folder: Path) -> str:
    """Return the report as Markdown; pictures are linked relative to `folder`."""
    parts = [f"# {title}"]
    for block in blocks:
        match block:
            case Heading(text, level):
                parts.append(f"{'#' * level} {text}")
            case Paragraph(text):
                parts.append(text)
            case Bullets(items):
                parts.append("\n".join(f"- {item}" for item in items))
            case Code(text):
                parts.append(f"```\n{text}\n```")
            case Table(columns, rows):
                lines = [columns, tuple("---" for _ in columns), *rows]
                cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
                parts.append("\n".join(f"| {' | '.join(line)} |" for line in cells))
            case Picture(path, caption):
                parts.append(f"![{caption}]({path.relative_to(folder).as_posix()})")
    return "\n\n".join(parts) + "\n"


_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}
th,td{padding:.2rem .6rem;border-bottom:1px solid #ddd;text-align:left;white-space:nowrap}
th{background:#f5f5f5}
img{max-width:100%}
figcaption{font-size:13px;color:#555}
pre{background:#f5f5f5;padding:.7rem;overflow-x:auto}
"""


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """Return the report as one page that needs no other file and no network."""
    parts = []
    for block in blocks:
        match block:
            case Heading(text, level):
                parts.append(f"<h{level}>{html.escape(text)}</h{level}>")
            case Paragraph(text):
                parts.append(f"<p>{html.escape(text)}</p>")
            case Bullets(items):
                inner = "".join(f"<li>{html.escape(item)}</li>" for item in items)
                parts.append(f"<ul>{inner}</ul>")
            case Code(text):
                parts.append(f"<pre>{html.escape(text)}</pre>")
            case Table(columns, rows):
                head = "".join(f"<th>{html.escape(cell)}</th>" for cell in columns)
                body = "".join(
                    "<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>"
                    for row in rows
                )
                parts.append(f"<table><tr>{head}</tr>{body}</table>")
            case Picture(path, caption):
                data = base64.b64encode(path.read_bytes()).decode()
                parts.append(
                    f'<figure><img alt="{html.escape(caption)}" src="data:image/png;base64,{data}">'
                    f"<figcaption>{html.escape(caption)}</figcaption></figure>"
                )
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    body = f"<h1>{html.escape(title)}</h1>" + "\n".join(parts)
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def write_report(folder: Path, title: str, blocks: Sequence[Block]) -> list[Path]:
    """Write `report.md` and `index.html`, each whole or not at all, and return their paths.

    Raises:
        RecordError: the folder can't be written.
    """
    texts = {
        folder / "report.md": to_markdown(title, blocks, folder),
        folder / "index.html": to_html(title, blocks),
    }
    for path, text in texts.items():
        partial = path.with_name(f".{path.name}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
        except OSError as error:
            raise RecordError(
                f"a report must be writable, got {error} ({path}). Choose another --out folder."
            ) from error
    return list(texts)
