"""No attack ever raises a score, whatever the trajectory it starts from.

Bases are experts of every diligence, some with dropped lines and wrong figures as a small model
makes them. Attacks are in `travel_attacks.py`.
"""

import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_lightning.tasks.travel.diligence import Diligence
from arena_lightning.tasks.travel.judge import TravelJudge
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.types import Message, ToolCall, Trajectory
from tests.tasks.travel_attacks import ANSWER_ATTACKS, PATH_ATTACKS, with_answer

SLACK = 1e-9


@cache
def bases(language):
    """(prompt, trajectory, its score) of full, lazy, sampled and spoilt experts."""
    task = TravelTask(language=language)
    judge = TravelJudge(task.world)
    found = []
    for index, prompt in enumerate(
        [*task.prompts("train", count=20), *task.prompts("test", count=15)]
    ):
        rng = np.random.default_rng(index)
        habits = [Diligence.full(), Diligence.lazy(), Diligence.sample(rng), Diligence.sample(rng)]
        for habit in habits:
            base = Trajectory(prompt.prompt_id, task.expert_messages(prompt, habit, seed=index))
            for trajectory in (base, spoilt(base, rng)):
                found.append((prompt, trajectory, judge.rate(prompt, trajectory).score))
    return task, judge, found


def spoilt(base, rng):
    """Lose a line, and change one digit in ten."""
    lines = base.answer.splitlines()
    if len(lines) > 2:
        lines.pop(int(rng.integers(len(lines))))
    text = "\n".join(lines)
    digit = lambda match: str(rng.integers(10)) if rng.random() < 0.1 else match.group()  # noqa: E731
    return with_answer(base, re.sub(r"\d", digit, text))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("attack", (*ANSWER_ATTACKS, *PATH_ATTACKS), ids=lambda a: a.__name__)
def test_attack_never_raises_a_score(attack, language):
    task, judge, found = bases(language)
    changed = falls = 0
    for index, (prompt, base, before) in enumerate(found):
        attacked = attack(base, prompt, task.toolset.run, np.random.default_rng(index))
        after = judge.rate(prompt, attacked).score
        assert after <= before + SLACK, f"{prompt.query}\n{base.answer}\n--\n{attacked.answer}"
        changed += attacked is not base
        falls += after < before - 0.05
    assert changed > 25, "the attack must attack something"
    assert falls > 0.25 * changed, "the attack should cost something on most answers"


def test_two_attacks_at_once_gain_nothing_either():
    task, judge, found = bases("en")
    for index, (prompt, base, before) in enumerate(found):
        rng = np.random.default_rng(index)
        attacked = base
        for chosen in rng.choice(len(ANSWER_ATTACKS), size=2, replace=False):
            attacked = ANSWER_ATTACKS[chosen](attacked, prompt, task.toolset.run, rng)
        assert judge.rate(prompt, attacked).score <= before + SLACK


def test_attacks_on_the_best_answer_cost_at_least_a_visible_amount():
    task, judge, found = bases("en")
    best = [(prompt, base) for prompt, base, score in found if score > 10 - 1e-6]
    assert len(best) >= 20
    for attack in (*ANSWER_ATTACKS, *PATH_ATTACKS):
        drops = []
        for index, (prompt, base) in enumerate(best):
            attacked = attack(base, prompt, task.toolset.run, np.random.default_rng(index))
            if attacked is not base and attacked.messages != base.messages:
                drops.append(10 - judge.rate(prompt, attacked).score)
        assert np.mean(drops) > 0.1, attack.__name__


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.text(max_size=200), st.integers(0, 10_000))
def test_any_text_added_to_a_perfect_answer_adds_nothing(text, index):
    _, judge, found = bases("en")
    prompt, base, before = found[8 * (index % 20)]
    after = judge.rate(prompt, with_answer(base, base.answer + "\n" + text)).score
    assert after <= before + SLACK


GARBAGE = st.text(
    alphabet=st.sampled_from("0123456789.:-/|*#€$%°~ \n\tabCDE评分元公里分钟★<>{}\"'\\,;()"),
    max_size=200,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["location", "date", "mode", "origin", "waypoints", "region", "keyword"]),
    st.none() | st.integers() | GARBAGE | st.lists(GARBAGE, max_size=3) | st.booleans(),
    max_size=4,
)
TOOLS = st.sampled_from(["poi_search", "direction", "weather", "search_flights", "nonsense", ""])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.integers(0, 19),
    st.lists(st.tuples(TOOLS, ARGUMENTS, GARBAGE, st.booleans()), max_size=4),
    GARBAGE | st.text(max_size=100),
    st.booleans(),
)
def test_garbage_never_crashes_and_stays_on_the_scale(index, calls, answer, run):
    task, judge, found = bases("en")
    prompt = found[8 * index][0]
    messages = []
    for name, arguments, text, is_error in calls:
        call = ToolCall(name, arguments)
        if run:
            result = task.toolset.run(call)
            text, is_error = result.content, result.is_error
        messages.append(Message("assistant", text, tool_calls=(call,)))
        messages.append(Message("tool", text, name=name, is_error=is_error))
    trajectory = Trajectory(prompt.prompt_id, (*messages, Message("assistant", answer)))
    score = judge.rate(prompt, trajectory)
    assert 0 <= score.score <= 10
    assert all(0 <= value <= 10 for value in score.dimensions.values())
