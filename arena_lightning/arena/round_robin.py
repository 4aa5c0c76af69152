"""Round robin: everyone meets everyone, all at once. The gold standard, at N(N-1)/2 matches.

It has no anchor, no seeding and no byes.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from arena_lightning.arena.options import require, require_choice
from arena_lightning.arena.standings import (
    SCALE,
    Round,
    Tally,
    TournamentCost,
    new_pairing,
    ranks_from_keys,
)
from arena_lightning.types import Match, Standings

TieBreak = Literal["shared", "score"]


@dataclass(frozen=True, slots=True)
class RoundRobinTopology:
    """Ranks by points a match. Source: ArenaRL, arXiv:2601.06487, eq. 4."""

    tie_points: float = 0.5
    """What a tie is worth to each side, 0-0.5. The paper's eq. 4: 0; the released code: 0.5."""
    tie_break: TieBreak = "shared"
    """Equal points share their ranks (the paper), or go by mean score first."""

    def __post_init__(self) -> None:
        require(0.0 <= self.tie_points <= 0.5, self, "tie_points", "lie in 0-0.5")
        require_choice(self, "tie_break", TieBreak)

    def cost(self, size: int) -> TournamentCost:
        return TournamentCost(matches=size * (size - 1) // 2, rounds=int(size > 1))

    def rounds(self, order: Sequence[int]) -> Generator[Round, list[Match], Standings]:
        size = len(order)
        tally = Tally(size)
        if size > 1:
            tally.add((yield list(map(new_pairing, combinations(order, 2)))))
        return tally.standings(ranks_from_keys(self._keys(tally)))

    def _keys(self, tally: Tally) -> list[tuple[int, ...] | None]:
        """Return contestant -> ranking key, None for one whose matches all failed."""
        lost_per_tie = 0.5 - self.tie_points
        by_score = self.tie_break == "score"
        keys: list[tuple[int, ...] | None] = []
        for contestant, score in enumerate(tally.score_keys()):
            if score is None:
                keys.append(None)
                continue
            points = tally.points[contestant] - lost_per_tie * tally.ties[contestant]
            rate = round(SCALE * points / tally.played[contestant])
            keys.append((rate, score) if by_score else (rate,))
        return keys
