"""Win rates: counts by hand, intervals against independent derivations."""

import math

import numpy as np
import pytest
from scipy import stats

from arena_lightning.analysis.winrate import (
    PairedCase,
    mean_win_rate,
    report_metrics,
    wilson_interval,
    win_rate,
    win_rate_by_dimension,
    win_rate_by_subtask,
    win_rate_report,
)
from arena_lightning.errors import DataError


def cases_of(pairs, subtask="direction"):
    return [PairedCase(f"p{i}", a, b, subtask) for i, (a, b) in enumerate(pairs)]


def test_ties_are_counted_apart_and_leave_the_rate():
    rate = win_rate(cases_of([(5, 4), (5, 5), (3, 4), (9, 1)]))
    assert (rate.wins, rate.ties, rate.losses, rate.num_prompts) == (2, 1, 1, 4)
    assert rate.win_rate == pytest.approx(2 / 3)
    assert rate.tie_fraction == pytest.approx(1 / 4)


def test_swapping_the_sides_mirrors_rate_and_interval():
    pairs = [(5, 4), (5, 5), (3, 4), (9, 1), (2, 1), (0, 3)]
    there, back = win_rate(cases_of(pairs)), win_rate(cases_of([(b, a) for a, b in pairs]))
    assert back.win_rate == pytest.approx(1 - there.win_rate)
    assert back.low == pytest.approx(1 - there.high)
    assert back.high == pytest.approx(1 - there.low)
    assert there.low < there.win_rate < there.high


def test_difference_of_exactly_the_margin_is_a_tie():
    pairs = [(5.0, 4.5), (5.0, 4.25)]
    assert win_rate(cases_of(pairs), tie_margin=0.5).ties == 1
    assert win_rate(cases_of(pairs)).ties == 0


def test_all_tied_or_empty_has_no_rate_instead_of_a_half():
    for rate in (win_rate(cases_of([(1, 1), (2, 2)])), win_rate([])):
        assert math.isnan(rate.win_rate) and math.isnan(rate.low) and math.isnan(rate.high)
        assert rate.interval == "none"


def test_bootstrap_agrees_with_the_binomial_when_prompts_have_one_case():
    """Resampling n prompts with w wins draws Binomial(n, w/n) wins."""
    wins, size = 60, 100
    rate = win_rate(cases_of([(1, 0)] * wins + [(0, 1)] * (size - wins)), num_resamples=20_000)
    low, high = stats.binom(size, wins / size).ppf([0.025, 0.975]) / size
    assert rate.low == pytest.approx(low, abs=0.011)
    assert rate.high == pytest.approx(high, abs=0.011)


def test_interval_resamples_prompts_and_not_cases():
    """Eight copies of every case carry no more information than one."""
    single = cases_of([(1, 0)] * 14 + [(0, 1)] * 6)
    copies = [case for case in single for _ in range(8)]
    relabelled = [PairedCase(f"q{i}", c.candidate, c.baseline) for i, c in enumerate(copies)]
    one, eight, independent = win_rate(single), win_rate(copies), win_rate(relabelled)
    assert eight.low == pytest.approx(one.low) and eight.high == pytest.approx(one.high)
    assert independent.high - independent.low < 0.6 * (one.high - one.low)


def test_interval_covers_the_true_rate_as_often_as_it_claims():
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        outcomes = rng.random(60) < 0.6
        rate = win_rate(cases_of([(1, 0) if won else (0, 1) for won in outcomes]))
        covered += rate.low <= 0.6 <= rate.high
    assert 0.89 <= covered / 200 <= 0.99


def test_all_wins_does_not_claim_certainty():
    rate = win_rate(cases_of([(1, 0)] * 10))
    reference = stats.binomtest(10, 10).proportion_ci(0.95, method="wilson")
    assert rate.interval == "wilson"
    assert (rate.low, rate.high) == pytest.approx((reference.low, reference.high), abs=1e-9)


