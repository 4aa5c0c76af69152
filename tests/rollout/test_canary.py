import math

import pytest

from arena_lightning.errors import WeightSyncError
from arena_lightning.rollout.canary import verify_sync
from arena_lightning.rollout.scripted_engine import SCRIPTED_LOGPROB, ScriptedEngine

PROMPTS = [(1, 2, 3), (4, 5)]


class DeafEngine(ScriptedEngine):
    """Claims every version and takes over nothing."""

    def sync(self, named_tensors, version):
        self.version = version


def engine_at(version: int) -> ScriptedEngine:
    engine = DeafEngine(lambda request: (9, 8, 7))
    engine.sync([], version)
    return engine


def test_agreement_is_reported_in_nats():
    def trainer(prompt, ids):
        return [SCRIPTED_LOGPROB + (0.004 if len(prompt) == 2 else 0.0)] * len(ids)

    report = verify_sync(engine_at(3), 3, PROMPTS, trainer, tolerance=0.01)
    assert report.num_tokens == 6
    assert report.mean_abs_delta == pytest.approx(0.002)
    assert report.max_abs_delta == pytest.approx(0.004)


def test_an_engine_that_ignores_its_sync_is_caught():
    def moved(prompt, ids):
        return [SCRIPTED_LOGPROB - 0.02] * len(ids)

    with pytest.raises(WeightSyncError, match=r"mean difference of 0\.02 over 6 tokens"):
        verify_sync(engine_at(3), 3, PROMPTS, moved, tolerance=0.01)


def test_nan_is_no_agreement():
    with pytest.raises(WeightSyncError, match="mean difference of nan"):
        verify_sync(engine_at(3), 3, PROMPTS, lambda prompt, ids: [math.nan] * len(ids))


def test_another_version_is_caught_before_anything_is_sampled():
    engine = engine_at(2)
    with pytest.raises(WeightSyncError, match="must hold version 3 of the weights, got 2"):
        verify_sync(engine, 3, PROMPTS, lambda prompt, ids: [SCRIPTED_LOGPROB] * len(ids))
    assert engine.stats.requests == 0
