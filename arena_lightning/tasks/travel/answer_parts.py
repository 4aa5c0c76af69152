"""How well an answer meets each need: one part a need, scored 0-1 in three dimensions.

`answer_rubric.py` turns parts into points. A part's dimension is None where it doesn't apply.
"""

from collections.abc import Iterator, Mapping
from statistics import fmean

from arena_lightning.tasks.travel.case import Case
from arena_lightning.tasks.travel.needs import (
    PlacesNeed,
    RecommendNeed,
    RouteNeed,
    ScheduleNeed,
    StayNeed,
    TotalNeed,
    TransportNeed,
    WeatherNeed,
)
from arena_lightning.tasks.travel.part import (
    Part,
    Stated,
    feasible_share,
    listed_things,
    shown_feasible,
)
from arena_lightning.tasks.travel.picks import pick_credit, picked
from arena_lightning.tasks.travel.places import minutes_of
from arena_lightning.tasks.travel.reading import Reading
from arena_lightning.tasks.travel.statements import (
    Value,
    check,
    leg_facts,
    place_facts,
    stated,
    totals,
    visit_spans,
)
from arena_lightning.tasks.travel.trip_parts import rides_part, route_part, weather_part


def answer_parts(case: Case, reading: Reading) -> list[Part]:
    """Return one part a need, and parts for what it implies (the walk to a place found)."""
    table = stated(reading)
    listed = listed_things(reading)
    parts: list[Part] = []
    for need in case.needs.items:
        if isinstance(need, PlacesNeed):
            parts.append(_places(case, need, table, listed, need.count))
            if need.near is not None:
                parts.append(_walk(case, need.near, table, listed))
        elif isinstance(need, StayNeed):
            parts.append(_places(case, need, table, listed, 1))
        elif isinstance(need, RouteNeed):
            parts.append(route_part(case, need, table, reading))
        elif isinstance(need, TransportNeed):
            parts.append(rides_part(case, need, table, reading))
        elif isinstance(need, WeatherNeed):
            parts.append(weather_part(case, need, reading))
        elif isinstance(need, ScheduleNeed):
            parts.append(_schedule(case, need, table, listed))
    main = [part.relevance for part in parts if part.weight >= 1.0]
    coverage = fmean(main) if main else 0.0
    for need in case.needs.items:
        if isinstance(need, TotalNeed):
            parts.append(_total(case, reading, listed, coverage))
        elif isinstance(need, RecommendNeed):
            credit = pick_credit(case, reading, table) if coverage else 0.0
            parts.append(Part(1.5, credit, None, credit))
    return parts


def unasked_things(case: Case, reading: Reading) -> tuple[int, int]:
    """Return how many listed things are invented or unobserved, and how many nobody asked for."""
    kinds = {need.kind for need in (*case.needs.of_type(PlacesNeed), *case.needs.of_type(StayNeed))}
    rides = bool(case.needs.of_type(TransportNeed))
    invented, unasked = len(reading.unknown_names), 0
    for name in listed_things(reading):
        if name in case.evidence.options:
            unasked += not rides
        elif name not in case.evidence.seen:
            invented += 1
        else:
            unasked += case.places[name].kind not in kinds
    return invented, unasked


def _places(
    case: Case, need: PlacesNeed | StayNeed, table: Stated, listed: tuple[str, ...], count: int
) -> Part:
    weight = 2.0 if isinstance(need, PlacesNeed) and need.near is not None else 1.0
    mine = [n for n in listed if n in case.places and case.places[n].kind == need.kind]
    if len(mine) > count:
        return Part(weight, 0.0, 0.0, 0.0)
    good = case.satisfying(need) & case.evidence.seen
    expected = ["rating", "eur"]
    expected += ["span"] if need.kind != "hotel" else []
    expected += ["km"] if isinstance(need, PlacesNeed) and need.near is not None else []
    nights = need.nights if isinstance(need, StayNeed) else 0
    relevance = feasibility = details = 0.0
    for name in mine:
        if name not in good:
            relevance -= 0.5
            continue
        relevance += 1.0
        values = table.get(name, {})
        spans = visit_spans(case, name, values)
        cleaned = {kind: found - spans for kind, found in values.items() if found - spans}
        checked = check(cleaned, place_facts(case, name, nights))
        if case.open_on_the_day(name) and _visit_fits(case, name, values):
            feasibility += shown_feasible("eur" if need.kind == "hotel" else "span", checked)
        details += checked.share(expected)
    feasible = feasible_share(feasibility, len(mine), count)
    return Part(weight, max(0.0, relevance) / count, feasible, details / count)


