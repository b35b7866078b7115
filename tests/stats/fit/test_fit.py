"""One straight line: Hockney's parameters are recovered from times made with known ones, and their intervals hold."""

from __future__ import annotations

import numpy as np
import pytest
from tests.stats.fit.truth import LINE_GRIDS, lines_score

from hockney.stats.fit import Segment, fit_line

SIZES = [0, 8, 64, 512, 4096, 32768, 262144, 1 << 20]
T0_NS, R_INF = 800.0, 4e9
N_HALF = T0_NS * R_INF / 1e9


def line(sizes: list[int]) -> list[float]:
    return [T0_NS + size / R_INF * 1e9 for size in sizes]


def fitted(sizes: list[int], times_ns: list[float], errors: list[float] | None = None) -> Segment:
    fit = fit_line(sizes, times_ns, errors)
    assert isinstance(fit, Segment)
    return fit


@pytest.mark.parametrize("sizes", [SIZES, SIZES[::-1], SIZES[:3], [1 << 30, 1 << 20, 8]])
def test_a_straight_line_is_found_exactly(sizes: list[int]) -> None:
    fit = fitted(sizes, line(sizes))
    assert fit.r_inf_bytes_per_s is not None
    assert fit.n_half_bytes is not None
    assert fit.t0_ns.value == pytest.approx(T0_NS, rel=1e-6)
    assert fit.r_inf_bytes_per_s.value == pytest.approx(R_INF, rel=1e-6)
    assert fit.n_half_bytes.value == pytest.approx(N_HALF, rel=1e-6)
    assert fit.n_half_bytes.high - fit.n_half_bytes.low < 1e-3 * N_HALF
    assert fit.relative_rms < 1e-6
    assert (fit.first_bytes, fit.last_bytes, fit.sizes) == (min(sizes), max(sizes), len(sizes))
    assert fit.time_ns(1000) == pytest.approx(T0_NS + 250)


def test_estimates_scatter_around_the_truth() -> None:
    """3 % noise on every time, 600 times."""
    rng = np.random.default_rng(2)
    sizes = [1 << n for n in range(21)]
    fits = [fitted(sizes, (np.array(line(sizes)) * (1 + rng.normal(0, 0.03, len(sizes)))).tolist()) for _ in range(600)]
    rates = [each.r_inf_bytes_per_s for each in fits]
    halves = [each.n_half_bytes for each in fits]
    for estimates, truth in (([each.t0_ns for each in fits], T0_NS), (rates, R_INF), (halves, N_HALF)):
        values = [estimate.value for estimate in estimates if estimate is not None]
        assert len(values) == len(fits)
        assert np.mean(values) == pytest.approx(truth, rel=0.005)
    assert np.mean([each.relative_rms for each in fits]) == pytest.approx(0.03, rel=0.1)


@pytest.mark.parametrize("grid", LINE_GRIDS)
@pytest.mark.parametrize("alike", [0.0, 1.5])
@pytest.mark.parametrize("unequal", [False, True])
def test_intervals_cover_a_line_with_lack_of_fit(grid: str, alike: float, unequal: bool) -> None:
    """Every size off its line by some 10 %, neighbours alike or not, and by its own known error."""
    counts = lines_score(grid, missed=0.1, alike=alike, unequal=unequal, curves=200)
    assert counts.intervals >= 3 * counts.curves
    assert 0.9 <= counts.covered / counts.intervals <= 0.99


def test_precise_times_do_not_rule_a_line_that_misses_them() -> None:
    """All sizes are off by 15 %, three with certainty: the interval of the rate is as wide as without errors."""
    rng = np.random.default_rng(7)
    errors = [0.005 if size >= 32768 else 0.05 for size in SIZES]
    times = (np.array(line(SIZES)) * np.exp(rng.normal(0, 0.15, len(SIZES)))).tolist()
    with_errors, without = fitted(SIZES, times, errors), fitted(SIZES, times)
    assert with_errors.ns_per_byte.high - with_errors.ns_per_byte.low == pytest.approx(
        without.ns_per_byte.high - without.ns_per_byte.low, rel=0.1
    )


def test_a_slow_wave_around_a_line_leaves_few_independent_sizes() -> None:
    """Neighbours are so alike that 60 sizes count as two: the interval is many times that of scattered misses."""
    at = np.linspace(0, np.pi, 60)
    wave = 0.01 * (np.sin(at) - 3 * np.sin(3 * at))  # neither it nor its slope is part of a line
    sizes = list(range(60))
    fits = [
        fitted(sizes, ((1000 + np.array(sizes)) * (1 + misses)).tolist())
        for misses in (wave, np.random.default_rng(3).permutation(wave))
    ]
    widths = [fit.ns_per_byte.high - fit.ns_per_byte.low for fit in fits]
    assert widths[0] > 4 * widths[1]


def test_errors_are_relative() -> None:
    """One long message 10 % off moves r_inf, not t_0; unweighted it would push t_0 below zero."""
    times_ns = line(SIZES)
    times_ns[-1] *= 1.1
    fit = fitted(SIZES, times_ns)
    assert fit.t0_ns.value == pytest.approx(T0_NS, rel=0.02)
    unweighted = np.polyfit(SIZES, times_ns, 1)[1]
    assert abs(fit.t0_ns.value - T0_NS) < abs(unweighted - T0_NS)


@pytest.mark.parametrize("times_ns", [[3.0, 2.0, 1.0], [5.0, 5.1, 5.0], [5.0, 5.0, 5.0]])
def test_flat_or_falling_times_have_no_rate(times_ns: list[float]) -> None:
    fit = fitted([1, 2, 3], times_ns)
    assert fit.r_inf_bytes_per_s is None
    assert fit.n_half_bytes is None


def test_times_that_grow_faster_than_the_size_have_no_n_half() -> None:
    fit = fitted([1, 2, 4, 8], [1.0, 4.0, 16.0, 64.0])
    assert fit.t0_ns.value < 0
    assert fit.n_half_bytes is None


def test_each_error_stays_with_its_size_in_any_order() -> None:
    errors = [0.5, *[0.01] * (len(SIZES) - 1)]
    times_ns = [2 * T0_NS, *line(SIZES)[1:]]
    assert fitted(SIZES[::-1], times_ns[::-1], errors[::-1]) == fitted(SIZES, times_ns, errors)


def test_known_errors_widen_the_interval_of_three_times() -> None:
    """Three times that are known to 10 % each."""
    fit = fitted([1024, 65536, 1 << 20], line([1024, 65536, 1 << 20]), [0.1] * 3)
    assert fit.r_inf_bytes_per_s is None or fit.r_inf_bytes_per_s.low < 0.9 * R_INF
