"""Strengths of contestants from any set of matches, with their uncertainty.

Two models: Bradley-Terry for verdicts that only share out a win, and mean scores with shrinkage for
judges that give each side a score of its own. Both give a Gaussian posterior over strengths and
the probability that one contestant would beat another. They rank nobody: `ranking.py` does.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from arena_lightning.arena.crosstable import CrossTable

StrengthModel = Literal["auto", "bradley_terry", "scores"]
"""`bradley_terry`: wins, ties and losses only; `scores`: mean scores; `auto`: scores, but where all
matches share out one total Bradley-Terry over each side's share of it."""

PRIOR_SD = 2.0
"""Spread of strengths within a group before any match, in logits: a standard deviation of skill
against a logistic judge of half that scale."""
NEWTON_STEPS = 25
NEWTON_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Strengths:
    """A Gaussian posterior. Shapes: `mean` `[place]`, `covariance` `[place, place]`."""

    mean: np.ndarray
    covariance: np.ndarray
    lead_variance: float | None
    """Variance of one match's lead around the difference of strengths; None: logistic, in
    logits."""

    def win_probabilities(self) -> np.ndarray:
        """Return `[a, b]`: probability that a would beat b, 0.5 on the diagonal.

        The uncertainty of the strengths is averaged over; the logistic case with MacKay's probit
        approximation.
        """
        lead = self.mean[:, None] - self.mean[None, :]
        variance = self.lead_variances()
        if self.lead_variance is None:
            return 0.5 * (1.0 + np.tanh(0.5 * lead / np.sqrt(1.0 + math.pi / 8 * variance)))
        # tanh is within 0.01 of the normal distribution's curve, and an order faster than erf.
        ratio = lead / np.sqrt(variance + self.lead_variance)
        return 0.5 * (1.0 + np.tanh(math.sqrt(2 / math.pi) * (ratio + 0.044715 * ratio**3)))

    def lead_variances(self) -> np.ndarray:
        """Return `[a, b]`: posterior variance of the difference of two strengths."""
        own = np.diag(self.covariance)
        return np.maximum(own[:, None] + own[None, :] - 2 * self.covariance, 0.0)


def fit_strengths(
    table: CrossTable, model: StrengthModel = "auto", start: np.ndarray | None = None
) -> Strengths:
    """Fit strengths to all matches played so far.

    Args:
        table: the results; a contestant without a match keeps the prior.
        model: see `StrengthModel`.
        start: strengths to start the search from, e.g. those of the round before.
    """
    if model == "bradley_terry":
        return bradley_terry(table.games, table.points, start)
    if model == "auto" and table.is_zero_sum:
        return bradley_terry(table.games, table.shares(), start)
    return score_strengths(table)


def bradley_terry(
    games: np.ndarray, won: np.ndarray, start: np.ndarray | None = None, prior_sd: float = PRIOR_SD
) -> Strengths:
    """Return the posterior mode and its Laplace covariance, logits.

    Maximises sum won[a, b] log sigmoid(s_a - s_b) - |s|^2 / (2 prior_sd^2) by Newton's method; the
    objective is strictly concave, so there is one answer for every graph, connected or not.

    Args:
        games: `[place, place]`, symmetric, matches between two.
        won: `[place, place]`, what the row won of them; `won + won.T == games`.

    Source: Bradley and Terry 1952; the Gaussian prior makes unbeaten contestants finite.
    """
    size = len(games)
    strengths = np.zeros(size) if start is None else start.copy()
    precision = 1.0 / prior_sd**2
    total_won = won.sum(axis=1)
    diagonal = np.arange(size)
    hessian = np.eye(size) * precision
    for _ in range(NEWTON_STEPS):
        # sigmoid of the lead as tanh: no overflow.
        half = np.tanh(0.5 * (strengths[:, None] - strengths[None, :]))
        expected = games * (0.5 + 0.5 * half)
        gradient = total_won - expected.sum(axis=1) - precision * strengths
        weights = games * (0.25 * (1.0 - half * half))
        hessian = -weights
        hessian[diagonal, diagonal] += weights.sum(axis=1) + precision
        step = np.linalg.solve(hessian, gradient)
        largest = np.abs(step).max()
        # Far from the mode a full Newton step may overshoot.
        strengths += step if largest <= 4.0 else step * (4.0 / largest)
        if largest < NEWTON_TOLERANCE:
            break
    return Strengths(strengths, np.linalg.inv(hessian), None)


def score_strengths(table: CrossTable) -> Strengths:
    """Return shrunken mean scores: the posterior under normal strengths and normal noise.

    Both variances come from the group itself: noise from how a contestant's scores differ from
    match to match, spread from how the means differ beyond that. Where nobody has two scores, half
    the variance is taken for noise. Opponents don't enter: on GPT-4's 1-10 scores an opponent one
    point stronger costs about a tenth of a point.
    """
    played = np.array(table.played, dtype=np.float64)
    sums = np.array(table.score_sums)
    measured = played > 0
    counts = np.maximum(played, 1.0)
    means = sums / counts
    if not measured.any():
        size = table.size
        return Strengths(np.zeros(size), np.eye(size), 2.0)
    centre = means[measured].mean()
    around = means - centre
    # Squares around the centre: raw sums of squares would cancel.
    squares = np.array(table.square_sums) - 2 * centre * sums + played * centre**2
    within = np.maximum(squares - played * around**2, 0.0)[measured].sum()
    freedom = (played[measured] - 1).sum()
    between = around[measured].var(ddof=1) if measured.sum() > 1 else 0.0
    noise = within / freedom if freedom else between / 2
    floor = 1e-9 * (between + noise) + 1e-18
    noise = max(noise, floor)
    spread = max(between - noise * (1 / counts[measured]).mean(), 0.05 * noise, floor)
    variance = 1.0 / (1.0 / spread + played / noise)
    strengths = variance * played / noise * around
    return Strengths(strengths, np.diag(variance), 2 * noise)
