"""Matches into points, scores and fractional ranks: the bookkeeping every topology shares.

A failed match is counted nowhere: no win, no score, no game played. A contestant without a single
counted match is unmeasured, and gets the mean of its ranks over all places it could take, so that
a judge's failure pushes nobody up or down. Plain lists until the end: studies play millions.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from arena_lightning.types import Bye, Match, Pairing, Standings

Round = list[Pairing | Bye]
"""What a topology yields: pairings playable at the same time, and byes."""

SCALE = 1e9
"""Keys are means in whole units of 1e-9: the order of summing must never decide a rank."""

# Named tuples made without their Python constructor, three times as fast: from (first, second) and
# from (contestant,).
new_pairing = partial(tuple.__new__, Pairing)
new_bye = partial(tuple.__new__, Bye)


@dataclass(frozen=True, slots=True)
class TournamentCost:
    """What a tournament takes, known before it is played.

    `matches` counts pairings, rematches included; one match is one or two judge calls, as the
    arena's presentation says, and a rematch is paid once.
    """

    matches: int
    rounds: int
    """Sequential rounds: the length of the critical path."""
    exact: bool = True
    """False when both figures are upper bounds."""


class Tally:
    """Running points and scores of one tournament. Lists are indexed by contestant."""

    __slots__ = ("matches", "num_rounds", "played", "points", "score_sums", "ties")

    def __init__(self, size: int) -> None:
        self.points = [0.0] * size
        self.ties = [0] * size
        self.score_sums = [0.0] * size
        self.played = [0] * size
        """Matches that did not fail."""
        self.matches: list[Match] = []
        self.num_rounds = 0

    def add(self, matches: Sequence[Match]) -> None:
        """Count one round's matches."""
        points, played, sums = self.points, self.played, self.score_sums
        # Any: scores are numbers unless the match failed.
        rows: Any = matches
        for first, second, score_first, score_second, status in rows:
            if status == "decided":
                if score_first > score_second:
                    points[first] += 1.0
                else:
                    assert score_second > score_first, "a decided match must have unequal scores"
                    points[second] += 1.0
            elif status == "tie":
                points[first] += 0.5
                points[second] += 0.5
                self.ties[first] += 1
                self.ties[second] += 1
            else:
                continue
            played[first] += 1
            played[second] += 1
            sums[first] += score_first
            sums[second] += score_second
        self.matches += matches
        self.num_rounds += 1

    def score_keys(self) -> list[int | None]:
        """Return contestant -> mean score in units of 1e-9, None without a counted match."""
        return [
            round(SCALE * total / played) if played else None
            for total, played in zip(self.score_sums, self.played, strict=True)
        ]

    def point_rates(self) -> list[float | None]:
        """Return contestant -> points a counted match, 0-1, None without one."""
        return [
            total / played if played else None
            for total, played in zip(self.points, self.played, strict=True)
        ]

    def standings(self, ranks: Sequence[float], points: Sequence[float] | None = None) -> Standings:
        """Close the table. `points=None` takes the points of the matches."""
        scores = [
            total / played if played else math.nan
            for total, played in zip(self.score_sums, self.played, strict=True)
        ]
        return Standings(
            ranks=np.array(ranks, dtype=np.float64),
            matches=tuple(self.matches),
            points=np.array(self.points if points is None else points, dtype=np.float64),
            scores=np.array(scores, dtype=np.float64),
            num_rounds=self.num_rounds,
        )


def ranks_from_keys(keys: Sequence[Any]) -> list[float]:
    """Return fractional ranks, 0.0 for the greatest key; equal keys share the mean of their ranks.

    A key of None is an unmeasured contestant: its rank is the mean over all its possible places,
    (N-1)/2, and the others move to their mean rank over those places, r + U (r+1)/(M+1) for U
    unmeasured and M measured. The ranks always sum to N(N-1)/2.
    """
    size = len(keys)
    measured = list(range(size))
    if None in keys:
        measured = [contestant for contestant in measured if keys[contestant] is not None]
    measured.sort(key=keys.__getitem__, reverse=True)
    ranks = [(size - 1) / 2] * size
    count = len(measured)
    start = 0
    while start < count:
        leader = measured[start]
        key = keys[leader]
        end = start + 1
        while end < count and keys[measured[end]] == key:
            end += 1
        if end == start + 1:
            ranks[leader] = float(start)
        else:
            rank = (start + end - 1) / 2
            for contestant in measured[start:end]:
                ranks[contestant] = rank
        start = end
    if 0 < count < size:
        spread = (size - count) / (count + 1)
        for contestant in measured:
            ranks[contestant] += spread * (ranks[contestant] + 1)
    return ranks


def share_ranks(ranks: list[float], links: Iterable[tuple[int, int]]) -> list[float]:
    """Let linked contestants share the mean of their ranks; links are transitive."""
    group_of = {contestant: [contestant] for contestant in range(len(ranks))}
    for one, other in links:
        if group_of[one] is not group_of[other]:
            merged = group_of[one] + group_of[other]
            for contestant in merged:
                group_of[contestant] = merged
    shared = list(ranks)
    for contestant, group in group_of.items():
        if len(group) > 1:
            # fsum is exact: the order of the members must not matter.
            shared[contestant] = math.fsum(ranks[member] for member in group) / len(group)
    return shared