def _visit_fits(case: Case, name: str, values: Mapping[str, set[Value]]) -> bool:
    """Whether every clock time stated for a place falls into its opening hours."""
    place = case.places[name]
    opens, closes = minutes_of(place.opens), minutes_of(place.closes)
    return all(opens <= minutes_of(str(clock)) <= closes for clock in values.get("clock", ()))


def _walk(case: Case, near: str, table: Stated, listed: tuple[str, ...]) -> Part:
    """The way from the given place to something listed, in minutes that were observed."""
    reached = {stop for leg in case.evidence.legs if near in leg.stops for stop in leg.stops} & set(
        listed
    )
    told = [
        name
        for name in reached
        if "minutes" in check(table.get(name, {}), place_facts(case, name)).right
    ]
    return Part(0.75, float(bool(told)), None, float(bool(told)))


def _schedule(case: Case, need: ScheduleNeed, table: Stated, listed: tuple[str, ...]) -> Part:
    """Slots filled with times that fit, and the way between the places in observed figures."""
    slots = len(need.slots) * need.days
    timed = sum(
        1
        for name in listed
        if name in case.evidence.seen
        and name in case.places
        and case.open_on_the_day(name)
        and (table.get(name, {}).get("clock") or visit_spans(case, name, table.get(name, {})))
        and _visit_fits(case, name, table.get(name, {}))
    )
    filled = timed / slots if timed <= slots else 0.0
    way = _way_between(case, table, set(listed))
    return Part(1.0, 0.5 * filled + 0.5 * way, filled, way)


def _way_between(case: Case, table: Stated, listed: set[str]) -> float:
    """1 when minutes between listed places are told as observed, in words of a way or a place."""
    legs = [leg for leg in case.evidence.legs if len(set(leg.stops) & listed) >= 2]
    for mode in {leg.mode for leg in legs}:
        mine = [leg for leg in legs if leg.mode == mode]
        checked = check(table.get(mode, {}), leg_facts(mine, case.needs.party))
        if "minutes" in checked.right and not checked.wrong:
            return 1.0
    told = (
        "minutes" in check(table.get(name, {}), place_facts(case, name)).right
        for leg in legs
        for name in leg.stops
        if name in listed
    )
    return float(any(told))


def _total(case: Case, reading: Reading, listed: tuple[str, ...], coverage: float) -> Part:
    """The sum of what is listed, right, wrong or missing; wrong is worse than missing."""
    budget = case.needs.budget_eur
    told = totals(reading, case.needs.party, budget)
    if not told:
        return Part(1.5, 0.0, 0.5 * coverage)
    right = coverage > 0 and len(told) == 1 and told <= set(_possible_totals(case, reading, listed))
    if not right:
        return Part(1.5, 0.0, 0.0)
    fits = budget is None or max(told) <= budget
    return Part(1.5, 0.5 + 0.5 * coverage, (0.5 + 0.5 * coverage) * (1.0 if fits else 0.5))


def _possible_totals(case: Case, reading: Reading, listed: tuple[str, ...]) -> Iterator[float]:
    """Yield the sums that a reader would accept: with or without the ways between the places."""
    party = case.needs.party
    rides = [case.evidence.options[name] for name in listed if name in case.evidence.options]
    if case.needs.of_type(TransportNeed):
        choice = picked(case, reading)
        yield from (r.price_eur * party for r in rides if choice in (None, r.number, r.mode))
        return
    nights = sum(need.nights for need in case.needs.of_type(StayNeed))
    total = 0.0
    for name in listed:
        place = case.places.get(name)
        if place is not None:
            total += place.price_eur * (nights if place.kind == "hotel" else party)
    yield total
    ways = sum(max(leg.eur, default=0.0) for leg in case.evidence.legs)
    yield total + ways * party
