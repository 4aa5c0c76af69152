"""Step records survive a round trip, and a broken one says where."""

import pytest

from arena_lightning.errors import RecordError
from arena_lightning.training.records import (
    read_jsonl,
    trajectory_from_record,
    trajectory_to_record,
    write_jsonl,
)
from arena_lightning.types import Message, Segment, ToolCall, Trajectory

TRAJECTORY = Trajectory(
    "p1",
    (
        Message("assistant", "", "look", (ToolCall("weather", {"city": "Lyon"}, "c1"),)),
        Message("tool", "rain", name="weather", is_error=True),
        Message("assistant", "Take an umbrella, 伞."),
    ),
    (
        Segment("prompt", (1, 2)),
        Segment("policy", (3, 4), (-0.5, -0.25), 7),
        Segment("tool", (5,)),
    ),
    "answered",
    3,
)


def test_a_trajectory_survives_a_round_trip_through_a_file(tmp_path):
    path = tmp_path / "steps" / "one.jsonl"
    write_jsonl(path, [trajectory_to_record(TRAJECTORY)])
    assert [trajectory_from_record(r) for r in read_jsonl(path)] == [TRAJECTORY]


def test_a_broken_line_is_named(tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(RecordError, match=r"one\.jsonl, line 2"):
        list(read_jsonl(path))


def test_an_unwritable_folder_is_an_error_for_people(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(RecordError, match="must be writable"):
        write_jsonl(blocker / "steps.jsonl", [])
