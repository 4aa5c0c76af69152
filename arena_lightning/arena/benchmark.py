"""How fast the arena is: `python -m arena_lightning.arena.benchmark`.

Two figures: simulated matches a second on one core through each topology, and the time the
scheduler takes against the ideal, max(critical path, calls / concurrency) x latency, with a fake
judge of fixed latency. On a busy machine the fastest batch and the CPU time tell more than the mean
and the wall-clock, so all are printed.
"""

import argparse
import asyncio
import time
from collections.abc import Callable

import numpy as np

from arena_lightning.arena.arena import Arena
from arena_lightning.arena.topology import TOPOLOGIES, play
from arena_lightning.rng import generator_for
from arena_lightning.types import Group, Match, Message, Pairing, Prompt, Trajectory, Verdict


class FixedLatencyJudge:
    """Takes a fixed time, and prefers the higher utility; utilities are drawn for each group."""

    name = "fixed latency (benchmark)"

    def __init__(self, latency_s: float, num_groups: int, size: int, seed: int) -> None:
        self.num_calls = 0
        self._latency_s = latency_s
        self._utilities = generator_for(seed, "benchmark/utilities").random((num_groups, size))

    async def compare(self, prompt: Prompt, first: Trajectory, second: Trajectory) -> Verdict:
        self.num_calls += 1
        await asyncio.sleep(self._latency_s)
        row = self._utilities[int(prompt.prompt_id)]
        return Verdict(float(row[first.index]), float(row[second.index]))

    async def score(self, prompt: Prompt, trajectory: Trajectory) -> None:
        raise NotImplementedError("the benchmark compares only")


def fake_groups(num_groups: int, size: int) -> list[Group]:
    """Return groups of distinct one-message trajectories."""
    return [
        Group(
            Prompt(str(group), "benchmark"),
            tuple(
                Trajectory(str(group), (Message("assistant", f"answer {index}"),), index=index)
                for index in range(size)
            ),
        )
        for group in range(num_groups)
    ]


def time_scheduler(
    name: str, num_groups: int, size: int, concurrency: int, latency_s: float, seed: int = 0
) -> dict[str, float]:
    """Play one step with a fake judge.

    Returns:
        `calls`, `ideal_s`, `wall_s`, `cpu_s`, and `ratio` = wall over ideal, 1.0 best.
    """
    topology = TOPOLOGIES[name]()
    judge = FixedLatencyJudge(latency_s, num_groups, size, seed)
    arena = Arena(topology, judge, concurrency=concurrency, seed=seed)
    groups = fake_groups(num_groups, size)
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(arena.run(groups))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    ideal = max(topology.cost(size).rounds, judge.num_calls / concurrency) * latency_s
    return {
        "calls": judge.num_calls,
        "ideal_s": ideal,
        "wall_s": wall,
        "cpu_s": cpu,
        "ratio": wall / ideal,
    }


def verdict_table(size: int, seed: int) -> list[list[Match]]:
    """Return `[first][second]`, the match of each ordered pairing: noisy cardinal verdicts."""
    rng = generator_for(seed, "benchmark/verdicts", size)
    utilities = rng.normal(size=size)
    noise = 0.5 * rng.normal(size=(size, size))
    scores = (utilities[:, None] + noise).tolist()
    return [
        [
            Match(first, second, scores[first][second], scores[second][first], "decided")
            for second in range(size)
        ]
        for first in range(size)
    ]


def time_topology(name: str, size: int, seconds: float, seed: int = 0) -> dict[str, float]:
    """Play tournaments with precomputed verdicts for about `seconds` of wall-clock.

    Returns:
        `matches`, `best_matches_per_s` of the fastest batch of 8 tournaments, and
        `mean_matches_per_s` over all, on one core. The best is what the code can do; on a shared
        machine the mean also says what the neighbours did.
    """
    topology = TOPOLOGIES[name]()
    table = verdict_table(size, seed)
    rng = generator_for(seed, "benchmark/orders", size)
    orders = [rng.permutation(size).tolist() for _ in range(8)]

    def decide(pairing: Pairing) -> Match:
        return table[pairing[0]][pairing[1]]

    matches = 0
    best = 0.0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        batch_start = time.perf_counter()
        batch = sum(len(play(topology, size, decide, order).matches) for order in orders)
        best = max(best, batch / (time.perf_counter() - batch_start))
        matches += batch
    return {
        "matches": matches,
        "best_matches_per_s": best,
        "mean_matches_per_s": matches / elapsed,
    }


def main(arguments: list[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=16, help="K, groups a step")
    parser.add_argument("--size", type=int, default=16, help="N, contestants a group")
    parser.add_argument("--concurrency", type=int, default=64, help="judge calls in flight")
    parser.add_argument("--latency-s", type=float, default=0.5, help="of the fake judge")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each simulated cell")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument("--only", choices=["scheduler", "simulation"])
    options = parser.parse_args(arguments)
    if options.only != "scheduler":
        _print_simulation(options.sizes, options.seconds)
    if options.only != "simulation":
        _print_scheduler(
            lambda name: time_scheduler(
                name, options.groups, options.size, options.concurrency, options.latency_s
            ),
            f"K={options.groups}, N={options.size}, concurrency {options.concurrency}, "
            f"latency {options.latency_s} s, both orders",
        )


def _print_simulation(sizes: list[int], seconds: float) -> None:
    print(f"simulated matches a second on one core, fastest batch / mean (NumPy {np.__version__})")
    print(f"{'topology':20}" + "".join(f"{f'N={size}':>22}" for size in sizes))
    for name in TOPOLOGIES:
        cells = [time_topology(name, size, seconds) for size in sizes]
        row = [f"{c['best_matches_per_s']:,.0f} / {c['mean_matches_per_s']:,.0f}" for c in cells]
        print(f"{name:20}" + "".join(f"{cell:>22}" for cell in row), flush=True)


def _print_scheduler(measure: Callable[[str], dict[str, float]], title: str) -> None:
    print(f"scheduler: {title}")
    print(f"{'topology':20}{'calls':>8}{'ideal s':>10}{'wall s':>10}{'CPU s':>10}{'ratio':>8}")
    for name in TOPOLOGIES:
        row = measure(name)
        print(
            f"{name:20}{row['calls']:8.0f}{row['ideal_s']:10.2f}{row['wall_s']:10.2f}"
            f"{row['cpu_s']:10.2f}{row['ratio']:8.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
