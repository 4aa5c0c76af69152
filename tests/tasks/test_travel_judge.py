"""The offline judge orders trajectories by what they did and said, and by nothing else."""

import asyncio
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest

from arena_lightning.errors import DataError, JudgeError
from arena_lightning.protocols import Judge
from arena_lightning.tasks.travel.diligence import Diligence
from arena_lightning.types import Message, Prompt, Trajectory
from tests.tasks.travel_cases import FULL, answering, of_subtask, played, rated, world

DIMENSIONS = {
    "path_breadth",
    "path_relevance",
    "path_detail",
    "answer_relevance",
    "answer_feasibility",
    "answer_details",
    "answer_clarity",
}


# --- The contract of a judge


def test_it_is_a_judge_that_says_it_is_no_llm():
    judge = world()[1]
    assert isinstance(judge, Judge)
    assert "not an LLM" in judge.name and "not an LLM" in repr(judge)


def test_comparing_is_scoring_both_whatever_the_order():
    _, judge, prompts = world()
    good, bad = played(prompts[0]), played(prompts[0], Diligence.lazy())
    there = asyncio.run(judge.compare(prompts[0], good, bad))
    back = asyncio.run(judge.compare(prompts[0], bad, good))
    alone = asyncio.run(judge.score(prompts[0], good))
    assert there.score_first == back.score_second == alone.score
    assert there.score_second == back.score_first < alone.score
    assert there.dimensions_first == alone.dimensions
    assert there.judge == judge.name


def test_combined_score_weighs_path_and_answer_as_the_paper_does():
    prompt = of_subtask("one_day_travel")
    score = rated(prompt, played(prompt, replace(FULL, coverage=0.5, chatter=True)))
    assert set(score.dimensions) == DIMENSIONS
    path = [value for name, value in score.dimensions.items() if name.startswith("path_")]
    answer = [value for name, value in score.dimensions.items() if name.startswith("answer_")]
    assert score.score == pytest.approx(0.6 * sum(path) / 3 + 0.4 * sum(answer) / 4)
    assert 0 < score.score < 10


def test_prompt_without_needs_is_refused_and_says_what_to_do():
    prompt = Prompt("user-1", "Where can I eat in Lyon?")
    trajectory = Trajectory("user-1", (Message("assistant", "Otto Cafe"),))
    for question in (
        world()[1].score(prompt, trajectory),
        world()[1].compare(prompt, trajectory, trajectory),
    ):
        with pytest.raises(JudgeError, match=r"'user-1'.*configure an LLM judge"):
            asyncio.run(question)


def test_needs_of_another_schema_are_refused():
    prompt = Prompt("odd", "?", needs={"items": [{"type": "spaceship"}]})
    with pytest.raises(DataError, match="needs must have the keys"):
        rated(prompt, Trajectory("odd", (Message("assistant", "?"),)))


# --- What is good ranks above what is bad


@pytest.mark.parametrize("language", ["en", "zh"])
def test_full_expert_reaches_the_top_of_every_dimension(language):
    for prompt in world(language)[2]:
        score = rated(prompt, played(prompt, FULL, language), language)
        assert score.dimensions == pytest.approx(dict.fromkeys(DIMENSIONS, 10.0)), prompt.query


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("worse", "asked_in"),
    [
        ({"coverage": 0.5}, None),
        ({"detail": 1}, None),
        ({"checks": False}, None),
        ({"total": False}, "total"),
        ({"recommend": False}, "recommend"),
        ({"redundant": True}, None),
        ({"chatter": True}, None),
        ({"invents": True}, None),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_every_habit_moves_the_mean_score_visibly(worse, asked_in, language):
    drops = []
    for prompt in world(language)[2]:
        if asked_in and asked_in not in {item["type"] for item in prompt.needs["items"]}:
            continue
        full, less = (played(prompt, d, language) for d in (FULL, replace(FULL, **worse)))
        drops.append(rated(prompt, full, language).score - rated(prompt, less, language).score)
    assert min(drops) > 0
    assert 0.25 < fmean(drops) < 2.6


@pytest.mark.parametrize(
    ("habit", "better", "worse"),
    [
        ("coverage", 1.0, 0.5),
        ("detail", 2, 1),
        ("detail", 1, 0),
        ("checks", True, False),
        ("total", True, False),
        ("recommend", True, False),
        ("redundant", False, True),
        ("chatter", False, True),
        ("invents", False, True),
    ],
)
def test_a_better_habit_raises_the_mean_whatever_the_other_habits(habit, better, worse):
    """Others drawn at random: the habit never lowers a score by more than a rounding, and helps."""
    gains = []
    for index, prompt in enumerate(world()[2]):
        others = Diligence.sample(np.random.default_rng(index))
        high, low = (replace(others, **{habit: value}) for value in (better, worse))
        gains.append(
            rated(prompt, played(prompt, high)).score - rated(prompt, played(prompt, low)).score
        )
    assert fmean(gains) > 0.05
    assert min(gains) > -0.35


def test_full_beats_sampled_beats_lazy():
    rng = np.random.default_rng(0)
    for prompt in world()[2]:
        full = rated(prompt, played(prompt)).score
        sampled = fmean(
            rated(prompt, played(prompt, Diligence.sample(rng))).score for _ in range(6)
        )
        assert full > sampled > rated(prompt, played(prompt, Diligence.lazy())).score


def test_different_habits_rarely_tie():
    rng = np.random.default_rng(1)
    pairs = ties = 0
    for prompt in world()[2]:
        habits = {Diligence.sample(rng) for _ in range(6)}
        scores = [rated(prompt, played(prompt, habit)).score for habit in habits]
        pairs += len(scores) * (len(scores) - 1) // 2
        ties += sum(a == b for i, a in enumerate(scores) for b in scores[:i])
    assert ties / pairs < 0.1


@pytest.mark.parametrize("finish", ["length", "context", "max_turns", "aborted"])
def test_unfinished_trajectory_gets_nothing_for_its_answer(finish):
    prompt = world()[2][0]
    full = played(prompt)
    cut = rated(prompt, replace(full, messages=full.messages[:-1], finish=finish))
    assert all(v == 0 for name, v in cut.dimensions.items() if name.startswith("answer_"))
    assert cut.dimensions["path_breadth"] > 0


@pytest.mark.parametrize("answer", ["", "   \n ", "Sure!", "I can't help.", "Otto Cafe " * 40])
def test_answer_without_substance_gets_nothing(answer):
    prompt = of_subtask("search_around")
    score = rated(prompt, answering(played(prompt), answer))
    assert sum(v for name, v in score.dimensions.items() if name.startswith("answer_")) < 0.5
