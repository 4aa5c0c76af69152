"""Facts in free text: numbers with units, clock times, weather figures, in English and Chinese.

The offline judge reads answers of any policy with it: it finds what is stated and where, tolerant
to bullets, tables, bold and currency signs. It doesn't know which statement is true.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple


class Fact(NamedTuple):
    """One stated figure. `value` is a number, or text such as "09:00-18:00" for clock spans."""

    kind: str
    """rating | eur | km | minutes | span | clock | celsius | percent"""
    value: float | str
    start: int
    end: int


_NUMBER = r"(?<![\d.])(\d{1,3}(?:,\d{3})+|\d{1,6}(?:\.\d{1,3})?)"
_CLOCK = r"([01]?\d|2[0-4]):([0-5]\d)"
_TO = r"\s*(?:-|–|—|~|to|until|至|到|→)\s*"
_CELSIUS = r"\s*°?\s*(?:C\b|℃|摄氏度|度)"
# Order matters: a stretch of text that one pattern took is closed to those after it.
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("span", _CLOCK + _TO + _CLOCK),
        ("clock", rf"(?<![\d:]){_CLOCK}(?![\d:])"),
        ("celsius", rf"(-?\d{{1,2}})\s*°?\s*C?{_TO}(-?\d{{1,2}}){_CELSIUS}"),
        ("celsius", rf"(-?\d{{1,2}}){_CELSIUS}"),
        ("percent", r"(\d{1,3})\s*(?:%|percent|％)"),
        (
            "hours",
            r"(\d{1,2})\s*(?:h|hours?|hrs?|小时)\s*(?:(\d{1,2})\s*(?:min\w*|m|分钟?)?)?(?![a-z])",
        ),
        ("minutes", rf"{_NUMBER}\s*-?\s*(?:minutes?|mins?|分钟)(?![a-z])"),
        ("km", rf"{_NUMBER}\s*(?:km|kilomet(?:er|re)s?|公里|千米)(?![a-z/])"),
        ("metres", rf"{_NUMBER}\s*(?:m|met(?:er|re)s?|米)(?![a-z/])"),
        ("eur", rf"{_NUMBER}\s*(?:EUR|euros?|€|欧元|元)(?![a-z])"),
        ("eur", rf"(?:EUR|€|欧元)\s*{_NUMBER}"),
        (
            "rating",
            r"(?:ratings?|rated|评分)(?:\s+(?:of|is|at))?[\s:：*|~]{0,4}(\d{1,2}(?:\.\d{1,2})?)",
        ),
        ("rating", r"[★⭐]\s*(\d(?:\.\d)?)"),
        ("rating", r"(\d(?:\.\d)?)\s*(?:stars?\b|★|⭐|/\s*5\b|分(?!钟))"),
        # The tools' own style: a bare rating between bars.
        ("rating", r"\|\s*([1-5]\.\d)\s*(?=\||$)"),
        ("free", r"\bfree\b|免费"),
    )
)
_FREE = _PATTERNS[-1][1]


@lru_cache(maxsize=1 << 14)
def facts_in(text: str) -> tuple[Fact, ...]:
    """Return the stated facts in order; a stretch of text is read as one kind only.

    Units: EUR, km, minutes, degrees Celsius, percent; "free" is 0 EUR, metres become km. Cached, as
    lines repeat within a group.
    """
    if not any(character.isdigit() for character in text) and not _FREE.search(text):
        return ()
    found: list[Fact] = []
    for kind, pattern in _PATTERNS:
        for match in tuple(pattern.finditer(text)):
            found.extend(_facts_from(kind, match))
            start, end = match.span()
            text = text[:start] + "#" * (end - start) + text[end:]
    return tuple(sorted(found, key=lambda fact: fact.start))


def _facts_from(kind: str, match: re.Match[str]) -> Iterator[Fact]:
    start, end = match.span()
    groups = match.groups()
    if kind == "span":
        yield Fact(kind, f"{_clock(*groups[:2])}-{_clock(*groups[2:])}", start, end)
    elif kind == "clock":
        yield Fact(kind, _clock(*groups), start, end)
    elif kind == "celsius":
        yield from (Fact(kind, float(degrees), start, end) for degrees in groups)
    elif kind == "hours":
        yield Fact("minutes", 60.0 * int(groups[0]) + float(groups[1] or 0), start, end)
    elif kind == "metres":
        yield Fact("km", _number(groups[0]) / 1000.0, start, end)
    elif kind == "free":
        yield Fact("eur", 0.0, start, end)
    else:
        yield Fact(kind, _number(groups[0]), start, end)


def _clock(hour: str, minute: str) -> str:
    return f"{int(hour):02d}:{minute}"


def _number(text: str) -> float:
    """Read "1,200" as 1200; a comma is never a decimal point (lists use it without a space)."""
    return float(text.replace(",", ""))
