"""States are recovered from made-up floors whose state is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from hockney.stats import MIXED, UNKNOWN, State, classify
from hockney.stats.states import Floor


def names(floors: Sequence[Floor]) -> list[str]:
    return [state.name for state in classify(floors)]


def test_nothing() -> None:
    assert classify([]) == []


def test_one_visit_is_enough_for_a_state() -> None:
    assert classify([(27.0, 33.0)]) == [State("near", 30.0)]


@pytest.mark.parametrize(
    ("floor_ns", "name"),
    [(5.0, "near"), (79.9, "near"), (80.0, "far"), (999.0, "far"), (1000.0, "time-sliced"), (4e6, "time-sliced")],
)
def test_name_tells_the_level(floor_ns: float, name: str) -> None:
    assert classify([(floor_ns, floor_ns)] * 3) == [State(name, floor_ns)] * 3


def test_visit_between_two_levels_is_mixed() -> None:
    found = classify([(27.0, 28.0), (28.0, 184.0), (184.0, 180.0), (186.0, 27.0)])
    assert found == [State("near", 27.5), MIXED, State("far", 182.0), MIXED]


def test_visit_that_saw_nothing_steady_is_mixed() -> None:
    assert classify([(27.0, 184.0)]) == [MIXED]


def test_two_levels_of_a_name_carry_their_floor() -> None:
    floors: Sequence[Floor] = [(184.0, 184.0), (420.0, 420.0), (30.0, 30.0)]
    assert classify(floors) == [State("far 184 ns", 184.0), State("far 420 ns", 420.0), State("near", 30.0)]


def test_gap_decides_between_one_level_and_two() -> None:
    assert names([(100.0, 100.0), (149.0, 149.0)]) == ["far", "far"]
    assert names([(100.0, 100.0), (150.0, 150.0)]) == ["far 100 ns", "far 150 ns"]


@pytest.mark.parametrize("floor", [None, (0.0, 30.0), (30.0, -1.0), (math.nan, 30.0), (30.0, math.inf)])
def test_visit_without_a_floor_is_unknown(floor: Floor) -> None:
    assert classify([(30.0, 30.0), floor]) == [State("near", 30.0), UNKNOWN]
    assert classify([floor]) == [UNKNOWN]


def test_disturbed_floor_makes_no_level() -> None:
    floors: Sequence[Floor] = [(28.0, 29.0)] * 20 + [(28.0, 5000.0), (300.0, 29.0)]
    found = classify(floors)
    assert found == [State("near", 28.5)] * 20 + [MIXED] * 2


def test_disturbed_floors_between_two_levels_do_not_bridge_them() -> None:
    floors: Sequence[Floor] = [(28.0, 29.0)] * 10 + [(184.0, 185.0)] * 10
    bridge: Sequence[Floor] = [(28.0, 42.5), (29.0, 60.0), (184.0, 80.0), (28.0, 100.0), (130.0, 60.0)]
    assert names([*floors, *bridge]) == ["near"] * 10 + ["far"] * 10 + ["near"] + ["mixed"] * 4


def test_time_slices_are_one_level_however_they_scatter() -> None:
    floors: Sequence[Floor] = [(1500.0, 80e3), (4e6, 2e6), (20e3, 1200.0), (28.0, 28.0), (28.0, 3e6)]
    found = classify(floors)
    assert [state.name for state in found] == ["time-sliced"] * 3 + ["near", "mixed"]
    assert found[0].floor_ns == 50e3


@pytest.mark.parametrize("spread", [0.02, 0.06])
@pytest.mark.parametrize("outliers", [0.0, 0.02])
def test_states_of_a_long_run_are_recovered(spread: float, outliers: float) -> None:
    """A machine that stays near or far for a while, with noise and single disturbed floors on top."""
    rng = np.random.default_rng(3)
    far = np.repeat(rng.random(60) < 0.4, rng.integers(20, 80, 60))  # stays of 20 to 80 visits
    after = np.append(far[1:], far[-1])  # the machine may jump within a visit
    level = np.stack([np.where(far, 184.0, 29.0), np.where(after, 184.0, 29.0)])
    floors = level * rng.lognormal(0, spread, level.shape)
    disturbed = rng.random(level.shape) < outliers
    floors[disturbed] *= rng.uniform(1.2, 300, disturbed.sum())
    found = names([(before, end) for before, end in floors.T.tolist()])
    for name, is_far, is_after, hit in zip(
        found, far.tolist(), after.tolist(), (disturbed[0] | disturbed[1]).tolist(), strict=True
    ):
        if is_far != is_after and not hit:
            assert name == "mixed"
        elif not hit:
            assert name == ("far" if is_far else "near")
        else:
            assert name in ("near", "far", "mixed", "time-sliced")


def test_median_floor_is_recovered() -> None:
    rng = np.random.default_rng(4)
    floors = [(a, b) for a, b in (184 * rng.lognormal(0, 0.05, (500, 2))).tolist()]
    (state,) = set(classify(floors))
    assert state.name == "far"
    assert state.floor_ns == pytest.approx(184, rel=0.01)
