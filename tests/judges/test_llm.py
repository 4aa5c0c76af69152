"""The LLM judge: sums up itself, repairs once, bills everything, never asks twice, never lies."""

import asyncio
import json

import pytest

from arena_lightning.arena import TOPOLOGIES, Arena
from arena_lightning.errors import ConfigError, JudgeError
from arena_lightning.judges.client import JudgeClient
from arena_lightning.judges.ledger import Ledger
from arena_lightning.judges.llm import LLMJudge
from arena_lightning.judges.recorded import RecordedJudge
from arena_lightning.judges.rubric import load_rubric
from arena_lightning.protocols import Judge
from arena_lightning.types import Group, Message, Prompt, Trajectory, Usage
from tests.judges.fake_client import CALL, CountingModel, ScriptedClient, reply_of

NAMES = load_rubric("travel").dimension_names
PROMPT = Prompt("p", "From Bonn to Ulm?")


def saying(text, index=0):
    return Trajectory("p", (Message("assistant", text),), index=index)


ONE, OTHER = saying("good good good"), saying("good")


def even(points):
    return dict.fromkeys(NAMES, points)


GOOD = reply_of(first=even(7), second=even(4))


def compare(judge, first=ONE, second=OTHER, prompt=PROMPT):
    return asyncio.run(judge.compare(prompt, first, second))


def failure(judge):
    with pytest.raises(JudgeError) as caught:
        compare(judge)
    return caught.value


def test_it_is_a_judge():
    assert isinstance(LLMJudge(ScriptedClient()), Judge)


def test_scores_are_summed_up_from_dimensions():
    first = dict(zip(NAMES, [9, 6, 6, 4, 8, 2, 2], strict=True))
    verdict = compare(LLMJudge(ScriptedClient(reply_of(first=first, second=even(3)))))
    assert verdict.score_first == pytest.approx(0.6 * 7 + 0.4 * 4)
    assert verdict.score_second == pytest.approx(3.0)
    assert dict(verdict.dimensions_first) == first
    assert verdict.usage == CALL and verdict.judge == "fake/model"


def test_one_call_in_the_presented_order_with_a_schema():
    client = ScriptedClient(GOOD)
    compare(LLMJudge(client), saying("alpha"), saying("omega"))
    ((messages, schema),) = client.asked
    user = messages[1]["content"]
    assert user.index("BEGIN FIRST") < user.index("alpha") < user.index("BEGIN SECOND")
    assert user.index("BEGIN SECOND") < user.index("omega")
    assert list(schema["properties"]["scores"]["properties"]) == ["first", "second"]


def test_the_prompts_language_chooses_the_rubric():
    client = ScriptedClient(GOOD, GOOD)
    judge = LLMJudge(client)
    compare(judge)
    compare(judge, prompt=Prompt("p", "从波恩到乌尔姆？", language="zh"))
    english, chinese = (messages[0]["content"] for messages, _ in client.asked)
    assert "impartial" in english and "公正" in chinese
    with pytest.raises(ConfigError, match="one of its rubric's, got 'fr' of en, zh"):
        compare(judge, prompt=Prompt("p", "?", language="fr"))
    assert len(client.asked) == 2


def test_answer_only_asks_for_answer_dimensions_only():
    answers = load_rubric("travel").answer_only().dimension_names
    client = ScriptedClient(
        reply_of(first=dict.fromkeys(answers, 6), second=dict.fromkeys(answers, 2))
    )
    verdict = compare(LLMJudge(client, process_aware=False))
    assert (verdict.score_first, verdict.score_second) == (6, 2)
    assert "path." not in client.asked[0][0][0]["content"]


def test_one_repair_shows_the_bad_reply_and_the_reason():
    bad = reply_of(first=even(7), second=even(11))
    client = ScriptedClient(bad, GOOD)
    verdict = compare(LLMJudge(client))
    assert (verdict.score_first, verdict.score_second) == (7, 4)
    assert verdict.usage == Usage(2, 200, 20, 1.0, 2.0)
    repair = client.asked[1][0]
    assert [message["role"] for message in repair] == ["system", "user", "assistant", "user"]
    assert repair[2]["content"] == bad and "0-10, got 11" in repair[3]["content"]


@pytest.mark.parametrize("repairs", [0, 1, 2])
def test_unreadable_replies_fail_and_all_calls_are_billed(repairs):
    client = ScriptedClient(*["I like the first."] * 5)
    error = failure(LLMJudge(client, repair_attempts=repairs))
    assert error.usage.calls == len(client.asked) == 1 + repairs
    assert error.usage.cost_usd == pytest.approx(0.5 * (1 + repairs))
    assert "JSON object" in str(error) and "'p'" in str(error)


def test_a_cut_off_reply_says_so():
    client = ScriptedClient(GOOD[:50], GOOD[:50], finish_reason="length")
    assert "cut off at max_tokens" in str(failure(LLMJudge(client)))


def test_a_client_that_fails_in_the_repair_bills_both_calls():
    client = ScriptedClient("no", JudgeError("the server is down"))
    error = failure(LLMJudge(client))
    assert "server is down" in str(error) and error.usage.calls == 2


def test_an_unknown_price_is_not_told_as_free():
    client = ScriptedClient("no")

    async def no_usage(messages, schema=None):
        raise JudgeError("died")

    client.complete = no_usage
    assert failure(LLMJudge(client)).usage.cost_usd is None


def test_errors_that_are_no_judge_errors_pass_through():
    with pytest.raises(ConfigError, match="key"):
        compare(LLMJudge(ScriptedClient(ConfigError("the key is wrong"))))


