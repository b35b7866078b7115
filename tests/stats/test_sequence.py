"""Certainty at every look, against the exact chance of fair signs and on data that no method has assumed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import integrate

from hockney.stats.sequence import VALUES_MIN, chance_above, chance_below, interval, shifts_at_any_time, wins_needed

if TYPE_CHECKING:
    from hockney.model import FloatArray

LOOKS = 60
TRIALS = 400


def drifting(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """The scatter grows and shrinks by a factor of some tens."""
    scale: FloatArray = np.exp(np.cumsum(rng.normal(0, 0.4, shape), axis=1))
    return scale * rng.standard_normal(shape)


def two_levels(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Far apart, in runs of several launches; each value is on either side of its own level at even odds."""
    level = rng.random((shape[0], shape[1] // 6 + 1)).repeat(6, axis=1)[:, : shape[1]] < 0.5
    return np.where(level, 1.0, 50.0) * rng.standard_t(1.5, shape)


MAKERS: dict[str, Callable[[np.random.Generator, tuple[int, int]], FloatArray]] = {
    "heavy tails": lambda rng, shape: rng.standard_t(1.2, shape),
    "skew": lambda rng, shape: rng.lognormal(0, 2, shape) - 1,
    "two scatters": two_levels,
    "a drifting scatter": drifting,
}


@pytest.mark.parametrize("kind", MAKERS)
def test_the_interval_holds_the_truth_at_all_looks_at_once(kind: str) -> None:
    values = MAKERS[kind](np.random.default_rng(), (TRIALS, LOOKS))
    missed = 0
    for row in values.tolist():
        looks = (interval(row[:count]).estimate for count in range(1, LOOKS + 1))
        missed += any(known is not None and not known.low <= 0 <= known.high for known in looks)
    assert missed / TRIALS <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / TRIALS)


@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_the_exact_chance_that_fair_signs_ever_convince(alpha: float) -> None:
    """By how many ways lead to each number of wins, of those that no look has ended."""
    ways, ended = {0: 1.0}, 0.0
    for count in range(1, 401):
        after: dict[int, float] = {}
        for wins, share in ways.items():
            for more in (0, 1):
                after[wins + more] = after.get(wins + more, 0.0) + share / 2
        needed = wins_needed(count, alpha)
        ended += sum(share for wins, share in after.items() if wins >= needed)
        ways = {wins: share for wins, share in after.items() if wins < needed}
    assert alpha / 10 < ended <= alpha


@pytest.mark.parametrize(("wins", "count"), [(6, 6), (7, 7), (0, 3), (10, 12), (30, 60), (900, 1500)])
def test_the_bettors_are_the_prior_of_krichevsky_and_trofimov(wins: int, count: int) -> None:
    """On wins: its upper half. What they earn is the integral of what each earns."""
    earned, _ = integrate.quad(
        lambda angle: math.exp(
            wins * math.log1p(math.cos(angle)) + (count - wins) * math.log(2 * math.sin(angle / 2) ** 2)
        ),
        1e-12,
        math.pi / 2,
    )
    values = [1.0] * wins + [-1.0] * (count - wins)
    assert chance_above(values, 0.0) == pytest.approx(min(1.0, math.pi / 2 / earned), rel=1e-3)


def test_decisions_come_at_the_launches_that_are_promised() -> None:
    said = {6: 0.035, 7: 0.019, 10: 0.0028, 14: 0.00020}
    assert {count: chance_above([1.0] * count, 0.5) for count in said} == pytest.approx(said, rel=0.03)
    assert [interval([1.0] * count).estimate is None for count in (VALUES_MIN - 1, VALUES_MIN)] == [True, False]
    hundred = [[1.1] * 14] + [[1.0] * 14] * 99
    assert shifts_at_any_time(hundred, 1.05)[0][1] == pytest.approx(200 * 0.00020, rel=0.03)


def test_sides_are_mirrored_and_ties_prove_nothing() -> None:
    values = [0.9, 1.2, 1.3, 1.0, 1.5, 1.7, 1.6, 2.0]
    assert chance_above(values, 1.0) == chance_below([1 / value for value in values], 1.0)
    assert chance_above([1.0] * 20, 1.0) == chance_below([1.0] * 20, 1.0) == 1.0
    assert (interval(values).low, interval(values).high, interval(values).value) == (0.9, 2.0, 1.4)


def test_more_launches_on_the_other_side_take_certainty_back() -> None:
    found = [chance_above([1.0] * 10 + [-1.0] * after, 0.0) for after in range(12)]
    assert found == sorted(found)
    assert found[-1] == 1.0


def test_many_values_overflow_nowhere() -> None:
    assert chance_above([1.0] * 5000, 0.0) < 1e-300 or chance_above([1.0] * 5000, 0.0) == 0.0
    assert chance_above([1.0, -1.0] * 2500, 0.0) == 1.0


def test_too_few_ratios_have_no_chance() -> None:
    ((shift, chance),) = shifts_at_any_time([[1.5, 1.6, 1.4]])
    assert (shift.ratio, shift.low, chance, shift.n_new) == (1.5, None, None, 3)
    assert shifts_at_any_time([]) == []
