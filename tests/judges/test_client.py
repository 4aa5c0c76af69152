"""The client against a server that misbehaves: every fault is retried, told, billed and bounded."""

import asyncio
import json
import logging
import time
import traceback

import pytest

from arena_lightning.errors import ConfigError, JudgeError
from arena_lightning.judges.budget import Budget, BudgetSpentError
from arena_lightning.judges.client import JudgeClient
from arena_lightning.judges.limits import Limits
from arena_lightning.judges.pricing import Price
from arena_lightning.judges.retry import RetryPolicy
from tests.judges.misbehaving_server import TRANSPORT_FAULTS, MisbehavingServer

MODEL = "hosted_vllm/judge"
SCHEMA = {
    "type": "object",
    "properties": {"first": {"type": "integer"}, "second": {"type": "integer"}},
    "required": ["first", "second"],
    "additionalProperties": False,
}
QUICK_RETRY = RetryPolicy(base_delay_s=0.001, max_delay_s=0.002)
QUICK_LIMITS = Limits(attempt_timeout_s=20.0, breaker_pause_s=0.05, breaker_max_pause_s=0.1)
IMPATIENT_LIMITS = Limits(attempt_timeout_s=1.5)
PRICE = Price(prompt_usd_per_million=1e6, completion_usd_per_million=2e6)  # USD 1 and 2 a token


@pytest.fixture(scope="module", autouse=True)
def _warm_litellm():
    """Let it load what it loads with its first call, which takes seconds."""
    with MisbehavingServer() as server:
        run(JudgeClient(MODEL, api_base=server.url).complete(question()))


def question(text="Which is better?"):
    return [{"role": "system", "content": "You judge."}, {"role": "user", "content": text}]


def client_of(server, **changes):
    settings = {"api_base": server.url, "limits": QUICK_LIMITS, "retry": QUICK_RETRY}
    return JudgeClient(MODEL, **(settings | changes))


def run(coroutine, timeout_s=60):
    return asyncio.run(asyncio.wait_for(coroutine, timeout=timeout_s))


def error_of(client, text="Which is better?"):
    """Return what a question raises."""

    async def main():
        with pytest.raises(Exception) as caught:
            await client.complete(question(text), SCHEMA)
        return caught.value

    return run(main())


def test_a_reply_brings_text_model_and_usage():
    with MisbehavingServer(raw_reply="one two three") as server:
        client = client_of(server, prices={MODEL: PRICE})
        reply = run(client.complete(question("a b c d")))
    assert (reply.text, reply.model, reply.finish_reason) == ("one two three", MODEL, "stop")
    # The server counts words: 2 + 4 of the prompt, 3 of the reply; 6 * 1 + 3 * 2 USD.
    usage = reply.usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (1, 6, 3)
    assert usage.cost_usd == pytest.approx(12.0)
    assert usage.latency_s > 0
    assert client.latencies_s == [usage.latency_s]


def test_the_schema_is_sent_where_the_model_takes_it_and_never_when_told_so():
    with MisbehavingServer() as server:
        reply = run(client_of(server).complete(question(), SCHEMA))
        assert set(json.loads(reply.text)) == {"first", "second"}
        run(client_of(server, structured_output="never").complete(question(), SCHEMA))
        assert server.bodies[0]["response_format"]["json_schema"]["schema"] == SCHEMA
        assert "response_format" not in server.bodies[1]
        assert server.bodies[0]["temperature"] == 0.0
        assert server.bodies[0]["max_tokens"] == 1024


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


@pytest.mark.parametrize("status", ["401", "404"])
def test_a_wrong_key_or_model_stops_the_run_at_once(status):
    with MisbehavingServer(fault_fraction=1.0, faults=[status]) as server:
        error = error_of(client_of(server, fallback_models=["hosted_vllm/other"]))
        assert server.num_requests == 1
    assert isinstance(error, ConfigError)
    assert f"HTTP {status}" in str(error)


