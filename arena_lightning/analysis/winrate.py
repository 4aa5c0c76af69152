"""Win rates: how often a candidate beats a baseline on the same prompts, ties apart.

Validation during training (policy against cold start, policy against references) and the reports
feed it paired scores of one judge; a case is a win when the candidate's score is higher by more
than `tie_margin`. The interval resamples prompts, because trajectories of one prompt are not
independent. It judges nothing and runs no model.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from arena_lightning.errors import DataError
from arena_lightning.rng import generator_for


@dataclass(frozen=True, slots=True)
class PairedCase:
    """A candidate and a baseline judged on one prompt, both on the same judge's scale."""

    prompt_id: str
    candidate: float
    baseline: float
    subtask: str = ""
    candidate_dimensions: Mapping[str, float] = field(default_factory=dict)
    baseline_dimensions: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WinRate:
    """Counts over cases, and the win rate among those that are not tied."""

    wins: int
    ties: int
    losses: int
    num_prompts: int
    win_rate: float
    """wins / (wins + losses), 0-1, 0.5 is parity; NaN when every case is tied or there is none."""
    low: float
    high: float
    """Ends of the interval, 0-1; NaN with the rate."""
    confidence: float
    interval: str
    """"bootstrap" over prompts; "wilson" when all decided cases go one way, where resampling
    would claim certainty; "none" when nothing is decided."""

    @property
    def num_cases(self) -> int:
        return self.wins + self.ties + self.losses

    @property
    def tie_fraction(self) -> float:
        """Share of tied cases, 0-1; NaN without cases."""
        return self.ties / self.num_cases if self.num_cases else float("nan")


@dataclass(frozen=True, slots=True)
class WinRateReport:
    """One candidate against one baseline: overall, per subtask, per dimension."""

    overall: WinRate
    by_subtask: Mapping[str, WinRate]
    by_dimension: Mapping[str, WinRate]
    mean_difference: float
    """Mean of candidate minus baseline, points of the judge's scale; NaN without cases."""


@dataclass(frozen=True, slots=True)
class MeanRate:
    """The mean of several judges' win rates; NaN when a judge has no decided case."""

    win_rate: float
    low: float
    high: float
    num_judges: int


def win_rate(
    cases: Iterable[PairedCase],
    *,
    tie_margin: float = 0.0,
    confidence: float = 0.95,
    num_resamples: int = 2000,
    seed: int = 0,
) -> WinRate:
    """Return the candidate's win rate with a percentile bootstrap interval over prompts.

    Args:
        cases: any number per prompt; prompts weigh by their number of cases.
        tie_margin: points; a difference of at most this is a tie.
        confidence: 0-1, two-sided.
        num_resamples: bootstrap draws; the same seed gives the same interval.
        seed: root seed of the draws.

    Raises:
        DataError: a score is not finite.
    """
    return _win_rate(_pairs(cases), tie_margin, confidence, num_resamples, seed)


def win_rate_by_subtask(cases: Iterable[PairedCase], **options) -> dict[str, WinRate]:
    """Return `win_rate` for each subtask, in order of first appearance."""
    groups: dict[str, list[PairedCase]] = {}
    for case in cases:
        groups.setdefault(case.subtask, []).append(case)
    return {subtask: win_rate(group, **options) for subtask, group in groups.items()}


def win_rate_by_dimension(cases: Iterable[PairedCase], **options) -> dict[str, WinRate]:
    """Return `win_rate` on each dimension that both sides of a case have."""
    groups: dict[str, list[PairedCase]] = {}
    for case in cases:
        for name in case.candidate_dimensions.keys() & case.baseline_dimensions.keys():
            pair = case.candidate_dimensions[name], case.baseline_dimensions[name]
            groups.setdefault(name, []).append(PairedCase(case.prompt_id, *pair))
    return {name: win_rate(groups[name], **options) for name in sorted(groups)}


def win_rate_report(cases: Sequence[PairedCase], **options) -> WinRateReport:
    """Return everything that validation logs; `options` as in `win_rate`."""
    differences = [case.candidate - case.baseline for case in cases]
    return WinRateReport(
        overall=win_rate(cases, **options),
        by_subtask=win_rate_by_subtask(cases, **options),
        by_dimension=win_rate_by_dimension(cases, **options),
        mean_difference=float(np.mean(differences)) if differences else float("nan"),
    )


