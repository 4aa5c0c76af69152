"""Queries: solvable with the tools, saying all that is needed, test cities and templates apart."""

import datetime
import itertools
import re

import pytest

from arena_lightning.tasks.travel.geo import distance_km
from arena_lightning.tasks.travel.needs import SUBTASKS, Needs, PlacesNeed, StayNeed
from arena_lightning.tasks.travel.needs import TransportNeed as Trip
from arena_lightning.tasks.travel.places import minutes_of
from arena_lightning.tasks.travel.queries import PLURALS
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.tasks.travel.templates import CHINESE, ENGLISH
from arena_lightning.types import ToolCall
from tests.tasks.observations import read_places

TASK = TravelTask()
TODAY = datetime.date(2026, 5, 4)


def run(name, **arguments):
    result = TASK.toolset.run(ToolCall(name, arguments))
    assert not result.is_error, result.content
    return result.content


def days_of(needs, days):
    first = datetime.date.fromisoformat(needs.date)
    return [first + datetime.timedelta(days=day) for day in range(days)]


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_search_can_be_answered_from_what_one_call_shows(split):
    for prompt in TASK.prompts(split, ["search_around"], 60):
        (need,) = Needs.from_dict(prompt.needs).of_type(PlacesNeed)
        text = run(
            "around_search", location=need.near, radius=need.max_km * 1000, keyword=need.kind
        )
        good = [
            place
            for place in read_places(text)
            if place.km <= need.max_km
            and place.rating >= (need.min_rating or 0)
            and (need.max_price_eur is None or place.eur <= need.max_price_eur)
            and place.is_open(TODAY)
        ]
        assert len(good) >= need.count, prompt.query


@pytest.mark.parametrize("subtask", ["one_day_travel", "multi_day_travel"])
def test_every_plan_has_a_solution_within_the_budget_among_what_the_tools_show(subtask):
    for prompt in TASK.prompts("train", [subtask], 60):
        needs = Needs.from_dict(prompt.needs)
        cost = 0
        for need in needs.of_type(PlacesNeed):
            shown = read_places(run("poi_search", address=need.kind, region=needs.city))
            days = days_of(needs, need.count)
            # Cheapest way of giving each day a place of its own that is open then.
            costs = [
                sum(place.eur for place in chosen)
                for chosen in itertools.permutations(shown, need.count)
                if all(p.is_open(d) for p, d in zip(chosen, days, strict=True))
            ]
            assert costs, prompt.query
            cost += min(costs) * needs.party
        for stay in needs.of_type(StayNeed):
            hotels = read_places(run("poi_search", address="hotel", region=needs.city))
            cost += min(h.eur for h in hotels) * stay.nights
        assert needs.budget_eur is None or cost <= needs.budget_eur, prompt.query


def test_budgets_bind_for_some_queries_and_not_for_others():
    prompts = [Needs.from_dict(p.needs) for p in TASK.prompts("train", ["one_day_travel"], 80)]
    with_budget = [n for n in prompts if n.budget_eur is not None]
    assert 20 < len(with_budget) < 60
    best_costs = []
    for needs in with_budget:
        best = 0
        for need in needs.of_type(PlacesNeed):
            shown = read_places(run("poi_search", address=need.kind, region=needs.city))
            day = datetime.date.fromisoformat(needs.date)
            best += next(p.eur for p in shown if p.is_open(day)) * needs.party
        best_costs.append(best <= needs.budget_eur)
    assert any(best_costs) and not all(best_costs)


def test_trips_are_far_enough_to_fly_and_near_enough_for_a_train_and_have_both():
    for prompt in TASK.prompts("train", ["compare_itinerary"], 40):
        (need,) = Needs.from_dict(prompt.needs).of_type(Trip)
        start, end = TASK.world.city(need.from_city), TASK.world.city(need.to_city)
        assert 200 < distance_km(start.lat, start.lon, end.lat, end.lon) < 900
        trip = {"date": need.date, "from_city": need.from_city, "to_city": need.to_city}
        assert run("search_flights", **trip).count(" EUR") == 3
        assert run("search_train_tickets", **trip).count(" EUR") == 3


def test_a_query_says_in_words_all_that_its_needs_hold():
    for prompt in TASK.prompts("train", count=100) + TASK.prompts("test", count=50):
        needs = Needs.from_dict(prompt.needs)
        assert needs.city in prompt.query
        if needs.subtask != "search_around":
            assert needs.date in prompt.query
        if needs.budget_eur is not None:
            assert f"budget {needs.budget_eur} EUR" in prompt.query
        if needs.subtask in ("compare_itinerary", "one_day_travel", "multi_day_travel"):
            assert re.search(rf"\b{needs.party}\b", prompt.query)
        for need in needs.of_type(PlacesNeed):
            words = (need.kind, PLURALS[need.kind], "lunch")
            assert any(word in prompt.query for word in words)
            if need.near is not None:
                for value in (need.near, f"{need.count} ", f"{need.max_km:g} km"):
                    assert value in prompt.query
            if need.min_rating is not None:
                assert f"rated {need.min_rating}+" in prompt.query
            if need.max_price_eur is not None:
                assert f"up to {need.max_price_eur} EUR" in prompt.query


@pytest.mark.parametrize("templates", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_templates_of_the_test_split_are_none_of_trainings(templates):
    assert tuple(templates) == SUBTASKS
    for parts in templates.values():
        assert parts["train"] and parts["test"] and not set(parts["train"]) & set(parts["test"])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_test_queries_take_place_in_cities_that_training_never_names(language):
    task = TravelTask(language=language)
    held_out = {task.world.shown_name(c) for c in task.world.cities("test")}
    for split in ("cold_start", "train"):
        for prompt in task.prompts(split, count=100):
            needs = Needs.from_dict(prompt.needs)
            named = {needs.city} | {t.to_city for t in needs.of_type(Trip)}
            assert not named & held_out
    for prompt in task.prompts("test", count=50):
        needs = Needs.from_dict(prompt.needs)
        assert {needs.city} | {t.to_city for t in needs.of_type(Trip)} <= held_out


def test_a_query_is_a_function_of_seed_split_subtask_and_number():
    few, many = TASK.prompts("train", count=10), TravelTask().prompts("train", count=25)
    assert few == many[:10]
    assert few != TravelTask(seed=1).prompts("train", count=10)
    texts = [p.query for s in ("cold_start", "train", "test") for p in TASK.prompts(s, count=100)]
    assert len(set(texts)) == len(texts)


def test_needs_survive_the_way_through_json_types():
    for prompt in TASK.prompts("train", count=10):
        assert Needs.from_dict(prompt.needs).to_dict() == prompt.needs


def test_chinese_queries_are_in_chinese():
    for prompt in TravelTask(language="zh").prompts("train", count=20):
        assert prompt.language == "zh"
        assert not re.search(r"[a-zA-Z]{3}|[,?:]", prompt.query), prompt.query


def test_visits_fit_between_the_slots_of_a_plan():
    # Morning from 10:00 or opening, lunch 13:00, afternoon 15:00, each kind's hours as drawn.
    slots = {"museum": (11, 15), "landmark": (10, 15), "park": (10, 15), "restaurant": (13,)}
    for city in TASK.world.cities()[::10]:
        for place in TASK.world.places(city):
            for hour in slots.get(place.kind, ()):
                start = max(hour * 60, minutes_of(place.opens))
                assert start + place.visit_min <= minutes_of(place.closes)
