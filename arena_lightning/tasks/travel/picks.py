"""The pick in an answer: which of the listed things it recommends, and whether the reason holds."""

import re
from collections.abc import Callable, Mapping

from arena_lightning.tasks.travel.case import Case
from arena_lightning.tasks.travel.names import num_words
from arena_lightning.tasks.travel.needs import RouteNeed
from arena_lightning.tasks.travel.reading import Line, Reading
from arena_lightning.tasks.travel.statements import Value

_HEDGE = re.compile(r"^\W*(?:or|and|/|,|或|和|与)\W*$", re.IGNORECASE)
_CLAIMS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(words, re.IGNORECASE)
    for name, words in {
        "best rated": r"(?:best|highest|top)[ -]rat|评分最高",
        "cheapest": r"cheapest|lowest price|least expensive|最便宜",
        "nearest": r"nearest|closest|最近",
        "fastest": r"fastest|quickest|shortest|最快|最短",
    }.items()
}


def picked(case: Case, reading: Reading) -> str | None:
    """Return the one thing picked, None when there is no pick, a hedge, or several that differ."""
    picks = {_picked_in(case, line) for line in reading.lines if line.pick_start >= 0}
    return picks.pop() if len(picks) == 1 else None


def pick_credit(
    case: Case, reading: Reading, table: Mapping[str, Mapping[str, set[Value]]]
) -> float:
    """Return 1 for a pick with a reason that holds, less without one, 0 for none or a false one."""
    choice = picked(case, reading)
    listed = _listed(case, reading, table)
    if choice is None or choice not in listed:
        return 0.0
    line = next(line for line in reading.lines if line.pick_start >= 0)
    claims = [name for name, words in _CLAIMS.items() if words.search(line.text)]
    for claim in claims:
        values = {name: _MEASURES[claim](case, name) for name in listed}
        known = {name: value for name, value in values.items() if value is not None}
        if choice in known and known[choice] > min(known.values()) + 1e-9:
            return 0.0
    has_reason = bool(claims) or num_words(line.text) - num_words(choice) >= 4
    choices = min(1.0, len(listed) / 2)
    return (1.0 if has_reason else 0.5) * (0.5 + 0.5 * choices)


def _picked_in(case: Case, line: Line) -> str | None:
    anchors = sorted([*line.name_starts, *(() if line.names else line.mode_starts)])
    after = [anchor for anchor in anchors if anchor[0] >= line.pick_start] or anchors
    if not after:
        return None
    if len(after) > 1 and after[0][1] != after[1][1]:
        end = after[0][0] + len(after[0][1])
        if _HEDGE.match(line.text[end : after[1][0]]):
            return None
    return after[0][1]


def _listed(
    case: Case, reading: Reading, table: Mapping[str, Mapping[str, set[Value]]]
) -> list[str]:
    names = dict.fromkeys(name for line in reading.lines for name in line.names)
    observed = [n for n in names if n in case.evidence.seen or n in case.evidence.options]
    modes = [mode for need in case.needs.of_type(RouteNeed) for mode in need.modes]
    spoken = {mode for line in reading.lines for _, mode in line.mode_starts}
    researched = {leg.mode for leg in case.evidence.legs}
    rides = {case.evidence.options[n].mode for n in observed if n in case.evidence.options}
    return observed + [m for m in modes if m in spoken & researched] + sorted(rides - set(modes))


def _rating(case: Case, name: str) -> float | None:
    return -case.places[name].rating if name in case.places else None


def _price(case: Case, name: str) -> float | None:
    if name in case.places:
        return float(case.places[name].price_eur)
    if name in case.evidence.options:
        return case.evidence.options[name].price_eur
    return _way(case, name, "eur")


def _nearness(case: Case, name: str) -> float | None:
    return min(case.evidence.distances.get(name, ()), default=None)


def _minutes(case: Case, name: str) -> float | None:
    return _way(case, name, "minutes")


def _way(case: Case, mode: str, figure: str) -> float | None:
    values = [getattr(leg, figure) for leg in case.evidence.legs if leg.mode == mode]
    return min((max(figures) for figures in values if figures), default=None)


_MEASURES: Mapping[str, Callable[[Case, str], float | None]] = {
    "best rated": _rating,
    "cheapest": _price,
    "nearest": _nearness,
    "fastest": _minutes,
}
