"""Ranking by scores instead of matches: the baselines that tournaments are compared with.

    group -> scores, given one by one or all in one call -> advantages

`pointwise` is what GRPO and GSPO do with a judge, `pointwise_ranks` keeps only the order of its
scores, `listwise` asks once for a whole group. A score that failed is no score: its trajectory has
advantage zero and does not enter the others' mean.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from scipy.stats import rankdata

from arena_lightning.arena.advantages import advantages_from_ranks, advantages_from_scores
from arena_lightning.arena.arena import Arena, OnJudgeFailure, Presentation
from arena_lightning.arena.call_slots import SlotsOfLoop, gather_or_cancel
from arena_lightning.arena.options import require, require_choice
from arena_lightning.arena.result import ArenaResult
from arena_lightning.arena.topology import build_topology
from arena_lightning.arena.verdicts import JudgeCall, dimension_means, sum_usage, usage_of
from arena_lightning.errors import JudgeError
from arena_lightning.protocols import Judge, Score
from arena_lightning.rng import seed_for
from arena_lightning.types import Group, Prompt, Standings, Trajectory, Verdict

ScoreRanking = Literal["pointwise", "pointwise_ranks", "listwise"]
Ranking = Literal["tournament"] | ScoreRanking


class GroupJudge(Protocol):
    """Scores a whole group in one call, in contestant order; raises `JudgeError`."""

    name: str

    async def score_group(
        self, prompt: Prompt, trajectories: Sequence[Trajectory], seed: int = 0
    ) -> list[Score]: ...


class ScoringArena:
    """Ranks groups by a judge's scores; the door is `Arena`'s."""

    def __init__(
        self,
        judge: Judge | GroupJudge,
        ranking: ScoreRanking = "pointwise",
        concurrency: int = 64,
        seed: int = 0,
        on_judge_failure: OnJudgeFailure = "drop_group",
        max_failed_fraction: float = 0.25,
    ) -> None:
        """Set up.

        Args:
            judge: has `score`; for `listwise`, `score_group`.
            ranking: how scores become advantages.
            concurrency: judge calls in flight, over all groups.
            seed: of the order and names that a listwise judge is shown.
            on_judge_failure: `raise` the first `JudgeError`, or go on without the score.
            max_failed_fraction: a group with more failed scores than this (0-1), or fewer than two
                scores, is dropped: zero advantages.

        Raises:
            ConfigError: a setting out of range.
        """
        self.judge = judge
        self.ranking = ranking
        self.concurrency = concurrency
        self.seed = seed
        self.on_judge_failure = on_judge_failure
        self.max_failed_fraction = max_failed_fraction
        require_choice(self, "ranking", ScoreRanking)
        require_choice(self, "on_judge_failure", OnJudgeFailure)
        require(concurrency >= 1, self, "concurrency", "be at least 1 call")
        require(0 <= max_failed_fraction <= 1, self, "max_failed_fraction", "lie in 0-1")
        self._slots = SlotsOfLoop(concurrency)

    def describe(self, size: int) -> str:
        """Return what a group costs, for people."""
        return "1 judge call" if self.ranking == "listwise" else f"{size} judge calls, 1 round"

    async def run_group(self, group: Group, step: int = 0, group_index: int = 0) -> ArenaResult:
        """Score and rank one group.

        Returns:
            A result without matches: its counts are of scores, `num_ties` of the trajectories that
            share theirs, and each call names its trajectory on both sides.

        Raises:
            JudgeError: a call failed and `on_judge_failure` is `raise`.
        """
        if self.ranking == "listwise":
            calls = await self._ask_once(group, step, group_index)
        else:
            calls = await gather_or_cancel([self._ask(group, i) for i in range(len(group))])
        return self._result(calls, len(group))

    async def _ask(self, group: Group, index: int) -> JudgeCall:
        async with self._slots.slot(0):
            try:
                judged = await self.judge.score(group.prompt, group.trajectories[index])  # type: ignore[union-attr]
                return self._call(index, judged, group)
            except JudgeError as error:
                if self.on_judge_failure == "raise":
                    raise
                return JudgeCall(index, index, None, usage_of(error), str(error))

    async def _ask_once(self, group: Group, step: int, group_index: int) -> list[JudgeCall]:
        seed = seed_for(self.seed, "arena/listwise", step, group_index)
        async with self._slots.slot(0):
            try:
                scores = await self.judge.score_group(group.prompt, group.trajectories, seed)  # type: ignore[union-attr]
                return [self._call(index, judged, group) for index, judged in enumerate(scores)]
            except JudgeError as error:
                if self.on_judge_failure == "raise":
                    raise
                return [JudgeCall(0, 0, None, usage_of(error), str(error))]

    def _call(self, index: int, judged: Score, group: Group) -> JudgeCall:
        if not math.isfinite(judged.score):
            error = JudgeError(
                f"scores must be finite, got {judged.score} (judge {self.judge.name}, prompt "
                f"{group.prompt.prompt_id!r}). Let the judge raise JudgeError instead."
            )
            error.usage = judged.usage  # type: ignore[attr-defined]
            raise error
        verdict = Verdict(
            judged.score,
            judged.score,
            judged.dimensions,
            judged.dimensions,
            judged.usage,
            judged.comment,
            self.judge.name,
        )
        return JudgeCall(index, index, verdict, judged.usage)

    def _result(self, calls: Sequence[JudgeCall], size: int) -> ArenaResult:
        scores = np.full(size, np.nan)
        for call in calls:
            if call.verdict is not None:
                scores[call.first] = call.verdict.score_first
        scored = np.isfinite(scores)
        num_failed = int(size - scored.sum())
        dropped = num_failed > self.max_failed_fraction * size or scored.sum() < 2
        known = scores[scored]
        ranks = np.full(size, (size - 1) / 2)
        advantages = np.zeros(size)
        if len(known) > 1:
            among_known = rankdata(-known) - 1
            # Stretched to the group, with those that failed in the middle.
            ranks[scored] = among_known * (size - 1) / (len(known) - 1)
            if not dropped:
                advantages[scored] = (
                    advantages_from_ranks(among_known)
                    if self.ranking == "pointwise_ranks"
                    else advantages_from_scores(known)
                )
        _, counts = np.unique(known, return_counts=True)
        return ArenaResult(
            standings=Standings(ranks, (), np.zeros(size), scores, 1),
            advantages=advantages,
            calls=tuple(calls),
            usage=sum_usage(call.usage for call in calls),
            num_matches=size,
            num_judged=size,
            num_ties=int(counts[counts > 1].sum()),
            num_failed=num_failed,
            num_both_orders=0,
            num_flips=0,
            decided=len(counts) > 1,
            dropped=bool(dropped),
            dimension_means=dimension_means(calls),
        )


def build_arena(
    ranking: Ranking,
    judge: Any,
    topology: str = "single_elimination",
    presentation: Presentation = "both",
    concurrency: int = 64,
    seed: int = 0,
    on_judge_failure: OnJudgeFailure = "drop_group",
) -> Arena | ScoringArena:
    """Return the arena of a way of ranking; `topology` and `presentation` are a tournament's.

    Raises:
        ConfigError: an unknown topology, or a setting out of range.
    """
    if ranking != "tournament":
        return ScoringArena(judge, ranking, concurrency, seed, on_judge_failure)
    return Arena(
        build_topology(topology),
        judge,
        presentation,
        concurrency,
        seed,
        on_judge_failure=on_judge_failure,
    )
