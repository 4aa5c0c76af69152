"""A step's judging metrics, against judges whose faults are known."""

import asyncio
from itertools import cycle

import pytest

from arena_lightning.arena import Arena, build_topology
from arena_lightning.errors import JudgeError
from arena_lightning.training.arena_metrics import arena_metrics
from arena_lightning.types import Group, Message, Prompt, Trajectory, Verdict


class ScriptedJudge:
    """True score = the answer's number; `add(first, second)` is what it does to the two scores."""

    name = "scripted"

    def __init__(self, add):
        self.add = add

    async def compare(self, prompt, first, second):
        one, other = float(first.answer), float(second.answer)
        more, less = self.add(int(one), int(other))
        return Verdict(one + more, other + less)


def metrics_of(add, size=4, presentation="both"):
    group = Group(
        Prompt("p", "Where to?"),
        tuple(Trajectory("p", (Message("assistant", str(i)),), index=i) for i in range(size)),
    )
    arena = Arena(build_topology("round_robin"), ScriptedJudge(add), presentation)
    return arena_metrics(asyncio.run(arena.run([group])))


def test_a_bonus_for_the_first_is_bias_and_no_noise():
    metrics = metrics_of(lambda one, other: (0.3, 0.0))
    assert metrics["arena/position_bias"] == pytest.approx(0.3)
    assert metrics["arena/judge_noise"] == pytest.approx(0.0, abs=1e-12)
    assert metrics["arena/flip_fraction"] == 0.0


def test_noise_is_the_spread_of_one_score():
    # Six pairs, 24 scores, +1 and -1 in turn for the contestant shown first: its scores in the two
    # orders differ by +1 or -1, the standard deviation of the difference of two scores.
    signs = cycle([1.0, -1.0, -1.0, 1.0])
    metrics = metrics_of(lambda one, other: (next(signs), 0.0))
    assert metrics["arena/position_bias"] == pytest.approx(0.0)
    assert metrics["arena/judge_noise"] == pytest.approx(1 / 2**0.5)


def test_a_bonus_beyond_every_lead_flips_all_verdicts():
    metrics = metrics_of(lambda one, other: (10.0, 0.0))
    assert metrics["arena/flip_fraction"] == 1.0
    assert metrics["arena/position_bias"] == pytest.approx(10.0)


def test_one_order_tells_neither_and_a_failed_order_is_left_out():
    assert "arena/judge_noise" not in metrics_of(lambda one, other: (0, 0), presentation="random")

    def fails_backwards(one, other):
        if one > other:
            raise JudgeError("no")
        return 5.0, 0.0

    metrics = metrics_of(fails_backwards)
    assert "arena/position_bias" not in metrics
    assert metrics["arena/failed_fraction"] == 1.0
