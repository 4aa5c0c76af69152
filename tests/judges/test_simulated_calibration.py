"""The default noise, measured on real groups: travel experts of mixed diligence."""

import asyncio
from functools import cache

import numpy as np
import pytest

from arena_lightning.judges.simulated import NoiseConfig, NoisyJudge
from arena_lightning.tasks.travel.diligence import Diligence
from arena_lightning.tasks.travel.judge import TravelJudge
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.types import Trajectory

GROUP_SIZE = 8


@cache
def groups():
    """(judge, [(prompt, trajectories)], true scores `[prompt, group]`)."""
    task = TravelTask()
    judge = TravelJudge(task.world)
    made = []
    for index, prompt in enumerate(task.prompts("train", count=30)):
        rng = np.random.default_rng(index)
        messages = (task.expert_messages(prompt, Diligence.sample(rng)) for _ in range(GROUP_SIZE))
        made.append((prompt, [Trajectory(prompt.prompt_id, said) for said in messages]))
    true = np.array([[judge.rate(prompt, t).score for t in group] for prompt, group in made])
    return judge, made, true


def pointwise(seed):
    judge, made, _ = groups()
    noisy = NoisyJudge(judge, seed)

    async def run():
        return [[(await noisy.score(p, t)).score for t in group] for p, group in made]

    return np.array(asyncio.run(run()))


def pairwise(seed, both_orders):
    """Score differences `[prompt, group, group]`, summed over the orders shown."""
    judge, made, _ = groups()
    noisy = NoisyJudge(judge, seed)

    async def difference(prompt, one, two):
        verdict = await noisy.compare(prompt, one, two)
        margin = verdict.score_first - verdict.score_second
        if both_orders:
            verdict = await noisy.compare(prompt, two, one)
            margin += verdict.score_second - verdict.score_first
        return margin

    async def run():
        return [[[await difference(p, a, b) for b in group] for a in group] for p, group in made]

    return np.array(asyncio.run(run()))


def share_right(margins):
    """Share of pairs whose better member is found; ties count half."""
    _, _, true = groups()
    truth = np.sign(np.round(true[:, :, None] - true[:, None, :], 9))
    found = np.sign(np.round(margins, 9))
    decided = truth != 0
    return float(np.mean(np.where(found == 0, 0.5, found == truth)[decided]))


def test_pointwise_scores_show_the_discrimination_collapse_of_fig_1a():
    """On a 0-1 scale: sigma within a group about 0.03, sigma of the noise about 0.02."""
    scores = np.array([pointwise(seed) for seed in range(6)]) / 10
    sigma_noise = np.sqrt(scores.var(axis=0, ddof=1).mean())
    within = scores.mean(axis=0).var(axis=1, ddof=1).mean() - sigma_noise**2 / len(scores)
    assert np.sqrt(within) == pytest.approx(0.03, abs=0.006)
    assert sigma_noise == pytest.approx(0.02, abs=0.003)


def test_true_scores_of_a_group_differ_far_more_than_the_squeezed_ones():
    _, _, true = groups()
    within = np.sqrt(true.var(axis=1, ddof=1).mean())
    squeezed = np.sqrt(pointwise(0).var(axis=1, ddof=1).mean())
    assert within == pytest.approx(1.4, abs=0.3)
    assert squeezed < 0.35 * within


def test_comparison_discriminates_better_than_two_scores_and_both_orders_better_than_one():
    scores = pointwise(0)
    alone = share_right(scores[:, :, None] - scores[:, None, :])
    one, both = share_right(pairwise(0, False)), share_right(pairwise(0, True))
    assert 0.72 < alone < 0.86
    assert both > one > alone + 0.02
    assert both > alone + 0.05


def test_orders_disagree_now_and_then_as_position_bias_makes_them():
    margins = pairwise(0, False)
    swapped = -margins.transpose(0, 2, 1)
    off_diagonal = ~np.eye(GROUP_SIZE, dtype=bool)
    flips = np.mean((margins * swapped < 0)[:, off_diagonal])
    assert 0.1 < flips < 0.3
    assert margins[:, off_diagonal].mean() == pytest.approx(NoiseConfig().position_bias, abs=0.06)
