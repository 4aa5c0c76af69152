"""Ranks into rewards into advantages: the only normalisation in the project.

    ranks -> rewards in [0, 1] -> advantages centred within the group

It knows nothing of matches: whether a group was decided at all is the arena's to say.
"""

import numpy as np

from arena_lightning.errors import ConfigError

EPSILON = 1e-6


def rewards_from_ranks(ranks: np.ndarray) -> np.ndarray:
    """Map ranks to rewards, 1.0 best.

    Args:
        ranks: `[..., group]`, 0.0 best, ties share the mean.

    Returns:
        float64 `[..., group]` in 0-1. A group of one has no ranking: its reward is 0.5, what all
        members of a fully tied group get.

    Raises:
        ConfigError: ranks outside 0..N-1 or not finite.

    Source: ArenaRL, arXiv:2601.06487, eq. 6.
    """
    ranks = np.asarray(ranks, dtype=np.float64)
    if ranks.ndim == 0 or ranks.shape[-1] == 0:
        raise ConfigError(
            f"ranks must have at least one contestant, got shape {ranks.shape} "
            "(rewards_from_ranks). Pass the ranks of a group."
        )
    last = ranks.shape[-1] - 1
    if not (np.isfinite(ranks).all() and ranks.min() >= 0 and ranks.max() <= last):
        raise ConfigError(
            f"ranks must lie between 0 and {last} for {last + 1} contestants, got {ranks} "
            "(rewards_from_ranks). Pass `Standings.ranks`, 0.0 best."
        )
    if last == 0:
        return np.full_like(ranks, 0.5)
    return 1.0 - ranks / last


def advantages_from_ranks(ranks: np.ndarray) -> np.ndarray:
    """Map ranks to advantages: rewards centred within the group and divided by their spread.

    Args:
        ranks: `[..., group]`, 0.0 best, ties share the mean.

    Returns:
        float64 `[..., group]`, positive for the better half, sum 0 within the group. Exactly zero
        when all ranks are equal, and for a group of one.

    Raises:
        ConfigError: ranks outside 0..N-1 or not finite.

    Source: ArenaRL, arXiv:2601.06487, eq. 7: (r - mean) / (std + 1e-6), sample std (ddof 1 and the
    epsilon as in the released code; the paper does not state them).
    """
    rewards = rewards_from_ranks(ranks)
    if rewards.shape[-1] == 1:
        return np.zeros_like(rewards)
    centred = rewards - rewards.mean(axis=-1, keepdims=True)
    spread = rewards.std(axis=-1, ddof=1, keepdims=True)
    tied = rewards.max(axis=-1, keepdims=True) == rewards.min(axis=-1, keepdims=True)
    return np.where(tied, 0.0, centred / (spread + EPSILON))


def advantages_from_scores(scores: np.ndarray) -> np.ndarray:
    """Map pointwise scores to advantages: centred within the group, divided by their spread.

    Args:
        scores: `[group]`, greatest best, finite.

    Returns:
        float64 `[group]`, sum 0; zeros when all scores are equal, and for a group of one.

    Raises:
        ConfigError: scores that are not finite.

    Source: GRPO, arXiv:2402.03300, section 4.1.2 (outcome supervision); spread as in
    `advantages_from_ranks`.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(scores).all():
        raise ConfigError(
            f"scores must be finite, got {scores} (advantages_from_scores). Leave out those that "
            "a judge failed on."
        )
    if len(scores) < 2 or scores.max() == scores.min():
        return np.zeros_like(scores)
    return (scores - scores.mean()) / (scores.std(ddof=1) + EPSILON)
