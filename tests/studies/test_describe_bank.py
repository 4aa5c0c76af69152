import sys

import numpy as np

from arena_lightning.analysis.bank import JudgeBank, save_bank
from arena_lightning.analysis.bank_format import BankGroup
from studies import describe_bank


def bank(*sizes):
    """Player i scores i, whoever is shown first; the dimension says the opposite."""
    groups = []
    for number, size in enumerate(sizes):
        first = np.where(np.eye(size, dtype=bool), np.nan, np.arange(size)[:, None] * 1.0)
        second = np.where(np.eye(size, dtype=bool), np.nan, np.arange(size)[None, :] * 1.0)
        players = tuple(f"p{i}" for i in range(size))
        contrary = {"contrary": (-first, -second), "same": (first, second)}
        groups.append(BankGroup(f"g{number}", players, first, second, None, contrary))
    return JudgeBank("b", "a judge", tuple(groups))


def call(tmp_path, monkeypatch, capsys, chosen):
    save_bank(tmp_path / "mine.jsonl", chosen)
    monkeypatch.setattr(sys, "argv", ["describe_bank.py", str(tmp_path / "mine.jsonl")])
    code = describe_bank.main()
    told = capsys.readouterr()
    return code, told.out + told.err


def test_a_consistent_judge_is_described_as_one(tmp_path, monkeypatch, capsys):
    code, told = call(tmp_path, monkeypatch, capsys, bank(8, 8, 8))
    assert code == 0
    for line in (
        "## mine",
        "3 groups of 8, 168 calls, judge a judge; scores.",
        "| failed calls | 0 |",
        "| pairs whose winner the order reverses | 0.000 |",
        "| decided calls won by the one shown first | 0.500 |",
        "| contrary | 0.000 |",
        "| same | 1.000 |",
    ):
        assert line in told.splitlines(), f"{line}\n{told}"
    table = [line.split("|") for line in told.splitlines() if " to " in line]
    taus = {float(row[1]): float(row[2]) for row in table}
    assert list(taus) == [1.0, 1.75, 3.5, 7.0] and max(taus.values()) == taus[7.0] < 1


def test_groups_of_different_sizes_are_refused(tmp_path, monkeypatch, capsys):
    code, told = call(tmp_path, monkeypatch, capsys, bank(3, 4))
    assert code == 1 and "one size" in told
