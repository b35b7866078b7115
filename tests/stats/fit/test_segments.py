"""Segments, switches and outliers are found in curves made with known ones."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from tests.matrix import matrix
from tests.stats.fit.bounds import best_division, best_divisions, chance_within, errors_of_line
from tests.stats.fit.truth import NOISES, SEGMENT_SIZES, Score, score, sizes_of

from hockney.stats.fit import NoFit, SegmentFit, fit_line, fit_segments

SIZES = sizes_of(24)


def eager_then_rendezvous(size: float) -> float:
    return 300 + size / 8 if size <= 4096 else 1200 + size / 11


def straight(size: float) -> float:
    return 800 + size / 4


def fitted(
    curve: Callable[[float], float],
    sizes: list[int] = SIZES,
    blips: dict[int, float] | None = None,
    noise: float = 0.0,
) -> SegmentFit:
    blips = blips or {}
    fit = fit_segments(sizes, [curve(size) * blips.get(size, 1.0) for size in sizes], [1.96 * noise] * len(sizes))
    assert isinstance(fit, SegmentFit)
    return fit


@pytest.mark.parametrize("sizes", [SIZES, SIZES[::-1], SIZES[:3]])
def test_a_straight_line_is_one_segment(sizes: list[int]) -> None:
    fit = fitted(straight, sizes)
    assert fit.segments == (fit_line(sizes, [straight(size) for size in sizes]),)
    assert fit.sizes_bytes == tuple(sorted(sizes))
    assert (fit.switches, fit.outliers) == ((), ())


def test_a_switch_has_its_sizes_and_jump() -> None:
    fit = fitted(eager_then_rendezvous)
    (switch,) = fit.switches
    assert (switch.below_bytes, switch.above_bytes) == (4096, 8192)
    jumps_ns = {size: 1200 + size / 11 - (300 + size / 8) for size in (4096, 6144, 8192)}
    assert switch.jump_ns.value == pytest.approx(jumps_ns[6144])
    assert (switch.jump_ns.low, switch.jump_ns.high) == pytest.approx((jumps_ns[8192], jumps_ns[4096]))
    assert switch.relative.value == pytest.approx(jumps_ns[6144] / (300 + 6144 / 8))
    assert switch.relative.high == pytest.approx(jumps_ns[4096] / (300 + 4096 / 8))
    assert [segment.t0_ns.value for segment in fit.segments] == pytest.approx([300, 1200])


def test_a_change_of_slope_alone_is_a_bend() -> None:
    noise = np.random.default_rng(5).normal(1, 0.01, 60)
    sizes = sizes_of(60)
    times = [(1000 + size / 10 + max(0, size - 70000) / 4) * e for size, e in zip(sizes, noise, strict=True)]
    fit = fit_segments(sizes, times)
    assert isinstance(fit, SegmentFit)
    (switch,) = fit.switches
    assert 32768 <= switch.below_bytes < switch.above_bytes <= 131072
    assert switch.bend
    assert not fitted(eager_then_rendezvous).switches[0].bend
    assert fit.segments[1].ns_per_byte.low > fit.segments[0].ns_per_byte.high


@pytest.mark.parametrize("blips", [{4096: 1.4}, {0: 1.3}, {1 << 22: 1.5}, {512: 0.7}, {64: 1.2, 65536: 1.3}])
def test_outliers_do_not_move_the_line(blips: dict[int, float]) -> None:
    fit = fitted(straight, blips=blips)
    assert {fit.sizes_bytes[i] for i in fit.outliers} == set(blips)
    assert len(fit.segments) == 1
    assert fit.segments[0].t0_ns.value == pytest.approx(800)
    for index in fit.outliers:
        assert fit.residuals[index] == pytest.approx(blips[fit.sizes_bytes[index]] - 1)


@pytest.mark.parametrize("noise", [0.003, 0.03])
@pytest.mark.parametrize("sizes", matrix([24, 36, 60], short=[24, 60]))
@pytest.mark.parametrize(
    "curve", [lambda size: 300 + 20 * size**0.5, lambda size: 300 + 0.2 * size * (1 + 0.1 * math.log2(1 + size / 1024))]
)
def test_a_smooth_curve_is_curved(curve: Callable[[float], float], sizes: int, noise: float) -> None:
    rng = np.random.default_rng(6)
    fits = [fitted(lambda size: curve(size) * rng.normal(1, noise), sizes_of(sizes), noise=noise) for _ in range(20)]
    assert sum(fit.curved for fit in fits) >= 19
    assert not any(switch.is_jump for fit in fits for switch in fit.switches)
    assert not fitted(eager_then_rendezvous).curved


def knee(size: float, octaves: float) -> float:
    """The rate falls by half around 64 KiB: from 90 to 10 % of the change over this many powers of two."""
    way: float = 1 / (1 + (65536 / max(size, 1e-9)) ** (4.394 / math.log(2) / octaves))
    return 300 + size * 0.1 * (1 + way)


@pytest.mark.parametrize("noise", [0.003, 0.01])
@pytest.mark.parametrize("octaves", matrix([2, 3, 4], short=[2, 4]))
def test_a_smooth_knee_is_no_jump(octaves: float, noise: float) -> None:
    rng = np.random.default_rng(6)
    fits = (fitted(lambda size: knee(size, octaves) * rng.normal(1, noise)) for _ in range(50))
    assert not any(switch.is_jump for fit in fits for switch in fit.switches)


# ---- the constants of the search, each by a curve just within it and one just beyond ---------------------------------


Times = tuple[list[int], list[float], float]  # and the error of each


def stepped(jump: float, error: float = 0.05) -> Times:
    sizes = [256 * number for number in range(1, 17)]
    return sizes, [(100 + size / 100) * (1 + jump * (size > 2048)) for size in sizes], error


def stairs(steps: int) -> Times:
    sizes = [64 * number for number in range(1, 6 * steps + 1)]
    return sizes, [100.0 * (1 + at // 6) ** 2 + size / 50 for at, size in enumerate(sizes)], 0.0


def spotted(segments: int, count: int, least: float, growth: float, jump: float, error: float) -> Times:
    """Three outliers in each segment of a stair, each `growth` times as large as the one before it."""
    sizes = [64 * number for number in range(1, count + 1)]
    times = [100 * jump ** (at * segments // count) + size / 50 for at, size in enumerate(sizes)]
    width = count // segments
    for number, nth in enumerate((1, 2, 3)):
        for segment in range(segments):
            times[segment * width + width // 4 * nth] *= 1 + least * growth ** (segments * number + segment)
    return sizes, times, error


def of_powers(text: str) -> Times:
    times_ns = list(map(float, text.split()))
    return [8 << number for number in range(len(times_ns))], times_ns, 0.05


def gradual(octaves: float) -> Times:
    sizes = [1 << power for power in range(4, 24)]
    return sizes, [knee(size, octaves) for size in sizes], 0.01


@pytest.mark.parametrize(
    ("curve", "segments", "outliers", "is_curved"),
    [
        (stepped(0.0700), 1, 0, False),  # eight sizes of noise are known before
        (stepped(0.0716), 2, 0, False),
        (stepped(0.012, 0.0), 1, 0, False),  # times are never known better than to half a percent
        (stepped(0.015, 0.0), 2, 0, False),
        (stairs(9), 9, 0, False),  # ten segments are searched for
        (stairs(10), 10, 0, True),
        (spotted(2, 60, 0.3, 1.6, 3.0, 0.0), 2, 6, False),  # two outliers in each of four passes
        (spotted(3, 79, 0.252, 1.199, 1.849, 0.01), 3, 8, False),
        # Twelve sizes are suspected: the twelfth is an outlier; with a thirteenth there would be two.
        (of_powers("103 101 94.6 97.5 124 199 223 227 283 360 1240 2100 3520 6940 13100 27300"), 3, 1, False),
        (of_powers("99.3 101 158 102 290 725 797 811 1050 1270 2020 3480 5400 10800 20100 38000"), 3, 0, False),
        (gradual(5.5), 3, 0, False),  # a smooth curve has six terms
        (gradual(6.5), 3, 0, True),
    ],
)
def test_what_the_search_finds(curve: Times, segments: int, outliers: int, is_curved: bool) -> None:
    sizes, times_ns, error = curve
    fit = fit_segments(sizes, times_ns, [error] * len(sizes))
    assert isinstance(fit, SegmentFit)
    assert (len(fit.segments), len(fit.outliers), fit.curved) == (segments, outliers, is_curved)


@pytest.mark.parametrize(("jump", "is_located"), [(0.09, False), (0.099, True)])
def test_a_switch_is_located_where_the_likelihood_excludes_all_other_sizes(jump: float, is_located: bool) -> None:
    """A ratio of 7.35."""
    sizes, times_ns, error = stepped(jump)
    fit = fit_segments(sizes, times_ns, [error] * len(sizes))
    assert isinstance(fit, SegmentFit)
    assert [switch.is_located for switch in fit.switches] == [is_located]


@pytest.mark.parametrize(("way", "is_gradual"), [(0.085, False), (0.12, True), (0.88, True), (0.93, False)])
def test_a_size_a_tenth_of_the_way_off_both_lines_makes_a_switch_gradual(way: float, is_gradual: bool) -> None:
    sizes = [256 * number for number in range(1, 17)]
    fit = fit_segments(sizes, [100.0 * (2 if size > 2048 else 1 + way * (size == 2048)) for size in sizes])
    assert isinstance(fit, SegmentFit)
    assert [switch.gradual for switch in fit.switches] == [is_gradual]


def peak_bytes(count: int) -> int:
    """The most memory in use while a curve of this many sizes is fitted, as a stand-in for its time."""
    sizes = [0, *range(64, 64 * count, 64)]
    tracemalloc.start()
    fit = fitted(eager_then_rendezvous, sizes, {6400: 1.5})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(switch.below_bytes, switch.above_bytes) for switch in fit.switches] == [(4096, 4160)]
    assert [sizes[at] for at in fit.outliers] == [6400]
    return peak


def test_cost_grows_with_the_number_of_sizes() -> None:
    fitted(straight)  # numpy is loaded
    assert peak_bytes(1600) < 6 * peak_bytes(400)


def test_an_insignificant_slope_has_no_rate() -> None:
    fit = fitted(lambda size: 500 + 5 * (-1) ** len(str(int(size))))
    assert fit.segments[0].ns_per_byte.low <= 0
    assert fit.segments[0].r_inf_bytes_per_s is None
    assert fit.segments[0].n_half_bytes is None


def test_uncertain_times_weigh_less() -> None:
    """Half of the sizes err by 30 %, and are known to: the line follows the others."""
    rng = np.random.default_rng(3)
    off = []
    for _ in range(50):
        errors = [0.01 if i % 2 else 0.6 for i in range(len(SIZES))]
        times = [
            straight(size) * max(0.3, rng.normal(1, error / 1.96)) for size, error in zip(SIZES, errors, strict=True)
        ]
        fit = fit_segments(SIZES, times, errors)
        assert isinstance(fit, SegmentFit)
        off.append(abs(fit.segments[0].t0_ns.value / 800 - 1))
    assert np.median(off) < 0.02


def test_one_uncertain_time_hides_no_switch() -> None:
    errors = [0.01] * (len(SIZES) - 1) + [25.0]
    times = [eager_then_rendezvous(size) for size in SIZES[:-1]] + [2 * eager_then_rendezvous(SIZES[-1])]
    fit = fit_segments(SIZES, times, errors)
    assert isinstance(fit, SegmentFit)
    assert [(switch.below_bytes, switch.above_bytes) for switch in fit.switches] == [(4096, 8192)]
    assert fit.segments[1].relative_rms < 0.02


@pytest.mark.parametrize(
    ("sizes", "times_ns", "reason"),
    [
        ([], [], "a fit needs three sizes"),
        ([8], [1.0], "a fit needs three sizes"),
        ([8, 8, 64], [1.0, 1.0, 2.0], "a fit needs three sizes"),
        ([8, 8, 64, 65], [1.0, 1.0, 2.0, 3.0], "a size occurs twice in the curve"),
        ([1, 2, 3], [1.0, 0.0, 3.0], "a fit needs positive times"),
        ([1, 2, 3], [1.0, math.nan, 3.0], "a fit needs positive times"),
        ([1, 2, 3], [1.0, math.inf, 3.0], "a fit needs positive times"),
    ],
)
def test_no_fit_says_why(sizes: list[int], times_ns: list[float], reason: str) -> None:
    assert fit_segments(sizes, times_ns) == fit_line(sizes, times_ns) == NoFit(reason)


def test_unequal_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in number"):
        fit_segments([1, 2, 3], [1.0])
    with pytest.raises(ValueError, match="differ in number"):
        fit_segments([1, 2, 3], [1.0, 2.0, 3.0], [0.1])


def test_any_times_give_a_finite_fit() -> None:
    rng = np.random.default_rng(0)
    for number in range(300):
        count = int(rng.integers(3, 40))
        sizes = rng.choice(2 ** int(rng.integers(6, 34)), count, replace=False).tolist()
        times = 10 ** rng.uniform(-3, 12, count) if number % 2 else 100 + np.array(sizes) / 8
        errors = rng.uniform(0, 0.5, count).tolist() if number % 3 else [0.0] * count
        fit = fit_segments(sizes, times.tolist(), errors if number % 5 else None)
        assert isinstance(fit, SegmentFit)
        assert all(map(math.isfinite, fit.residuals))
        assert sum(segment.sizes for segment in fit.segments) + len(fit.outliers) == count
        assert len(fit.switches) == len(fit.segments) - 1
        for part in fit.segments:
            for estimate in (part.t0_ns, part.ns_per_byte, part.r_inf_bytes_per_s, part.n_half_bytes):
                assert estimate is None or -math.inf < estimate.low <= estimate.value <= estimate.high < math.inf


# ---- rates over random curves; tests/stats/fit/truth.py prints them ----


def sums(*parts: Score) -> Score:
    return Score(*(sum(getattr(part, name) for part in parts) for name in Score.__dataclass_fields__))


@pytest.mark.parametrize("noise", matrix(NOISES, short=NOISES[1:2]))
def test_straight_curves_have_no_switch_and_no_outlier(noise: float) -> None:
    counts = score(noise=noise, switched=False, outliers=0)
    assert counts.invented <= 0.05 * counts.curves
    assert counts.outliers_invented <= 0.1 * counts.curves


@pytest.mark.parametrize("noise", matrix(NOISES, short=NOISES[1:2]))
def test_strong_switches_are_placed_within_one_size(noise: float) -> None:
    counts = score(noise=noise, switched=True, outliers=0)
    assert counts.strong >= 20
    assert counts.placed >= 0.95 * counts.strong


@pytest.mark.parametrize(("noise", "part"), [(0.01, 0.95), (0.03, 0.9)])
def test_outliers_hide_few_switches(noise: float, part: float) -> None:
    counts = score(noise=noise, switched=True, outliers=2)
    assert counts.invented <= 0.05 * counts.curves
    assert counts.placed >= 0.93 * counts.strong  # 95 % of 1,000 curves; these are 200
    assert counts.outliers_found >= part * counts.outliers


@pytest.mark.parametrize("noise", matrix(NOISES, short=NOISES[1:2]))
def test_intervals_cover_the_truth(noise: float) -> None:
    counts = sums(*(score(noise=noise, switched=switched, outliers=0) for switched in (False, True)))
    assert 0.93 <= counts.covered / counts.intervals <= 0.98


def test_values_known_to_2_percent_are_within_2_percent() -> None:
    counts = sums(*(score(noise=0.01, switched=switched, outliers=0) for switched in (False, True)))
    assert counts.known >= 0.5 * counts.intervals
    assert counts.near >= 0.98 * counts.known


def test_values_are_as_precise_as_the_least_possible_error() -> None:
    """Short segments say little about one of their parameters; all of it is used."""
    for switched in (False, True):
        counts = score(noise=0.01, switched=switched, outliers=0)
        assert counts.within == pytest.approx(counts.best, abs=0.03 * counts.intervals)


def test_the_least_error_of_a_line_is_that_of_its_exact_solution() -> None:
    """Two sizes: t_0 = 2 t(1) - t(2) and slope = t(2) - t(1), with t(1) = 2 and t(2) = 3, each known to 1 %."""
    of_t0, of_slope, of_n_half = errors_of_line(np.array([1.0, 2.0]), 1.0, 1.0, 1e-4 * np.eye(2))
    assert of_t0 == pytest.approx(math.hypot(2 * 0.02, 0.03))
    assert of_slope == pytest.approx(math.hypot(0.02, 0.03))
    assert of_n_half == pytest.approx(math.hypot(3 * 0.02, 2 * 0.03))
    assert chance_within(0.02) == pytest.approx(0.6827, abs=1e-4)


def test_the_best_divisions_find_exact_segments() -> None:
    sizes = np.arange(24.0)
    times = np.where(sizes < 9, 10 + sizes, np.where(sizes < 17, 30 + sizes, 90 + 2 * sizes))
    divisions = best_divisions(sizes, times, times, SEGMENT_SIZES)
    assert [division.starts for division in divisions[:3]] == [[0], divisions[1].starts, [0, 9, 17]]
    assert divisions[0].squares > divisions[1].squares > 1e-3
    assert divisions[2].squares == pytest.approx(0, abs=1e-12)
    assert best_division(divisions, 0.01).starts == [0, 9, 17]
    assert best_division(divisions, 10.0).starts == [0]
