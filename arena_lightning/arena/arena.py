"""The arena: plays the tournaments of all groups of a step with one judge, concurrently.

    groups -> topology rounds -> judge calls (bounded) -> matches -> standings -> advantages

It owns presentation order, merging, failures and concurrency; the topology owns who meets whom.
There is no barrier across groups. The only async code of this floor; it keeps no state from one
step to the next.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from arena_lightning.arena.call_slots import SlotsOfLoop, gather_or_cancel
from arena_lightning.arena.options import require, require_choice
from arena_lightning.arena.result import ArenaResult, JudgingLog
from arena_lightning.arena.topology import Topology, check_order
from arena_lightning.arena.verdicts import (
    JudgeCall,
    Outcome,
    merge_calls,
    merge_identical,
    usage_of,
)
from arena_lightning.errors import JudgeError
from arena_lightning.protocols import Judge
from arena_lightning.rng import generator_for
from arena_lightning.types import Group, Match, Pairing, Trajectory

Presentation = Literal["both", "random", "second_if_close"]
OnJudgeFailure = Literal["raise", "drop_group"]
Rematches = Literal["reuse", "replay"]


@dataclass(slots=True)
class _Memory:
    """What one group's tournament knows so far."""

    group: Group
    class_of: Sequence[int]
    """Contestant -> the first contestant with the same content."""
    presentation_rng: np.random.Generator
    rounds_left: int
    """At most: this round and those after it."""
    outcomes: dict[tuple[int, int], Outcome] = field(default_factory=dict)
    log: JudgingLog = field(default_factory=JudgingLog)


