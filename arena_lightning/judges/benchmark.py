"""How near the judge's line comes to its ideal: `python -m arena_lightning.judges.benchmark`.

Sends 1,000 calls of 0.5 s at concurrency 128 to a loopback server in a process of its own, through
litellm alone, through `JudgeClient`, and through client and ledger; then times the ledger by itself
under the same load. The ideal is calls x latency / concurrency. It measures no provider.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from arena_lightning.judges.client import JudgeClient
from arena_lightning.judges.ledger import Ledger, LedgerEntry
from arena_lightning.judges.limits import Limits
from arena_lightning.judges.pricing import load_litellm, price_of

MODEL = "hosted_vllm/benchmark"
PROMPT = "Compare these two travel plans. " + "They differ in many small ways. " * 250
SCHEMA = {
    "type": "object",
    "properties": {"first": {"type": "number"}, "second": {"type": "number"}},
    "required": ["first", "second"],
    "additionalProperties": False,
}
Ask = Callable[[int], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Timing:
    """One way of asking all the questions."""

    wall_s: float
    cpu_ms_per_call: float
    """Processor time of this process, all threads."""


async def serve(latency_s: float) -> None:
    """Reply to every chat request with two scores after `latency_s`; prints its port."""
    message = {"role": "assistant", "content": '{"first": 7, "second": 6}'}
    reply = {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "benchmark",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 2000, "completion_tokens": 12, "total_tokens": 2012},
    }
    body = json.dumps(reply).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = request.split(b"content-length:")[1].split(b"\r\n")[0]
                await reader.readexactly(int(size))
                await asyncio.sleep(latency_s)
                writer.write(head % len(body) + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def measure(ask: Ask, num_calls: int, concurrency: int) -> Timing:
    """Ask all questions, so many at once, and time it."""
    slots = asyncio.Semaphore(concurrency)

    async def one(index: int) -> None:
        async with slots:
            await ask(index)

    started_s, started_cpu_s = time.perf_counter(), time.process_time()
    await asyncio.gather(*[one(index) for index in range(num_calls)])
    cpu_s = time.process_time() - started_cpu_s
    return Timing(time.perf_counter() - started_s, cpu_s * 1e3 / num_calls)


def messages_of(index: int) -> list[dict[str, str]]:
    return [
        {"role": "system", "content": "You judge."},
        {"role": "user", "content": f"Question {index}. {PROMPT}"},
    ]


def entry_of(key: str, text: str) -> LedgerEntry:
    """Return an entry as large as a judge's."""
    return LedgerEntry(
        key=key,
        kind="compare",
        prompt_id="benchmark",
        prompt_hash=key,
        model=MODEL,
        rubric="benchmark",
        rubric_version="1",
        first_hash=key,
        second_hash=key,
        status="verdict",
        raw_text=text,
        scores={"first": 7.0, "second": 6.0},
        prompt_tokens=2000,
        completion_tokens=12,
        cost_usd=None,
        latency_s=0.5,
        created_s=time.time(),
    )


def measure_client(
    url: str, folder: Path, args: argparse.Namespace, repeat: int
) -> dict[str, Timing]:
    """Time the three ways of asking over HTTP."""
    client = JudgeClient(MODEL, api_base=url, limits=Limits(max_concurrency=args.concurrency))
    ledger = Ledger(folder / f"client_{repeat}.sqlite")
    litellm = load_litellm()

    async def alone(index: int) -> None:
        await litellm.acompletion(
            model=MODEL, api_base=url, messages=messages_of(index), num_retries=0, max_retries=0
        )

    async def through_client(index: int) -> str:
        return (await client.complete(messages_of(index), SCHEMA)).text

    async def through_ledger(index: int) -> None:
        async def ask() -> LedgerEntry:
            return entry_of(f"key {index}", await through_client(index))

        await ledger.answer(f"key {index}", ask)

    ways: dict[str, Ask] = {
        "litellm alone": alone,
        "client": through_client,
        "client and ledger": through_ledger,
    }

    async def all_ways() -> dict[str, Timing]:
        # A first call loads what litellm loads late, and connections are opened once per loop.
        await asyncio.gather(*[alone(index) for index in range(args.concurrency)])
        return {
            name: await measure(ask, args.calls, args.concurrency) for name, ask in ways.items()
        }

    timings = asyncio.run(all_ways())
    ledger.close()
    return timings


def measure_ledger(folder: Path, args: argparse.Namespace, repeat: int) -> float:
    """Return what the ledger adds to a verdict in milliseconds, without any HTTP."""
    ledger = Ledger(folder / f"ledger_{repeat}.sqlite")

    async def bare(index: int) -> LedgerEntry:
        await asyncio.sleep(args.latency_s)
        return entry_of(f"key {index}", "x" * 500)

    async def kept(index: int) -> LedgerEntry:
        return await ledger.answer(f"key {index}", lambda: bare(index))

    async def both() -> float:
        without = await measure(bare, args.calls, args.concurrency)
        with_ledger = await measure(kept, args.calls, args.concurrency)
        return (with_ledger.wall_s - without.wall_s) * 1e3 / args.calls

    added_ms = asyncio.run(both())
    ledger.close()
    return added_ms


def report(args: argparse.Namespace) -> None:
    """Run everything and print a line for each."""
    price_of(MODEL)
    ideal_s = args.calls * args.latency_s / args.concurrency
    command = [sys.executable, "-m", "arena_lightning.judges.benchmark", "--serve"]
    server = subprocess.Popen(
        [*command, "--latency_s", str(args.latency_s)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None, "the server's output is a pipe"
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        with tempfile.TemporaryDirectory(dir=args.folder) as name:
            folder = Path(name)
            repeats = range(args.repeats)
            runs = [measure_client(url, folder, args, repeat) for repeat in repeats]
            added = [measure_ledger(folder, args, repeat) for repeat in repeats]
    finally:
        server.terminate()
        server.wait()
    print(
        f"{args.calls} calls of {args.latency_s} s at concurrency {args.concurrency}: ideal "
        f"{ideal_s:.2f} s; median and best of {args.repeats}"
    )
    for way in runs[0]:
        walls = [run[way].wall_s for run in runs]
        cpu_ms = statistics.median(run[way].cpu_ms_per_call for run in runs)
        print(
            f"  {way:18s} {statistics.median(walls):6.2f} s, "
            f"{ideal_s / statistics.median(walls):4.0%} of the ideal throughput (best "
            f"{ideal_s / min(walls):.0%}; goal for the client: 90%), {cpu_ms:.1f} ms of CPU a call"
        )
    print(
        f"  ledger alone       {statistics.median(added):6.3f} ms added per verdict (best "
        f"{min(added):.3f} ms; goal: below 1 ms)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=128)
    parser.add_argument("--latency_s", type=float, default=0.5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None, help="disk to test the ledger on")
    parser.add_argument("--serve", action="store_true", help="be the loopback server")
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve(args.latency_s))
    else:
        report(args)


if __name__ == "__main__":
    main()
