import asyncio
import json

import numpy as np
import pytest

from arena_lightning.analysis.bank import load_bank
from arena_lightning.analysis.recording import GroupToJudge, record_groups
from arena_lightning.errors import DataError, JudgeError
from arena_lightning.types import Group, Message, Prompt, Trajectory, Verdict


def group(name, size=4):
    prompt = Prompt(name, f"query of {name}")
    said = [(Message("assistant", f"answer {i} to {name}"),) for i in range(size)]
    return GroupToJudge(
        name,
        Group(prompt, tuple(Trajectory(name, m, index=i) for i, m in enumerate(said))),
    )


class FussyJudge:
    """Scores 10 first + second in one dimension; fails on (2, 0); may break down after a while."""

    name = "fussy"

    def __init__(self, breaks_after=10**9):
        self.asked = []
        self.breaks_after = breaks_after

    async def compare(self, prompt, first, second):
        if len(self.asked) >= self.breaks_after:
            raise RuntimeError("power cut")
        self.asked.append((prompt.prompt_id, first.index, second.index))
        # Later groups answer sooner, so that they end out of order.
        for _ in range(50 - 10 * int(prompt.prompt_id[-1])):
            await asyncio.sleep(0)
        if (first.index, second.index) == (2, 0):
            raise JudgeError("no verdict")
        own, other = 10.0 * first.index + second.index, 0.5
        return Verdict(own, other, {"tone": own}, {"tone": other})


def record(path, groups, judge, label="fussy", **more):
    return asyncio.run(record_groups(path, groups, judge, label, **more))


def test_a_bank_holds_what_the_judge_said_about_every_ordered_pair(tmp_path):
    path, judge = tmp_path / "bank.jsonl", FussyJudge()
    done = record(path, [group("g1"), group("g2", 3)], judge, truth=lambda g: np.arange(len(g)))
    assert (done.num_new, done.num_known, done.num_calls, done.num_failed) == (2, 0, 18, 2)
    assert sorted(judge.asked) == sorted(set(judge.asked)) and len(judge.asked) == 12 + 6
    bank = load_bank(path)
    assert [one.group_id for one in bank.groups] == ["g1", "g2"] and bank.judge == "fussy"
    for one in bank.groups:
        assert one.truth.tolist() == list(range(one.size))
        for i in range(one.size):
            for j in range(one.size):
                if i == j or (i, j) == (2, 0):
                    assert np.isnan(one.score_first[i, j]) and np.isnan(one.score_second[i, j])
                    continue
                assert (one.score_first[i, j], one.score_second[i, j]) == (10 * i + j, 0.5)
                first, second = one.dimensions["tone"]
                assert (first[i, j], second[i, j]) == (10 * i + j, 0.5)


def test_equal_trajectories_are_asked_about_like_any_other(tmp_path):
    twins = group("g1", 3)
    same = tuple(Trajectory("g1", twins.group.trajectories[0].messages, index=i) for i in range(3))
    judge = FussyJudge()
    record(tmp_path / "b.jsonl", [GroupToJudge("g1", Group(twins.group.prompt, same))], judge)
    assert len(judge.asked) == 6


def test_an_interrupted_recording_goes_on_and_ends_as_if_undisturbed(tmp_path):
    groups = [group(f"g{n}") for n in range(4)]
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    record(whole, groups, FussyJudge(), concurrency=4)
    with pytest.raises(RuntimeError, match="power cut"):
        record(cut, groups, FussyJudge(breaks_after=30), concurrency=4)
    num_saved = len(cut.read_text().splitlines())
    assert 0 < num_saved < 4
    with cut.open("a") as file:  # as a kill in the middle of a line leaves it
        file.write(whole.read_text().splitlines()[num_saved][:100])
    judge = FussyJudge()
    done = record(cut, groups, judge, concurrency=4)
    assert (done.num_known, done.num_new) == (num_saved, 4 - num_saved)
    assert {name for name, _, _ in judge.asked} == {f"g{n}" for n in range(num_saved, 4)}
    assert cut.read_bytes() == whole.read_bytes()


def test_a_recording_goes_on_with_its_own_bank_only(tmp_path):
    path = tmp_path / "bank.jsonl"
    record(path, [group("g1")], FussyJudge())
    before = path.read_bytes()
    with pytest.raises(DataError, match="one judge, got 'other' for a file of 'fussy'"):
        record(path, [group("g1")], FussyJudge(), label="other")
    with pytest.raises(DataError, match=r"keep its size.*got 3 trajectories and 4 players"):
        record(path, [group("g1", 3)], FussyJudge())
    assert path.read_bytes() == before
    notes = tmp_path / "notes.txt"
    notes.write_text("first\nlast line without an end")
    with pytest.raises(DataError, match=r"go on with a bank only.*left as it is"):
        record(notes, [group("g1")], FussyJudge())
    assert notes.read_text() == "first\nlast line without an end"


def test_lines_are_valid_json_without_nan(tmp_path):
    path = tmp_path / "bank.jsonl"
    record(path, [group("g1")], FussyJudge())
    (line,) = path.read_text().splitlines()
    failed = [m for m in json.loads(line)["matches"] if m["winner"] == "failed"]
    assert len(failed) == 1 and "NaN" not in line
    assert (failed[0]["a"], failed[0]["b"], failed[0]["order"]) == (0, 2, "ba")
