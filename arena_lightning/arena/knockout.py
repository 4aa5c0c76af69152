"""Plays a bracket: fills its cells with contestants, settles undecided matches, ranks at the end.

Shared by single and double elimination, which differ only in their plan (`bracket.py`).
"""

from collections.abc import Generator, Sequence
from typing import Literal

from arena_lightning.arena.bracket import Bracket, LowerDraw
from arena_lightning.arena.seeding import Averages, best_first
from arena_lightning.arena.standings import (
    Round,
    Tally,
    new_bye,
    new_pairing,
    ranks_from_keys,
    share_ranks,
)
from arena_lightning.types import Match, Standings

KnockoutTie = Literal["score", "seed", "shared"]
"""Who goes on after a tie: `score`, the higher accumulated average, then the higher seed; `seed`,
the higher seed; `shared`, the higher seed, but both share the mean of their final ranks."""


class Knockout:
    """One knockout. A failed match is settled by the seeding, as a walkover.

    Somebody must fill the slot, but neither side gets a win or a score from a failed match.
    """

    __slots__ = ("_averages", "_links", "_lower_by_score", "_place_of", "_seeds", "_tally", "_tie")

    def __init__(
        self,
        seeds: Sequence[int],
        anchor: int | None,
        tally: Tally,
        tie: KnockoutTie,
        lower_by_score: bool = False,
    ) -> None:
        """Start from `seeds`, best first; `anchor=None` when no seeding round was played."""
        self._seeds = seeds
        self._place_of = [0] * len(seeds)
        for place, contestant in enumerate(seeds):
            self._place_of[contestant] = place
        self._tally = tally
        self._averages = Averages(tally, anchor)
        self._tie = tie
        self._lower_by_score = lower_by_score
        self._links: list[tuple[int, int]] = []
        """With the tie rule `shared`: the two sides of each undecided match."""

    def play(
        self, bracket: Bracket, seeds: Sequence[int] | None = None
    ) -> Generator[Round, list[Match], list[int]]:
        """Play all rounds; return cell -> contestant. `seeds=None` starts with all seeds."""
        cells = list(self._seeds if seeds is None else seeds)
        for pairs, resting, lower in bracket.rounds:
            if lower is not None and self._lower_by_score:
                self._draw(lower, cells)
            pairings: Round = [new_pairing((cells[one], cells[other])) for one, other in pairs]
            if resting:
                pairings += [new_bye((cells[cell],)) for cell in resting]
            matches = yield pairings
            self._tally.add(matches)
            for match in matches:
                first, second, score_first, score_second, status = match
                if status == "decided":
                    assert score_first is not None and score_second is not None
                    first_goes_on = score_first > score_second
                else:
                    first_goes_on = self._first_goes_on(match)
                cells += (first, second) if first_goes_on else (second, first)
        return cells

    def _draw(self, lower: LowerDraw, cells: list[int]) -> None:
        """Draw a round's lower bracket by average score: best meets worst, byes go to the best.

        Entrants stay entrants, so that nobody who lost later meets one of its own kind.
        """
        rests, pairs, enters = lower
        place = self._place_of.__getitem__
        one_side = [cells[one] for one, _ in pairs]
        other_side = [cells[other] for _, other in pairs]
        if rests:
            one_side += [cells[cell] for cell in rests]
        keys = self._averages.keys_of(one_side + other_side)
        if enters:
            best = best_first(sorted(one_side, key=place), keys)
            worst = best_first(sorted(other_side, key=place), keys)[::-1]
        else:
            best = best_first(sorted(one_side + other_side, key=place), keys)
            worst = best[::-1]
        if rests:
            for cell, contestant in zip(rests, best, strict=False):
                cells[cell] = contestant
            best = best[len(rests) :]
        for (one, other), better, worse in zip(pairs, best, worst, strict=False):
            cells[one] = better
            cells[other] = worse

    def _first_goes_on(self, match: Match) -> bool:
        """Settle a tied or failed match."""
        first, second = match.first, match.second
        if self._tie == "shared":
            self._links.append((first, second))
        elif self._tie == "score" and match.status == "tie":
            averages = self._averages.keys()
            of_first, of_second = averages[first] or 0, averages[second] or 0
            if of_first != of_second:
                return of_first > of_second
        return self._place_of[first] < self._place_of[second]

    def standings(self, cells: Sequence[int], bracket: Bracket) -> Standings:
        """Rank by tier, then average score, then seed.

        With the tie rule `shared`, equal averages in a tier share their ranks instead, and so do
        the two sides of each undecided match.
        """
        tiers = [0] * len(self._seeds)
        for cell, tier in bracket.exits:
            tiers[cells[cell]] = tier
        averages = self._averages.keys()
        if self._tie == "shared":
            keys = list(zip(tiers, averages, strict=True))
        else:
            keys = list(zip(tiers, averages, [-place for place in self._place_of], strict=True))
        if None in averages:
            keys = [None if key[1] is None else key for key in keys]
        ranks = ranks_from_keys(keys)
        return self._tally.standings(share_ranks(ranks, self._links) if self._links else ranks)
