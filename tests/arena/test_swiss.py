import itertools

import numpy as np
import pytest

from arena_lightning.arena import Bye, Match, Pairing, build_topology, play
from arena_lightning.errors import ConfigError


def _rounds(topology, size, decide, order=None):
    generator = topology.rounds(list(range(size)) if order is None else order)
    rounds = [next(generator)]
    while True:
        try:
            matches = [decide(entry) for entry in rounds[-1] if isinstance(entry, Pairing)]
            rounds.append(generator.send(matches))
        except StopIteration as stop:
            return rounds, stop.value


def _coin(seed):
    rng = np.random.default_rng(seed)

    def decide(pairing):
        first, second = rng.integers(0, 3, size=2).tolist()
        return Match(*pairing, first, second, "tie" if first == second else "decided")

    return decide


def test_points_go_to_those_who_played_whatever_the_order(perfect):
    size, order = 8, [5, 2, 7, 0, 3, 6, 1, 4]
    standings = play(build_topology("swiss"), size, perfect(list(range(size))), order)
    wins = [0] * size
    for match in standings.matches:
        wins[max(match.first, match.second)] += 1
    assert standings.points.tolist() == wins
    assert standings.ranks[7] == 0.0
    assert wins[7] == 3


@pytest.mark.parametrize("size", [3, 5, 7, 9, 13])
def test_nobody_rests_twice_while_another_has_not_rested(size):
    topology = build_topology("swiss", num_rounds=size + 2)
    for seed in range(4):
        rounds, _ = _rounds(topology, size, _coin(seed))
        byes = [0] * size
        for entries in rounds:
            (resting,) = [entry.contestant for entry in entries if isinstance(entry, Bye)]
            assert byes[resting] == min(byes)
            byes[resting] += 1


@pytest.mark.parametrize("size", [4, 6, 8, 5, 7])
def test_there_is_no_rematch_that_some_pairing_of_the_round_avoids(size):
    """Brute force over all pairings of the round (and all who may rest)."""
    topology = build_topology("swiss", num_rounds=size)
    avoided = 0
    for seed in range(4):
        rounds, _ = _rounds(topology, size, _coin(seed))
        met, byes = set(), [0] * size
        for entries in rounds:
            pairs = [frozenset(entry) for entry in entries if isinstance(entry, Pairing)]
            rematches = sum(pair in met for pair in pairs)
            assert rematches == _fewest_rematches(size, met, byes)
            avoided += rematches == 0
            met |= set(pairs)
            for entry in entries:
                if isinstance(entry, Bye):
                    byes[entry.contestant] += 1
    assert avoided > 8


def _fewest_rematches(size, met, byes):
    def best(free):
        if not free:
            return 0
        first, *others = free
        return min(
            (frozenset((first, other)) in met) + best([c for c in others if c != other])
            for other in others
        )

    if size % 2 == 0:
        return best(list(range(size)))
    resters = [c for c in range(size) if byes[c] == min(byes)]
    return min(best([c for c in range(size) if c != rests]) for rests in resters)


def test_neighbours_of_the_table_meet():
    def decide(pairing):
        return Match(*pairing, 1.0, 0.0, "decided")

    rounds, _ = _rounds(build_topology("swiss", num_rounds=2), 8, decide)
    assert rounds[0] == [Pairing(0, 1), Pairing(2, 3), Pairing(4, 5), Pairing(6, 7)]
    assert rounds[1] == [Pairing(0, 2), Pairing(4, 6), Pairing(1, 3), Pairing(5, 7)]


def test_buchholz_counts_a_rematch_again_and_byes_not_at_all(scripted):
    # Three contestants, four rounds: byes 2, 1 or 0, and one pair meets twice.
    results = {(0, 1): (1.0, 0.0), (1, 2): (1.0, 0.0), (0, 2): (0.0, 1.0)}
    topology = build_topology("swiss", num_rounds=4, tie_breaks=("buchholz",))
    rounds, standings = _rounds(topology, 3, scripted(results))
    played = list(itertools.chain.from_iterable(rounds))
    pairs = [entry for entry in played if isinstance(entry, Pairing)]
    assert len(pairs) == 4
    counts = {frozenset(pair): pairs.count(pair) for pair in pairs}
    assert sorted(counts.values()) == [1, 1, 2]
    wins, games = np.zeros(3), np.zeros(3)
    for one, other in pairs:
        winner = one if scripted(results)(Pairing(one, other)).score_first else other
        wins[winner] += 1
        games[[one, other]] += 1
    rates = wins / games
    buchholz = np.zeros(3)
    for one, other in pairs:
        buchholz[one] += rates[other] / games[one]
        buchholz[other] += rates[one] / games[other]
    keys = [(round(r, 9), round(b, 9)) for r, b in zip(rates, buchholz, strict=True)]
    expected = [sum(key > mine for key in keys) for mine in keys]
    assert len(set(keys)) == 3
    assert standings.ranks.tolist() == expected


def test_equal_points_go_by_the_opponents_points_before_the_score(scripted):
    # Round 1: 0 beats 1 and 2 beats 3. Round 2: 0 beats 2 and 3 beats 1. One point each for 2 and
    # 3: the opponents of 2 have 0 + ... = (2 + 1), of 3 they have (1 + 0); 3 has the higher score.
    results = {(0, 1): (6, 5), (2, 3): (6, 5), (0, 2): (6, 1), (1, 3): (1, 9)}
    standings = play(build_topology("swiss"), 4, scripted(results))
    assert standings.points.tolist() == [2.0, 0.0, 1.0, 1.0]
    assert standings.scores[3] > standings.scores[2]
    assert standings.ranks.tolist() == [0.0, 3.0, 1.0, 2.0]
    by_score = play(build_topology("swiss", tie_breaks=("score",)), 4, scripted(results))
    assert by_score.ranks.tolist() == [0.0, 3.0, 2.0, 1.0]


@pytest.mark.parametrize("size", [5, 7, 9, 11])
def test_one_contestant_is_left_unbeaten_when_the_group_is_odd(size, perfect):
    for seed in range(12):
        rng = np.random.default_rng([size, seed])
        utilities, order = rng.normal(size=size).tolist(), rng.permutation(size).tolist()
        standings = play(build_topology("swiss"), size, perfect(utilities), order)
        losers = {min(match[:2], key=utilities.__getitem__) for match in standings.matches}
        assert len(losers) == size - 1
        assert standings.ranks[int(np.argmax(utilities))] == 0.0


def test_options_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="num_rounds must be None or at least 1, got 0"):
        build_topology("swiss", num_rounds=0)
    with pytest.raises(ConfigError, match="tie_breaks must hold only buchholz and score"):
        build_topology("swiss", tie_breaks=("coin",))
