"""Listwise scores are bound by id, whatever order they are shown or answered in."""

import asyncio
import json
import re

import pytest

from arena_lightning.errors import ConfigError, JudgeError
from arena_lightning.judges.ledger import Ledger
from arena_lightning.judges.listwise import ListwiseJudge
from arena_lightning.judges.rubric import load_rubric
from arena_lightning.types import Message, Prompt, Trajectory
from tests.judges.fake_client import CALL, CountingModel, ScriptedClient

NAMES = load_rubric("travel").dimension_names
PROMPT = Prompt("p", "From Bonn to Ulm?")
POINTS = [3, 0, 7, 5, 1]
GROUP = [Trajectory("p", (Message("assistant", "end " + "good " * n),)) for n in POINTS]


def score(client, group=GROUP, seed=0, **options):
    return asyncio.run(ListwiseJudge(client, **options).score_group(PROMPT, group, seed))


class Rewriting(CountingModel):
    """A sound model whose reply is rewritten before it is handed over."""

    def __init__(self, rewrite):
        super().__init__()
        self.rewrite = rewrite

    async def complete(self, messages, schema=None):
        reply = await super().complete(messages, schema)
        scores = json.loads(reply.text)["scores"]
        return type(reply)(self.rewrite(scores), reply.model, reply.usage)


@pytest.mark.parametrize("seed", range(5))
def test_scores_come_back_in_contestant_order(seed):
    scores = score(CountingModel(), seed=seed)
    assert [round(s.score, 9) for s in scores] == POINTS
    assert list(scores[2].dimensions) == list(NAMES)


def test_the_order_of_the_reply_does_not_matter():
    def backwards(scores):
        return json.dumps({"scores": dict(reversed(scores.items()))})

    assert [round(s.score, 9) for s in score(Rewriting(backwards))] == POINTS


def test_one_call_carries_the_whole_cost():
    client = CountingModel()
    scores = score(client)
    assert client.num_calls == 1 and scores[0].usage == CALL
    assert sum(s.usage.calls for s in scores) == 1
    assert sum(s.usage.cost_usd for s in scores) == CALL.cost_usd


def shown_ids(seed):
    client = ScriptedClient("no", "no")
    with pytest.raises(JudgeError):
        score(client, seed=seed)
    user = client.asked[0][0][1]["content"]
    order = [text.count("good") for text in user.split(" BEGIN ")[2:]]
    return re.findall(r"BEGIN ([A-Z]{4})>>>", user), order


def test_ids_are_opaque_and_the_order_is_drawn():
    shown = [shown_ids(seed) for seed in range(6)]
    assert shown[0] == shown_ids(0)
    assert all(len(set(ids)) == len(POINTS) for ids, _ in shown)
    assert len({tuple(ids) for ids, _ in shown}) == 6
    assert all(sorted(order) == sorted(POINTS) for _, order in shown)
    assert len({tuple(order) for _, order in shown}) > 3


def dropped(scores):
    scores.popitem()
    return json.dumps({"scores": scores})


def unknown(scores):
    scores["zzzz"] = scores.popitem()[1]
    return json.dumps({"scores": scores})


def further(scores):
    return json.dumps({"scores": {**scores, "zzzz": dict.fromkeys(NAMES, 1)}})


def doubled(scores):
    name = next(iter(scores))
    text = json.dumps({"scores": scores})
    return text[:-2] + f', "{name}": {json.dumps(scores[name])}' + "}}"


def by_position(scores):
    return json.dumps({"scores": list(scores.values())})


@pytest.mark.parametrize("fault", [dropped, unknown, further, doubled, by_position])
def test_ids_that_do_not_match_are_a_failure(fault):
    client = Rewriting(fault)
    with pytest.raises(JudgeError) as caught:
        score(client)
    assert caught.value.usage.calls == client.num_calls == 2


def test_an_empty_group_is_refused():
    with pytest.raises(ConfigError, match="at least 1 trajectory"):
        score(CountingModel(), group=[])


def test_a_group_is_paid_once(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    client = CountingModel()
    first, again = score(client, ledger=ledger), score(client, ledger=ledger)
    score(client, seed=1, ledger=ledger)
    (entry, _) = list(ledger.entries())
    ledger.close()
    assert client.num_calls == 2
    assert [s.score for s in first] == [s.score for s in again]
    assert again[0].usage.cached and again[0].usage.calls == 0
    assert entry.kind == "listwise" and len(entry.scores["totals"]) == len(POINTS)
