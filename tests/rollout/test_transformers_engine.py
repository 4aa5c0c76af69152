from pathlib import Path

import pytest
import torch

from arena_lightning.errors import ConfigError, RolloutError, WeightSyncError
from arena_lightning.rng import generator_for
from arena_lightning.rollout.engine import Completion, Request
from arena_lightning.rollout.transformers_engine import TransformersEngine
from tests.rollout.tiny_model import load_model, weights_of

STOP_IDS = tuple(range(290, 320))


def request_of(number: int, **changes: object) -> Request:
    draws = generator_for(0, "tests/prompts", number).integers(0, 250, 5 + 11 * (number % 4))
    values = {"max_tokens": 3 + 5 * (number % 5), "temperature": 1.0, "seed": number} | changes
    return Request(number, tuple(int(token) for token in draws), **values)


REQUESTS = [request_of(number) for number in range(12)]


def build(model_dir: Path, max_num_seqs: int = 5) -> TransformersEngine:
    engine = TransformersEngine(max_model_len=128, max_num_seqs=max_num_seqs, device="cpu")
    engine.start(model_dir, STOP_IDS, seed=0)
    return engine


def content(completions: list[Completion]) -> list[tuple[object, ...]]:
    return [(c.request_id, c.ids, c.logprobs, c.finish_reason) for c in completions]


def test_the_same_requests_give_the_same_bits(model_dir: Path):
    first, second = (content(build(model_dir).generate(REQUESTS)) for _ in range(2))
    assert first == second


def test_neighbours_change_nothing_but_rounding(model_dir: Path):
    together = build(model_dir).generate(REQUESTS)
    engine = build(model_dir)
    for request, completion in zip(REQUESTS, together, strict=True):
        (alone,) = engine.generate([request])
        assert (alone.ids, alone.finish_reason) == (completion.ids, completion.finish_reason)
        assert alone.logprobs == pytest.approx(completion.logprobs, abs=1e-4)


def test_equal_prompts_are_read_once_and_sampled_apart(model_dir: Path):
    engine = build(model_dir, max_num_seqs=8)
    prompt = REQUESTS[3].prompt_ids
    requests = [Request(n, prompt, 12, 1.0, n) for n in range(8)]
    rows: list[int] = []
    forward = engine._model.forward

    def counted(**inputs: torch.Tensor) -> object:
        rows.append(len(inputs["input_ids"]))
        return forward(**inputs)

    engine._model.forward = counted
    completions = engine.generate(requests)
    assert rows[0] == 1
    assert len({completion.ids for completion in completions}) > 4


@torch.no_grad()
def test_greedy_decoding_takes_the_models_own_best_token(model_dir: Path):
    requests = [request_of(n, temperature=0.0, max_tokens=10) for n in range(4)]
    model = load_model(model_dir)
    for request, completion in zip(requests, build(model_dir).generate(requests), strict=True):
        ids = list(request.prompt_ids)
        for token in completion.ids:
            assert int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax()) == token
            ids.append(token)


def test_a_sync_must_bring_every_weight_in_its_shape(model_dir: Path):
    engine = build(model_dir)
    weights = weights_of(load_model(model_dir))
    with pytest.raises(WeightSyncError, match=r"none for model\.norm\.weight \(1 missing\)"):
        engine.sync([w for w in weights if w[0] != "model.norm.weight"], 1)
    assert engine.version == -1
    with pytest.raises(WeightSyncError, match=r"got model\.norm\.weight \(3,\) where it has"):
        engine.sync([("model.norm.weight", torch.zeros(3))], 1)
    engine.sync(iter(weights), 1)
    assert engine.version == 1


def test_settings_are_checked_before_anything_is_loaded(model_dir: Path):
    with pytest.raises(ConfigError, match="dtype must be one of float32"):
        TransformersEngine(dtype="int4")
    with pytest.raises(ConfigError, match="max_num_seqs must be at least 1"):
        TransformersEngine(max_num_seqs=0)
    engine = TransformersEngine(max_model_len=64)
    engine.add(REQUESTS[0])
    with pytest.raises(RolloutError, match="must be started first"):
        engine.step()
