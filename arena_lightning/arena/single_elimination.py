"""Single elimination: a seeding pass against the anchor, then a knockout. 2N-2 matches.

The paper's method. Two brackets: the standard fold (default; it returns the exact order under a
perfect judge for every N) and the paper's Algorithm 1. Byes go to the top seeds.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from arena_lightning.arena.bracket import BracketKind, single_bracket
from arena_lightning.arena.knockout import Knockout, KnockoutTie
from arena_lightning.arena.options import require_choice
from arena_lightning.arena.seeding import Seeding, seed_by_anchor
from arena_lightning.arena.standings import Round, Tally, TournamentCost
from arena_lightning.types import Match, Standings


@dataclass(frozen=True, slots=True)
class SingleEliminationTopology:
    """Ranks by the round of elimination, then by accumulated average score, seeding included.

    Source: ArenaRL, arXiv:2601.06487, section 4 and Algorithm 1; differs: byes, tie and failure
    rules are explicit.
    """

    bracket: BracketKind = "fold"
    """`fold`: 1 and 2 can meet only in the final, 1-4 only in the semi-finals; `algorithm1`."""
    seeding: Seeding = "anchor"
    """Seeds by a pass against the anchor, or a random start: seeds as `order` has them."""
    tie: KnockoutTie = "score"
    anchor: int = 0
    """The contestant the others meet in the seeding pass; 0 by contract."""

    def __post_init__(self) -> None:
        require_choice(self, "bracket", BracketKind)
        require_choice(self, "seeding", Seeding)
        require_choice(self, "tie", KnockoutTie)

    def cost(self, size: int) -> TournamentCost:
        passes = 2 if self.seeding == "anchor" else 1
        depth = max(size - 1, 0).bit_length()
        return TournamentCost(
            matches=passes * (size - 1), rounds=depth + (passes - 1) * int(size > 1)
        )

    def rounds(self, order: Sequence[int]) -> Generator[Round, list[Match], Standings]:
        size = len(order)
        tally = Tally(size)
        seeds, anchor = list(order), None
        if self.seeding == "anchor" and size > 1:
            anchor = self.anchor
            seeds = yield from seed_by_anchor(order, anchor, tally)
        bracket = single_bracket(size, self.bracket)
        knockout = Knockout(seeds, anchor, tally, self.tie)
        cells = yield from knockout.play(bracket)
        return knockout.standings(cells, bracket)
