"""Every engine against the contract of `rollout/engine.py`; the real ones also against their model.

vLLM starts once: all its tests run together, and the last one leaves it without usable weights.
"""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from arena_lightning.errors import RolloutError, WeightSyncError
from arena_lightning.rng import generator_for
from arena_lightning.rollout.canary import verify_sync
from arena_lightning.rollout.engine import Request, RolloutEngine
from arena_lightning.rollout.scripted_engine import ScriptedEngine
from arena_lightning.rollout.transformers_engine import TransformersEngine
from arena_lightning.rollout.vllm_engine import VLLMEngine
from tests.rollout.tiny_model import (
    load_model,
    logprobs_of,
    perturb,
    weights_of,
    write_model,
    write_tokenizer,
)

pytestmark = pytest.mark.engine
MAX_MODEL_LEN = 256
STOP_IDS = tuple(range(300, 320))


def prompt_of(length: int, number: int = 0) -> tuple[int, ...]:
    draws = generator_for(0, "tests/prompts", length, number).integers(0, 250, length)
    return tuple(int(token) for token in draws)


def request_of(number: int, length: int = 20, **changes: object) -> Request:
    values = {"max_tokens": 12, "temperature": 0.8, "seed": 100 + number} | changes
    return Request(number, prompt_of(length, number), **values)


