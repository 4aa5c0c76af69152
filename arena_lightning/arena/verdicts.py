"""Judge calls into matches: both orders merged, ties and flips told, usage summed.

    JudgeCall (one verdict, one order) -> outcome of a pair -> Match

A failed call never has scores, and a pair with a failed call is a failed match. Nothing here asks
a judge; that is the arena.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from arena_lightning.errors import JudgeError
from arena_lightning.types import Match, MatchStatus, Pairing, Usage, Verdict

FLOAT_TOLERANCE = 1e-9
"""Sums closer than this are equal: floats, not the judge, made the difference."""


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """One call: contestant `first` was shown first."""

    first: int
    second: int
    verdict: Verdict | None
    """None when the judge gave no usable verdict."""
    usage: Usage
    """What it cost; a failed call's `cost_usd` is None where the judge does not tell."""
    error: str = ""
    """Why it failed, "" when it did not."""

    @property
    def failed(self) -> bool:
        return self.verdict is None


class Outcome(NamedTuple):
    """What the judge made of a pair of contestants, or of two classes of identical ones."""

    score_low: float | None
    """Of the contestant (or class) with the lower index, on the scale of two summed orders."""
    score_high: float | None
    status: MatchStatus

    def match(self, pairing: Pairing, swapped: bool) -> Match:
        """Return the match of a pairing; `swapped` when `first` is the higher index."""
        if swapped:
            return Match(*pairing, self.score_high, self.score_low, self.status)
        return Match(*pairing, self.score_low, self.score_high, self.status)


def merge_calls(calls: Sequence[JudgeCall], low: int, tie_margin: float) -> Outcome:
    """Merge the one or two calls of a pair.

    Scores are sums over both orders, each re-aligned to its contestant. A single order is doubled,
    so that matches judged once and twice stay on one scale. Sums within `tie_margin` are a tie.

    Args:
        calls: one order, or two opposite ones.
        low: which contestant `score_low` belongs to.
        tie_margin: on the scale of the sums (0-20 for a judge of 0-10).

    Source: ArenaRL, arXiv:2601.06487, eq. 3.
    """
    total_low = total_high = 0.0
    for call in calls:
        if call.verdict is None:
            return Outcome(None, None, "failed")
        first, second = call.verdict.score_first, call.verdict.score_second
        total_low += first if call.first == low else second
        total_high += second if call.first == low else first
    factor = 2 / len(calls)
    return outcome_of(factor * total_low, factor * total_high, tie_margin)


def outcome_of(score_low: float, score_high: float, tie_margin: float) -> Outcome:
    """Return the outcome of two sums."""
    is_tie = abs(score_low - score_high) <= tie_margin + FLOAT_TOLERANCE
    return Outcome(score_low, score_high, "tie" if is_tie else "decided")


def merge_identical(call: JudgeCall) -> Outcome:
    """Return the tie of two identical trajectories.

    Swapping them changes nothing, so one call is both orders, and each side has both its scores.
    """
    if call.verdict is None:
        return Outcome(None, None, "failed")
    total = call.verdict.score_first + call.verdict.score_second
    return Outcome(total, total, "tie")


def is_flip(calls: Sequence[JudgeCall]) -> bool:
    """Say whether two opposite orders named opposite winners."""
    if len(calls) != 2 or calls[0].verdict is None or calls[1].verdict is None:
        return False
    one, other = calls[0].verdict, calls[1].verdict
    lead = one.score_first - one.score_second
    lead_swapped = other.score_second - other.score_first
    return lead * lead_swapped < 0


def usage_of(error: JudgeError) -> Usage:
    """Return what an error says was billed; one call of unknown price when it says nothing."""
    usage = getattr(error, "usage", None)
    return usage if isinstance(usage, Usage) else Usage(calls=1, cost_usd=None)


def sum_usage(usages: Iterable[Usage]) -> Usage:
    """Sum what calls cost; `cost_usd` is None when one is not known, `cached` True when all are."""
    usages = list(usages)
    costs = [usage.cost_usd for usage in usages if usage.cost_usd is not None]
    return Usage(
        calls=sum(usage.calls for usage in usages),
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        cost_usd=sum(costs) if len(costs) == len(usages) else None,
        latency_s=sum(usage.latency_s for usage in usages),
        cached=bool(usages) and all(usage.cached for usage in usages),
    )


def dimension_means(calls: Iterable[JudgeCall]) -> Mapping[str, float]:
    """Return the mean of each dimension over all verdicts and both sides, judge's scale."""
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for call in calls:
        if call.verdict is not None:
            for side in (call.verdict.dimensions_first, call.verdict.dimensions_second):
                for name, value in side.items():
                    sums[name] = sums.get(name, 0.0) + value
                    counts[name] = counts.get(name, 0) + 1
    return {name: sums[name] / counts[name] for name in sums}
