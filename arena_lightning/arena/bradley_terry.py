"""Bradley-Terry strengths from any set of matches: wins, ties and margins, connected or not.

    matches -> evidence [group, group] -> strengths -> ranks

A Gaussian prior keeps every strength finite, also for the unbeaten and where the matches do not
connect everybody. Everything works on stacks of groups at once; nothing here plays a match.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from arena_lightning.errors import ConfigError
from arena_lightning.types import Match

Outcome = Literal["win", "soft", "margin"]
"""What a match tells. `win`: 1, 0.5 or 0. `soft`: a share between 0 and 1 that grows with the
margin of the scores. `margin`: the margin itself, as the difference of two strengths plus noise."""

MAX_ITERATIONS = 100
TOLERANCE = 1e-10
"""On the squared Newton decrement, before the last step."""


@dataclass(frozen=True, slots=True)
class Strengths:
    """Posterior mode and its curvature."""

    strengths: np.ndarray
    """float64 `[..., group]`, higher is better, prior mean 0. Log-odds for `win` and `soft`; the
    judge's points in units of the noise for `margin`."""
    covariance: np.ndarray
    """float64 `[..., group, group]`: inverse Hessian at the mode (Laplace approximation)."""


def wins_from_matches(
    size: int,
    matches: Iterable[Match],
    outcome: Outcome = "win",
    margin_scale: float | None = None,
    count_rematches: bool = False,
) -> np.ndarray:
    """Gather evidence: `[i, j]` is what i won against j, and plus its transpose what was played.

    Args:
        size: N.
        matches: failed ones are left out.
        outcome: `win` or `soft`; for margins see `margins_from_matches`.
        margin_scale: the margin that makes a share of 0.73 under `soft`, judge's points; None
            takes the root mean square of the margins.
        count_rematches: whether a pair that met twice weighs double. Off by default: the arena
            answers a rematch from memory, which is no new evidence; the mean is taken.

    Returns:
        float64 `[group, group]`, zero diagonal.
    """
    if outcome not in ("win", "soft"):
        raise ConfigError(
            f"outcome must be win or soft, got {outcome!r} (wins_from_matches). "
            "Use margins_from_matches for margins."
        )
    wins = np.zeros((size, size))
    played = [match for match in matches if match.status != "failed"]
    if not played:
        return wins
    first, second, margin = _columns(played)
    if outcome == "soft":
        scale = margin_scale or float(np.sqrt(np.mean(margin**2))) or 1.0
        share = _sigmoid(margin / scale)
    else:
        tied = np.array([match.status == "tie" for match in played])
        share = np.where(tied, 0.5, (margin > 0).astype(float))
    np.add.at(wins, (first, second), share)
    np.add.at(wins, (second, first), 1 - share)
    if not count_rematches:
        games = wins + wins.T
        wins /= np.where(games > 0, games, 1)
    return wins


def fit_strengths(wins: np.ndarray, regularisation: float = 0.1) -> Strengths:
    """Maximise sum_ij wins_ij log sigma(s_i - s_j) - regularisation/2 sum_i s_i^2 by Newton steps.

    A tie is half a win for each side. The objective is strictly concave, so the mode is unique.

    Args:
        wins: `[..., group, group]`, evidence of i over j, not negative.
        regularisation: precision of the Gaussian prior, above 0.

    Raises:
        ConfigError: shape, sign or regularisation as it must not be.

    Source: Bradley & Terry 1952; the penalty as in a Gaussian prior on log-strengths.
    """
    wins = np.asarray(wins, dtype=np.float64)
    _check(wins, regularisation)
    games = wins + np.swapaxes(wins, -1, -2)
    strengths = np.zeros(wins.shape[:-1])
    for _ in range(MAX_ITERATIONS):
        gradient, hessian = _derivatives(wins, games, strengths, regularisation)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        decrement = (step * gradient).sum(axis=-1)
        if decrement.max(initial=0.0) < TOLERANCE:
            # So near that the full step, quadratically convergent, is exact to rounding.
            strengths = strengths + step
            break
        strengths = _line_search(wins, strengths, step, decrement, regularisation)
    _, hessian = _derivatives(wins, games, strengths, regularisation)
    return Strengths(strengths, np.linalg.inv(hessian))


