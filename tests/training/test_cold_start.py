"""A cold start is found by its recipe's content, trained once, and resumed when it was killed."""

import subprocess

import pytest

from arena_lightning.errors import ConfigError
from arena_lightning.training.cold_start import ensure_cold_start, recipe_address

RECIPE = "run_dir: runs/a\nmodel:\n  init_args:\n    learning_rate: 1.0e-3\n"


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "sft.yaml"
    path.write_text(RECIPE)
    return path


@pytest.fixture
def trainings(monkeypatch):
    """Record the commands that would train, and leave a model behind like a finished one."""
    commands = []

    def run(command, check):
        commands.append(command)
        target = command[command.index("--model.init_args.export_dir") + 1]
        from pathlib import Path

        Path(target).mkdir(parents=True)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_comments_and_place_do_not_change_the_address_but_settings_do(recipe):
    first = recipe_address(recipe)
    recipe.write_text("# a comment\n" + RECIPE.replace("runs/a", "runs/b"))
    assert recipe_address(recipe) == first
    recipe.write_text(RECIPE.replace("1.0e-3", "2.0e-3"))
    assert recipe_address(recipe) != first


def test_it_is_trained_once(recipe, trainings, tmp_path):
    first = ensure_cold_start(recipe, tmp_path / "cold")
    assert ensure_cold_start(recipe, tmp_path / "cold") == first
    assert len(trainings) == 1
    assert "--ckpt_path" not in trainings[0]


def test_a_killed_training_is_resumed(recipe, trainings, tmp_path):
    home = tmp_path / "cold" / recipe_address(recipe)
    checkpoint = home / "run" / "001" / "checkpoints" / "last.ckpt"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_text("")
    ensure_cold_start(recipe, tmp_path / "cold")
    assert trainings[0][-2:] == ["--ckpt_path", "last"]


def test_a_failed_training_says_which_recipe(recipe, monkeypatch, tmp_path):
    monkeypatch.setattr(
        subprocess, "run", lambda command, check: subprocess.CompletedProcess(command, 1)
    )
    with pytest.raises(ConfigError, match=r"exit code 1 \(.*sft\.yaml\)"):
        ensure_cold_start(recipe, tmp_path / "cold")


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [\n"])
def test_a_recipe_that_is_no_mapping_is_refused(recipe, text):
    recipe.write_text(text)
    with pytest.raises(ConfigError, match="cold_start must name a"):
        recipe_address(recipe)
