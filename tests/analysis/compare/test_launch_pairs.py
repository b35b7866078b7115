"""Ratios of pairs on made-up machines of known truth."""

from __future__ import annotations

import numpy as np
import pytest
from tests.analysis.compare.made import bounds_of
from tests.builders import make_info
from tests.measure.contended_machine import ContendedMachine

from hockney.analysis.compare.comparison import PAIRS_MIN, decided_pairs, judge, launch_ratios, match_pairs
from hockney.analysis.compare.values import Comparison, Reason, ReasonCode, SeriesChange, Verdict
from hockney.model import Point
from hockney.stats.sequence import VALUES_MIN, interval, shifts_at_any_time


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


@pytest.mark.parametrize("launches", [6, 7, 20])
def test_launches_that_ended_early_are_judged_as_at_every_look(launches: int) -> None:
    ratios = [1.1 + 0.001 * (number % 5) for number in range(launches)]
    rounds = [{number: {0: ([1.0, 1.0], [ratio, ratio])} for number, ratio in enumerate(ratios)}] * 3
    points = [Point("shm", "pingpong", 2, 8 << place) for place in range(3)]
    matched = [match_pairs(point, quads, early=True) for point, quads in zip(points, rounds, strict=True)]
    changes = judge(matched, None, 1.01)
    assert {change.verdict for change in changes} == {
        Verdict.INCONCLUSIVE if launches < VALUES_MIN else Verdict.SLOWER if launches > 10 else Verdict.SAME
    }
    known = interval(ratios)
    for change in changes:
        if launches < VALUES_MIN:
            assert change.reasons == (Reason(ReasonCode.FEW_PAIRS, {"pairs": launches, "needed": VALUES_MIN}),)
        else:
            assert change.shift is not None
            assert (change.shift.low, change.shift.high) == pytest.approx((known.low, known.high))
    assert decided_pairs([ratios] * 3, 1.01) == [change.verdict is Verdict.SLOWER for change in changes]
    assert decided_pairs([ratios] * 3, 1.2) == [launches >= VALUES_MIN] * 3  # all within the margin


@pytest.mark.full
def test_comparisons_that_end_early_seldom_err_and_cover_the_truth() -> None:
    """Of a contended machine, looked at after each launch; the interval is that of the end."""
    alarms, covered, found = 0, 0, 0
    for seed in range(500):
        truth = [1.0, 1.0, 1.1]
        series = ContendedMachine(seed).quadruples(truth, launches=40, step_s=0.08)
        ratios = [launch_ratios(quadruples) for quadruples in series]
        ends = [
            next((n for n in range(VALUES_MIN, 40) if decided_pairs([each[:n] for each in ratios], 1.0)[place]), 40)
            for place in range(3)
        ]
        results = shifts_at_any_time([each[:n] for each, n in zip(ratios, ends, strict=True)], 1.0)
        alarms += any(chance is not None and chance <= 0.05 for _, chance in results[:2])
        known = results[2][0].estimate
        covered += known is not None and known.low <= 1.1 <= known.high
        found += (results[2][1] or 1.0) <= 0.05
    assert alarms <= 25
    assert covered >= 475
    assert found >= 475


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
