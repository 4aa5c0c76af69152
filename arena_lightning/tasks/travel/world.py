"""The travel world: real cities, invented places, ways, timetables, weather and a small text base.

Everything is a function of the seed; nothing is stored, fetched or random. A city's places are
made when it is first asked for. Prices are in whole EUR everywhere, in China too.
"""

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from arena_lightning.errors import ConfigError
from arena_lightning.rng import generator_for
from arena_lightning.tasks.travel.geo import City, distance_km, load_cities
from arena_lightning.tasks.travel.places import WEEKDAYS, Place, places_of
from arena_lightning.tasks.travel.transport import Ride, Route, rides_between, route_between

TODAY = datetime.date(2026, 5, 4)
FORECAST_DAYS = 60
MAX_CITIES = 330
"""The most that the pools of place names reach for."""
TEST_EVERY = 4
"""Every fourth city by size belongs to the test split only."""


@dataclass(frozen=True, slots=True)
class Weather:
    """A day's forecast."""

    summary: str
    low_c: int
    high_c: int
    rain_percent: int


@dataclass(frozen=True, slots=True)
class Snippet:
    """A result of the text base."""

    title: str
    text: str


class World:
    """One world. `language` "zh" puts it in China, with Chinese names.

    Args:
        seed: root seed of everything invented.
        language: "en" or "zh".
    """

    def __init__(self, seed: int = 0, language: str = "en") -> None:
        if language not in ("en", "zh"):
            raise ConfigError(f'language must be "en" or "zh", got {language!r}. Name one of them.')
        self.seed = seed
        self.language = language
        self._places: dict[str, tuple[Place, ...]] = {}

    @property
    def is_chinese(self) -> bool:
        return self.language == "zh"

    @cached_property
    def _cities(self) -> dict[str, City]:
        wanted = [c for c in load_cities() if (c.country == "CN") == self.is_chinese]
        return {self.shown_name(c): c for c in wanted[:MAX_CITIES]}

    def shown_name(self, city: City) -> str:
        """Return a city's name in the world's language."""
        return city.zh_name if self.is_chinese else city.name

    def cities(self, split: str | None = None) -> tuple[City, ...]:
        """Return the cities of "train" or "test", or all."""
        cities = tuple(self._cities.values())
        if split is None:
            return cities
        return tuple(c for i, c in enumerate(cities) if (i % TEST_EVERY == 2) == (split == "test"))

    def city(self, name: str) -> City | None:
        """Return a city by name, whatever its case or a trailing country."""
        wanted = name.split(",")[0].strip().removesuffix("市").lower()
        return self._by_name.get(wanted)

    @cached_property
    def _by_name(self) -> dict[str, City]:
        names = {shown.lower(): city for shown, city in self._cities.items()}
        return {city.name.lower(): city for city in self._cities.values()} | names

    @cached_property
    def _index(self) -> dict[str, int]:
        return {city.name: index for index, city in enumerate(self._cities.values())}

    def places(self, city: City) -> tuple[Place, ...]:
        """Return a city's places."""
        if city.name not in self._places:
            index = self._index[city.name]
            self._places[city.name] = places_of(self.seed, city, index, self.is_chinese)
        return self._places[city.name]

    def place(self, name: str, city: City | None = None) -> Place | None:
        """Return a place by its exact name (any case), or None where that city has none.

        Names are unique within a world, so `city` only narrows.
        """
        wanted = name.strip().lower()
        if city is not None:
            return next((p for p in self.places(city) if p.name.lower() == wanted), None)
        return self._place_by_name.get(wanted)

    @cached_property
    def _place_by_name(self) -> dict[str, Place]:
        return {p.name.lower(): p for city in self.cities() for p in self.places(city)}

    def distance_km(self, a: Place, b: Place) -> float:
        """Great-circle distance of two places, km."""
        return distance_km(a.lat, a.lon, b.lat, b.lon)

    def route(self, points: Sequence[Place], mode: str) -> Route:
        """Return the way from the first place through the others to the last."""
        return route_between([(p.lat, p.lon) for p in points], mode)

    def weather(self, city: City, date: datetime.date) -> Weather:
        """Return a day's forecast."""
        generator = generator_for(
            self.seed, "travel/weather", self._index[city.name], date.toordinal()
        )
        season = -math.cos((date.timetuple().tm_yday - 20) / 365 * 2 * math.pi)
        if city.lat < 0:
            season = -season
        mean = 27 - abs(city.lat) * 0.36 + 9 * season
        low = round(mean - 4 + float(generator.normal(0, 2)))
        rain = int(generator.choice([0, 10, 20, 40, 60, 80]))
        kinds = ("晴", "多云", "小雨") if self.is_chinese else ("sunny", "cloudy", "light rain")
        summary = kinds[0 if rain <= 10 else 1 if rain <= 40 else 2]
        return Weather(summary, low, low + int(generator.integers(5, 10)), rain)

    def flights(self, date: datetime.date, start: City, end: City) -> tuple[Ride, ...]:
        """Return the day's flights."""
        return rides_between(self.seed, "flight", date.toordinal(), start, end, "")

    def trains(self, date: datetime.date, start: City, end: City) -> tuple[Ride, ...]:
        """Return the day's trains, direct and with a transfer."""
        return rides_between(
            self.seed, "train", date.toordinal(), start, end, self._hub(start, end)
        )

    def _hub(self, start: City, end: City) -> str:
        middle = ((start.lat + end.lat) / 2, (start.lon + end.lon) / 2)
        others = (c for c in self.cities() if c not in (start, end))
        hub = min(others, key=lambda c: distance_km(c.lat, c.lon, *middle))
        return self.shown_name(hub)

    def search(self, query: str, limit: int = 3) -> tuple[Snippet, ...]:
        """Return the texts of cities that a query names, sharing most words first."""
        words = set(_words(query))
        lowered = query.lower()
        scored = []
        for city in self.cities():
            if self.shown_name(city).lower() not in lowered:
                continue
            for order, snippet in enumerate(self.snippets(city)):
                score = len(words & set(_words(snippet.title + " " + snippet.text)))
                scored.append((-score, order, snippet))
        return tuple(snippet for _, _, snippet in sorted(scored, key=lambda s: s[:2])[:limit])

    def snippets(self, city: City) -> tuple[Snippet, ...]:
        """Return a city's texts: getting around, when to go, and a tip for some places."""
        shown = self.shown_name(city)
        best = max(self.places(city), key=lambda p: (p.kind in ("museum", "landmark"), p.rating))
        if self.is_chinese:
            return (
                Snippet(f"{shown}交通", f"{shown}市内公交和地铁单程2元，郊区另计。"),
                Snippet(
                    f"{best.name}", f"{best.name}评分{best.rating}，上午人少，{best.hours}开放。"
                ),
                Snippet(f"{shown}美食", f"{shown}餐厅周末需排队，建议提前订位。"),
            )
        return (
            Snippet(f"Getting around {shown}", f"A single transit ride in {shown} is 2 EUR."),
            Snippet(best.name, f"{best.name} is quiet before noon; open {best.hours}."),
            Snippet(f"Eating in {shown}", f"Book {shown} restaurants ahead at weekends."),
        )


def weekday_name(index: int) -> str:
    """Return "Mon" for 0."""
    return WEEKDAYS[index]


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+|[一-鿿]", text.lower())
