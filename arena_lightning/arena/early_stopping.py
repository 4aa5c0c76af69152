"""Early stopping: a round robin that ends when no match left would move an advantage by much.

It starts like any round robin, a few rounds at a time, and after each portion asks what one more
match could still do. The cost depends on the group: one clear order ends early, equals play on.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from arena_lightning.arena.crosstable import CrossTable
from arena_lightning.arena.options import require
from arena_lightning.arena.ranking import expected_points, ranks_from_values
from arena_lightning.arena.standings import Tally, TournamentCost, new_pairing
from arena_lightning.arena.strengths import Strengths, fit_strengths
from arena_lightning.types import Bye, Match, Pairing, Standings


@dataclass(frozen=True, slots=True)
class EarlyStoppingTopology:
    """Ranks by expected points of a full round robin.

    A match left is expected to move an advantage by: the probability of each result times the ranks
    that its winner or loser would pass, in units of advantages (a rank is 1/(N-1) of reward, over
    the spread of a full ranking).
    """

    tolerance: float = 0.1
    """Stop when no match left is expected to move an advantage by more than this."""
    portions: int = 4
    """How many portions a full round robin is cut into: looks at the table, and rounds."""

    def __post_init__(self) -> None:
        require(self.tolerance >= 0.0, self, "tolerance", "be at least 0")
        require(self.portions >= 1, self, "portions", "be at least 1")

    def cost(self, size: int) -> TournamentCost:
        portions = _portions(size, self.portions)
        return TournamentCost(sum(map(len, portions)), len(portions), exact=len(portions) < 2)

    def rounds(
        self, order: Sequence[int]
    ) -> Generator[list[Pairing | Bye], list[Match], Standings]:
        size = len(order)
        tally, table = Tally(size), CrossTable(order)
        if size < 2:
            return tally.standings([0.0] * size)
        portions = _portions(size, self.portions)
        strengths: Strengths | None = None
        for number, pairs in enumerate(portions):
            pairings: list[Pairing | Bye] = [new_pairing((order[a], order[b])) for a, b in pairs]
            busy = {place for pair in pairs for place in pair}
            pairings += [Bye(order[place]) for place in range(size) if place not in busy]
            matches = yield pairings
            tally.add(matches)
            table.add(matches)
            strengths = fit_strengths(table, "auto", strengths.mean if strengths else None)
            left = [pair for portion in portions[number + 1 :] for pair in portion]
            if left and _largest_move(table, strengths, left) <= self.tolerance:
                break
        return tally.standings(ranks_from_values(table, expected_points(table, strengths)))


@cache
def _portions(size: int, count: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return a round robin's pairs of places in portions of whole circle-method rounds."""
    if size < 2:
        return ()
    circle = list(range(size + size % 2))
    schedule = []
    for _ in range(len(circle) - 1):
        sides = zip(circle[: len(circle) // 2], reversed(circle), strict=False)
        schedule.append([(min(pair), max(pair)) for pair in sides if max(pair) < size])
        circle = [circle[0], circle[-1], *circle[1:-1]]
    cuts = np.linspace(0, len(schedule), min(count, len(schedule)) + 1).astype(int).tolist()
    return tuple(
        tuple(pair for single in schedule[start:end] for pair in single)
        for start, end in pairwise(cuts)
    )


def _largest_move(
    table: CrossTable, strengths: Strengths, left: Sequence[tuple[int, int]]
) -> float:
    """Return the most that one of the matches left is expected to move an advantage."""
    points = expected_points(table, strengths)
    size = len(points)
    rows, columns = np.array(left).T
    wins = strengths.win_probabilities()[rows, columns]
    ascending = np.sort(points)

    def passed(places: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Return the ranks that contestants at `places` move when their points change."""
        before = np.searchsorted(ascending, points[places], side="left")
        after = np.searchsorted(ascending, points[places] + change, side="left")
        # Moving up counts oneself.
        return np.where(change > 0, np.maximum(after - before - 1, 0), before - after)

    first = wins * passed(rows, 1 - wins) + (1 - wins) * passed(rows, -wins)
    second = (1 - wins) * passed(columns, wins) + wins * passed(columns, wins - 1)
    rank_in_advantage = 1.0 / np.arange(size).std(ddof=1)
    return float(np.maximum(first, second).max()) * rank_in_advantage
