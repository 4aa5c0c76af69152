"""The seven travel tools, under the names of the paper's release, over the offline world.

A bad argument comes back as a one-line error observation that says what is accepted; nothing an
agent writes can raise. Observations are short: one line an item, fields separated by "|".
"""

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from arena_lightning.protocols import ToolResult
from arena_lightning.tasks.travel.arguments import (
    ArgumentProblem,
    date_argument,
    hint,
    is_float,
    list_argument,
    number_argument,
    shown,
    text_argument,
)
from arena_lightning.tasks.travel.geo import City, distance_km
from arena_lightning.tasks.travel.places import FIXED_KINDS, KINDS, ZH_NOUNS, Place
from arena_lightning.tasks.travel.schemas import SCHEMAS
from arena_lightning.tasks.travel.transport import MODES, Ride, route_between
from arena_lightning.tasks.travel.world import TODAY, World, weekday_name
from arena_lightning.types import ToolCall

MAX_WAYPOINTS = 16
NO_RESULTS = "No results."


class TravelToolset:
    """`poi_search`, `around_search`, `direction`, `weather`, `web_search`, flights, trains.

    Args:
        world: what they look into.
        max_results: lines an observation holds at most.
    """

    def __init__(self, world: World, max_results: int = 4) -> None:
        self.world = world
        self.max_results = max_results
        self._tools: dict[str, Callable[..., list[str]]] = {
            "poi_search": self._poi_search,
            "around_search": self._around_search,
            "direction": self._direction,
            "weather": self._weather,
            "web_search": self._web_search,
            "search_flights": self._search_flights,
            "search_train_tickets": self._search_train_tickets,
        }

    @property
    def schemas(self) -> Sequence[Mapping[str, Any]]:
        return SCHEMAS

    async def call(self, call: ToolCall) -> ToolResult:
        return self.run(call)

    def run(self, call: ToolCall) -> ToolResult:
        """Run one call without an event loop."""
        tool = self._tools.get(call.name) if isinstance(call.name, str) else None
        try:
            if tool is None:
                raise ArgumentProblem(
                    f"no tool {shown(call.name)}{hint(shown(call.name), self._tools)}; "
                    f"tools: {', '.join(self._tools)}"
                )
            lines = tool(**self._checked(call))
        except ArgumentProblem as problem:
            return ToolResult(f"Error: {problem}", is_error=True)
        return ToolResult("\n".join(lines[: self.max_results]) or NO_RESULTS)

    def _checked(self, call: ToolCall) -> dict[str, Any]:
        schema = next(s for s in SCHEMAS if s["name"] == call.name)["parameters"]
        if not isinstance(call.arguments, Mapping):
            raise ArgumentProblem(f"{call.name} arguments must be a JSON object")
        arguments = {
            k: v
            for k, v in call.arguments.items()
            if v is not None and not (isinstance(v, str) and not v.strip())
        }
        known = schema["properties"]
        for key in arguments:
            if key not in known:
                raise ArgumentProblem(
                    f"{call.name} has no argument {shown(key)}; it takes {', '.join(known)}"
                )
        for key in schema["required"]:
            if key not in arguments:
                raise ArgumentProblem(f"{call.name} needs {key}: {known[key]['description']}")
        return arguments

    def _poi_search(self, address: Any, region: Any = None) -> list[str]:
        words = text_argument("address", address)
        city = self._city("region", region) if region is not None else self._city_in(words)
        kind = self._kind_in(words)
        exact = self.world.place(words, city)
        if exact is not None:
            return [self._line(exact)]
        if city is None:
            raise ArgumentProblem('region must name a city, e.g. region="Lyon"')
        places = self.world.places(city)
        if kind is None:
            named = [p for p in places if words.lower() in p.name.lower()]
            return [self._line(p) for p in named]
        found = [p for p in places if p.kind == kind]
        best = sorted(found, key=lambda p: (-p.rating, p.name))
        return [self._line(p, with_kind=False) for p in best]

    def _around_search(
        self, location: Any, radius: Any = 5000, keyword: Any = None, region: Any = None
    ) -> list[str]:
        city = self._city("region", region) if region is not None else None
        lat, lon, home = self._point("location", location, city)
        radius_m = number_argument("radius", radius, 1, 50_000)
        kind = None
        if keyword is not None:
            words = text_argument("keyword", keyword)
            kind = self._kind_in(words)
            if kind is None:
                raise ArgumentProblem(
                    f"keyword {words[:40]!r} is no kind of place; kinds: {', '.join(KINDS)}"
                )
        near = []
        for place in self.world.places(home):
            km = distance_km(lat, lon, place.lat, place.lon)
            if (kind is None or place.kind == kind) and 0.005 < km <= radius_m / 1000:
                near.append((km, place.name, place))
        return [
            f"{self._line(place, with_kind=kind is None)} | {km:.1f} km"
            for km, _, place in sorted(near, key=lambda found: found[:2])
        ]

    def _direction(
        self, origin: Any, destination: Any, mode: Any = "driving", waypoints: Any = None
    ) -> list[str]:
        way = text_argument("mode", mode).lower()
        if way not in MODES:
            raise ArgumentProblem(f"mode {way[:40]!r} is unknown; modes: {', '.join(MODES)}")
        stops = [s for s in list_argument("waypoints", waypoints) if s]
        if len(stops) > MAX_WAYPOINTS:
            raise ArgumentProblem(
                f"waypoints may hold up to {MAX_WAYPOINTS} places, got {len(stops)}"
            )
        first = self._point("origin", origin, None)
        points = [first[:2]]
        for stop in stops:
            points.append(self._point("waypoints", stop, first[2])[:2])
        points.append(self._point("destination", destination, first[2])[:2])
        if points[0] == points[-1] and not stops:
            raise ArgumentProblem("origin and destination are the same place")
        route = route_between(points, way)
        line = f"{way}: {route.km} km, {route.minutes} min, {route.cost_eur} EUR"
        if len(route.leg_minutes) > 1:
            line += f" (legs {' + '.join(str(m) for m in route.leg_minutes)} min)"
        return [line]

    def _weather(self, city: Any, date: Any = None) -> list[str]:
        place = self._city("city", city)
        first = date_argument("date", date) if date is not None else TODAY
        days = 1 if date is not None else self.max_results
        lines = []
        for offset in range(days):
            day = first + datetime.timedelta(days=offset)
            w = self.world.weather(place, day)
            lines.append(
                f"{self.world.shown_name(place)} {day}: {w.summary}, {w.low_c}-{w.high_c} C, "
                f"rain {w.rain_percent}%"
            )
        return lines

    def _web_search(self, query: Any) -> list[str]:
        queries = list_argument("query", query)
        if not queries:
            raise ArgumentProblem("query must hold words to search for")
        found = dict.fromkeys(s for q in queries[:5] for s in self.world.search(q))
        return [f"{s.title} | {s.text}" for s in found]

    def _search_flights(self, date: Any, from_city: Any, to_city: Any) -> list[str]:
        start, end, day = self._trip(date, from_city, to_city)
        return [_ride_line(r) for r in self.world.flights(day, start, end)]

    def _search_train_tickets(
        self, date: Any, from_city: Any, to_city: Any, **ignored: Any
    ) -> list[str]:
        """Codes and coordinates are accepted as in the release; the city names decide."""
        start, end, day = self._trip(date, from_city, to_city)
        return [_ride_line(r) for r in self.world.trains(day, start, end)]

    def _trip(self, date: Any, from_city: Any, to_city: Any) -> tuple[City, City, datetime.date]:
        start, end = self._city("from_city", from_city), self._city("to_city", to_city)
        if start == end:
            raise ArgumentProblem("from_city and to_city are the same city")
        return start, end, date_argument("date", date)

    def _line(self, place: Place, with_kind: bool = True) -> str:
        """A place in a line; its kind is left out where the agent asked for that kind."""
        if place.kind in FIXED_KINDS:
            return f"{place.name} | {place.kind}"
        hours = "" if place.kind == "hotel" else f" | {place.hours}"
        if place.closed_weekday is not None:
            hours += f", closed {weekday_name(place.closed_weekday)}"
        kind = f"{place.kind} | " if with_kind else ""
        return f"{place.name} | {kind}{place.rating} | {place.price_eur} EUR{hours}"

    def _city(self, argument: str, value: Any) -> City:
        name = text_argument(argument, value)
        city = self.world.city(name)
        if city is None:
            names = [self.world.shown_name(c) for c in self.world.cities()]
            raise ArgumentProblem(f"{argument}: no city {name[:40]!r}{hint(name, names)}")
        return city

    def _city_in(self, words: str) -> City | None:
        for part in (words, *words.replace(",", " ").split()):
            city = self.world.city(part)
            if city is not None:
                return city
        if self.world.is_chinese:
            names = (self.world.shown_name(c) for c in self.world.cities())
            return next((self.world.city(name) for name in names if name in words), None)
        return None

    def _kind_in(self, words: str) -> str | None:
        lowered = words.lower().rstrip("s").strip()
        for kind in (*KINDS, *FIXED_KINDS):
            if lowered == kind or kind in lowered.split() or f"{kind}s" in lowered.split():
                return kind
            if ZH_NOUNS[kind] in words:
                return kind
        return None

    def _point(self, argument: str, value: Any, near: City | None) -> tuple[float, float, City]:
        """Resolve a place name, "name, City" or "lon,lat"; the city is where it lies."""
        text = text_argument(argument, value)
        parts = [part.strip() for part in re.split("[,\uff0c]", text)]
        if len(parts) == 2 and all(is_float(part) for part in parts):
            lon, lat = float(parts[0]), float(parts[1])
            if not (-180 <= lon <= 180 and -90 <= lat <= 90):
                raise ArgumentProblem(f"{argument} must be 'lon,lat' in degrees, got {text[:40]!r}")
            cities = self.world.cities()
            home = min(cities, key=lambda c: distance_km(lat, lon, c.lat, c.lon))
            return lat, lon, home
        city = (self.world.city(parts[-1]) if len(parts) > 1 else None) or near
        place = self.world.place(parts[0], city) or self.world.place(parts[0])
        if place is None:
            whole = self.world.city(parts[0])
            if whole is not None:
                return whole.lat, whole.lon, whole
            names = [p.name for p in self.world.places(city)] if city else []
            raise ArgumentProblem(
                f"{argument}: no place {text[:40]!r}{hint(parts[0], names)}; "
                "give a place name or 'lon,lat'"
            )
        home = self.world.city(place.city)
        assert home is not None, f"place {place.name} lies in an unknown city"
        return place.lat, place.lon, home


def _ride_line(ride: Ride) -> str:
    kind = ""
    if ride.mode == "train":
        kind = f" | via {ride.via}" if ride.transfers else " | direct"
    return f"{ride.number} | {ride.depart}-{ride.arrive} | {ride.price_eur} EUR{kind}"
