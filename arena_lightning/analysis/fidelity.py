"""How faithful a ranking is: rank correlations, who is on top, and what the gradient would see.

    ranks of a topology, ranks of the target -> metrics per group -> means with intervals

All groups at once, in NumPy. A metric that is not defined for a group (a fully tied ranking has no
correlation) is NaN there; `summarise` counts those and shows them. It plays no tournament.
"""

from dataclasses import dataclass

import numpy as np

from arena_lightning.arena.advantages import advantages_from_ranks
from arena_lightning.errors import DataError
from arena_lightning.rng import generator_for

GROUP_METRICS = (
    "tau",
    "weighted_tau",
    "top1",
    "top2",
    "advantage_cosine",
    "advantage_error",
)
"""`tau`: Kendall's tau-b. `weighted_tau`: pairs weigh 1/(1+rank) of both members in the target.
`top1`, `top2`: share of the target's best one (two) that the ranking puts there. The advantages'
cosine and root mean squared difference are what the gradient sees."""
NUM_RESAMPLES = 1000


def kendall_tau(ranks: np.ndarray, target: np.ndarray, weighted: bool = False) -> np.ndarray:
    """Return Kendall's tau-b of each group, -1 to 1.

    Args:
        ranks: float64 `[group, contestant]`, 0.0 best, ties share the mean.
        target: same shape.
        weighted: weigh each pair by the sum of 1 / (1 + rank) of both members in `target`, so
            that the top counts most (Vigna 2015, hyperbolic and additive; ties stay ties).

    Returns:
        float64 `[group]`; NaN where either ranking is fully tied.

    Source: Kendall 1945; `scipy.stats.kendalltau` and `weightedtau` on one group.
    """
    ranks, target = _checked(ranks, target)
    weights = _pair_weights(target) if weighted else None
    return _tau(_signs(ranks), _signs(target), weights)


def _signs(ranks: np.ndarray) -> np.ndarray:
    """Return who is ahead in each pair of contestants, float32 `[group, pair]`, 0 for a tie."""
    first, second = np.triu_indices(ranks.shape[1], 1)
    one, other = ranks[:, first], ranks[:, second]
    return (one > other).astype(np.float32) - (one < other)


def _pair_weights(target: np.ndarray) -> np.ndarray:
    """Return the weight of each pair, float32 `[group, pair]`."""
    first, second = np.triu_indices(target.shape[1], 1)
    importance = (1.0 / (1.0 + target)).astype(np.float32)
    return importance[:, first] + importance[:, second]


