"""Ranking rules that read all of a tournament's results, whatever the schedule was.

    order, matches -> CrossTable -> Strengths -> ranks

`expected_points` is the estimate of the round robin's table: matches that were played count as they
went, those that were not count as the fitted strengths say. It plays nothing.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from arena_lightning.arena.crosstable import CrossTable
from arena_lightning.arena.standings import SCALE, ranks_from_keys
from arena_lightning.arena.strengths import Strengths, fit_strengths
from arena_lightning.types import Match

RankingRule = Literal["mean_score", "bradley_terry", "margin", "expected_points"]
"""`mean_score`: mean judge score; `bradley_terry`: strengths from wins, ties and losses alone;
`margin`: strengths from scores too; `expected_points`: expected points of a full round robin."""


def expected_points(table: CrossTable, strengths: Strengths) -> np.ndarray:
    """Return `[place]`: points of a full round robin, 0 to N-1, played matches as they went."""
    unplayed = table.games == 0
    np.fill_diagonal(unplayed, False)
    known = np.divide(
        table.points, table.games, out=np.zeros_like(table.points), where=table.games > 0
    )
    return (known + unplayed * strengths.win_probabilities()).sum(axis=1)


def ranking_values(table: CrossTable, rule: RankingRule) -> np.ndarray:
    """Return `[place]`, greatest best."""
    if rule == "mean_score":
        return np.array(table.score_sums) / np.maximum(table.played, 1)
    if rule == "bradley_terry":
        return fit_strengths(table, "bradley_terry").mean
    strengths = fit_strengths(table)
    return strengths.mean if rule == "margin" else expected_points(table, strengths)


def ranks_from_values(table: CrossTable, values: np.ndarray) -> list[float]:
    """Return contestant -> rank, 0.0 best; values equal to nine digits share their ranks."""
    scale = SCALE / max(float(np.abs(values).max()), 1.0)
    rounded = np.rint(values * scale).astype(np.int64).tolist()
    return ranks_from_keys(
        [rounded[place] if table.played[place] else None for place in table.place_of]
    )


def rank_by(rule: RankingRule, order: Sequence[int], matches: Sequence[Match]) -> list[float]:
    """Return contestant -> rank, 0.0 best, unmeasured contestants in the middle of all places."""
    table = CrossTable(order, matches)
    return ranks_from_values(table, ranking_values(table, rule))