class Arena:
    """Ranks groups: plays `topology` with `judge`."""

    def __init__(
        self,
        topology: Topology,
        judge: Judge,
        presentation: Presentation = "both",
        concurrency: int = 64,
        seed: int = 0,
        close_margin: float = 1.0,
        tie_margin: float = 0.0,
        on_judge_failure: OnJudgeFailure = "drop_group",
        max_failed_fraction: float = 0.25,
        rematches: Rematches = "reuse",
        share_identical: bool = True,
    ) -> None:
        """Set up an arena.

        Args:
            topology: who meets whom.
            judge: who compares; anything but `JudgeError` from it ends the run.
            presentation: `both` orders summed (the paper), one `random` order, or
                `second_if_close`: a random order, and the other when the first was close.
            concurrency: judge calls in flight, over all groups.
            seed: root seed of starting and presentation orders.
            close_margin: how far apart the scores of one call may be to count as close, judge's
                points.
            tie_margin: how far apart the summed scores may be to be a tie, points on the scale of
                two calls. The paper: 0.
            on_judge_failure: `raise` the first `JudgeError`, or play on: the match has failed.
            max_failed_fraction: a group with more failed matches than this (0-1) is dropped: zero
                advantages.
            rematches: `reuse` the outcome, paid once, or `replay`: ask again each round.
            share_identical: trajectories with equal messages are one to the judge: a pair of them
                is a tie, and what one's match showed holds for the other's. Ones without messages
                are never equal. Turn it off for judges that look at more than the content.

        Raises:
            ConfigError: a setting out of range.
        """
        self.topology = topology
        self.judge = judge
        self.presentation = presentation
        self.concurrency = concurrency
        self.seed = seed
        self.close_margin = close_margin
        self.tie_margin = tie_margin
        self.on_judge_failure = on_judge_failure
        self.max_failed_fraction = max_failed_fraction
        self.rematches = rematches
        self.share_identical = share_identical
        require_choice(self, "presentation", Presentation)
        require_choice(self, "on_judge_failure", OnJudgeFailure)
        require_choice(self, "rematches", Rematches)
        require(concurrency >= 1, self, "concurrency", "be at least 1 call")
        require(close_margin >= 0, self, "close_margin", "be at least 0 points")
        require(tie_margin >= 0, self, "tie_margin", "be at least 0 points")
        require(0 <= max_failed_fraction <= 1, self, "max_failed_fraction", "lie in 0-1")
        self._slots = SlotsOfLoop(concurrency)

    def describe(self, size: int) -> str:
        """Return what a group of `size` costs, for people."""
        cost = self.topology.cost(size)
        return f"{'' if cost.exact else 'at most '}{cost.matches} matches, {cost.rounds} rounds"

    async def run(self, groups: Sequence[Group], step: int = 0) -> list[ArenaResult]:
        """Rank all groups of a step at once; results are in the order of `groups`.

        Raises:
            JudgeError: a call failed and `on_judge_failure` is `raise`.
            Exception: whatever else the judge raised; the other calls are cancelled first.
        """
        return await gather_or_cancel(
            [self.run_group(group, step, index) for index, group in enumerate(groups)]
        )

    async def run_group(self, group: Group, step: int = 0, group_index: int = 0) -> ArenaResult:
        """Rank one group, e.g. as soon as its trajectories are there.

        Groups running at the same time share the bound on concurrency. The starting order is
        drawn at the address (seed, "arena/order", step, group_index).
        """
        size = len(group)
        rng = generator_for(self.seed, "arena/order", step, group_index)
        order = [int(contestant) for contestant in rng.permutation(size)]
        check_order(order, size)
        memory = _Memory(
            group,
            _identity_classes(group.trajectories) if self.share_identical else range(size),
            generator_for(self.seed, "arena/presentation", step, group_index),
            self.topology.cost(size).rounds,
        )
        rounds = self.topology.rounds(order)
        try:
            pairings = next(rounds)
            while True:
                real = [pairing for pairing in pairings if isinstance(pairing, Pairing)]
                matches = await self._play_round(real, memory)
                memory.rounds_left -= 1
                pairings = rounds.send(matches)
        except StopIteration as stop:
            return memory.log.result(stop.value, self.max_failed_fraction)

    async def _play_round(self, pairings: Sequence[Pairing], memory: _Memory) -> list[Match]:
        """Ask about the pairs not known yet, all at once, and return every pairing's match."""
        if self.rematches == "replay":
            memory.outcomes.clear()
        asked: dict[tuple[int, int], list[list[tuple[int, int]]]] = {}
        for pairing in pairings:
            pair = _pair_of(pairing, memory.class_of)
            if pair not in memory.outcomes and pair not in asked:
                asked[pair] = self._strands(pair, memory.presentation_rng)
        strands = [strand for strands in asked.values() for strand in strands]
        answers = iter(
            await gather_or_cancel([self._ask_strand(strand, memory) for strand in strands])
        )
        outcomes = {}
        for pair, pair_strands in asked.items():
            calls = [call for _ in pair_strands for call in next(answers)]
            memory.log.add(calls, is_same=pair[0] == pair[1])
            outcomes[pair] = self._outcome(pair, calls)
        known = memory.outcomes | outcomes
        # A failure is no result: a rematch asks again.
        memory.outcomes = {pair: out for pair, out in known.items() if out.status != "failed"}
        matches = []
        for pairing in pairings:
            pair = _pair_of(pairing, memory.class_of)
            swapped = memory.class_of[pairing.first] != pair[0]
            matches.append(known[pair].match(pairing, swapped))
        return matches

    def _strands(
        self, pair: tuple[int, int], rng: np.random.Generator
    ) -> list[list[tuple[int, int]]]:
        """Return the orders to ask in: strands run at once, the orders of a strand in turn.

        The second order of a strand is asked only when the first was close.
        """
        low, high = pair
        if low == high:
            return [[pair]]
        if self.presentation == "both":
            return [[(low, high)], [(high, low)]]
        orders = [(low, high), (high, low)] if rng.random() < 0.5 else [(high, low), (low, high)]
        return [orders[:1]] if self.presentation == "random" else [orders]

    async def _ask_strand(self, orders: list[tuple[int, int]], memory: _Memory) -> list[JudgeCall]:
        calls = []
        for first, second in orders:
            call = await self._ask(memory, first, second)
            calls.append(call)
            verdict = call.verdict
            if verdict is None or (
                abs(verdict.score_first - verdict.score_second) > self.close_margin
            ):
                break
        return calls

    async def _ask(self, memory: _Memory, first: int, second: int) -> JudgeCall:
        """Make one judge call. The one place where a `JudgeError` is caught."""
        group = memory.group
        async with self._slots.slot(memory.rounds_left):
            try:
                verdict = await self.judge.compare(
                    group.prompt, group.trajectories[first], group.trajectories[second]
                )
                if not (math.isfinite(verdict.score_first) and math.isfinite(verdict.score_second)):
                    raise JudgeError(
                        f"scores must be finite, got {verdict.score_first} and "
                        f"{verdict.score_second} (judge {self.judge.name}, prompt "
                        f"{group.prompt.prompt_id!r}). Let the judge raise JudgeError instead."
                    )
            except JudgeError as error:
                if self.on_judge_failure == "raise":
                    raise
                return JudgeCall(first, second, None, usage_of(error), str(error))
        return JudgeCall(first, second, verdict, verdict.usage)

    def _outcome(self, pair: tuple[int, int], calls: list[JudgeCall]) -> Outcome:
        if pair[0] == pair[1]:
            return merge_identical(calls[0])
        return merge_calls(calls, pair[0], self.tie_margin)


def _pair_of(pairing: Pairing, class_of: Sequence[int]) -> tuple[int, int]:
    one, other = class_of[pairing.first], class_of[pairing.second]
    return (one, other) if one <= other else (other, one)


def _identity_classes(trajectories: Sequence[Trajectory]) -> list[int]:
    """Return contestant -> the first contestant with the same messages and finish."""
    first_with: dict[str, int] = {}
    classes = []
    for index, trajectory in enumerate(trajectories):
        content = repr((trajectory.finish, trajectory.messages)) if trajectory.messages else index
        classes.append(first_with.setdefault(str(content), index))
    return classes
