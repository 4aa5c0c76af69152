"""The ledger: asked once, durable before it is told, shared, and honest about what it is."""

import asyncio
import copy
import json
import resource
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time

import pyarrow.parquet
import pytest

from arena_lightning.errors import JudgeError, RecordError
from arena_lightning.judges.ledger import Ledger, LedgerTotals
from arena_lightning.judges.ledger_file import LedgerFile
from tests.judges.entries import entry


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "runs" / "ledger.sqlite")
    yield ledger
    ledger.close()


class Asker:
    """Counts how often it is asked."""

    def __init__(self, key, wait_s=0.0, **changes):
        self.key, self.wait_s, self.changes = key, wait_s, changes
        self.num_asked = 0

    async def __call__(self):
        self.num_asked += 1
        await asyncio.sleep(self.wait_s)
        return entry(self.key, **self.changes)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, timeout=30))


def test_a_known_verdict_is_not_asked_again_also_after_a_restart(ledger):
    ask = Asker("k")
    first = run(ledger.answer("k", ask))
    assert run(ledger.answer("k", ask)) == first == entry("k")
    ledger.close()
    again = Ledger(ledger.path)
    assert run(again.answer("k", ask)) == first
    assert ask.num_asked == 1
    again.close()


def test_the_same_question_asked_at_once_is_asked_once(ledger):
    ask = Asker("k", wait_s=0.01)

    async def main():
        return await asyncio.gather(*[ledger.answer("k", ask) for _ in range(20)])

    assert run(main()) == [entry("k")] * 20
    assert ask.num_asked == 1
    assert len(list(ledger.entries())) == 1


def test_a_failed_entry_is_kept_and_asked_again(ledger):
    failing, ask = Asker("k", status="failed"), Asker("k")
    assert run(ledger.answer("k", failing)).status == "failed"
    assert ledger.get("k") is None
    assert run(ledger.answer("k", ask)).status == "verdict"
    assert [e.status for e in ledger.entries()] == ["failed", "verdict"]


def test_what_asking_raises_reaches_all_who_wait_and_leaves_nothing(ledger):
    async def ask():
        await asyncio.sleep(0.01)
        raise JudgeError("no reply")

    async def main():
        return await asyncio.gather(
            *[ledger.answer("k", ask) for _ in range(3)], return_exceptions=True
        )

    assert [type(result) for result in run(main())] == [JudgeError] * 3
    assert list(ledger.entries()) == []
    assert run(ledger.answer("k", Asker("k"))) == entry("k")


def test_a_cancelled_caller_does_not_cancel_the_others(ledger):
    ask = Asker("k", wait_s=0.02)

    async def main():
        tasks = [asyncio.ensure_future(ledger.answer("k", ask)) for _ in range(3)]
        await asyncio.sleep(0.005)
        tasks[0].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    cancelled, *others = run(main())
    assert isinstance(cancelled, asyncio.CancelledError)
    assert others == [entry("k")] * 2
    assert ask.num_asked == 1


@pytest.fixture
def slow_disk(monkeypatch):
    append = LedgerFile.append

    def append_slowly(file, batch):
        time.sleep(0.2)
        return append(file, batch)

    monkeypatch.setattr(LedgerFile, "append", append_slowly)


async def cancelled_while_written(ledger, ask):
    task = asyncio.ensure_future(ledger.answer("k", ask))
    while not ask.num_asked:
        await asyncio.sleep(0)
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.usefixtures("slow_disk")
@pytest.mark.parametrize("read", ["get", "entries", "totals", "export_parquet", "answer"])
def test_readers_wait_for_what_is_being_written(ledger, tmp_path, read):
    async def main():
        ask = Asker("k")
        await cancelled_while_written(ledger, ask)
        if read == "answer":
            assert await ledger.answer("k", ask) == entry("k")
            assert ask.num_asked == 1
        elif read == "get":
            assert ledger.get("k") == entry("k")
        elif read == "entries":
            assert [e.key for e in ledger.entries()] == ["k"]
        elif read == "totals":
            assert ledger.totals().entries == 1
        else:
            assert ledger.export_parquet(tmp_path / "ledger.parquet") == 1

    run(main())


def test_a_question_nobody_waits_for_any_more_is_cancelled(ledger):
    ask = Asker("k", wait_s=30.0)

    async def main():
        before = asyncio.all_tasks()
        task = asyncio.ensure_future(ledger.answer("k", ask))
        await asyncio.sleep(0.005)
        assert ask.num_asked == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.005)
        assert asyncio.all_tasks() == before

    run(main())
    assert list(ledger.entries()) == []


def test_what_another_process_answered_meanwhile_holds_and_ours_is_kept_as_doubled(ledger):
    other = Ledger(ledger.path)

    async def ask():
        await other.answer("k", Asker("k", writer="other"))
        return entry("k", writer="ours")

    got = run(ledger.answer("k", ask))
    other.close()
    assert got == entry("k", writer="other")
    assert list(ledger.entries()) == [
        entry("k", writer="other"),
        entry("k", writer="ours", status="doubled", scores=entry("k").scores),
    ]


def test_totals_sum_all_that_was_paid(ledger):
    for key, changes in (
        ("a", {}),
        ("b", {"status": "failed", "calls": 3}),
        ("c", {"cost_usd": None}),
    ):
        run(ledger.answer(key, Asker(key, **changes)))
    assert ledger.totals() == LedgerTotals(
        entries=3,
        calls=5,
        prompt_tokens=300,
        completion_tokens=30,
        cost_usd=0.5,
        unpriced_entries=1,
    )


