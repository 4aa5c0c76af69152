"""The real engines on a tiny model: their numbers are the model's, and a sync changes them."""

import importlib.util

import pytest
import torch

from arena_lightning.errors import WeightSyncError
from arena_lightning.rng import generator_for
from arena_lightning.rollout.canary import verify_sync
from arena_lightning.rollout.engine import Request
from arena_lightning.rollout.transformers_engine import TransformersEngine
from arena_lightning.rollout.vllm_engine import VLLMEngine
from tests.rollout.tiny_model import load_model, logprobs_of

pytestmark = [
    pytest.mark.engine,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
PROMPTS = [
    tuple(int(i) for i in generator_for(0, "tests/prompts", n).integers(0, 250, 20 + 7 * n))
    for n in range(6)
]
REQUESTS = [Request(n, prompt, 12, 0.8, 100 + n) for n, prompt in enumerate(PROMPTS)]


def build(name, model_dir):
    if name == "vllm":
        if importlib.util.find_spec("vllm") is None:
            pytest.skip("vllm is not installed")
        engine = VLLMEngine(max_model_len=256, max_num_seqs=4, kv_cache_gib=0.25)
    else:
        engine = TransformersEngine(max_model_len=256, max_num_seqs=4, device="cpu")
    engine.start(model_dir, stop_ids=[257], seed=0)
    return engine


@pytest.fixture(scope="module", params=["transformers", "vllm"])
def engine(request, model_dir):
    engine = build(request.param, model_dir)
    yield engine
    engine.close()


def mean_delta(engine, model):
    deltas = []
    for request, done in zip(REQUESTS, engine.generate(REQUESTS), strict=True):
        expected = logprobs_of(model, request.prompt_ids, done.ids, temperature=0.8)
        deltas += [abs(a - b) for a, b in zip(done.logprobs, expected, strict=True)]
    return sum(deltas) / len(deltas)


def changed(model):
    """Return a copy of the model with visibly other weights."""
    other = type(model)(model.config)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for mine, theirs in zip(other.parameters(), model.parameters(), strict=True):
            mine.copy_(theirs + 0.1 * torch.randn(theirs.shape, generator=generator))
    return other.eval()


def weights_of(model):
    return [(n, p.detach()) for n, p in model.named_parameters() if n != "lm_head.weight"]


def test_sampling_logprobs_are_the_models_own(engine, model_dir):
    engine.sync(weights_of(load_model(model_dir)), 1)
    assert mean_delta(engine, load_model(model_dir)) < 1e-3


def test_a_sync_changes_what_is_sampled_and_the_canary_agrees(engine, model_dir):
    original, other = load_model(model_dir), changed(load_model(model_dir))
    engine.sync(weights_of(original), 1)
    before = [done.ids for done in engine.generate(REQUESTS)]
    engine.sync(weights_of(other), 2)
    after = engine.generate(REQUESTS)
    assert [done.ids for done in after] != before
    assert {done.policy_version for done in after} == {2}
    assert mean_delta(engine, other) < 1e-3
    verify_sync(engine, 2, PROMPTS[:2], lambda p, ids: logprobs_of(other, p, ids))


def test_the_canary_catches_an_engine_that_ignores_its_sync(engine, model_dir):
    original, other = load_model(model_dir), changed(load_model(model_dir))
    engine.sync(weights_of(original), 1)
    with pytest.raises(WeightSyncError, match="must be the trainer's"):
        verify_sync(engine, 1, PROMPTS[:2], lambda p, ids: logprobs_of(other, p, ids))
    with pytest.raises(WeightSyncError, match="must hold version 2 of the weights, got 1"):
        verify_sync(engine, 2, PROMPTS[:2], lambda p, ids: logprobs_of(original, p, ids))


def test_requests_added_while_others_run_finish_too(engine, model_dir):
    engine.sync(weights_of(load_model(model_dir)), 1)
    engine.add(REQUESTS[0])
    done = list(engine.step())
    for request in REQUESTS[1:]:
        engine.add(request)
    while engine.num_unfinished:
        done += engine.step()
    assert sorted(completion.request_id for completion in done) == list(range(6))
    assert all(0 < len(c.ids) == len(c.logprobs) <= 12 for c in done)


def test_the_transformers_engine_repeats_itself_exactly(model_dir):
    first, second = (build("transformers", model_dir).generate(REQUESTS) for _ in range(2))
    assert [(c.ids, c.logprobs) for c in first] == [(c.ids, c.logprobs) for c in second]
