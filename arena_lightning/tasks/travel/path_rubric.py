"""The path side of the travel rubric: was each need researched, by calls that serve it?

Every need becomes research targets; calls are offered to the targets in order, and a call is useful
when it raises some target's credit. All other calls are waste, so repeating calls or calling every
tool lowers the score: waste costs relevance in proportion and, growing, everything else.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean

from arena_lightning.tasks.travel.case import Case
from arena_lightning.tasks.travel.evidence import Call, Leg
from arena_lightning.tasks.travel.needs import (
    PlacesNeed,
    RouteNeed,
    ScheduleNeed,
    StayNeed,
    TransportNeed,
    WeatherNeed,
)

WASTE_LIMIT = 4
"""Wasted calls at which a path is worth nothing."""


class Target(ABC):
    """One thing to find out. `credit` and `specific` only grow, both 0-1."""

    weight: float = 1.0
    credit: float = 0.0
    specific: float = 0.0
    """How exact the arguments were that earned the credit."""

    @abstractmethod
    def offer(self, case: Case, call: Call, leg: Leg | None) -> bool:
        """Take a call that worked; return whether it raised the credit."""

    def _raise_to(self, credit: float, specific: float) -> bool:
        credit = min(1.0, credit)
        if credit <= self.credit + 1e-9:
            return False
        self.credit = credit
        self.specific = max(self.specific, specific)
        return True


class FindPlaces(Target):
    """Enough distinct places that would do, seen by searching."""

    def __init__(self, names: frozenset[str], count: int, need: PlacesNeed | None) -> None:
        self._names, self._need = names, need
        self.weight = 2.0 if need is not None and need.near is not None else 1.0
        self._count = max(1, min(count, len(names)))
        self.found: set[str] = set()

    def offer(self, case: Case, call: Call, leg: Leg | None) -> bool:
        if call.tool not in ("poi_search", "around_search"):
            return False
        self.found.update(name for name in call.names if name in self._names)
        return self._raise_to(len(self.found) / self._count, self._exactness(call))

    def _exactness(self, call: Call) -> float:
        need = self._need
        words = call.text_argument("keyword", "address")
        exact = [bool(words)]
        if need is not None and need.near is not None:
            exact.append(need.near.lower() in call.text_argument("location").lower())
            if need.max_km is not None:
                radius = call.text_argument("radius")
                exact.append(_is_number(radius) and float(radius) <= 2000 * need.max_km)
        else:
            exact.append(bool(call.text_argument("region", "location")))
        return fmean(exact)


class FindWay(Target):
    """The way along given stops in one mode; one call with waypoints covers them all."""

    def __init__(self, stops: tuple[str, ...], mode: str) -> None:
        self._pairs = set(pairwise(stops))
        self._mode = mode
        self._covered: set[tuple[str, str]] = set()

    def offer(self, case: Case, call: Call, leg: Leg | None) -> bool:
        if leg is None or leg.mode != self._mode:
            return False
        pairs = set(pairwise(leg.stops))
        self._covered |= pairs & self._pairs
        exact = 1.0 if call.text_argument("mode") else 0.5
        return self._raise_to(len(self._covered) / len(self._pairs), exact)


class CheckWay(Target):
    """How to get to what was found: from the given place, or between the places of a plan."""

    weight = 0.5

    def __init__(self, finds: list[FindPlaces], near: str | None, count: int) -> None:
        self._finds, self._near, self._count = finds, near, count
        self._reached: set[str] = set()

    def offer(self, case: Case, call: Call, leg: Leg | None) -> bool:
        if leg is None or (self._near is not None and self._near not in leg.stops):
            return False
        found = set().union(*(find.found for find in self._finds))
        self._reached |= {stop for stop in leg.stops if stop in found}
        exact = 1.0 if call.text_argument("mode") else 0.5
        return self._raise_to(len(self._reached) / self._count, exact)


class FindRide(Target):
    """Flights or trains of the day asked about."""

    def __init__(self, need: TransportNeed, mode: str) -> None:
        self._need = need
        self._tool = "search_flights" if mode == "flight" else "search_train_tickets"

    def offer(self, case: Case, call: Call, leg: Leg | None) -> bool:
        need = self._need
        matches = call.tool == self._tool and all(
            case.world.city(call.text_argument(key)) == case.world.city(name)
            for key, name in (("from_city", need.from_city), ("to_city", need.to_city))
        )
        return matches and call.text_argument("date") == need.date and self._raise_to(1.0, 1.0)


class FindWeather(Target):
    """The forecast of the city and day asked about."""

    weight = 0.5

    def __init__(self, city: str, date: str) -> None:
        self._city, self._date = city, date

    def offer(self, case: Case, call: Call, leg: Leg | None) -> bool:
        if call.tool != "weather" or self._date not in call.text:
            return False
        if case.world.city(call.text_argument("city")) != case.world.city(self._city):
            return False
        return self._raise_to(1.0, 1.0 if call.text_argument("date") else 0.5)


def path_dimensions(case: Case) -> dict[str, float]:
    """Return breadth, relevance and detail, 0-10 each, 10 best.

    A trajectory without a call gets zeros. Extra calls can only lower relevance and detail, and
    raise breadth by less than they cost (see the module's docstring and its tests).
    """
    targets = list(_targets(case))
    legs = {leg.call: leg for leg in case.evidence.legs}
    useful = 0
    for position, call in enumerate(case.evidence.calls):
        if not call.is_error:
            gains = [target.offer(case, call, legs.get(position)) for target in targets]
            useful += any(gains)
    total = len(case.evidence.calls)
    if not total or not targets:
        return {"breadth": 0.0, "relevance": 0.0, "detail": 0.0}
    focus = 10.0 * max(0.0, 1.0 - ((total - useful) / WASTE_LIMIT) ** 2)
    credits = [target.weight * target.credit for target in targets]
    breadth = sum(credits) / sum(target.weight for target in targets)
    exactness = fmean((t.specific for t in targets), credits) if breadth else 0.0
    return {
        "breadth": focus * breadth,
        "relevance": focus * useful / total,
        "detail": focus * exactness * (0.5 + 0.5 * breadth),
    }


def _targets(case: Case) -> Iterator[Target]:
    """Yield what to find out, implied needs included: ways to the picks, weather for plans."""
    finds: list[FindPlaces] = []
    for need in case.needs.items:
        if isinstance(need, PlacesNeed):
            find = FindPlaces(case.satisfying(need), need.count, need)
            finds.append(find)
            yield find
            if need.near is not None:
                yield CheckWay([find], need.near, 1)
        elif isinstance(need, StayNeed):
            yield FindPlaces(case.satisfying(need), 1, None)
        elif isinstance(need, RouteNeed):
            stops = (need.origin, *need.via, need.destination)
            yield from (FindWay(stops, mode) for mode in need.modes)
        elif isinstance(need, TransportNeed):
            yield from (FindRide(need, mode) for mode in need.modes)
        elif isinstance(need, WeatherNeed):
            yield FindWeather(need.city, need.date)
        elif isinstance(need, ScheduleNeed):
            yield CheckWay(finds, None, len(need.slots))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
