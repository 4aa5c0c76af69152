"""Win rates of one set of outputs against another, by any number of judges.

    candidates, baselines -> arena (groups of two, both orders) -> cases -> win rates by judge, mean

Validation during training and the `test` command both end here. A case that a judge failed on is
no case: it is counted as failed. Nothing here samples trajectories or writes files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arena_lightning.analysis.winrate import (
    MeanRate,
    PairedCase,
    WinRateReport,
    mean_win_rate,
    win_rate_report,
)
from arena_lightning.arena import Arena, ArenaResult, build_topology
from arena_lightning.arena.call_slots import gather_or_cancel
from arena_lightning.protocols import Judge
from arena_lightning.training.arena_metrics import arena_metrics
from arena_lightning.types import Group, Prompt, Trajectory

TIE_MARGIN = 1e-9
"""Points: how far apart two mean scores of one judge may be to be a tie; 0 but for rounding."""
CANDIDATE, BASELINE = 0, 1


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """What one judge found."""

    name: str
    cases: tuple[PairedCase, ...]
    """Scores are means over both orders; failed cases are not among them."""
    failures: Mapping[str, str]
    """Prompt id -> why there is no verdict."""
    rates: WinRateReport
    metrics: Mapping[str, float]
    """Flips, ties, failures, calls, tokens, USD: the arena's metrics of these matches."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One candidate against one baseline."""

    judges: tuple[JudgeReport, ...]
    mean: MeanRate

    def records(self) -> list[dict[str, Any]]:
        """Return every case of every judge as plain types, failed ones with their reason."""
        rows: list[dict[str, Any]] = []
        for report in self.judges:
            rows += [
                {
                    "judge": report.name,
                    "prompt_id": case.prompt_id,
                    "subtask": case.subtask,
                    "candidate": case.candidate,
                    "baseline": case.baseline,
                    "candidate_dimensions": dict(case.candidate_dimensions),
                    "baseline_dimensions": dict(case.baseline_dimensions),
                }
                for case in report.cases
            ]
            rows += [
                {"judge": report.name, "prompt_id": prompt_id, "error": reason}
                for prompt_id, reason in report.failures.items()
            ]
        return rows


async def compare_outputs(
    judges: Sequence[Judge],
    prompts: Sequence[Prompt],
    candidates: Sequence[Trajectory],
    baselines: Sequence[Trajectory],
    concurrency: int = 64,
    seed: int = 0,
) -> Comparison:
    """Have every judge compare each candidate with its baseline, in both orders.

    Args:
        judges: with names that differ.
        prompts: `[case]`, with ids that differ.
        candidates: `[case]`, one trajectory a prompt.
        baselines: `[case]`, likewise.
        concurrency: calls in flight, for each judge.
        seed: of the bootstrap.

    Raises:
        BudgetSpentError: a judge's budget is spent; verdicts that came are on its ledger.
    """
    groups = [
        Group(prompt, (candidate, baseline))
        for prompt, candidate, baseline in zip(prompts, candidates, baselines, strict=True)
    ]
    reports = await gather_or_cancel([_ask(judge, groups, concurrency, seed) for judge in judges])
    mean = mean_win_rate([report.cases for report in reports], tie_margin=TIE_MARGIN, seed=seed)
    return Comparison(tuple(reports), mean)


async def _ask(judge: Judge, groups: Sequence[Group], concurrency: int, seed: int) -> JudgeReport:
    arena = Arena(build_topology("round_robin"), judge, "both", concurrency, seed)
    results = await arena.run(groups)
    cases, failures = [], {}
    for group, result in zip(groups, results, strict=True):
        if result.num_failed:
            errors = [call.error for call in result.calls if call.error]
            failures[group.prompt.prompt_id] = errors[0] if errors else "no verdict"
        else:
            cases.append(_case(group.prompt, result))
    return JudgeReport(
        judge.name,
        tuple(cases),
        failures,
        win_rate_report(cases, tie_margin=TIE_MARGIN, seed=seed),
        arena_metrics(results),
    )


def _case(prompt: Prompt, result: ArenaResult) -> PairedCase:
    """Return the means over the calls; outputs that are the same were judged once, as both."""
    scores: dict[int, list[float]] = {CANDIDATE: [], BASELINE: []}
    dimensions: dict[int, list[Mapping[str, float]]] = {CANDIDATE: [], BASELINE: []}
    for call in result.calls:
        verdict = call.verdict
        assert verdict is not None, "a match with a failed call has failed"
        sides = [(verdict.score_first, verdict.dimensions_first)]
        sides += [(verdict.score_second, verdict.dimensions_second)]
        for shown, (score, found) in zip((call.first, call.second), sides, strict=True):
            owners = (CANDIDATE, BASELINE) if call.first == call.second else (shown,)
            for owner in owners:
                scores[owner].append(score)
                dimensions[owner].append(found)
    return PairedCase(
        prompt.prompt_id,
        _mean(scores[CANDIDATE]),
        _mean(scores[BASELINE]),
        prompt.subtask,
        _mean_by_name(dimensions[CANDIDATE]),
        _mean_by_name(dimensions[BASELINE]),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _mean_by_name(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = [name for name in found[0] if all(name in dimensions for dimensions in found)]
    return {name: _mean([dimensions[name] for dimensions in found]) for name in names}
