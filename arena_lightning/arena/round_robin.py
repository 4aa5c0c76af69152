"""Round robin: everyone meets everyone, all at once. The gold standard, at N(N-1)/2 matches.

It has no anchor, no seeding and no byes.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from arena_lightning.arena.standings import Tally, TournamentCost, ranks_from_keys
from arena_lightning.errors import ConfigError
from arena_lightning.types import Bye, Match, Pairing, Standings


@dataclass(frozen=True, slots=True)
class RoundRobinTopology:
    """Ranks by points a match. Source: ArenaRL, arXiv:2601.06487, eq. 4."""

    tie_points: float = 0.5
    """What a tie is worth to each side, 0-0.5. The paper's eq. 4: 0; the released code: 0.5."""
    tie_break: Literal["shared", "score"] = "shared"
    """Equal points share their ranks (the paper), or go by mean score first."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.tie_points <= 0.5:
            raise ConfigError(
                f"tie_points must lie between 0 and 0.5, got {self.tie_points} "
                "(RoundRobinTopology). Use 0.5, or 0 as in the paper's eq. 4."
            )

    def cost(self, size: int) -> TournamentCost:
        return TournamentCost(matches=size * (size - 1) // 2, rounds=int(size > 1))

    def rounds(
        self, order: Sequence[int]
    ) -> Generator[list[Pairing | Bye], list[Match], Standings]:
        size = len(order)
        tally = Tally(size)
        if size > 1:
            tally.add((yield list(map(Pairing._make, combinations(order, 2)))))
        keys = [self._key(tally, contestant) for contestant in range(size)]
        return tally.standings(ranks_from_keys(keys))

    def _key(self, tally: Tally, contestant: int) -> tuple[float, ...] | None:
        played = tally.played[contestant]
        if not played:
            return None
        points = tally.points[contestant] - (0.5 - self.tie_points) * tally.ties[contestant]
        rate = round(points / played, 9)
        if self.tie_break == "shared":
            return (rate,)
        return (rate, tally.mean_score(contestant) or 0.0)