def test_a_missing_key_stops_the_run_at_once(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with MisbehavingServer() as server:
        error = error_of(JudgeClient("openai/judge", api_base=server.url))
        assert server.num_requests == 0
    assert isinstance(error, ConfigError)
    assert "Missing credentials" in str(error)


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


def test_a_budget_of_calls_holds_at_the_server_whatever_goes_wrong():
    with MisbehavingServer(fault_fraction=0.5, faults=["500", "429", "reset"]) as server:
        budget = Budget(max_calls=30)
        client = client_of(server, budget=budget)

        async def main():
            return await asyncio.gather(
                *[client.complete(question(f"q{index}")) for index in range(40)],
                return_exceptions=True,
            )

        results = run(main())
        assert server.num_requests == budget.spent.calls == 30
    assert any(isinstance(result, BudgetSpentError) for result in results)


def test_a_spent_budget_goes_on_with_the_cheaper_judge_when_told_so():
    with MisbehavingServer() as server:
        cheaper = JudgeClient("hosted_vllm/small", api_base=server.url)
        budget = Budget(max_calls=2, when_spent="cheaper_model")
        client = client_of(server, budget=budget, cheaper=cheaper)

        async def main():
            return await asyncio.gather(
                *[client.complete(question(f"q{index}")) for index in range(6)]
            )

        replies = run(main())
        assert server.models == {"judge": 2, "small": 4}
    assert sorted(reply.model for reply in replies) == [MODEL] * 2 + ["hosted_vllm/small"] * 4


def test_tokens_and_usd_are_settled_by_what_a_reply_says():
    with MisbehavingServer(raw_reply="one two three") as server:
        budget = Budget(max_usd=1e6)
        client = client_of(server, budget=budget, prices={MODEL: PRICE})
        run(client.complete(question("a b c d")))
    assert budget.spent.tokens == 9
    assert budget.spent.cost_usd == pytest.approx(12.0)


def test_a_cancelled_call_is_booked_and_frees_its_slot():
    with MisbehavingServer(delay_s=5.0) as server:
        budget = Budget(max_calls=10)
        client = client_of(server, budget=budget)

        async def main():
            task = asyncio.ensure_future(client.complete(question()))
            while not server.num_requests:
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()

        run(main())
    assert budget.spent.calls == 1
    assert budget.spent.tokens > 1024
    assert client.routes[0].concurrency.num_in_flight == 0


def test_a_client_serves_one_event_loop_after_another():
    with MisbehavingServer() as server:
        client = client_of(server)
        replies = [run(client.complete(question(), SCHEMA)) for _ in range(3)]
    assert len({reply.text for reply in replies}) == 1


def test_a_price_that_is_not_known_is_none_and_never_0(monkeypatch):
    with MisbehavingServer() as server:
        client = client_of(server)
        assert run(client.complete(question())).usage.cost_usd is None
        # litellm is told a price of 0 for its own look-ups; ours stays unknown.
        assert run(client_of(server).complete(question())).usage.cost_usd is None
        with pytest.raises(ConfigError, match="must come with the price of every model"):
            run(client_of(server, budget=Budget(max_usd=1.0)).complete(question()))


def test_an_empty_text_is_a_reply_and_not_paid_again():
    with MisbehavingServer(raw_reply="") as server:
        reply = run(client_of(server).complete(question()))
        assert server.num_requests == 1
    assert (reply.text, reply.finish_reason) == ("", "stop")


def test_litellms_table_knows_the_price_of_a_hosted_model():
    client = JudgeClient("gpt-4o-mini")
    price = client.routes[0].price
    assert 0 < price.prompt_usd_per_million < price.completion_usd_per_million


def test_no_key_gets_into_errors_or_logs(monkeypatch, caplog):
    secret = "sk-very-secret-value-12345"
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", secret)
    caplog.set_level(logging.DEBUG, logger="arena_lightning")
    with MisbehavingServer(fault_fraction=1.0, faults=["401"]) as server:
        client = client_of(server)
        error = error_of(client)
        # The key did go out, so the check means something.
        assert server.headers[0]["authorization"] == f"Bearer {secret}"
    shown = "".join(traceback.format_exception(error)) + caplog.text + repr(vars(client))
    assert secret not in shown
    assert "very-secret" not in shown
    assert error.__cause__ is None and error.__context__ is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"extra_params": {"api_key": "sk-1"}}, "must hold no secret"),
        ({"extra_params": {"num_retries": 3}}, "nothing the client sets itself"),
        ({"api_base": "http://user:word@host/v1"}, "must hold no user or password"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
        ({"structured_output": "maybe"}, "must be auto, always or never, got 'maybe'"),
        (
            {"budget": Budget(max_calls=1, when_spent="cheaper_model")},
            "must come with a cheaper judge",
        ),
    ],
)
def test_bad_settings_are_refused_before_anything_is_sent(arguments, message):
    with pytest.raises(ConfigError, match=message):
        JudgeClient(MODEL, **arguments)
