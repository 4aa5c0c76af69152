"""The verdict ledger: every judge call that was paid for, in one append-only sqlite file.

    question key -> known verdict, or ask -> append durably -> verdict

Judges ask through `Ledger.answer`, so that no question is paid for twice: not after a restart, not
by calls running at the same time, not when another process has the answer. The file layout is in
`ledger_file.py`. A ledger makes no keys, reads no replies and never sees an API key.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arena_lightning.errors import RecordError
from arena_lightning.judges.ledger_file import LedgerFile, LedgerWriter, write_parquet


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One paid judge call. Keys and hashes are hex digests made by the judge."""

    key: str
    """The question's key: model, rubric version, sampling, prompt, trajectories and their order."""
    kind: str
    """`compare`, `score` or `listwise`."""
    prompt_id: str
    prompt_hash: str
    model: str
    """The model that answered, which may be a fallback."""
    rubric: str
    rubric_version: str
    first_hash: str
    second_hash: str
    """Of the trajectory shown second; "" when there is none."""
    status: str
    """`verdict` (reused), or one that is paid, kept and never reused: `failed`; `cut_off`, when the
    run ended while it was asked; `doubled`, a verdict that came after another process's on the
    same question."""
    raw_text: str
    scores: Mapping[str, Any]
    """JSON. `compare`: {"first": float, "second": float, "dimensions_first": {name: float},
    "dimensions_second": {...}}; `score`: {"score": float, "dimensions": {...}}; {} when failed."""
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    """None when the model's price is not known."""
    latency_s: float
    created_s: float
    """Unix time."""
    calls: int = 1
    """HTTP attempts billed, retries and repairs included."""


@dataclass(frozen=True, slots=True)
class LedgerTotals:
    """What the entries of a ledger cost together; restores a budget after a restart."""

    entries: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    """Sum over the priced entries."""
    unpriced_entries: int
    """Entries whose price is not known."""


class Ledger:
    """An append-only store of judge calls, shared by tasks and processes."""

    def __init__(self, path: Path) -> None:
        """Open the ledger at `path`, or begin one there. The disk must be local: sqlite's
        write-ahead log does not work on network file systems.

        Raises:
            RecordError: the file is no ledger, or it can't be opened or written.
        """
        self.path = Path(path)
        self._file = LedgerFile(self.path, LedgerEntry)
        self._writer = LedgerWriter(self._file)
        self._asking: dict[tuple[int, str], _Question] = {}
        self._unwritten: dict[str, Future[LedgerEntry]] = {}
        """Key -> its last entry on the way to the disk; a caller may have been cancelled since."""

    async def answer(self, key: str, ask: Callable[[], Awaitable[LedgerEntry]]) -> LedgerEntry:
        """Return the verdict on `key`, asking only when nobody has.

        What `ask` returns is on disk before it is returned. The same key asked at the same time in
        this event loop is asked once, and a caller that is cancelled does not cancel the others.
        A `failed` entry is appended too and returned, but the next caller asks again.

        Returns:
            The entry on file. When another process answered meanwhile: its entry, not ours.

        Raises:
            RecordError: the entry can't be written, or has another key.
            Exception: what `ask` raises, to all who wait for it; nothing is appended then.
        """
        if key in self._unwritten:
            await asyncio.to_thread(self._wait_until_written, key)
        known = self.get(key)
        if known is not None:
            return known
        address = (id(asyncio.get_running_loop()), key)
        question = self._asking.get(address)
        if question is None:
            question = _Question(asyncio.ensure_future(self._ask(key, ask)))
            self._asking[address] = question
            question.task.add_done_callback(lambda _: self._asking.pop(address, None))
        return await question.wait()

    async def _ask(self, key: str, ask: Callable[[], Awaitable[LedgerEntry]]) -> LedgerEntry:
        entry = await ask()
        if entry.key != key:
            raise RecordError(
                f"an entry must have the key that was asked, got {entry.key!r} for {key!r} "
                f"({self.path}). Make both from one key function."
            )
        # No await between the answer and this line: a paid answer is always handed to the writer.
        written = self.append(entry)
        # Shielded: who reads the ledger waits for it, even when this caller is cancelled.
        return await asyncio.shield(asyncio.wrap_future(written))

    def append(self, entry: LedgerEntry) -> "Future[LedgerEntry]":
        """Hand an entry to the writer without waiting; the future holds it once it is on disk.

        Raises:
            RecordError: the ledger is closed.
        """
        written: Future[LedgerEntry] = self._writer.submit(entry)
        self._unwritten[entry.key] = written
        written.add_done_callback(lambda _: self._forget(entry.key, written))
        return written

    def _forget(self, key: str, written: Future[LedgerEntry]) -> None:
        if self._unwritten.get(key) is written:
            self._unwritten.pop(key, None)

    def _wait_until_written(self, *keys: str) -> None:
        """Wait until the entries of these keys, or all without any, are on disk or have failed."""
        unwritten = dict(self._unwritten)
        waited_for = [unwritten[key] for key in keys or unwritten if key in unwritten]
        wait_for_futures(waited_for)

    def get(self, key: str) -> LedgerEntry | None:
        """Return the verdict on `key`, None when there is none. Failed entries don't count."""
        self._wait_until_written(key)
        return self._file.find_verdict(key)

    def entries(self) -> Iterator[LedgerEntry]:
        """Yield all entries in the order they were appended, those being written included."""
        self._wait_until_written()
        return self._file.entries()

    def totals(self) -> LedgerTotals:
        """Return what all entries cost together, those being written included."""
        self._wait_until_written()
        return LedgerTotals(*self._file.sums())

    def export_parquet(self, path: Path) -> int:
        """Write all entries to a Parquet file (`scores` as JSON text) and return their number.

        Raises:
            RecordError: the file can't be written.
        """
        self._wait_until_written()
        return write_parquet(self._file, Path(path))

    def close(self) -> None:
        """Write what waits and close the file. Closing twice is fine."""
        self._writer.close()
        self._file.close()

    def __reduce__(self) -> tuple[type["Ledger"], tuple[str]]:
        """Copies and other processes open the file again."""
        return Ledger, (os.fspath(self.path),)


class _Question:
    """A question being asked, and how many wait for it."""

    def __init__(self, task: "asyncio.Task[LedgerEntry]") -> None:
        self.task = task
        self._num_waiting = 0

    async def wait(self) -> LedgerEntry:
        self._num_waiting += 1
        try:
            return await asyncio.shield(self.task)
        finally:
            self._num_waiting -= 1
            if not self._num_waiting and not self.task.done():
                self.task.cancel()
