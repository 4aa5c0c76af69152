"""Noise models fitted to real judges: round robins in both orders, or pairs with human labels.

    observed rates -> spread, position bias, tie width, pair effects -> NoiseFit (JSON)

A judge that names winners is a logistic lead with unit scale; the other parameters are those whose
simulated groups show the observed rates (simulated method of moments, common random numbers). The
fit says how near it comes: rates of all kinds, observed and fitted, are kept beside it.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from arena_lightning.analysis.bank import JudgeBank
from arena_lightning.analysis.judging import report_judging
from arena_lightning.analysis.simulated import NoiseModel, SimulatedSource
from arena_lightning.analysis.verdict_batch import VerdictBatch
from arena_lightning.arena.crosstable import CrossTable
from arena_lightning.arena.strengths import fit_strengths
from arena_lightning.errors import DataError
from arena_lightning.types import Match

FITS = Path(__file__).parent / "fits"
NUM_GROUPS = 400
NUM_QUANTILES = 21
ROUND_ROBIN_RATES = (
    "tie_rate",
    "first_share",
    "inconsistent_rate",
    "flip_rate",
    "summed_tie_rate",
    "one_order_cycle_rate",
    "spread",
)
STARTS: tuple[Mapping[str, float], ...] = (
    {"spread": 1.5, "position_bias": 0.3, "tie_width": 0.3, "intransitivity": 0.5},
    {"spread": 4.0, "position_bias": 0.3, "tie_width": 0.5, "intransitivity": 4.0},
)
"""Where the search starts: a judge of fresh errors, and one of stable ones."""
FREE = ("spread", "position_bias", "tie_width", "intransitivity")


@dataclass(frozen=True, slots=True)
class NoiseFit:
    """A fitted judge and how well it fits."""

    name: str
    source: str
    """What it was fitted to."""
    noise: NoiseModel
    observed: Mapping[str, float]
    fitted: Mapping[str, float]
    standard_errors: Mapping[str, float]
    """Of the observed rates, by resampling groups."""

    @property
    def largest_miss(self) -> float:
        """The largest |fitted - observed| in standard errors."""
        misses = [
            abs(self.fitted[name] - self.observed[name]) / max(self.standard_errors[name], 1e-9)
            for name in self.observed
        ]
        return max(misses)


def fit_round_robins(bank: JudgeBank, name: str, source: str, stable: float = 0.0) -> NoiseFit:
    """Fit a judge that names winners to a bank of round robins of one size.

    Args:
        bank: all pairs, both orders.
        name: what the fit is called.
        source: where the bank comes from.
        stable: share of calls that a repeat repeats, from data judged several times.
    """
    batch = bank.batch()
    spectrum = utility_spectrum(batch)

    def simulated(noise: NoiseModel, num_groups: int) -> dict[str, float]:
        drawn = SimulatedSource(name, noise).draw(batch.size, num_groups, 0)
        return _rates(drawn, ROUND_ROBIN_RATES)

    observed = _rates(batch, ROUND_ROBIN_RATES)
    errors = _errors(batch, ROUND_ROBIN_RATES)
    base = NoiseModel(score_noise=1.0, win_lose=True, spectrum=spectrum, stable_fraction=stable)
    noise = _match(base, FREE, observed, errors, simulated)
    return NoiseFit(name, source, noise, observed, simulated(noise, 4 * NUM_GROUPS), errors)


def fit_labelled_pairs(
    outcomes: np.ndarray, name: str, source: str, stable: float = 0.0
) -> NoiseFit:
    """Fit a judge that names winners to pairs with a known better side, in both orders.

    Args:
        outcomes: int `[pair, order]`: 1 where the better side won, -1 where it lost, 0 for a tie;
            order 0 showed the better side first, order 1 second.
        name: what the fit is called.
        source: where the pairs come from.
        stable: see `fit_round_robins`.
    """

    def rates(won: np.ndarray) -> dict[str, float]:
        decided = won != 0
        shown_first = np.array([1, -1])
        both = decided.all(axis=1)
        return {
            "tie_rate": float((~decided).mean()),
            "first_share": float((won * shown_first > 0)[decided].mean()),
            "flip_rate": float((won[both, 0] * won[both, 1] < 0).mean()),
            "correct_rate": float((won > 0)[decided].mean()),
        }

    def simulated(noise: NoiseModel, num_groups: int) -> dict[str, float]:
        batch = SimulatedSource(name, noise).draw(2, 10 * num_groups, 0)
        return rates(labelled_outcomes(batch))

    observed = rates(outcomes)
    rng = np.random.default_rng(0)
    draws = [rates(outcomes[rng.integers(0, len(outcomes), len(outcomes))]) for _ in range(200)]
    errors = {key: float(np.std([draw[key] for draw in draws])) for key in observed}
    free = FREE if observed["tie_rate"] > 0 else ("spread", "position_bias", "intransitivity")
    base = NoiseModel(score_noise=1.0, win_lose=True, stable_fraction=stable)
    noise = _match(base, free, observed, errors, simulated)
    return NoiseFit(name, source, noise, observed, simulated(noise, 4 * NUM_GROUPS), errors)


def labelled_outcomes(batch: VerdictBatch) -> np.ndarray:
    """Return the outcomes of `fit_labelled_pairs` of simulated groups of two."""
    assert batch.truth is not None and batch.size == 2
    lead = batch.score_first - batch.score_second
    better = (batch.truth[:, 1] > batch.truth[:, 0]).astype(int)
    rows = np.arange(len(better))
    shown_first = np.sign(lead[rows, better, 1 - better])
    shown_second = -np.sign(lead[rows, 1 - better, better])
    return np.stack([shown_first, shown_second], axis=1).astype(int)


def utility_spectrum(batch: VerdictBatch) -> tuple[float, ...]:
    """Return quantiles of utilities within groups, standardised, worst to best.

    Utilities are Bradley-Terry strengths of each group's summed verdicts, centred and scaled by
    the pooled standard deviation: one strong contestant among many close ones keeps that shape.
    """
    score, opponent = batch.merged("both")
    strengths = []
    for group in range(batch.num_groups):
        matches = []
        for i in range(batch.size):
            for j in range(i + 1, batch.size):
                a, b = float(score[group, i, j]), float(opponent[group, i, j])
                if not (math.isnan(a) or math.isnan(b)):
                    matches.append(Match(i, j, a, b, "tie" if a == b else "decided"))
        fitted = fit_strengths(CrossTable(range(batch.size), matches))
        strengths.append(fitted.mean - fitted.mean.mean())
    pooled = np.concatenate(strengths)
    quantiles = np.quantile(pooled / pooled.std(), np.linspace(0, 1, NUM_QUANTILES))
    return tuple(round(float(value), 4) for value in quantiles)


def stable_fraction(repeats: Sequence[Sequence[str]], chance: float) -> float:
    """Return the share of calls whose noise a repeat repeats, from three answers to each.

    With s the share and c the chance that fresh noise gives the same answer, all three agree in
    (s + (1 - s) c)^2 of the calls.
    """
    agreed = float(np.mean([len(set(answers)) == 1 for answers in repeats]))
    return float(np.clip((math.sqrt(agreed) - chance) / (1 - chance), 0.0, 1.0))


def _rates(batch: VerdictBatch, names: Sequence[str]) -> dict[str, float]:
    report = report_judging(batch)
    return {name: float(getattr(report, name)) for name in names}


def _errors(batch: VerdictBatch, names: Sequence[str]) -> dict[str, float]:
    """Return standard errors of the rates, by resampling groups."""
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(100):
        chosen = rng.integers(0, batch.num_groups, batch.num_groups)
        draws.append(
            _rates(VerdictBatch(batch.score_first[chosen], batch.score_second[chosen]), names)
        )
    return {name: float(np.std([draw[name] for draw in draws])) for name in names}


def _match(
    base: NoiseModel,
    free: Sequence[str],
    observed: Mapping[str, float],
    errors: Mapping[str, float],
    simulated: Any,
) -> NoiseModel:
    """Return the noise model whose simulated rates come nearest, in standard errors."""
    # The data's own error, and a floor: no model is right to the third digit.
    scales = {name: max(errors[name], 0.01) for name in observed}

    def model(point: np.ndarray) -> NoiseModel:
        values = {item.name: getattr(base, item.name) for item in fields(NoiseModel)}
        for name, value in zip(free, point, strict=True):
            values[name] = float(value if name == "position_bias" else abs(value))
        return NoiseModel(**values)

    def miss(point: np.ndarray) -> float:
        found = simulated(model(point), NUM_GROUPS)
        return sum(((found[name] - observed[name]) / scales[name]) ** 2 for name in observed)

    found = [
        minimize(
            miss,
            np.array([start[name] for name in free]),
            method="Nelder-Mead",
            options={"xatol": 0.01, "fatol": 0.05, "maxfev": 250},
        )
        for start in STARTS
    ]
    best = min(found, key=lambda result: result.fun)
    return model(np.round(best.x, 3))


def save_fit(fit: NoiseFit, folder: Path = FITS) -> Path:
    """Write a fit as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{fit.name}.json"
    path.write_text(json.dumps(asdict(fit), indent=1) + "\n", encoding="utf-8")
    return path


def load_fit(name: str, folder: Path = FITS) -> NoiseFit:
    """Read a fit that is shipped, by its name.

    Raises:
        DataError: no such fit.
    """
    path = folder / f"{name}.json"
    if not path.is_file():
        raise DataError(
            f"a fitted judge must be one of {', '.join(fit_names(folder))}, got {name!r} ({path}). "
            "Name one of them."
        )
    record = json.loads(path.read_text(encoding="utf-8"))
    noise = record["noise"] | {"spectrum": tuple(record["noise"]["spectrum"])}
    return NoiseFit(**(record | {"noise": NoiseModel(**noise)}))


def fit_names(folder: Path = FITS) -> list[str]:
    """Return the names of the fits that are shipped."""
    return sorted(path.stem for path in folder.glob("*.json"))