REQUESTS = [request_of(number, 20 + 7 * number) for number in range(6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_tokenizer(folder)
    write_model(folder)
    return folder


def script(request: Request) -> tuple[int, ...]:
    """Draw from the seed at a temperature, like a model that knows nothing; greedy is constant."""
    if request.temperature == 0:
        return (7,) * 400
    draws = generator_for(request.seed, "tests/script").integers(0, 320, 400)
    ids = [int(token) for token in draws]
    stop = next(place for place, token in enumerate(ids) if token in STOP_IDS)
    return tuple(ids[: stop + 1])


def build(name: str) -> RolloutEngine:
    if name == "scripted":
        return ScriptedEngine(script, MAX_MODEL_LEN)
    if name == "transformers":
        return TransformersEngine(MAX_MODEL_LEN, max_num_seqs=4, device="cpu")
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vllm is not installed")
    return VLLMEngine(MAX_MODEL_LEN, max_num_seqs=4, kv_cache_gib=0.25)


@pytest.fixture(scope="module", params=["scripted", "transformers", "vllm"])
def engine(request: pytest.FixtureRequest, folder: Path) -> Iterator[RolloutEngine]:
    engine = build(request.param)
    engine.check()
    engine.start(folder, STOP_IDS, seed=0)
    yield engine
    engine.close()


@pytest.fixture
def model_engine(engine: RolloutEngine, folder: Path) -> RolloutEngine:
    """An engine with a model behind it, at the folder's weights."""
    if isinstance(engine, ScriptedEngine):
        pytest.skip("no model behind it")
    engine.sync(weights_of(load_model(folder)), 1)
    return engine


def test_generate_answers_in_request_order(engine: RolloutEngine):
    order = [REQUESTS[place] for place in (3, 0, 5, 1, 4, 2)]
    assert [c.request_id for c in engine.generate(order)] == [3, 0, 5, 1, 4, 2]
    assert engine.num_unfinished == 0


def test_every_token_has_a_logprob_and_the_engines_version(engine: RolloutEngine):
    for completion in engine.generate(REQUESTS):
        assert 0 < len(completion.ids) == len(completion.logprobs) <= 12
        assert all(logprob <= 0 for logprob in completion.logprobs)
        assert completion.policy_version == engine.version


def test_a_stop_token_is_kept_and_is_the_only_one(engine: RolloutEngine):
    requests = [request_of(n, temperature=2.0, max_tokens=200) for n in range(6)]
    completions = engine.generate(requests)
    assert any(c.finish_reason == "stop" for c in completions)
    for completion in completions:
        *body, last = completion.ids
        assert not set(body) & set(STOP_IDS)
        assert (last in STOP_IDS) == (completion.finish_reason == "stop")


def test_limits_end_a_turn_with_their_own_reason(engine: RolloutEngine):
    greedy = {"temperature": 0.0, "max_tokens": 9}
    (long, full) = engine.generate(
        [request_of(0, **greedy), request_of(1, MAX_MODEL_LEN - 4, **greedy)]
    )
    if long.finish_reason != "stop":
        assert (long.finish_reason, len(long.ids)) == ("length", 9)
    if full.finish_reason != "stop":
        assert (full.finish_reason, len(full.ids)) == ("context", 4)
    assert {long.finish_reason, full.finish_reason} != {"stop"}


def test_a_prompt_without_room_to_answer_is_refused(engine: RolloutEngine):
    for length in (0, MAX_MODEL_LEN):
        with pytest.raises(RolloutError, match="leave room to answer"):
            engine.add(request_of(0, length))
    assert engine.num_unfinished == 0


def test_requests_added_while_others_run_finish_too(engine: RolloutEngine):
    engine.add(REQUESTS[0])
    done = engine.step()
    for request in REQUESTS[1:]:
        engine.add(request)
    while engine.num_unfinished:
        done += engine.step()
    assert sorted(completion.request_id for completion in done) == list(range(6))
    assert engine.step() == []


def test_an_aborted_engine_is_idle_and_takes_the_same_requests_again(engine: RolloutEngine):
    for request in REQUESTS:
        engine.add(request)
    engine.step()
    engine.abort_all()
    assert engine.num_unfinished == 0
    assert len(engine.generate(REQUESTS)) == 6


def test_a_busy_engine_refuses_a_sync_and_a_second_batch(engine: RolloutEngine):
    engine.add(REQUESTS[0])
    with pytest.raises(RolloutError, match="sync needs an engine without work"):
        engine.sync([], 9)
    with pytest.raises(RolloutError, match="generate needs an engine without work"):
        engine.generate(REQUESTS)
    engine.abort_all()
    assert engine.version != 9


def test_the_seed_decides_what_is_sampled(engine: RolloutEngine):
    def sample(seed: int, temperature: float = 2.0) -> tuple[int, ...]:
        return engine.generate([request_of(0, seed=seed, temperature=temperature)])[0].ids

    assert sample(1) == sample(1)
    assert sample(1) != sample(2)
    assert sample(1, temperature=0.0) == sample(2, temperature=0.0)


def test_counters_say_what_was_done(engine: RolloutEngine):
    before = (engine.stats.requests, engine.stats.prompt_tokens, engine.stats.generated_tokens)
    busy_s = engine.stats.busy_s
    completions = engine.generate(REQUESTS)
    assert engine.stats.requests - before[0] == 6
    assert engine.stats.prompt_tokens - before[1] == sum(len(r.prompt_ids) for r in REQUESTS)
    assert engine.stats.generated_tokens - before[2] == sum(len(c.ids) for c in completions)
    assert engine.stats.busy_s > busy_s


def mean_delta(engine: RolloutEngine, model: torch.nn.Module) -> float:
    deltas = [
        abs(mine - theirs)
        for request, completion in zip(REQUESTS, engine.generate(REQUESTS), strict=True)
        for mine, theirs in zip(
            completion.logprobs,
            logprobs_of(model, request.prompt_ids, completion.ids, request.temperature),
            strict=True,
        )
    ]
    return sum(deltas) / len(deltas)


def test_logprobs_are_the_models_at_the_temperature(model_engine: RolloutEngine, folder: Path):
    model = load_model(folder)
    assert mean_delta(model_engine, model) < 1e-4
    perturb(model, 0.1)
    assert mean_delta(model_engine, model) > 1e-2, "the comparison can fail"


def test_greedy_logprobs_are_those_at_temperature_one(model_engine: RolloutEngine, folder: Path):
    request = request_of(0, temperature=0.0)
    (completion,) = model_engine.generate([request])
    expected = logprobs_of(load_model(folder), request.prompt_ids, completion.ids)
    assert completion.logprobs == pytest.approx(expected, abs=1e-4)


def test_a_sync_changes_what_is_sampled_and_the_canary_agrees(
    model_engine: RolloutEngine, folder: Path
):
    # 200 tokens fill blocks of the prefix cache, so that a stale one would show.
    requests = [request_of(n, 200, max_tokens=20) for n in range(3)]
    before = [completion.ids for completion in model_engine.generate(requests)]
    moved = load_model(folder)
    perturb(moved, 0.3)
    model_engine.sync(weights_of(moved), 2)
    after = model_engine.generate(requests)
    assert [completion.ids for completion in after] != before
    assert {completion.policy_version for completion in after} == {2}
    report = verify_sync(
        model_engine,
        2,
        [request.prompt_ids for request in requests],
        lambda prompt, ids: logprobs_of(moved, prompt, ids),
        tolerance=1e-4,
    )
    assert report.num_tokens > 3


def test_the_canary_sees_a_sync_of_all_weights_but_the_embedding(
    model_engine: RolloutEngine, folder: Path
):
    moved = load_model(folder)
    perturb(moved, 0.02)
    halfway = load_model(folder)
    states = dict(moved.named_parameters())
    for name, parameter in halfway.named_parameters():
        if "embed" not in name:
            parameter.data.copy_(states[name])
    model_engine.sync(weights_of(halfway), 2)
    with pytest.raises(WeightSyncError, match="must be the trainer's"):
        verify_sync(model_engine, 2, [prompt_of(40)], lambda p, ids: logprobs_of(moved, p, ids))


def test_weights_of_another_model_are_refused_and_leave_no_version(model_engine: RolloutEngine):
    with pytest.raises(WeightSyncError):
        model_engine.sync([("model.layers.9.mlp.up_proj.weight", torch.zeros(128, 64))], 3)
    assert model_engine.version == -1
