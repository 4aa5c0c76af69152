"""The seven tools: right answers on good calls, and an observation, never an exception, on bad."""

import asyncio
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_lightning.protocols import ToolResult, Toolset
from arena_lightning.tasks.travel.geo import distance_km
from arena_lightning.tasks.travel.places import KINDS
from arena_lightning.tasks.travel.tools import NO_RESULTS, TravelToolset
from arena_lightning.tasks.travel.world import World
from arena_lightning.types import ToolCall

WORLD = World(0)
TOOLS = TravelToolset(WORLD)
PARIS = WORLD.city("Paris")
BY_KIND = {k: [p for p in WORLD.places(PARIS) if p.kind == k] for k in KINDS}
HOTEL, CAFE, MUSEUM = (BY_KIND[k][0] for k in ("hotel", "cafe", "museum"))
NAMES = [schema["name"] for schema in TOOLS.schemas]


def call(name, **arguments):
    return TOOLS.run(ToolCall(name, arguments))


def heads(result):
    return [line.split(" | ")[0] for line in result.content.splitlines()]


def test_it_is_a_toolset_with_the_seven_released_names():
    assert isinstance(TOOLS, Toolset)
    assert sorted(NAMES) == [
        "around_search",
        "direction",
        "poi_search",
        "search_flights",
        "search_train_tickets",
        "weather",
        "web_search",
    ]
    result = asyncio.run(TOOLS.call(ToolCall("weather", {"city": "Paris"})))
    assert not result.is_error and result.content.startswith("Paris 2026-05-04: ")


def test_poi_search_gives_the_best_rated_of_a_kind():
    result = call("poi_search", address="museums", region="Paris")
    ratings = sorted((p.rating for p in BY_KIND["museum"]), reverse=True)[:4]
    assert [WORLD.place(name, PARIS).rating for name in heads(result)] == ratings


def test_poi_search_by_name_gives_that_place_with_its_facts():
    (line,) = call("poi_search", address=MUSEUM.name.lower()).content.splitlines()
    facts = f"{MUSEUM.name} | museum | {MUSEUM.rating} | {MUSEUM.price_eur} EUR | {MUSEUM.hours}"
    assert line.startswith(facts)
    assert call("poi_search", address="museum in Paris").content.count("\n") == 3


def test_around_search_gives_the_nearest_within_the_radius():
    result = call("around_search", location=HOTEL.name, keyword="cafe", radius=4000)
    near = sorted((WORLD.distance_km(HOTEL, p), p.name) for p in BY_KIND["cafe"])
    expected = [name for km, name in near if km <= 4.0][:4]
    assert heads(result) == expected or result.content == NO_RESULTS
    printed = [float(line.split(" | ")[-1].split()[0]) for line in result.content.splitlines()]
    assert printed == pytest.approx([km for km, _ in near[: len(printed)]], abs=0.051)


def test_around_search_takes_coordinates_longitude_first():
    by_name = call("around_search", location=HOTEL.name, keyword="cafe")
    by_point = call("around_search", location=f"{HOTEL.lon},{HOTEL.lat}", keyword="cafe")
    assert by_name == by_point
    assert call("around_search", location=HOTEL.name, radius=1).content == NO_RESULTS


@pytest.mark.parametrize("stops", [CAFE.name, [CAFE.name], f"{CAFE.name}, Paris"])
def test_direction_passes_the_waypoints(stops):
    ends = {"origin": HOTEL.name, "destination": MUSEUM.name, "mode": "walking"}
    straight, through = call("direction", **ends), call("direction", **ends, waypoints=stops)
    crow_km = distance_km(HOTEL.lat, HOTEL.lon, CAFE.lat, CAFE.lon)
    crow_km += distance_km(CAFE.lat, CAFE.lon, MUSEUM.lat, MUSEUM.lon)
    km = float(through.content.removeprefix("walking: ").split(" km")[0])
    assert km == pytest.approx(1.25 * crow_km, abs=0.051)
    assert through.content != straight.content and "(legs " in through.content


def test_direction_takes_sixteen_waypoints_and_refuses_seventeen():
    ends = {"origin": HOTEL.name, "destination": MUSEUM.name}
    stops = [p.name for k in ("cafe", "restaurant", "park") for p in BY_KIND[k]][:17]
    assert not call("direction", **ends, waypoints=stops[:16]).is_error
    refused = call("direction", **ends, waypoints=";".join(stops))
    assert refused.is_error and "up to 16 places, got 17" in refused.content


def test_trains_say_direct_or_the_city_of_the_change():
    result = call("search_train_tickets", date="2026-05-12", from_city="Paris", to_city="Berlin")
    kinds = [line.split(" | ")[3] for line in result.content.splitlines()]
    assert "direct" in kinds
    (via,) = {kind.removeprefix("via ") for kind in kinds if kind != "direct"}
    assert WORLD.city(via) is not None
    extra = {"from_city_adcode": "75", "from_lat": 48.9, "from_lon": "2.4", "to_city_adcode": 1}
    again = call(
        "search_train_tickets", date="2026-05-12", from_city="Paris", to_city="Berlin", **extra
    )
    assert again == result


def test_flights_have_number_times_and_price():
    result = call("search_flights", date="2026-05-12", from_city="paris", to_city="Rome, Italy")
    for line in result.content.splitlines():
        number, times, price = line.split(" | ")
        assert number[:2] == "XA" and len(times) == 11 and price.endswith(" EUR")


