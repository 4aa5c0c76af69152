"""A panel: several judges asked the same question, and one verdict made of theirs.

    question -> every member at once -> mean of scores, or majority of votes -> Verdict

Verdicts of members are kept beside the panel's, for reports by judge and dimension. A member that
fails is left out when enough are left, and is told; it never counts as a vote or a score.
"""

import math
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from arena_lightning.arena.call_slots import gather_or_cancel
from arena_lightning.arena.verdicts import sum_usage, usage_of
from arena_lightning.errors import ConfigError, JudgeError
from arena_lightning.judges.asking import failed
from arena_lightning.protocols import Judge, Score
from arena_lightning.types import Prompt, Trajectory, Usage, Verdict

Rule = Literal["mean", "majority"]
_Given = TypeVar("_Given", Verdict, Score)


@dataclass(frozen=True, slots=True)
class PanelVerdict(Verdict):
    """A panel's verdict with its members'."""

    members: Mapping[str, Verdict] = field(default_factory=dict)
    """Judge's name -> its verdict."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Judge's name -> why it gave none."""


@dataclass(frozen=True, slots=True)
class PanelScore(Score):
    """A panel's pointwise score with its members'."""

    members: Mapping[str, Score] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)


class PanelJudge:
    """Judges by several judges."""

    def __init__(
        self,
        judges: Sequence[Judge],
        rule: Rule = "mean",
        min_judges: int | None = None,
        name: str = "",
    ) -> None:
        """Set up a panel.

        Args:
            judges: the members, with names that differ. For `mean` they must score on one scale.
            rule: `mean`: each side's score is the mean of the members' (their scale; the paper's
                evaluation takes the mean of two). `majority`: every member votes for the side it
                scored higher, a tie is no vote; 1.0 for the side with more votes and 0.0 for the
                other, 0.5 for both when votes are equal.
            min_judges: verdicts needed; fewer is a `JudgeError`. None needs all.
            name: in reports; "" joins the members' names.

        Raises:
            ConfigError: no judge, a name twice, an unknown rule, or min_judges out of range.
        """
        names = [judge.name for judge in judges]
        if not names or len(set(names)) < len(names):
            raise ConfigError(
                f"a panel must have judges whose names differ, got {names} (panel: judges). Give "
                "each a `name`."
            )
        if rule not in ("mean", "majority"):
            raise ConfigError(
                f"rule must be mean or majority, got {rule!r} (panel: rule). Choose one."
            )
        self.judges = tuple(judges)
        self.rule = rule
        self.min_judges = len(names) if min_judges is None else min_judges
        if not 1 <= self.min_judges <= len(names):
            raise ConfigError(
                f"min_judges must lie in 1-{len(names)}, got {min_judges} (panel: min_judges). "
                "None needs every judge."
            )
        self.name = name or "+".join(names)

    async def compare(self, prompt: Prompt, first: Trajectory, second: Trajectory) -> Verdict:
        """Return a `PanelVerdict`, `first` being shown first to every member.

        Dimensions are means over the members that gave them, whatever the rule; usage is the sum,
        with the longest latency, failed members included.

        Raises:
            JudgeError: fewer than `min_judges` verdicts; `.usage` is everything billed.
        """
        verdicts, failures, usage = await self._ask(
            [judge.compare(prompt, first, second) for judge in self.judges], prompt
        )
        pairs = [(verdict.score_first, verdict.score_second) for verdict in verdicts.values()]
        if self.rule == "mean":
            scores = _mean([pair[0] for pair in pairs]), _mean([pair[1] for pair in pairs])
        else:
            scores = _majority(pairs)
        return PanelVerdict(
            *scores,
            dimensions_first=_mean_dimensions([v.dimensions_first for v in verdicts.values()]),
            dimensions_second=_mean_dimensions([v.dimensions_second for v in verdicts.values()]),
            usage=usage,
            comment="\n".join(f"{name}: {v.comment}" for name, v in verdicts.items()),
            judge=self.name,
            members=verdicts,
            failures=failures,
        )

    async def score(self, prompt: Prompt, trajectory: Trajectory) -> Score:
        """Return a `PanelScore`, the mean of the members' pointwise scores, under either rule: one
        trajectory alone can't be voted on. Raises as `compare`.
        """
        scores, failures, usage = await self._ask(
            [judge.score(prompt, trajectory) for judge in self.judges], prompt
        )
        return PanelScore(
            score=_mean([score.score for score in scores.values()]),
            dimensions=_mean_dimensions([score.dimensions for score in scores.values()]),
            usage=usage,
            comment="\n".join(f"{name}: {score.comment}" for name, score in scores.items()),
            members=scores,
            failures=failures,
        )

    async def _ask(
        self, calls: Sequence[Coroutine[Any, Any, _Given]], prompt: Prompt
    ) -> tuple[dict[str, _Given], dict[str, str], Usage]:
        """Await all members; return what they gave, why others didn't, and the cost of all."""
        outcomes = await gather_or_cancel([_outcome(call) for call in calls])
        given: dict[str, _Given] = {}
        failures: dict[str, str] = {}
        usages = []
        for judge, outcome in zip(self.judges, outcomes, strict=True):
            if isinstance(outcome, JudgeError):
                failures[judge.name] = str(outcome)
                usages.append(usage_of(outcome))
            else:
                given[judge.name] = outcome
                usages.append(outcome.usage)
        # Members are asked at once: the slowest is what one waits for.
        usage = replace(sum_usage(usages), latency_s=max(usage.latency_s for usage in usages))
        if len(given) < self.min_judges:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in failures.items())
            raise failed(
                f"a panel must have {self.min_judges} verdicts, got {len(given)} (prompt "
                f"{prompt.prompt_id!r}; {reasons}). The match counts as failed.",
                usage,
            )
        return given, failures, usage


def name_apart(judges: Sequence[Judge]) -> None:
    """Number judges whose names are the same, for reports."""
    seen: dict[str, int] = {}
    for judge in judges:
        seen[judge.name] = seen.get(judge.name, 0) + 1
        if seen[judge.name] > 1:
            judge.name = f"{judge.name} ({seen[judge.name]})"


async def _outcome(call: Coroutine[Any, Any, _Given]) -> _Given | JudgeError:
    try:
        return await call
    except JudgeError as error:
        return error


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _majority(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    lead = sum((first > second) - (first < second) for first, second in pairs)
    share = 0.5 + 0.5 * ((lead > 0) - (lead < 0))
    return share, 1.0 - share


def _mean_dimensions(by_member: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for dimensions in by_member for name in dimensions)
    return {name: _mean([found[name] for found in by_member if name in found]) for name in names}
