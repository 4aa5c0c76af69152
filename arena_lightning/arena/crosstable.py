"""A tournament's results as matrices, indexed by place in the starting order.

    matches -> CrossTable -> strengths (`strengths.py`) -> ranks (`ranking.py`)

Places, not contestants: relabelling contestants and `order` leaves every array as it is, bit by
bit, so ranks worked out by floating-point algebra stay exactly equivariant. It fits nothing.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from arena_lightning.types import Match


class CrossTable:
    """Running results of one tournament. Failed matches are counted nowhere.

    Shapes: `games`, `shares`, `points` are float64 `[place, place]`; the sums are `[place]`.
    """

    __slots__ = (
        "_high_total",
        "_low_total",
        "_lowest",
        "games",
        "place_of",
        "played",
        "points",
        "score_sums",
        "score_totals",
        "square_sums",
    )

    def __init__(self, order: Sequence[int], matches: Iterable[Match] = ()) -> None:
        """Start with `matches`; `order` gives each contestant its place."""
        size = len(order)
        self.place_of = [0] * size
        for place, contestant in enumerate(order):
            self.place_of[contestant] = place
        self.games = np.zeros((size, size))
        """[a, b]: matches between a and b that did not fail."""
        self.points = np.zeros((size, size))
        """[a, b]: what a won against b: win 1, tie 0.5."""
        self.score_totals = np.zeros((size, size))
        """[a, b]: sum of a's scores against b."""
        self.score_sums = [0.0] * size
        self.square_sums = [0.0] * size
        self.played = [0] * size
        self._low_total, self._high_total, self._lowest = np.inf, -np.inf, np.inf
        self.add(matches)

    def add(self, matches: Iterable[Match]) -> None:
        """Count matches."""
        place_of, played = self.place_of, self.played
        sums, squares = self.score_sums, self.square_sums
        for first, second, score_first, score_second, status in matches:
            if status == "failed":
                continue
            a, b = place_of[first], place_of[second]
            won = 0.5 if status == "tie" else float(score_first > score_second)
            self.games[a, b] += 1.0
            self.games[b, a] += 1.0
            self.points[a, b] += won
            self.points[b, a] += 1.0 - won
            self.score_totals[a, b] += score_first
            self.score_totals[b, a] += score_second
            for place, score in ((a, score_first), (b, score_second)):
                played[place] += 1
                sums[place] += score
                squares[place] += score * score
            total = score_first + score_second
            self._low_total = min(self._low_total, total)
            self._high_total = max(self._high_total, total)
            self._lowest = min(self._lowest, score_first, score_second)

    @property
    def size(self) -> int:
        return len(self.played)

    @property
    def num_matches(self) -> int:
        """Matches that did not fail."""
        return sum(self.played) // 2

    @property
    def is_zero_sum(self) -> bool:
        """Whether all matches share out one total, as win/lose/tie verdicts do.

        Then a score says nothing without the opponent's strength.
        """
        if not self.num_matches:
            return True
        scale = max(abs(self._low_total), abs(self._high_total), 1e-9)
        return bool(self._high_total - self._low_total <= 1e-9 * scale)

    def shares(self) -> np.ndarray:
        """Return `[a, b]`: a's part of what was at stake against b, in matches.

        In a zero-sum table of scores from 0 up it is the part of the total, so that a win in both
        presentation orders counts more than a win and a tie; else it is the points.
        """
        if self.is_zero_sum and self._lowest >= 0.0 and self._high_total > 0.0:
            return self.score_totals / self._high_total
        return self.points
