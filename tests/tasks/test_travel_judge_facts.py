"""What the offline judge makes of single facts, calls and styles."""

import re
import time
from dataclasses import replace

import pytest

from arena_lightning.types import Message, ToolCall, Trajectory
from tests.tasks.travel_cases import (
    FULL,
    answering,
    lines_changed,
    of_subtask,
    played,
    rated,
    world,
)

# --- Facts


def test_wrong_fact_is_worse_than_none_and_none_worse_than_right():
    for subtask in ("search_around", "one_day_travel"):
        prompt = of_subtask(subtask)
        full = played(prompt)
        without = lines_changed(full, lambda line: line.replace(" EUR,", " x,", 1))
        wrong = lines_changed(full, lambda line: line.replace(" EUR,", "7 EUR,", 1))
        right, none, false = (rated(prompt, t).score for t in (full, without, wrong))
        assert right > none > false


def test_true_fact_that_was_never_observed_earns_nothing():
    """The same true answer without the calls behind it: grounding, not luck."""
    for prompt in world()[2]:
        guessed = Trajectory(prompt.prompt_id, played(prompt).messages[-1:])
        score = rated(prompt, guessed)
        assert score.dimensions["answer_details"] == 0
        assert score.dimensions["answer_relevance"] < 3
        assert score.dimensions["path_breadth"] == 0


def test_wrong_total_is_worse_than_no_total():
    for subtask in ("compare_itinerary", "one_day_travel", "multi_day_travel"):
        prompt = of_subtask(subtask)
        full = played(prompt)
        wrong = lines_changed(full, lambda x: x.replace(" EUR", "1 EUR") if "Total" in x else x)
        missing = played(prompt, replace(FULL, total=False))
        scores = [rated(prompt, t).score for t in (full, missing, wrong)]
        assert scores[0] > scores[1] > scores[2]


def test_place_that_breaks_a_constraint_costs_more_than_leaving_it_out():
    task, _, _ = world()
    prompt = next(
        p
        for p in task.prompts("train", ["search_around"], 60)
        if p.needs["items"][0]["min_rating"] is not None and p.needs["items"][0]["count"] == 3
    )
    need, full = prompt.needs["items"][0], played(prompt)
    city = task.world.city(prompt.needs["city"])
    listed = [line for line in full.answer.splitlines() if line.startswith("- ")]
    poor = next(
        place
        for place in task.world.places(city)
        if place.kind == need["kind"] and place.rating < need["min_rating"]
    )
    left_out = full.answer.replace(listed[-1] + "\n", "")
    broken = full.answer.replace(listed[-1], f"- {poor.name}")
    scores = [
        rated(prompt, answering(full, text)).score for text in (full.answer, left_out, broken)
    ]
    assert scores[0] > scores[1] > scores[2]


def test_plan_for_a_closed_day_or_hour_is_not_feasible():
    prompt = of_subtask("one_day_travel")
    full = played(prompt)
    late = lines_changed(full, lambda line: re.sub(r"Morning \d\d", "Morning 04", line))
    assert late.answer != full.answer
    assert (
        rated(prompt, late).dimensions["answer_feasibility"]
        < rated(prompt, full).dimensions["answer_feasibility"]
    )


def test_false_reason_for_a_pick_earns_no_recommendation():
    prompt = of_subtask("compare_itinerary")
    full = played(prompt)
    flight, train = (
        next(line for line in full.answer.splitlines() if word in line).split(":")[0].split()[-1]
        for word in ("Flight", "Train")
    )
    pick = next(line for line in full.answer.splitlines() if line.startswith("Pick"))
    other = pick.replace(flight, "#").replace(train, flight).replace("#", train)
    changed = answering(full, full.answer.replace(pick, other))
    assert rated(prompt, changed).score < rated(prompt, full).score - 0.2


# --- Calls


