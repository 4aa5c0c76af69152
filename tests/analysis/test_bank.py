import json
import math
from pathlib import Path

import numpy as np
import pytest

from arena_lightning.analysis.bank import BankSource, load_bank, save_bank
from arena_lightning.analysis.cells import Cell, play_cell
from arena_lightning.errors import DataError

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "pairwise"


def match(a, b, order, winner, **more):
    return {"a": a, "b": b, "order": order, "winner": winner} | more


def record(group="g", size=3, scores=True, **more):
    """Player i scores 10 - i, and 0.5 more when shown first."""
    matches = []
    for i in range(size):
        for j in range(i + 1, size):
            for order in ("ab", "ba"):
                a = 10.0 - i + 0.5 * (order == "ab")
                b = 10.0 - j + 0.5 * (order == "ba")
                told = {"score_a": a, "score_b": b} if scores else {}
                matches.append(match(i, j, order, "a", **told))
    players = [f"p{i}" for i in range(size)]
    return {"group_id": group, "judge": "j", "players": players, "matches": matches} | more


def written(tmp_path, *records):
    path = tmp_path / "bank.jsonl"
    path.write_text("\n".join(json.dumps(r) if isinstance(r, dict) else r for r in records))
    return path


def test_scores_land_on_the_player_whoever_was_shown_first(tmp_path):
    (group,) = load_bank(written(tmp_path, record())).groups
    assert group.score_first[0, 2] == 10.5 and group.score_second[0, 2] == 8.0
    assert group.score_first[2, 0] == 8.5 and group.score_second[2, 0] == 10.0
    assert np.isnan(np.diag(group.score_first)).all()


def test_a_bank_is_written_and_read_back(tmp_path):
    truth = record("t", truth=[3.0, 2.0, 1.0])
    truth["matches"][0] = match(0, 1, "ab", "failed")
    dims = {"dimensions_a": {"x": 1.0}, "dimensions_b": {"x": 2.0}}
    truth["matches"][1] |= dims
    bank = load_bank(written(tmp_path, record(), truth))
    save_bank(tmp_path / "again.jsonl", bank, "test")
    again = load_bank(tmp_path / "again.jsonl")
    for one, other in zip(bank.groups, again.groups, strict=True):
        np.testing.assert_array_equal(one.score_first, other.score_first)
        np.testing.assert_array_equal(one.score_second, other.score_second)
    assert again.groups[1].num_failed == 1
    assert again.groups[1].truth.tolist() == [3.0, 2.0, 1.0]
    first, second = again.groups[1].dimensions["x"]
    assert (first[1, 0], second[1, 0]) == (2.0, 1.0), "player 1 was shown first"


def test_winners_are_used_where_scores_are_missing_or_contradict(tmp_path):
    contradicting = record("c")
    contradicting["matches"][0] |= {"score_a": 9, "score_b": 9}
    for other in (record("w", scores=False), contradicting):
        bank = load_bank(written(tmp_path, record(), other))
        assert bank.scale == "winners"
        assert bank.groups[0].score_first[0, 1] == 1.0
        save_bank(tmp_path / "again.jsonl", bank)
        assert load_bank(tmp_path / "again.jsonl").scale == "winners"
    assert load_bank(written(tmp_path, record())).scale == "scores"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"players": ["only"]}, r"at least 2 players.*bank.jsonl:2: players"),
        ({"matches": record()["matches"][1:]}, r"player 0 first against 1, 1 in all.*:2"),
        ({"matches": [match(0, 3, "ab", "a")]}, r"two players a and b out of 0..2, got \(0, 3\)"),
        ({"matches": [match(0, 1, "left", "a")]}, r'order must be "ab" or "ba", got \'left\''),
        ({"matches": [match(0, 1, "ab", "x")]}, r"winner must be one of.*matches\[0\]"),
        (
            {"matches": [match(0, 1, "ab", "a", score_a=math.nan, score_b=1.0)]},
            r"scores must both be finite numbers.*nan.*bank.jsonl:2: matches\[0\]",
        ),
        ({"matches": record()["matches"] * 2}, r"each ordered pair must be judged once"),
        ({"truth": [1.0]}, r"one finite number for each of 3 players"),
        ({"judge": "other"}, r"a bank must be of one judge, got 'j' and 'other'.*:2"),
    ],
)
def test_a_wrong_bank_is_refused_with_file_and_line(tmp_path, change, message):
    with pytest.raises(DataError, match=message):
        load_bank(written(tmp_path, record(), record() | change))


def test_another_file_is_no_bank(tmp_path):
    for text, message in (
        ("not json", r"must be JSON.*bank.jsonl:1"),
        ('{"query": 1}', r"with `players`.*Is it another file"),
        ("", "at least one group"),
    ):
        with pytest.raises(DataError, match=message):
            load_bank(written(tmp_path, text))
    with pytest.raises(DataError, match="must be readable"):
        load_bank(tmp_path / "none.jsonl")


def test_missing_calls_can_be_taken_as_failed(tmp_path):
    short = record() | {"matches": record()["matches"][2:]}
    (group,) = load_bank(written(tmp_path, short), complete=False).groups
    assert group.num_failed == 2


def test_a_draw_uses_each_group_once_before_any_twice_and_says_so(tmp_path):
    bank = load_bank(written(tmp_path, *(record(f"g{n}", 5) for n in range(4))))
    batch = BankSource(bank).draw(4, 6, seed=0)
    assert sorted(batch.clusters[:4].tolist()) == [0, 1, 2, 3]
    longer = BankSource(bank).draw(4, 9, seed=0)
    np.testing.assert_array_equal(longer.score_first[:4], batch.score_first[:4])
    played = play_cell(Cell("b", 4, "round_robin"), batch, 0)
    assert (np.sort(played.ranks, axis=1) == np.arange(4)).all()
    with pytest.raises(DataError, match="at least 6 contestants, got at most 5"):
        BankSource(bank).draw(6, 1, seed=0)


@pytest.mark.skipif(not DATA.is_dir(), reason="the public pairwise data isn't here")
def test_public_round_robins_are_banks_as_they_are():
    bank = load_bank(DATA / "qlora_oa_gpt4_roundrobin150.jsonl")
    assert (len(bank.groups), bank.groups[0].size, bank.judge) == (150, 7, "gpt-4")
    with pytest.raises(DataError, match=r"roundrobin.jsonl:10"):
        load_bank(DATA / "qlora_vicuna80_gpt4_roundrobin.jsonl")
    loose = load_bank(DATA / "qlora_vicuna80_gpt4_roundrobin.jsonl", complete=False)
    assert sum(group.num_failed for group in loose.groups) == 13
