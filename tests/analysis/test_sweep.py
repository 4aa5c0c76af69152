import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from arena_lightning.analysis.cells import Cell, play_cell
from arena_lightning.analysis.cost import CallCost, Latency
from arena_lightning.analysis.sweep import SweepPlan, open_study
from arena_lightning.analysis.sweep_run import Sweep, run_sweep
from arena_lightning.analysis.sweep_table import cell_rows, select, step_rows, write_rows
from arena_lightning.analysis.verdict_batch import VerdictBatch
from arena_lightning.arena import TOPOLOGIES
from arena_lightning.errors import ConfigError, DataError, RecordError
from tests.analysis import tiny_source

CALL = CallCost(3000, 300, 1.0, 4.0)


def plan_of(**changes):
    values = {
        "sources": {"tiny": {"noise": 0.5}},
        "sizes": (4, 5),
        "groups_per_step": (1, 4),
        "topologies": ("round_robin", "single_elimination", "swiss"),
        "presentations": ("both",),
        "num_groups": 40,
    }
    return SweepPlan(**values | changes)


def run(home, plan, workers=1):
    sweep = Sweep(plan, home, tiny_source.build)
    run_sweep(sweep, workers, lambda done, total: None)
    return sweep


def table(sweep):
    rows = cell_rows(sweep.plan, sweep.store(), CALL, 8, Latency(), 4)
    return rows, step_rows(sweep.plan, sweep.store())


def test_every_grid_point_is_played_once_and_the_same_with_two_workers(tmp_path: Path):
    plan = plan_of(presentations=("both", "random"))
    alone, shared = run(tmp_path / "one", plan), run(tmp_path / "two", plan, workers=2)
    study = open_study(alone.journal, plan)
    points = [json.dumps(t.params, sort_keys=True) for t in study.get_trials(deepcopy=False)]
    assert len(points) == len(set(points)) == 2 * 2 * 3 * 2
    assert json.dumps(table(alone)) == json.dumps(table(shared))


def test_a_finished_sweep_plays_nothing_again(tmp_path: Path):
    plan = plan_of()
    sweep = run(tmp_path, plan)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "cells").iterdir()}
    num_trials = len(open_study(sweep.journal, plan).get_trials(deepcopy=False))
    run(tmp_path, plan)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "cells").iterdir()} == before
    assert len(open_study(sweep.journal, plan).get_trials(deepcopy=False)) == num_trials


def test_the_wall_clock_of_a_step_is_that_of_its_own_verdicts_rematches_free(
    tmp_path: Path,
):
    """One call at a time, each of exactly one second: a step takes as long as it has calls."""
    plan = plan_of(
        sources={"clear": {"noise": 0.0}, "noise": {"noise": 50.0}},
        sizes=(8,),
        topologies=("round_robin", "early_stopping", "single_elimination"),
    )
    sweep = run(tmp_path, plan)
    rows = cell_rows(plan, sweep.store(), CALL, 1, Latency(1.0, 1.0), 40)
    for row in rows:
        assert row["step_s"] == pytest.approx(40 * row["calls"], rel=0.05), row["topology"]
    (clear,) = select(rows, source="clear", topology="early_stopping")
    (noise,) = select(rows, source="noise", topology="early_stopping")
    assert clear["step_s"] < noise["step_s"]


KILLED = """
import sys
from pathlib import Path
from tests.analysis.test_sweep import plan_of, run
run(Path(sys.argv[1]), plan_of(num_groups=400))
"""


def test_a_sweep_killed_in_the_middle_ends_with_the_table_of_an_unbroken_one(tmp_path: Path):
    killed = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "killed")])
    cells = tmp_path / "killed" / "cells"
    deadline = time.monotonic() + 60
    while len(list(cells.glob("*.metrics.npz")) if cells.exists() else []) < 3:
        assert time.monotonic() < deadline and killed.poll() is None
        time.sleep(0.005)
    killed.kill()
    killed.wait()
    plan = plan_of(num_groups=400)
    study = open_study(tmp_path / "killed" / "optuna.journal", plan)
    done = [t for t in study.get_trials(deepcopy=False) if t.state.name == "COMPLETE"]
    assert len(done) < 12, "it was killed in the middle"
    resumed, whole = run(tmp_path / "killed", plan, workers=2), run(tmp_path / "whole", plan)
    assert json.dumps(table(resumed)) == json.dumps(table(whole))


def trapped(tmp_path, words):
    trap = tmp_path / "trap"
    trap.write_text(words)
    return plan_of(sources={"tiny": {"noise": 0.5, "trap": str(trap)}}, groups_per_step=(4,))


@pytest.mark.parametrize("words", ["raise 1", "kill 1"])
def test_a_crashed_trial_is_run_once_more(tmp_path: Path, words):
    plan = trapped(tmp_path, words)
    sweep = run(tmp_path / "crashed", plan, workers=2)
    rows, _ = table(sweep)
    clean = run(tmp_path / "clean", plan_of(groups_per_step=(4,)))
    assert json.dumps(rows) == json.dumps(table(clean)[0])
    states = [t.state.name for t in open_study(sweep.journal, plan).get_trials(deepcopy=False)]
    assert (states.count("COMPLETE"), states.count("FAIL")) == (6, 1)


