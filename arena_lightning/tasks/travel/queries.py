"""The query generator: five subtasks with their needs, each query solvable with the tools.

Query i of a split is a function of (seed, split, subtask, i). Cities and templates of the test
split never occur in training.
"""

import datetime
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from arena_lightning.rng import generator_for
from arena_lightning.tasks.travel.geo import City, distance_km
from arena_lightning.tasks.travel.needs import (
    SUBTASKS,
    Need,
    Needs,
    PlacesNeed,
    RecommendNeed,
    RouteNeed,
    ScheduleNeed,
    StayNeed,
    TotalNeed,
    TransportNeed,
    WeatherNeed,
)
from arena_lightning.tasks.travel.places import ZH_NOUNS, Place
from arena_lightning.tasks.travel.plan import Plan, best_plan, plans
from arena_lightning.tasks.travel.templates import CHINESE, ENGLISH
from arena_lightning.tasks.travel.world import TODAY, World
from arena_lightning.types import Prompt

SPLITS = ("cold_start", "train", "test")
PLURALS = {
    "museum": "museums",
    "cafe": "cafes",
    "restaurant": "restaurants",
    "landmark": "landmarks",
    "park": "parks",
    "market": "markets",
}
ZH_MODES = {"walking": "步行", "transit": "公交", "driving": "驾车", "bicycling": "骑行"}
SHOWN = 4
"""Lines an observation shows: what must be found has to be among them."""
MIN_TRIP_KM, MAX_TRIP_KM = 200.0, 900.0
_TRIES = 200


