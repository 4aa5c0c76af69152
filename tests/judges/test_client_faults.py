"""The client against a server that misbehaves: every fault is retried, told and bounded."""

import asyncio
import time

import pytest

from arena_lightning.errors import JudgeError
from arena_lightning.judges.client import JudgeClient
from arena_lightning.judges.limits import Limits
from arena_lightning.judges.retry import RetryPolicy
from tests.judges.client_questions import (  # warm_litellm is a fixture
    IMPATIENT_LIMITS,
    MODEL,
    PRICE,
    QUICK_LIMITS,
    SCHEMA,
    client_of,
    error_of,
    question,
    run,
    warm_litellm,
)
from tests.judges.misbehaving_server import TRANSPORT_FAULTS, MisbehavingServer

pytestmark = pytest.mark.usefixtures(warm_litellm.__name__)


@pytest.mark.parametrize("fault", TRANSPORT_FAULTS)
def test_every_fault_of_transport_is_retried_and_counted(fault):
    with MisbehavingServer(script={0: fault, 1: fault}, hang_s=4.0) as server:
        limits = IMPATIENT_LIMITS if fault in ("timeout", "slow_drip") else QUICK_LIMITS
        client = client_of(server, prices={MODEL: PRICE}, max_tokens=7, limits=limits)
        reply = run(client.complete(question(), SCHEMA))
        clean = run(client.complete(question(), SCHEMA))
    assert server.met == {fault: 2, "": 2}
    assert reply.text == clean.text
    assert reply.usage.calls == 3
    assert sum(client.routes[0].faults.values()) == 2
    # A refusal is free; what may have been worked on is counted at its upper estimate; a reply
    # without a choice says itself what it took.
    extra_usd = reply.usage.cost_usd - clean.usage.cost_usd
    if fault in ("429", "500"):
        assert extra_usd == pytest.approx(0.0)
    elif fault == "empty_choices":
        assert extra_usd == pytest.approx(2 * clean.usage.cost_usd)
    else:
        assert extra_usd > 2 * (clean.usage.prompt_tokens + 2 * 7)


def test_a_fault_without_end_becomes_a_judge_error_that_knows_its_bill():
    with MisbehavingServer(fault_fraction=1.0, faults=["500"]) as server:
        client = client_of(server, retry=RetryPolicy(max_attempts=3, base_delay_s=0.001))
        error = error_of(client)
        assert server.num_requests == 3
    assert isinstance(error, JudgeError)
    assert "server, " in str(error)
    assert "after 3 calls" in str(error)
    assert error.usage.calls == 3
    assert error.usage.cost_usd == 0.0


def test_the_servers_wish_to_wait_is_honoured():
    with MisbehavingServer(script={0: "429"}, retry_after="0.4") as server:
        run(client_of(server).complete(question()))
        assert server.times_s[1] - server.times_s[0] >= 0.4


def test_a_storm_of_429s_cuts_the_concurrency_and_all_are_answered():
    with MisbehavingServer(script={0: "429"}, delay_s=0.01) as server:
        client = client_of(server, limits=Limits(max_concurrency=16))

        async def main():
            return await asyncio.gather(
                *[client.complete(question(f"q{index}")) for index in range(40)]
            )

        assert len(run(main())) == 40
        assert server.most_in_flight <= 16
    assert client.routes[0].concurrency.num_cuts >= 1
    assert client.routes[0].faults == {"rate_limited": 40}


@pytest.mark.parametrize("status", ["400", "403", "422"])
def test_a_refused_question_is_asked_once_and_fails_alone(status):
    with MisbehavingServer(fault_fraction=1.0, faults=[status]) as server:
        error = error_of(client_of(server))
        assert server.num_requests == 1
    assert isinstance(error, JudgeError)
    assert error.usage.calls == 1


def test_a_deadline_ends_a_question_with_what_it_was_billed():
    with MisbehavingServer(fault_fraction=1.0, faults=["timeout"]) as server:
        limits = Limits(attempt_timeout_s=0.2, call_deadline_s=0.5)
        started_s = time.monotonic()
        error = error_of(client_of(server, limits=limits))
        assert time.monotonic() - started_s < 5.0
    assert isinstance(error, JudgeError)
    assert "longer than its deadline" in str(error)
    assert error.usage.calls >= 2
    assert error.usage.prompt_tokens > 0


def test_a_step_deadline_ends_what_is_open_and_the_next_step_starts_afresh():
    with MisbehavingServer(script={0: "timeout"}, hang_s=60.0) as server:
        client = client_of(server, limits=Limits(step_deadline_s=3.0))
        started_s = time.monotonic()
        assert "longer than its deadline" in str(error_of(client))
        assert "longer than its deadline" in str(error_of(client))
        assert 3.0 <= time.monotonic() - started_s < 20.0
        assert server.num_requests == 1
        client.start_step()
        run(client.complete(question()))
        assert server.num_requests == 2


def test_another_model_answers_when_the_first_gives_up():
    with MisbehavingServer(script={0: "500", 1: "500"}) as server:
        client = client_of(
            server,
            retry=RetryPolicy(max_attempts=2, base_delay_s=0.001),
            fallback_models=["hosted_vllm/spare"],
        )
        reply = run(client.complete(question()))
        assert server.models == {"judge": 2, "spare": 1}
    assert reply.model == "hosted_vllm/spare"
    assert reply.usage.calls == 3


def test_a_server_that_dies_and_comes_back_loses_no_question():
    with MisbehavingServer(delay_s=0.02) as server:
        client = client_of(
            server,
            limits=Limits(
                max_concurrency=4, breaker_failures=4, breaker_pause_s=0.05, call_deadline_s=30
            ),
            retry=RetryPolicy(max_attempts=20, base_delay_s=0.01, max_delay_s=0.05),
        )

        async def main():
            asking = asyncio.gather(
                *[client.complete(question(f"q{index}"), SCHEMA) for index in range(60)]
            )
            await asyncio.sleep(0.1)
            await asyncio.to_thread(server.die)
            await asyncio.sleep(0.5)
            await asyncio.to_thread(server.come_back)
            return await asking

        replies = run(main())
        assert len(replies) == 60
        assert len(server.answered) == 60
    assert client.routes[0].breaker.num_opened >= 1


def test_a_broken_model_is_left_alone_while_another_answers(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-key")
    with MisbehavingServer() as server:
        dead = MisbehavingServer()
        with dead:
            url = dead.url
        client = JudgeClient(
            "openai/dead",
            api_base=url,
            limits=Limits(breaker_failures=2, breaker_pause_s=60.0),
            retry=RetryPolicy(max_attempts=2, base_delay_s=0.001),
            fallback_models=[MODEL],
            structured_output="never",
        )
        # `api_base` is the first model's; the spare one has another provider, and its own server.
        monkeypatch.setenv("HOSTED_VLLM_API_BASE", server.url)

        async def main():
            return [await client.complete(question(f"q{index}")) for index in range(5)]

        replies = run(main())
    assert [reply.model for reply in replies] == [MODEL] * 5
    # Two attempts opened the breaker; nothing reached the server, so nothing is billed for them.
    assert client.routes[0].faults == {"unsent": 2}
    assert replies[0].usage.calls == 1
