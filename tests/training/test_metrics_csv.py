"""The metrics file keeps earlier rows across a resume and drops the ones that are trained again."""

import csv

from arena_lightning.reporting.metrics_csv import CSVMetrics


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_rows_of_one_step_are_merged_and_late_columns_kept(tmp_path):
    log = CSVMetrics(str(tmp_path))
    log.log_metrics({"train/loss": 1.0, "epoch": 0}, 0)
    log.log_metrics({"arena/tie_fraction": 0.5}, 0)
    log.log_metrics({"train/loss": 2.0}, 1)
    log.save()
    assert rows(log.path) == [
        {"step": "0", "arena/tie_fraction": "0.5", "train/loss": "1.0"},
        {"step": "1", "arena/tie_fraction": "", "train/loss": "2.0"},
    ]


def test_a_resumed_run_keeps_what_came_before_and_replaces_what_comes_again(tmp_path):
    log = CSVMetrics(str(tmp_path))
    for step in range(4):
        log.log_metrics({"train/loss": float(step)}, step)
    log.save()
    resumed = CSVMetrics(str(tmp_path))
    resumed.restore(before_step=2)
    resumed.log_metrics({"train/loss": 20.0}, 2)
    resumed.save()
    assert [row["train/loss"] for row in rows(log.path)] == ["0.0", "1.0", "20.0"]
