"""The client: what it sends, what it bills, what it keeps to, and what it keeps to itself."""

import asyncio
import json
import logging
import traceback

import pytest

from arena_lightning.errors import ConfigError
from arena_lightning.judges.budget import Budget, BudgetSpentError
from arena_lightning.judges.client import JudgeClient
from tests.judges.client_questions import (  # warm_litellm is a fixture
    MODEL,
    PRICE,
    SCHEMA,
    client_of,
    error_of,
    question,
    run,
    warm_litellm,
)
from tests.judges.misbehaving_server import MisbehavingServer

pytestmark = pytest.mark.usefixtures(warm_litellm.__name__)


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
