import numpy as np
import pytest

from arena_lightning.arena import advantages_from_ranks, rewards_from_ranks
from arena_lightning.errors import ConfigError


def test_rewards_map_best_to_one_and_worst_to_zero():
    np.testing.assert_allclose(
        rewards_from_ranks(np.array([2.0, 0.0, 3.0, 1.0])), [1 / 3, 1.0, 0.0, 2 / 3]
    )


def test_advantages_match_the_hand_calculation():
    # Rewards 1, 1/2, 0: mean 1/2, sample std sqrt((1/4 + 0 + 1/4) / 2) = 1/2.
    expected = np.array([0.5, 0.0, -0.5]) / (0.5 + 1e-6)
    np.testing.assert_allclose(advantages_from_ranks(np.array([0.0, 1.0, 2.0])), expected)
    # The population std, sqrt(1/6), must not pass.
    assert not np.allclose(expected, np.array([0.5, 0.0, -0.5]) / np.sqrt(1 / 6), rtol=1e-3)


def test_better_rank_has_the_greater_advantage():
    advantages = advantages_from_ranks(np.array([3.0, 0.5, 0.5, 2.0]))
    assert advantages[1] == advantages[2] > advantages[3] > advantages[0]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_fully_tied_group_has_advantages_of_exactly_zero(size):
    ranks = np.full(size, (size - 1) / 2)
    np.testing.assert_array_equal(advantages_from_ranks(ranks), np.zeros(size))
    np.testing.assert_array_equal(rewards_from_ranks(ranks), np.full(size, 0.5))


def test_groups_stacked_in_front_are_normalised_one_by_one():
    one, other = np.array([0.0, 1.0, 2.0]), np.array([2.0, 0.5, 0.5])
    stacked = advantages_from_ranks(np.stack([one, other, np.ones(3)]))
    np.testing.assert_array_equal(stacked[0], advantages_from_ranks(one))
    np.testing.assert_array_equal(stacked[1], advantages_from_ranks(other))
    np.testing.assert_array_equal(stacked[2], np.zeros(3))


@pytest.mark.parametrize("ranks", [[0.0, 2.0], [-0.5, 1.0], [0.0, np.nan], [1.0, 2.0]])
def test_ranks_outside_their_range_are_refused(ranks):
    with pytest.raises(ConfigError, match="ranks must lie between 0 and 1"):
        advantages_from_ranks(np.array(ranks))


def test_an_empty_group_is_refused():
    with pytest.raises(ConfigError, match="at least one contestant"):
        rewards_from_ranks(np.zeros(0))
