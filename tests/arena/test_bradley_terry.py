import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import kendalltau

from arena_lightning.arena import Match, build_topology, play
from arena_lightning.arena.bradley_terry import (
    fit_margins,
    fit_strengths,
    margins_from_matches,
    strengths_from_matches,
    wins_from_matches,
)
from arena_lightning.arena.bradley_terry_ranking import BradleyTerryTopology
from arena_lightning.errors import ConfigError


def _matches(size, count, seed, tie_every=4):
    rng = np.random.default_rng(seed)
    matches = []
    for number in range(count):
        first, second = rng.choice(size, 2, replace=False).tolist()
        one, other = rng.normal(size=2).tolist()
        if number % tie_every == 0:
            matches.append(Match(first, second, one, one, "tie"))
        else:
            matches.append(Match(first, second, one, other, "decided"))
    return [*matches, Match(0, 1, None, None, "failed")]


def _negative_log_posterior(strengths, matches, regularisation):
    """Match by match, without matrices: an independent statement of the likelihood."""
    total = regularisation / 2 * np.sum(strengths**2)
    for first, second, score_first, score_second, status in matches:
        if status != "failed":
            won = 0.5 if status == "tie" else float(score_first > score_second)
            p = expit(strengths[first] - strengths[second])
            total -= won * np.log(p) + (1 - won) * np.log1p(-p)
    return total


