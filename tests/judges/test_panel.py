"""A panel says what its members said: averaged or outvoted, kept one by one, failures told."""

import asyncio

import pytest
from jsonargparse import ArgumentParser

from arena_lightning.arena import TOPOLOGIES, Arena
from arena_lightning.errors import ConfigError, JudgeError
from arena_lightning.judges.llm import LLMJudge
from arena_lightning.judges.panel import PanelJudge
from arena_lightning.protocols import Judge, Score
from arena_lightning.types import Group, Message, Prompt, Trajectory, Usage, Verdict
from tests.judges.fake_client import CountingModel

PROMPT = Prompt("p", "?")
ONE, OTHER = (Trajectory("p", (Message("assistant", text),)) for text in ("one", "other"))


class Fixed:
    """Gives one verdict, or fails."""

    def __init__(self, name, first=0.0, second=0.0, error=None, cost=0.25, **dimensions):
        self.name, self.scores, self.error = name, (first, second), error
        self.usage = Usage(1, 10, 1, cost, latency_s=float(len(name)))
        self.dimensions = dimensions

    def answer(self, make):
        if self.error is not None:
            if isinstance(self.error, JudgeError):
                self.error.usage = self.usage
            raise self.error
        return make()

    async def compare(self, prompt, first, second):
        await asyncio.sleep(0)
        dimensions = self.dimensions
        return self.answer(
            lambda: Verdict(*self.scores, dimensions, dimensions, self.usage, f"by {self.name}")
        )

    async def score(self, prompt, trajectory):
        return self.answer(lambda: Score(self.scores[0], self.dimensions, self.usage))


def compare(*judges, **options):
    return asyncio.run(PanelJudge(judges, **options).compare(PROMPT, ONE, OTHER))


def test_it_is_a_judge():
    assert isinstance(PanelJudge([Fixed("a")]), Judge)


def test_mean_averages_scores_and_dimensions():
    verdict = compare(Fixed("a", 8, 2, truth=8, wit=6), Fixed("b", 5, 7, truth=4))
    assert (verdict.score_first, verdict.score_second) == (6.5, 4.5)
    assert verdict.dimensions_first == {"truth": 6.0, "wit": 6.0}


def test_members_are_kept_by_name():
    verdict = compare(Fixed("a", 8, 2), Fixed("b", 5, 7))
    assert {name: v.score_second for name, v in verdict.members.items()} == {"a": 2, "b": 7}
    assert verdict.judge == "a+b" and "a: by a" in verdict.comment and verdict.failures == {}


def test_usage_is_the_sum_and_latency_the_longest():
    assert compare(Fixed("a"), Fixed("bbb")).usage == Usage(2, 20, 2, 0.5, 3.0)
    assert compare(Fixed("a"), Fixed("b", cost=None)).usage.cost_usd is None


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(9, 1), (5, 4), (0, 10)], (1.0, 0.0)),
        ([(1, 9), (4, 5), (10, 0)], (0.0, 1.0)),
        ([(9, 1), (1, 2)], (0.5, 0.5)),
        ([(9, 1), (3, 3), (3, 3)], (1.0, 0.0)),
        ([(3, 3)], (0.5, 0.5)),
    ],
)
def test_majority_counts_votes_not_margins(pairs, expected):
    judges = [Fixed(str(i), *pair) for i, pair in enumerate(pairs)]
    verdict = compare(*judges, rule="majority")
    assert (verdict.score_first, verdict.score_second) == expected


def test_a_failed_member_fails_the_panel_by_default_and_all_is_billed():
    with pytest.raises(JudgeError, match="must have 2 verdicts, got 1") as caught:
        compare(Fixed("a", 1, 2), Fixed("b", error=JudgeError("no JSON")))
    assert caught.value.usage.calls == 2 and caught.value.usage.cost_usd == 0.5
    assert "b: no JSON" in str(caught.value)


@pytest.mark.parametrize("rule", ["mean", "majority"])
def test_a_failed_member_is_left_out_when_enough_are_left(rule):
    judges = [Fixed("a", 1, 2), Fixed("b", error=JudgeError("no JSON"))]
    verdict = compare(*judges, rule=rule, min_judges=1)
    assert (verdict.score_first, verdict.score_second) == ((1, 2) if rule == "mean" else (0, 1))
    assert verdict.failures == {"b": "no JSON"} and list(verdict.members) == ["a"]
    assert verdict.usage.calls == 2


def test_no_verdict_at_all_is_never_a_number():
    with pytest.raises(JudgeError):
        compare(Fixed("a", error=JudgeError("x")), min_judges=1)


def test_other_errors_end_the_question():
    with pytest.raises(ConfigError, match="key"):
        compare(Fixed("a", 1, 2), Fixed("b", error=ConfigError("wrong key")), min_judges=1)


def test_pointwise_scores_are_averaged_under_either_rule():
    for rule in ("mean", "majority"):
        panel = PanelJudge([Fixed("a", 8, truth=2), Fixed("b", 5, truth=4)], rule)
        score = asyncio.run(panel.score(PROMPT, ONE))
        assert score.score == 6.5 and score.dimensions == {"truth": 3.0}
        assert score.members["b"].score == 5 and score.usage.calls == 2


@pytest.mark.parametrize(
    ("judges", "options", "text"),
    [
        ([], {}, "names differ"),
        ([Fixed("a"), Fixed("a")], {}, "names differ"),
        ([Fixed("a")], {"rule": "median"}, "mean or majority"),
        ([Fixed("a")], {"min_judges": 2}, "lie in 1-1"),
        ([Fixed("a")], {"min_judges": 0}, "lie in 1-1"),
    ],
)
def test_settings_that_make_no_panel_are_refused(judges, options, text):
    with pytest.raises(ConfigError, match=text):
        PanelJudge(judges, **options)


@pytest.mark.parametrize("rule", ["mean", "majority"])
def test_a_panel_of_llm_judges_ranks_in_the_arena(rule):
    judges = [LLMJudge(CountingModel(f"fake/{name}")) for name in ("a", "b")]
    texts = ["good " * points + "end" for points in (2, 7, 0, 5)]
    group = Group(PROMPT, tuple(Trajectory("p", (Message("assistant", text),)) for text in texts))
    arena = Arena(TOPOLOGIES["round_robin"](), PanelJudge(judges, rule))
    (result,) = asyncio.run(arena.run([group]))
    assert list(result.standings.ranks) == [2.0, 0.0, 3.0, 1.0]


def test_a_panel_of_llm_judges_can_be_written_in_yaml():
    def member(name):
        client = {"class_path": "tests.judges.fake_client.CountingModel"}
        options = {"client": client, "rubric_name": "writing", "name": name}
        return {"class_path": "arena_lightning.judges.llm.LLMJudge", "init_args": options}

    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--judge", type=Judge)
    options = {"judges": [member("one"), member("two")], "rule": "majority"}
    spec = {"class_path": "arena_lightning.judges.panel.PanelJudge", "init_args": options}
    judge = parser.instantiate(parser.parse_object({"judge": spec})).judge
    assert isinstance(judge, PanelJudge) and judge.name == "one+two"
