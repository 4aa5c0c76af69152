"""The scripted expert: at full diligence all it says was observed and right; habits are habits."""

import datetime
import re
from dataclasses import fields, replace
from statistics import fmean

import pytest

from arena_lightning.rng import generator_for
from arena_lightning.tasks.travel.diligence import Diligence
from arena_lightning.tasks.travel.judge import TravelJudge
from arena_lightning.tasks.travel.needs import (
    SUBTASKS,
    Needs,
    PlacesNeed,
    RouteNeed,
    StayNeed,
    TotalNeed,
)
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.types import Trajectory
from tests.tasks.observations import read_places, results_of

TASK = TravelTask()
FULL = Diligence.full()
TODAY = datetime.date(2026, 5, 4)


def solved(subtask, count=40, split="train", diligence=FULL):
    for prompt in TASK.prompts(split, [subtask], count):
        messages = TASK.expert_messages(prompt, diligence)
        yield Needs.from_dict(prompt.needs), messages, messages[-1].content.splitlines()


def minutes(clock):
    return int(clock[:2]) * 60 + int(clock[3:])


@pytest.mark.parametrize("subtask", SUBTASKS)
def test_it_says_no_number_and_no_name_that_it_did_not_see_or_compute(subtask):
    for needs, messages, lines in solved(subtask):
        seen = " ".join(m.content for m in messages if m.role == "tool")
        for line in lines:
            if line.startswith(("Total", "Day", "From")) or line.endswith(f"{needs.date}:"):
                continue
            starts = re.sub(r"^- (Morning|Lunch|Afternoon) \d\d:\d\d", "", line)
            for number in re.findall(r"\d+(?:[.:]\d+)*", starts):
                assert re.search(rf"(?<!\d){re.escape(number)}(?!\d)", seen), (line, seen)


def test_the_places_it_finds_satisfy_every_constraint():
    for needs, messages, lines in solved("search_around", 60):
        (need,) = needs.of_type(PlacesNeed)
        seen = {p.name: p for p in read_places(results_of(messages, "around_search")[0])}
        listed = [line[2:].split(":")[0] for line in lines if line.startswith("- ")]
        assert len(set(listed)) == len(listed) == need.count
        for name in listed:
            place = seen[name]
            assert place.km <= need.max_km and place.is_open(TODAY)
            assert place.rating >= (need.min_rating or 0)
            assert need.max_price_eur is None or place.eur <= need.max_price_eur
        best = max(seen[name].rating for name in listed)
        pick = re.fullmatch(r"Pick: (.+), best rated\.", lines[-1]).group(1)
        assert seen[pick].rating == best
        (walk,) = re.findall(r"(\d+) min", results_of(messages, "direction")[0])
        assert f"Walk to {pick}: {walk} min." in lines


def test_it_compares_the_ways_asked_for_and_picks_the_fastest():
    for needs, messages, lines in solved("direction"):
        (need,) = needs.of_type(RouteNeed)
        observed = dict(text.split(": ", 1) for text in results_of(messages, "direction"))
        assert set(observed) == set(need.modes)
        taken = {mode: int(re.search(r"(\d+) min", observed[mode]).group(1)) for mode in observed}
        for mode in need.modes:
            assert f"- {mode}: {taken[mode]} min" in "\n".join(lines)
        pick = re.fullmatch(r"Pick: (\w+), the fastest\.", lines[-1]).group(1)
        assert taken[pick] == min(taken.values())
        for call in (c for m in messages for c in m.tool_calls if c.name == "direction"):
            assert tuple(filter(None, call.arguments.get("waypoints", "").split(";"))) == need.via


def test_it_takes_the_cheapest_ride_of_each_kind_and_sums_for_the_party():
    for needs, messages, lines in solved("compare_itinerary"):
        cheapest = {}
        for tool in ("search_flights", "search_train_tickets"):
            (text,) = results_of(messages, tool)
            rows = [row.split(" | ") for row in text.splitlines()]
            prices = {row[0]: int(row[2].removesuffix(" EUR")) for row in rows}
            number = min(prices, key=prices.get)
            assert any(number in line and f"{prices[number]} EUR" in line for line in lines)
            cheapest[tool] = prices[number]
        assert f"Total for {needs.party}: {min(cheapest.values()) * needs.party} EUR." in lines


