"""Simulated judges: latent utilities under a noise model, each fault of a judge under its own key.

    NoiseModel -> SimulatedSource.draw(N, groups, seed) -> VerdictBatch

Utilities are normal; a call adds what `NoiseModel` says. A pair's idiosyncrasy is the same in both
orders and in every repeat, call noise is fresh in each. It is no LLM and models no text.
"""

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np

from arena_lightning.analysis.verdict_batch import VerdictBatch
from arena_lightning.errors import ConfigError
from arena_lightning.rng import generator_for


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """How a judge errs. Utilities and scores are in the judge's points."""

    spread: float = 1.0
    """Standard deviation of the true utilities within a group."""
    utility_df: float = 0.0
    """Heavy tails: Student-t degrees of freedom of the utilities, above 2; 0 is normal."""
    score_noise: float = 0.5
    """Standard deviation of the noise on each score of each call."""
    noise_df: float = 0.0
    """Heavy tails: degrees of freedom of the call noise, above 2; 0 is normal."""
    compression: float = 1.0
    """Share of the utilities' differences that reaches the scores, above 0."""
    intransitivity: float = 0.0
    """Standard deviation of a pair's own lead, which no utilities explain; the same in both orders
    and every repeat."""
    position_bias: float = 0.0
    """Bonus of the contestant shown first; may be negative."""
    tie_grid: float = 0.0
    """Step that scores are rounded to: equal on the grid is a tie; 0 is none."""
    win_lose: bool = False
    """Only who won a call is told: 1 and 0, or 0.5 each. The lead gets logistic noise of scale
    `score_noise` instead of normal noise on both scores, as in the reference figures."""
    tie_width: float = 0.0
    """With `win_lose`: a lead within this is a tie."""
    failure_rate: float = 0.0
    """Probability that a call gives no verdict, 0-1."""
    stable_fraction: float = 0.0
    """Share of calls whose noise a repeat of the same call repeats, 0-1: an LLM at temperature 0
    errs the same way again. Matters for the test-retest ceiling alone."""
    spectrum: tuple[float, ...] = ()
    """Quantiles of the utilities from worst to best at even steps, in standard deviations around
    their mean; () is the distribution that `utility_df` names."""

    def __post_init__(self) -> None:
        for name in ("spread", "score_noise", "intransitivity", "tie_grid", "tie_width"):
            _must(0 <= getattr(self, name) < np.inf, name, "be at least 0", getattr(self, name))
        for name in ("utility_df", "noise_df"):
            df = getattr(self, name)
            _must(df == 0 or 2 < df < np.inf, name, "be 0, or above 2", df)
        _must(0 < self.compression < np.inf, "compression", "be above 0", self.compression)
        for name in ("failure_rate", "stable_fraction"):
            _must(0 <= getattr(self, name) <= 1, name, "lie in 0-1", getattr(self, name))
        rising = all(low <= high for low, high in pairwise(self.spectrum))
        _must(rising and len(self.spectrum) != 1, "spectrum", "rise", self.spectrum)
        bias = self.position_bias
        _must(-np.inf < bias < np.inf, "position_bias", "be finite", bias)

    def describe(self) -> str:
        """Return the settings that differ from the defaults, with the main ones always."""
        shown = [
            f"{item.name}={getattr(self, item.name):g}"
            for item in fields(self)
            if item.name != "spectrum"
            and (item.name in ("spread", "score_noise") or getattr(self, item.name) != item.default)
        ]
        return ", ".join(shown)


