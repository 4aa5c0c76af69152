"""`test`: win rates of a model against a baseline's outputs, through the real command line."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from arena_lightning.cli import main
from arena_lightning.tasks.travel.task import TravelTask
from tests.judges.misbehaving_server import MisbehavingServer
from tests.training.tool_server import ToolServer, answer

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning"),
]


@pytest.fixture(autouse=True)
def no_wandb(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")


def held_out():
    """The prompts of `prompts_per_subtask: 1`."""
    first = {}
    for prompt in TravelTask().prompts("test"):
        first.setdefault(prompt.subtask, prompt)
    return list(first.values())


def report_of(tmp_path, number="001"):
    folder = tmp_path / "runs" / "test" / number / "evaluation"
    (record,) = [json.loads(line) for line in (folder / "report.jsonl").read_text().splitlines()]
    return record, folder


def run_test(config, *arguments):
    return main(["test", "--config", str(config), *arguments])


def test_references_are_the_baseline_and_every_case_is_on_file(tiny_config, tmp_path, capsys):
    assert run_test(tiny_config()) == 0
    record, folder = report_of(tmp_path)
    assert record["prompts"] == 5 and record["baseline_valid_fraction"] == 1.0
    (judge,) = record["judges"]
    # A random model says nothing of use: it loses every case.
    assert (judge["overall"]["wins"], judge["overall"]["losses"], judge["failed"]) == (0, 5, 0)
    assert judge["overall"]["win_rate"] == 0.0 and judge["overall"]["interval"] == "wilson"
    assert set(judge["by_subtask"]) == {prompt.subtask for prompt in held_out()}
    assert "path_breadth" in judge["by_dimension"] and "answer_clarity" in judge["by_dimension"]
    cases = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines()]
    assert [case["prompt_id"] for case in cases] == [prompt.prompt_id for prompt in held_out()]
    assert all(case["candidate"] < case["baseline"] for case in cases)
    printed = capsys.readouterr().out
    assert "win rate" in printed and "0.0% [0.0%, 43.4%]" in printed  # Wilson, 0 of 5
    assert "not an LLM" in printed


def test_its_own_outputs_as_a_file_tie_every_case(tiny_config, tmp_path, capsys):
    assert run_test(tiny_config()) == 0
    _, folder = report_of(tmp_path)
    baseline = {"kind": "file", "path": str(folder / "candidate.jsonl")}
    assert run_test(tiny_config(evaluation__init_args__baseline=baseline)) == 0
    record, _ = report_of(tmp_path, "002")
    overall = record["judges"][0]["overall"]
    assert (overall["wins"], overall["ties"], overall["losses"]) == (0, 5, 0)
    assert overall["win_rate"] is None
    assert "undecided" in capsys.readouterr().out


def test_a_file_of_plain_answers_may_name_prompts_by_query(tiny_config, tmp_path):
    path = tmp_path / "answers.jsonl"
    lines = [json.dumps({"query": p.query, "answer": ""}) for p in held_out()]
    path.write_text("\n".join(lines))
    config = tiny_config(evaluation__init_args__baseline={"kind": "file", "path": str(path)})
    assert run_test(config) == 0
    record, _ = report_of(tmp_path)
    assert record["baseline_valid_fraction"] == 0.0


def test_another_checkpoint_is_sampled_with_its_own_weights(tiny_config, tiny_model, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for file in tiny_model.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    weights = load_file(other / "model.safetensors")
    torch.manual_seed(0)
    changed = {name: tensor + torch.randn_like(tensor) for name, tensor in weights.items()}
    save_file(changed, other / "model.safetensors", metadata={"format": "pt"})
    texts = {}
    for name, path in (("same", tiny_model), ("other", other)):
        baseline = {"kind": "checkpoint", "path": str(path)}
        assert run_test(tiny_config(evaluation__init_args__baseline=baseline)) == 0
        number = f"{len(texts) + 1:03d}"
        _, folder = report_of(tmp_path, number)
        texts[name] = (folder / "candidate.jsonl").read_text()
    # The candidate is at its own weights again after the baseline was sampled.
    assert texts["same"] == texts["other"]


def test_the_last_checkpoint_of_a_run_is_what_is_tested(tiny_config, tmp_path):
    config = tiny_config(data__init_args__num_steps=2, evaluation__init_args__every_n_steps=2)
    assert main(["fit", "--config", str(config)]) == 0
    assert run_test(config) == 0
    assert run_test(config, "--ckpt_path", "last") == 0
    assert main(["fit", "--config", str(config), "--run_dir", str(tmp_path / "other")]) == 0
    trained = tmp_path / "runs" / "001" / "model"
    assert run_test(config, "--model.init_args.policy", str(trained)) == 0
    start, last, exported = (
        (report_of(tmp_path, number)[1] / "candidate.jsonl").read_text()
        for number in ("001", "002", "003")
    )
    assert start != last == exported


def test_two_judges_are_reported_each_and_as_their_mean(tiny_config, tmp_path, capsys):
    quiet = {"kind": "travel", "noise": {"enabled": False}}
    noisy = {"kind": "travel", "seed": 1}
    assert run_test(tiny_config(evaluation__init_args__judges=[quiet, noisy])) == 0
    record, folder = report_of(tmp_path)
    rates = [judge["overall"]["win_rate"] for judge in record["judges"]]
    assert len({judge["name"] for judge in record["judges"]}) == 2
    assert record["mean"]["win_rate"] == sum(rates) / 2
    assert len((folder / "cases.jsonl").read_text().splitlines()) == 10
    assert "mean of 2 judges" in capsys.readouterr().out


def test_a_judge_that_fails_leaves_no_case_and_is_counted(tiny_config, tmp_path):
    failing = {"kind": "travel", "noise": {"failure_rate": 0.4}, "seed": 3}
    assert run_test(tiny_config(evaluation__init_args__judges=[failing])) == 0
    record, folder = report_of(tmp_path)
    (judge,) = record["judges"]
    overall = judge["overall"]
    assert 0 < judge["failed"] < 5
    assert overall["wins"] + overall["ties"] + overall["losses"] == 5 - judge["failed"]
    cases = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines()]
    assert sum("error" in case for case in cases) == judge["failed"]


def test_an_llm_on_the_same_tools_is_a_baseline_and_paid_once(tiny_config, tmp_path):
    with ToolServer(lambda body: answer("I can't say.")) as server:
        llm = {"model": "hosted_vllm/m", "api_base": server.url}
        config = tiny_config(evaluation__init_args__baseline={"kind": "llm", "llm": llm})
        assert run_test(config) == 0
        assert run_test(config) == 0
        assert len(server.bodies) == 5
        llm["temperature"] = 0.1
        config = tiny_config(evaluation__init_args__baseline={"kind": "llm", "llm": llm})
        assert run_test(config) == 0
        assert len(server.bodies) == 10
    first, again = (report_of(tmp_path, number)[0] for number in ("001", "002"))
    assert first == again
    assert first["baseline"] == "hosted_vllm/m" and first["baseline_valid_fraction"] == 1.0


def test_an_llm_judges_verdicts_are_found_again_and_its_budget_is_the_tests_own(
    tiny_config, tmp_path
):
    with MisbehavingServer() as server:
        llm = {"model": "hosted_vllm/tiny", "api_base": server.url, "max_calls": 10}
        config = tiny_config(evaluation__init_args__judges=[{"kind": "llm", "llm": llm}])
        assert run_test(config) == 0
        assert server.num_requests == 10  # 5 cases in both orders
        assert run_test(config) == 0
        assert server.num_requests == 10
        # Other candidates: other questions, within a budget of their own.
        assert run_test(config, "--evaluation.init_args.seed", "1") == 0
        assert server.num_requests == 20
    first, again = (report_of(tmp_path, number)[0]["judges"][0] for number in ("001", "002"))
    assert first["overall"] == again["overall"]
    assert again["metrics"]["arena/cached_calls"] == 10


@pytest.mark.parametrize(
    ("baseline", "message"),
    [
        ({"kind": "file"}, "must have a path"),
        ({"kind": "file", "path": "nowhere.jsonl"}, "nowhere.jsonl"),
        ({"kind": "checkpoint", "path": "nowhere"}, "existing folder"),
        ({"kind": "llm"}, "must have a model"),
    ],
)
def test_a_baseline_that_cannot_work_is_one_message(tiny_config, capsys, baseline, message):
    assert run_test(tiny_config(evaluation__init_args__baseline=baseline)) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_a_faulty_file_of_outputs_names_its_line(tiny_config, tmp_path, capsys):
    path = tmp_path / "answers.jsonl"
    lines = [json.dumps({"prompt_id": p.prompt_id, "answer": "x"}) for p in held_out()]
    for bad, message in (
        ('{"answer": "x"}', "line 3"),
        ("{", "line 3"),
        (lines[0], "after line 1"),
        ("", "got none for 1 of 5"),
    ):
        path.write_text("\n".join([*lines[:2], bad, *lines[3:]]))
        config = tiny_config(evaluation__init_args__baseline={"kind": "file", "path": str(path)})
        assert run_test(config) == 2
        assert message in capsys.readouterr().err


def test_a_config_without_evaluation_cannot_be_tested(tiny_config, capsys):
    assert run_test(tiny_config(evaluation=None)) == 2
    assert "`evaluation`" in capsys.readouterr().err


def test_prompts_of_ones_own_need_references_and_a_judge_that_can_read_them(
    tiny_config, tmp_path, capsys
):
    path = tmp_path / "prompts.jsonl"
    path.write_text(json.dumps({"query": "Where to?"}))
    assert run_test(tiny_config(evaluation__init_args__prompts_file=str(path))) == 2
    assert "machine-readable `needs`" in capsys.readouterr().err
    judge = {"kind": "llm", "llm": {"model": "hosted_vllm/x", "api_base": "http://127.0.0.1:1"}}
    config = tiny_config(
        evaluation__init_args__prompts_file=str(path), evaluation__init_args__judges=[judge]
    )
    assert run_test(config) == 2
    assert "must have a reference" in capsys.readouterr().err
