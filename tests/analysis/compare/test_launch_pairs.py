"""Ratios of pairs on made-up machines of known truth."""

from __future__ import annotations

import numpy as np
import pytest
from tests.analysis.compare.made import bounds_of
from tests.builders import make_info
from tests.measure.contended_machine import ContendedMachine

from hockney.analysis.compare.comparison import PAIRS_MIN, judge, launch_ratios, match_pairs
from hockney.analysis.compare.values import Comparison, Reason, ReasonCode, SeriesChange, Verdict
from hockney.model import Point


def judged(seed: int, ratios: list[float], launches: int = 8) -> list[SeriesChange]:
    points = [Point("shm", "pingpong", 2, 8 << place) for place in range(len(ratios))]
    machine = ContendedMachine(seed)
    series = machine.quadruples(ratios, launches=launches, step_s=0.08)
    matched = [match_pairs(point, quadruples) for point, quadruples in zip(points, series, strict=True)]
    return judge(matched, None, 1.0)


@pytest.mark.full
def test_no_false_alarm_on_a_contended_machine() -> None:
    alarms = sum(any(one.verdict is not Verdict.SAME for one in judged(seed, [1.0, 1.0, 1.0])) for seed in range(1000))
    assert alarms <= 50


@pytest.mark.full
@pytest.mark.parametrize("ratios", [[1.0, 1.0, 1.1], [1.1, 1.1, 1.1]])
def test_a_slowdown_is_found_on_a_contended_machine(ratios: list[float]) -> None:
    changes = [judged(seed, ratios)[-1] for seed in range(1000)]
    assert sum(change.verdict is Verdict.SLOWER for change in changes) >= 950
    covered = [low < 1.1 < high for low, high in map(bounds_of, changes)]
    assert 0.93 <= sum(covered) / len(covered) <= 0.98


def test_the_machine_is_as_contended_as_it_should_be() -> None:
    machine = ContendedMachine(1)
    times = [machine.takes(at_s / 100) for at_s in range(12_000)]
    assert np.quantile(times, 0.9) / np.quantile(times, 0.1) > 2  # the scatter of a single run


def test_too_few_launch_pairs_are_inconclusive() -> None:
    (change,) = judged(1, [2.0], launches=PAIRS_MIN - 1)
    assert change.verdict is Verdict.INCONCLUSIVE
    assert change.reasons == (Reason(ReasonCode.FEW_PAIRS, {"pairs": 5, "needed": 6}),)
    assert judged(1, [2.0], launches=PAIRS_MIN)[0].verdict is Verdict.SLOWER


def test_a_quadruple_that_was_cut_short_does_not_count() -> None:
    rounds = {0: ([1.0, 1.0], [2.0, 2.0]), 1: ([1.0], [])}
    assert launch_ratios({0: rounds, 1: {0: ([], [3.0])}}) == pytest.approx([2.0])


def test_a_wild_round_moves_no_launch_pair() -> None:
    rounds = {number: ([1.0, 1.0], [ratio, ratio]) for number, ratio in enumerate((1.1, 1.1, 50.0, 1.1, 1.1))}
    assert launch_ratios({0: rounds}) == pytest.approx([1.1])


def test_too_few_launch_pairs_have_a_fix() -> None:
    info = make_info(command="hockney compare --interleave pingpong --new-env A=1")
    changes = tuple(judged(1, [2.0], launches=PAIRS_MIN - 1))
    found = Comparison(1, 2, (5, 5), 1.0, (), changes, (info, info), interleaved=True)
    (fix,) = found.fixes
    assert fix.argv == ("hockney", "compare", "--interleave", "pingpong", "--new-env", "A=1", "--launches", "12")
