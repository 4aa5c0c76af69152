"""Ranking by scores: the baselines, worked out by hand; failures are never scores."""

import asyncio

import numpy as np
import pytest

from arena_lightning.arena import ScoringArena, advantages_from_scores
from arena_lightning.errors import ConfigError, JudgeError
from arena_lightning.protocols import Score
from arena_lightning.types import Group, Message, Prompt, Trajectory, Usage


class TableJudge:
    """Scores an answer by its number; None fails."""

    name = "table"

    def __init__(self, scores):
        self.scores = scores
        self.num_in_flight = self.most_in_flight = 0

    async def score(self, prompt, trajectory):
        self.num_in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.num_in_flight)
        await asyncio.sleep(0)
        self.num_in_flight -= 1
        value = self.scores[int(trajectory.answer)]
        if value is None:
            raise JudgeError("no usable reply")
        return Score(value, {"detail": value}, Usage(1, 10, 5, 0.1))

    async def score_group(self, prompt, trajectories, seed=0):
        if None in self.scores:
            raise JudgeError("no usable reply")
        return [Score(v, {}, Usage(1 if i == 0 else 0)) for i, v in enumerate(self.scores)]


def run(scores, **options):
    group = Group(
        Prompt("p", "Where to?"),
        tuple(
            Trajectory("p", (Message("assistant", str(i)),), index=i) for i in range(len(scores))
        ),
    )
    judge = TableJudge(scores)
    result = asyncio.run(ScoringArena(judge, **options).run_group(group))
    return result, judge


def test_pointwise_advantages_are_the_scores_centred_and_divided_by_their_spread():
    result, _ = run([1.0, 2.0, 3.0, 6.0])
    # Mean 3, squares 4 + 1 + 0 + 9 = 14, sample variance 14 / 3.
    expected = np.array([-2.0, -1.0, 0.0, 3.0]) / (14 / 3) ** 0.5
    np.testing.assert_allclose(result.advantages, expected, rtol=1e-5)
    np.testing.assert_array_equal(result.standings.ranks, [3, 2, 1, 0])
    assert (result.usage.calls, result.usage.prompt_tokens) == (4, 40)
    assert result.dimension_means == {"detail": 3.0}


def test_only_the_order_counts_with_pointwise_ranks():
    near, _ = run([1.0, 2.0, 3.0, 3.1], ranking="pointwise_ranks")
    far, _ = run([1.0, 2.0, 3.0, 99.0], ranking="pointwise_ranks")
    np.testing.assert_array_equal(near.advantages, far.advantages)
    # Ranks 3 2 1 0: rewards 0, 1/3, 2/3, 1 have a sample deviation of sqrt(5/27).
    expected = np.array([-0.5, -1 / 6, 1 / 6, 0.5]) / (5 / 27) ** 0.5
    np.testing.assert_allclose(near.advantages, expected, rtol=1e-5)


@pytest.mark.parametrize("ranking", ["pointwise", "pointwise_ranks", "listwise"])
def test_equal_scores_teach_nothing(ranking):
    result, _ = run([7.0, 7.0, 7.0], ranking=ranking)
    np.testing.assert_array_equal(result.advantages, np.zeros(3))
    assert not result.decided and result.num_ties == 3


def test_a_failed_score_is_left_out_of_the_others_and_gets_no_advantage():
    result, _ = run([1.0, None, 3.0, 5.0, 4.0])
    assert result.advantages[1] == 0.0 and np.isnan(result.standings.scores[1])
    np.testing.assert_array_equal(
        result.advantages[[0, 2, 3, 4]], advantages_from_scores(np.array([1.0, 3.0, 5.0, 4.0]))
    )
    assert result.num_failed == 1 and not result.dropped
    assert result.standings.ranks[1] == 2.0  # the middle, by no one's verdict


def test_too_many_failures_drop_the_group_and_raise_is_a_choice():
    result, _ = run([1.0, None, None, 5.0])
    assert result.dropped
    np.testing.assert_array_equal(result.advantages, np.zeros(4))
    with pytest.raises(JudgeError):
        run([1.0, None, 3.0], on_judge_failure="raise")


def test_listwise_is_one_call_and_fails_as_a_whole():
    result, _ = run([1.0, 2.0, 3.0], ranking="listwise")
    assert result.usage.calls == 1
    np.testing.assert_allclose(result.advantages, [-1.0, 0.0, 1.0], atol=1e-5)
    result, _ = run([1.0, None, 3.0], ranking="listwise")
    assert result.dropped and result.num_failed == 3
    np.testing.assert_array_equal(result.advantages, np.zeros(3))


def test_a_score_that_is_not_finite_is_a_failure():
    result, _ = run([1.0, float("nan"), 3.0, 4.0])
    assert result.num_failed == 1 and result.advantages[1] == 0.0


def test_calls_in_flight_are_bounded():
    _, judge = run([float(i) for i in range(16)], concurrency=3)
    assert judge.most_in_flight == 3


def test_settings_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="ranking"):
        ScoringArena(TableJudge([]), "best")
    with pytest.raises(ConfigError, match="finite"):
        advantages_from_scores(np.array([1.0, np.inf]))
