"""The studies from the command line, small: what they write, what they say, what they refuse."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from arena_lightning.analysis.bank import JudgeBank, save_bank
from arena_lightning.analysis.bank_format import BankGroup
from arena_lightning.analysis.simulated import NoiseModel, SimulatedSource

ROOT = Path(__file__).parents[2]
SMALL = ("--groups", "40", "--sizes", "4", "16", "--wandb", "off", "--workers", "1")


def study(name, *options, cwd):
    return subprocess.run(
        [sys.executable, str(ROOT / "studies" / name), *options],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
    )


@pytest.fixture
def bank(tmp_path):
    """A bank of ten groups of six by a simulated judge, with dimensions."""
    batch = SimulatedSource("s", NoiseModel(position_bias=0.5)).draw(6, 10, 0)
    names = tuple("abcdef")
    groups = tuple(
        BankGroup(
            str(n),
            names,
            batch.score_first[n],
            batch.score_second[n],
            batch.truth[n],
            {"whole": (batch.score_first[n], batch.score_second[n])},
        )
        for n in range(10)
    )
    save_bank(tmp_path / "recorded.jsonl", JudgeBank("recorded", "simulated", groups))
    return tmp_path / "recorded.jsonl"


def test_the_study_writes_its_report_and_ends_with_findings(tmp_path, bank):
    done = study("topology_fidelity.py", *SMALL, "--bank", str(bank), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "main findings (more in the report):\n  1. At N=16 and no more than" in done.stdout
    out = tmp_path / "reports" / "topology_fidelity"
    for name in ("report.md", "index.html", "cells.csv", "steps.csv", "effects.csv"):
        assert str((out / name).relative_to(tmp_path)) in done.stdout
    page = (out / "index.html").read_text()
    # "://" and not "http": the base64 of a picture has no colon, but it can spell any word.
    assert "data:image/png;base64," in page and "://" not in page.split("<body>")[1]
    report = (out / "report.md").read_text()
    assert "How the recorded judges judge" in report and "whole 1.00" in report
    for line in report.splitlines():
        if line.startswith("!["):
            assert (out / line.split("](")[1].rstrip(")")).is_file()
    with (out / "cells.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["size"] for row in rows if row["source"] == "recorded"} == {"4"}
    seeded = next(
        row
        for row in rows
        if (row["source"], row["size"], row["topology"]) == ("cardinal", "16", "single_elimination")
    )
    assert (float(seeded["matches"]), float(seeded["rounds"])) == (30.0, 5.0)
    assert float(seeded["tau_low"]) <= float(seeded["tau"]) <= float(seeded["tau_high"])


def test_the_study_loads_neither_torch_nor_lightning(tmp_path):
    code = (
        "import sys, runpy; sys.argv = ['x', '--groups', '8', '--sizes', '4', "
        "'--groups_per_step', '1', '--wandb', 'off', '--workers', '1', "
        "'--topologies', 'round_robin', 'single_elimination']\n"
        "try:\n    runpy.run_path(sys.argv_path, run_name='__main__')\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print('heavy:', [m for m in ('torch', 'lightning', 'transformers') if m in sys.modules])"
    ).replace("sys.argv_path", repr(str(ROOT / "studies" / "topology_fidelity.py")))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=200
    )
    assert "heavy: []" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sizes", "1"), "group sizes must lie between 2 and 256"),
        (("--topologies", "ladder"), "must be among round_robin"),
        (("--rankings", "own", "elo"), "must be among own, mean_score, bradley_terry"),
        (("--judges", "oracle"), "judges must be among cardinal"),
        (("--bank", "nothing.jsonl"), "a bank must be readable"),
        (("--price_model", "unheard-of"), "must have the judge's model"),
        (("--noise", "score_noise=-1"), "`score_noise` must be at least 0"),
        (("--latency_s", "9", "3"), "the 95th percentile at least the median"),
    ],
)
def test_wrong_options_are_one_message_and_nothing_is_written(tmp_path, options, message):
    done = study("topology_fidelity.py", *SMALL, *options, cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_papers_table_is_set_beside_fidelity(tmp_path):
    done = study("paper_table2.py", "--groups", "80", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = (tmp_path / "out" / "report.md").read_text()
    (row,) = (
        line
        for line in report.split("## Judge: win_lose")[1].split("##")[0].splitlines()
        if line.startswith("| swiss, as released")
    )
    tau = float(row.split("|")[3].split("[")[0])
    assert abs(tau) < 0.15, "the released Swiss knows nothing"


def test_public_data_is_converted_and_what_is_missing_is_told(tmp_path, bank):
    lines = bank.read_text().splitlines()
    short = lines[0].replace('"order": "ab"', '"order": "lost"', 1)
    source = tmp_path / "public.jsonl"
    source.write_text("\n".join(lines))
    done = study("convert_public_data.py", str(source), "out.jsonl", cwd=tmp_path)
    assert "10 groups of [6], judge simulated, scores; 0 of 300 calls missing" in done.stdout
    source.write_text(short)
    done = study("convert_public_data.py", str(source), "out.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert 'order must be "ab" or "ba"' in done.stderr and "public.jsonl:1" in done.stderr
