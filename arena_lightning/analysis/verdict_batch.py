"""Full verdict matrices of many groups: what every source of verdicts hands to a study.

    source (simulated | bank | fitted) -> VerdictBatch -> decider(group) -> play(topology, N)

A batch holds every judge call that could be asked about its groups, both orders of every pair, so
that all topologies are replayed on the same verdicts and differ in nothing but the pairs they ask.
Scores follow `arena/verdicts.py`: two orders are summed, one order is doubled. It asks no judge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from arena_lightning.arena.verdicts import FLOAT_TOLERANCE
from arena_lightning.errors import DataError
from arena_lightning.types import Match, MatchStatus, Pairing

Presentation = Literal["both", "random"]
Decide = Callable[[Pairing], Match]


@dataclass(frozen=True, slots=True)
class VerdictBatch:
    """All verdicts of G groups of N contestants. NaN (in both arrays at once) is a failed call.

    Shapes: `score_first`, `score_second` float64 `[group, first, second]`; `truth` float64
    `[group, contestant]`, higher is better, or None where nobody knows it.
    """

    score_first: np.ndarray
    """`[g, i, j]`: score of i in the call that showed i first and j second; diagonal NaN."""
    score_second: np.ndarray
    """`[g, i, j]`: score of j in that same call."""
    truth: np.ndarray | None = None
    clusters: np.ndarray | None = None
    """int `[group]`: groups with the same number are not independent (drawn from one recorded
    group); None: all are."""

    def __post_init__(self) -> None:
        shape = self.score_first.shape
        if len(shape) != 3 or shape[1] != shape[2] or self.score_second.shape != shape:
            raise DataError(
                "verdict matrices must both be [group, N, N], got "
                f"{shape} and {self.score_second.shape} (VerdictBatch). Mend the source."
            )
        if self.truth is not None and self.truth.shape != shape[:2]:
            raise DataError(
                f"truth must be [group, N] = {shape[:2]}, got {self.truth.shape} (VerdictBatch). "
                "Mend the source."
            )

    @property
    def num_groups(self) -> int:
        return self.score_first.shape[0]

    @property
    def size(self) -> int:
        """N, contestants in each group."""
        return self.score_first.shape[1]

    def merged(
        self, presentation: Presentation = "both", rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what each contestant scores in each pair, over the presentation orders.

        Returns:
            float64 `[group, i, j]` twice: the score of i against j, and that of j in the same
            match, on the scale of two summed calls; NaN where a call failed. With "random" one
            order a pair is drawn from `rng`, and doubled.
        """
        swapped_first = self.score_second.swapaxes(1, 2)  # i's score when shown second
        swapped_second = self.score_first.swapaxes(1, 2)
        if presentation == "both":
            return self.score_first + swapped_first, self.score_second + swapped_second
        if rng is None:
            raise DataError(
                'presentation "random" must have a generator to draw orders from, got None '
                "(VerdictBatch.merged). Pass one."
            )
        coin = np.triu(rng.random(self.score_first.shape) < 0.5, 1)
        shown_first = np.where(np.tri(self.size, dtype=bool), ~coin.swapaxes(1, 2), coin)
        score = 2 * np.where(shown_first, self.score_first, swapped_first)
        opponent = 2 * np.where(shown_first, self.score_second, swapped_second)
        return score, opponent


class VerdictSource(Protocol):
    """Where verdicts come from. Drawing is a function of (size, groups, seed) alone."""

    name: str

    def draw(self, size: int, num_groups: int, seed: int) -> VerdictBatch:
        """Return the verdicts of `num_groups` groups of `size`.

        The first groups of a longer draw are the groups of a shorter one. A bank with fewer groups
        or contestants than asked sub-samples both, with a new draw each time around.

        Raises:
            DataError: the source can't give groups of that size.
        """
        ...


def decider(score: np.ndarray, opponent: np.ndarray, tie_margin: float = 0.0) -> Decide:
    """Return the `decide` of one group for `play`: every match is made once, then looked up.

    Args:
        score: float64 `[N, N]`, one group of `VerdictBatch.merged`.
        opponent: its counterpart.
        tie_margin: sums this close are a tie, points on the scale of two calls.
    """
    failed = np.isnan(score) | np.isnan(opponent)
    tied = np.abs(score - opponent) <= tie_margin + FLOAT_TOLERANCE
    status = np.where(failed, 2, np.where(tied, 1, 0)).tolist()
    scores, opponents = score.tolist(), opponent.tolist()
    names: tuple[MatchStatus, ...] = ("decided", "tie", "failed")
    played: dict[Pairing, Match] = {}

    def decide(pairing: Pairing) -> Match:
        match = played.get(pairing)
        if match is None:
            first, second = pairing
            kind = status[first][second]
            if kind == 2:
                match = Match(first, second, None, None, "failed")
            else:
                match = Match(
                    first, second, scores[first][second], opponents[first][second], names[kind]
                )
            played[pairing] = match
        return match

    return decide