def test_web_search_takes_one_query_or_several():
    one = call("web_search", query="getting around Paris")
    assert "transit ride in Paris is 2 EUR" in one.content
    several = call("web_search", query=["eating in Paris", "eating in Rome"])
    assert "Rome" in several.content and "Paris" in several.content
    assert call("web_search", query="nothing known").content == NO_RESULTS


def test_observations_are_four_lines_unless_more_are_asked_for():
    assert (
        TravelToolset(WORLD, max_results=6)
        .run(ToolCall("poi_search", {"address": "museum", "region": "Paris"}))
        .content.count("\n")
        == 5
    )
    assert call("poi_search", address="museum", region="Paris").content.count("\n") == 3


BAD_CALLS = [
    ("wether", {"city": "Paris"}, "no tool wether; did you mean weather"),
    ("weather", {}, "weather needs city"),
    ("weather", {"city": "Pariss"}, "city: no city 'Pariss'; did you mean Paris"),
    ("weather", {"city": ["Paris"]}, "city must be text, got list"),
    ("weather", {"city": True}, "city must be text, got bool"),
    ("weather", {"town": "Paris"}, "no argument town; it takes city, date"),
    ("weather", {"city": "Paris", "date": "12/05/2026"}, "date must be YYYY-MM-DD"),
    ("weather", {"city": "Paris", "date": "2026-02-30"}, "date must be YYYY-MM-DD"),
    ("weather", {"city": "Paris", "date": "2020-01-01"}, "date must lie in 2026-05-04 to"),
    ("weather", {"city": "Paris", "date": "2030-01-01"}, "date must lie in 2026-05-04 to"),
    ("poi_search", {"address": "museum"}, "region must name a city"),
    ("around_search", {"location": "Nowhere Cafe"}, "location: no place 'Nowhere Cafe'"),
    ("around_search", {"location": "200,95"}, "location must be 'lon,lat' in degrees"),
    ("around_search", {"location": "nan,nan"}, "location must be 'lon,lat' in degrees"),
    ("around_search", {"location": HOTEL.name, "radius": "far"}, "radius must be a number"),
    ("around_search", {"location": HOTEL.name, "radius": -5}, "radius must lie in 1-50000"),
    ("around_search", {"location": HOTEL.name, "radius": 10**5000}, "radius must lie in 1-50000"),
    ("around_search", {"location": HOTEL.name, "keyword": "zoo"}, "no kind of place; kinds: mus"),
    (
        "direction",
        {"origin": HOTEL.name, "destination": CAFE.name, "mode": "rocket"},
        "mode rocket is unknown; modes: driving",
    ),
    ("direction", {"origin": HOTEL.name, "destination": HOTEL.name}, "are the same place"),
    ("direction", {"origin": HOTEL.name}, "direction needs destination"),
    (
        "direction",
        {"origin": HOTEL.name, "destination": CAFE.name, "waypoints": {"a": 1}},
        "waypoints must be text, got dict",
    ),
    (
        "search_flights",
        {"date": "2026-05-12", "from_city": "Paris", "to_city": "paris"},
        "from_city and to_city are the same city",
    ),
    ("web_search", {"query": []}, "query must hold words"),
    ("web_search", {"query": "  "}, "web_search needs query"),
]


@pytest.mark.parametrize(("name", "arguments", "text"), BAD_CALLS)
def test_a_bad_argument_is_an_error_that_says_what_is_accepted(name, arguments, text):
    result = TOOLS.run(ToolCall(name, arguments))
    assert result.is_error and text.replace("'", "") in result.content.replace("'", "")
    assert "\n" not in result.content and len(result.content) < 300


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=30)
    | st.binary(max_size=3)
    | st.sampled_from(["Paris", HOTEL.name, "museum", "2026-05-12", "walking", "2.35,48.85", ";"]),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=25,
)
FEW_VALUES = st.sampled_from(
    ["Paris", "Lyon", HOTEL.name, "museum", "2026-05-12", "2.35,48.85", 10**400, [HOTEL.name]]
) | st.text(max_size=8)
KEYS = sorted({key for s in TOOLS.schemas for key in s["parameters"]["properties"]})


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(
    st.sampled_from(NAMES) | st.text(max_size=9) | VALUES,
    st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=6), VALUES, max_size=5) | VALUES,
)
def test_no_call_raises_and_every_observation_is_short_text(name, arguments):
    result = TOOLS.run(ToolCall(name, arguments))
    assert isinstance(result, ToolResult)
    assert isinstance(result.content, str) and 0 < len(result.content) < 2000


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.sampled_from(list(TOOLS.schemas)), st.lists(FEW_VALUES, min_size=9, max_size=9))
def test_no_call_with_the_right_keys_raises(schema, values):
    arguments = dict(zip(schema["parameters"]["properties"], values, strict=False))
    assert isinstance(TOOLS.run(ToolCall(schema["name"], arguments)), ToolResult)


def test_a_call_takes_under_a_millisecond():
    calls = [
        ToolCall("poi_search", {"address": "cafe", "region": "Paris"}),
        ToolCall("around_search", {"location": HOTEL.name, "keyword": "cafe"}),
        ToolCall("direction", {"origin": HOTEL.name, "destination": CAFE.name}),
        ToolCall("weather", {"city": "Paris", "date": "2026-05-12"}),
        ToolCall("web_search", {"query": "eating in Paris"}),
        ToolCall(
            "search_train_tickets",
            {"date": "2026-05-12", "from_city": "Paris", "to_city": "Lyon"},
        ),
    ]
    for each in calls:
        TOOLS.run(each)
    started = time.process_time()
    for each in calls * 20:
        TOOLS.run(each)
    assert (time.process_time() - started) / 120 < 1e-3
