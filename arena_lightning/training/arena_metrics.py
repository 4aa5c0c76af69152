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
    names = sorted({name for r in results for name in r.dimension_means})
    for name in names:
        values = [r.dimension_means[name] for r in results if name in r.dimension_means]
        metrics[f"arena/dimension_{name}"] = float(np.mean(values))
    return metrics