def test_settings_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="repair_attempts must be at least 0"):
        LLMJudge(ScriptedClient(), repair_attempts=-1)


def test_pointwise_scores_use_the_same_rubric():
    client = ScriptedClient(reply_of(work=dict(zip(NAMES, [9, 6, 6, 4, 8, 2, 2], strict=True))))
    score = asyncio.run(LLMJudge(client).score(PROMPT, ONE))
    assert score.score == pytest.approx(5.8) and score.usage == CALL
    assert "SECOND" not in client.asked[0][0][1]["content"]


def test_swapping_the_trajectories_swaps_the_outcome():
    judge = LLMJudge(CountingModel())
    for first, second in [(ONE, OTHER), (OTHER, ONE), (ONE, ONE)]:
        ahead, back = compare(judge, first, second), compare(judge, second, first)
        assert (ahead.score_first, ahead.score_second) == (back.score_second, back.score_first)
        assert ahead.dimensions_first == back.dimensions_second
    assert compare(judge).score_first == 3


@pytest.mark.parametrize("presentation", ["both", "random", "second_if_close"])
def test_the_arena_ranks_by_the_judge_whoever_stands_where(presentation):
    points = [2, 7, 0, 5]
    texts = ["good " * number + "end" for number in points]
    group = Group(PROMPT, tuple(saying(text, i) for i, text in enumerate(texts)))
    arena = Arena(TOPOLOGIES["round_robin"](), LLMJudge(CountingModel()), presentation)
    (result,) = asyncio.run(arena.run([group]))
    assert list(result.standings.ranks) == [2.0, 0.0, 3.0, 1.0]


def test_a_failed_reply_is_a_failed_match_in_the_arena():
    group = Group(PROMPT, (ONE, OTHER))
    judge = LLMJudge(ScriptedClient(*["10 for the first"] * 4))
    (result,) = asyncio.run(Arena(TOPOLOGIES["round_robin"](), judge).run([group]))
    (match,) = result.standings.matches
    assert match.status == "failed" and match.score_first is None


def test_a_paid_question_is_never_paid_again(tmp_path):
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    paid = compare(LLMJudge(ScriptedClient(GOOD), ledger=ledger))
    ledger.close()
    ledger = Ledger(path)
    again = compare(LLMJudge(ScriptedClient(), ledger=ledger))
    ledger.close()
    assert (again.score_first, again.score_second) == (paid.score_first, paid.score_second)
    assert again.dimensions_second == paid.dimensions_second
    assert again.usage.calls == 0 and again.usage.cost_usd == 0 and again.usage.cached


def test_a_failure_is_on_file_with_its_cost_and_asked_again(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    failure(LLMJudge(ScriptedClient("no", "no"), ledger=ledger))
    assert compare(LLMJudge(ScriptedClient(GOOD), ledger=ledger)).score_first == 7
    entries = list(ledger.entries())
    ledger.close()
    assert [entry.status for entry in entries] == ["failed", "verdict"]
    assert entries[0].calls == 2 and entries[0].cost_usd == 1.0 and entries[0].scores == {}


def test_the_ledger_replays_through_the_recorded_judge(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    judge = LLMJudge(CountingModel(), ledger=ledger)
    verdict = compare(judge)
    score = asyncio.run(judge.score(PROMPT, ONE))
    recorded = RecordedJudge(ledger, judge.key_of)
    replayed = compare(recorded)
    assert replayed.score_first == verdict.score_first
    assert replayed.dimensions_second == verdict.dimensions_second
    assert asyncio.run(recorded.score(PROMPT, ONE)).score == score.score
    ledger.close()


def test_keys_tell_apart_whatever_changes_the_question():
    client = ScriptedClient()
    base = LLMJudge(client)

    def key(judge=base, kind="compare", prompt=PROMPT, first=ONE, second=OTHER):
        return judge.key_of(kind, prompt, first, second)

    keys = [
        key(),
        key(first=OTHER, second=ONE),
        key(prompt=Prompt("p", "Another?")),
        key(prompt=Prompt("p", PROMPT.query, language="zh")),
        key(second=saying("good.")),
        key(kind="score", second=None),
        key(LLMJudge(client, "writing")),
        key(LLMJudge(client, process_aware=False)),
        key(LLMJudge(client, observations=False)),
        key(LLMJudge(client, with_analysis=False)),
        key(LLMJudge(ScriptedClient(model="fake/other"))),
        key(LLMJudge(JudgeClient("fake/model", structured_output="never"))),
        key(LLMJudge(JudgeClient("fake/model", structured_output="always"))),
        key(LLMJudge(JudgeClient("fake/model", temperature=1.0))),
    ]
    assert len(set(keys)) == len(keys)
    assert key(LLMJudge(client)) == keys[0]
    moved = [JudgeClient("fake/model", api_base=base) for base in ("http://a/v1", "http://b/v1")]
    assert key(LLMJudge(moved[0])) == key(LLMJudge(moved[1]))


def test_a_changed_rubric_file_is_another_question(tmp_path):
    keys = []
    for word in ("closely", "kindly"):
        path = tmp_path / "mine.yaml"
        text = {"en": f"Look {word}."}
        level = {"name": "answer", "weight": 1.0, "instruction": text}
        level["dimensions"] = [{"name": "truth", "instruction": text}]
        path.write_text(json.dumps({"name": "mine", "instruction": text, "levels": [level]}))
        keys.append(LLMJudge(ScriptedClient(), path).key_of("compare", PROMPT, ONE, OTHER))
    assert keys[0] != keys[1]
