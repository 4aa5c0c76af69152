import numpy as np
import pytest

from arena_lightning.analysis.bank import BankGroup, JudgeBank
from arena_lightning.analysis.cells import Cell, play_cell
from arena_lightning.analysis.fidelity import kendall_tau, ranks_of_truth
from arena_lightning.analysis.fitting import (
    fit_labelled_pairs,
    fit_names,
    fit_round_robins,
    labelled_outcomes,
    load_fit,
    stable_fraction,
)
from arena_lightning.analysis.judging import report_judging
from arena_lightning.analysis.simulated import NoiseModel, SimulatedSource, noise_from
from arena_lightning.analysis.sources import build_sources, describe, source_settings
from arena_lightning.errors import ConfigError, DataError

# method.md 2.7: one verdict a pair, tau to the truth; +-0.04 covers both samples' errors.
CARDINAL = NoiseModel(score_noise=0.5)
WIN_LOSE = NoiseModel(score_noise=0.5, win_lose=True)
SEEDED, ALL, SWISS = "single_elimination", "round_robin", "swiss"
PUBLISHED = [
    (CARDINAL, 8, {"anchor": 0.72, SEEDED: 0.76, ALL: 0.80, SWISS: 0.67}),
    (CARDINAL, 16, {"anchor": 0.71, SEEDED: 0.76, ALL: 0.84}),
    (WIN_LOSE, 8, {"anchor": 0.52, SEEDED: 0.54, ALL: 0.765, SWISS: 0.635}),
    (WIN_LOSE, 16, {"anchor": 0.485, SEEDED: 0.49, ALL: 0.825, SWISS: 0.64}),
]


@pytest.mark.parametrize(("noise", "size", "taus"), PUBLISHED)
def test_fidelity_agrees_with_the_published_simulation(noise, size, taus):
    batch = SimulatedSource("s", noise).draw(size, 400, 0)
    truth = ranks_of_truth(batch.truth)
    for topology, expected in taus.items():
        played = play_cell(Cell("s", size, topology, "random"), batch, 0)
        assert np.nanmean(kendall_tau(played.ranks, truth)) == pytest.approx(expected, abs=0.04)


def test_a_longer_draw_starts_with_a_shorter_one():
    noise = NoiseModel(intransitivity=0.5, utility_df=4, noise_df=5, tie_grid=0.5)
    short, long = (SimulatedSource("s", noise).draw(5, count, 3) for count in (4, 9))
    np.testing.assert_array_equal(short.truth, long.truth[:4])
    np.testing.assert_array_equal(short.score_first, long.score_first[:4])


def test_each_fault_has_its_own_switch():
    def rates(**changes):
        noise = NoiseModel(**({"score_noise": 0.0} | changes))
        return report_judging(SimulatedSource("s", noise).draw(8, 300, 0))

    clean = rates()
    assert (clean.tie_rate, clean.flip_rate, clean.cycle_rate, clean.num_failed) == (0, 0, 0, 0)
    assert clean.first_share == 0.5
    assert rates(position_bias=1.0).flip_rate > 0.1 and rates(position_bias=1.0).first_share > 0.6
    assert rates(intransitivity=2.0).cycle_rate > 0.02
    assert rates(intransitivity=2.0).flip_rate == 0, "a pair's own lead is the same in both orders"
    assert rates(tie_grid=1.0).tie_rate > 0.1
    assert rates(failure_rate=0.2).num_failed == pytest.approx(0.2 * 300 * 56, rel=0.1)
    assert rates(win_lose=True, score_noise=0.5, tie_width=0.3).tie_rate > 0.05


def test_a_retest_keeps_the_groups_and_renews_what_is_not_stable():
    for stable, low, high in ((0.0, 0.0, 0.01), (0.7, 0.65, 0.75), (1.0, 1.0, 1.0)):
        source = SimulatedSource("s", NoiseModel(stable_fraction=stable))
        first, again = source.draw(6, 200, 1), source.retest(6, 200, 1)
        np.testing.assert_array_equal(first.truth, again.truth)
        off = ~np.eye(6, dtype=bool)
        same = (first.score_first == again.score_first)[:, off].mean()
        assert low <= same <= high


