"""Points of interest, invented on top of real cities: names, prices, hours, ratings from a seed.

A place's name is unique within the world for its kind, short, and says its kind, so that a small
model can copy it and a program can find it. Airports sit at the real coordinates of the city's
nearest one; each city has one invented station, at the city's real coordinates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from arena_lightning.rng import generator_for
from arena_lightning.tasks.travel.geo import City, nearest_airport

KINDS = ("museum", "park", "landmark", "restaurant", "cafe", "market", "hotel")
FIXED_KINDS = ("station", "airport")
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True)
class KindProfile:
    """How a kind is drawn: words of its names, number a city, price range, hours, visit length."""

    nouns: tuple[str, ...]
    per_city: int
    price_eur: tuple[int, int]
    opens: tuple[int, int]
    closes: tuple[int, int]
    closed_fraction: float
    visit_min: int


PROFILES = {
    "museum": KindProfile(("Museum",), 6, (4, 18), (9, 11), (17, 19), 0.5, 90),
    "park": KindProfile(("Park", "Garden"), 5, (0, 0), (6, 8), (20, 22), 0.0, 60),
    "landmark": KindProfile(("Tower", "Palace", "Abbey"), 5, (0, 15), (9, 10), (17, 20), 0.2, 60),
    "restaurant": KindProfile(
        ("Bistro", "Grill", "Kitchen"), 8, (12, 38), (11, 12), (21, 23), 0.3, 75
    ),
    "cafe": KindProfile(("Cafe",), 7, (4, 12), (7, 9), (17, 20), 0.3, 40),
    "market": KindProfile(("Market",), 4, (0, 0), (8, 9), (14, 18), 0.4, 60),
    "hotel": KindProfile(("Hotel",), 6, (55, 170), (0, 0), (24, 24), 0.0, 0),
}
ZH_NOUNS = {
    "museum": "博物馆",
    "park": "公园",
    "landmark": "古塔",
    "restaurant": "餐厅",
    "cafe": "咖啡馆",
    "market": "市场",
    "hotel": "酒店",
    "station": "站",
    "airport": "机场",
}
_HEAD_WORDS = (
    "Al Bel Cor Dan El Fal Gor Har Is Jun Kel Lum Mar Nor Ol Pel Quin Ros Sel Tor Ul Val Wil Yor "
    "Zan Bra Cas Dor Fen Gal Hol Ir Kar Lor Mel Nel Or Per Ran Sol Tam Ver Wen Bor Cal Del Far "
    "Ash Bram Clar Dun Em Fro Gran Hel Ing Jas Kir Lan Mon Nav Os Pol Rav Stan Thor Ven Wal Yel "
    "Zor Bald Crom Drev Finn Glen Hart Isk"
)
_TAIL_WORDS = (
    "a o ina era ino ard en eth ia ora ley mont ton vale dor ette field wick mar ena "
    "by stead bury aro ino ello esta ami une ask ovo ilt onde urn ax otte ivo eck olle und"
)
_ZH_HEAD_WORDS = (
    "云 星 海 松 竹 梅 兰 月 青 金 玉 龙 凤 春 秋 东 西 南 北 明 晨 花 石 泉 山 湖 江 枫 "
    "霞 荷 桂 柳 鹤 虹 雪 银 朝 夕 天 彩 紫 碧 古 新 长 永 福 瑞"
)
_ZH_TAIL_WORDS = "和 安 乐 雅 远 景 华 光 源 盛 福 轩 园 悦 宁 泰 祥 丰 庭 阳"
# Heads times tails must give each kind more names than all cities take (see `_names`).
_HEADS, _TAILS = _HEAD_WORDS.split(), _TAIL_WORDS.split()
_ZH_HEADS, _ZH_TAILS = _ZH_HEAD_WORDS.split(), _ZH_TAIL_WORDS.split()


@dataclass(frozen=True, slots=True)
class Place:
    """A point of interest. `price_eur` is per person (hotel: a room and night; 0 = free)."""

    name: str
    kind: str
    city: str
    lat: float
    lon: float
    rating: float
    price_eur: int
    opens: str
    closes: str
    closed_weekday: int | None
    visit_min: int
    district: str

    @property
    def hours(self) -> str:
        return f"{self.opens}-{self.closes}"

    def is_open(self, weekday: int, start_min: int | None = None) -> bool:
        """Whether it is open on a weekday (0 = Monday), and for a visit from `start_min` on."""
        if weekday == self.closed_weekday:
            return False
        if start_min is None:
            return True
        return minutes_of(self.opens) <= start_min <= minutes_of(self.closes) - self.visit_min


def minutes_of(clock: str) -> int:
    """Return "HH:MM" as minutes after midnight."""
    hours, minutes = clock.split(":")
    return int(hours) * 60 + int(minutes)


def places_of(seed: int, city: City, city_index: int, chinese: bool) -> tuple[Place, ...]:
    """Return a city's places; the same seed and city give the same places."""
    generator = generator_for(seed, "travel/places", city_index)
    places: list[Place] = []
    for kind_index, kind in enumerate(KINDS):
        profile = PROFILES[kind]
        names = _names(seed, kind_index, kind, city_index, chinese)
        for name in names:
            distance = 0.25 + 3.2 * math.sqrt(float(generator.random()))
            angle = float(generator.random()) * 2 * math.pi
            low, high = profile.price_eur
            price = int(generator.integers(low, high + 1))
            if kind == "landmark" and price < 4:
                price = 0
            closed = generator.random() < profile.closed_fraction
            places.append(
                Place(
                    name,
                    kind,
                    city.name,
                    round(city.lat + distance * math.cos(angle) / 111.2, 5),
                    round(
                        city.lon
                        + distance * math.sin(angle) / (111.2 * math.cos(math.radians(city.lat))),
                        5,
                    ),
                    round(float(generator.integers(36, 50)) / 10, 1),
                    price,
                    _clock(int(generator.integers(profile.opens[0], profile.opens[1] + 1))),
                    _clock(int(generator.integers(profile.closes[0], profile.closes[1] + 1))),
                    int(generator.integers(0, 7)) if closed else None,
                    profile.visit_min,
                    ("North", "East", "South", "West")[
                        int(((angle + math.pi / 4) // (math.pi / 2)) % 4)
                    ],
                )
            )
    return (*places, *_fixed_places(city, chinese))


def _names(seed: int, kind_index: int, kind: str, city_index: int, chinese: bool) -> Sequence[str]:
    """Deal each kind's pool of names out over the cities, so none appears twice."""
    count = PROFILES[kind].per_city
    pool = _shuffled_names(seed, kind_index, kind, chinese)
    start = city_index * count
    return [pool[(start + i) % len(pool)] for i in range(count)]


@cache
def _shuffled_names(seed: int, kind_index: int, kind: str, chinese: bool) -> tuple[str, ...]:
    if chinese:
        pool = [h + t + ZH_NOUNS[kind] for h in _ZH_HEADS for t in _ZH_TAILS]
    else:
        nouns = PROFILES[kind].nouns
        pool = [
            f"{h}{t} {nouns[(i + j) % len(nouns)]}"
            for i, h in enumerate(_HEADS)
            for j, t in enumerate(_TAILS)
        ]
    # Two heads and tails can spell the same name.
    pool = list(dict.fromkeys(pool))
    order = generator_for(seed, "travel/names", kind_index, int(chinese)).permutation(len(pool))
    return tuple(pool[int(i)] for i in order)


def _fixed_places(city: City, chinese: bool) -> tuple[Place, ...]:
    airport = nearest_airport(city)
    assert airport is not None, "load_cities keeps only cities with an airport"
    shown = city.zh_name if chinese and city.zh_name else city.name
    station = f"{shown}站" if chinese else f"{shown} Station"
    port = f"{shown}机场" if chinese else f"{shown} Airport"
    common = (3.9, 0, "00:00", "24:00", None, 0, "Centre")
    return (
        Place(station, "station", city.name, city.lat, city.lon, *common),
        Place(port, "airport", city.name, round(airport.lat, 5), round(airport.lon, 5), *common),
    )


def _clock(hour: int) -> str:
    return f"{hour:02d}:00"
