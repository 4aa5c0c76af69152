"""`fit` with an LLM judge, over HTTP, against a loopback server that misbehaves on command."""

import csv
import json

import pytest

from arena_lightning.cli import main
from arena_lightning.judges.ledger import Ledger
from tests.judges.misbehaving_server import MisbehavingServer

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning"),
]


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "sk-not-to-be-written-down")


def judge_at(url, **changes):
    llm = {
        "model": "hosted_vllm/tiny",
        "api_base": url,
        "usd_per_million_prompt_tokens": 1.0,
        "usd_per_million_completion_tokens": 2.0,
    }
    return {"kind": "llm", "llm": llm | changes}


def metrics_of(run_dir):
    with (run_dir / "metrics.csv").open() as file:
        return [row for row in csv.DictReader(file) if row.get("arena/judge_calls")]


def test_fit_trains_on_an_llm_judges_verdicts(tiny_config, tmp_path):
    with MisbehavingServer() as server:
        config = tiny_config(
            arena__init_args__judge=judge_at(server.url),
            evaluation=None,
            data__init_args__num_steps=2,
        )
        assert main(["fit", "--config", str(config)]) == 0
        asked = server.num_requests
    run_dir = tmp_path / "runs" / "001"
    rows = metrics_of(run_dir)
    assert sum(float(row["arena/judge_calls"]) for row in rows) == asked > 0
    assert all(float(row["arena/failed_fraction"]) == 0 for row in rows)
    assert all(float(row["arena/judge_p95_s"]) > 0 for row in rows)
    assert all(float(row["arena/judge_concurrency"]) > 0 for row in rows)
    assert float(rows[-1]["arena/run_judge_usd"]) == pytest.approx(
        sum(float(row["arena/judge_usd"]) for row in rows)
    )
    ledger = Ledger(run_dir / "verdicts.sqlite")
    assert len(list(ledger.entries())) == asked
    ledger.close()
    written = b"".join(p.read_bytes() for p in run_dir.rglob("*") if p.is_file())
    assert b"sk-not-to-be-written-down" not in written


@pytest.mark.parametrize(
    ("ranking", "calls_a_group"), [("pointwise", 3), ("pointwise_ranks", 3), ("listwise", 1)]
)
def test_baselines_by_scores_train_on_the_same_judge(tiny_config, tmp_path, ranking, calls_a_group):
    with MisbehavingServer() as server:
        config = tiny_config(
            arena__init_args__judge=judge_at(server.url),
            arena__init_args__ranking=ranking,
            evaluation=None,
            data__init_args__num_steps=1,
        )
        assert main(["fit", "--config", str(config)]) == 0
        assert server.num_requests == 2 * calls_a_group
    run_dir = tmp_path / "runs" / "001"
    (row,) = metrics_of(run_dir)
    assert float(row["arena/judge_calls"]) == 2 * calls_a_group
    assert float(row["arena/failed_fraction"]) == 0
    for line in (run_dir / "steps" / "step-000001.jsonl").read_text().splitlines():
        group = json.loads(line)
        assert group["matches"] == []
        best, worst = (pick(group["scores"]) for pick in (max, min))
        ordered = sorted(range(3), key=lambda i: group["scores"][i])
        assert best == worst or group["advantages"][ordered[0]] < group["advantages"][ordered[-1]]


def test_a_listwise_ranking_without_an_llm_is_refused(tiny_config, capsys):
    config = tiny_config(arena__init_args__ranking="listwise")
    assert main(["fit", "--config", str(config)]) == 2
    assert "a listwise ranking must have an LLM judge" in capsys.readouterr().err


def test_a_panel_of_two_trains_and_keeps_what_each_said(tiny_config, tmp_path):
    with MisbehavingServer(seed=0) as one, MisbehavingServer(seed=1) as other:
        members = [judge_at(server.url)["llm"] for server in (one, other)]
        config = tiny_config(
            arena__init_args__judge={"kind": "panel", "panel": {"members": members}},
            evaluation=None,
            data__init_args__num_steps=1,
        )
        assert main(["fit", "--config", str(config)]) == 0
        asked = [server.num_requests for server in (one, other)]
    run_dir = tmp_path / "runs" / "001"
    (row,) = metrics_of(run_dir)
    assert float(row["arena/judge_calls"]) == sum(asked) > 0 and asked[0] == asked[1]
    verdicts = [
        call["verdict"]
        for line in (run_dir / "steps" / "step-000001.jsonl").read_text().splitlines()
        for call in json.loads(line)["calls"]
    ]
    for verdict in verdicts:
        first, second = verdict["members"].values()
        assert verdict["score_first"] == pytest.approx((first[0] + second[0]) / 2)
    assert any(len(set(map(tuple, v["members"].values()))) == 2 for v in verdicts)
    for name, count in zip(("verdicts.sqlite", "verdicts-2.sqlite"), asked, strict=True):
        ledger = Ledger(run_dir / name)
        assert len(list(ledger.entries())) == count
        ledger.close()


def test_a_spent_budget_may_go_on_with_a_cheaper_model(tiny_config, tmp_path):
    with MisbehavingServer() as dear, MisbehavingServer() as cheap:
        judge = judge_at(
            dear.url,
            max_calls=5,
            when_spent="cheaper_model",
            cheaper_model="hosted_vllm/cheap",
            cheaper_api_base=cheap.url,
        )
        config = tiny_config(
            arena__init_args__judge=judge, evaluation=None, data__init_args__num_steps=1
        )
        assert main(["fit", "--config", str(config)]) == 0
        assert dear.num_requests == 5 and cheap.num_requests > 0
    ledger = Ledger(tmp_path / "runs" / "001" / "verdicts.sqlite")
    models = [entry.model for entry in ledger.entries()]
    ledger.close()
    assert models.count("hosted_vllm/tiny") == 5 and "hosted_vllm/cheap" in models


def test_a_spent_budget_stops_the_run_with_one_message(tiny_config, tmp_path, capsys):
    with MisbehavingServer() as server:
        config = tiny_config(
            arena__init_args__judge=judge_at(server.url, max_calls=5), evaluation=None
        )
        assert main(["fit", "--config", str(config)]) == 2
        assert server.num_requests == 5
    assert "calls per run must stay within 5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": ""}, "an LLM judge must have a model, got none (arena.judge.llm.model)"),
        ({"rubric": "no_such_rubric"}, "no_such_rubric"),
        ({"when_spent": "cheaper_model"}, "(arena.judge.llm.cheaper_model)"),
        ({"max_usd": -1.0}, "must be at least 0 or None, got -1.0 (cost_usd)"),
    ],
)
def test_a_wrong_judge_is_refused_before_anything_is_loaded(tiny_config, capsys, changes, message):
    config = tiny_config(arena__init_args__judge=judge_at("http://127.0.0.1:9/v1", **changes))
    assert main(["fit", "--config", str(config)]) == 2
    assert message in capsys.readouterr().err


def test_a_panel_without_members_is_refused(tiny_config, capsys):
    config = tiny_config(arena__init_args__judge={"kind": "panel"})
    assert main(["fit", "--config", str(config)]) == 2
    assert "a panel must have judges" in capsys.readouterr().err


def test_one_key_of_the_simulated_noise_can_be_set_alone(tiny_config, capsys):
    judge = {"noise": {"score_noise": -1.0}}
    assert main(["fit", "--config", str(tiny_config(arena__init_args__judge=judge))]) == 2
    assert "`score_noise` must be at least 0 points, got -1.0" in capsys.readouterr().err