def test_a_trial_that_crashes_twice_is_named_and_nothing_else_is_lost(tmp_path: Path):
    plan = trapped(tmp_path, "raise 99")
    with pytest.raises(RecordError, match=r"(?s)3 crashed twice.*'size': 5.*sprung"):
        run(tmp_path / "run", plan)
    study = open_study(tmp_path / "run" / "optuna.journal", plan)
    states = [t.state.name for t in study.get_trials(deepcopy=False)]
    assert (states.count("COMPLETE"), states.count("FAIL")) == (3, 6)


def test_a_search_for_the_pareto_front_ends_after_its_trials(tmp_path: Path):
    plan = plan_of(objectives=("tau", "calls"))
    sweep = Sweep(plan, tmp_path, tiny_source.build)
    run_sweep(sweep, 1, lambda done, total: None, num_trials=9)
    study = open_study(sweep.journal, plan)
    assert len(study.get_trials(deepcopy=False)) == 9
    assert all(len(trial.values) == 2 for trial in study.best_trials)


def wins_of(batch, size):
    """Return each group's wins of a full round robin, from the matrices alone."""
    counts = []
    for first, second in zip(batch.score_first, batch.score_second, strict=True):
        total = first + second.T
        counts.append(
            [sum(total[i, j] > total[j, i] for j in range(size) if j != i) for i in range(size)]
        )
    return counts


def test_round_robin_counts_wins_as_a_brute_force_does():
    batch = tiny_source.TinySource(0.7).draw(7, 30, 3)
    played = play_cell(Cell("tiny", 7, "round_robin"), batch, 0)
    for ranks, wins in zip(played.ranks, wins_of(batch, 7), strict=True):
        # Points first; a tie-break may order equal points, never turn unequal ones round.
        assert all(ranks[i] < ranks[j] for i in range(7) for j in range(7) if wins[i] > wins[j])
    counts = (played.matches, played.calls, played.rounds)
    assert [set(values.tolist()) for values in counts] == [{21}, {42}, {1}]


def test_tau_to_the_truth_agrees_with_an_independent_simulation(tmp_path: Path):
    """Anchor: contestants by their own score against contestant 0, that one by its mean."""
    plan = plan_of(sizes=(6,), topologies=("round_robin", "anchor"), num_groups=600)
    rows, _ = table(run(tmp_path, plan))
    rng = np.random.default_rng(99)
    taus = []
    for _ in range(4000):
        truth = rng.normal(size=6)
        scores = np.empty(6)
        scores[1:] = 2 * truth[1:] + 0.5 * rng.normal(size=(5, 2)).sum(axis=1)
        scores[0] = np.mean(2 * truth[0] + 0.5 * rng.normal(size=(5, 2)).sum(axis=1))
        taus.append(kendalltau(scores, truth).statistic)
    (row,) = select(rows, topology="anchor")
    margin = 3 * np.std(taus) / np.sqrt(600)
    assert row["truth/tau"] == pytest.approx(np.mean(taus), abs=margin)


def test_one_order_is_doubled_and_drawn_evenly():
    batch = tiny_source.TinySource(0.5).draw(5, 400, 1)
    score, opponent = batch.merged("random", np.random.default_rng(0))
    np.testing.assert_array_equal(score, opponent.swapaxes(1, 2))
    upper = np.triu_indices(5, 1)
    shown_first = score[:, *upper] == 2 * batch.score_first[:, *upper]
    assert 0.45 < shown_first.mean() < 0.55
    shown_second = score[:, *upper] == 2 * batch.score_second.swapaxes(1, 2)[:, *upper]
    assert (shown_first ^ shown_second).all()
    with pytest.raises(DataError, match="must have a generator"):
        batch.merged("random")


def test_failed_calls_are_failed_matches_and_counted():
    batch = tiny_source.TinySource(0.5).draw(4, 10, 1)
    first, second = batch.score_first.copy(), batch.score_second.copy()
    first[:, 0, 1] = second[:, 0, 1] = np.nan
    played = play_cell(Cell("tiny", 4, "round_robin"), VerdictBatch(first, second), 0)
    assert set(played.failed) == {1}


def test_tables_are_written_whole_and_read_back(tmp_path: Path):
    write_rows(tmp_path / "out" / "t.csv", [{"a": 1, "b": 0.5}, {"a": 2, "c": float("nan")}])
    assert (tmp_path / "out" / "t.csv").read_text() == "a,b,c\n1,0.5,\n2,,nan\n"
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="a table must be writable"):
        write_rows(tmp_path / "file" / "t.csv", [{"a": 1}])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": (1, 4)}, r"group sizes must lie between 2 and 256, got \[1\]"),
        ({"topologies": ("ladder",)}, "must be among round_robin.*got ladder"),
        ({"num_groups": 5}, "--groups at least twice the largest"),
        ({"sources": {}}, "at least one of its sources"),
    ],
)
def test_a_plan_that_can_not_be_swept_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        plan_of(**changes)


def test_a_broken_cell_is_named(tmp_path: Path):
    plan = plan_of(groups_per_step=(4,))
    sweep = run(tmp_path, plan)
    path = sorted((tmp_path / "cells").glob("*swiss*"))[0]
    path.write_bytes(b"not a file of arrays")
    with pytest.raises(RecordError, match=r"readable file.*Delete it"):
        table(sweep)


def test_all_topologies_can_be_swept():
    batch = tiny_source.TinySource(0.5).draw(6, 3, 0)
    for name in TOPOLOGIES:
        assert play_cell(Cell("tiny", 6, name), batch, 0).ranks.shape == (3, 6)
