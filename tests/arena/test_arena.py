import asyncio
from dataclasses import replace

import numpy as np
import pytest

from arena_lightning.arena import (
    TOPOLOGIES,
    Arena,
    Match,
    advantages_from_ranks,
    build_topology,
    play,
)
from arena_lightning.errors import ConfigError
from arena_lightning.rng import generator_for
from arena_lightning.types import Group, Usage, Verdict
from tests.arena.fakes import FakeJudge, group_of, quality, run


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_arena_gives_the_standings_of_play_on_the_same_verdicts(name):
    groups = [group_of(size, f"g{size}") for size in (2, 5, 9)]
    results = run(Arena(TOPOLOGIES[name](), FakeJudge(), seed=3), *groups, step=4)
    for index, (group, result) in enumerate(zip(groups, results, strict=True)):

        def decide(pairing, group=group):
            first, second = (2 * quality(group.prompt, group.trajectories[c]) for c in pairing)
            return Match(*pairing, first, second, "decided")

        order = generator_for(3, "arena/order", 4, index).permutation(len(group))
        expected = play(TOPOLOGIES[name](), len(group), decide, order)
        np.testing.assert_array_equal(result.standings.ranks, expected.ranks)
        np.testing.assert_allclose(result.standings.scores, expected.scores, rtol=1e-12)
        np.testing.assert_array_equal(result.advantages, advantages_from_ranks(expected.ranks))


def test_scores_are_summed_over_both_orders_so_that_position_bias_cancels():
    group = group_of(2)
    judge = FakeJudge(bias=20.0)
    (result,) = run(Arena(build_topology("anchor"), judge), group)
    (match,) = result.standings.matches
    expected = [2 * quality(group.prompt, t) + 20.0 for t in group.trajectories]
    np.testing.assert_allclose([match.score_first, match.score_second], expected)
    assert match.status == "decided"
    assert sorted(judge.calls) == [("g0", 0, 1), ("g0", 1, 0)]
    # Each order names the one shown first: that is a flip.
    assert (result.num_flips, result.num_both_orders) == (1, 1)


def test_an_unbiased_judge_does_not_flip():
    (result,) = run(Arena(build_topology("round_robin"), FakeJudge()), group_of(6))
    assert (result.num_flips, result.num_both_orders) == (0, 15)


def test_random_presentation_asks_once_with_both_orders_about_equally_often():
    judge = FakeJudge()
    arena = Arena(build_topology("round_robin"), judge, presentation="random")
    results = run(arena, *[group_of(10, f"g{index}") for index in range(4)])
    assert len(judge.calls) == 4 * 45
    swapped = sum(first > second for _, first, second in judge.calls)
    # Binomial(180, 1/2) has a standard deviation of 6.7.
    assert 60 < swapped < 120
    # A single order is doubled: the same scale as two orders.
    group = group_of(10, "g0")
    expected = [2 * quality(group.prompt, t) for t in group.trajectories]
    np.testing.assert_allclose(results[0].standings.scores, expected)


def test_second_order_is_asked_only_when_the_first_is_close():
    group, judge = group_of(8), FakeJudge()
    arena = Arena(
        build_topology("round_robin"), judge, presentation="second_if_close", close_margin=2.0
    )
    (result,) = run(arena, group)
    scores = [quality(group.prompt, t) for t in group.trajectories]
    close = {(a, b) for a in range(8) for b in range(a + 1, 8) if abs(scores[a] - scores[b]) <= 2.0}
    assert 0 < len(close) < 28
    asked_twice = {
        (a, b)
        for a in range(8)
        for b in range(a + 1, 8)
        if {("g0", a, b), ("g0", b, a)} <= set(judge.calls)
    }
    assert asked_twice == close
    assert len(judge.calls) == 28 + len(close)
    np.testing.assert_allclose(result.standings.scores, [2 * score for score in scores])


def test_sums_within_the_tie_margin_are_ties():
    group = group_of(6)
    scores = [2 * quality(group.prompt, t) for t in group.trajectories]
    gaps = [abs(a - b) for i, a in enumerate(scores) for b in scores[i + 1 :]]
    margin = float(np.median(gaps)) + 1e-6
    (result,) = run(Arena(build_topology("round_robin"), FakeJudge(), tie_margin=margin), group)
    assert result.num_ties == sum(gap <= margin for gap in gaps) == 8


def test_rematches_are_not_paid_twice_unless_replayed():
    group = group_of(2)
    for rematches, num_calls in (("reuse", 2), ("replay", 4)):
        judge = FakeJudge()
        topology = build_topology("double_elimination")
        (result,) = run(Arena(topology, judge, rematches=rematches), group)
        assert result.num_matches == 2
        assert len(judge.calls) == result.usage.calls == num_calls


