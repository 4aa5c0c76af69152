import contextlib

import pytest

from arena_lightning.arena import TOPOLOGIES, Arena
from arena_lightning.arena.benchmark import (
    FixedLatencyJudge,
    fake_groups,
    main,
    time_topology,
    virtual_loop,
)

# The narrow end of double elimination has at most 2 calls a group in its last three rounds, so
# that 16 groups can't fill 64 slots there: no schedule is below 1.14 times the ideal.
BOUNDS = {
    "round_robin": 1.0,
    "anchor": 8 / 7.5,
    "single_elimination": 1.1,
    "double_elimination": 1.2,
    "swiss": 1.0,
}


@pytest.mark.parametrize("name", BOUNDS)
def test_schedule_is_near_the_ideal_for_16_groups_of_16(name):
    topology, judge = TOPOLOGIES[name](), FixedLatencyJudge(1.0, 16, 16, seed=0)
    with contextlib.closing(virtual_loop()) as loop:
        loop.run_until_complete(Arena(topology, judge, concurrency=64).run(fake_groups(16, 16)))
        taken_s = loop.time()
    ideal_s = max(topology.cost(16).rounds, judge.num_calls / 64)
    assert ideal_s <= taken_s <= BOUNDS[name] * ideal_s + 1e-6


def test_unlimited_concurrency_takes_the_critical_path():
    topology, judge = TOPOLOGIES["single_elimination"](), FixedLatencyJudge(1.0, 3, 8, seed=0)
    with contextlib.closing(virtual_loop()) as loop:
        loop.run_until_complete(Arena(topology, judge, concurrency=1000).run(fake_groups(3, 8)))
        assert loop.time() == pytest.approx(topology.cost(8).rounds)


def test_simulation_counts_the_matches_it_played():
    row = time_topology("swiss", 8, 0.01)
    assert row["matches"] % (8 * 12) == 0
    assert row["best_matches_per_s"] >= row["mean_matches_per_s"] > 0


def test_command_prints_a_row_for_each_topology(capsys):
    main(["--groups", "2", "--size", "4", "--latency-s", "0.001", "--seconds", "0.01",
          "--sizes", "4"])  # fmt: skip
    named = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    for name in TOPOLOGIES:
        assert named.count(name) == 2
