"""The table for W&B holds each group's best and worst trajectory, under a key of its step."""

import numpy as np

from arena_lightning.training.sample_table import COLUMNS, log_sample_table
from arena_lightning.types import Group, Message, Prompt, ToolCall, Trajectory


class Recorder:
    def __init__(self):
        self.tables = {}

    def log_table(self, key, columns, data):
        self.tables[key] = (columns, data)


class Result:
    class standings:
        ranks = np.array([1.0, 0.0, 2.0])
        scores = np.array([12.0, 15.0, 3.0])


def test_best_and_worst_are_shown_with_their_calls():
    said = (
        Message("assistant", "", tool_calls=(ToolCall("weather", {"city": "Lyon"}),)),
        Message("tool", "rain", name="weather"),
        Message("assistant", "Take an umbrella."),
    )
    trajectories = tuple(Trajectory("p", said if i == 1 else (), index=i) for i in range(3))
    recorder = Recorder()
    group = Group(Prompt("p", "Lyon?", "direction"), trajectories)
    log_sample_table([recorder, object()], 7, [group], [Result()])
    columns, rows = recorder.tables["samples/step_000007"]
    assert columns == COLUMNS
    assert [row[3:6] for row in rows] == [["best", 0.0, 15.0], ["worst", 2.0, 3.0]]
    assert rows[0][-1] == "-> weather(city=Lyon)\n[weather] rain\nTake an umbrella."