def mean_win_rate(
    cases_by_judge: Sequence[Sequence[PairedCase]],
    *,
    tie_margin: float = 0.0,
    confidence: float = 0.95,
    num_resamples: int = 2000,
    seed: int = 0,
) -> MeanRate:
    """Return the mean of the judges' win rates, each over its own non-tied cases.

    Source: ArenaRL, section 5.3 (two judges, averaged). The interval resamples prompts, all judges
    on the same draw: their verdicts on one prompt are not independent. Draws in which a judge has
    no decided case have no rate and are left out.

    Raises:
        DataError: a score is not finite.
    """
    nan = float("nan")
    prompts = list(dict.fromkeys(case.prompt_id for cases in cases_by_judge for case in cases))
    tables = np.stack(
        [_table(_pairs(cases), tie_margin, prompts)[0] for cases in cases_by_judge]
    )  # [judge, prompt, wins and losses]
    totals = tables.sum(axis=1)
    if not prompts or not totals.sum(axis=1).all():
        return MeanRate(nan, nan, nan, len(tables))
    rate = float((totals[:, 0] / totals.sum(axis=1)).mean())
    if (totals == 0).any(axis=1).all():
        # Unanimous judges: resampling would claim certainty.
        decided = int((tables.sum(axis=2) > 0).sum(axis=1).min())
        return MeanRate(rate, *wilson_interval(rate, decided, confidence), len(tables))
    rng = generator_for(seed, "analysis/winrate", len(prompts))
    size = len(prompts)
    weights = rng.multinomial(size, np.full(size, 1.0 / size), size=num_resamples)
    drawn = np.einsum("rp,jpk->rjk", weights, tables)
    decided = drawn.sum(axis=2)
    kept = decided.all(axis=1)
    rates = (drawn[kept, :, 0] / decided[kept]).mean(axis=1)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(rates, [tail, 1.0 - tail])
    return MeanRate(rate, float(low), float(high), len(tables))


def report_metrics(report: WinRateReport, prefix: str) -> dict[str, float]:
    """Flatten a report to `{prefix}/...: value` for loggers, undecided rates left out."""
    metrics = {f"{prefix}/mean_difference": report.mean_difference}
    rows: list[tuple[str, WinRate]] = [(prefix, report.overall)]
    rows += [(f"{prefix}/subtask/{name}", rate) for name, rate in report.by_subtask.items()]
    rows += [(f"{prefix}/dimension/{name}", rate) for name, rate in report.by_dimension.items()]
    for name, rate in rows:
        if rate.wins + rate.losses:
            metrics[f"{name}/win_rate"] = rate.win_rate
            metrics[f"{name}/win_rate_low"] = rate.low
            metrics[f"{name}/win_rate_high"] = rate.high
        if rate.num_cases:
            metrics[f"{name}/tie_fraction"] = rate.tie_fraction
    return {name: value for name, value in metrics.items() if np.isfinite(value)}


def _pairs(cases: Iterable[PairedCase]) -> list[tuple[str, float, float]]:
    return [(case.prompt_id, case.candidate, case.baseline) for case in cases]


def _table(
    pairs: Sequence[tuple[str, float, float]], tie_margin: float, prompts: Sequence[str]
) -> tuple[np.ndarray, int]:
    """Return `[prompt, 2]` wins and losses (float64) in the order of `prompts`, and the ties."""
    rows = {prompt_id: row for row, prompt_id in enumerate(prompts)}
    table = np.zeros((len(prompts), 2))
    num_ties = 0
    for prompt_id, candidate, baseline in pairs:
        if not (np.isfinite(candidate) and np.isfinite(baseline)):
            raise DataError(
                f"Scores of a win rate must be finite, got {candidate} against {baseline} "
                f"(prompt {prompt_id!r}). Leave out the cases that a judge failed on."
            )
        if abs(candidate - baseline) <= tie_margin:
            num_ties += 1
        else:
            table[rows[prompt_id], 0 if candidate > baseline else 1] += 1
    return table, num_ties


def _win_rate(
    pairs: list[tuple[str, float, float]],
    tie_margin: float,
    confidence: float,
    num_resamples: int,
    seed: int,
) -> WinRate:
    prompts = list(dict.fromkeys(prompt_id for prompt_id, _, _ in pairs))
    table, num_ties = _table(pairs, tie_margin, prompts)
    wins, losses = (int(total) for total in table.sum(axis=0))
    nan = float("nan")
    rate, low, high, interval = nan, nan, nan, "none"
    if wins + losses:
        rate = wins / (wins + losses)
        if wins and losses:
            low, high = _bootstrap(table, confidence, num_resamples, seed)
            interval = "bootstrap"
        else:
            decided = int((table.sum(axis=1) > 0).sum())
            low, high = wilson_interval(rate, decided, confidence)
            interval = "wilson"
    return WinRate(wins, num_ties, losses, len(prompts), rate, low, high, confidence, interval)


def _bootstrap(
    table: np.ndarray, confidence: float, num_resamples: int, seed: int
) -> tuple[float, float]:
    """Percentile interval over resampled prompts; `table` is `[prompt, 2]`, wins and losses.

    A resample in which nothing is decided has no rate and is left out.
    """
    rng = generator_for(seed, "analysis/winrate", len(table))
    size = len(table)
    weights = rng.multinomial(size, np.full(size, 1.0 / size), size=num_resamples)
    totals = weights @ table
    decided = totals.sum(axis=1)
    rates = totals[decided > 0, 0] / decided[decided > 0]
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(rates, [tail, 1.0 - tail])
    return float(low), float(high)


def wilson_interval(rate: float, size: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion `rate` (0-1) seen on `size` >= 1 prompts.

    Source: Wilson 1927, JASA 22, 209-212, solved for the proportion.
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    shrink = 1.0 + z * z / size
    middle = (rate + z * z / (2.0 * size)) / shrink
    half = z * np.sqrt(rate * (1.0 - rate) / size + z * z / (4.0 * size * size)) / shrink
    return float(max(0.0, middle - half)), float(min(1.0, middle + half))
