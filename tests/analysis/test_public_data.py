import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from arena_lightning.analysis.public_data import (
    Call,
    CallGroup,
    load_calls,
    load_scores,
    mend_anchor_sides,
)
from arena_lightning.errors import DataError

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "pairwise"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="public data is not in the repository")


def star(**more):
    call = {"a": 0, "b": 1, "order": "ba", "score_a": None, "score_b": None, "winner": "a"}
    return {"group_id": "g", "judge": "j/plain", "players": ["x", "y"], "matches": [call]} | more


def written(tmp_path, *records):
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records))
    return path


def test_the_winner_is_a_player_and_the_order_tells_its_slot(tmp_path):
    (group,) = load_calls(written(tmp_path, star(label="b")))
    assert group.calls == (Call(0, 1, False, "a", None, None, 1),)
    assert group.calls[0].lead_of_first == -1, "b was shown first and lost"
    assert (group.label, group.num_failed) == ("b", 0)


def test_a_judge_is_chosen_with_or_without_its_strategy(tmp_path):
    path = written(tmp_path, star(), star(judge="k"), star(judge="j/other"))
    assert len(load_calls(path, "j")) == 2
    assert len(load_calls(path, "j/other")) == 1
    with pytest.raises(DataError, match=r"groups of judge 'z', got j/other, j/plain, k"):
        load_calls(path, "z")


BAD_MATCH = star()["matches"][0]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("{", r"each line must be JSON.*data\.jsonl:2"),
        ("[1]", r"must be an object.*data\.jsonl:2"),
        (star(players=["x"]), r"at least 2 players.*data\.jsonl:2: players"),
        (star(label="c"), r"label must be.*data\.jsonl:2"),
        (star(matches=None), r"load_scores reads those"),
        (star(matches=[BAD_MATCH, BAD_MATCH | {"b": 2}]), r"out of 0\.\.1.*:2: matches\[1\]"),
        (star(matches=[BAD_MATCH | {"b": 0}]), r"two players a and b"),
        (star(matches=[BAD_MATCH | {"order": "x"}]), r"order"),
        (star(matches=[BAD_MATCH | {"winner": "x"}]), r"a winner of"),
        (star(matches=[BAD_MATCH | {"score_a": float("nan")}]), r"finite numbers or null.*:2"),
        (star(matches=[BAD_MATCH | {"rep": 0}]), r"rep a number from 1"),
    ],
)
def test_wrong_calls_are_named_by_file_and_line(tmp_path, second, message):
    with pytest.raises(DataError, match=message):
        load_calls(written(tmp_path, star(), second))


def test_pointwise_scores_keep_what_is_not_known(tmp_path):
    base = {"group_id": "g", "judge": "j", "players": ["x", "y"]}
    path = written(tmp_path, base | {"score": [1, None]}, base)
    (group,) = load_scores(path, "score")
    assert group.scores[0] == 1.0 and np.isnan(group.scores[1])
    for row, message in (([1], "one score for each of 2"), ([1, "x"], "finite number or null")):
        with pytest.raises(DataError, match=rf"{message}.*data\.jsonl:1: score"):
            load_scores(written(tmp_path, base | {"score": row}), "score")
    with pytest.raises(DataError, match="under 'other', got none"):
        load_scores(path, "other")
    with pytest.raises(DataError, match="must be readable"):
        load_scores(tmp_path / "absent", "score")


def test_mending_exchanges_the_players_of_a_call_and_nothing_else():
    calls = (Call(0, 1, True, "a", 7.0, 5.0, 1), Call(0, 2, False, "tie", 6.0, 6.0, 1))
    (mended,) = mend_anchor_sides([CallGroup("g", "j", ("anchor", "wrong", "bard"), calls)])
    assert mended.calls == (Call(0, 1, False, "b", 5.0, 7.0, 1), calls[1])
    assert mended.calls[0].lead_of_first == calls[0].lead_of_first, "slots keep their verdict"


@needs_data
def test_published_files_have_the_published_counts():
    stars = load_calls(DATA / "mtbench_star_3judges.jsonl")
    assert len(stars) == 240 and sum(len(group.calls) for group in stars) == 14_336
    assert Counter(group.judge for group in stars) == {
        "gpt-4-0613": 80,
        "gpt-3.5-turbo-1106": 80,
        "gemini-pro": 80,
    }
    gemini = [call for g in stars if g.judge == "gemini-pro" for call in g.calls]
    leads = Counter(call.lead_of_first for call in gemini if call.winner != "failed")
    assert leads[1] / (leads[1] + leads[-1]) == pytest.approx(0.349, abs=5e-4)
    scores = load_scores(DATA / "pointwise_mqm_ted_zhen_human.jsonl", "mqm_score")
    assert len(scores) == 529 and {len(group.players) for group in scores} == {15}
    values = np.concatenate([group.scores for group in scores])
    assert np.mean(values == 0) == pytest.approx(0.54, abs=0.005)
    hello = DATA / "pointwise_hellobench_gpt4o.jsonl"
    assert len(load_scores(hello, "mean_score")) == 647
    assert len(load_scores(hello, "helloeval")) == 547


@needs_data
def test_repeats_agree_as_published():
    groups = load_calls(DATA / "mtbench_star_repeats_9judges.jsonl", "claude-3-haiku-20240307")
    answers: dict[tuple, list[str]] = {}
    for group in groups:
        for call in group.calls:
            key = (group.group_id, call.a, call.b, call.a_is_first)
            answers.setdefault(key, []).append(call.winner)
    # Published over all 192 ordered pairs: one that lacks a reply does not agree.
    agreed = [len(said) == 3 and len(set(said)) == 1 for said in answers.values()]
    assert len(agreed) == 192 and np.mean(agreed) == pytest.approx(0.682, abs=5e-4)


@needs_data
def test_mended_anchor_ratings_rank_the_guanacos_by_size():
    groups = load_calls(DATA / "qlora_vicuna80_gpt4_anchor.jsonl")

    def points(groups, name):
        won = [
            {"a": 0.0, "b": 1.0, "tie": 0.5}[call.winner]
            for group in groups
            for call in group.calls
            if group.players[call.b] == name
        ]
        return np.mean(won)

    sizes = ("guanaco-7b", "guanaco-13b", "guanaco-30b", "guanaco-65b")
    recorded = [points(groups, name) for name in sizes]
    mended = [points(mend_anchor_sides(groups), name) for name in sizes]
    assert recorded == sorted(recorded, reverse=True) and recorded[0] > 0.7
    assert mended == sorted(mended)
    # The round robin on the same questions has 0.40 and 0.54 for the smallest and the largest.
    assert mended[0] == pytest.approx(0.266, abs=0.001) and mended[3] > 0.5
