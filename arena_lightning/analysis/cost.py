"""What a topology costs: judge calls, tokens, dollars, and wall-clock under a bound on concurrency.

    rounds of judge calls + prices + latencies -> CostEstimate

Rate limits make the number of calls matter, unlimited parallelism makes the number of rounds
matter; a simulated clock shows both at once. It asks no judge.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from arena_lightning.errors import ConfigError
from arena_lightning.rng import generator_for


@dataclass(frozen=True, slots=True)
class CallCost:
    """One judge call."""

    prompt_tokens: float
    completion_tokens: float
    usd_per_million_prompt_tokens: float
    usd_per_million_completion_tokens: float

    @property
    def tokens(self) -> float:
        return self.prompt_tokens + self.completion_tokens

    @property
    def usd(self) -> float:
        prompt = self.prompt_tokens * self.usd_per_million_prompt_tokens
        return (prompt + self.completion_tokens * self.usd_per_million_completion_tokens) / 1e6


@dataclass(frozen=True, slots=True)
class Latency:
    """Log-normal seconds of one judge call, given by two quantiles."""

    median_s: float = 3.0
    p95_s: float = 9.0

    def __post_init__(self) -> None:
        if not 0 < self.median_s <= self.p95_s < math.inf:
            raise ConfigError(
                "latencies must be positive and the 95th percentile at least the median, got "
                f"{self.median_s} and {self.p95_s} s (latency). Correct them."
            )

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return `count` latencies, seconds."""
        sigma = math.log(self.p95_s / self.median_s) / 1.6448536269514722
        return self.median_s * np.exp(sigma * rng.standard_normal(count))


def load_prices(path: Path, model: str) -> tuple[float, float]:
    """Return the dollars per million prompt and completion tokens of a model.

    Args:
        path: YAML, `model: {prompt: <usd>, completion: <usd>}` per million tokens.
        model: which entry.

    Raises:
        ConfigError: no such file or entry, or prices that aren't numbers of at least 0.
    """
    try:
        table = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(
            f"the price table must be a readable YAML file, got {error} ({path}). Correct it."
        ) from error
    if not isinstance(table, dict) or model not in table:
        known = ", ".join(table) if isinstance(table, dict) else "nothing"
        raise ConfigError(
            f"the price table must have the judge's model, got {known} but not {model!r} "
            f"({path}). Add a line `{model}: {{prompt: ..., completion: ...}}` in dollars per "
            "million tokens."
        )
    entry = table[model]
    prices = [entry.get(kind) if isinstance(entry, dict) else None for kind in _KINDS]
    for kind, price in zip(_KINDS, prices, strict=True):
        if not isinstance(price, (int, float)) or isinstance(price, bool) or not 0 <= price < 1e6:
            raise ConfigError(
                f"a price must be a number of dollars per million tokens, got {price!r} "
                f"({path}: {model}.{kind}). Correct it."
            )
    return float(prices[0]), float(prices[1])  # type: ignore[arg-type]


_KINDS = ("prompt", "completion")


def wall_clock_s(
    groups: Sequence[Sequence[int]],
    concurrency: int,
    latency: Latency,
    seed: int = 0,
    repeats: int = 10,
) -> float:
    """Return the mean time until all groups of a step are ranked, seconds.

    A group's next round starts when the last call of its round is back; calls wait for one of
    `concurrency` slots, those of the group with most rounds left first, as the arena does.

    Args:
        groups: for each group, the judge calls of each round.
        concurrency: calls in flight over all groups.
        latency: how long a call takes.
        seed: root seed of the latencies.
        repeats: simulated steps averaged over.
    """
    rng = generator_for(seed, "cost/latency")
    total = sum(map(sum, groups))
    if not total:
        return 0.0
    times = [
        _one_step(groups, concurrency, latency.draw(rng, total).tolist()) for _ in range(repeats)
    ]
    return float(np.mean(times))


def _one_step(groups: Sequence[Sequence[int]], concurrency: int, latencies: list[float]) -> float:
    """Simulate one step; return when its last call is back."""
    waiting: list[tuple[int, int]] = []  # (-rounds left, group), one entry a call
    open_calls = [0] * len(groups)
    next_round = [0] * len(groups)
    running: list[tuple[float, int]] = []  # (end, group)
    now = 0.0

    def start_round(group: int) -> None:
        while next_round[group] < len(groups[group]):
            count = groups[group][next_round[group]]
            left = len(groups[group]) - next_round[group]
            next_round[group] += 1
            if count:
                open_calls[group] = count
                for _ in range(count):
                    heapq.heappush(waiting, (-left, group))
                return

    for group in range(len(groups)):
        start_round(group)
    while waiting or running:
        while waiting and len(running) < concurrency:
            _, group = heapq.heappop(waiting)
            heapq.heappush(running, (now + latencies.pop(), group))
        now, group = heapq.heappop(running)
        open_calls[group] -= 1
        if not open_calls[group]:
            start_round(group)
    return now


def pareto_front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the names that no other beats: (cost, fidelity), cheaper and more faithful is better.

    Names come cheapest first; of equal points all stay. Points with a NaN are never on the front.
    """
    finite = {n: p for n, p in points.items() if not (math.isnan(p[0]) or math.isnan(p[1]))}

    def is_beaten(name: str) -> bool:
        cost, fidelity = finite[name]
        return any(
            c <= cost and f >= fidelity and (c < cost or f > fidelity) for c, f in finite.values()
        )

    front = [name for name in finite if not is_beaten(name)]
    return sorted(front, key=lambda name: finite[name])
