"""Ratios of pairs on made-up machines of known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.measure.contended_machine import ContendedMachine

from hockney.analysis.compare.paired import judge_pairs
from hockney.analysis.compare.values import Reason, ReasonCode, SeriesChange, Verdict
from hockney.model import Point
from hockney.stats.pairs import PAIRS_MIN, chances, log_ratio, shift_of_pairs


def judged(seed: int, ratios: list[float], launches: int = 8) -> list[SeriesChange]:
    points = [Point("shm", "pingpong", 2, 8 << place) for place in range(len(ratios))]
    machine = ContendedMachine(seed)
    series = machine.quadruples(ratios, launches=launches, step_s=0.08)
    return list(judge_pairs(dict(zip(points, series, strict=True)), {}, 1.0))


@pytest.mark.full
def test_no_false_alarm_on_a_contended_machine() -> None:
    alarms = sum(any(one.verdict is not Verdict.SAME for one in judged(seed, [1.0, 1.0, 1.0])) for seed in range(1000))
    assert alarms <= 50


@pytest.mark.full
@pytest.mark.parametrize("ratios", [[1.0, 1.0, 1.1], [1.1, 1.1, 1.1]])
def test_a_slowdown_is_found_on_a_contended_machine(ratios: list[float]) -> None:
    found = [judged(seed, ratios)[-1] for seed in range(1000)]
    assert sum(one.verdict is Verdict.SLOWER for one in found) >= 950
    covered = [one.shift is not None and one.shift.low < 1.1 < one.shift.high for one in found]  # type: ignore[operator]
    assert 0.93 <= sum(covered) / len(covered) <= 0.98


def test_the_machine_is_as_contended_as_it_should_be() -> None:
    machine = ContendedMachine(1)
    times = [machine.takes(at_s / 100) for at_s in range(12_000)]
    assert np.quantile(times, 0.9) / np.quantile(times, 0.1) > 2  # what a single run would have to cope with


def test_too_few_launch_pairs_are_inconclusive() -> None:
    (change,) = judged(1, [2.0], launches=PAIRS_MIN - 1)
    assert change.verdict is Verdict.INCONCLUSIVE
    assert change.reasons == (Reason(ReasonCode.FEW_PAIRS, {"pairs": 5, "needed": 6}),)
    assert judged(1, [2.0], launches=PAIRS_MIN)[0].verdict is Verdict.SLOWER


def test_a_quadruple_that_was_cut_short_does_not_count() -> None:
    assert log_ratio([([1.0, 1.0], [2.0, 2.0]), ([1.0], [])]) == pytest.approx(math.log(2))
    assert log_ratio([([], [3.0])]) is None


def test_the_interval_is_students() -> None:
    shift = shift_of_pairs([0.0, 0.1, 0.2])
    half = 4.302653 * 0.1 / math.sqrt(3)
    assert (shift.ratio, shift.low, shift.high) == pytest.approx(
        (math.exp(0.1), math.exp(0.1 - half), math.exp(0.1 + half)), rel=1e-5
    )
    assert shift_of_pairs([0.5]).low is None


def test_a_change_among_many_series_must_stand_out() -> None:
    draw = np.random.default_rng(5)
    logs = draw.normal(0, 0.02, (400, 100, 8))
    alarms = [bool((chances(table) <= 0.05).any()) for table in logs]
    assert sum(alarms) / len(alarms) <= 0.075  # 5 % and twice the standard error of 400
    logs[:, 7] += math.log(1.1)
    assert sum(chances(table)[7] <= 0.05 for table in logs) >= 0.95 * len(logs)


def test_a_missing_launch_pair_is_no_value() -> None:
    logs = np.log([[1.3, 1.31, math.nan, 1.29, 1.3, 1.3, 1.3], [math.nan] * 7])
    assert chances(logs).tolist() == [pytest.approx(1 / 32), 1.0]  # to flip what is missing changes nothing
