"""The topologies beyond the paper's, against the same contract."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from arena_lightning.arena import TOPOLOGIES, Bye, Match, Pairing, advantages_from_ranks
from arena_lightning.arena.topology import build_topology, play
from tests.contracts.test_topologies import _rounds, draw, erratic, perfect

PAPERS = {"round_robin", "anchor", "single_elimination", "double_elimination", "swiss"}
NAMES = sorted(set(TOPOLOGIES) - PAPERS)
WITH_ANCHOR = {"seeded_swiss", "hybrid"}
SIZES = (*range(2, 20), 31, 32, 33, 64)
BUDGETED = ("active", "active_two_rounds", "hybrid", "random_graph", "random_graph_completed")
POINTS = sorted(set(NAMES) - {"merge_insertion", "repeated_knockout"})


def with_anchor(name, anchor):
    if name.startswith("single_elimination_"):
        inner = build_topology("single_elimination", anchor=anchor)
        return build_topology(name, inner=inner)
    return build_topology(name, **({"anchor": anchor} if name in WITH_ANCHOR else {}))


@pytest.mark.parametrize("name", NAMES)
def test_relabelling_contestants_and_order_relabels_the_ranks_exactly(name):
    for size in (*range(2, 14), 31, 33):
        decide = erratic(size, size)
        _, order = draw(size, 1)
        label = np.random.default_rng(size).permutation(size).tolist()
        original = {new: old for old, new in enumerate(label)}

        def relabelled(pairing, decide=decide, original=original):
            match = decide(Pairing(original[pairing.first], original[pairing.second]))
            return Match(*pairing, *match[2:])

        plain = play(with_anchor(name, 0), size, decide, order)
        other = play(with_anchor(name, label[0]), size, relabelled, [label[c] for c in order])
        np.testing.assert_array_equal(other.ranks[label], plain.ranks)
        pairs = [Pairing(label[m.first], label[m.second]) for m in plain.matches]
        assert [Pairing(m.first, m.second) for m in other.matches] == pairs


@pytest.mark.parametrize("name", NAMES)
def test_cost_is_what_is_played_or_a_bound_on_it(name):
    topology = TOPOLOGIES[name]()
    for size in (1, *SIZES):
        standings = play(topology, size, erratic(size, size))
        cost = topology.cost(size)
        if cost.exact:
            assert (len(standings.matches), standings.num_rounds) == (cost.matches, cost.rounds)
        else:
            assert len(standings.matches) <= cost.matches
            assert standings.num_rounds <= cost.rounds


@pytest.mark.parametrize("name", BUDGETED)
def test_budgeted_topologies_cost_no_more_than_seeded_single_elimination(name):
    for size in SIZES:
        assert TOPOLOGIES[name]().cost(size).matches <= 2 * size - 2


@pytest.mark.parametrize("name", NAMES)
def test_nobody_still_in_is_left_without_a_pairing_or_bye(name):
    for size in (2, 3, 5, 6, 7, 11, 16, 33):
        rounds = _rounds(TOPOLOGIES[name](), size)
        for number, entries in enumerate(rounds):
            named = [contestant for entry in entries for contestant in entry]
            later = {c for entries in rounds[number:] for entry in entries for c in entry}
            assert later <= set(named)
            byes = [entry.contestant for entry in entries if isinstance(entry, Bye)]
            assert all(named.count(contestant) == 1 for contestant in byes)


@pytest.mark.parametrize("name", NAMES)
def test_ranks_sum_to_a_constant_and_advantages_to_zero(name):
    for size in SIZES:
        ranks = play(TOPOLOGIES[name](), size, erratic(size, size + 1)).ranks
        assert ranks.sum() == pytest.approx(size * (size - 1) / 2, abs=1e-9)
        assert advantages_from_ranks(ranks).sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_judge_that_always_fails_ranks_nobody(name):
    for size in (2, 3, 8, 13):
        standings = play(TOPOLOGIES[name](), size, lambda p: Match(*p, None, None, "failed"))
        np.testing.assert_array_equal(standings.ranks, np.full(size, (size - 1) / 2))
        assert np.isnan(standings.scores).all()


@pytest.mark.parametrize("name", POINTS)
def test_always_tied_contestants_share_their_rank(name):
    for size in SIZES:
        standings = play(TOPOLOGIES[name](), size, lambda p: Match(*p, 5.0, 5.0, "tie"))
        np.testing.assert_array_equal(standings.ranks, np.full(size, (size - 1) / 2))


@pytest.mark.parametrize("name", NAMES)
def test_a_perfect_judge_of_scores_gives_the_exact_order(name):
    """All but the repeated knockout, which ranks by wins, read scores or sort."""
    for size in SIZES:
        utilities, order = draw(size, 0)
        standings = play(TOPOLOGIES[name](), size, perfect(utilities), order)
        tau = kendalltau(-standings.ranks, utilities).statistic
        if name in ("repeated_knockout", "single_elimination_bt", "early_stopping"):
            assert tau >= (0.3 if size > 2 else 1.0)
            assert standings.ranks[int(np.argmax(utilities))] <= 1.0
        else:
            assert tau == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["active", "active_two_rounds", "hybrid", "swiss_completed"])
def test_a_perfect_judge_of_wins_alone_puts_the_best_first(name):
    for size in SIZES:
        utilities, order = draw(size, 3)

        def decide(pairing, utilities=utilities):
            ahead = utilities[pairing.first] > utilities[pairing.second]
            return Match(*pairing, 2.0 * ahead, 2.0 * (not ahead), "decided")

        standings = play(TOPOLOGIES[name](), size, decide, order)
        if name != "hybrid":
            assert standings.ranks[int(np.argmax(utilities))] < max(1.0, size / 8)
        assert kendalltau(-standings.ranks, utilities).statistic > 0.35
