"""The defects as method.md 2.3 and 2.6 measured them, by running the released code."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from arena_lightning.analysis.released_behaviour import (
    ReleasedKnockoutTopology,
    ReleasedSwissTopology,
)
from arena_lightning.arena import TOPOLOGIES, Match, Pairing, play


def perfect(utilities):
    return lambda p: Match(*p, utilities[p.first], utilities[p.second], "decided")


def mean_tau(topology, size, noise=0.0, trials=400):
    taus, tops = [], []
    rng = np.random.default_rng(size)
    for _ in range(trials):
        truth = rng.normal(size=size)

        def decide(pairing, truth=truth):
            first, second = truth[list(pairing)] + noise * rng.normal(size=2)
            return Match(*pairing, float(first), float(second), "decided")

        ranks = play(topology, size, decide, rng.permutation(size).tolist()).ranks
        taus.append(kendalltau(-ranks, truth).statistic)
        tops.append(ranks[np.argmax(truth)] == ranks.min())
    return np.nanmean(taus), np.mean(tops)


@pytest.mark.parametrize("size", [6, 8, 16])
def test_released_swiss_knows_nothing_even_with_a_perfect_judge(size):
    tau, top = mean_tau(ReleasedSwissTopology(), size)
    assert abs(tau) < 0.08
    assert top < 2.5 / size
    assert mean_tau(TOPOLOGIES["swiss"](), size, trials=50)[0] > 0.75


def test_released_byes_miss_the_top_seeds():
    """Six contestants: the released first round is (0,3) (4,1) (2,5), seven rest seed 5."""
    utilities = [9.0, 8.0, 7.0, 6.0, 5.0, 4.0]
    rounds = ReleasedKnockoutTopology().rounds(range(6))
    seeding = next(rounds)
    matches = [Match(*p, utilities[p.first], utilities[p.second], "decided") for p in seeding]
    first_round = rounds.send(matches)
    assert first_round == [Pairing(0, 3), Pairing(4, 1), Pairing(2, 5)]
    tau, _ = mean_tau(ReleasedKnockoutTopology(), 6)
    assert 0.80 < tau < 0.93
    assert mean_tau(TOPOLOGIES["single_elimination"](), 6, trials=50)[0] == pytest.approx(1.0)


@pytest.mark.parametrize("size", [8, 16])
def test_released_knockout_is_right_for_powers_of_two(size):
    assert mean_tau(ReleasedKnockoutTopology(), size, trials=60)[0] == pytest.approx(1.0)
