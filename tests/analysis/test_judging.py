from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from arena_lightning.analysis.bank import load_bank
from arena_lightning.analysis.judging import dimension_agreement, reliability, report_judging
from arena_lightning.analysis.simulated import NoiseModel, SimulatedSource
from arena_lightning.analysis.verdict_batch import VerdictBatch
from tests.analysis.test_bank import DATA, record, written


def brute(batch):
    """Count everything with loops."""
    counts = dict.fromkeys(("ties", "calls", "first", "decided", "flips", "odd", "pairs"), 0)
    cycles = triads = 0
    for first, second in zip(batch.score_first, batch.score_second, strict=True):
        size = len(first)
        ahead = {}
        for i in range(size):
            for j in range(size):
                if i != j and not np.isnan(first[i, j]):
                    counts["calls"] += 1
                    counts["ties"] += first[i, j] == second[i, j]
                    counts["decided"] += first[i, j] != second[i, j]
                    counts["first"] += first[i, j] > second[i, j]
        for i, j in combinations(range(size), 2):
            if np.isnan(first[i, j]) or np.isnan(first[j, i]):
                continue
            one, other = np.sign(first[i, j] - second[i, j]), np.sign(second[j, i] - first[j, i])
            counts["pairs"] += 1
            counts["odd"] += one != other
            counts["flips"] += one * other < 0
            total = first[i, j] - second[i, j] + second[j, i] - first[j, i]
            if abs(total) > 1e-9:
                ahead[i, j], ahead[j, i] = total > 0, total < 0
        for i, j, k in combinations(range(size), 3):
            triads += 1
            cycles += any(
                ahead.get((a, b)) and ahead.get((b, c)) and ahead.get((c, a))
                for a, b, c in ((i, j, k), (i, k, j))
            )
    return counts, cycles / triads


def test_rates_are_those_of_a_brute_force_count():
    noise = NoiseModel(tie_grid=1.0, position_bias=0.7, failure_rate=0.1, intransitivity=1.0)
    batch = SimulatedSource("s", noise).draw(5, 30, 1)
    counts, cycles = brute(batch)
    report = report_judging(batch)
    assert report.num_failed == 30 * 20 - counts["calls"] > 0
    assert report.tie_rate == counts["ties"] / counts["calls"]
    assert report.first_share == counts["first"] / counts["decided"]
    assert report.flip_rate == counts["flips"] / counts["pairs"]
    assert report.inconsistent_rate == counts["odd"] / counts["pairs"]
    assert report.cycle_rate == pytest.approx(cycles)
    assert cycles > 0


def test_spread_and_noise_are_recovered_and_compression_shows():
    sharp = report_judging(SimulatedSource("s", NoiseModel(spread=2.0)).draw(12, 300, 0))
    assert sharp.spread == pytest.approx(2.0, rel=0.05)
    assert sharp.noise == pytest.approx(0.5, rel=0.05)
    flat = NoiseModel(spread=2.0, compression=0.2)
    dull = report_judging(SimulatedSource("s", flat).draw(12, 300, 0))
    assert dull.discrimination == pytest.approx(sharp.discrimination / 5, rel=0.1)


def test_more_calls_buy_reliability_and_a_perfect_judge_needs_few():
    noisy = SimulatedSource("s", NoiseModel(score_noise=2.0)).draw(8, 200, 0)
    taus = [estimate.mean for estimate in reliability(noisy).values()]
    assert taus == sorted(taus) and taus[-1] > taus[0] + 0.1
    perfect = SimulatedSource("s", NoiseModel(score_noise=0.0)).draw(8, 200, 0)
    assert list(reliability(perfect).values())[-1].mean > 0.7


def test_a_judge_that_says_nothing_has_no_rates():
    nothing = VerdictBatch(np.full((2, 3, 3), np.nan), np.full((2, 3, 3), np.nan))
    report = report_judging(nothing)
    assert report.num_failed == 12
    assert np.isnan(report.tie_rate)


def test_a_dimension_that_contradicts_the_verdict_is_seen(tmp_path: Path):
    judged = record()
    for match in judged["matches"]:
        for side, other in (("a", "b"), ("b", "a")):
            own, their = match[f"score_{side}"], match[f"score_{other}"]
            match[f"dimensions_{side}"] = {"with": own, "against": their}
    bank = load_bank(written(tmp_path, judged))
    assert dimension_agreement(bank) == {"with": 1.0, "against": 0.0}


@pytest.mark.skipif(not DATA.is_dir(), reason="the public pairwise data isn't here")
def test_gpt4s_rates_are_those_published_with_the_data():
    bank = load_bank(DATA / "qlora_vicuna80_gpt4_roundrobin.jsonl", complete=False)
    report = report_judging(bank.batch())
    assert report.tie_rate == pytest.approx(0.134, abs=0.001)
    assert report.inconsistent_rate == pytest.approx(0.386, abs=0.001)
    assert report.flip_rate == pytest.approx(0.205, abs=0.001)
    assert report.first_share == pytest.approx(0.650, abs=0.001)
    assert report.summed_tie_rate == pytest.approx(0.249, abs=0.003)
    assert report.cycle_rate == pytest.approx(0.0011, abs=0.0001)
