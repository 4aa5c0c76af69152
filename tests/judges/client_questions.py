"""Questions for a client under test, and a client with short waits."""

import asyncio

import pytest

from arena_lightning.judges.client import JudgeClient
from arena_lightning.judges.limits import Limits
from arena_lightning.judges.pricing import Price
from arena_lightning.judges.retry import RetryPolicy
from tests.judges.misbehaving_server import MisbehavingServer

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
def warm_litellm():
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
