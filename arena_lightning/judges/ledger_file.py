"""The ledger on disk: the sqlite table, its one writer thread, and the Parquet export.

The writer commits all entries that wait at the same time together: a commit is a disk flush, and
one flush for many verdicts is what keeps the added time per verdict small while each is durable
before its caller goes on. Nothing here knows what a verdict means or when to ask.
"""

import contextlib
import json
import queue
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from arena_lightning.errors import RecordError

_APPLICATION_ID = 0x41724C67  # "ArLg", in the file's header
_LAYOUT_VERSION = 1
_BUSY_TIMEOUT_S = 60.0
_MAX_BATCH = 1024
_SQL_TYPES = {int: "INTEGER NOT NULL", float: "REAL NOT NULL", str: "TEXT NOT NULL"}


class LedgerFile:
    """One sqlite file of entries; `entry_type` is the dataclass that a row becomes."""

    def __init__(self, path: Path, entry_type: type) -> None:
        self.path = path
        self._entry_type = entry_type
        self._types = {column.name: column.type for column in fields(entry_type)}
        self._columns = ", ".join(self._types)
        self._read_lock = threading.Lock()
        self._write_lock = threading.Lock()
        with self._errors("open"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _connect(path)
            try:
                self._check_or_create()
                # A second connection: a look-up must not wait for the disk flush of a commit.
                self._reader = _connect(path)
            except BaseException:
                self._connection.close()
                raise

    def _check_or_create(self) -> None:
        """Refuse foreign files before anything in them is touched."""
        run = self._connection.execute
        if not self._is_ours():
            # Two processes may begin the file at once: the second finds it begun by the first.
            run("BEGIN IMMEDIATE")
            try:
                if not self._is_ours():
                    self._create()
            finally:
                run("COMMIT")
        version = run("PRAGMA user_version").fetchone()[0]
        if version != _LAYOUT_VERSION:
            raise RecordError(
                f"a ledger must have layout {_LAYOUT_VERSION}, got {version} ({self.path}). "
                "Begin a new file, or use the version of arena_lightning that wrote it."
            )
        _retry_while_locked(lambda: run("PRAGMA journal_mode = WAL"))
        run("PRAGMA synchronous = FULL")

    def _is_ours(self) -> bool:
        run = self._connection.execute
        application_id = run("PRAGMA application_id").fetchone()[0]
        if application_id == _APPLICATION_ID:
            return True
        if application_id or run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise RecordError(
                f"the file must be a verdict ledger, got another sqlite database ({self.path}). "
                "Give another path."
            )
        return False

    def _create(self) -> None:
        run = self._connection.execute
        columns = ", ".join(
            f"{name} {_SQL_TYPES.get(kind, 'REAL' if name == 'cost_usd' else 'TEXT NOT NULL')}"
            for name, kind in self._types.items()
        )
        run(f"CREATE TABLE entries (id INTEGER PRIMARY KEY AUTOINCREMENT, {columns})")
        run("CREATE UNIQUE INDEX one_verdict ON entries (key) WHERE status = 'verdict'")
        run(f"PRAGMA user_version = {_LAYOUT_VERSION}")
        run(f"PRAGMA application_id = {_APPLICATION_ID}")

    def find_verdict(self, key: str) -> Any | None:
        """Return the verdict on `key`, None when there is none."""
        with self._errors("read"), self._read_lock:
            return self._select_verdict(self._reader, key)

    def _select_verdict(self, connection: sqlite3.Connection, key: str) -> Any | None:
        row = connection.execute(
            f"SELECT {self._columns} FROM entries WHERE key = ? AND status = 'verdict'", (key,)
        ).fetchone()
        return None if row is None else self._entry_from(row)

    def entries(self) -> Iterator[Any]:
        """Yield all entries in the order they were appended, a page at a time."""
        last_id = 0
        while True:
            with self._errors("read"), self._read_lock:
                rows = self._reader.execute(
                    f"SELECT id, {self._columns} FROM entries WHERE id > ? ORDER BY id LIMIT 1000",
                    (last_id,),
                ).fetchall()
            if not rows:
                return
            last_id = rows[-1][0]
            yield from (self._entry_from(row[1:]) for row in rows)

    def sums(self) -> tuple[int, int, int, int, float, int]:
        """Return entries, calls, prompt tokens, completion tokens, USD, unpriced entries."""
        with self._errors("read"), self._read_lock:
            return self._reader.execute(
                "SELECT count(*), coalesce(sum(calls), 0), coalesce(sum(prompt_tokens), 0), "
                "coalesce(sum(completion_tokens), 0), coalesce(sum(cost_usd), 0.0), "
                "count(*) - count(cost_usd) FROM entries"
            ).fetchone()

    def append(self, batch: Sequence[Any]) -> list[Any]:
        """Append entries in one durable transaction; return what holds for each question.

        A verdict on a question that has one already is kept as `doubled`: the first one holds.
        """
        with self._errors("write"), self._write_lock:
            run = self._connection.execute
            run("BEGIN IMMEDIATE")
            try:
                holding = [self._insert(entry) for entry in batch]
            except BaseException:
                run("ROLLBACK")
                raise
            run("COMMIT")
            return holding

    def _insert(self, entry: Any) -> Any:
        marks = ", ".join("?" * len(self._types))
        statement = f"INSERT INTO entries ({self._columns}) VALUES ({marks})"
        on_conflict = " ON CONFLICT (key) WHERE status = 'verdict' DO NOTHING"
        if self._connection.execute(statement + on_conflict, self._row_from(entry)).rowcount:
            return entry
        self._connection.execute(statement, self._row_from(replace(entry, status="doubled")))
        return self._select_verdict(self._connection, entry.key)

    def _row_from(self, entry: Any) -> list[Any]:
        row = {name: getattr(entry, name) for name in self._types}
        row["scores"] = json.dumps(dict(row["scores"]), ensure_ascii=False, allow_nan=False)
        return list(row.values())

    def _entry_from(self, row: Sequence[Any]) -> Any:
        values = dict(zip(self._types, row, strict=True))
        return self._entry_type(**(values | {"scores": json.loads(values["scores"])}))

    def close(self) -> None:
        with self._read_lock, self._write_lock:
            self._reader.close()
            self._connection.close()

    @contextlib.contextmanager
    def _errors(self, deed: str) -> Iterator[None]:
        """Turn what sqlite and the file system raise into errors for people."""
        try:
            yield
        except sqlite3.ProgrammingError as error:
            raise RecordError(
                f"the ledger must be open to {deed} it, got a closed one ({self.path}). "
                "Open it again."
            ) from error
        except (sqlite3.Error, OSError) as error:
            raise RecordError(
                f"the verdict ledger must be a sqlite file that can be opened, read and written, "
                f"got {error} on trying to {deed} it ({self.path}). Check the path, the rights "
                "and the free space."
            ) from error
        except (TypeError, ValueError) as error:
            raise RecordError(
                f"an entry's fields must fit the ledger, its scores be plain JSON with finite "
                f"numbers, got {error} ({self.path}). Record the call as failed, with no scores."
            ) from error


class LedgerWriter:
    """The one thread of a process that appends to a ledger."""

    def __init__(self, file: LedgerFile) -> None:
        self._queue: queue.SimpleQueue[tuple[Any, Future[Any]] | None] = queue.SimpleQueue()
        thread = threading.Thread(
            target=_write_until_closed, args=(file, self._queue), name="ledger", daemon=True
        )
        thread.start()
        # Runs at the end of the process too, so that a paid verdict in the queue is not lost.
        self._finalizer = weakref.finalize(self, _close_writer, self._queue, thread)

    def submit(self, entry: Any) -> Future[Any]:
        """Queue one entry; the future holds the entry on file once it is durable."""
        future: Future[Any] = Future()
        if not self._finalizer.alive:
            raise RecordError(
                "the ledger must be open to append to it, got a closed one. Open it again."
            )
        self._queue.put((entry, future))
        return future

    def close(self) -> None:
        """Write what waits and stop. Closing twice is fine."""
        self._finalizer()


def _close_writer(waiting: "queue.SimpleQueue[Any]", thread: threading.Thread) -> None:
    waiting.put(None)
    thread.join()


def _write_until_closed(file: LedgerFile, waiting: "queue.SimpleQueue[Any]") -> None:
    is_open = True
    while is_open:
        batch = [waiting.get()]
        with contextlib.suppress(queue.Empty):
            while len(batch) < _MAX_BATCH:
                batch.append(waiting.get_nowait())
        is_open = None not in batch
        jobs = [job for job in batch if job is not None]
        # False when the caller was cancelled: the entry is paid and written all the same.
        heard = [future.set_running_or_notify_cancel() for _, future in jobs]
        try:
            holding = file.append([entry for entry, _ in jobs]) if jobs else []
        except RecordError as error:
            for (_, future), is_heard in zip(jobs, heard, strict=True):
                if is_heard:
                    future.set_exception(error)
            continue
        for (_, future), is_heard, entry in zip(jobs, heard, holding, strict=True):
            if is_heard:
                future.set_result(entry)


def write_parquet(file: LedgerFile, path: Path) -> int:
    """Write all entries of a ledger to Parquet, `scores` as JSON text; return their number."""
    import pyarrow
    import pyarrow.parquet

    rows = [
        {name: getattr(entry, name) for name in file._types}
        | {"scores": json.dumps(dict(entry.scores), ensure_ascii=False)}
        for entry in file.entries()
    ]
    kinds = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}
    schema = pyarrow.schema(
        (name, kinds.get(kind, pyarrow.float64() if name == "cost_usd" else pyarrow.string()))
        for name, kind in file._types.items()
    )
    try:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema=schema), path)
    except OSError as error:
        raise RecordError(
            f"the export must be a file that can be written, got {error} ({path}). "
            "Check the folder, the rights and the free space."
        ) from error
    return len(rows)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )


def _retry_while_locked(run: Any) -> None:
    """Change the journal mode: sqlite does not wait for other processes there by itself."""
    deadline_s = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            run()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline_s:
                raise
            time.sleep(0.01)
