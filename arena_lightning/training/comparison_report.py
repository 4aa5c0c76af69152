"""A comparison as metrics for loggers, as one record for machines, and as lines for people.

Everything shown comes from `comparing.Comparison`; a rate without a decided case is None and is
said to be undecided, never shown as a number.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from arena_lightning.analysis.winrate import MeanRate, WinRate, report_metrics
from arena_lightning.training.comparing import Comparison, JudgeReport
from arena_lightning.types import Trajectory


def comparison_metrics(report: Comparison, prefix: str) -> dict[str, float]:
    """Return metrics of one judge under `prefix`; of several, their mean there and each below."""
    if len(report.judges) == 1:
        metrics = report_metrics(report.judges[0].rates, prefix)
    else:
        metrics = _finite(
            {
                f"{prefix}/win_rate": report.mean.win_rate,
                f"{prefix}/win_rate_low": report.mean.low,
                f"{prefix}/win_rate_high": report.mean.high,
            }
        )
        for number, judge in enumerate(report.judges):
            metrics |= report_metrics(judge.rates, f"{prefix}/judge_{number}")
    failed = sum(len(judge.failures) for judge in report.judges)
    return metrics | {f"{prefix}/failed_cases": float(failed)}


def behaviour_metrics(
    trajectories: Sequence[Trajectory], report: Comparison, prefix: str
) -> dict[str, float]:
    """Return what the candidate does: valid answers, tool use, length, mean score (judge 0)."""
    calls = [m for t in trajectories for m in t.messages if m.role == "tool"]
    count = len(trajectories)
    scores = [case.candidate for case in report.judges[0].cases]
    metrics = {
        f"{prefix}/valid_fraction": valid_fraction(trajectories),
        f"{prefix}/tool_error_fraction": sum(m.is_error for m in calls) / max(1, len(calls)),
        f"{prefix}/tool_calls_mean": len(calls) / count,
        f"{prefix}/policy_tokens_mean": sum(t.num_policy_tokens for t in trajectories) / count,
    }
    if scores:
        metrics[f"{prefix}/score_mean"] = sum(scores) / len(scores)
    return metrics


def valid_fraction(trajectories: Sequence[Trajectory]) -> float:
    """Return the share of trajectories that end with an answer, 0-1."""
    return sum(bool(t.answer) for t in trajectories) / len(trajectories)


def evaluation_line(
    step: int, metrics: Mapping[str, float], reports: Mapping[str, Comparison]
) -> str:
    """Return one line on a run's evaluation."""
    judges = ", ".join(judge.name for judge in next(iter(reports.values())).judges)
    rates = [
        f"win rate vs {name.replace('_', ' ')} {_shown(report.mean)}"
        for name, report in reports.items()
    ]
    score = metrics.get("evaluation/score_mean")
    rates += [] if score is None else [f"mean score {score:.2f}"]
    failed = sum(len(judge.failures) for report in reports.values() for judge in report.judges)
    rates += [f"{failed} cases without a verdict"] if failed else []
    return (
        f"evaluation at step {step} ({judges}): {', '.join(rates)}, "
        f"answered {metrics['evaluation/valid_fraction']:.0%}, "
        f"tool errors {metrics['evaluation/tool_error_fraction']:.1%}"
    )


def comparison_record(
    report: Comparison,
    baseline: str,
    candidates: Sequence[Trajectory],
    baselines: Sequence[Trajectory],
) -> dict[str, Any]:
    """Return the whole report as plain types; rates are None where nothing is decided."""
    return {
        "baseline": baseline,
        "prompts": len(candidates),
        "candidate_valid_fraction": valid_fraction(candidates),
        "baseline_valid_fraction": valid_fraction(baselines),
        "mean": _rate_record(report.mean) | {"judges": report.mean.num_judges},
        "judges": [_judge_record(judge) for judge in report.judges],
    }


def _judge_record(judge: JudgeReport) -> dict[str, Any]:
    rates = judge.rates
    return {
        "name": judge.name,
        "overall": _counts_record(rates.overall),
        "by_subtask": {name: _counts_record(rate) for name, rate in rates.by_subtask.items()},
        "by_dimension": {name: _counts_record(rate) for name, rate in rates.by_dimension.items()},
        "mean_difference": _or_none(rates.mean_difference),
        "failed": len(judge.failures),
        "metrics": {name: _or_none(value) for name, value in judge.metrics.items()},
    }


def _rate_record(rate: WinRate | MeanRate) -> dict[str, Any]:
    return {
        "win_rate": _or_none(rate.win_rate),
        "low": _or_none(rate.low),
        "high": _or_none(rate.high),
    }


def _counts_record(rate: WinRate) -> dict[str, Any]:
    counts = {"wins": rate.wins, "ties": rate.ties, "losses": rate.losses}
    return _rate_record(rate) | counts | {"interval": rate.interval}


def comparison_lines(record: Mapping[str, Any]) -> list[str]:
    """Return `comparison_record` as lines for people: overall, subtasks and dimensions by judge."""
    lines = [
        f"{record['prompts']} prompts against {record['baseline']}; answered: candidate "
        f"{record['candidate_valid_fraction']:.0%}, baseline "
        f"{record['baseline_valid_fraction']:.0%}",
    ]
    for judge in record["judges"]:
        metrics = judge["metrics"]
        lines += [
            f"judge {judge['name']}",
            f"  {'win rate':<28} {_counts_shown(judge['overall'])}",
            f"  {'mean difference':<28} {_points_shown(judge['mean_difference'])}",
            f"  {'':<28} {judge['failed']} cases failed, "
            f"{metrics['arena/flip_fraction'] or 0.0:.0%} of verdicts flip with the order, "
            f"{metrics['arena/judge_calls']:.0f} calls",
        ]
        for title in ("subtask", "dimension"):
            rates = judge[f"by_{title}"].items()
            lines += [f"  {title + ' ' + name:<28} {_counts_shown(rate)}" for name, rate in rates]
    if len(record["judges"]) > 1:
        lines.append(f"mean of {len(record['judges'])} judges: {_shown_record(record['mean'])}")
    return lines


def _counts_shown(rate: Mapping[str, Any]) -> str:
    decided = rate["wins"] + rate["losses"]
    return f"{_shown_record(rate):<26} of {decided} decided, {rate['ties']} tied"


def _points_shown(points: float | None) -> str:
    return "no case" if points is None else f"{points:+.2f} points"


def _shown_record(rate: Mapping[str, Any]) -> str:
    if rate["win_rate"] is None:
        return "undecided"
    return f"{rate['win_rate']:.1%} [{rate['low']:.1%}, {rate['high']:.1%}]"


def _shown(rate: MeanRate) -> str:
    return _shown_record(_rate_record(rate))


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _finite(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if math.isfinite(value)}
