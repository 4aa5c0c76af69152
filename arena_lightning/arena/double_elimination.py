"""Double elimination: out after two losses. 2N-2 matches, one more if the bracket is reset.

Both brackets run side by side, so the depth is 2 ceil(log2 N) rounds. The paper's random start is
the default: `order` is the seeding, and no match is spent on it.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Literal

from arena_lightning.arena.bracket import (
    BracketKind,
    KnockoutTie,
    Slots,
    advance,
    bracket_slots,
    knockout_ranks,
    pair_slots,
    places,
    winner_of,
    with_byes,
)
from arena_lightning.arena.seeding import Averages, seed_by_anchor
from arena_lightning.arena.standings import Tally, TournamentCost
from arena_lightning.types import Bye, Match, Pairing, Standings


@dataclass(frozen=True, slots=True)
class DoubleEliminationTopology:
    """Ranks by the round of elimination, then by accumulated average score.

    Source: ArenaRL, arXiv:2601.06487, section 4; differs: the losers' bracket runs beside the
    winners' bracket, and feeds cross over so that rematches come late.
    """

    seeding: Literal["anchor", "order"] = "order"
    """A random start as in the paper: seeds as `order` has them; or a pass against the anchor."""
    bracket_reset: bool = False
    """Whether a loss in the grand final, the winners' champion's first, is played again. It tells
    something new only when the arena judges rematches afresh. The paper: no reset."""
    bracket: BracketKind = "fold"
    tie: KnockoutTie = "score"
    anchor: int = 0
    """The contestant the others meet in a seeding pass; 0 by contract."""

    def cost(self, size: int) -> TournamentCost:
        seeding = int(self.seeding == "anchor" and size > 1)
        reset = int(self.bracket_reset and size > 1)
        return TournamentCost(
            matches=(2 + seeding) * (size - 1) + reset,
            rounds=2 * max(size - 1, 0).bit_length() + seeding + reset,
            exact=not reset,
        )

    def rounds(
        self, order: Sequence[int]
    ) -> Generator[list[Pairing | Bye], list[Match], Standings]:
        size = len(order)
        tally = Tally(size)
        seeds, anchor = list(order), None
        if self.seeding == "anchor" and size > 1:
            anchor = self.anchor
            seeds = yield from seed_by_anchor(order, anchor, tally)
        average = Averages(tally, anchor)
        place_of = places(seeds)
        tier_of = [0] * size
        links: list[tuple[int, int]] = []

        def settle(matches: list[Match]) -> dict[int, int]:
            tally.add(matches)
            winners = {}
            for match in matches:
                winner = winner_of(match, place_of, self.tie, average)
                winners[match.first] = winners[match.second] = winner
                if self.tie == "shared" and match.status != "decided":
                    links.append((match.first, match.second))
            return winners

        upper = bracket_slots(seeds, self.bracket)
        lower: Slots = []
        fed: list[Slots] = []
        """Losers of the upper bracket's rounds that have not entered the lower bracket."""
        turn = 0
        while len(upper) > 1 or fed or len(lower) > 1:
            lower = _lower_bracket(turn, lower, fed)
            turn += 1
            pairings = pair_slots(upper) + pair_slots(lower)
            if not pairings:
                continue
            active = upper + lower + [contestant for slots in fed for contestant in slots]
            winners = settle((yield with_byes(pairings, active)))
            if len(upper) > 1:
                upper, lost = advance(upper, winners)
                fed.append(lost)
            if len(lower) > 1:
                lower, out = advance(lower, winners)
                for contestant in out:
                    if contestant is not None:
                        tier_of[contestant] = tally.num_rounds
        champion = upper[0]
        if size > 1:
            champion = yield from self._grand_final(upper[0], lower[0], settle)
            tier_of[upper[0]] = tier_of[lower[0]] = tally.num_rounds
        tier_of[champion] = tally.num_rounds + 1
        return tally.standings(knockout_ranks(tier_of, place_of, average, self.tie, links))

    def _grand_final(self, unbeaten, challenger, settle):
        """Play the grand final, and the reset when it is due; return the champion."""
        pairing = Pairing(unbeaten, challenger)
        champion = settle((yield [pairing]))[unbeaten]
        if self.bracket_reset and champion == challenger:
            champion = settle((yield [pairing]))[unbeaten]
        return champion


def _lower_bracket(turn: int, lower: Slots, fed: list[Slots]) -> Slots:
    """Return the lower bracket's slots for a turn, taking the upper losers that enter now.

    Turn 1 pairs the losers of the first upper round; from then on even turns bring the losers of
    the next upper round in, one against each survivor, and odd turns pair the survivors.
    """
    if turn == 0:
        return []
    if turn == 1:
        return fed.pop(0)
    if turn % 2 == 1 or not fed:
        return lower
    # Mirrored on every other entry, so that an entrant comes from another part of the draw.
    entrants = fed.pop(0)
    if turn % 4 == 2:
        entrants = entrants[::-1]
    return [slot for pair in zip(entrants, lower, strict=True) for slot in pair]