@pytest.mark.parametrize("regularisation", [0.05, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_strengths_are_where_a_general_optimiser_finds_the_mode(seed, regularisation):
    matches = _matches(6, 15, seed)
    wins = wins_from_matches(6, matches, count_rematches=True)
    fitted = fit_strengths(wins, regularisation)
    reference = minimize(
        _negative_log_posterior,
        np.zeros(6),
        (matches, regularisation),
        method="BFGS",
        options={"gtol": 1e-8},
    )
    np.testing.assert_allclose(fitted.strengths, reference.x, atol=2e-5)
    flipped = [m if m.status != "decided" else m._replace(first=m[1], second=m[0]) for m in matches]
    other = fit_strengths(wins_from_matches(6, flipped, count_rematches=True), regularisation)
    assert np.abs(other.strengths - reference.x).max() > 0.1


def test_covariance_is_the_inverse_of_the_numerical_curvature():
    matches = _matches(4, 9, 1)
    fitted = fit_strengths(wins_from_matches(4, matches, count_rematches=True), 0.3)
    step, hessian = 1e-4, np.zeros((4, 4))
    for i in range(4):
        for j in range(4):
            for a in (1, -1):
                for b in (1, -1):
                    moved = fitted.strengths.copy()
                    moved[i] += a * step
                    moved[j] += b * step
                    value = _negative_log_posterior(moved, matches, 0.3)
                    hessian[i, j] += a * b * value / (4 * step**2)
    np.testing.assert_allclose(fitted.covariance @ hessian, np.eye(4), atol=1e-4)


def test_two_contestants_by_hand():
    # One win, prior precision l: 1 - sigma(2s) = l s. With s = 1/2, l = 2 (1 - sigma(1)).
    regularisation = 2 * (1 - expit(1.0))
    fitted = fit_strengths(np.array([[0.0, 1.0], [0.0, 0.0]]), regularisation)
    np.testing.assert_allclose(fitted.strengths, [0.5, -0.5], atol=1e-6)


def test_unbeaten_contestants_and_disconnected_groups_stay_finite():
    wins = np.zeros((5, 5))
    wins[0, 1] = wins[2, 3] = 1000.0
    strengths = fit_strengths(wins, 1e-3).strengths
    assert np.isfinite(strengths).all()
    assert strengths[0] == pytest.approx(strengths[2])
    assert strengths[0] > 0 > strengths[1]
    assert strengths[4] == 0.0


def test_groups_stacked_in_front_are_fitted_one_by_one():
    stack = np.stack([wins_from_matches(5, _matches(5, 12, seed)) for seed in range(4)])
    stacked = fit_strengths(stack)
    for wins, strengths, covariance in zip(
        stack, stacked.strengths, stacked.covariance, strict=True
    ):
        alone = fit_strengths(wins)
        np.testing.assert_allclose(strengths, alone.strengths, atol=1e-10)
        np.testing.assert_allclose(covariance, alone.covariance, atol=1e-10)


def test_rematch_adds_no_evidence_unless_asked_to():
    once = [Match(0, 1, 2.0, 1.0, "decided"), Match(1, 2, 3.0, 1.0, "decided")]
    twice = [*once, Match(1, 0, 1.0, 2.0, "decided")]
    np.testing.assert_array_equal(wins_from_matches(3, twice), wins_from_matches(3, once))
    counted = wins_from_matches(3, twice, count_rematches=True)
    assert counted[0, 1] == 2.0 and counted[1, 0] == 0.0


def test_soft_outcomes_grow_with_the_margin():
    matches = [Match(0, 1, 4.0, 1.0, "decided"), Match(1, 2, 2.0, 1.5, "decided")]
    wins = wins_from_matches(3, matches, "soft", margin_scale=2.0)
    np.testing.assert_allclose(logit([wins[0, 1], wins[1, 2]]), [1.5, 0.25])
    np.testing.assert_allclose(wins[0, 1] + wins[1, 0], 1.0)


def test_margins_are_ridge_regression():
    matches = [
        Match(0, 1, 5.0, 3.0, "decided"),
        Match(2, 1, 1.0, 4.0, "decided"),
        Match(0, 2, 4.0, 4.0, "tie"),
        Match(3, 0, 2.0, 1.0, "decided"),
        Match(1, 3, None, None, "failed"),
    ]
    design = np.zeros((4, 4))
    margin = np.zeros(4)
    for row, match in enumerate(matches[:4]):
        design[row, match.first], design[row, match.second] = 1.0, -1.0
        margin[row] = match.score_first - match.score_second
    augmented = np.vstack([design, np.sqrt(0.2) * np.eye(4)])
    expected = np.linalg.lstsq(augmented, np.append(margin, np.zeros(4)), rcond=None)[0]
    fitted = fit_margins(*margins_from_matches(4, matches), 0.2)
    np.testing.assert_allclose(fitted.strengths, expected, rtol=1e-10)
    np.testing.assert_allclose(fitted.covariance, np.linalg.inv(augmented.T @ augmented))


def test_noiseless_margins_give_back_the_utilities(perfect):
    utilities = np.random.default_rng(0).normal(size=12)
    standings = play(build_topology("swiss"), 12, perfect(utilities.tolist()))
    fitted = strengths_from_matches(12, standings.matches, "margin", regularisation=1e-9)
    np.testing.assert_allclose(fitted.strengths, utilities - utilities.mean(), atol=1e-6)


@pytest.mark.parametrize("outcome", ["win", "soft", "margin"])
def test_ranking_by_strength_keeps_the_cost_and_relabels(outcome, perfect):
    topology = BradleyTerryTopology(build_topology("swiss"), outcome)
    rng = np.random.default_rng(1)
    for size in (1, 2, 5, 8, 13):
        utilities = rng.normal(size=size)
        order, label = rng.permutation(size), rng.permutation(size)
        standings = play(topology, size, perfect(utilities.tolist()), order)
        assert len(standings.matches) == topology.cost(size).matches
        assert standings.ranks.sum() == size * (size - 1) / 2
        relabelled = np.empty(size)
        relabelled[label] = utilities
        other = play(topology, size, perfect(relabelled.tolist()), label[order])
        np.testing.assert_array_equal(other.ranks[label], standings.ranks)


def test_strengths_tell_more_than_tiers_when_only_wins_are_known():
    """Win/lose judge: the matches are the same, the table is better read."""
    gains = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        utilities = rng.normal(size=16)
        noise = rng.logistic(scale=0.3, size=(16, 16))

        def decide(pairing, utilities=utilities, noise=noise):
            low, high = min(pairing), max(pairing)
            low_wins = utilities[low] - utilities[high] + noise[low, high] > 0
            first_wins = float(low_wins == (pairing.first == low))
            return Match(*pairing, first_wins, 1 - first_wins, "decided")

        order = rng.permutation(16)
        inner = build_topology("double_elimination", lower_draw="fixed")
        taus = [
            kendalltau(-play(topology, 16, decide, order).ranks, utilities).statistic
            for topology in (inner, BradleyTerryTopology(inner))
        ]
        gains.append(taus[1] - taus[0])
    assert np.mean(gains) > 2 * np.std(gains) / 5


def test_unmeasured_contestant_is_ranked_in_the_middle(scripted):
    results = {(0, 1): (1.0, 0.0), (0, 2): "failed"}
    topology = BradleyTerryTopology(build_topology("anchor"))
    assert play(topology, 3, scripted(results)).ranks[2] == 1.0


@pytest.mark.parametrize(
    ("wins", "regularisation", "message"),
    [
        (np.zeros((2, 3)), 0.1, "square in its last two axes"),
        (np.full((2, 2), np.nan), 0.1, "finite and not negative"),
        (-np.ones((2, 2)), 0.1, "finite and not negative"),
        (np.zeros((2, 2)), 0.0, "regularisation must be above 0, got 0.0"),
    ],
)
def test_unusable_evidence_is_refused(wins, regularisation, message):
    with pytest.raises(ConfigError, match=message):
        fit_strengths(wins, regularisation)


def test_unknown_outcomes_are_refused():
    with pytest.raises(ConfigError, match="outcome must be one of win, soft, margin"):
        strengths_from_matches(2, [], "loss")
    with pytest.raises(ConfigError, match="outcome must be win or soft, got 'margin'"):
        wins_from_matches(2, [], "margin")
    with pytest.raises(ConfigError, match="outcome must be one of win, soft, margin"):
        BradleyTerryTopology(outcome="loss")