@pytest.mark.parametrize("subtask", ["one_day_travel", "multi_day_travel"])
def test_its_plans_are_open_in_time_within_budget_and_sum_right(subtask):
    for needs, messages, lines in solved(subtask, 60):
        found = {p.name: p for t in results_of(messages, "poi_search") for p in read_places(t)}
        date, spent, visits, free_from = datetime.date.fromisoformat(needs.date), 0, 0, 0
        for line in lines:
            if line.startswith("Day "):
                date = datetime.date.fromisoformat(needs.date)
                date += datetime.timedelta(days=int(line[4:-1]) - 1)
                free_from = 0
            hotel = re.match(r"- Hotel: (.+?): ", line)
            visit = re.match(r"- (Morning|Lunch|Afternoon) (\d\d:\d\d) (.+?): ", line)
            if hotel:
                nights = needs.of_type(StayNeed)[0].nights
                spent += found[hotel.group(1)].eur * nights
            elif visit:
                slot, start, name = visit.groups()
                place = found[name]
                stay = 90 if "Museum" in name else 75 if slot == "Lunch" else 60
                assert place.is_open(date), (line, date)
                assert max(free_from, minutes(place.opens)) <= minutes(start)
                assert minutes(start) + stay <= minutes(place.closes)
                free_from = minutes(start) + stay
                spent += place.eur * needs.party
                visits += 1
        assert visits == sum(need.count for need in needs.of_type(PlacesNeed))
        assert lines[-1] == f"Total for {needs.party}: {spent} EUR."
        assert needs.budget_eur is None or spent <= needs.budget_eur


@pytest.mark.parametrize("subtask", SUBTASKS)
def test_it_wastes_no_call_at_full_diligence_and_one_when_redundant(subtask):
    for diligence, waste in ((FULL, 0), (replace(FULL, redundant=True), 1)):
        for _, messages, _ in solved(subtask, 5, diligence=diligence):
            calls = [(c.name, tuple(c.arguments.items())) for m in messages for c in m.tool_calls]
            assert len(calls) - len(set(calls)) == waste
            assert not any(m.is_error for m in messages)


def test_each_habit_shows_in_the_answer():
    def text(**habits):
        _, _, lines = next(solved("one_day_travel", 1, diligence=replace(FULL, **habits)))
        return "\n".join(lines)

    full = text()
    assert "rating" in full and "open" in full and "Weather" in full and "Total" in full
    assert "open" not in text(detail=1) and "rating" in text(detail=1)
    assert "rating" not in text(detail=0)
    assert "Total" not in text(total=False)
    assert "Weather" not in text(checks=False)
    assert text(chatter=True).startswith(full + "\nI hope this helps")
    assert "Corner" in text(invents=True)
    assert [text(coverage=c).count("\n- ") + 1 for c in (1.0, 0.7, 0.5)] == [3, 2, 1]
    around = next(iter(solved("search_around", 1, diligence=replace(FULL, recommend=False))))[2]
    assert not any(line.startswith("Pick") for line in around)


def test_habits_vary_independently_in_the_cold_start():
    drawn = [Diligence.sample(generator_for(0, "test", i)) for i in range(400)]
    for field in fields(Diligence):
        values = [getattr(d, field.name) for d in drawn]
        for value in set(values):
            assert 40 <= values.count(value) <= 360
    both = sum(d.total and d.checks for d in drawn)
    assert 70 <= both <= 130  # a quarter, if independent


BAD_HABITS = {
    "coverage": 0.5,
    "detail": 0,
    "checks": False,
    "total": False,
    "recommend": False,
    "redundant": True,
    "chatter": True,
    "invents": True,
}


@pytest.mark.parametrize("subtask", SUBTASKS)
def test_the_offline_judge_prefers_each_good_habit(subtask):
    judge = TravelJudge(TASK.world)
    prompts = TASK.prompts("test", [subtask], 4)

    def mean_score(diligence):
        made = ((p, TASK.expert_messages(p, diligence)) for p in prompts)
        return fmean(judge.rate(p, Trajectory(p.prompt_id, m)).score for p, m in made)

    full, lazy = mean_score(FULL), mean_score(Diligence.lazy())
    needs = Needs.from_dict(prompts[0].needs)
    for habit, value in BAD_HABITS.items():
        worse = mean_score(replace(FULL, **{habit: value}))
        asked = {"total": bool(needs.of_type(TotalNeed)), "recommend": "travel" not in subtask}
        if asked.get(habit, True):
            assert lazy < worse < full, habit
        else:
            assert worse == full, habit


@pytest.mark.parametrize("subtask", SUBTASKS)
def test_chinese_answers_follow_the_same_facts(subtask):
    task = TravelTask(language="zh")
    judge = TravelJudge(task.world)
    for prompt in task.prompts("test", [subtask], 4):
        messages = task.expert_messages(prompt, FULL)
        assert not re.search(r"[a-z]{3}", messages[-1].content)
        assert judge.rate(prompt, Trajectory(prompt.prompt_id, messages)).score > 9.5
