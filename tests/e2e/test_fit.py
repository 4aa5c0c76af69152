"""`fit` end to end on a tiny model: it trains, leaves its records, and resumes exactly."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

from arena_lightning.cli import main

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning"),
]


@pytest.fixture(autouse=True)
def no_wandb(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")


def step_records(run_dir):
    return {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted((run_dir / "steps").glob("*.jsonl"))
    }


def prompts_of(run_dir):
    return {k: [r["prompt"]["prompt_id"] for r in v] for k, v in step_records(run_dir).items()}


def test_fit_trains_and_leaves_its_records(tiny_config, tiny_model, tmp_path, capsys):
    assert main(["fit", "--config", str(tiny_config())]) == 0
    run_dir = tmp_path / "runs" / "001"
    before, after = (
        load_file(folder / "model.safetensors") for folder in (tiny_model, run_dir / "model")
    )
    assert any(not torch.equal(before[name], after[name]) for name in before)
    records = step_records(run_dir)
    assert list(records) == [f"step-{n:06d}" for n in range(1, 5)]
    for step, groups in enumerate(records.values()):
        for group in groups:
            assert len(group["trajectories"]) == 3
            assert sum(group["advantages"]) == pytest.approx(0, abs=1e-9)
            versions = {
                segment["policy_version"]
                for trajectory in group["trajectories"]
                for segment in trajectory["segments"]
                if segment["emitter"] == "policy"
            }
            assert versions == {step}
    with (run_dir / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert float(rows[-1]["sync/logprob_abs_mean"]) < 1e-3
    assert (run_dir / "config.yaml").exists()
    printed = capsys.readouterr().out
    assert "not an LLM" in printed
    assert "step 4/4" in printed


def test_killed_and_resumed_run_ends_like_the_unbroken_one(tiny_config, tmp_path):
    config = tiny_config()
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    # Each in a process of its own: other tests leave torch with another number of threads.
    command = [sys.executable, "-m", "arena_lightning", "fit", "--config", str(config)]
    subprocess.run([*command, "--run_dir", str(whole)], check=True, capture_output=True)
    process = subprocess.Popen(
        [*command, "--run_dir", str(broken)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    third = broken / "001" / "steps" / "step-000003.jsonl"
    deadline = time.monotonic() + 240
    while not third.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert third.exists()
    assert not (broken / "001" / "model").exists()
    resume = [*command, "--run_dir", str(broken), "--ckpt_path", "last"]
    subprocess.run(resume, check=True, capture_output=True)
    assert prompts_of(broken / "001") == prompts_of(whole / "001")
    first = load_file(whole / "001" / "model" / "model.safetensors")
    second = load_file(broken / "001" / "model" / "model.safetensors")
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_ctrl_c_ends_with_one_message_and_the_run_can_be_resumed(tiny_config, tmp_path):
    def command(num_steps):
        config = tiny_config(data__init_args__num_steps=num_steps, evaluation=None)
        return [sys.executable, "-m", "arena_lightning", "fit", "--config", str(config)]

    process = subprocess.Popen(
        command(10_000),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs deaf to SIGINT, and children inherit it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    run_dir = tmp_path / "runs" / "001"
    deadline = time.monotonic() + 240
    while not (run_dir / "steps" / "step-000003.jsonl").exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in error and "--ckpt_path last" in error
    assert not (run_dir / "model").exists()
    (last,) = [int(path.stem[-6:]) for path in (run_dir / "checkpoints").glob("step-*.ckpt")]
    resumed = subprocess.run(
        [*command(last + 2), "--ckpt_path", "last"], capture_output=True, text=True
    )
    assert resumed.returncode == 0, resumed.stderr
    assert list(step_records(run_dir))[-1] >= f"step-{last + 2:06d}"
    assert (run_dir / "model").exists()
    assert not list((tmp_path / "runs").glob("002"))


def test_a_checkpoint_of_another_recipe_is_refused(tiny_config, tmp_path, capsys):
    config = tiny_config(data__init_args__num_steps=1)
    assert main(["fit", "--config", str(config)]) == 0
    other = tiny_config(model__init_args__learning_rate=5e-3, data__init_args__num_steps=2)
    assert main(["fit", "--config", str(other), "--ckpt_path", "last"]) == 2
    assert "same recipe" in capsys.readouterr().err


def test_shuffled_advantages_are_a_permutation_within_each_group(tiny_config, tmp_path):
    config = tiny_config(data__init_args__num_steps=1, arena__init_args__group_size=6)
    assert main(["fit", "--config", str(config)]) == 0
    config = tiny_config(
        data__init_args__num_steps=1,
        arena__init_args__group_size=6,
        arena__init_args__shuffle_advantages=True,
    )
    assert main(["fit", "--config", str(config)]) == 0
    plain, shuffled = (
        step_records(tmp_path / "runs" / name)["step-000001"] for name in ("001", "002")
    )
    for one, other in zip(plain, shuffled, strict=True):
        assert one["ranks"] == other["ranks"]
        assert sorted(one["advantages"]) == pytest.approx(sorted(other["advantages"]))
    assert any(a["advantages"] != b["advantages"] for a, b in zip(plain, shuffled, strict=True))
