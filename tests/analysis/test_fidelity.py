import itertools

import numpy as np
import pytest
from scipy.stats import kendalltau, rankdata, weightedtau

from arena_lightning.analysis import fidelity
from arena_lightning.analysis.fidelity import (
    group_metrics,
    kendall_tau,
    paired_difference,
    ranks_of_truth,
    step_cosine,
    summarise,
    top_agreement,
)
from arena_lightning.arena import advantages_from_ranks
from arena_lightning.errors import DataError


def draw(groups, size, levels=None, seed=0):
    """Return ranks with ties, `[group, contestant]`."""
    rng = np.random.default_rng(seed)
    values = (
        rng.random((groups, size)) if levels is None else rng.integers(0, levels, (groups, size))
    )
    return np.array([rankdata(row) - 1 for row in values])


@pytest.mark.parametrize("size", [2, 3, 7, 16])
@pytest.mark.parametrize("levels", [None, 3])
def test_tau_is_scipys_tau_b_with_and_without_ties(size, levels):
    one, other = draw(40, size, levels, 1), draw(40, size, levels, 2)
    expected = [kendalltau(a, b).statistic for a, b in zip(one, other, strict=True)]
    np.testing.assert_allclose(kendall_tau(one, other), expected, atol=1e-6)
    np.testing.assert_allclose(kendall_tau(-one, other), -np.array(expected), atol=1e-6)


def test_weighted_tau_is_scipys_where_nothing_is_tied():
    one, other = draw(30, 9, seed=3), draw(30, 9, seed=4)
    expected = [
        weightedtau(a, b, rank=b.astype(int)).statistic for a, b in zip(one, other, strict=True)
    ]
    np.testing.assert_allclose(kendall_tau(one, other, weighted=True), expected, atol=1e-6)


def test_a_fully_tied_ranking_has_no_tau_and_is_counted():
    tied, plain = np.full((2, 4), 1.5), draw(2, 4)
    assert np.isnan(kendall_tau(tied, plain)).all()
    values = np.array([0.5, np.nan, 0.7, np.nan])
    estimate = summarise(values)
    assert (estimate.num_groups, estimate.num_undefined) == (4, 2)
    assert estimate.mean == pytest.approx(0.6)
    assert np.isnan(summarise(np.array([np.nan])).mean)


def test_top_agreement_draws_ties_at_random():
    """By hand: every way to break the ties, on both sides, counted."""
    one = np.array([[0.0, 1.5, 1.5, 3.0]])
    other = np.array([[1.0, 1.0, 1.0, 3.0]])

    def breaks(ranks):
        orders = [
            order
            for order in itertools.permutations(range(4))
            if all(ranks[a] <= ranks[b] for a, b in itertools.pairwise(order))
        ]
        return [set(order[:2]) for order in orders]

    shared = [len(a & b) / 2 for a in breaks(one[0]) for b in breaks(other[0])]
    assert top_agreement(one, other, 2)[0] == pytest.approx(np.mean(shared))
    assert top_agreement(one, one, 1)[0] == 1.0
    assert top_agreement(np.full((1, 4), 1.5), other, 1)[0] == pytest.approx(0.25)


def test_advantages_are_compared_as_vectors():
    one, other = draw(20, 6, seed=5), draw(20, 6, seed=6)
    metrics = group_metrics(one, other)
    for group in range(20):
        a, b = advantages_from_ranks(one[group]), advantages_from_ranks(other[group])
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert metrics["advantage_cosine"][group] == pytest.approx(cosine)
        assert metrics["advantage_error"][group] == pytest.approx(np.sqrt(np.mean((a - b) ** 2)))


def test_a_step_is_one_vector_over_its_groups():
    one, other = draw(7, 5, seed=7), draw(7, 5, seed=8)
    cosines = step_cosine(one, other, 3)
    a, b = advantages_from_ranks(one[3:6]).ravel(), advantages_from_ranks(other[3:6]).ravel()
    assert cosines.shape == (2,)
    assert cosines[1] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    many = draw(4000, 5, seed=9), draw(4000, 5, seed=10)
    spread = [step_cosine(*many, k).std() for k in (1, 4, 16)]
    assert spread[0] > 1.5 * spread[1] > 2.25 * spread[2]
    with pytest.raises(DataError, match="a step of 8 groups must have at least as many, got 7"):
        step_cosine(one, other, 8)


def test_ranks_of_truth_share_ties():
    truth = np.array([[3.0, 9.0, 3.0, 1.0]])
    assert ranks_of_truth(truth).tolist() == [[1.5, 0.0, 1.5, 3.0]]


def test_the_interval_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(11)
    inside = 0
    for _ in range(200):
        estimate = summarise(rng.exponential(1.0, 80))
        inside += estimate.low <= 1.0 <= estimate.high
    assert 0.88 <= inside / 200 <= 0.99


def test_pairing_removes_what_the_groups_have_in_common():
    rng = np.random.default_rng(12)
    common = rng.normal(0, 1, 300)
    one, other = common + rng.normal(0.1, 0.05, 300), common + rng.normal(0, 0.05, 300)
    difference = paired_difference(one, other)
    assert difference.low > 0.05
    assert summarise(one).low < summarise(other).high, "unpaired, they can't be told apart"
    with pytest.raises(DataError, match="of the same groups"):
        paired_difference(one, other[:5])


def test_metrics_refuse_rankings_of_different_groups():
    with pytest.raises(DataError, match="ranks must be"):
        fidelity.kendall_tau(draw(3, 4), draw(3, 5))