def _tau(mine: np.ndarray, theirs: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    total = "gp,gp->g"
    if weights is None:
        agreement = np.einsum(total, mine, theirs)
        scale = np.einsum(total, mine, mine) * np.einsum(total, theirs, theirs)
    else:
        agreement = np.einsum(total, weights * mine, theirs)
        scale = np.einsum(total, weights * mine, mine) * np.einsum(total, weights * theirs, theirs)
    scale = np.sqrt(scale.astype(np.float64))
    undefined = np.full(len(mine), np.nan)
    return np.divide(agreement.astype(np.float64), scale, out=undefined, where=scale > 0)


def top_agreement(ranks: np.ndarray, target: np.ndarray, count: int) -> np.ndarray:
    """Return the share of the target's best `count` that the ranking has among its best `count`.

    Where ties straddle the edge each tied contestant counts with its chance of being drawn, so
    that a fully tied ranking agrees as often as a guess.

    Returns:
        float64 `[group]`, 0-1.
    """
    ranks, target = _checked(ranks, target)
    count = min(count, ranks.shape[1])
    return (_top_chance(ranks, count) * _top_chance(target, count)).sum(axis=1) / count


def _top_chance(ranks: np.ndarray, count: int) -> np.ndarray:
    """Return each contestant's chance to be among the best `count`, ties drawn at random."""
    ordered = np.sort(ranks, axis=1)
    edge = ordered[:, count - 1 : count]
    equal = (ranks == edge).sum(axis=1, keepdims=True)
    better = (ranks < edge).sum(axis=1, keepdims=True)
    return np.where(ranks < edge, 1.0, np.where(ranks == edge, (count - better) / equal, 0.0))


def advantage_cosine(ranks: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the cosine between the advantages of two rankings, `[group]`; NaN where one is 0."""
    return _cosine(advantages_from_ranks(ranks), advantages_from_ranks(target))


def step_cosine(ranks: np.ndarray, target: np.ndarray, groups_per_step: int) -> np.ndarray:
    """Return the cosine between the advantage vectors of whole steps of K groups.

    Groups are taken in order, K at a time; what does not fill a step is left out.

    Returns:
        float64 `[step]`; its spread is what K buys.
    """
    steps = len(ranks) // groups_per_step
    if not steps:
        raise DataError(
            f"a step of {groups_per_step} groups must have at least as many, got {len(ranks)} "
            "(step_cosine). Draw more groups, or make steps smaller."
        )
    used = steps * groups_per_step
    mine = advantages_from_ranks(ranks[:used]).reshape(steps, -1)
    theirs = advantages_from_ranks(target[:used]).reshape(steps, -1)
    return _cosine(mine, theirs)


def _cosine(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    scale = np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    dot = (one * other).sum(axis=1)
    return np.divide(dot, scale, out=np.full(len(one), np.nan), where=scale > 0)


def group_metrics(ranks: np.ndarray, target: np.ndarray) -> dict[str, np.ndarray]:
    """Return every metric of `GROUP_METRICS`, float64 `[group]`."""
    ranks, target = _checked(ranks, target)
    difference = advantages_from_ranks(ranks) - advantages_from_ranks(target)
    mine, theirs = _signs(ranks), _signs(target)
    return {
        "tau": _tau(mine, theirs, None),
        "weighted_tau": _tau(mine, theirs, _pair_weights(target)),
        "top1": top_agreement(ranks, target, 1),
        "top2": top_agreement(ranks, target, 2),
        "advantage_cosine": advantage_cosine(ranks, target),
        "advantage_error": np.sqrt((difference**2).mean(axis=1)),
    }


def ranks_of_truth(truth: np.ndarray) -> np.ndarray:
    """Return the ranks of true utilities `[group, contestant]`, 0.0 best, ties share the mean."""
    better = (truth[:, None, :] > truth[:, :, None]).sum(axis=2)
    equal = (truth[:, None, :] == truth[:, :, None]).sum(axis=2)
    return better + (equal - 1) / 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over groups with its bootstrap interval (95%)."""

    mean: float
    low: float
    high: float
    num_groups: int
    num_undefined: int
    """Groups where the metric is not defined (NaN); the mean is over the others."""


def summarise(
    values: np.ndarray,
    seed: int = 0,
    stream: str = "fidelity/bootstrap",
    clusters: np.ndarray | None = None,
) -> Estimate:
    """Return the mean of `[group]` values and a percentile bootstrap interval over groups.

    With `clusters` (int `[group]`) whole clusters are resampled: groups drawn from one recorded
    group are no independent evidence. The mean is then over the clusters' means.

    Equal seeds and numbers of groups resample the same groups, so that estimates of topologies
    that played the same groups move together. Without a defined value all is NaN.
    """
    values = np.asarray(values, dtype=np.float64)
    num_groups, undefined = len(values), int(np.isnan(values).sum())
    if clusters is not None and len(np.unique(clusters)) < num_groups:
        values = _cluster_means(values, clusters)
    defined = ~np.isnan(values)
    if not defined.any():
        return Estimate(np.nan, np.nan, np.nan, num_groups, undefined)
    counts = _resamples(len(values), seed, stream)
    filled = np.where(defined, values, 0.0)
    weight = counts @ defined
    means = np.divide(counts @ filled, weight, out=np.full(len(counts), np.nan), where=weight > 0)
    low, high = np.nanquantile(means, [0.025, 0.975])
    return Estimate(
        float(filled.sum() / defined.sum()), float(low), float(high), num_groups, undefined
    )


def _cluster_means(values: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Return the mean of each cluster's defined values, NaN without one."""
    _, places = np.unique(clusters, return_inverse=True)
    defined = ~np.isnan(values)
    totals = np.bincount(places, np.where(defined, values, 0.0))
    counts = np.bincount(places, defined)
    return np.divide(totals, counts, out=np.full(len(totals), np.nan), where=counts > 0)


def paired_difference(
    one: np.ndarray, other: np.ndarray, seed: int = 0, clusters: np.ndarray | None = None
) -> Estimate:
    """Return the mean of `one - other` over the groups where both are defined, with its interval.

    Both must be `[group]` of the same groups, in the same order.
    """
    if np.shape(one) != np.shape(other):
        raise DataError(
            f"paired values must be of the same groups, got {np.shape(one)} and {np.shape(other)} "
            "(paired_difference). Play both topologies on one batch."
        )
    return summarise(np.asarray(one) - np.asarray(other), seed, clusters=clusters)


_RESAMPLES: dict[tuple[int, int, str], np.ndarray] = {}


def _resamples(count: int, seed: int, stream: str) -> np.ndarray:
    """Return how often each group is drawn, float32 `[resample, group]`, worked out once."""
    key = (count, seed, stream)
    if key not in _RESAMPLES:
        rng = generator_for(seed, stream, count)
        drawn = rng.multinomial(count, np.full(count, 1 / count), size=NUM_RESAMPLES)
        if len(_RESAMPLES) >= 8:
            _RESAMPLES.clear()
        _RESAMPLES[key] = drawn.astype(np.float32)
    return _RESAMPLES[key]


def _checked(ranks: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ranks, target = np.asarray(ranks, np.float64), np.asarray(target, np.float64)
    if ranks.ndim != 2 or ranks.shape != target.shape or ranks.shape[1] < 2:
        raise DataError(
            "ranks must be [group, N] with N at least 2, and the target alike, got "
            f"{ranks.shape} and {target.shape} (fidelity). Pass the ranks of the same groups."
        )
    return ranks, target
