"""The smallest honest judge: client, ledger, and a strict reader of two scores.

For tests of what lies below a judge; run as a program it ranks groups until it ends or is killed,
so that a test can kill it. `OracleJudge` says without HTTP what the server would have replied.
"""

import asyncio
import hashlib
import json
import sys
import time
from pathlib import Path

from arena_lightning.arena import TOPOLOGIES, Arena
from arena_lightning.errors import JudgeError
from arena_lightning.judges.client import JudgeClient
from arena_lightning.judges.ledger import Ledger, LedgerEntry
from arena_lightning.judges.limits import Limits
from arena_lightning.judges.retry import RetryPolicy
from arena_lightning.types import Group, Message, Prompt, Trajectory, Usage, Verdict
from tests.judges.misbehaving_server import question_hash, value_for

MODEL = "hosted_vllm/judge"


def groups_of(num_groups, size):
    """Return groups whose trajectories all differ."""
    return [
        Group(
            Prompt(f"p{group}", f"Query {group}?"),
            tuple(
                Trajectory(f"p{group}", (Message("assistant", f"answer {i} to {group}"),), index=i)
                for i in range(size)
            ),
        )
        for group in range(num_groups)
    ]


def messages_of(prompt, first, second):
    text = json.dumps({"query": prompt.query, "first": first.answer, "second": second.answer})
    return [{"role": "system", "content": "Score both."}, {"role": "user", "content": text}]


def schema_of(first, second):
    score = {"type": "integer", "minimum": 0, "maximum": 10}
    properties = {
        "first_id": {"const": _hash(first.answer)},
        "second_id": {"const": _hash(second.answer)},
        "first": score,
        "second": score,
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def key_of(kind, prompt, first, second):
    """Return a question's key: the server's identity of it."""
    return question_hash(messages_of(prompt, first, second))


def _hash(text):
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def read_scores(text, schema):
    """Return both scores, None when the text is anything but what was asked for."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or set(value) != set(schema["properties"]):
        return None
    for name in ("first_id", "second_id"):
        if value[name] != schema["properties"][name]["const"]:
            return None
    scores = value["first"], value["second"]
    return scores if all(type(s) is int and 0 <= s <= 10 for s in scores) else None


class PlainJudge:
    """Asks twice at most: once, and once more when the reply can't be read."""

    name = "plain"

    def __init__(self, client, ledger):
        self.client = client
        self.ledger = ledger

    async def compare(self, prompt, first, second):
        key = key_of("compare", prompt, first, second)
        entry = await self.ledger.answer(key, lambda: self._ask(key, prompt, first, second))
        usage = Usage(entry.calls, entry.prompt_tokens, entry.completion_tokens, entry.cost_usd)
        if entry.status == "failed":
            error = JudgeError("no usable reply")
            error.usage = usage
            raise error
        return Verdict(entry.scores["first"], entry.scores["second"], usage=usage)

    async def _ask(self, key, prompt, first, second):
        schema = schema_of(first, second)
        scores, text, usages = None, "", []
        for _ in range(2):
            try:
                reply = await self.client.complete(messages_of(prompt, first, second), schema)
            except JudgeError as error:
                usages.append(error.usage)
                break
            usages.append(reply.usage)
            text, scores = reply.text, read_scores(reply.text, schema)
            if scores:
                break
        return LedgerEntry(
            key=key,
            kind="compare",
            prompt_id=prompt.prompt_id,
            prompt_hash=_hash(prompt.query),
            model=self.client.model,
            rubric="plain",
            rubric_version="1",
            first_hash=_hash(first.answer),
            second_hash=_hash(second.answer),
            status="verdict" if scores else "failed",
            raw_text=text,
            scores={"first": float(scores[0]), "second": float(scores[1])} if scores else {},
            prompt_tokens=sum(usage.prompt_tokens for usage in usages),
            completion_tokens=sum(usage.completion_tokens for usage in usages),
            cost_usd=None,
            latency_s=sum(usage.latency_s for usage in usages),
            created_s=time.time(),
            calls=sum(usage.calls for usage in usages),
        )

    async def score(self, prompt, trajectory):
        raise JudgeError("this judge compares only")


class OracleJudge:
    """Says what a server without faults replies."""

    name = "oracle"

    def __init__(self, seed=0):
        self.seed = seed

    async def compare(self, prompt, first, second):
        question = key_of("compare", prompt, first, second)
        value = value_for(schema_of(first, second), (self.seed, question))
        return Verdict(float(value["first"]), float(value["second"]))

    async def score(self, prompt, trajectory):
        raise JudgeError("this judge compares only")


def quick_client(url, attempt_timeout_s=20.0, **changes):
    """Return a client with short waits."""
    settings = {
        "limits": Limits(64, attempt_timeout_s=attempt_timeout_s, breaker_pause_s=0.05),
        "retry": RetryPolicy(base_delay_s=0.005, max_delay_s=0.05),
    }
    return JudgeClient(MODEL, api_base=url, **(settings | changes))


def rank(judge, num_groups, size):
    """Play one step of the paper's tournament and return the results."""
    arena = Arena(TOPOLOGIES["single_elimination"](), judge, presentation="both")
    return asyncio.run(arena.run(groups_of(num_groups, size)))


def main(url, path, num_groups, size):
    ledger = Ledger(Path(path))
    results = rank(PlainJudge(quick_client(url), ledger), int(num_groups), int(size))
    ledger.close()
    print(json.dumps([list(result.standings.ranks) for result in results]))


if __name__ == "__main__":
    main(*sys.argv[1:])
