"""What an answer states about each thing, held against what is true and was observed.

A kind of fact about a thing is right when every value stated for it is allowed, and wrong when any
is not: listing several values in the hope that one fits is wrong. Figures that the trajectory never
observed are not allowed, even when they happen to be true.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from arena_lightning.tasks.travel.case import Case
from arena_lightning.tasks.travel.evidence import Leg
from arena_lightning.tasks.travel.facts import facts_in
from arena_lightning.tasks.travel.places import minutes_of
from arena_lightning.tasks.travel.reading import Reading

Value = float | str
_SLACK = {
    "km": 0.051,
    "minutes": 0.51,
    "rating": 0.01,
    "eur": 0.01,
    "celsius": 0.51,
    "percent": 0.51,
}


@dataclass(frozen=True, slots=True)
class Checked:
    """Kinds of facts stated about one thing, by how they stand."""

    right: frozenset[str]
    wrong: frozenset[str]

    def share(self, expected: Iterable[str]) -> float:
        """Right less wrong, over the expected kinds; from -1 to 1."""
        wanted = frozenset(expected)
        value = len(self.right & wanted) - len(self.wrong)
        return max(-1.0, value / max(1, len(wanted)))


def stated(reading: Reading, weather: bool = False) -> dict[str, dict[str, set[Value]]]:
    """Return thing -> kind -> values over the whole answer.

    Totals belong to no thing. `weather` selects lines about the weather instead of all others.
    """
    table: dict[str, dict[str, set[Value]]] = {}
    for line in reading.lines:
        if line.is_weather != weather and not (weather is False and line.names):
            continue
        for owner, fact in line.facts:
            if fact.kind == "eur" and 0 <= line.total_start <= fact.start:
                continue
            table.setdefault(owner, {}).setdefault(fact.kind, set()).add(fact.value)
    return table


def check(values: Mapping[str, set[Value]], allowed: Mapping[str, Iterable[Value]]) -> Checked:
    """Hold stated values against the allowed ones; kinds without a rule are ignored."""
    right, wrong = set(), set()
    for kind, given in values.items():
        if kind in allowed:
            fits = all(_is_among(kind, value, allowed[kind]) for value in given)
            (right if fits else wrong).add(kind)
    return Checked(frozenset(right), frozenset(wrong))


def _is_among(kind: str, value: Value, allowed: Iterable[Value]) -> bool:
    if isinstance(value, str):
        return value in allowed
    slack = _SLACK.get(kind, 0.01)
    return any(not isinstance(a, str) and abs(value - a) <= slack for a in allowed)


def place_facts(case: Case, name: str, nights: int = 0) -> dict[str, list[Value]]:
    """Return what may be said of a place: its record, and ways and distances that were observed."""
    place = case.places[name]
    party = case.needs.party
    prices = {place.price_eur, place.price_eur * (nights or party)}
    legs = [leg for leg in case.evidence.legs if name in leg.stops]
    prices |= {int(eur) for leg in legs for eur in leg.eur}
    spans: list[Value] = [place.hours]
    return {
        "rating": [place.rating],
        "eur": [float(price) for price in prices],
        "span": spans,
        "km": [*case.evidence.distances.get(name, ()), *(km for leg in legs for km in leg.km)],
        "minutes": [float(place.visit_min), *(m for leg in legs for m in leg.minutes)],
    }


def visit_spans(case: Case, name: str, values: Mapping[str, set[Value]]) -> set[Value]:
    """Return stated spans that are visits: inside the opening hours, but not those hours."""
    place = case.places[name]
    opens, closes = minutes_of(place.opens), minutes_of(place.closes)
    visits = set()
    for span in values.get("span", ()):
        start, _, end = str(span).partition("-")
        if span != place.hours and opens <= minutes_of(start) < minutes_of(end) <= closes:
            visits.add(span)
    return visits


def leg_facts(legs: Iterable[Leg], party: int) -> dict[str, list[Value]]:
    """Return what may be said of observed ways."""
    legs = list(legs)
    return {
        "minutes": [m for leg in legs for m in leg.minutes],
        "km": [km for leg in legs for km in leg.km],
        "eur": [eur * times for leg in legs for eur in leg.eur for times in (1, party)],
    }


_EACH = re.compile(r"per person|per head|a person|each|人均|每人", re.IGNORECASE)


def totals(reading: Reading, party: int, budget: int | None) -> set[float]:
    """Return the totals stated for the party.

    In a sum written out, the figure after the last "=" counts; a total per person is multiplied;
    the budget may stand beside the total.
    """
    found: set[float] = set()
    for line in reading.lines:
        if line.total_start < 0:
            continue
        text = line.text[line.total_start :]
        text = text.rpartition("=")[2] if "=" in text else text
        figures = {float(f.value) for f in facts_in(text) if f.kind == "eur"}
        if len(figures) > 1:
            figures -= {budget}
        each = len(figures) == 1 and bool(_EACH.search(line.text))
        found |= {figure * (party if each else 1) for figure in figures}
    return found