def test_a_parquet_export_equals_the_entries(ledger, tmp_path):
    run(ledger.answer("a", Asker("a", cost_usd=None)))
    run(ledger.answer("b", Asker("b", status="failed")))
    assert ledger.export_parquet(tmp_path / "verdicts.parquet") == 2
    rows = pyarrow.parquet.read_table(tmp_path / "verdicts.parquet").to_pylist()
    back = [entry(**(row | {"scores": json.loads(row["scores"])})) for row in rows]
    assert back == list(ledger.entries())


def test_an_empty_ledger_exports_its_columns(ledger, tmp_path):
    assert ledger.export_parquet(tmp_path / "none.parquet") == 0
    names = pyarrow.parquet.read_schema(tmp_path / "none.parquet").names
    assert {"key", "scores", "cost_usd", "calls"} <= set(names)


def test_many_entries_come_back_in_order(ledger):
    ledger._file.append([entry(f"k{index}") for index in range(2500)])
    assert [e.key for e in ledger.entries()] == [f"k{index}" for index in range(2500)]


def test_a_copy_opens_the_same_file(ledger):
    run(ledger.answer("k", Asker("k")))
    twin = copy.deepcopy(ledger)
    assert twin.get("k") == entry("k")
    twin.close()


def start_writer(path, writer):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.judges.entries", str(path), writer],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_what_was_told_before_sigkill_is_on_disk_whole_and_once(tmp_path):
    path = tmp_path / "ledger.sqlite"
    process = start_writer(path, "a")
    told = [process.stdout.readline().strip() for _ in range(200)]
    process.send_signal(signal.SIGKILL)
    told += [line.strip() for line in process.stdout if line.endswith("\n")]
    process.wait()
    process.stdout.close()
    ledger = Ledger(path)
    keys = [e.key for e in ledger.entries()]
    assert set(told) <= set(keys)
    assert len(keys) == len(set(keys))
    ask = Asker(told[-1])
    run(ledger.answer(told[-1], ask))
    assert ask.num_asked == 0
    ledger.close()


def test_two_processes_write_one_file_and_agree_on_every_verdict(tmp_path):
    path = tmp_path / "ledger.sqlite"
    processes = [start_writer(path, name) for name in "ab"]
    told = [{process.stdout.readline().strip() for _ in range(100)} for process in processes]
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    ledger = Ledger(path)
    verdicts = [e.key for e in ledger.entries() if e.status == "verdict"]
    assert len(verdicts) == len(set(verdicts))
    assert told[0] | told[1] <= set(verdicts)
    ledger.close()


def test_a_file_that_is_no_ledger_is_refused_and_left_as_it_is(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and longer than the header of one " * 10)
    with pytest.raises(RecordError, match="file is not a database"):
        Ledger(text)
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = foreign.read_bytes()
    with pytest.raises(RecordError, match="got another sqlite database"):
        Ledger(foreign)
    assert foreign.read_bytes() == before


def test_a_ledger_of_another_layout_is_refused(ledger):
    ledger.close()
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(RecordError, match="must have layout 1, got 99"):
        Ledger(ledger.path)


def test_a_path_that_cannot_be_opened_is_refused(tmp_path):
    with pytest.raises(RecordError, match="unable to open database file on trying to open"):
        Ledger(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="on trying to open it"):
        Ledger(tmp_path / "file" / "ledger.sqlite")


def test_a_closed_ledger_says_so(ledger):
    ledger.close()
    ledger.close()
    with pytest.raises(RecordError, match="must be open to read it, got a closed one"):
        ledger.get("k")


@pytest.mark.parametrize("score", [float("nan"), {1, 2}])
def test_scores_that_are_no_json_are_refused_and_nothing_else_is_lost(ledger, score):
    with pytest.raises(RecordError, match="scores be plain JSON"):
        run(ledger.answer("k", Asker("k", scores={"first": score})))
    assert run(ledger.answer("k", Asker("k"))) == entry("k")


def test_an_answer_to_another_question_is_refused(ledger):
    with pytest.raises(RecordError, match="must have the key that was asked"):
        run(ledger.answer("k", Asker("other")))


def test_a_full_disk_is_an_error_for_people_and_leaves_a_whole_ledger(tmp_path):
    code = textwrap.dedent("""
        import asyncio, resource, sys
        from pathlib import Path
        from arena_lightning.errors import RecordError
        from arena_lightning.judges.ledger import Ledger
        from tests.judges.entries import entry

        ledger = Ledger(Path(sys.argv[1]))
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

        async def ask(index):
            return entry(f"k{index}", raw_text="x" * 20_000)

        async def main():
            for index in range(200):
                await ledger.answer(f"k{index}", lambda: ask(index))
                print(index)

        try:
            asyncio.run(main())
        except RecordError as error:
            print(error)
    """)
    path = tmp_path / "ledger.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    *told, message = done.stdout.splitlines()
    assert "on trying to write it" in message
    assert "free space" in message
    assert len(told) >= 5
    ledger = Ledger(path)
    assert [e.key for e in ledger.entries()] == [f"k{index}" for index in told]
    ledger.close()
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