def fit_margins(margins: np.ndarray, games: np.ndarray, regularisation: float = 0.1) -> Strengths:
    """Minimise 1/2 sum_pairs games_ij (margin_ij - s_i + s_j)^2 + regularisation/2 sum_i s_i^2.

    Args:
        margins: `[..., group, group]`, mean margin of i over j, antisymmetric, 0 where not played.
        games: `[..., group, group]`, matches of each pair, symmetric, zero diagonal.
        regularisation: noise variance over prior variance, above 0.

    Returns:
        Strengths in judge's points; the covariance is in units of the noise variance.
    """
    margins, games = np.asarray(margins, np.float64), np.asarray(games, np.float64)
    _check(games, regularisation)
    size = games.shape[-1]
    hessian = _laplacian(games) + regularisation * np.eye(size)
    pull = (games * margins).sum(axis=-1)
    strengths = np.linalg.solve(hessian, pull[..., None])[..., 0]
    return Strengths(strengths, np.linalg.inv(hessian))


def margins_from_matches(size: int, matches: Iterable[Match]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean margin of each pair and whether it met, both float64 `[group, group]`.

    Failed matches are left out; a rematch adds no weight (see `wins_from_matches`).
    """
    totals, games = np.zeros((size, size)), np.zeros((size, size))
    played = [match for match in matches if match.status != "failed"]
    if played:
        first, second, margin = _columns(played)
        np.add.at(totals, (first, second), margin)
        np.add.at(totals, (second, first), -margin)
        np.add.at(games, (first, second), 1.0)
        np.add.at(games, (second, first), 1.0)
    return totals / np.where(games > 0, games, 1), (games > 0).astype(np.float64)


def strengths_from_matches(
    size: int, matches: Iterable[Match], outcome: Outcome = "win", regularisation: float = 0.1
) -> Strengths:
    """Return the strengths of N contestants after `matches`; see the two fits for their units.

    A contestant without a counted match has strength 0, the prior mean.
    """
    if outcome not in get_args(Outcome):
        raise ConfigError(
            f"outcome must be one of {', '.join(get_args(Outcome))}, got {outcome!r} "
            "(strengths_from_matches). Choose one of them."
        )
    if outcome == "margin":
        return fit_margins(*margins_from_matches(size, matches), regularisation)
    return fit_strengths(wins_from_matches(size, matches, outcome), regularisation)


def _columns(played: list[Match]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return first, second and margin of first over second."""
    first = np.array([match.first for match in played])
    second = np.array([match.second for match in played])
    scores = np.array([match[2:4] for match in played], np.float64)
    return first, second, scores[:, 0] - scores[:, 1]


def _derivatives(
    wins: np.ndarray, games: np.ndarray, strengths: np.ndarray, regularisation: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient of the objective and the Hessian of its negative."""
    expected = _win_probabilities(strengths)
    gradient = (wins - games * expected).sum(axis=-1) - regularisation * strengths
    hessian = _laplacian(games * expected * (1 - expected))
    return gradient, hessian + regularisation * np.eye(strengths.shape[-1])


def _laplacian(weights: np.ndarray) -> np.ndarray:
    return weights.sum(axis=-1)[..., :, None] * np.eye(weights.shape[-1]) - weights


def _objective(wins: np.ndarray, strengths: np.ndarray, regularisation: float) -> np.ndarray:
    # The floor only matters to a step far too long, which the line search then refuses.
    likelihood = wins * np.log(np.maximum(_win_probabilities(strengths), 1e-300))
    return likelihood.sum(axis=(-1, -2)) - regularisation / 2 * (strengths**2).sum(axis=-1)


def _line_search(
    wins: np.ndarray,
    strengths: np.ndarray,
    step: np.ndarray,
    decrement: np.ndarray,
    regularisation: float,
) -> np.ndarray:
    """Take the Newton step, halved per group until it gains a tenth of what its slope promises."""
    start = _objective(wins, strengths, regularisation)
    length = np.ones(strengths.shape[:-1])
    for _ in range(40):
        gain = _objective(wins, strengths + length[..., None] * step, regularisation) - start
        short = gain < 0.1 * length * decrement - 1e-12 * np.abs(start)
        if not short.any():
            break
        length = np.where(short, length / 2, length)
    return strengths + length[..., None] * step


def _win_probabilities(strengths: np.ndarray) -> np.ndarray:
    return _sigmoid(strengths[..., :, None] - strengths[..., None, :])


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 0.5 + 0.5 * np.tanh(values / 2)


def _check(evidence: np.ndarray, regularisation: float) -> None:
    if evidence.ndim < 2 or evidence.shape[-1] != evidence.shape[-2]:
        raise ConfigError(
            f"evidence must be square in its last two axes, got shape {evidence.shape} "
            "(bradley_terry). Pass what wins_from_matches returns."
        )
    if not (np.isfinite(evidence).all() and (evidence >= 0).all()):
        raise ConfigError(
            "evidence must be finite and not negative, got other values (bradley_terry). "
            "Leave failed matches out."
        )
    if not regularisation > 0:
        raise ConfigError(
            f"regularisation must be above 0, got {regularisation} (bradley_terry). "
            "Without it the unbeaten have no finite strength."
        )
