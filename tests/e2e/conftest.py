"""A tiny run: the real command line, module, callback, arena and engine on a random model."""

import logging
from pathlib import Path

import pytest
import yaml

from tests.tiny_model import write_tiny_model


@pytest.fixture(autouse=True)
def quiet_logging(monkeypatch):
    """Lightning's log handlers keep the stream of the test that first imported it."""
    monkeypatch.setattr(logging, "raiseExceptions", False)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    return write_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture
def tiny_config(tmp_path, tiny_model):
    """Return a function that writes a config with changes and returns its path."""

    def write(**changes) -> Path:
        config = {
            "run_dir": str(tmp_path / "runs"),
            "checkpoint_every_n_steps": 1,
            "trainer": {"accelerator": "cpu"},
            "model": {
                "class_path": "arena_lightning.training.module.ArenaModule",
                "init_args": {
                    "policy": str(tiny_model),
                    "learning_rate": 1e-3,
                    "warmup_steps": 1,
                    "micro_batch_tokens": 4096,
                    "precision": "float32",
                    "loss": {"kl_coef": 0.01},
                },
            },
            "data": {
                "class_path": "arena_lightning.training.data.PromptData",
                "init_args": {"groups_per_step": 2, "num_steps": 4, "num_prompts": 7},
            },
            "arena": {
                "class_path": "arena_lightning.training.arena_callback.ArenaCallback",
                "init_args": {
                    "engine": {
                        "class_path": "arena_lightning.rollout.transformers_engine."
                        "TransformersEngine",
                        "init_args": {"device": "cpu"},
                    },
                    "group_size": 3,
                    "limits": {"max_turns": 2, "max_tokens_per_turn": 8},
                },
            },
            "evaluation": {
                "class_path": "arena_lightning.training.evaluation.EvaluationCallback",
                "init_args": {"every_n_steps": 2, "prompts_per_subtask": 1},
            },
        }
        for dotted, value in changes.items():
            place = config
            *parents, last = dotted.split("__")
            for key in parents:
                place = place[key]
            place[last] = value
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(config))
        return path

    return write
