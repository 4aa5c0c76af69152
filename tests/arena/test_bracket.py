import pytest

from arena_lightning.arena.bracket import (
    algorithm1_seeds,
    double_bracket,
    fold_seeds,
    single_bracket,
)


def _one_based(seeds):
    return [seed + 1 for seed in seeds]


def test_fold_is_the_standard_bracket():
    assert _one_based(fold_seeds(4)) == [1, 4, 2, 3]
    assert _one_based(fold_seeds(8)) == [1, 8, 4, 5, 2, 7, 3, 6]


def test_algorithm_1_is_the_papers_bracket():
    assert _one_based(algorithm1_seeds(8)) == [1, 8, 3, 6, 4, 5, 2, 7]
    # If favourites win, the quarter-finals of 16 are 1-3, 5-7, 8-6 and 4-2.
    slots = _one_based(algorithm1_seeds(16))
    favourites = [min(pair) for pair in zip(slots[::2], slots[1::2], strict=True)]
    assert favourites == [1, 3, 5, 7, 8, 6, 4, 2]


@pytest.mark.parametrize("kind", ["fold", "algorithm1"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 8, 13, 16, 33])
def test_every_contestant_leaves_once_and_the_rest_is_one_champion(size, kind):
    for bracket, losses in ((single_bracket(size, kind), 1), (double_bracket(size, kind), 2)):
        num_matches = sum(len(pairs) for pairs, _, _ in bracket.rounds)
        assert num_matches == losses * (size - 1)
        assert len(bracket.exits) == size
        assert len({cell for cell, _ in bracket.exits}) == size
        champions = [cell for cell, tier in bracket.exits if tier == len(bracket.rounds) + 1]
        assert len(champions) == 1


def test_each_cell_is_used_once():
    for bracket in (single_bracket(13, "fold"), double_bracket(13, "fold")):
        used = [cell for pairs, _, _ in bracket.rounds for pair in pairs for cell in pair]
        used += [cell for cell, _ in bracket.exits]
        assert len(used) == len(set(used)) == 13 + 2 * sum(len(p) for p, _, _ in bracket.rounds)


def test_lower_bracket_meets_entrants_from_another_part_of_the_draw_first():
    # 8 slots, favourites (lower cell of each pair's seeds) irrelevant: follow the cells. Upper
    # round 1 fills cells 8-15; its losers are 9, 11 (top half) and 13, 15 (bottom half).
    rounds = double_bracket(8, "fold").rounds
    upper_2, lower_1 = rounds[1][0][:2], rounds[1][0][2:]
    assert upper_2 == ((8, 10), (12, 14))
    assert lower_1 == ((9, 11), (13, 15))
    # The loser of upper 12-14 (cell 19) meets the survivor of the other half, 9-11 (cell 20).
    assert set(rounds[2][0][1:]) == {(19, 20), (17, 22)}