class SimulatedSource:
    """Draws groups of a noise model."""

    def __init__(self, name: str, noise: NoiseModel) -> None:
        self.name = name
        self.noise = noise

    def draw(self, size: int, num_groups: int, seed: int) -> VerdictBatch:
        """Return all verdicts of `num_groups` groups of `size`; see `VerdictSource`."""
        return self._judged(size, num_groups, seed, repeat=0)

    def retest(self, size: int, num_groups: int, seed: int) -> VerdictBatch:
        """Return fresh verdicts of the same judge about the groups that `draw` returns."""
        return self._judged(size, num_groups, seed, repeat=1)

    def _judged(self, size: int, num_groups: int, seed: int, repeat: int) -> VerdictBatch:
        noise = self.noise
        # Drawn group by group: a longer draw starts with the groups of a shorter one.
        utilities = np.empty((num_groups, size))
        pair_leads = np.zeros((num_groups, size, size))
        own = generator_for(seed, "simulated/groups", size)
        for group in range(num_groups):
            utilities[group] = self._utilities(own, size)
        if noise.intransitivity:
            pairs = generator_for(seed, "simulated/pairs", size).standard_normal(pair_leads.shape)
            pair_leads = np.triu(pairs, 1) - np.triu(pairs, 1).swapaxes(1, 2)
        utilities *= noise.spread
        shape = (num_groups, size, size)
        draws = self._call_noise(seed, size, 0, shape)
        if repeat:
            coin = generator_for(seed, "simulated/stable", size, repeat).random(shape)
            again = self._call_noise(seed, size, repeat, shape)
            is_fresh = coin >= noise.stable_fraction
            draws = np.where(is_fresh[..., None], again, draws)
        levels = noise.compression * utilities
        lead = noise.intransitivity * pair_leads / 2
        first = levels[:, :, None] + lead + noise.position_bias
        second = levels[:, None, :] - lead
        if noise.win_lose:
            first, second = self._outcomes(first - second, draws[..., 0])
        else:
            first = _on_grid(first + noise.score_noise * draws[..., 0], noise.tie_grid)
            second = _on_grid(second + noise.score_noise * draws[..., 1], noise.tie_grid)
        missing = np.eye(size, dtype=bool)[None]
        if noise.failure_rate:
            failing = generator_for(seed, "simulated/failures", size, repeat).random(shape)
            missing = missing | (failing < noise.failure_rate)
        return VerdictBatch(
            np.where(missing, np.nan, first), np.where(missing, np.nan, second), utilities
        )

    def _utilities(self, rng: np.random.Generator, size: int) -> np.ndarray:
        if not self.noise.spectrum:
            return _draws(rng, (size,), self.noise.utility_df)
        steps = np.linspace(0.0, 1.0, len(self.noise.spectrum))
        return np.interp(rng.random(size), steps, self.noise.spectrum)

    def _call_noise(self, seed: int, size: int, repeat: int, shape: tuple[int, ...]) -> np.ndarray:
        """Return the raw noise of each call: two scores' errors, or one uniform number."""
        rng = generator_for(seed, "simulated/calls", size, repeat)
        if self.noise.win_lose:
            return rng.random((*shape, 1))
        return _draws(rng, (*shape, 2), self.noise.noise_df)

    def _outcomes(self, leads: np.ndarray, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of calls that only name a winner."""
        noisy = leads + self.noise.score_noise * np.log(uniforms / (1 - uniforms))
        won = np.where(np.abs(noisy) <= self.noise.tie_width, 0.5, (noisy > 0).astype(float))
        return won, 1.0 - won


def _draws(rng: np.random.Generator, shape: tuple[int, ...], df: float) -> np.ndarray:
    """Return draws of standard deviation 1: normal, or Student-t."""
    if not df:
        return rng.standard_normal(shape)
    return rng.standard_t(df, shape) * np.sqrt((df - 2) / df)


def _on_grid(scores: np.ndarray, step: float) -> np.ndarray:
    return np.floor(scores / step + 0.5) * step if step else scores


def noise_from(values: dict[str, Any]) -> NoiseModel:
    """Return the noise model of plain settings.

    Raises:
        ConfigError: a key that doesn't exist, or a value out of range.
    """
    known = [item.name for item in fields(NoiseModel)]
    unknown = [name for name in values if name not in known]
    if unknown:
        raise ConfigError(
            f"settings of a simulated judge must be among {', '.join(known)}, got "
            f"{', '.join(unknown)} (--noise). Correct them."
        )
    return NoiseModel(**values)


def _must(holds: bool, name: str, must: str, got: object) -> None:
    if not holds:
        raise ConfigError(f"`{name}` must {must}, got {got!r} (NoiseModel). Change that key.")
