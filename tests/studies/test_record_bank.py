import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from arena_lightning.analysis.bank import load_bank
from arena_lightning.analysis.judging import report_judging
from arena_lightning.rng import generator_for
from arena_lightning.tasks.travel.diligence import Diligence
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.training.records import (
    prompt_to_record,
    read_jsonl,
    trajectory_to_record,
    write_jsonl,
)
from arena_lightning.types import Trajectory
from studies import record_bank

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run's folder with two steps of two groups of four experts each."""
    folder = tmp_path_factory.mktemp("run")
    task = TravelTask(seed=3)
    prompts = task.prompts("train", count=4)
    records = []
    for number, prompt in enumerate(prompts):
        trajectories = []
        for index in range(4):
            rng = generator_for(0, "test/expert", number, index)
            messages = task.expert_messages(prompt, Diligence.sample(rng), index)
            trajectories.append(Trajectory(prompt.prompt_id, tuple(messages), index=index))
        records.append(
            {
                "step": number // 2 + 1,
                "prompt": prompt_to_record(prompt),
                "trajectories": [trajectory_to_record(one) for one in trajectories],
            }
        )
    for step in (1, 2):
        chosen = [record for record in records if record["step"] == step]
        write_jsonl(folder / "steps" / f"step-{step:06d}.jsonl", chosen)
    (folder / "config.yaml").write_text("data:\n  init_args:\n    seed: 3\n")
    return folder


def call(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["record_bank.py", *map(str, words)])
    code = record_bank.main()
    told = capsys.readouterr()
    return code, told.out + told.err


def test_the_rubric_alone_is_consistent_and_is_the_truth(run, tmp_path, monkeypatch, capsys):
    out = tmp_path / "bank.jsonl"
    words = ("--run", run, "--out", out, "--judge", "travel")
    code, told = call(monkeypatch, capsys, *words)
    assert code == 0 and "4 groups of [4]" in told and "4 new with 48 calls (0 failed)" in told
    bank = load_bank(out)
    assert report_judging(bank.batch()).flip_rate == 0
    for group in bank.groups:
        assert len(set(group.truth)) > 1, "experts of mixed diligence differ"
        off = ~np.eye(4, dtype=bool)
        shown = np.broadcast_to(group.truth[:, None], (4, 4))
        np.testing.assert_array_equal(group.score_first[off], shown[off])
        np.testing.assert_array_equal(group.score_second[off], shown.T[off])
        assert len(group.dimensions) == 7
    code, told = call(monkeypatch, capsys, *words)
    assert code == 0 and "0 new with 0 calls (0 failed), 4 were there" in told


def test_simulated_noise_moves_scores_but_not_the_truth(run, tmp_path, monkeypatch, capsys):
    banks = {}
    for judge in record_bank.JUDGES:
        out = tmp_path / f"{judge}.jsonl"
        words = ("--judge", judge, "--steps", 2, "--group_size", 3)
        assert call(monkeypatch, capsys, "--run", run, "--out", out, *words)[0] == 0
        banks[judge] = load_bank(out)
    clean, noisy = (banks[name].batch() for name in record_bank.JUDGES)
    assert clean.score_first.shape == (2, 3, 3)
    np.testing.assert_array_equal(clean.truth, noisy.truth)
    assert not np.array_equal(clean.score_first, noisy.score_first, equal_nan=True)
    assert "not an LLM" in banks["travel_noisy"].judge and "seed 0" in banks["travel_noisy"].judge


def test_another_seed_is_another_judge_and_is_not_mixed_in(run, tmp_path, monkeypatch, capsys):
    words = ("--run", run, "--out", tmp_path / "bank.jsonl", "--max_groups", 1)
    assert call(monkeypatch, capsys, *words)[0] == 0
    code, told = call(monkeypatch, capsys, *words, "--judge_seed", 1)
    assert code == 1 and "a bank must be of one judge" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--group_size", 1), "--group_size must be at least 2, got 1"),
        (("--max_groups", 0), "--max_groups must be at least 1, got 0"),
        (("--group_size", 16), r"at least 16 trajectories, got groups of \[4\]"),
        (("--steps", 9), r"records steps/step-\*.jsonl of steps \[9\], got none"),
    ],
)
def test_a_wrong_choice_is_told(run, tmp_path, monkeypatch, capsys, words, message):
    out = tmp_path / "bank.jsonl"
    code, told = call(monkeypatch, capsys, "--run", run, "--out", out, *words)
    assert code == 1 and not out.exists()
    assert re.search(message, told), told


def test_wrong_records_are_named_by_file_and_line(run, tmp_path, monkeypatch, capsys):
    lines = list(read_jsonl(run / "steps" / "step-000001.jsonl"))
    bad = tmp_path / "bad"
    (bad / "steps").mkdir(parents=True)
    path = bad / "steps" / "step-000001.jsonl"

    def told(second, *words):
        path.write_text("\n".join(map(json.dumps, [lines[0], second])))
        return call(monkeypatch, capsys, "--run", bad, "--out", tmp_path / "bank.jsonl", *words)

    assert "KeyError('prompt')" in told({"step": 1})[1]
    code, text = told(lines[1] | {"prompt": lines[1]["prompt"] | {"needs": {}}})
    assert code == 1 and "machine-readable needs" in text and "step-000001.jsonl:2" in text
    code, text = told(lines[1])
    assert code == 1 and "Give it with --world_seed" in text
    assert told(lines[1], "--world_seed", 3)[0] == 0


def test_nothing_heavy_is_imported():
    code = (
        "import sys, studies.record_bank, arena_lightning.analysis.recording, "
        "arena_lightning.training.records\n"
        "print([m for m in ('torch', 'lightning', 'litellm') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert found.stdout.strip() == "[]", found.stderr