def test_identical_trajectories_tie_and_share_their_matches():
    texts = ["same", "same", "other", "same", "third"]
    judge = FakeJudge()
    (result,) = run(Arena(build_topology("round_robin"), judge), group_of(5, texts=texts))
    ranks = result.standings.ranks
    assert ranks[0] == ranks[1] == ranks[3]
    assert len({ranks[0], ranks[2], ranks[4]}) == 3
    # Three classes: three pairs in both orders, and one call for the pair of identical ones.
    assert len(judge.calls) == 3 * 2 + 1
    assert result.num_judged == 4
    ties = [match for match in result.standings.matches if match.status == "tie"]
    assert sorted(match[:2] for match in ties) == sorted(
        match[:2] for match in ties if {match[0], match[1]} <= {0, 1, 3}
    )
    assert len(ties) == 3


def test_identical_trajectories_can_be_judged_apart():
    judge = FakeJudge()
    arena = Arena(build_topology("round_robin"), judge, share_identical=False)
    run(arena, group_of(3, texts=["same"] * 3))
    assert len(judge.calls) == 6


def test_trajectories_without_messages_are_never_identical():
    group = group_of(3)
    empty = Group(group.prompt, tuple(replace(t, messages=()) for t in group.trajectories))
    judge = FakeJudge()
    run(Arena(build_topology("round_robin"), judge), empty)
    assert len(judge.calls) == 6


def test_always_tied_knockout_has_zero_advantages_because_nothing_was_decided():
    arena = Arena(build_topology("single_elimination"), FakeJudge(), tie_margin=100.0)
    (result,) = run(arena, group_of(8))
    assert len(set(result.standings.ranks)) == 8
    assert not result.decided
    np.testing.assert_array_equal(result.advantages, np.zeros(8))


def test_calls_in_flight_stay_within_the_bound_over_all_groups():
    judge = FakeJudge()
    groups = [group_of(6, f"g{index}") for index in range(4)]
    run(Arena(build_topology("round_robin"), judge, concurrency=7), *groups)
    assert judge.most_in_flight == 7


def test_there_is_no_barrier_across_groups():
    """A group whose calls are slow keeps no other group from finishing."""
    finished = []

    class Slow(FakeJudge):
        async def compare(self, prompt, first, second):
            await asyncio.sleep(0.2 if prompt.prompt_id == "slow" else 0)
            return Verdict(float(first.index), float(second.index))

    async def watch(arena, group):
        await arena.run_group(group)
        finished.append(group.prompt.prompt_id)

    async def both():
        arena = Arena(build_topology("swiss"), Slow())
        await asyncio.gather(watch(arena, group_of(8, "slow")), watch(arena, group_of(8, "fast")))

    asyncio.run(both())
    assert finished == ["fast", "slow"]


def test_result_does_not_depend_on_timing_or_on_the_other_groups():
    def arena(latency_s):
        return Arena(
            build_topology("swiss"), FakeJudge(latency_s=latency_s), "random", concurrency=3
        )

    group = group_of(7, "g1")
    together = run(arena(0.001), group_of(5, "g0"), group, step=2)[1]
    alone = asyncio.run(arena(0.0).run_group(group, step=2, group_index=1))
    assert together.standings.matches == alone.standings.matches
    asked = [(call.first, call.second) for call in together.calls]
    assert asked == [(call.first, call.second) for call in alone.calls]
    moved = asyncio.run(arena(0.0).run_group(group, step=3, group_index=1))
    assert moved.standings.matches != alone.standings.matches


def test_usage_and_dimensions_are_summed_up():
    group = group_of(3)
    (result,) = run(Arena(build_topology("anchor"), FakeJudge()), group)
    assert result.usage == Usage(4, 40, 8, 2.0)
    low, mid, high = (quality(group.prompt, t) for t in group.trajectories)
    # The anchor is in both matches.
    assert result.dimension_means["clarity"] == pytest.approx((2 * low + mid + high) / 4)


def test_a_group_of_one_needs_no_judge():
    judge = FakeJudge()
    (result,) = run(Arena(build_topology("single_elimination"), judge), group_of(1))
    assert judge.calls == []
    assert result.advantages.tolist() == [0.0]
    assert not result.dropped


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"presentation": "twice"}, "presentation must be one of both, random, second_if_close"),
        ({"on_judge_failure": "guess"}, "on_judge_failure must be one of raise, drop_group"),
        ({"rematches": "never"}, "rematches must be one of reuse, replay"),
        ({"concurrency": 0}, "concurrency must be at least 1 call, got 0"),
        ({"close_margin": -1.0}, "close_margin must be at least 0 points"),
        ({"tie_margin": -1.0}, "tie_margin must be at least 0 points"),
        ({"max_failed_fraction": 1.5}, "max_failed_fraction must lie in 0-1, got 1.5"),
    ],
)
def test_settings_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Arena(build_topology("swiss"), FakeJudge(), **options)
