"""Double elimination: out after two losses. 2N-2 matches, one more if the bracket is reset.

Both brackets run side by side, so the depth is 2 ceil(log2 N) rounds. The paper's random start is
the default: `order` is the seeding, and no match is spent on it.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Literal

from arena_lightning.arena.bracket import Bracket, BracketKind, BracketRound, double_bracket
from arena_lightning.arena.knockout import Knockout, KnockoutTie
from arena_lightning.arena.options import require_choice
from arena_lightning.arena.seeding import Seeding, seed_by_anchor
from arena_lightning.arena.standings import Round, Tally, TournamentCost
from arena_lightning.types import Match, Standings

LowerDrawKind = Literal["score", "fixed"]


@dataclass(frozen=True, slots=True)
class DoubleEliminationTopology:
    """Ranks by the round of elimination, then by accumulated average score.

    Source: ArenaRL, arXiv:2601.06487, section 4; differs: both brackets run side by
    side, and the lower one is drawn by score (`lower_draw`).
    """

    seeding: Seeding = "order"
    """A random start as in the paper: seeds as `order` has them; or a pass against the anchor."""
    bracket_reset: bool = False
    """Whether a loss in the grand final, the winners' champion's first, is played again. It tells
    something new only when the arena judges rematches afresh. The paper: no reset."""
    lower_draw: LowerDrawKind = "score"
    """Who meets whom in the lower bracket: best against worst by `score` so far, byes to the best;
    or `fixed` beforehand, blind to the scores like the random draws of the released code."""
    bracket: BracketKind = "fold"
    tie: KnockoutTie = "score"
    anchor: int = 0
    """The contestant the others meet in a seeding pass; 0 by contract."""

    def __post_init__(self) -> None:
        require_choice(self, "bracket", BracketKind)
        require_choice(self, "lower_draw", LowerDrawKind)
        require_choice(self, "seeding", Seeding)
        require_choice(self, "tie", KnockoutTie)

    def cost(self, size: int) -> TournamentCost:
        seeding = int(self.seeding == "anchor" and size > 1)
        reset = int(self.bracket_reset and size > 1)
        return TournamentCost(
            matches=(2 + seeding) * (size - 1) + reset,
            rounds=2 * max(size - 1, 0).bit_length() + seeding + reset,
            exact=not reset,
        )

    def rounds(self, order: Sequence[int]) -> Generator[Round, list[Match], Standings]:
        size = len(order)
        tally = Tally(size)
        seeds, anchor = list(order), None
        if self.seeding == "anchor" and size > 1:
            anchor = self.anchor
            seeds = yield from seed_by_anchor(order, anchor, tally)
        bracket = double_bracket(size, self.bracket)
        knockout = Knockout(seeds, anchor, tally, self.tie, self.lower_draw == "score")
        cells = yield from knockout.play(bracket)
        if self.bracket_reset and size > 1:
            yield from self._reset(cells, bracket, knockout)
        return knockout.standings(cells, bracket)

    def _reset(
        self, cells: list[int], bracket: Bracket, knockout: Knockout
    ) -> Generator[Round, list[Match], None]:
        """Play the grand final again if the unbeaten finalist lost it; its last two cells change.

        The upper bracket's champion is the first side of the grand final.
        """
        unbeaten, challenger = (cells[cell] for cell in bracket.rounds[-1].pairs[0])
        if cells[-1] == unbeaten:
            again = Bracket(rounds=(BracketRound(((0, 1),), ()),), exits=())
            cells[-2:] = (yield from knockout.play(again, [unbeaten, challenger]))[-2:]
