"""Pairing everybody with somebody new: maximum matching in the graph of pairings not yet played.

Swiss pairs greedily from the top; when that strands somebody, augmenting paths (Edmonds' blossom
algorithm) rearrange as few pairs as needed. So a rematch happens only where none can be avoided.
"""

from collections import deque
from collections.abc import Sequence


def greedy_matching(candidates: Sequence[Sequence[int]]) -> list[int]:
    """Match each vertex, in index order, with its first free candidate.

    Args:
        candidates: vertex -> the vertices it may be matched with, most wanted first; symmetric.

    Returns:
        vertex -> partner, -1 for a vertex left alone.
    """
    partner = [-1] * len(candidates)
    for vertex, wanted in enumerate(candidates):
        if partner[vertex] < 0:
            for other in wanted:
                if partner[other] < 0:
                    partner[vertex] = other
                    partner[other] = vertex
                    break
    return partner


def augment_matching(candidates: Sequence[Sequence[int]], partner: list[int]) -> None:
    """Make `partner` a maximum matching in place, keeping matched vertices matched.

    Source: Edmonds 1965, in the breadth-first form with explicit blossom bases; O(V^3).
    """
    for root in range(len(candidates)):
        if partner[root] < 0:
            end, parent = _augmenting_path(candidates, partner, root)
            while end >= 0:
                previous = parent[end]
                following = partner[previous]
                partner[end], partner[previous] = previous, end
                end = following


def _augmenting_path(
    candidates: Sequence[Sequence[int]], partner: list[int], root: int
) -> tuple[int, list[int]]:
    """Search from a free vertex; return the free vertex reached (-1 if none) and the tree."""
    count = len(candidates)
    parent, base = [-1] * count, list(range(count))
    is_even = [False] * count
    is_even[root] = True
    queue = deque([root])
    while queue:
        vertex = queue.popleft()
        for other in candidates[vertex]:
            if base[vertex] == base[other] or partner[vertex] == other:
                continue
            if other == root or (partner[other] >= 0 and parent[partner[other]] >= 0):
                _contract(vertex, other, partner, parent, base, is_even, queue)
            elif parent[other] < 0:
                parent[other] = vertex
                if partner[other] < 0:
                    return other, parent
                is_even[partner[other]] = True
                queue.append(partner[other])
    return -1, parent


def _contract(
    vertex: int,
    other: int,
    partner: list[int],
    parent: list[int],
    base: list[int],
    is_even: list[bool],
    queue: deque[int],
) -> None:
    """Contract the odd cycle that the edge (vertex, other) closes."""
    top = _common_base(vertex, other, partner, parent, base)
    in_blossom = [False] * len(base)
    for start, child in ((vertex, other), (other, vertex)):
        while base[start] != top:
            in_blossom[base[start]] = in_blossom[base[partner[start]]] = True
            parent[start] = child
            child = partner[start]
            start = parent[child]
    for index, blossom in enumerate(base):
        if in_blossom[blossom]:
            base[index] = top
            if not is_even[index]:
                is_even[index] = True
                queue.append(index)


def _common_base(
    one: int, other: int, partner: list[int], parent: list[int], base: list[int]
) -> int:
    """Return the lowest common ancestor of two vertices of the alternating tree."""
    seen = set()
    while True:
        one = base[one]
        seen.add(one)
        if partner[one] < 0:
            break
        one = parent[partner[one]]
    while True:
        other = base[other]
        if other in seen:
            return other
        other = parent[partner[other]]
