"""The travel task as training sees it: openings, splits, references, cold start, export."""

import json

import pytest

from arena_lightning.errors import ConfigError
from arena_lightning.protocols import Task
from arena_lightning.tasks.prompts import load_prompts
from arena_lightning.tasks.travel.__main__ import main
from arena_lightning.tasks.travel.diligence import Diligence
from arena_lightning.tasks.travel.needs import SUBTASKS
from arena_lightning.tasks.travel.task import DEFAULT_COUNTS, TravelTask

TASK = TravelTask()


def test_it_is_a_task_whose_opening_says_today_and_the_query():
    assert isinstance(TASK, Task)
    prompt = TASK.prompts("train", count=1)[0]
    system, user = TASK.opening(prompt)
    assert (system.role, user.role) == ("system", "user")
    assert "2026-05-04 (Mon)" in system.content and len(system.content) < 150
    assert user.content == prompt.query


def test_the_sizes_are_the_papers():
    assert DEFAULT_COUNTS == {"cold_start": 2600, "train": 1626, "test": 250}
    train = TASK.prompts("train")
    assert len(train) == len({p.prompt_id for p in train}) == 1626
    assert {p.subtask for p in train} == set(SUBTASKS)
    assert len(TASK.prompts("test", ["direction", "search_around"])) == 100


def test_test_prompts_have_references_and_others_have_none():
    for prompt in TASK.prompts("test", count=10):
        last = prompt.reference[-1]
        assert last.role == "assistant" and last.content and not last.tool_calls
    assert not any(p.reference for p in TASK.prompts("train", count=10))


def test_the_cold_start_leaves_out_multi_day_travel_unless_asked():
    dialogues = TASK.cold_start_dialogues(40)
    assert {p.subtask for p, _ in dialogues} == set(SUBTASKS) - {"multi_day_travel"}
    asked = TASK.cold_start_dialogues(2, ["multi_day_travel"])
    assert {p.subtask for p, _ in asked} == {"multi_day_travel"}
    assert dialogues == TravelTask().cold_start_dialogues(40)
    # Experts differ: not every dialogue is the full expert's.
    best = [TASK.expert_messages(p, Diligence.full()) for p, _ in dialogues]
    assert sum(m == b for (_, m), b in zip(dialogues, best, strict=True)) < 10


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"split": "dev"}, "split must be one of cold_start, train, test, got 'dev'"),
        ({"split": "train", "subtasks": ["direktion"]}, "subtasks must be some of search_around"),
        ({"split": "train", "subtasks": []}, "got none"),
        ({"split": "train", "count": 0}, "count must be at least 1, got 0"),
    ],
)
def test_bad_arguments_are_refused(arguments, text):
    with pytest.raises(ConfigError, match=text):
        TASK.prompts(**arguments)


def test_exported_files_read_back_as_the_same_prompts(tmp_path, capsys):
    out = tmp_path / "deep" / "data"
    assert main(["export", "--out", str(out), "--count", "12"]) == 0
    assert capsys.readouterr().out.split() == [
        str(out / f"{name}.jsonl") for name in ("cold_start", "train", "test")
    ]
    assert load_prompts(out / "train.jsonl") == TASK.prompts("train", count=12)
    assert load_prompts(out / "test.jsonl") == TASK.prompts("test", count=12)
    read = load_prompts(out / "cold_start.jsonl")
    assert [(p.query, p.reference) for p in read] == [
        (p.query, m) for p, m in TASK.cold_start_dialogues(12)
    ]
    record = json.loads((out / "test.jsonl").read_text().splitlines()[0])
    call = record["reference"][0]["tool_calls"][0]["function"]
    assert isinstance(json.loads(call["arguments"]), dict)
    first = (out / "train.jsonl").read_bytes()
    main(["export", "--out", str(out), "--count", "12"])
    assert (out / "train.jsonl").read_bytes() == first


def test_an_export_that_cannot_be_written_says_so(tmp_path, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["export", "--out", str(blocked), "--count", "1"]) == 2
    assert "export folder must be writable" in capsys.readouterr().err
