"""Round robin and anchor: few rules, checked by hand."""

import numpy as np
import pytest

from arena_lightning.arena import build_topology, play
from arena_lightning.errors import ConfigError

BEATS = {
    (0, 1): (6.0, 5.0),
    (0, 2): (6.0, 6.0),
    (0, 3): (4.0, 9.0),
    (1, 2): (7.0, 5.0),
    (1, 3): (6.0, 5.0),
    (2, 3): (8.0, 1.0),
}
# Points with a tie at 0.5: 0 -> 1.5, 1 -> 2, 2 -> 1.5, 3 -> 1.


def test_round_robin_ranks_by_points_and_shares_ties(scripted):
    standings = play(build_topology("round_robin"), 4, scripted(BEATS))
    assert standings.points.tolist() == [1.5, 2.0, 1.5, 1.0]
    assert standings.ranks.tolist() == [1.5, 0.0, 1.5, 3.0]


def test_round_robin_gives_nothing_for_a_tie_under_equation_4(scripted):
    # Strict wins: 0 -> 1, 1 -> 2, 2 -> 1, 3 -> 1.
    standings = play(build_topology("round_robin", tie_points=0.0), 4, scripted(BEATS))
    assert standings.ranks.tolist() == [2.0, 0.0, 2.0, 2.0]


def test_round_robin_may_break_ties_by_score(scripted):
    # Scores of 0: 16/3, of 2: 19/3.
    standings = play(build_topology("round_robin", tie_break="score"), 4, scripted(BEATS))
    assert standings.ranks.tolist() == [2.0, 0.0, 1.0, 3.0]


def test_round_robin_counts_points_a_match_so_that_a_failure_costs_nobody(scripted):
    results = {**BEATS, (1, 2): "failed"}
    # 0: 1.5 of 3, 1: 1 of 2, 2: 1.5 of 2, 3: 1 of 3. One loss by failure would put 1 below 0.
    standings = play(build_topology("round_robin"), 4, scripted(results))
    assert standings.ranks.tolist() == [1.5, 1.5, 0.0, 3.0]


def test_anchor_ranks_by_the_score_in_the_match_with_contestant_0(scripted):
    results = {(0, 1): (5.0, 8.0), (0, 2): (7.0, 2.0), (0, 3): (6.0, 8.0)}
    standings = play(build_topology("anchor"), 4, scripted(results), order=[3, 1, 0, 2])
    # The anchor's score is its mean, 6.
    assert standings.scores.tolist() == [6.0, 8.0, 2.0, 8.0]
    assert standings.ranks.tolist() == [2.0, 0.5, 3.0, 0.5]
    assert [match[:2] for match in standings.matches] == [(0, 3), (0, 1), (0, 2)]


def test_anchor_puts_an_unmeasured_contestant_in_the_middle(scripted):
    results = {(0, 1): (5.0, 8.0), (0, 2): "failed"}
    standings = play(build_topology("anchor"), 3, scripted(results))
    np.testing.assert_allclose(standings.ranks, [1 + 2 / 3, 1 / 3, 1.0])


def test_options_that_do_not_exist_are_refused():
    with pytest.raises(ConfigError, match=r"tie_points must lie in 0-0.5, got 0.7"):
        build_topology("round_robin", tie_points=0.7)
    with pytest.raises(ConfigError, match="tie_break must be one of shared, score, got 'coin'"):
        build_topology("round_robin", tie_break="coin")
    with pytest.raises(ConfigError, match=r"one of round_robin, anchor, .*got 'ladder'"):
        build_topology("ladder")
    with pytest.raises(ConfigError, match="options of topology anchor must be ones it has"):
        build_topology("anchor", rungs=3)


@pytest.mark.parametrize("name", ["anchor", "single_elimination"])
def test_an_anchor_that_is_no_contestant_is_refused(name, perfect):
    with pytest.raises(ConfigError, match=r"anchor must be one of the contestants 0..2, got 3"):
        play(build_topology(name, anchor=3), 3, perfect([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [1, 2, 3]])
def test_an_order_that_is_no_permutation_is_refused(order, perfect):
    with pytest.raises(ConfigError, match=r"order must be a permutation of 0..2"):
        play(build_topology("swiss"), 3, perfect([1.0, 2.0, 3.0]), order)


def test_a_tournament_of_nobody_is_refused(perfect):
    with pytest.raises(ConfigError, match="at least 1 contestant, got 0"):
        play(build_topology("swiss"), 0, perfect([]))
