"""Hockney's parameters are recovered from times made with known ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hockney.fit import HockneyFit, NoFit, fit_hockney

SIZES = [0, 8, 64, 512, 4096, 32768, 262144, 1 << 20]
T0_NS, R_INF = 800.0, 4e9
N_HALF = T0_NS * R_INF / 1e9


def line(sizes: list[int]) -> list[float]:
    return [T0_NS + size / R_INF * 1e9 for size in sizes]


def fitted(sizes: list[int], times_ns: list[float]) -> HockneyFit:
    found = fit_hockney(sizes, times_ns)
    assert isinstance(found, HockneyFit)
    return found


@pytest.mark.parametrize("sizes", [SIZES, SIZES[::-1], SIZES[:3], [1 << 30, 1 << 20, 8]])
def test_a_straight_line_is_found_exactly(sizes: list[int]) -> None:
    found = fitted(sizes, line(sizes))
    assert found.t0_ns == pytest.approx(T0_NS, rel=1e-6)
    assert found.r_inf_bytes_per_s == pytest.approx(R_INF, rel=1e-6)
    assert found.n_half_bytes == pytest.approx(N_HALF, rel=1e-6)
    assert found.relative_rms < 1e-6
    assert found.n_half_se_bytes < 1e-3 * N_HALF
    assert found.sizes == len(sizes)
    assert found.time_ns(1000) == pytest.approx(T0_NS + 250)


def test_half_of_the_rate_is_reached_at_n_half() -> None:
    found = fitted(SIZES, line(SIZES))
    assert found.n_half_bytes / found.time_ns(found.n_half_bytes) * 1e9 == pytest.approx(R_INF / 2)


def test_standard_errors_are_those_that_happen() -> None:
    """3 % noise on every time, 600 times: the estimates scatter by their standard errors, around the truth."""
    rng = np.random.default_rng(2)
    sizes = [1 << n for n in range(21)]
    found = [
        fitted(sizes, (np.array(line(sizes)) * (1 + rng.normal(0, 0.03, len(sizes)))).tolist()) for _ in range(600)
    ]
    for values, errors, truth in (
        ([each.t0_ns for each in found], [each.t0_se_ns for each in found], T0_NS),
        ([each.r_inf_bytes_per_s for each in found], [each.r_inf_se_bytes_per_s for each in found], R_INF),
        ([each.n_half_bytes for each in found], [each.n_half_se_bytes for each in found], N_HALF),
    ):
        assert np.mean(values) == pytest.approx(truth, rel=0.005)
        assert np.std(values) == pytest.approx(np.mean(errors), rel=0.15)
    assert np.mean([each.relative_rms for each in found]) == pytest.approx(0.03, rel=0.1)


def test_every_size_counts_alike() -> None:
    """One long message 10 % off moves r_inf, not t_0; unweighted it would push t_0 below zero."""
    times_ns = line(SIZES)
    times_ns[-1] *= 1.1
    found = fitted(SIZES, times_ns)
    assert found.t0_ns == pytest.approx(T0_NS, rel=0.02)
    unweighted = np.polyfit(SIZES, times_ns, 1)[1]
    assert abs(found.t0_ns - T0_NS) < abs(unweighted - T0_NS)


def test_repeated_sizes_count_once_as_sizes() -> None:
    assert fitted(SIZES * 3, line(SIZES) * 3).sizes == len(SIZES)


@pytest.mark.parametrize(
    ("sizes", "times_ns", "reason"),
    [
        ([], [], "a fit needs three sizes, there are 0"),
        ([8], [1.0], "a fit needs three sizes, there is 1"),
        ([8, 8, 64, 64], [1.0, 1.0, 2.0, 2.0], "a fit needs three sizes, there are 2"),
        ([1, 2, 3], [1.0, 0.0, 3.0], "a fit needs positive times"),
        ([1, 2, 3], [1.0, math.nan, 3.0], "a fit needs positive times"),
        ([1, 2, 3], [3.0, 2.0, 1.0], "times do not grow with the size, so there is no rate to approach"),
        ([1, 2, 3], [5.0, 5.0, 5.0], "times do not grow with the size, so there is no rate to approach"),
        (
            [1, 2, 4],
            [1.0, 4.0, 16.0],
            "the line through the times meets size 0 below zero: they grow faster than the size",
        ),
    ],
)
def test_no_fit_says_why(sizes: list[int], times_ns: list[float], reason: str) -> None:
    assert fit_hockney(sizes, times_ns) == NoFit(reason)


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        fit_hockney([1, 2, 3], [1.0])
