"""Ledger entries for tests, and a process that appends them until it is killed."""

import asyncio
import sys
from pathlib import Path

from arena_lightning.judges.ledger import Ledger, LedgerEntry


def entry(key, status="verdict", writer="a", **changes):
    """Return an entry; `writer` tells two entries with one key apart."""
    fields = {
        "key": key,
        "kind": "compare",
        "prompt_id": "p1",
        "prompt_hash": "00",
        "model": "hosted_vllm/judge",
        "rubric": "travel",
        "rubric_version": "1",
        "first_hash": "01",
        "second_hash": "02",
        "status": status,
        "raw_text": f"{writer}: 评分 {{}}",
        "scores": {"first": 7.5, "second": 6.0} if status == "verdict" else {},
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "cost_usd": 0.25,
        "latency_s": 0.5,
        "created_s": 1_700_000_000.0,
    }
    return LedgerEntry(**(fields | changes))


async def write_without_end(path, writer, num_at_once=8):
    """Answer q0, q1, ... and print each key once `answer` has returned."""
    ledger = Ledger(Path(path))

    async def one(index):
        async def ask():
            return entry(f"q{index}", writer=writer)

        got = await ledger.answer(f"q{index}", ask)
        print(got.key, flush=True)

    start = 0
    while True:
        await asyncio.gather(*[one(index) for index in range(start, start + num_at_once)])
        start += num_at_once


if __name__ == "__main__":
    asyncio.run(write_without_end(sys.argv[1], sys.argv[2]))