def test_wrong_arguments_serve_no_need():
    prompt = of_subtask("compare_itinerary")
    task, full = world()[0], played(prompt)
    messages = []
    for message in full.messages:
        calls = tuple(
            ToolCall(c.name, {**c.arguments, "date": "2026-05-05"}) for c in message.tool_calls
        )
        messages.append(replace(message, tool_calls=calls))
    for position, message in enumerate(messages):
        if message.role == "tool":
            call = messages[0].tool_calls[position - 1]
            messages[position] = replace(message, content=task.toolset.run(call).content)
    assert rated(prompt, replace(full, messages=tuple(messages))).dimensions["path_breadth"] == 0


def test_one_direction_call_with_waypoints_covers_every_point():
    """As the paper's rubric demands: as good as several calls."""
    prompt = of_subtask("one_day_travel")
    full = played(prompt)
    position, turn = next(
        (i, m)
        for i, m in enumerate(full.messages)
        if any("waypoints" in c.arguments for c in m.tool_calls)
    )
    call = next(c for c in turn.tool_calls if "waypoints" in c.arguments)
    single = ToolCall("direction", {k: v for k, v in call.arguments.items() if k != "waypoints"})
    result = Message("tool", world()[0].toolset.run(single).content, name="direction")
    messages = list(full.messages)
    messages[position : position + 2] = [replace(turn, tool_calls=(single,)), result]
    skipping = replace(full, messages=tuple(messages))
    assert (
        rated(prompt, skipping).dimensions["path_breadth"]
        < rated(prompt, full).dimensions["path_breadth"]
    )


def test_unreadable_or_unanswered_call_is_waste():
    prompt = world()[2][0]
    full = played(prompt)
    stray = Message("tool", "Error: not JSON", is_error=True)
    hanging = Message("assistant", "", tool_calls=(ToolCall("weather", {"city": "Lyon"}),))
    for extra in (stray, hanging):
        worse = replace(full, messages=(extra, *full.messages))
        assert rated(prompt, worse).score < rated(prompt, full).score - 0.3


# --- Tolerance of style


def restyled(answer, style):
    def change(line):
        if style == "markdown" and line.startswith("- "):
            name, _, facts = line[2:].partition(": ")
            return f"* **{name}**: {facts}"
        if style == "euro sign":
            words = line.replace(" EUR", "€")
            return words
        if style == "stars":
            return line.replace("rating ", "★ ")
        if style == "long units":
            return line.replace(" km", " kilometers").replace(" min", " minutes")
        if style == "bars" and line.startswith("- "):
            return line.replace(": ", " | ", 1).replace(", ", " | ")
        return line

    return "\n".join(map(change, answer.splitlines()))


@pytest.mark.parametrize("style", ["markdown", "euro sign", "stars", "long units", "bars"])
def test_style_of_an_answer_makes_no_difference(style):
    for prompt in world()[2][:10]:
        full = played(prompt)
        restated = answering(full, restyled(full.answer, style))
        assert rated(prompt, restated).score == pytest.approx(rated(prompt, full).score), style


def test_nested_bullets_belong_to_the_place_above():
    prompt = of_subtask("search_around")
    full = played(prompt)
    nested = answering(
        full,
        "\n".join(
            line.replace(": ", "\n  - ", 1).replace(", ", "\n  - ") if line[:1] == "-" else line
            for line in full.answer.splitlines()
        ),
    )
    assert rated(prompt, nested).score == pytest.approx(rated(prompt, full).score)


def test_shorter_answer_with_the_same_facts_is_as_good():
    for prompt in world()[2]:
        full = played(prompt)
        lines = full.answer.splitlines()
        if lines[0].endswith(":") and not lines[0].startswith("Day"):
            shorter = answering(full, "\n".join(lines[1:]))
            assert rated(prompt, shorter).score >= rated(prompt, full).score - 1e-9


@pytest.mark.parametrize("text", ["A", "A b ", "1.1,1 ", "- X: ", "12:30-", "**", "公里", "Aa' "])
def test_degenerate_loops_are_read_in_linear_time(text):
    """A small model may repeat itself up to the length limit; CPU seconds, so load is no matter."""
    prompt = world()[2][0]
    looping = Trajectory(prompt.prompt_id, (Message("assistant", text * (20_000 // len(text))),))
    started = time.process_time()
    assert rated(prompt, looping).score == 0
    assert time.process_time() - started < 5.0
