"""What `explain` finds in published figures, and the notes on them that stand in the archive's files."""

from __future__ import annotations

import dataclasses
import functools

import pytest
from tests.analysis.explain.readings import gaps_of

from hockney.analysis.explain import DETECTORS, Explanation, explain
from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve
from hockney.archive import machines, published
from hockney.archive.explained import estimate_of, explain_machine, read_machine
from hockney.report.findings import gap_text


@functools.cache
def explained(machine: str) -> Explanation:
    return explain_machine(machines()[machine])


@pytest.mark.parametrize(
    ("machine", "code", "pattern"),
    [
        ("gpmimd", "broken scaling law", "funnel"),  # of 4 senders: it is that of 8
        ("gpmimd", "broken scaling law", "pushfarm"),  # with 26 receivers
        ("gpmimd", "broken scaling law", "alltoall"),  # among 62: bandwidth is lost, not time per message
        ("gpmimd", "duplex limit", "twoway"),
        ("t3d", "shared path", "putring statistic=mean"),  # two elements share one interface
        ("scali", "slower than its parts", "barrier"),
    ],
)
def test_findings_in_published_figures(machine: str, code: str, pattern: str) -> None:
    assert [each for each in explained(machine).findings if (each.code, each.subject.pattern) == (code, pattern)]


def test_scali_does_not_say_whether_two_way_counts_one_direction_so_no_duplex_ratio_follows() -> None:
    assert not [each for each in explained("scali").findings if each.code == "duplex limit"]


def test_a_funnel_that_keeps_its_law_is_no_finding() -> None:
    """The same machine with the funnel as it should be."""
    reading = read_machine(machines()["gpmimd"])

    def righted(curve: MeasuredCurve) -> MeasuredCurve:
        if curve.pattern != "funnel" or curve.ranks != 5:
            return curve
        halved = tuple(CurvePoint(point.bytes, point.time_ns * 0.5) for point in curve.points)
        return dataclasses.replace(curve, points=halved)

    better = dataclasses.replace(reading, curves=tuple(righted(curve) for curve in reading.curves))
    assert not [each for each in explain(better).findings if each.subject.pattern == "funnel"]


@pytest.mark.parametrize("machine", machines())
def test_statements_without_figures_have_a_reason(machine: str) -> None:
    names = {detector.what for detector in DETECTORS}
    for what, gap in gaps_of(explained(machine)).items():
        assert gap_text(gap)
        assert gap.how is None or what in names, "nobody can measure it any more"


def test_oddities_are_notes_of_their_rows() -> None:
    notes = {name: " ".join(explain_machine(machines()[name]).oddities) for name in machines()}
    assert "they equal the row of 8 senders" in notes["gpmimd"]
    assert "of the other numbers" not in notes["gpmimd"]
    assert "up to 6.1 % off the line" in notes["gpmimd"]
    assert "recomputed value is 38.1" in notes["t3d"]
    assert "longer than the clock periods of the load" in notes["t3d"]
    assert "messages overlap, so this is no latency" in notes["scali"]


def test_a_latency_that_is_longer_than_its_load_has_a_note() -> None:
    """So the notes are of the figures that they are about."""
    for figure in published("t3d"):
        if "latency_cp" in figure.at:
            is_longer = float(figure.at["latency_cp"]) > float(figure.at["cp"])
            assert ("longer than the clock periods" in figure.note) == is_longer


def test_a_published_figure_is_known_to_its_last_digit() -> None:
    by_print = {each.printed: estimate_of(each) for each in published("atlas")}
    assert (by_print["18.78"].low, by_print["18.78"].high) == pytest.approx((18.775, 18.785))
    assert (by_print["6.6"].low, by_print["6.6"].high) == pytest.approx((6.55, 6.65))
    around = next(each for each in published("ancor") if each.printed == "1000")
    assert (estimate_of(around).low, estimate_of(around).high) == (500, 1500)  # printed as 1 millisecond
