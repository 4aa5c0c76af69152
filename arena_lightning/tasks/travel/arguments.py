"""Reads arguments of tool calls, whatever a model wrote there, or says what is wrong with them.

Problems are worded for the agent, which gets them as observations and can mend its call.
"""

import datetime
import difflib
import math
from collections.abc import Iterable
from typing import Any

from arena_lightning.tasks.travel.world import FORECAST_DAYS, TODAY


class ArgumentProblem(Exception):
    """A bad argument; the toolset makes its text the observation, so it never reaches a caller."""


def text_argument(argument: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ArgumentProblem(f"{argument} must be text, got {type(value).__name__}")
    text = shown(value) if isinstance(value, int) else str(value).strip()
    if not text:
        raise ArgumentProblem(f"{argument} must not be empty")
    return text


def list_argument(argument: str, value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [text_argument(argument, item) for item in value]
    return [part.strip() for part in text_argument(argument, value).split(";") if part.strip()]


def number_argument(argument: str, value: Any, low: float, high: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentProblem(f"{argument} must be a number, got {shown(value)}") from None
    except OverflowError:
        number = math.inf
    if isinstance(value, bool) or not low <= number <= high:
        raise ArgumentProblem(f"{argument} must lie in {low:g}-{high:g}, got {shown(value)}")
    return number


def date_argument(argument: str, value: Any) -> datetime.date:
    text = text_argument(argument, value)
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        raise ArgumentProblem(f"{argument} must be YYYY-MM-DD, got {text[:40]!r}") from None
    last = TODAY + datetime.timedelta(days=FORECAST_DAYS)
    if not TODAY <= day <= last:
        raise ArgumentProblem(f"{argument} must lie in {TODAY} to {last}, got {day}")
    return day


def shown(value: Any) -> str:
    """A value as an error may show it: short, on one line, whatever it is."""
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a huge number"
    text = value if isinstance(value, str) else repr(value) if _is_plain(value) else ""
    return " ".join(text.split())[:40] or type(value).__name__


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float)


def is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 2, 0.6)
    return f"; did you mean {' or '.join(close)}?" if close else ""
