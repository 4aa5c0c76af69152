"""What two of the paper's released topologies do to a ranking, defects included, to measure them.

Only for studies: these are not in `TOPOLOGIES` and nothing can train with them. The behaviour is
written anew from its description, not the code: Swiss credits results to whoever stands where the
winner's number points after the list was shuffled; the knockout drops empty slots before pairing.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from arena_lightning.arena.bracket import fold_seeds
from arena_lightning.arena.seeding import seed_by_anchor
from arena_lightning.arena.standings import Tally, TournamentCost, new_pairing, ranks_from_keys
from arena_lightning.rng import generator_for
from arena_lightning.types import Bye, Match, Pairing, Standings

Rounds = Generator[list[Pairing | Bye], list[Match], Standings]


@dataclass(frozen=True, slots=True)
class ReleasedSwissTopology:
    """Swiss whose points land on other contestants than those who won them."""

    def cost(self, size: int) -> TournamentCost:
        rounds = (size - 1).bit_length() if size > 1 else 0
        return TournamentCost(rounds * (size // 2), rounds)

    def rounds(self, order: Sequence[int]) -> Rounds:
        size = len(order)
        tally = Tally(size)
        # The released list holds contestants by number and is shuffled in place each round.
        listed = list(range(size))
        points = [0.0] * size
        opponents: list[set[int]] = [set() for _ in range(size)]
        # The shuffles are a function of the start order, as everything random here.
        rng = generator_for(0, "released/swiss", *order)
        for _ in range(self.cost(size).rounds):
            listed = [listed[place] for place in rng.permutation(size)]
            table = sorted(listed, key=lambda contestant: -points[contestant])
            pairings: list[Pairing | Bye] = []
            waiting = list(table)
            while len(waiting) > 1:
                first = waiting.pop(0)
                fresh = [c for c in waiting if c not in opponents[first]] or waiting
                second = fresh[0]
                waiting.remove(second)
                pairings.append(new_pairing((first, second)))
            pairings += [Bye(contestant) for contestant in waiting]
            matches = yield pairings
            tally.add(matches)
            for rested in waiting:
                points[listed[rested]] += 1.0
            for match in matches:
                one, other = listed[match.first], listed[match.second]
                opponents[one].add(other)
                opponents[other].add(one)
                if match.status == "failed":
                    continue
                first_won = match.score_first >= match.score_second
                points[one if first_won else other] += 1.0
        buchholz = [sum(points[c] for c in met) for met in opponents]
        return tally.standings(ranks_from_keys(list(zip(points, buchholz, strict=True))))


@dataclass(frozen=True, slots=True)
class ReleasedKnockoutTopology:
    """Seeded single elimination whose byes go to whoever an empty slot leaves over.

    The same as ours for powers of two, but for ties: the first listed goes on.
    """

    anchor: int = 0

    def cost(self, size: int) -> TournamentCost:
        depth = (size - 1).bit_length() if size > 1 else 0
        return TournamentCost(2 * (size - 1), depth + (size > 1))

    def rounds(self, order: Sequence[int]) -> Rounds:
        size = len(order)
        tally = Tally(size)
        if size < 2:
            return tally.standings([0.0] * size)
        seeds = yield from seed_by_anchor(order, self.anchor, tally)
        full = 1 << (size - 1).bit_length()
        alive = [seeds[slot] for slot in fold_seeds(full) if slot < size]
        left_in: dict[int, int] = {}
        number = 0
        while len(alive) > 1:
            pairs = list(zip(alive[::2], alive[1::2], strict=False))
            resting = alive[2 * len(pairs) :]
            pairings: list[Pairing | Bye] = [new_pairing(pair) for pair in pairs]
            matches = yield [*pairings, *(Bye(contestant) for contestant in resting)]
            tally.add(matches)
            winners = []
            for match in matches:
                scores = (match.score_first or 0.0, match.score_second or 0.0)
                first_won = scores[0] >= scores[1]
                winners.append(match.first if first_won else match.second)
                left_in[match.second if first_won else match.first] = number
            # Who rested is put first, which shifts every pair of the next round.
            alive = resting + winners
            number += 1
        left_in[alive[0]] = number
        means = np.array(tally.score_sums) / np.maximum(tally.played, 1)
        keys = [(left_in[c], float(np.round(means[c], 9))) for c in range(size)]
        return tally.standings(ranks_from_keys(keys))
