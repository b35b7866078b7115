"""Changes of series of nights whose truth is known; tests/stats/histories.py prints the rates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.stats.histories import NOISE, history

from hockney.stats.changes import RUNS_MIN, LevelFit, changes

SCATTER = (0.0, 0.013, -0.01, 0.004, -0.016, 0.009, -0.003, 0.015, -0.012)  # of logarithms


def nights(*levels: tuple[int, float]) -> list[float]:
    """So many nights on each level, which scatter by about 1 %."""
    means = [level for count, level in levels for _ in range(count)]
    return [mean * math.exp(SCATTER[night % len(SCATTER)]) for night, mean in enumerate(means)]


def found(times_ns: list[float], **more: list[float]) -> list[int]:
    return [each.index for each in changes(times_ns, machine=more).changes]


@pytest.mark.parametrize("ratio", [1.1, 1 / 1.1, 3.0])
def test_a_step_is_dated_and_measured(ratio: float) -> None:
    (change,) = changes(nights((30, 100.0), (30, 100.0 * ratio))).changes
    assert change.index == 30
    assert change.shift.low is not None
    assert change.shift.high is not None
    assert change.shift.low < ratio < change.shift.high < 1.06 * change.shift.low
    assert change.after_ns / change.before_ns == pytest.approx(ratio, rel=0.02)


def test_bad_nights_are_no_change_and_hide_none() -> None:
    times_ns = nights((30, 100.0), (30, 110.0))
    for bad, ratio in ((4, 1.6), (5, 1.7), (20, 0.8), (21, 2.0), (22, 1.9), (33, 1.5), (34, 1.1), (59, 3.0)):
        times_ns[bad] *= ratio
    assert found(times_ns) == [30]
    assert found(times_ns[:30]) == []


def test_a_new_level_needs_four_nights_at_the_end_and_eight_in_between() -> None:
    for count in range(1, 9):
        assert found(nights((20, 100.0), (count, 150.0))) == [20] * (count >= 4)
        assert found(nights((20, 100.0), (count, 150.0), (20, 100.0))) == [20, 20 + count] * (count >= 8)


def test_two_levels_far_apart_are_two_changes() -> None:
    assert found(nights((15, 100.0), (15, 120.0), (15, 80.0))) == [15, 30]


def test_a_change_below_the_least_one_does_not_show() -> None:
    least = changes(nights((60, 100.0))).least
    assert least is not None
    assert 1.02 < least < 1.06
    assert found(nights((30, 100.0), (30, 100.0 * (0.99 * least)))) == []
    assert found(nights((30, 100.0), (30, 100.0 * 1.03 * least))) == [30]


def test_what_scatters_within_its_runs_shows_larger_changes_only() -> None:
    least = changes(nights((60, 100.0)), [0.05] * 60).least
    assert least == pytest.approx(math.exp(2.5 * 0.05))


def test_what_follows_the_machine_is_no_change() -> None:
    """Times follow the pace, which steps, and then drifts, less or more than in proportion."""
    pace = np.where(np.arange(60) < 20, 1.0, 1.15) * np.linspace(1.0, 0.9, 60)
    for exponent in (0.75, 1.0, 1.6):
        calm = (np.array(nights((60, 100.0))) * pace**exponent).tolist()
        assert found(calm, pace=pace.tolist()) == []
        assert found(calm) != []
        stepped = (np.array(nights((40, 100.0), (20, 112.0))) * pace**exponent).tolist()
        fit = changes(stepped, machine={"floor": [math.nan] * 60, "pace": pace.tolist()})
        assert [each.index for each in fit.changes] == [40]
        assert fit.follows == "pace"
        assert fit.exponent == pytest.approx(exponent, abs=0.25)


def test_a_machine_that_moves_alone_makes_no_change() -> None:
    floor = [40.0 if night < 30 else 60.0 for night in range(60)]
    assert found(nights((60, 100.0)), floor=floor) == []


def test_uncertain_nights_count_less() -> None:
    """Four nights whose own scatter is large are no new level."""
    times_ns = nights((20, 100.0), (5, 112.0))
    assert found(times_ns) == [20]
    assert changes(times_ns, [0.005] * 20 + [0.08] * 5).changes == ()


def test_few_nights_show_nothing() -> None:
    times_ns = nights((RUNS_MIN // 2, 100.0), (RUNS_MIN // 2, 200.0))
    assert changes(times_ns[:-1]) == LevelFit()
    assert changes(times_ns).least is not None
    assert changes([100.0] * RUNS_MIN).changes == ()


def test_generated_histories_have_their_changes() -> None:
    """Loose bounds, which no choice of seeds misses: the program has the rates."""
    hits = falses = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        kind = sorted(NOISE)[seed % len(NOISE)]
        falses += len(history(rng, kind).changes())
        made = history(rng, kind, 1.1)
        hits += any(abs(each.index - made.step_at) <= 2 for each in made.changes())
    assert hits >= 48
    assert falses <= 3
