"""How well an answer meets the needs of going somewhere: ways, flights and trains, the weather."""

import datetime
import re

from arena_lightning.tasks.travel.case import Case
from arena_lightning.tasks.travel.evidence import Leg
from arena_lightning.tasks.travel.needs import RouteNeed, TransportNeed, WeatherNeed
from arena_lightning.tasks.travel.part import (
    Part,
    Stated,
    feasible_share,
    listed_things,
    shown_feasible,
)
from arena_lightning.tasks.travel.reading import Reading
from arena_lightning.tasks.travel.statements import Value, check, leg_facts, stated

_WAYS = frozenset({"walking", "electrobike", "bicycling", "transit", "driving"})


def route_part(case: Case, need: RouteNeed, table: Stated, reading: Reading) -> Part:
    stops = (need.origin, *need.via, need.destination)
    relevance = feasibility = details = answered = 0.0
    spoken = {mode for line in reading.lines for _, mode in line.mode_starts}
    for mode in need.modes:
        legs = [leg for leg in case.evidence.legs if leg.mode == mode and _along(leg, stops)]
        if mode not in spoken or not legs:
            continue
        checked = check(table.get(mode, {}), leg_facts(legs, case.needs.party))
        relevance += 1.0 if "minutes" in checked.right else 0.25
        answered += 1
        feasibility += shown_feasible("eur", checked)
        details += checked.share(("minutes", "km", "eur"))
    for mode in table.keys() - set(need.modes):
        relevance -= 0.5 if mode in _WAYS else 0.0
    count = len(need.modes)
    feasible = feasible_share(feasibility, answered, count)
    return Part(2.0, max(0.0, relevance) / count, feasible, details / count)


def _along(leg: Leg, stops: tuple[str, ...]) -> bool:
    return leg.stops == stops or set(leg.stops) <= set(stops)


def rides_part(case: Case, need: TransportNeed, table: Stated, reading: Reading) -> Part:
    listed = [n for n in listed_things(reading) if n in case.evidence.options]
    relevance = feasibility = details = 0.0
    for mode in need.modes:
        mine = [n for n in listed if case.evidence.options[n].mode == mode]
        if len(mine) != 1 or not _is_trip(case, need, mine[0]):
            continue
        option = case.evidence.options[mine[0]]
        allowed: dict[str, list[Value]] = {
            "span": [option.span],
            "clock": list(option.span.split("-")),
            "eur": [option.price_eur, option.price_eur * case.needs.party],
        }
        checked = check(table.get(option.number, {}), allowed)
        relevance += 1.0
        feasibility += shown_feasible("span", checked)
        details += checked.share(("span", "eur")) * 0.75
        details += 0.25 * _says_changes(option.text, option.number, reading)
    count = len(need.modes)
    feasible = feasible_share(feasibility, relevance, count)
    return Part(2.0, relevance / count, feasible, details / count)


def _is_trip(case: Case, need: TransportNeed, number: str) -> bool:
    """Whether the call that showed an option was about this trip on this day."""
    call = case.evidence.calls[case.evidence.options[number].call]
    return call.text_argument("date") == need.date and all(
        case.world.city(call.text_argument(key)) == case.world.city(name)
        for key, name in (("from_city", need.from_city), ("to_city", need.to_city))
    )


def _says_changes(observed: str, number: str, reading: Reading) -> bool:
    """Whether the answer says direct or via as observed; flights are direct."""
    last = observed.split("|")[-1].strip()
    direct = not last.startswith("via ")
    texts = [line.text for line in reading.lines if number in line.names]
    says_direct = any(re.search(r"\bdirect\b|直达", text, re.IGNORECASE) for text in texts)
    says_via = any(re.search(r"\bvia\b|transfer|chang|经|换乘", text) for text in texts)
    if last == "direct" or not direct:
        return says_direct != says_via and says_direct == direct
    return not says_via


def weather_part(case: Case, need: WeatherNeed, reading: Reading) -> Part:
    city = case.world.city(need.city)
    seen = any(c.tool == "weather" and need.date in c.text for c in case.evidence.calls)
    if city is None or not seen:
        return Part(0.75, 0.0, None, 0.0)
    truth = case.world.weather(city, datetime.date.fromisoformat(need.date))
    allowed: dict[str, list[Value]] = {
        "celsius": [truth.low_c, truth.high_c],
        "percent": [truth.rain_percent],
    }
    values: dict[str, set[Value]] = {}
    for facts in stated(reading, weather=True).values():
        for kind, found in facts.items():
            values.setdefault(kind, set()).update(found)
    checked = check(values, allowed)
    if checked.wrong or not checked.right:
        return Part(0.75, 0.0, None, 0.0)
    return Part(0.75, 1.0, None, checked.share(("celsius", "percent")))