@pytest.mark.parametrize(("wins", "size", "confidence"), [(0, 5, 0.9), (3, 7, 0.95), (9, 9, 0.99)])
def test_wilson_interval_equals_scipy(wins, size, confidence):
    reference = stats.binomtest(wins, size).proportion_ci(confidence, method="wilson")
    expected = (reference.low, reference.high)
    assert wilson_interval(wins / size, size, confidence) == pytest.approx(expected, abs=1e-9)


def test_same_seed_gives_the_same_interval_and_another_seed_another():
    cases = cases_of([(1, 0)] * 33 + [(0, 1)] * 30)
    first, again, other = (win_rate(cases, num_resamples=50, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert (first.low, first.high) != (other.low, other.high)


def test_subtasks_and_dimensions_are_rated_apart():
    cases = [
        PairedCase(
            "a", 2, 1, "direction", {"detail": 1, "breadth": 5}, {"detail": 2, "breadth": 5}
        ),
        PairedCase("b", 1, 2, "search_around", {"detail": 1}, {"detail": 4, "breadth": 1}),
    ]
    by_subtask = win_rate_by_subtask(cases)
    assert by_subtask["direction"].win_rate == 1.0 and by_subtask["search_around"].win_rate == 0.0
    by_dimension = win_rate_by_dimension(cases)
    assert by_dimension["detail"].losses == 2
    assert (by_dimension["breadth"].ties, by_dimension["breadth"].num_cases) == (1, 1)


def test_report_flattens_to_finite_metrics_only():
    case = PairedCase("p", 7.0, 5.0, "direction", {"clarity": 6.0}, {"clarity": 6.0})
    report = win_rate_report([case])
    metrics = report_metrics(report, "val/reference")
    assert metrics["val/reference/win_rate"] == 1.0
    assert metrics["val/reference/mean_difference"] == pytest.approx(2.0)
    assert metrics["val/reference/subtask/direction/win_rate"] == 1.0
    assert metrics["val/reference/dimension/clarity/tie_fraction"] == 1.0
    assert "val/reference/dimension/clarity/win_rate" not in metrics
    assert all(math.isfinite(value) for value in metrics.values())


def test_score_that_is_not_finite_is_refused():
    with pytest.raises(DataError, match="must be finite, got nan against 1"):
        win_rate(cases_of([(float("nan"), 1)]))


def test_the_mean_of_two_judges_is_each_ones_rate_over_its_own_decided_cases():
    one = cases_of([(5, 4), (5, 5), (3, 4), (9, 1)])  # 2 of 3
    other = cases_of([(5, 4), (5, 6), (3, 4)])  # 1 of 3; it failed on the last
    mean = mean_win_rate([one, other])
    assert mean.win_rate == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert mean.num_judges == 2


def test_the_mean_of_one_judge_is_that_judge():
    cases = cases_of([(1, 0)] * 20 + [(0, 1)] * 12 + [(1, 1)] * 5)
    rate, mean = win_rate(cases, seed=3), mean_win_rate([cases], seed=3)
    assert (mean.win_rate, mean.low, mean.high) == (rate.win_rate, rate.low, rate.high)


def test_judges_that_agree_on_every_case_narrow_nothing_and_opposed_ones_cancel():
    cases = cases_of([(1, 0)] * 20 + [(0, 1)] * 12)
    opposed = cases_of([(0, 1)] * 20 + [(1, 0)] * 12)
    alone, twice = mean_win_rate([cases]), mean_win_rate([cases, cases])
    assert (twice.low, twice.high) == pytest.approx((alone.low, alone.high))
    # The same draw for both: the mean is 1/2 in every resample.
    both = mean_win_rate([cases, opposed])
    assert (both.win_rate, both.low, both.high) == pytest.approx((0.5, 0.5, 0.5))


def test_a_mean_without_a_decided_case_of_some_judge_is_nan_and_a_unanimous_one_is_wilson():
    won, tied = cases_of([(1, 0)] * 8), cases_of([(1, 1)] * 8)
    assert math.isnan(mean_win_rate([won, tied]).win_rate)
    assert math.isnan(mean_win_rate([[]]).win_rate)
    mean = mean_win_rate([won, won])
    assert (mean.win_rate, mean.low, mean.high) == pytest.approx((1.0, *wilson_interval(1.0, 8)))
