"""Every topology, at every group size, against the one contract of topologies."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy.stats import kendalltau

from arena_lightning.arena import (
    TOPOLOGIES,
    Bye,
    Match,
    Pairing,
    Standings,
    advantages_from_ranks,
    build_topology,
    play,
)

SIZES = range(2, 65)
EXACT = ("round_robin", "anchor", "single_elimination")
KNOCKOUTS = ("single_elimination", "double_elimination")
POINTS = ("round_robin", "anchor", "swiss")
USES_ANCHOR = {
    "anchor": {},
    "single_elimination": {},
    "double_elimination": {"seeding": "anchor"},
}
VARIANTS = [
    ("round_robin", {}),
    ("round_robin", {"tie_break": "score", "tie_points": 0.0}),
    ("anchor", {}),
    ("single_elimination", {}),
    ("single_elimination", {"bracket": "algorithm1", "tie": "seed"}),
    ("single_elimination", {"seeding": "order", "tie": "shared"}),
    ("double_elimination", {}),
    ("double_elimination", {"seeding": "anchor"}),
    ("double_elimination", {"lower_draw": "fixed", "bracket": "algorithm1"}),
    ("double_elimination", {"bracket_reset": True, "tie": "shared"}),
    ("swiss", {}),
    ("swiss", {"num_rounds": 7, "tie_breaks": ("score",)}),
]
IDS = [f"{name}-{'-'.join(map(str, options.values()))}" for name, options in VARIANTS]


def perfect(utilities: Sequence[float]) -> Callable[[Pairing], Match]:
    def decide(pairing: Pairing) -> Match:
        first, second = utilities[pairing.first], utilities[pairing.second]
        return Match(*pairing, first, second, "decided" if first != second else "tie")

    return decide


def erratic(size: int, seed: int) -> Callable[[Pairing], Match]:
    """A judge with noise, ties and failures; each unordered pair always has the same match."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, size=(size, size)).tolist()
    fails = (rng.random((size, size)) < 0.15).tolist()

    def decide(pairing: Pairing) -> Match:
        first, second = pairing
        low, high = min(pairing), max(pairing)
        if fails[low][high]:
            return Match(first, second, None, None, "failed")
        one, other = scores[first][second], scores[second][first]
        return Match(first, second, one, other, "decided" if one != other else "tie")

    return decide


def draw(size: int, seed: int) -> tuple[list[float], list[int]]:
    rng = np.random.default_rng([size, seed])
    return rng.normal(size=size).tolist(), rng.permutation(size).tolist()


@pytest.mark.parametrize("name", EXACT)
def test_perfect_judge_gives_the_exact_order_for_every_size(name):
    for size in SIZES:
        utilities, order = draw(size, 0)
        standings = play(TOPOLOGIES[name](), size, perfect(utilities), order)
        expected = np.argsort(np.argsort(-np.array(utilities)))
        np.testing.assert_array_equal(standings.ranks, expected)


@pytest.mark.parametrize("name", ["swiss", "double_elimination"])
def test_perfect_judge_reaches_tau_of_0_8_on_average_for_every_size(name):
    for size in SIZES:
        taus = []
        for seed in range(120 // size + 2):
            utilities, order = draw(size, seed)
            standings = play(TOPOLOGIES[name](), size, perfect(utilities), order)
            assert standings.ranks[int(np.argmax(utilities))] == 0.0
            taus.append(kendalltau(-standings.ranks, utilities).statistic)
        # Up to two standard errors: the average over all draws is what must reach 0.8.
        slack = 2 * np.std(taus) / np.sqrt(len(taus))
        assert np.mean(taus) + slack >= 0.8, size


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=IDS)
def test_relabelling_contestants_and_order_relabels_the_ranks_exactly(name, options):
    for size in (*range(2, 18), 31, 33, 64):
        decide = erratic(size, size)
        _, order = draw(size, 1)
        label = np.random.default_rng(size).permutation(size).tolist()
        original = {new: old for old, new in enumerate(label)}

        def relabelled(pairing, decide=decide, original=original):
            match = decide(Pairing(original[pairing.first], original[pairing.second]))
            return Match(*pairing, *match[2:])

        topology = build_topology(name, **options)
        anchored = dict(options, anchor=label[0]) if _uses_anchor(name, options) else options
        plain = play(topology, size, decide, order)
        other = play(build_topology(name, **anchored), size, relabelled, [label[c] for c in order])
        np.testing.assert_array_equal(other.ranks[label], plain.ranks)
        np.testing.assert_array_equal(other.points[label], plain.points)
        pairs = [Pairing(label[m.first], label[m.second]) for m in plain.matches]
        assert [Pairing(m.first, m.second) for m in other.matches] == pairs


