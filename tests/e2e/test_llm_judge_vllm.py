"""`fit` with a real model as its judge: vLLM's server on loopback, over litellm, structured output.

`pytest -m slow -s tests/e2e/test_llm_judge_vllm.py` prints its flip, tie and failure rates.
"""

import csv

import pytest

from arena_lightning.cli import main
from tests.judges.vllm_server import NAME, serving

pytestmark = [
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning"),
]


def test_fit_runs_steps_on_a_real_judge(tiny_config, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")
    llm = {
        "model": f"hosted_vllm/{NAME}",
        "max_tokens": 400,
        "max_concurrency": 8,
        "usd_per_million_prompt_tokens": 0.0,
    }
    with serving(tmp_path / "server.log") as url:
        config = tiny_config(
            arena__init_args__judge={"kind": "llm", "llm": llm | {"api_base": url}},
            evaluation=None,
            data__init_args__num_steps=2,
        )
        assert main(["fit", "--config", str(config)]) == 0
    with (tmp_path / "runs" / "001" / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row.get("arena/judge_calls")]
    assert len(rows) == 2
    for row in rows:
        shown = {name: float(row[f"arena/{name}_fraction"]) for name in ("flip", "tie", "failed")}
        print(f"step {row['step']}: {shown}, {row['arena/judge_calls']} calls, ", end="")
        print(f"p95 {float(row['arena/judge_p95_s']):.1f} s")
        assert float(row["arena/judge_calls"]) > 0
        assert all(0 <= share <= 1 for share in shown.values())
        assert shown["failed"] < 1, "some verdicts are usable"
