"""Agreement with people: by hand, by its definition, and on LLMBar's published judgements."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from arena_lightning.analysis.agreement import (
    agreement_of,
    agreement_with_humans,
    cohen_kappa,
    merge_orders,
    raw_agreement,
)
from arena_lightning.errors import DataError

LLMBAR = Path(__file__).parents[2].parent / "shared" / "data" / "pairwise" / "llmbar.jsonl"


def labels_from(table):
    """Return two label lists with the counts of a table `[label, label]`."""
    pairs = [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    return [i for i, _ in pairs], [j for _, j in pairs]


def test_kappa_of_a_table_worked_by_hand():
    # Agreement (20+15)/50 = 0.7; by chance 0.5*0.6 + 0.5*0.4 = 0.5; (0.7-0.5)/(1-0.5)
    one, other = labels_from([[20, 5], [10, 15]])
    assert raw_agreement(one, other) == pytest.approx(0.7)
    assert cohen_kappa(one, other) == pytest.approx(0.4)


def test_kappa_of_three_labels_equals_its_matrix_form():
    table = np.array([[9, 3, 1], [2, 14, 4], [0, 5, 12]])
    chance = table.sum(1) @ table.sum(0) / table.sum() ** 2
    expected = (np.trace(table) / table.sum() - chance) / (1 - chance)
    assert cohen_kappa(*labels_from(table)) == pytest.approx(expected)


def test_kappa_ends():
    assert cohen_kappa("abab", "abab") == 1
    assert cohen_kappa("abab", "baba") == -1
    assert cohen_kappa("aabb", "abab") == 0
    assert cohen_kappa("ab", "aa") == 0
    assert math.isnan(cohen_kappa("aaa", "aaa")) and math.isnan(cohen_kappa("", ""))


def test_labels_must_be_paired():
    with pytest.raises(ValueError, match="one length"):
        raw_agreement("ab", "a")


@pytest.mark.parametrize(
    ("winners", "expected"),
    [
        (["a", "a"], "a"),
        (["b", "tie"], "b"),
        (["tie", "b"], "b"),
        (["a", "b"], "tie"),
        (["tie", "tie"], "tie"),
        (["a", "failed"], "failed"),
        (["b"], "b"),
        ([], "failed"),
    ],
)
def test_both_orders_are_merged(winners, expected):
    assert merge_orders(winners) == expected


def test_a_judge_is_counted_as_by_hand():
    verdicts = [["a", "a"], ["a", "tie"], ["b", "b"], ["a", "b"], ["tie", "tie"], ["failed", "a"]]
    found = agreement_of("j", verdicts, ["a", "b", "b", "a", "b", "a"])
    assert (found.num_pairs, found.num_failed, found.num_ties, found.num_flips) == (6, 1, 2, 1)
    assert found.raw_agreement == pytest.approx(2 / 5)
    assert found.decided_agreement == pytest.approx(2 / 3)
    assert found.half_credit_agreement == pytest.approx(3 / 5)
    # judge: 2 a, 1 b, 2 tie; human: 2 a, 3 b; chance (2*2 + 1*3)/25
    assert found.kappa == pytest.approx((0.4 - 7 / 25) / (1 - 7 / 25))


def test_nothing_readable_gives_no_number():
    found = agreement_of("j", [["failed", "a"]], ["a"])
    assert math.isnan(found.raw_agreement) and math.isnan(found.half_credit_agreement)


def row(**changes):
    matches = [{"order": "ab", "winner": "a"}, {"order": "ba", "winner": "a"}]
    return {"group_id": "x/1", "judge": "j", "label": "a", "matches": matches} | changes


def test_judges_are_read_apart_and_sorted(tmp_path):
    path = tmp_path / "judged.jsonl"
    rows = [row(judge="poor", label="b"), row(), row(group_id="y/1", judge="poor")]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    found = agreement_with_humans(path)
    assert [(one.judge, one.raw_agreement) for one in found] == [("j", 1.0), ("poor", 0.5)]
    assert [one.num_pairs for one in agreement_with_humans(path, subset="y/")] == [1]


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        json.dumps(row(label="c")),
        json.dumps(row(matches=[{"order": "ab", "winner": "A"}])),
        json.dumps(row(matches=row()["matches"][:1] * 2)),
        json.dumps({"judge": "j"}),
        "[]",
    ],
)
def test_a_bad_line_is_named(tmp_path, bad):
    path = tmp_path / "judged.jsonl"
    path.write_text(json.dumps(row()) + "\n" + bad)
    with pytest.raises(DataError, match="line 2"):
        agreement_with_humans(path)
    with pytest.raises(DataError, match="readable file"):
        agreement_with_humans(tmp_path / "none.jsonl")


@pytest.mark.skipif(not LLMBAR.exists(), reason="LLMBar's judgements are not beside the checkout")
def test_llmbar_judges_agree_with_people_as_published_judgements_say():
    found = {one.judge: one for one in agreement_with_humans(LLMBAR)}
    assert len(found) == 30 and sum(one.num_pairs for one in found.values()) == 21_968
    best = found["GPT-4/Vanilla"]
    # Counted again, line by line: the mean over single readable orders.
    lines = LLMBAR.read_text().splitlines()
    rows = [json.loads(line) for line in lines if '"judge": "GPT-4/Vanilla",' in line]
    readable = [r for r in rows if all(m["winner"] != "failed" for m in r["matches"])]
    right = [
        1.0 if m["winner"] == r["label"] else 0.5 if m["winner"] == "tie" else 0.0
        for r in readable
        for m in r["matches"]
    ]
    assert best.num_failed == len(rows) - len(readable)
    assert best.num_ties == best.num_flips
    assert best.half_credit_agreement == pytest.approx(np.mean(right), rel=1e-12)
    assert best.kappa > 0.4 > 0.1 > found["Falcon/Vanilla"].kappa
