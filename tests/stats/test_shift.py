"""The shift between few launches: against scipy for equal cases, and its promises by simulation."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats
from tests.analysis.compare import simulated

from hockney.stats import Estimate
from hockney.stats.shift import LAUNCHES_MIN, Pair, Shift, can_decide, shifts

TIMES = ([100.0, 101, 103, 102, 104, 99], [110.0, 113, 109, 140, 111, 112, 110, 113])


def shift(base: list[float], new: list[float]) -> tuple[Estimate, float]:
    """The ratio of one series alone, with its chance."""
    ((only, chance),) = shifts([(base, new)])
    assert only.estimate is not None
    assert chance is not None
    return only.estimate, chance


def test_one_series_has_the_interval_and_the_chance_of_yuen_and_welch() -> None:
    measured, chance = shift(*TIMES)
    logs = [np.log(times) for times in TIMES]
    assert chance == pytest.approx(stats.ttest_ind(*logs, equal_var=False, trim=0.2).pvalue)
    assert measured.value == pytest.approx(math.exp(stats.trim_mean(logs[1], 0.2) - stats.trim_mean(logs[0], 0.2)))
    for end in (measured.low, measured.high):  # a margin up to the interval's end leaves just the chance of that end
        shifted = stats.ttest_ind(logs[0] + math.log(end), logs[1], equal_var=False, trim=0.2)
        assert shifted.pvalue == pytest.approx(0.05)


@pytest.mark.parametrize(("base", "new"), [(1, 1), (2, 9), (9, 2)])
def test_fewer_than_three_launches_decide_nothing(base: int, new: int) -> None:
    ((measured, chance),) = shifts([([100.0] * base, [1000.0] * new)])
    assert measured.ratio == pytest.approx(10)
    assert (measured.low, measured.high, measured.coverage, chance) == (None, None, None, None)
    assert not can_decide(base, new)
    assert can_decide(LAUNCHES_MIN, LAUNCHES_MIN)


def test_shift_of_swapped_runs_is_the_inverse() -> None:
    (there, chance), (back, same_chance) = shift(*TIMES), shift(TIMES[1], TIMES[0])
    assert chance == same_chance
    assert (there.value, there.low) == pytest.approx((1 / back.value, 1 / back.high))


def test_one_wild_launch_moves_little_and_widens_little() -> None:
    calm = shift([100.0, 101, 102, 103, 104], [100.0, 101, 102, 103, 104])[0]
    wild = shift([100.0, 101, 102, 103, 104], [100.0, 101, 102, 103, 9999])[0]
    assert wild.value == pytest.approx(calm.value, rel=0.02)
    assert wild.high < 1.05


def test_the_margin_is_subtracted_from_the_shift() -> None:
    rng = np.random.default_rng(6)
    pairs: list[Pair] = [
        (rng.lognormal(0, 0.005, 6).tolist(), rng.lognormal(math.log(1.04), 0.005, 6).tolist()) for _ in range(10)
    ]
    assert all(chance is not None and chance <= 0.05 for _, chance in shifts(pairs))
    assert all(chance is not None and chance > 0.05 for _, chance in shifts(pairs, 1.05))


def test_launches_that_agree_by_chance_prove_nothing() -> None:
    """All launches of each run of one series fell on one of two levels: seldom in one series, often in one of many."""
    rng = np.random.default_rng(7)
    odd: Pair = ([1.0, 1.001, 0.999, 1.0], [1.15, 1.151, 1.149, 1.15])
    assert shift(list(odd[0]), list(odd[1]))[1] < 0.001
    levels: list[Pair] = [(*(1 + 0.15 * rng.integers(0, 2, (2, 4))),) for _ in range(20)]
    chance = shifts([odd, *levels])[0][1]
    assert chance is not None
    assert chance > 0.05


def test_the_scatter_of_one_transport_does_not_widen_the_intervals_of_another() -> None:
    def highs(pairs: list[Pair], *kinds: str) -> list[float]:
        return [known.high or math.nan for known, _ in shifts(pairs, kinds=kinds)][:4]

    rng = np.random.default_rng(7)
    quiet: list[Pair] = [(*np.exp(0.01 * rng.standard_normal((2, 6))),) for _ in range(4)]
    noisy: list[Pair] = [(*np.exp(0.3 * rng.standard_normal((2, 6))),) for _ in range(4)]
    apart, mixed = highs([*quiet, *noisy], *["shm"] * 4, *["tcp"] * 4), highs([*quiet, *noisy])
    assert apart == pytest.approx(highs(quiet))
    assert all(high < other for high, other in zip(apart, mixed, strict=True))
    assert highs([*quiet[:2], *noisy], *["shm"] * 2, *["tcp"] * 4)[0] > apart[0]


def test_a_look_has_its_share_of_the_error_of_all() -> None:
    whole, part = shifts([TIMES])[0], shifts([TIMES], share=0.02)[0]
    assert whole[0].ratio == part[0].ratio
    logs = [np.log(times) for times in TIMES]
    assert part[1] == pytest.approx(50 * stats.ttest_ind(*logs, equal_var=False, trim=0.2).pvalue)
    assert part[0].low is not None
    shifted = stats.ttest_ind(logs[0] + math.log(part[0].low), logs[1], equal_var=False, trim=0.2)
    assert shifted.pvalue == pytest.approx(0.001)
    assert shifts([TIMES], margin=1.08, share=0.02)[0][1] == 1.0


def test_inconclusive_series_do_not_affect_the_others() -> None:
    rng = np.random.default_rng(8)
    pairs: list[Pair] = [(rng.lognormal(0, 0.02, 6).tolist(), rng.lognormal(0, 0.02, 6).tolist()) for _ in range(5)]
    few: Pair = ([1.0, 5.0], [9.0])
    assert shifts([few, *pairs])[1:] == shifts(pairs)
    assert shifts([]) == []


@pytest.mark.parametrize("kind", ["normal", "heavy", "sides"])
@pytest.mark.parametrize(("m", "n"), simulated.LAUNCHES)
def test_interval_contains_the_true_ratio(kind: str, m: int, n: int) -> None:
    trials = 500
    rate = simulated.rate(lambda rng: simulated.holds(rng, kind, m, n), trials)
    assert rate >= 0.93 - 3 * math.sqrt(0.95 * 0.05 / trials)


@pytest.mark.parametrize("kind", simulated.KINDS)
@pytest.mark.parametrize(("m", "n"), simulated.LAUNCHES)
def test_unchanged_series_are_seldom_called_different(kind: str, m: int, n: int) -> None:
    """All series of a launch share a part of the scatter."""
    trials = 100
    alarms = simulated.rate(partial(simulated.alarms, kind=kind, m=m, n=n, series=30), trials)
    assert alarms <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)


@pytest.mark.parametrize(("m", "n"), simulated.LAUNCHES)
def test_one_slowdown_among_thirty_is_named(m: int, n: int) -> None:
    assert simulated.rate(partial(simulated.is_named, kind="normal", m=m, n=n, series=30), 50) >= 0.96


@pytest.mark.parametrize(
    ("low", "high", "is_beyond", "may_be_beyond"),
    [
        (1.06, 1.2, True, True),
        (1.04, 1.2, False, True),
        (1.04, 1.04, False, False),
        (0.8, 0.94, True, True),
        (0.8, 0.96, False, True),
        (0.96, 1.04, False, False),
        (None, None, False, True),
    ],
)
def test_an_interval_is_beyond_a_margin_of_5_percent_on_either_side(
    low: float | None, high: float | None, is_beyond: bool, may_be_beyond: bool
) -> None:
    measured = Shift(1.0, low, high, 0.95, 3, 3)
    assert (measured.is_beyond(1.05), measured.may_be_beyond(1.05)) == (is_beyond, may_be_beyond)


def test_times_that_are_alike_to_the_last_digit_have_an_error_of_1e_4() -> None:
    measured, chance = shift([100.0] * 3, [100.0] * 3)
    assert measured.high == pytest.approx(math.exp(1e-4 * stats.norm.ppf(0.975)), rel=1e-8)
    assert chance == 1


def test_from_three_series_on_the_usual_variance_counts_as_four_launches() -> None:
    """Three launches, of which two are 1 % off on either side: the variance of their mean is 1e-4 / 3."""
    side = [100 * math.exp(log) for log in (-0.01, 0.0, 0.01)]
    widths = [math.log(shifts([(side, side)] * count)[0][0].high or 0) for count in (1, 2, 3)]
    alone = stats.t.ppf(0.975, 4) * math.sqrt(2 * 1e-4 / 3)
    usual = 1e-4 / 3 / (1 - 2 / (9 * 2)) ** 3  # a median of variances is too small (Wilson and Hilferty)
    assert widths == pytest.approx([alone, alone, stats.t.ppf(0.975, 2 * (2 + 4)) * math.sqrt(2 * usual)])