def test_a_spectrum_shapes_the_utilities():
    noise = NoiseModel(spectrum=(-1.0, -1.0, -1.0, -1.0, 4.0))
    truth = SimulatedSource("s", noise).draw(10, 300, 0).truth
    assert np.mean(truth == -1.0) == pytest.approx(0.75, abs=0.03)
    assert truth.max() <= 4.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"spread": -1.0}, "`spread` must be at least 0, got -1.0"),
        ({"noise_df": 1.0}, "`noise_df` must be 0, or above 2"),
        ({"failure_rate": 2.0}, "`failure_rate` must lie in 0-1"),
        ({"compression": 0.0}, "`compression` must be above 0"),
        ({"spectrum": (2.0, 1.0)}, "`spectrum` must rise"),
        ({"colour": 1}, "must be among spread.*got colour"),
    ],
)
def test_settings_out_of_range_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        noise_from(changes)


def test_a_fit_recovers_the_rates_of_a_known_judge():
    known = NoiseModel(score_noise=1.0, win_lose=True, spread=2.0, position_bias=0.8, tie_width=0.4)
    batch = SimulatedSource("known", known).draw(7, 150, 5)
    groups = tuple(
        BankGroup(str(n), tuple("abcdefg"), batch.score_first[n], batch.score_second[n])
        for n in range(150)
    )
    fit = fit_round_robins(JudgeBank("known", "known", groups, "winners"), "fit", "test")
    assert fit.noise.position_bias == pytest.approx(0.8, abs=0.2)
    assert fit.noise.tie_width == pytest.approx(0.4, abs=0.15)
    assert fit.largest_miss < 5
    for rate, observed in fit.observed.items():
        assert fit.fitted[rate] == pytest.approx(observed, abs=0.03), rate


def test_labelled_pairs_show_bias_and_errors():
    known = NoiseModel(score_noise=1.0, win_lose=True, spread=1.0, position_bias=1.5)
    outcomes = labelled_outcomes(SimulatedSource("known", known).draw(2, 3000, 2))
    fit = fit_labelled_pairs(outcomes, "fit", "test")
    assert fit.noise.position_bias == pytest.approx(1.5, abs=0.3)
    for rate, observed in fit.observed.items():
        assert fit.fitted[rate] == pytest.approx(observed, abs=0.02), rate


def test_stability_is_read_from_repeats():
    """By hand: with s = 0.8 and c = 0.5 all three agree in 0.9^2 of the calls."""
    answers = [["a", "a", "a"]] * 81 + [["a", "b", "a"]] * 19
    assert stable_fraction(answers, chance=0.5) == pytest.approx(0.8)


def test_shipped_fits_can_be_played_and_are_named():
    assert {"gpt4_like_vicuna80", "chatgpt_like", "falcon_like"} <= set(fit_names())
    settings = source_settings(["falcon_like", "cardinal"], [], ["failure_rate=0.1"])
    sources = build_sources(settings)
    assert sources["falcon_like"].noise.failure_rate == 0.1
    assert "fitted to llmbar.jsonl" in describe("falcon_like", settings["falcon_like"])
    falcon = load_fit("falcon_like")
    assert falcon.observed["flip_rate"] == pytest.approx(0.69, abs=0.01), "as published"
    assert falcon.observed["first_share"] == pytest.approx(0.84, abs=0.01)
    assert load_fit("chatgpt_like").observed["flip_rate"] == pytest.approx(0.42, abs=0.01)
    with pytest.raises(DataError, match="must be one of"):
        load_fit("nobody")
    with pytest.raises(ConfigError, match="judges must be among cardinal"):
        source_settings(["nobody"], [], [])
    with pytest.raises(ConfigError, match="KEY=NUMBER"):
        source_settings(["cardinal"], [], ["spread=wide"])
