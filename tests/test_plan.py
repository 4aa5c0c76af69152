import pytest

from arena_lightning.cli import main

LLM = """
model: {class_path: x, init_args: {policy: embedded, trained_per_group: 4}}
data: {class_path: x, init_args: {groups_per_step: 8, num_steps: 10}}
arena:
  class_path: x
  init_args:
    group_size: 16
    judge: {kind: llm, llm: {model: local/x, max_usd: 5.0, usd_per_million_prompt_tokens: 1.0}}
"""


def planned(tmp_path, capsys, text, *options):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    code = main(["plan", "--config", str(path), *options])
    return code, capsys.readouterr()


def test_calls_tokens_and_dollars_are_those_worked_out_by_hand(tmp_path, capsys):
    code, printed = planned(
        tmp_path, capsys, LLM, "--prompt_tokens", "1000", "--completion_tokens", "100"
    )
    assert code == 0
    # Seeded single elimination of 16: 15 + 15 matches, both orders, 8 groups: 480 calls.
    assert "30 matches a group, 5 sequential rounds" in printed.out
    assert "480 a step, 4800 in all" in printed.out
    assert "528,000 a step, 5,280,000 in all" in printed.out
    assert "judge dollars: 0.48 a step, 4.80 in all" in printed.out
    assert "budget: 5.00 dollars, enough" in printed.out
    assert "32 of them trained on" in printed.out
    # 480 calls over 64 slots are 7.5 latencies, more than 5 rounds.
    assert "at least 38 s a step" in printed.out
    assert "2.0 GiB for 135M parameters" in printed.out


def test_a_budget_that_is_too_small_is_told(tmp_path, capsys):
    text = LLM.replace("max_usd: 5.0", "max_usd: 1.0")
    _, printed = planned(tmp_path, capsys, text, "--prompt_tokens", "1000")
    assert "budget: 1.00 dollars, spent after 2 steps" in printed.out


def test_every_member_of_a_panel_is_counted(tmp_path, capsys):
    panel = (
        "{kind: panel, panel: {members: [{model: local/x, usd_per_million_prompt_tokens: 1.0}, "
        "{model: local/y, usd_per_million_prompt_tokens: 2.0, max_concurrency: 8}]}}"
    )
    text = LLM[: LLM.index("judge:")] + f"judge: {panel}\n"
    code, printed = planned(tmp_path, capsys, text, "--prompt_tokens", "1000")
    assert code == 0
    assert "judge dollars: 0.48 a step" in printed.out
    assert "judge dollars: 0.96 a step" in printed.out
    # 480 calls over the slower member's 8 slots are 60 latencies of 5 s.
    assert "at least 300 s a step" in printed.out


@pytest.mark.parametrize(("ranking", "calls"), [("pointwise", 128), ("listwise", 8)])
def test_rankings_by_scores_ask_less(tmp_path, capsys, ranking, calls):
    text = LLM.replace("group_size: 16", f"group_size: 16\n    ranking: {ranking}")
    _, printed = planned(tmp_path, capsys, text)
    assert f"judge calls ({ranking}): {calls} a step, {calls * 10} in all" in printed.out
    assert "matches" not in printed.out


def test_evaluations_by_llm_judges_are_counted(tmp_path, capsys):
    text = LLM + (
        "evaluation: {init_args: {every_n_steps: 4, prompts_per_subtask: 2, judges: "
        "[{kind: llm}, {kind: travel}, {kind: panel, panel: {members: [{}, {}]}}]}}\n"
    )
    code, printed = planned(tmp_path, capsys, text)
    assert code == 0
    # 10 prompts, both orders, two baselines, at steps 0, 4, 8 and 10, by three models.
    assert "10 prompts, 4 times, 3 judging models: at most 480 judge calls more" in printed.out


def test_the_shipped_configs_can_be_planned(capsys):
    assert main(["plan", "--config", "configs/travel.yaml"]) == 0
    assert "no tokens, no dollars" in capsys.readouterr().out
    assert main(["plan", "--config", "configs/travel_llm_judge.yaml"]) == 0
    assert "judge dollars" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a list", "must be a YAML mapping"),
        ("model: {}", "must have the section `arena`"),
        (LLM.replace("model: local/x, ", ""), "an LLM judge must have a model"),
    ],
)
def test_a_config_that_can_not_be_planned_is_refused(tmp_path, capsys, text, message):
    code, printed = planned(tmp_path, capsys, text)
    assert code == 2
    assert message in printed.err
