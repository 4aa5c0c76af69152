import itertools

import numpy as np
import pytest

from arena_lightning.arena.standings import Tally, ranks_from_keys, share_ranks
from arena_lightning.types import Match


def test_greatest_key_has_rank_zero_and_equal_keys_share_the_mean():
    assert ranks_from_keys([5, 9, 5, 1, 5]) == [2.0, 0.0, 2.0, 4.0, 2.0]


def _mean_ranks_over_all_placements(keys):
    """Brute force: average the rank over every order in which the measured keep theirs."""
    size = len(keys)
    totals, count = np.zeros(size), 0
    for order in itertools.permutations(range(size)):
        measured = [keys[c] for c in order if keys[c] is not None]
        if measured == sorted(measured, reverse=True):
            count += 1
            for rank, contestant in enumerate(order):
                totals[contestant] += rank
    return totals / count


@pytest.mark.parametrize("keys", [[3, None, 1], [3, None, 1, None, 2], [None, None], [4, None]])
def test_unmeasured_contestant_has_its_mean_rank_over_all_placements(keys):
    np.testing.assert_allclose(ranks_from_keys(keys), _mean_ranks_over_all_placements(keys))


def test_linked_contestants_share_the_mean_of_their_ranks_transitively():
    assert share_ranks([0.0, 1.0, 2.0, 3.0, 4.0], [(0, 3), (4, 3)]) == [
        7 / 3,
        1.0,
        2.0,
        7 / 3,
        7 / 3,
    ]


def test_tally_counts_wins_ties_and_nothing_of_a_failed_match():
    tally = Tally(3)
    tally.add([Match(0, 1, 7.0, 4.0, "decided"), Match(2, 0, 5.0, 5.0, "tie")])
    tally.add([Match(1, 2, None, None, "failed"), Match(1, 0, 3.0, 9.0, "decided")])
    standings = tally.standings([0.0, 2.0, 1.0])
    assert standings.points.tolist() == [2.5, 0.0, 0.5]
    np.testing.assert_allclose(standings.scores, [21 / 3, 7 / 2, 5.0])
    assert standings.num_rounds == 2
    assert len(standings.matches) == 4
    assert tally.point_rates() == [2.5 / 3, 0.0, 0.5]


def test_a_tie_with_unequal_scores_is_still_a_tie():
    tally = Tally(2)
    tally.add([Match(0, 1, 7.0, 6.9, "tie")])
    assert tally.points == [0.5, 0.5]


def test_a_decided_match_with_equal_scores_is_a_bug_that_shows():
    with pytest.raises(AssertionError, match="unequal scores"):
        Tally(2).add([Match(0, 1, 5.0, 5.0, "decided")])


def test_means_that_differ_by_summing_order_only_are_equal():
    tally = Tally(2)
    for score in (0.1, 0.2, 0.3):
        tally.add([Match(0, 1, score, 0.6 - score - 0.2, "tie")])
    sums = [0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1]
    tally.score_sums = sums
    assert sums[0] != sums[1]
    keys = tally.score_keys()
    assert keys[0] == keys[1]