def _uses_anchor(name: str, options: dict) -> bool:
    seeding = options.get("seeding", "anchor" if name == "single_elimination" else "order")
    return name == "anchor" or (name in KNOCKOUTS and seeding == "anchor")


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=IDS)
def test_cost_is_what_is_played(name, options):
    topology = build_topology(name, **options)
    for size in (1, *SIZES):
        standings = play(topology, size, erratic(size, size))
        cost = topology.cost(size)
        played = (len(standings.matches), standings.num_rounds)
        if cost.exact:
            assert played == (cost.matches, cost.rounds)
        else:
            assert played in ((cost.matches, cost.rounds), (cost.matches - 1, cost.rounds - 1))


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=IDS)
def test_nobody_still_in_is_left_without_a_pairing_or_bye(name, options):
    """Still in: whoever appears in a later round."""
    for size in (2, 3, 5, 6, 7, 11, 16, 33):
        rounds = _rounds(build_topology(name, **options), size)
        for number, entries in enumerate(rounds):
            named = [contestant for entry in entries for contestant in entry]
            later = {c for entries in rounds[number:] for entry in entries for c in entry}
            assert later <= set(named)
            for entry in entries:
                if isinstance(entry, Bye):
                    assert named.count(entry.contestant) == 1
            assert any(isinstance(entry, Pairing) for entry in entries)
        assert {c for entry in rounds[0] for c in entry} == set(range(size))


def _rounds(topology, size: int) -> list[list[Pairing | Bye]]:
    decide = erratic(size, 3)
    generator = topology.rounds(list(range(size)))
    rounds = [next(generator)]
    while True:
        matches = [decide(entry) for entry in rounds[-1] if isinstance(entry, Pairing)]
        try:
            rounds.append(generator.send(matches))
        except StopIteration:
            return rounds


@pytest.mark.parametrize("name", KNOCKOUTS)
def test_byes_go_to_the_top_seeds_for_every_size(name):
    for size in SIZES:
        utilities, order = draw(size, 5)
        if name == "double_elimination":
            seeds, first_round = order, 0
        else:
            seeds, first_round = np.argsort(-np.array(utilities)).tolist(), 1
        generator = TOPOLOGIES[name]().rounds(order)
        entries = next(generator)
        for _ in range(first_round):
            entries = generator.send([perfect(utilities)(p) for p in entries])
        byes = {entry.contestant for entry in entries if isinstance(entry, Bye)}
        num_byes = 2 ** int(np.ceil(np.log2(size))) - size
        assert byes == set(seeds[:num_byes])


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=IDS)
def test_ranks_sum_to_a_constant_and_advantages_to_zero(name, options):
    for size in SIZES:
        ranks = play(build_topology(name, **options), size, erratic(size, size + 1)).ranks
        assert ranks.min() >= 0
        assert ranks.sum() == pytest.approx(size * (size - 1) / 2, abs=1e-9)
        assert advantages_from_ranks(ranks).sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", POINTS)
def test_always_tied_contestants_share_their_rank_in_points_topologies(name):
    for size in SIZES:
        standings = _always(Match(0, 0, 5.1, 5.1, "tie"), TOPOLOGIES[name](), size)
        np.testing.assert_array_equal(standings.ranks, np.full(size, (size - 1) / 2))


@pytest.mark.parametrize("tie", ["score", "seed"])
@pytest.mark.parametrize("name", KNOCKOUTS)
def test_always_tied_contestants_keep_the_seeding_order_in_knockouts(name, tie):
    for size in SIZES:
        _, order = draw(size, 7)
        tied = Match(0, 0, 5.1, 5.1, "tie")
        standings = _always(tied, build_topology(name, tie=tie), size, order)
        np.testing.assert_array_equal(standings.ranks[order], np.arange(size))


@pytest.mark.parametrize("name", KNOCKOUTS)
def test_always_tied_contestants_share_their_rank_in_knockouts_that_share(name):
    for size in SIZES:
        _, order = draw(size, 7)
        tied = Match(0, 0, 5.1, 5.1, "tie")
        standings = _always(tied, build_topology(name, tie="shared"), size, order)
        np.testing.assert_allclose(standings.ranks, np.full(size, (size - 1) / 2), rtol=1e-12)


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=IDS)
def test_a_judge_that_always_fails_ranks_and_scores_nobody(name, options):
    for size in (2, 3, 8, 13):
        failed = Match(0, 0, None, None, "failed")
        standings = _always(failed, build_topology(name, **options), size)
        np.testing.assert_array_equal(standings.ranks, np.full(size, (size - 1) / 2))
        np.testing.assert_array_equal(standings.points, np.zeros(size))
        assert np.isnan(standings.scores).all()
        np.testing.assert_array_equal(advantages_from_ranks(standings.ranks), np.zeros(size))


def _always(match: Match, topology, size: int, order=None) -> Standings:
    return play(topology, size, lambda pairing: match._replace(**pairing._asdict()), order)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_group_of_one_is_ranked_without_a_match(name):
    standings = play(TOPOLOGIES[name](), 1, erratic(1, 0))
    assert standings.ranks.tolist() == [0.0]
    assert standings.matches == ()
    assert standings.num_rounds == 0


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_scores_are_means_over_the_matches_that_did_not_fail(name):
    standings = play(TOPOLOGIES[name](), 9, erratic(9, 2))
    for contestant in range(9):
        scores = [m.score_first for m in standings.matches if m.first == contestant]
        scores += [m.score_second for m in standings.matches if m.second == contestant]
        scores = [score for score in scores if score is not None]
        expected = np.mean(scores) if scores else np.nan
        np.testing.assert_allclose(standings.scores[contestant], expected, rtol=1e-12)
