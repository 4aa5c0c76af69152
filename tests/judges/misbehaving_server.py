"""A loopback chat server that misbehaves on command, for tests of everything that asks a judge.

It speaks the OpenAI protocol over plain asyncio streams, in a thread of its own. A valid reply is
a function of the question (the first user message) and of the JSON schema asked for, so two runs
can be compared; so is the fault that the n-th request of a question meets. It counts what it was
asked. It imitates no particular provider and knows no rubric.
"""

import asyncio
import contextlib
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence

TRANSPORT_FAULTS = (
    "429",
    "500",
    "timeout",
    "slow_drip",
    "truncated_body",
    "empty_choices",
    "reset",
)
"""Faults that a client can wait out."""
CONTENT_FAULTS = ("truncated_reply", "wrong_schema", "swapped_ids")
"""Replies that arrive well and say the wrong thing."""
ALL_FAULTS = TRANSPORT_FAULTS + CONTENT_FAULTS


def question_hash(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the identity of a question: its first user message."""
    text = next(m["content"] for m in messages if m["role"] == "user")
    return hashlib.sha256(text.encode()).hexdigest()


def uniform(*address) -> float:
    """Return a number in [0, 1) that is a function of the address."""
    digest = hashlib.sha256(repr(address).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def value_for(schema: Mapping, address: tuple) -> object:
    """Return a value that fits a JSON schema, as a function of the address."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][int(uniform(*address) * len(schema["enum"]))]
    kind = schema.get("type")
    if kind == "object":
        return {n: value_for(s, (*address, n)) for n, s in schema.get("properties", {}).items()}
    if kind == "array":
        length = schema.get("minItems", 1)
        return [value_for(schema["items"], (*address, index)) for index in range(length)]
    low, high = schema.get("minimum", 0), schema.get("maximum", 10)
    if kind == "integer":
        return low + int(uniform(*address) * (high - low + 1))
    if kind == "number":
        return round(low + uniform(*address) * (high - low), 3)
    return f"text {uniform(*address):.6f}"


class MisbehavingServer:
    """Use as a context manager; `url` is the `api_base`."""

    def __init__(
        self,
        fault_fraction: float = 0.0,
        faults: Sequence[str] = ALL_FAULTS,
        seed: int = 0,
        script: Mapping[int, str] | None = None,
        delay_s: float = 0.0,
        hang_s: float = 5.0,
        retry_after: str = "0.02",
        raw_reply: str | None = None,
    ) -> None:
        """Set up the misbehaviour.

        Args:
            fault_fraction: share of the requests that meet a fault, 0-1.
            faults: the kinds to draw from.
            seed: of the draws.
            script: n-th request (from 0) of every question -> its fault; "" is none. Comes
                before the draws.
            delay_s: a reply's normal latency.
            hang_s: how long a `timeout` hangs and a `slow_drip` takes.
            retry_after: value of that header with a 429.
            raw_reply: text of every valid reply instead of one that fits the schema.
        """
        self.fault_fraction = fault_fraction
        self.faults = tuple(faults)
        self.seed = seed
        self.script = dict(script or {})
        self.delay_s = delay_s
        self.hang_s = hang_s
        self.retry_after = retry_after
        self.raw_reply = raw_reply
        self.asked: Counter[str] = Counter()
        """Question -> requests, whatever became of them."""
        self.answered: Counter[str] = Counter()
        """Question -> valid replies."""
        self.met: Counter[str] = Counter()
        """Fault -> requests that met it; "" for none."""
        self.models: Counter[str] = Counter()
        self.headers: list[Mapping[str, str]] = []
        self.times_s: list[float] = []
        self.bodies: list[Mapping] = []
        self.num_in_flight = 0
        self.most_in_flight = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def num_requests(self) -> int:
        return self.asked.total()

    def __enter__(self) -> "MisbehavingServer":
        self._thread.start()
        self.come_back()
        return self

    def __exit__(self, *_) -> None:
        self.die()
        asyncio.run_coroutine_threadsafe(self._end_tasks(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end_tasks(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def die(self) -> None:
        """Close the port and reset every connection."""
        asyncio.run_coroutine_threadsafe(self._die(), self._loop).result(10)

    async def _die(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.transport.abort()

    def come_back(self) -> None:
        """Listen again on the same port."""
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._connection, "127.0.0.1", self.port, reuse_address=True, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def _connection(self, reader, writer) -> None:
        self._writers.add(writer)
        try:
            while await self._request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # asyncio prints what a connection raises, also when the server itself ends it
        finally:
            self._writers.discard(writer)
            with contextlib.suppress(ConnectionError):
                writer.close()

    async def _request(self, reader, writer) -> bool:
        """Answer one request; False when the connection is done with."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = head.split("\r\n")[1:]
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines if line)}
        body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))))
        question = question_hash(body["messages"])
        fault = self._fault_of(question, self.asked[question])
        self.asked[question] += 1
        self.met[fault] += 1
        self.models[body["model"]] += 1
        self.headers.append(headers)
        self.bodies.append(body)
        self.times_s.append(time.monotonic())
        self.num_in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.num_in_flight)
        try:
            await asyncio.sleep(self.delay_s)
            return await self._answer(writer, body, question, fault)
        finally:
            self.num_in_flight -= 1

    def _fault_of(self, question: str, nth: int) -> str:
        if nth in self.script:
            return self.script[nth]
        if uniform(self.seed, question, nth, "whether") >= self.fault_fraction:
            return ""
        return self.faults[int(uniform(self.seed, question, nth, "which") * len(self.faults))]

    async def _answer(self, writer, body: Mapping, question: str, fault: str) -> bool:
        if fault == "reset":
            writer.transport.abort()
            return False
        if fault == "timeout":
            await asyncio.sleep(self.hang_s)
            writer.transport.abort()
            return False
        if fault.isdigit():
            reply = json.dumps({"error": {"message": f"told to fail: {fault}", "code": fault}})
            extra = f"retry-after: {self.retry_after}\r\n" if fault == "429" else ""
            await _send(writer, int(fault), reply.encode(), extra)
            return True
        reply = json.dumps(self._completion(body, question, fault)).encode()
        if fault == "truncated_body":
            reply = reply[: len(reply) // 2]
        if not fault:
            self.answered[question] += 1
        pause_s = self.hang_s / 20 if fault == "slow_drip" else 0.0
        await _send(writer, 200, reply, "", pause_s)
        return True

    def _completion(self, body: Mapping, question: str, fault: str) -> Mapping:
        text = self._text(body, question, fault)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "length" if fault == "truncated_reply" else "stop",
        }
        prompt_tokens = sum(len(message["content"].split()) for message in body["messages"])
        completion_tokens = len(text.split())
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body["model"],
            "choices": [] if fault == "empty_choices" else [choice],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
        }

    def _text(self, body: Mapping, question: str, fault: str) -> str:
        if self.raw_reply is not None:
            return self.raw_reply
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        value = value_for(schema or {"type": "string"}, (self.seed, question))
        if fault == "wrong_schema":
            value = {"verdict": "the first one", "confidence": "high"}
        if fault == "swapped_ids" and isinstance(value, dict):
            value = _with_swapped_ids(value)
        text = json.dumps(value)
        return text[: len(text) // 2] if fault == "truncated_reply" else text


def _with_swapped_ids(value: Mapping) -> Mapping:
    """Rotate the values of all keys that are or end in `id`, in nested objects and lists too."""
    if isinstance(value, list):
        return [_with_swapped_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    ids = [key for key in value if key == "id" or key.endswith("_id")]
    rotated = dict(zip(ids, [value[key] for key in [*ids[1:], *ids[:1]]], strict=True))
    return {k: rotated.get(k, _with_swapped_ids(item)) for k, item in value.items()}


async def _send(writer, status: int, body: bytes, extra: str, pause_s: float = 0.0) -> None:
    head = (
        f"HTTP/1.1 {status} told\r\ncontent-type: application/json\r\n{extra}"
        f"content-length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode())
    step = max(1, len(body) // 20) if pause_s else len(body)
    for start in range(0, len(body), step):
        writer.write(body[start : start + step])
        await writer.drain()
        await asyncio.sleep(pause_s)
