"""Does the engine hold the weights it claims to hold? Asked after each sync, at the engine's door.

A version number only says that somebody sent something. So the engine also samples a few tokens,
and their log-probabilities must be those that the trainer computes on its own weights: an engine
that ignored the sync, took half of it, or kept an old prefix cache is caught.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arena_lightning.errors import WeightSyncError
from arena_lightning.rng import seed_for
from arena_lightning.rollout.engine import Request, RolloutEngine

LogprobsOf = Callable[[tuple[int, ...], tuple[int, ...]], Sequence[float]]
"""(prompt ids, continuation ids) -> the trainer's log-probability of each continuation token."""


@dataclass(frozen=True, slots=True)
class CanaryReport:
    """How far engine and trainer are apart on the canary's tokens, in nats."""

    mean_abs_delta: float
    max_abs_delta: float
    num_tokens: int


def verify_sync(
    engine: RolloutEngine,
    version: int,
    prompts: Sequence[tuple[int, ...]],
    logprobs_of: LogprobsOf,
    tolerance: float = 1e-3,
    max_tokens: int = 16,
    seed: int = 0,
) -> CanaryReport:
    """Check an engine against the trainer after a sync.

    Args:
        engine: without work.
        version: what the engine must claim to hold.
        prompts: openings; long ones (some hundred tokens) also catch a stale prefix cache.
        logprobs_of: the trainer's log-probabilities, temperature 1.
        tolerance: largest mean |delta| in nats. Float32 on both sides agrees to about 1e-5; an
            engine in bfloat16 differs by about 0.04, so 0.1 is a sensible bound there.
        max_tokens: sampled from each prompt.
        seed: of the sampling.

    Raises:
        WeightSyncError: the version is another one, or the log-probabilities differ.
    """
    if engine.version != version:
        raise WeightSyncError(
            f"the engine must hold version {version} of the weights, got {engine.version}. "
            "Its sync() did not take them over."
        )
    requests = [
        Request(place, prompt, max_tokens, 1.0, seed_for(seed, "rollout/canary", place))
        for place, prompt in enumerate(prompts)
    ]
    deltas: list[float] = []
    for request, completion in zip(requests, engine.generate(requests), strict=True):
        expected = logprobs_of(request.prompt_ids, completion.ids)
        deltas += [
            abs(mine - float(theirs))
            for mine, theirs in zip(completion.logprobs, expected, strict=True)
        ]
    mean = math.fsum(deltas) / len(deltas)
    # NaN compares false, so ask for what must hold.
    if not mean <= tolerance:
        raise WeightSyncError(
            f"after a sync the engine's log-probabilities must be the trainer's within {tolerance} "
            f"on average, got a mean difference of {mean:.3g} over {len(deltas)} tokens (version "
            f"{version}). The engine did not take over the weights, or computes in another "
            "precision: then raise the tolerance."
        )
    return CanaryReport(mean, max(deltas), len(deltas))
