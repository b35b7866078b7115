"""An interval without information makes no finding, for any values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.analysis.explain.readings import SIZES, curve, found, line, reading

from hockney.analysis.explain import explain
from hockney.analysis.explain.curve import MeasuredCurve, Reading
from hockney.analysis.explain.fits import lines_of
from hockney.analysis.finding import Absence
from hockney.archive import machines
from hockney.archive.explained import explain_machine, read_machine
from hockney.stats.fit import Estimate

FOLD = 8.0
MACHINES = [name for name in machines() if explain_machine(machines()[name]).findings]


def unsure(value: Estimate) -> Estimate:
    """The same value, which may as well be an eighth or eight times as much."""
    return Estimate(value.value, value.value / FOLD, value.value * FOLD)


def widened(of: Reading) -> Reading:
    def wide(one: MeasuredCurve) -> MeasuredCurve:
        points = tuple(replace(point, time_ns=unsure(point.time_ns)) for point in one.points)
        peak = one.peak_bytes_per_s
        return replace(one, points=points, peak_bytes_per_s=None if peak is None else unsure(peak))

    return replace(of, curves=tuple(wide(one) for one in of.curves))


@pytest.mark.parametrize("name", MACHINES)
def test_findings_of_an_archived_machine_need_certain_figures(name: str) -> None:
    assert not explain(widened(read_machine(machines()[name]))).findings


def test_of_a_ratio_only_the_sizes_that_say_something_count() -> None:
    oneway = curve(line(500, 0.1), "oneway")
    two = curve(line(400, 0.06), "twoway")
    unsure_points = tuple(replace(point, time_ns=unsure(point.time_ns)) for point in two.points[1:])
    findings = found("duplex limits", reading(replace(two, points=(two.points[0], *unsure_points)), oneway))
    assert [finding.subject.sizes_bytes for finding in findings] == [(SIZES[0],)]
    assert found("duplex limits", reading(replace(two, points=unsure_points), oneway)) == []


def test_the_height_of_a_jump_between_distant_sizes_is_a_range() -> None:
    """From 256 B to 1 KiB the lines come nearer each other: by 600 ns at the one, by 216 at the other."""
    sizes = (8, 64, 128, 256, 1024, 2048, 8192, 65536)
    made = curve(lambda size: 100 + (0.6 * size if size <= 256 else 728 + 0.1 * size), sizes=sizes)
    (switch,) = found("protocol switches", reading(made))
    assert switch.subject.sizes_bytes == (256, 1024)
    assert switch.facts["jump_ns"].low <= 728 - 0.5 * 1024
    assert switch.facts["jump_ns"].high >= 728 - 0.5 * 256
    assert switch.effect < 0.35  # 216 of 714 ns, if it is just below 1 KiB
    wider = curve(lambda size: 100 + (0.6 * size if size <= 256 else 600 + 0.1 * size), sizes=sizes)
    (unknown,) = found("protocol switches", reading(wider))
    assert unknown.facts["jump_ns"].high > 3 * unknown.facts["jump_ns"].low


def test_a_line_without_start_and_rate_is_left_out_with_a_reason() -> None:
    random = np.random.default_rng(3)
    made = curve(lambda size: 500.0 * 10 ** random.uniform(-2, 2), sizes=SIZES[:4])
    lines, _, gaps = lines_of(reading(made))
    assert lines == []
    assert [gap.reason for gap in gaps] == [Absence.INSUFFICIENT_DATA]
