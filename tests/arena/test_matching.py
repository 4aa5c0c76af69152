import itertools

import numpy as np

from arena_lightning.arena.matching import augment_matching, greedy_matching


def _largest_matching(candidates) -> int:
    """Brute force by recursion on the lowest free vertex."""

    def best(free: frozenset[int]) -> int:
        if not free:
            return 0
        vertex, rest = min(free), free - {min(free)}
        with_partner = [1 + best(rest - {b}) for b in candidates[vertex] if b in rest]
        return max([best(rest), *with_partner])

    return best(frozenset(range(len(candidates))))


def _graph(size: int, density: float, seed: int) -> list[list[int]]:
    rng = np.random.default_rng([size, seed])
    candidates: list[list[int]] = [[] for _ in range(size)]
    for one, other in itertools.combinations(range(size), 2):
        if rng.random() < density:
            candidates[one].append(other)
            candidates[other].append(one)
    return candidates


def test_augmented_matching_is_as_large_as_brute_force_finds():
    improved = 0
    for size in range(2, 10):
        for seed in range(12):
            candidates = _graph(size, 0.2 + 0.05 * (seed % 6), seed)
            partner = greedy_matching(candidates)
            before = sum(other >= 0 for other in partner)
            augment_matching(candidates, partner)
            for vertex, other in enumerate(partner):
                assert other < 0 or (partner[other] == vertex and other in candidates[vertex])
            matched = sum(other >= 0 for other in partner)
            assert matched == 2 * _largest_matching(candidates)
            improved += matched > before
    assert improved > 5


def test_augmenting_path_through_an_odd_cycle_is_found():
    # A triangle 1-2-3 with a tail on 1 and on 3; greedy takes 1-2 and strands 0, 3 reaches 4.
    candidates = [[1], [2, 3, 0], [1, 3], [1, 2, 4], [3], [2]]
    candidates[2].append(5)
    partner = greedy_matching([[], [2], [1], [], [], []])
    augment_matching(candidates, partner)
    assert partner == [1, 0, 5, 4, 3, 2]
