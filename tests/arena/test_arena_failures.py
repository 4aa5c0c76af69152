import math

import numpy as np
import pytest

from arena_lightning.arena import (
    Arena,
    build_topology,
)
from arena_lightning.errors import JudgeError
from arena_lightning.types import Verdict
from tests.arena.fakes import FakeJudge, group_of, run


def test_failed_call_fails_its_match_and_nothing_else():
    groups = [group_of(6, "g0"), group_of(6, "g1")]
    clean = run(Arena(build_topology("round_robin"), FakeJudge()), *groups)
    judge = FakeJudge(fails=[("g0", 2, 4)])
    faulty = run(Arena(build_topology("round_robin"), judge), *groups)
    (failed,) = [m for m in faulty[0].standings.matches if m.status == "failed"]
    assert {failed.first, failed.second} == {2, 4}
    assert failed.score_first is None and failed.score_second is None
    assert faulty[0].num_failed == 1 and not faulty[0].dropped
    others = [m for m in faulty[0].standings.matches if m.status != "failed"]
    assert others == [m for m in clean[0].standings.matches if set(m[:2]) != {2, 4}]
    np.testing.assert_array_equal(faulty[1].standings.ranks, clean[1].standings.ranks)
    assert faulty[1].standings.matches == clean[1].standings.matches
    (call,) = [call for call in faulty[0].calls if call.failed]
    assert (call.first, call.second, call.error) == (2, 4, "no usable verdict")
    assert faulty[0].usage.cost_usd is None and clean[0].usage.cost_usd == 15.0


def test_group_with_too_many_failures_is_dropped_with_zero_advantages():
    fails = [("g0", 0, other) for other in range(1, 4)]
    for fraction, dropped in ((0.5, False), (0.4, True)):
        arena = Arena(
            build_topology("round_robin"), FakeJudge(fails=fails), max_failed_fraction=fraction
        )
        (result,) = run(arena, group_of(4))
        assert result.num_failed == 3
        assert result.dropped is dropped
        assert (result.advantages == 0).all() == dropped
        # Contestant 0 was never measured: no advantage either way.
        assert result.advantages[0] == 0.0


def test_judge_failure_ends_the_run_when_told_to():
    judge = FakeJudge(fails=[("g0", 0, 1)], latency_s=0.01)
    arena = Arena(build_topology("round_robin"), judge, on_judge_failure="raise")
    with pytest.raises(JudgeError, match="no usable verdict"):
        run(arena, group_of(4))
    assert judge.in_flight == 0


def test_failed_pair_is_asked_again_in_a_rematch():
    judge = FakeJudge(fails=[("g0", 0, 1)])
    (result,) = run(Arena(build_topology("double_elimination"), judge), group_of(2))
    assert len(judge.calls) == 4
    assert [match.status for match in result.standings.matches] == ["failed", "failed"]
    assert not result.decided and (result.advantages == 0).all()


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_verdict_that_is_not_finite_is_a_failure(score):
    class Broken(FakeJudge):
        async def compare(self, prompt, first, second):
            return Verdict(score, 1.0)

    (result,) = run(Arena(build_topology("anchor"), Broken()), group_of(3))
    assert result.num_failed == 2 and result.dropped
    assert "scores must be finite" in result.calls[0].error


def test_bug_in_a_judge_surfaces_and_cancels_the_other_calls():
    judge = FakeJudge(raises=5, latency_s=0.01)
    with pytest.raises(ZeroDivisionError, match="a bug in the judge"):
        run(Arena(build_topology("round_robin"), judge, concurrency=4), group_of(6), group_of(4))
    assert judge.in_flight == 0
    # Of 42 calls, only those already in flight, and the slots they left, were used.
    assert len(judge.calls) <= 16
