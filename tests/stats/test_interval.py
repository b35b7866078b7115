"""Intervals against published tables, exact sums, and simulated data whose truth is known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from hockney.stats import Estimate, Interval, median
from hockney.stats.interval import median_in_order, order_rank, t_quantile


@pytest.mark.parametrize(
    ("n", "low", "high", "coverage"),
    [  # Conover, Practical Nonparametric Statistics, and every table since: 95 %, median
        (6, 1, 6, 0.9688),
        (8, 1, 8, 0.9922),
        (9, 2, 8, 0.9609),
        (10, 2, 9, 0.9785),
        (15, 4, 12, 0.9648),
        (20, 6, 15, 0.9586),
        (25, 8, 18, 0.9567),
        (50, 18, 33, 0.9672),
        (100, 40, 61, 0.9648),
    ],
)
def test_ranks_of_the_median(n: int, low: int, high: int, coverage: float) -> None:
    rank, covered = order_rank(n)
    assert (rank, n + 1 - rank) == (low, high)
    assert covered == pytest.approx(coverage, abs=5e-5)


def test_too_few_values_have_no_interval() -> None:
    assert [n for n in range(9) if order_rank(n)[0] == 0] == list(range(6))


def test_many_values() -> None:
    """For a million the normal approximation is exact to a rank, and the sum must not lose itself in rounding."""
    rank, covered = order_rank(1_000_000)
    assert rank == pytest.approx(500_000 - 1.959964 * 500, abs=2)
    assert covered == pytest.approx(0.95, abs=1e-3)


def test_interval_lies_between_order_statistics() -> None:
    values = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0, 10.0]
    interval = median(values)
    assert (interval.value, interval.low, interval.high, interval.n) == (5.5, 2.0, 9.0, 10)
    assert interval.coverage == pytest.approx(0.97852, abs=1e-5)
    assert interval.precision == pytest.approx(3.5 / 5.5)


def test_interval_of_too_few_values_is_unknown() -> None:
    assert median([3.0, 1.0, 2.0]) == Interval(2.0, None, None, 3, None)
    assert median([3.0]).precision is None


def test_the_input_is_not_sorted_in_place() -> None:
    values = np.array([3.0, 1.0, 2.0])
    median(values)
    assert values.tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize("values", [[], [1.0, math.nan]])
def test_no_value_and_nan_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one value, and no NaN"):
        median(values)


@pytest.mark.parametrize("n", [6, 11, 40])
@pytest.mark.parametrize("shape", ["normal", "lognormal", "two levels"])
def test_intervals_cover_the_truth(n: int, shape: str) -> None:
    rng = np.random.default_rng(n)
    trials = 4000
    normal = rng.normal(size=(trials, n))
    samples = {
        "normal": normal + 100,
        "lognormal": np.exp(normal * 2),
        "two levels": np.where(rng.random((trials, n)) < 0.7, 100, 500) + normal,
    }[shape]
    # 0.7 of "two levels" are on the lower one: the median is where that level's share reaches 0.5 / 0.7.
    truth = {"normal": 100.0, "lognormal": 1.0, "two levels": 100 + 0.565949}[shape]
    intervals = [median(row) for row in samples]
    covered = sum(each.estimate is not None and each.estimate.low <= truth <= each.estimate.high for each in intervals)
    expected = intervals[0].coverage
    assert expected is not None
    assert covered / trials == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / trials))


@pytest.mark.parametrize("n", [12, 40, 200])
def test_intervals_cover_the_truth_though_neighbours_correlate(n: int) -> None:
    """Averages of two shocks, which correlate by a half with the next one."""
    rng = np.random.default_rng(n)
    shocks = rng.normal(size=(2000, n + 1))
    series = [row.tolist() for row in 100 + shocks[:, 1:] + shocks[:, :-1]]
    as_independent, in_order = ([function(row) for row in series] for function in (median, median_in_order))
    shares = [
        sum(each.estimate is not None and each.estimate.low <= 100 <= each.estimate.high for each in intervals) / 2000
        for intervals in (as_independent, in_order)
    ]
    assert shares[1] > max(0.94, shares[0] + 0.02)


def test_an_interval_in_order_is_never_narrower_and_of_independent_values_hardly_wider() -> None:
    rng = np.random.default_rng(1)
    widths = []
    for row in rng.normal(size=(500, 100)).tolist():
        plain, ordered = median(row).estimate, median_in_order(row).estimate
        assert plain is not None
        assert ordered is not None
        assert min(row) <= ordered.low <= plain.low <= ordered.value == plain.value <= plain.high <= ordered.high
        widths.append((ordered.high - ordered.low) / (plain.high - plain.low))
    assert np.mean(widths) < 1.15


def test_the_order_of_values_decides_how_wide_an_interval_is() -> None:
    alternating = [100.0 + (-1) ** at * at for at in range(40)]
    assert median_in_order(alternating) == median(alternating)
    plain, rising = median(alternating).estimate, median_in_order(sorted(alternating)).estimate
    assert plain is not None
    assert rising is not None
    assert rising.high - rising.low > 2 * (plain.high - plain.low)


@pytest.mark.parametrize("values", [[1.0] * 5, [1.0] * 40, [float(value) for value in range(9)]])
def test_too_few_values_show_no_correlation_and_equal_ones_have_none(values: list[float]) -> None:
    assert median_in_order(values) == median(values)


def test_values_that_repeat_share_a_rank() -> None:
    """A coarse clock: the order in which equal values are sorted is no trend."""
    coarse = [*[100.0] * 18, 99.0, 101.0] * 5
    assert median_in_order(coarse) == median(coarse)


@pytest.mark.parametrize("dof", [1, 2, 3, 5, 9, 30, 1000])
def test_t_quantiles_are_two_sided(dof: int) -> None:
    assert t_quantile(dof) == pytest.approx(stats.t.ppf(0.975, dof), rel=0.002)


def test_bounds_of_results_are_the_outermost() -> None:
    first, second = Estimate(6.0, 4.0, 9.0), Estimate(2.0, 1.0, 3.0)
    pairs = list(itertools.product((4.0, 9.0), (1.0, 3.0)))
    less, quotients = [a - b for a, b in pairs], [a / b for a, b in pairs]
    assert first - second == Estimate(4.0, min(less), max(less))
    assert first / second == Estimate(3.0, min(quotients), max(quotients))
    assert 12.0 / second == Estimate(6.0, 4.0, 12.0)
    assert first * 2.0 == Estimate(12.0, 8.0, 18.0)
    assert Estimate.of_all([first, second, Estimate(3.0, 2.5, 10.0)]) == Estimate(3.0, 1.0, 10.0)
