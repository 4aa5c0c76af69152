"""Ways and timetables, derived from great-circle distance by a seeded speed and price model.

There is no real timetable behind it; distances between real coordinates are real.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from arena_lightning.rng import generator_for
from arena_lightning.tasks.travel.geo import City, distance_km

MODES = ("driving", "walking", "bicycling", "electrobike", "transit")
_SPEED_KMH = {
    "driving": 26.0,
    "walking": 4.8,
    "bicycling": 14.0,
    "electrobike": 19.0,
    "transit": 21.0,
}
_FIXED_MIN = {"driving": 4, "walking": 0, "bicycling": 2, "electrobike": 2, "transit": 6}
DETOUR = 1.25
"""Street length over great-circle length."""


@dataclass(frozen=True, slots=True)
class Route:
    """A way, waypoints included. Cost per person (driving: the taxi)."""

    mode: str
    km: float
    minutes: int
    cost_eur: int
    leg_minutes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ride:
    """A flight or train. Price per person."""

    mode: str
    number: str
    depart: str
    arrive: str
    minutes: int
    price_eur: int
    transfers: int = 0
    via: str = ""


def route_between(points: Sequence[tuple[float, float]], mode: str) -> Route:
    """Return the way through (lat, lon) points in order."""
    legs_km = [DETOUR * distance_km(*a, *b) for a, b in pairwise(points)]
    leg_minutes = tuple(
        max(1, round(_FIXED_MIN[mode] + km / _SPEED_KMH[mode] * 60)) for km in legs_km
    )
    km = round(sum(legs_km), 1)
    cost = {
        "driving": round(4 + 1.6 * km),
        "walking": 0,
        "bicycling": 0,
        "electrobike": round(1 + 0.15 * sum(leg_minutes)),
        "transit": 2 * len(legs_km),
    }[mode]
    return Route(mode, km, sum(leg_minutes), cost, leg_minutes)


def rides_between(
    seed: int, mode: str, date_ordinal: int, start: City, end: City, hub: str
) -> tuple[Ride, ...]:
    """Return the day's rides, the earliest first. `mode` is "flight" or "train"."""
    km = distance_km(start.lat, start.lon, end.lat, end.lon)
    address = (date_ordinal, round(start.lat * 1e4), round(end.lat * 1e4), mode == "train")
    generator = generator_for(seed, "travel/rides", *map(int, address))
    if mode == "flight":
        count, minutes, price = (3 if km > 150 else 0), 45 + km / 12.0, 35 + km * 0.09
    else:
        count, minutes, price = (3 if km < 1500 else 0), 15 + km / 2.4, 14 + km * 0.11
    rides = []
    for index in range(count):
        depart = int(360 + index * (900 // max(1, count)) + generator.integers(0, 36) * 5)
        transfers = int(mode == "train" and km > 250 and index % 2 == 1)
        taken = round(minutes * float(generator.uniform(0.92, 1.12)) + 35 * transfers)
        fare = round(price * float(generator.uniform(0.75, 1.4)) * (0.85 if transfers else 1.0))
        letters = "XA" if mode == "flight" else "R"
        number = f"{letters}{int(generator.integers(100, 999))}"
        rides.append(
            Ride(
                mode,
                number,
                _clock(depart),
                _clock(depart + taken),
                taken,
                fare,
                transfers,
                hub if transfers else "",
            )
        )
    return tuple(sorted(rides, key=lambda ride: (ride.depart, ride.number)))


def _clock(minutes: int) -> str:
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"
