"""How fast the arena is: `python -m arena_lightning.arena.benchmark`.

Two figures: simulated matches a second on one core through each topology, and the time the
scheduler takes against the ideal, max(critical path, calls / concurrency) x latency, with a fake
judge of fixed latency. On a busy machine the fastest batch and the CPU time tell more than the
mean and the wall-clock, and the schedule is also timed on a virtual clock, where code is free.
"""

import argparse
import asyncio
import contextlib
import selectors
import time
from collections.abc import Callable, Coroutine

import numpy as np

from arena_lightning.arena.arena import Arena
from arena_lightning.arena.topology import TOPOLOGIES, play
from arena_lightning.errors import JudgeError
from arena_lightning.protocols import Score
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

    async def score(self, prompt: Prompt, trajectory: Trajectory) -> Score:
        """Refuse: a tournament compares only."""
        raise JudgeError("the benchmark's judge must only be asked to compare, got score().")


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


class VirtualSelector(selectors.DefaultSelector):
    """Waits for nothing: moves a virtual clock on by the time it was asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list:
        self.now_s += max(timeout or 0.0, 0.0)
        return super().select(0)


def virtual_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop whose sleeps take no time but move its clock; for code without I/O."""
    selector = VirtualSelector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now_s
    return loop


def time_scheduler(
    name: str, num_groups: int, size: int, concurrency: int, latency_s: float, seed: int = 0
) -> dict[str, float]:
    """Play one step with a fake judge, on a virtual clock and in earnest.

    Returns:
        `calls`, `ideal_s`, `schedule_s` on the virtual clock, `wall_s` and `cpu_s` in earnest.
    """
    topology = TOPOLOGIES[name]()
    groups = fake_groups(num_groups, size)

    def step() -> tuple[FixedLatencyJudge, Coroutine]:
        judge = FixedLatencyJudge(latency_s, num_groups, size, seed)
        return judge, Arena(topology, judge, concurrency=concurrency, seed=seed).run(groups)

    judge, coroutine = step()
    with contextlib.closing(virtual_loop()) as loop:
        loop.run_until_complete(coroutine)
        schedule_s = loop.time()
    _, coroutine = step()
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(coroutine)
    return {
        "calls": judge.num_calls,
        "ideal_s": max(topology.cost(size).rounds, judge.num_calls / concurrency) * latency_s,
        "schedule_s": schedule_s,
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
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
    print(
        f"{'topology':20}{'calls':>7}{'ideal s':>9}{'schedule s':>12}{'/ ideal':>9}"
        f"{'wall s':>9}{'/ ideal':>9}{'CPU s':>8}"
    )
    for name in TOPOLOGIES:
        row = measure(name)
        ideal = row["ideal_s"]
        print(
            f"{name:20}{row['calls']:7.0f}{ideal:9.2f}{row['schedule_s']:12.2f}"
            f"{row['schedule_s'] / ideal:9.3f}{row['wall_s']:9.2f}{row['wall_s'] / ideal:9.3f}"
            f"{row['cpu_s']:8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
