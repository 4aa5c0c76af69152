"""Active: an opening, then in each round the pairs whose result is hardest to foretell.

    opening matches -> strengths -> most uncertain unplayed pairs -> ... -> ranks

A pair whose winner is clear tells nothing and can be filled in; the budget goes where it can't.
Each round is played in parallel. The choice is a function of the results so far: no randomness.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from arena_lightning.arena.crosstable import CrossTable
from arena_lightning.arena.options import require, require_choice
from arena_lightning.arena.random_graph import match_budget, near_regular_edges
from arena_lightning.arena.ranking import RankingRule, expected_points, rank_by, ranks_from_values
from arena_lightning.arena.seeding import anchor_pairings
from arena_lightning.arena.standings import (
    SCALE,
    Tally,
    TournamentCost,
    new_bye,
    new_pairing,
    ranks_from_keys,
)
from arena_lightning.arena.strengths import Strengths, fit_strengths
from arena_lightning.types import Bye, Match, Pairing, Standings

Opening = Literal["neighbours", "cycle", "anchor"]
"""`neighbours` in the starting order meet, N/2 matches; `cycle`: everyone meets both its
neighbours, N matches; `anchor`: everyone meets the anchor, N-1 matches."""


@dataclass(frozen=True, slots=True)
class ActiveTopology:
    """Ranks by expected points of a full round robin, or by another rule."""

    num_matches: int | None = None
    """Matches; None takes 2N-2, as seeded single elimination. Never more than a round robin."""
    opening: Opening = "neighbours"
    num_rounds: int | None = None
    """Rounds after the opening, of equal size; None: as many as it takes at N/2 matches a round."""
    ranking: RankingRule = "expected_points"
    anchor: int = 0
    """The contestant the others meet in the opening `anchor`; 0 by contract."""

    def __post_init__(self) -> None:
        for name in ("num_matches", "num_rounds"):
            value = getattr(self, name)
            require(value is None or value >= 1, self, name, "be None or at least 1")
        require_choice(self, "opening", Opening)
        require_choice(self, "ranking", RankingRule)

    def cost(self, size: int) -> TournamentCost:
        plan = self._plan(size)
        return TournamentCost(sum(plan), len(plan))

    def _plan(self, size: int) -> list[int]:
        """Return the matches of each round."""
        if size < 2:
            return []
        budget = match_budget(self.num_matches, size)
        full = {"neighbours": size // 2, "cycle": size, "anchor": size - 1}[self.opening]
        # A cycle of two is one match; the anchor meets everybody whatever the budget.
        opening = full if self.opening == "anchor" else min(full, budget)
        left = max(budget - opening, 0)
        if not left:
            return [opening]
        count = -(-left // max(size // 2, 1)) if self.num_rounds is None else self.num_rounds
        count = min(count, left)
        per_round = max(size // 2, 1) if self.num_rounds is None else -(-left // count)
        sizes = [min(per_round, left - start) for start in range(0, left, per_round)]
        return [opening, *sizes]

    def rounds(
        self, order: Sequence[int]
    ) -> Generator[list[Pairing | Bye], list[Match], Standings]:
        size = len(order)
        tally, table = Tally(size), CrossTable(order)
        plan = self._plan(size)
        asked = np.eye(size, dtype=bool)
        strengths: Strengths | None = None
        for number, count in enumerate(plan):
            if number:
                start = None if strengths is None else strengths.mean
                strengths = fit_strengths(table, "auto", start)
                pairs = most_uncertain_pairs(strengths, asked, count)
            else:
                pairs = self._opening_pairs(order, table.place_of, count)
            for a, b in pairs:
                asked[a, b] = asked[b, a] = True
            pairings: list[Pairing | Bye] = [new_pairing((order[a], order[b])) for a, b in pairs]
            busy = {place for pair in pairs for place in pair}
            pairings += [new_bye((order[place],)) for place in range(size) if place not in busy]
            matches = yield pairings
            tally.add(matches)
            table.add(matches)
        return tally.standings(self._ranks(order, tally, table, strengths))

    def _opening_pairs(
        self, order: Sequence[int], place_of: Sequence[int], count: int
    ) -> Sequence[tuple[int, int]]:
        if self.opening == "anchor":
            pairings = anchor_pairings(order, self.anchor)
            return [(place_of[first], place_of[second]) for first, second in pairings]
        if self.opening == "cycle":
            return near_regular_edges(len(order), count)
        return [(2 * pair, 2 * pair + 1) for pair in range(count)]

    def _ranks(
        self,
        order: Sequence[int],
        tally: Tally,
        table: CrossTable,
        strengths: Strengths | None,
    ) -> list[float]:
        if self.ranking == "mean_score":
            return ranks_from_keys(tally.score_keys())
        if self.ranking == "expected_points":
            start = None if strengths is None else strengths.mean
            fitted = fit_strengths(table, "auto", start)
            return ranks_from_values(table, expected_points(table, fitted))
        return rank_by(self.ranking, order, tally.matches)


def most_uncertain_pairs(
    strengths: Strengths, asked: np.ndarray, count: int
) -> list[tuple[int, int]]:
    """Return `count` pairs of places not asked yet, those nearest to even odds first.

    Everyone plays once before anyone plays twice, and so on, as far as unasked pairs allow: a round
    spreads its information. Fewer come back only when fewer are left.
    """
    size = len(asked)
    rows, columns = _pairs_of(size)
    doubt = np.abs(strengths.win_probabilities()[rows, columns] - 0.5)
    # Rounded: the order of equal odds must not hang on the last bit.
    doubt = np.rint(doubt * SCALE) + SCALE * asked[rows, columns]
    ranked = np.argsort(doubt, kind="stable")
    ranked = ranked[: len(rows) - int(asked[rows, columns].sum())]
    waiting = list(zip(rows[ranked].tolist(), columns[ranked].tolist(), strict=True))
    chosen: list[tuple[int, int]] = []
    played, cap = [0] * size, 1
    while len(chosen) < count and waiting:
        passed = []
        for index, (a, b) in enumerate(waiting):
            if played[a] < cap and played[b] < cap:
                chosen.append((a, b))
                played[a] += 1
                played[b] += 1
                if len(chosen) == count:
                    break
            else:
                passed.append(waiting[index])
        waiting = passed
        cap += 1
    return chosen


_PAIRS: dict[int, tuple[np.ndarray, np.ndarray]] = {}


def _pairs_of(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of the upper triangle, worked out once a size."""
    if size not in _PAIRS:
        _PAIRS[size] = np.triu_indices(size, 1)
    return _PAIRS[size]
