"""The noise model: each fault alone, determinism, and the claim that nobody mistakes it."""

import asyncio

import numpy as np
import pytest

from arena_lightning.errors import ConfigError, JudgeError
from arena_lightning.judges.simulated import NoiseConfig, NoisyJudge
from arena_lightning.protocols import Judge, Score
from arena_lightning.types import Message, Prompt, ToolCall, Trajectory, Verdict

QUIET = {
    "pointwise_compression": 1.0,
    "pairwise_compression": 1.0,
    "pointwise_noise": 0.0,
    "score_noise": 0.0,
    "position_bias": 0.0,
    "rounding": "none",
    "tie_grid": 0.0,
}
PROMPT = Prompt("p", "Where to?")


class NumberJudge:
    """Reads the score off the answer."""

    name = "number"

    async def score(self, prompt, trajectory):
        value = float(trajectory.answer.split()[0])
        return Score(value, {"half": value / 2})

    async def compare(self, prompt, first, second):
        a, b = await self.score(prompt, first), await self.score(prompt, second)
        return Verdict(a.score, b.score, a.dimensions, b.dimensions, judge=self.name)


def saying(text, index=0):
    return Trajectory("p", (Message("assistant", text),), index=index)


def judge_with(seed=0, **changes):
    return NoisyJudge(NumberJudge(), seed, NoiseConfig(**{**QUIET, **changes}))


def score(judge, text, prompt=PROMPT):
    return asyncio.run(judge.score(prompt, saying(text)))


def compare(judge, first, second, prompt=PROMPT):
    return asyncio.run(judge.compare(prompt, saying(first), saying(second)))


def many(seed=0, size=300, **changes):
    """Scores of distinct texts with the same true score 5."""
    judge = judge_with(seed, **changes)

    async def run():
        return [(await judge.score(PROMPT, saying(f"5 {i}"))).score for i in range(size)]

    return np.array(asyncio.run(run()))


def test_it_is_a_judge_and_says_that_it_is_simulated():
    judge = judge_with()
    assert isinstance(judge, Judge)
    for text in (
        judge.name,
        repr(judge),
        compare(judge, "1", "2").judge,
        score(judge, "1").comment,
    ):
        assert "simulated" in text and "not an LLM" in text
    assert "score_noise=0.0" in repr(judge)


def test_disabled_passes_everything_through_unchanged():
    judge = NoisyJudge(NumberJudge(), 0, NoiseConfig(enabled=False, failure_rate=1.0))
    assert score(judge, "3.21") == Score(3.21, {"half": 1.605})
    assert compare(judge, "3.21", "4.5") == asyncio.run(
        NumberJudge().compare(PROMPT, saying("3.21"), saying("4.5"))
    )
    assert "off" in judge.name


def test_with_every_fault_at_zero_scores_are_the_true_ones():
    judge = judge_with()
    assert score(judge, "3.21").score == pytest.approx(3.21)
    verdict = compare(judge, "3.21", "4.5")
    assert (verdict.score_first, verdict.score_second) == pytest.approx((3.21, 4.5))
    assert verdict.dimensions_second["half"] == pytest.approx(2.25)


def test_compression_squeezes_toward_the_centre():
    judge = judge_with(pointwise_compression=0.25, pairwise_compression=0.5, centre=6.0)
    assert score(judge, "2").score == pytest.approx(5.0)
    assert score(judge, "10").score == pytest.approx(7.0)
    assert compare(judge, "2", "10").score_first == pytest.approx(4.0)


def test_noise_has_the_stated_sigma_and_no_bias():
    scores = many(pointwise_noise=0.4, size=1500)
    assert scores.std() == pytest.approx(0.4, rel=0.08)
    assert scores.mean() == pytest.approx(5.0, abs=0.04)


def test_rounding_and_tie_grid_put_scores_on_their_step():
    assert score(judge_with(rounding="integer"), "3.5").score == 4.0
    assert score(judge_with(rounding=0.25), "3.3").score == pytest.approx(3.25)
    verdict = compare(judge_with(tie_grid=0.5), "3.3", "3.7")
    assert verdict.score_first == verdict.score_second == 3.5


def test_position_bias_goes_to_whoever_is_first_and_cancels_over_both_orders():
    judge = judge_with(position_bias=0.3)
    one, two = compare(judge, "5", "5 again"), compare(judge, "5 again", "5")
    assert one.score_first - one.score_second == pytest.approx(0.3)
    assert one.score_first + two.score_second == pytest.approx(one.score_second + two.score_first)


def test_same_question_gets_the_same_answer_in_any_process_order():
    noisy = {"score_noise": 1.0, "pointwise_noise": 1.0}
    first, second = judge_with(**noisy), judge_with(**noisy)
    score(second, "1")
    assert compare(first, "3", "4") == compare(second, "3", "4")
    assert score(first, "3") == score(second, "3")


def test_answer_depends_on_seed_order_prompt_and_text_but_not_on_the_index():
    noisy = {"score_noise": 1.0, "pointwise_noise": 1.0}
    judge = judge_with(**noisy)
    base = score(judge, "3").score
    assert base != score(judge_with(seed=1, **noisy), "3").score
    assert base != score(judge, "3", Prompt("p", "Where else?")).score
    assert base != score(judge, "3 ").score
    assert base == asyncio.run(judge.score(PROMPT, saying("3", index=5))).score
    there, back = compare(judge, "5", "5 b"), compare(judge, "5 b", "5")
    assert there.score_first != back.score_second


def test_different_tool_calls_are_different_questions():
    judge = judge_with(pointwise_noise=1.0)
    scores = set()
    for radius in (1000, 2000):
        call = ToolCall("around_search", {"radius": radius})
        said = (Message("assistant", "", tool_calls=(call,)), Message("assistant", "3"))
        scores.add(asyncio.run(judge.score(PROMPT, Trajectory("p", said))).score)
    assert len(scores) == 2


def test_scores_stay_on_the_scale():
    judge = judge_with(pointwise_noise=9.0, score_noise=9.0)
    scores = [score(judge, f"5 {i}").score for i in range(50)]
    assert min(scores) == 0.0 and max(scores) == 10.0


def test_failures_come_at_the_rate_and_are_errors():
    judge = judge_with(failure_rate=0.3)
    failures = 0
    for i in range(400):
        try:
            compare(judge, f"5 {i}", "6")
        except JudgeError as error:
            failures += 1
            assert "simulated failure" in str(error) and "failure_rate" in str(error)
    assert 0.22 < failures / 400 < 0.38


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pointwise_compression": 1.5}, "`pointwise_compression` must lie in 0-1, got 1.5"),
        ({"failure_rate": -0.1}, "`failure_rate` must lie in 0-1"),
        ({"score_noise": -1.0}, "`score_noise` must be at least 0 points"),
        ({"rounding": "halves"}, "`rounding` must be .*got 'halves'"),
        ({"rounding": 0.0}, "`rounding` must be"),
        ({"scale": 0.0}, "`scale` must be above 0"),
        ({"centre": 11.0}, "`centre` must lie within the scale"),
    ],
)
def test_settings_out_of_range_name_the_key(changes, message):
    with pytest.raises(ConfigError, match=message):
        NoiseConfig(**changes)
