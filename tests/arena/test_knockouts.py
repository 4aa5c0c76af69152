"""Single and double elimination: tie rules, failures, tiers and the reset, checked by hand."""

import numpy as np
import pytest

from arena_lightning.arena import Match, build_topology, play
from arena_lightning.errors import ConfigError

# Four contestants start as `order` has them: 0-3 and 1-2 meet, then the winners.
START = {"seeding": "order"}


def _play(name, decide, order=None, **options):
    return play(build_topology(name, **options), 4, decide, order)


def test_losers_of_a_round_are_ordered_by_their_average_score(scripted):
    results = {(0, 3): (9.0, 4.0), (1, 2): (8.0, 2.0), (0, 1): (3.0, 5.0)}
    standings = _play("single_elimination", scripted(results), **START)
    assert standings.ranks.tolist() == [1.0, 0.0, 3.0, 2.0]


def test_seeding_scores_count_in_the_average_once_also_for_the_anchor(scripted):
    # Seeding: 1 scores 9, 2 scores 8, 3 scores 1 and the anchor 6, 6 and 3, mean 5. Seeds 1 2 0 3.
    # Semi-finals 1-3 and 2-0; the losers' averages: 3 has (1 + 8) / 2 = 4.5, 0 has
    # (5 + 3.9) / 2 = 4.45. Were each of the anchor's matches counted, it would have 4.725.
    results = {
        (0, 1): (6.0, 9.0),
        (0, 2): (6.0, 8.0),
        (0, 3): (3.0, 1.0),
        (1, 3): (9.0, 8.0),
        (2, 1): (4.0, 5.0),
    }
    calls = []

    def decide(pairing):
        calls.append(set(pairing))
        if calls.count({0, 2}) == 2 and set(pairing) == {0, 2}:
            return scripted({(0, 2): (3.9, 7.0)})(pairing)
        return scripted(results)(pairing)

    standings = _play("single_elimination", decide)
    assert calls[3:] == [{1, 3}, {0, 2}, {1, 2}]
    assert standings.ranks.tolist() == [3.0, 0.0, 1.0, 2.0]


def test_tie_goes_to_the_higher_average_by_default_not_to_the_first_listed():
    # 0 beats 3 narrowly and 2 beats 1 with a high score: 2 has the higher average in the final.
    def decide(pairing):
        scores = {frozenset((0, 3)): {0: 6, 3: 5}, frozenset((1, 2)): {1: 5, 2: 9}}
        of = scores.get(frozenset(pairing), {0: 7, 2: 7})
        first, second = of[pairing.first], of[pairing.second]
        return Match(*pairing, first, second, "tie" if first == second else "decided")

    assert _play("single_elimination", decide, **START).ranks.tolist() == [1.0, 2.0, 0.0, 3.0]
    by_seed = _play("single_elimination", decide, tie="seed", **START)
    assert by_seed.ranks.tolist() == [0.0, 2.0, 1.0, 3.0]
    shared = _play("single_elimination", decide, tie="shared", **START)
    assert shared.ranks.tolist() == [0.5, 2.5, 0.5, 2.5]


def test_failed_match_lets_the_higher_seed_go_on_without_a_win_or_a_score(scripted):
    results = {(0, 3): "failed", (1, 2): (4.0, 8.0), (0, 2): (9.0, 3.0)}
    standings = _play("single_elimination", scripted(results), **START)
    assert standings.points.tolist() == [1.0, 0.0, 1.0, 0.0]
    np.testing.assert_array_equal(standings.scores, [9.0, 4.0, 5.5, np.nan])
    # 3 was never measured: it stands in the middle, and the others keep their order.
    assert standings.ranks[3] == 1.5
    assert standings.ranks[0] < standings.ranks[2] < standings.ranks[1]


def test_contestant_without_a_seeding_score_is_seeded_in_the_middle(scripted):
    results = {(0, c): (1.0, 9.0 - c) for c in range(1, 5)}
    results[(0, 2)] = "failed"
    generator = build_topology("single_elimination").rounds([0, 1, 2, 3, 4])
    seeding = next(generator)
    bracket = generator.send([scripted(results)(pairing) for pairing in seeding])
    # Scores: 1 -> 8, 3 -> 6, 4 -> 5, anchor 1. Seeds 1 3 2 4 0: the last two meet.
    assert set(bracket[0]) == {4, 0}
    assert {entry.contestant for entry in bracket[1:]} == {1, 3, 2}


def test_double_elimination_gives_a_second_chance(perfect):
    # 0 and 1, the best two, meet in round one; 1 comes back through the lower bracket.
    standings = _play("double_elimination", perfect([9.0, 8.0, 2.0, 1.0]), order=[0, 2, 3, 1])
    assert standings.matches[0][:2] == (0, 1)
    assert standings.ranks.tolist() == [0.0, 1.0, 2.0, 3.0]


def _upset_in_the_final(pairing):
    """0 wins the upper bracket, then loses every grand final to 1."""
    finals = set(pairing) == {0, 1}
    strength = (
        {0: 5, 1: 6, 2: 2, 3: 1} if finals and _upset_in_the_final.met else {0: 9, 1: 8, 2: 2, 3: 1}
    )
    _upset_in_the_final.met |= finals
    first, second = strength[pairing.first], strength[pairing.second]
    return Match(*pairing, first, second, "decided")


@pytest.mark.parametrize(("reset", "num_finals"), [(False, 1), (True, 2)])
def test_bracket_reset_replays_the_final_that_the_unbeaten_one_lost(reset, num_finals):
    _upset_in_the_final.met = False
    standings = _play(
        "double_elimination", _upset_in_the_final, order=[0, 1, 2, 3], bracket_reset=reset
    )
    finals = [match for match in standings.matches if set(match[:2]) == {0, 1}]
    assert len(finals) == 1 + num_finals
    assert standings.ranks.tolist() == [1.0, 0.0, 2.0, 3.0]


def test_no_reset_is_played_when_the_unbeaten_one_wins(perfect):
    topology = build_topology("double_elimination", bracket_reset=True)
    standings = play(topology, 4, perfect([4.0, 3.0, 2.0, 1.0]))
    assert len(standings.matches) == topology.cost(4).matches - 1


def test_papers_bracket_lets_seed_3_fall_before_seed_5(perfect):
    utilities = [float(16 - contestant) for contestant in range(16)]
    paper = play(build_topology("single_elimination", bracket="algorithm1"), 16, perfect(utilities))
    assert paper.ranks[4] < paper.ranks[2]
    fold = play(build_topology("single_elimination"), 16, perfect(utilities))
    assert fold.ranks.tolist() == list(range(16))


@pytest.mark.parametrize("option", [{"bracket": "spiral"}, {"seeding": "elo"}, {"tie": "first"}])
@pytest.mark.parametrize("name", ["single_elimination", "double_elimination"])
def test_unknown_options_are_refused(name, option):
    with pytest.raises(ConfigError, match=f"{next(iter(option))} must be one of"):
        build_topology(name, **option)
