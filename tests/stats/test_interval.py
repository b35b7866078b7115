"""Intervals against published tables, exact sums, and simulated data whose truth is known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hockney.stats import Interval, median, order_ranks, quantile


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
    found = order_ranks(n, 0.5, 0.95)
    assert found is not None
    assert found[:2] == (low, high)
    assert found[2] == pytest.approx(coverage, abs=5e-5)


@pytest.mark.parametrize(("confidence", "n_min"), [(0.9, 5), (0.95, 6), (0.99, 8), (0.999, 11)])
def test_too_few_values_have_no_interval(confidence: float, n_min: int) -> None:
    assert [n for n in range(n_min + 3) if order_ranks(n, 0.5, confidence) is None] == list(range(n_min))


def exact_below(n: int, q: float) -> list[float]:
    """P(B < k) for B binomial, for k = 0 .. n + 1."""
    return [0.0, *itertools.accumulate(math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1))]


@pytest.mark.parametrize("q", [0.05, 0.25, 0.5, 0.9, 0.99])
def test_ranks_are_the_narrowest_with_equal_tails(q: float) -> None:
    for n, confidence in itertools.product((1, 7, 30, 59, 200, 600), (0.8, 0.95, 0.99)):
        tail = (1 - confidence) / 2
        below = exact_below(n, q)
        low = max(k for k in range(n + 1) if below[k] <= tail + 1e-12)
        high = min((k for k in range(n + 2) if 1 - below[k] <= tail + 1e-12), default=n + 1)
        found = order_ranks(n, q, confidence)
        if low == 0 or high > n:
            assert found is None
        else:
            assert found is not None
            assert found[:2] == (low, high)
            assert found[2] == pytest.approx(below[high] - below[low], abs=1e-9)


def test_many_values() -> None:
    """For a million the normal approximation is exact to a rank, and the sum must not lose itself in rounding."""
    found = order_ranks(1_000_000, 0.5, 0.95)
    assert found is not None
    assert found[0] == pytest.approx(500_000 - 1.959964 * 500, abs=2)
    assert found[0] + found[1] == 1_000_001
    assert found[2] == pytest.approx(0.95, abs=1e-3)


def test_interval_lies_between_order_statistics() -> None:
    values = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0, 10.0]
    found = median(values)
    assert (found.value, found.low, found.high, found.n) == (5.5, 2.0, 9.0, 10)
    assert found.coverage == pytest.approx(0.97852, abs=1e-5)
    assert found.precision == pytest.approx(3.5 / 5.5)


def test_interval_of_too_few_values_is_unknown() -> None:
    assert median([3.0, 1.0, 2.0]) == Interval(2.0, None, None, 3, None)
    assert median([3.0]).precision is None
    assert quantile(range(200), 0.99).high is None  # 99 % of 200 leaves too little above


def test_the_input_is_not_sorted_in_place() -> None:
    values = np.array([3.0, 1.0, 2.0])
    median(values)
    assert values.tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize("values", [[], [1.0, math.nan]])
def test_no_value_and_nan_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one value, and no NaN"):
        median(values)


@pytest.mark.parametrize(("q", "confidence"), [(0.0, 0.95), (1.0, 0.95), (0.5, 0.0), (0.5, 1.0), (0.5, 95.0)])
def test_no_probability(q: float, confidence: float) -> None:
    with pytest.raises(ValueError, match="not between 0 and 1"):
        order_ranks(10, q, confidence)


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
    # 0.7 of "two levels" lie on the lower one: the median is where that one's own share reaches 0.5 / 0.7.
    truth = {"normal": 100.0, "lognormal": 1.0, "two levels": 100 + 0.565949}[shape]
    found = [median(row) for row in samples]
    covered = sum(each.low is not None and each.high is not None and each.low <= truth <= each.high for each in found)
    expected = found[0].coverage
    assert expected is not None
    assert covered / trials == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / trials))


def test_quantiles_equal_those_of_numpy() -> None:
    """It is taken without numpy's function, and must be the same to the last bit."""
    random = np.random.default_rng(1)
    for n, q in itertools.product((1, 2, 3, 6, 11, 40, 1001), (0.01, 0.25, 0.5, 0.7, 0.99)):
        values = random.lognormal(5, 2, n)
        assert quantile(values, q).value == np.quantile(values, q)
