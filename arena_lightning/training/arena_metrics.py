"""A step's numbers on judging: what was decided, tied, flipped, failed, and at what cost."""

from collections.abc import Sequence

import numpy as np

from arena_lightning.arena import ArenaResult


def arena_metrics(results: Sequence[ArenaResult]) -> dict[str, float]:
    """Return the step's judging metrics; fractions are of matches unless named otherwise."""
    matches = max(1, sum(r.num_matches for r in results))
    both = max(1, sum(r.num_both_orders for r in results))
    spreads = [
        float(np.nanstd(r.standings.scores))
        for r in results
        if np.isfinite(r.standings.scores).any()
    ]
    scores = [s for r in results for s in r.standings.scores if np.isfinite(s)]
    metrics = {
        "arena/judge_calls": float(sum(r.usage.calls for r in results)),
        "arena/matches": float(sum(r.num_matches for r in results)),
        "arena/tie_fraction": sum(r.num_ties for r in results) / matches,
        "arena/failed_fraction": sum(r.num_failed for r in results) / matches,
        "arena/flip_fraction": sum(r.num_flips for r in results) / both,
        "arena/dropped_groups": float(sum(r.dropped for r in results)),
        "arena/undecided_groups": float(sum(not r.decided for r in results)),
        "arena/score_mean": float(np.mean(scores)) if scores else float("nan"),
        "arena/group_score_spread": float(np.mean(spreads)) if spreads else float("nan"),
        "arena/judge_usd": float(sum(r.usage.cost_usd or 0.0 for r in results)),
        "arena/unpriced_groups": float(sum(r.usage.cost_usd is None for r in results)),
        "arena/judge_prompt_tokens": float(sum(r.usage.prompt_tokens for r in results)),
        "arena/judge_completion_tokens": float(sum(r.usage.completion_tokens for r in results)),
        "arena/cached_calls": float(
            sum(call.usage.cached for result in results for call in result.calls)
        ),
    }
    metrics |= _order_effects(results)
    names = sorted({name for r in results for name in r.dimension_means})
    for name in names:
        values = [r.dimension_means[name] for r in results if name in r.dimension_means]
        metrics[f"arena/dimension_{name}"] = float(np.mean(values))
    return metrics


def _order_effects(results: Sequence[ArenaResult]) -> dict[str, float]:
    """Return how far a judge's scores move between the two orders of a pair; {} without pairs.

    `arena/position_bias`: how many points being shown first adds to the lead, on average over the
    orders. `arena/judge_noise`: standard deviation of one score, points: a trajectory's two scores
    against the same opponent differ by the bias and by sqrt(2) times it.
    """
    leads, moves = [], []
    for result in results:
        scores: dict[tuple[int, int], tuple[float, float]] = {}
        for call in result.calls:
            if call.verdict is not None and call.first != call.second:
                pair = (call.verdict.score_first, call.verdict.score_second)
                scores[call.first, call.second] = pair
        for (first, second), (one, other) in scores.items():
            if first < second and (second, first) in scores:
                other_again, one_again = scores[second, first]
                leads.append((one - other + other_again - one_again) / 2)
                # Each shown first minus the same shown second: the bias is in both alike.
                moves += [one - one_again, other_again - other]
    if len(moves) < 2:
        return {}
    return {
        "arena/position_bias": float(np.mean(leads)),
        "arena/judge_noise": float(np.std(moves)) / 2**0.5,
    }