class QueryGenerator:
    """Makes prompts in one world.

    Args:
        world: where they take place; its language is the queries'.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._templates = CHINESE if world.is_chinese else ENGLISH
        self._makers = {
            "search_around": self._search_around,
            "direction": self._direction,
            "compare_itinerary": self._compare,
            "one_day_travel": self._one_day,
            "multi_day_travel": self._multi_day,
        }

    def prompt(self, split: str, subtask: str, index: int) -> Prompt:
        """Return query `index` of a subtask and split."""
        address = (SPLITS.index(split), SUBTASKS.index(subtask), index)
        generator = generator_for(self.world.seed, "travel/queries", *address)
        part = "test" if split == "test" else "train"
        cities = self.world.cities(part)
        for _ in range(_TRIES):
            city = cities[int(generator.integers(len(cities)))]
            made = self._makers[subtask](generator, city, part)
            if made is not None:
                needs, words = made
                templates = self._templates[subtask][part]
                text = templates[int(generator.integers(len(templates)))].format(**words)
                return Prompt(
                    f"travel-{self.world.language}-{split}-{subtask}-{index:04d}",
                    text,
                    subtask,
                    self.world.language,
                    needs=needs.to_dict(),
                )
        raise AssertionError(f"no {subtask} query can be solved in split {split}")

    def _search_around(
        self, generator: np.random.Generator, city: City, part: str
    ) -> tuple[Needs, dict[str, Any]] | None:
        kind = _choice(generator, ("cafe", "restaurant", "museum", "landmark", "park"))
        hotel = _choice(generator, self._of_kind(city, "hotel"))
        near = [p for p in self.nearest(hotel, kind) if p.is_open(TODAY.weekday())]
        count = int(generator.integers(2, 4))
        if len(near) < count:
            return None
        chosen = sorted(near, key=lambda p: -p.rating)[:count]
        min_rating = max_price = None
        if generator.random() < 0.5:
            min_rating = min(p.rating for p in chosen)
        elif chosen[0].price_eur > 0 and generator.random() < 0.6:
            chosen = sorted(near, key=lambda p: p.price_eur)[:count]
            max_price = max(p.price_eur for p in chosen)
        reach = max(self.world.distance_km(hotel, p) for p in chosen)
        km = float(np.ceil(reach * 2 + 0.5) / 2)
        items = (
            PlacesNeed("places", kind, count, hotel.name, km, min_rating, max_price),
            RecommendNeed("pick"),
        )
        needs = self._needs("search_around", city, str(TODAY), 1, None, items)
        limits = ""
        if min_rating is not None:
            limits = (
                f"，评分至少{min_rating}" if self.world.is_chinese else f", rated {min_rating}+"
            )
        elif max_price is not None:
            limits = (
                f"，人均不超过{max_price}欧元"
                if self.world.is_chinese
                else f", up to {max_price} EUR a person"
            )
        words = {"near": hotel.name, "count": count, "kinds": self._kinds(kind), "km": f"{km:g}"}
        return needs, self._words(needs, city, words | {"limits": limits})

    def _direction(
        self, generator: np.random.Generator, city: City, part: str
    ) -> tuple[Needs, dict[str, Any]] | None:
        places = [p for p in self.world.places(city) if p.kind != "airport"]
        picks = generator.permutation(len(places))[:3]
        origin, destination, stop = (places[int(i)] for i in picks)
        if not 0.6 < self.world.distance_km(origin, destination) < 6:
            return None
        via = (stop.name,) if generator.random() < 0.3 else ()
        pairs = (("walking", "transit"), ("transit", "driving"), ("bicycling", "driving"))
        modes = _choice(generator, pairs)
        items = (
            RouteNeed("route", origin.name, destination.name, modes, via),
            WeatherNeed("weather", self.world.shown_name(city), self._date(generator)),
            RecommendNeed("pick"),
        )
        needs = self._needs("direction", city, items[1].date, 1, None, items)
        both = " and ".join(modes)
        through = f" via {via[0]}" if via else ""
        if self.world.is_chinese:
            both = "和".join(ZH_MODES[m] for m in modes)
            through = f"，途经{via[0]}" if via else ""
        words = {"origin": origin.name, "destination": destination.name}
        return needs, self._words(needs, city, words | {"via": through, "modes": both})

    def _compare(
        self, generator: np.random.Generator, city: City, part: str
    ) -> tuple[Needs, dict[str, Any]] | None:
        ends = [
            c
            for c in self.world.cities(part)
            if MIN_TRIP_KM < distance_km(city.lat, city.lon, c.lat, c.lon) < MAX_TRIP_KM
        ]
        if not ends:
            return None
        end = _choice(generator, ends)
        date, party = self._date(generator), int(generator.integers(2, 5))
        start_name, end_name = self.world.shown_name(city), self.world.shown_name(end)
        items = (
            TransportNeed("trip", start_name, end_name, date, ("flight", "train")),
            WeatherNeed("weather", end_name, date),
            TotalNeed("total"),
            RecommendNeed("pick"),
        )
        needs = self._needs("compare_itinerary", city, date, party, None, items)
        return needs, self._words(needs, city, {"start": start_name, "end": end_name})

    def _one_day(
        self, generator: np.random.Generator, city: City, part: str
    ) -> tuple[Needs, dict[str, Any]] | None:
        return self._days(generator, city, 1)

    def _multi_day(
        self, generator: np.random.Generator, city: City, part: str
    ) -> tuple[Needs, dict[str, Any]] | None:
        return self._days(generator, city, 2)

    def _days(
        self, generator: np.random.Generator, city: City, days: int
    ) -> tuple[Needs, dict[str, Any]] | None:
        date, party = self._date(generator), int(generator.integers(1, 5))
        sights = [("museum", "park"), ("museum", "landmark"), ("landmark", "park")]
        kinds = _choice(generator, sights)
        options = self.plan_options(city, (*kinds, "restaurant"), date, days)
        if any(len(places) < days for places in options.values()):
            return None
        items: list[Need] = [
            PlacesNeed(kinds[0], kinds[0], days),
            PlacesNeed("lunch", "restaurant", days),
            PlacesNeed(kinds[1], kinds[1], days),
            ScheduleNeed("plan", ("morning", "lunch", "afternoon"), days),
            WeatherNeed("weather", self.world.shown_name(city), date),
            TotalNeed("total"),
        ]
        budget = None
        if days > 1:
            items.insert(0, StayNeed("stay", days - 1))
        if generator.random() < 0.5:
            budget = self._budget(generator, list(self.plans(city, options, days, party)))
        subtask = "one_day_travel" if days == 1 else "multi_day_travel"
        needs = self._needs(subtask, city, date, party, budget, tuple(items))
        if self.world.is_chinese:
            wishes = "和".join(ZH_NOUNS[k] for k in kinds)
            money = f"，预算{budget}欧元" if budget else ""
        else:
            wishes = f"a {kinds[0]} and a {kinds[1]}"
            money = f", budget {budget} EUR" if budget else ""
        words = {"wishes": wishes, "budget": money, "days": days}
        return needs, self._words(needs, city, words)

    def _budget(self, generator: np.random.Generator, made: Sequence[Plan]) -> int:
        """From what the cheapest plan costs to a little more than the best rated one does."""
        low, best = min(plan.cost_eur for plan in made), best_plan(iter(made), None).cost_eur
        return int(np.ceil((low + float(generator.uniform(0.1, 1.2)) * (best - low)) / 10) * 10)

    def plan_options(
        self, city: City, kinds: Sequence[str], date: str, days: int
    ) -> dict[str, list[Place]]:
        """Return for each kind what `poi_search` shows and is open on all days."""
        return {kind: self.open_places(city, kind, date, days) for kind in kinds}

    def plans(
        self, city: City, options: dict[str, list[Place]], days: int, party: int
    ) -> Iterator[Plan]:
        """Return the plans made of options, with the hotels that `poi_search` shows."""
        return plans(options, self.best_rated(city, "hotel"), days, party)

    def best_rated(self, city: City, kind: str) -> list[Place]:
        """Return what `poi_search` shows of a kind."""
        return sorted(self._of_kind(city, kind), key=lambda p: (-p.rating, p.name))[:SHOWN]

    def nearest(self, origin: Place, kind: str) -> list[Place]:
        """Return what `around_search` shows of a kind."""
        city = self.world.city(origin.city)
        assert city is not None, f"{origin.name} lies in an unknown city"
        others = [p for p in self._of_kind(city, kind) if p != origin]
        return sorted(others, key=lambda p: (self.world.distance_km(origin, p), p.name))[:SHOWN]

    def open_places(self, city: City, kind: str, date: str, days: int) -> list[Place]:
        """Return what `poi_search` shows of a kind and is open on all days."""
        first = datetime.date.fromisoformat(date).weekday()
        return [
            place
            for place in self.best_rated(city, kind)
            if all(place.is_open((first + day) % 7) for day in range(days))
        ]

    def _of_kind(self, city: City, kind: str) -> list[Place]:
        return [p for p in self.world.places(city) if p.kind == kind]

    def _kinds(self, kind: str) -> str:
        return ZH_NOUNS[kind] if self.world.is_chinese else PLURALS[kind]

    def _date(self, generator: np.random.Generator) -> str:
        return str(TODAY + datetime.timedelta(days=int(generator.integers(3, 40))))

    def _needs(
        self,
        subtask: str,
        city: City,
        date: str,
        party: int,
        budget: int | None,
        items: Sequence[Need],
    ) -> Needs:
        shown = self.world.shown_name(city)
        return Needs(subtask, shown, date, party, budget, self.world.language, tuple(items))

    def _words(self, needs: Needs, city: City, words: dict[str, Any]) -> dict[str, Any]:
        return {"city": needs.city, "date": needs.date, "party": needs.party} | words


def _choice(generator: np.random.Generator, options: Sequence[Any]) -> Any:
    return options[int(generator.integers(len(options)))]
