"""The recorded judge: the same verdicts again, and an error where there is none."""

import asyncio

import pyarrow
import pyarrow.parquet
import pytest

from arena_lightning.errors import JudgeError, RecordError
from arena_lightning.judges.ledger import Ledger
from arena_lightning.judges.recorded import RecordedJudge
from arena_lightning.protocols import Judge, Score
from arena_lightning.types import Message, Prompt, Trajectory, Verdict
from tests.judges.entries import entry

PROMPT = Prompt("p1", "Where to?")
FIRST, SECOND, THIRD = (Trajectory("p1", (Message("assistant", text),)) for text in "abc")


def key_of(kind, prompt, first, second):
    return "|".join([kind, prompt.prompt_id, first.answer, second.answer if second else ""])


COMPARED = {
    "first": 7.5,
    "second": 6,
    "dimensions_first": {"depth": 7.5},
    "dimensions_second": {"depth": 6},
}


def record(path, *entries):
    ledger = Ledger(path)
    for one in entries:

        async def ask(one=one):
            return one

        asyncio.run(ledger.answer(one.key, ask))
    return ledger


@pytest.fixture
def ledger(tmp_path):
    ledger = record(
        tmp_path / "ledger.sqlite",
        entry(key_of("compare", PROMPT, FIRST, SECOND), scores=COMPARED),
        entry(
            key_of("score", PROMPT, FIRST, None),
            kind="score",
            scores={"score": 8.0, "dimensions": {"depth": 8.0}},
        ),
        entry(key_of("compare", PROMPT, FIRST, THIRD), status="failed"),
    )
    yield ledger
    ledger.close()


@pytest.fixture(params=["ledger", "file", "parquet"])
def judge(request, ledger, tmp_path):
    if request.param == "ledger":
        return RecordedJudge(ledger, key_of)
    if request.param == "file":
        return RecordedJudge(ledger.path, key_of)
    ledger.export_parquet(tmp_path / "verdicts.parquet")
    return RecordedJudge(tmp_path / "verdicts.parquet", key_of)


def test_a_recorded_verdict_comes_back_whole_and_free(judge):
    assert isinstance(judge, Judge)
    verdict = asyncio.run(judge.compare(PROMPT, FIRST, SECOND))
    assert (verdict.score_first, verdict.score_second) == (7.5, 6.0)
    assert (verdict.dimensions_first, verdict.dimensions_second) == ({"depth": 7.5}, {"depth": 6.0})
    assert verdict.judge == "recorded:hosted_vllm/judge"
    assert (verdict.usage.calls, verdict.usage.cost_usd, verdict.usage.cached) == (0, 0.0, True)


def test_a_recorded_score_comes_back(judge):
    score = asyncio.run(judge.score(PROMPT, FIRST))
    assert (score.score, score.dimensions) == (8.0, {"depth": 8.0})


@pytest.mark.parametrize(("first", "second"), [(SECOND, FIRST), (FIRST, THIRD)])
def test_what_was_not_recorded_or_failed_is_an_error(judge, first, second):
    with pytest.raises(JudgeError, match="must be recorded, got an unknown one") as caught:
        asyncio.run(judge.compare(PROMPT, first, second))
    assert caught.value.usage.calls == 0
    with pytest.raises(JudgeError, match="must be recorded"):
        asyncio.run(judge.score(PROMPT, SECOND))


class Live:
    name = "live"

    async def compare(self, prompt, first, second):
        return Verdict(1.0, 2.0)

    async def score(self, prompt, trajectory):
        return Score(3.0)


def test_what_was_not_recorded_goes_to_another_judge_when_there_is_one(ledger):
    judge = RecordedJudge(ledger, key_of, otherwise=Live())
    assert asyncio.run(judge.compare(PROMPT, SECOND, FIRST)) == Verdict(1.0, 2.0)
    assert asyncio.run(judge.score(PROMPT, SECOND)) == Score(3.0)
    assert asyncio.run(judge.compare(PROMPT, FIRST, SECOND)).score_first == 7.5


@pytest.mark.parametrize("scores", [{}, {"first": "7", "second": 6}, {"first": True, "second": 6}])
def test_a_record_without_two_numbers_is_an_error_and_never_a_number(tmp_path, scores):
    key = key_of("compare", PROMPT, FIRST, SECOND)
    ledger = record(tmp_path / "odd.sqlite", entry(key, scores=scores))
    with pytest.raises(JudgeError, match="must be a finite number"):
        asyncio.run(RecordedJudge(ledger, key_of).compare(PROMPT, FIRST, SECOND))
    ledger.close()


def test_a_key_function_that_mixes_kinds_is_caught(tmp_path):
    ledger = record(tmp_path / "mixed.sqlite", entry("same", kind="score"))
    with pytest.raises(JudgeError, match="must be a compare, got a score"):
        asyncio.run(RecordedJudge(ledger, lambda *_: "same").compare(PROMPT, FIRST, SECOND))
    ledger.close()


def test_a_file_that_is_no_recording_is_refused(tmp_path):
    with pytest.raises(RecordError, match="must be a file that can be read"):
        RecordedJudge(tmp_path / "none.sqlite", key_of)
    (tmp_path / "text").write_text("words " * 100)
    with pytest.raises(RecordError, match="file is not a database"):
        RecordedJudge(tmp_path / "text", key_of)
    table = pyarrow.table({"scores": ["{}"], "unknown": [1]})
    pyarrow.parquet.write_table(table, tmp_path / "other.parquet")
    with pytest.raises(RecordError, match="must be a ledger's Parquet export"):
        RecordedJudge(tmp_path / "other.parquet", key_of)
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(RecordError, match="must be a ledger's Parquet export"):
        RecordedJudge(tmp_path / "cut.parquet", key_of)
