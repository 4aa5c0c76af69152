"""Each mistake a user can make in a config is one message that names key, value and remedy."""

import pytest

from arena_lightning.cli import main

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def run(config, capsys, *arguments):
    """Return (exit code, what was printed to stderr) of `fit`."""
    try:
        code = main(["fit", "--config", str(config), *arguments])
    except SystemExit as stop:  # the argument parser's own way out
        code = stop.code
    return code, capsys.readouterr().err


def test_an_unknown_key_is_named(tiny_config, capsys):
    code, error = run(tiny_config(arena__init_args__group_sizes=4), capsys)
    assert code == 2
    assert "group_sizes" in error


def test_a_wrong_type_is_named(tiny_config, capsys):
    code, error = run(tiny_config(arena__init_args__group_size="many"), capsys)
    assert code == 2
    assert "group_size" in error
    assert "many" in error


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arena__init_args__group_size": 1}, r"group_size must be at least 2, got 1"),
        ({"arena__init_args__topology": "ladder"}, r"round_robin.*got 'ladder'"),
        ({"arena__init_args__temperature": 0.0}, r"temperature must be above 0"),
        ({"model__init_args__policy": "/no/such/model"}, r"/no/such/model"),
        ({"model__init_args__learning_rate": -1.0}, r"learning_rate must be above 0, got -1"),
        ({"model__init_args__updates_per_rollout": 0}, r"updates_per_rollout must be at least 1"),
        ({"data__init_args__num_steps": 0}, r"num_steps must be at least 1, got 0"),
        ({"data__init_args__subtasks": ["moon_travel"]}, r"moon_travel"),
        ({"cold_start": "/no/such.yaml"}, r"/no/such\.yaml"),
    ],
)
def test_a_bad_value_is_one_message_before_anything_is_loaded(
    tiny_config, capsys, monkeypatch, change, message
):
    import re

    monkeypatch.setattr(
        "arena_lightning.training.policy_module.load_policy",
        lambda *_, **__: pytest.fail("a model was loaded"),
    )
    code, error = run(tiny_config(**change), capsys)
    assert code == 2
    assert re.search(message, error, re.DOTALL)
    assert "Traceback" not in error


def test_a_malformed_prompts_file_names_its_line(tiny_config, tmp_path, capsys):
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"query": "a"}\n' * 16 + "{oops\n")
    code, error = run(tiny_config(data__init_args__prompts_file=str(path)), capsys)
    assert code == 2
    assert "line 17" in error


def test_a_model_that_is_no_causal_lm_is_named(tiny_config, tmp_path, capsys):
    folder = tmp_path / "bert"
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["BertForMaskedLM"]}')
    code, error = run(tiny_config(model__init_args__policy=str(folder)), capsys)
    assert code == 2
    assert "BertForMaskedLM" in error


def test_an_unwritable_run_dir_is_named(tiny_config, tmp_path, capsys):
    blocker = tmp_path / "file"
    blocker.write_text("")
    code, error = run(tiny_config(), capsys, "--run_dir", str(blocker / "runs"))
    assert code == 2
    assert "run_dir must be a writable folder" in error


def test_vllm_chosen_but_missing_says_how_to_install_it(tiny_config, capsys, monkeypatch):
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "vllm" else real(name, *a)
    )
    engine = {"class_path": "arena_lightning.rollout.vllm_engine.VLLMEngine"}
    code, error = run(tiny_config(arena__init_args__engine=engine), capsys)
    assert code == 2
    assert "arena_lightning[cpu]" in error


def test_resuming_without_a_run_says_so(tiny_config, capsys):
    code, error = run(tiny_config(), capsys, "--ckpt_path", "last")
    assert code == 2
    assert "needs a run to go on with" in error


def test_queries_that_the_offline_rubric_cannot_judge_are_refused_at_once(
    tiny_config, tmp_path, capsys
):
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"query": "Plan my week in Lyon"}\n')
    code, error = run(tiny_config(data__init_args__prompts_file=str(path)), capsys)
    assert code == 2
    assert "LLM judge" in error


def test_several_processes_are_refused_before_any_is_started(tiny_config, tmp_path, capsys):
    config = tiny_config(trainer={"accelerator": "cpu", "devices": 2, "strategy": "ddp"})
    assert main(["fit", "--config", str(config)]) == 2
    assert "must have one process so far, got 2" in capsys.readouterr().err
    assert not (tmp_path / "runs" / "001" / "steps").exists()
