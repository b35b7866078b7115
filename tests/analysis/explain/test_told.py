"""Which findings are reported: none twice, one card for load, and no switch where one size is slow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.analysis.explain.readings import FACTS, SIZES, curve, found, line, near, not_checked, reading
from tests.builders import make_measurement, make_point, measurements_with_medians

from hockney.analysis.explain import explain
from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve
from hockney.analysis.finding import Detector, Finding, NotChecked, Subject, as_warned
from hockney.model import Warning_
from hockney.report.document import Title
from hockney.report.documents.findings import whole_document
from hockney.report.findings import cause_of, evidence_of, title_of
from hockney.results.store import MeasurementSummary, summary_of
from hockney.stats.fit import Estimate

BUSY = Warning_("others", "machine", "Other programs used 1.5 CPUs while the run measured.", "Stop them.")
TWENTY = tuple(1 << power for power in range(2, 22))


# ---- load of other programs ------------------------------------------------------------------------------------------


def detectors(*codes: str) -> list[Detector]:
    def finding_twice(code: str) -> Detector:
        findings = [Finding(code, Subject(name, "pingpong", 2), effect=by) for name, by in (("tcp", 2.0), ("shm", 1.0))]
        return Detector(code, code, lambda _: findings)

    return [finding_twice(code) for code in codes]


def test_one_card_stands_for_what_load_explains() -> None:
    explained = explain(reading(curve(), warnings=(BUSY,)), detectors("outliers", "bend", "cache limit"))
    card, *others = explained.findings
    assert (card.code, card.fix, card.effect) == ("busy machine", as_warned("Stop them."), 2.0)
    assert card.facts["explained"] == ["outliers (2)", "cache limit (2)"]
    assert title_of(card) == "The machine was busy, which explains 4 findings"
    assert evidence_of(card).startswith(BUSY.cause)
    assert [finding.code for finding in others] == ["bend", "bend"]
    heads = [title.text for title in whole_document(explained, {}) if isinstance(title, Title)]
    assert "1 finding" in heads[0]  # the card is none


@pytest.mark.parametrize(("kind", "codes"), [("yield", ["outliers"]), ("others", ["bend"])])
def test_without_load_or_what_it_explains_there_is_no_card(kind: str, codes: list[str]) -> None:
    findings = explain(reading(curve(), warnings=(replace(BUSY, kind=kind),)), detectors(*codes)).findings
    assert [finding.code for finding in findings] == codes * 2


@pytest.mark.parametrize("factor", [2.0, 1.0])
def test_load_explains_no_collective_that_is_slower_in_the_same_rounds(factor: float) -> None:
    """Every other round had three times the load; both had the same. Alone, each is 3 times slower."""

    def of(algorithm: str, time_ns: float, *in_round_ns: float) -> MeasuredCurve:
        made = [measurements_with_medians([each_ns, 3 * each_ns] * 6) for each_ns in in_round_ns]
        points = tuple(
            CurvePoint(64 << at, near(time_ns), measurements=tuple(map(summary_of, each)))
            for at, each in enumerate(made)
        )
        return MeasuredCurve("mpi", "allgather", 4, (("algorithm", algorithm),), "near", points, algorithm=algorithm)

    curves = of("native", 3000, 1000 * factor, 1000), of("ring", 1000, 1000, 1000)
    *told, card = explain(reading(*curves, warnings=(BUSY,))).findings
    assert (card.code, card.facts["explained"]) == ("busy machine", ["slower than its parts (1)"])
    assert len(told) == (factor > 1)
    for finding in told:
        assert (finding.code, finding.subject.sizes_bytes) == ("slower than its parts", (64,))
        assert finding.facts["slower_ratio"].value == pytest.approx(2)
        assert BUSY.cause in evidence_of(finding)


# ---- once ------------------------------------------------------------------------------------------------------------


def jumping(ranks: int, jump_ns: float = 1500.0) -> MeasuredCurve:
    return curve(lambda size: 500 + 0.1 * size + jump_ns * (size > 2048), ranks=ranks)


def switches_of(*curves: MeasuredCurve) -> list[Finding]:
    findings = explain(reading(*curves)).findings
    return [finding for finding in findings if finding.code == "protocol switch" and "jump_ns" in finding.facts]


def test_the_same_switch_at_two_numbers_of_ranks_is_reported_once_at_its_strongest() -> None:
    (switch,) = switches_of(jumping(2), jumping(4, 3000.0))
    assert switch.subject.ranks == 4


def test_other_places_and_transports_are_reported_too() -> None:
    elsewhere = curve(lambda size: 500 + 0.1 * size + 1500.0 * (size > 512), ranks=4)
    assert len(switches_of(jumping(2), elsewhere)) == 2
    assert len(switches_of(jumping(2), replace(jumping(2), transport="threads"))) == 2


# ---- one slow size ---------------------------------------------------------------------------------------------------


def stalled(
    at_bytes: int, times: float, low_share: float = 0.02, jump_ns: float = 0.0, ns_per_byte: float = 0.1
) -> MeasuredCurve:
    """A line with a switch after 64 KiB at most, and one slow size, whose interval reaches down a good part."""
    made = curve(lambda size: 500 + ns_per_byte * size + jump_ns * (size > 1 << 16), transport="tcp", sizes=TWENTY)
    points = []
    for point in made.points:
        value = point.time_ns.value * (times if point.bytes == at_bytes else 1.0)
        low = value * (1 - (low_share if point.bytes == at_bytes else 0.005))
        points.append(replace(point, time_ns=Estimate(value, low, 1.01 * value)))
    return replace(made, points=tuple(points))


def found_in(made: MeasuredCurve) -> list[Finding]:
    return found("protocol switches", reading(made))


@pytest.mark.parametrize("at_bytes", TWENTY[3:-3])
@pytest.mark.parametrize(("times", "low_share"), [(1.8, 0.02), (3.0, 0.5), (100.0, 0.9)])
def test_one_slow_size_among_twenty_is_no_switch(at_bytes: int, times: float, low_share: float) -> None:
    findings = found_in(stalled(at_bytes, times, low_share))
    assert {finding.code for finding in findings} == {"slow size"}
    assert [finding.facts["size_bytes"] for finding in findings] == [at_bytes]


QUICK = (0, 8, 64, 256, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1 << 20)


def test_next_to_a_switch_a_stall_is_no_other_switch() -> None:
    """20 ms at 64 KiB, known to a factor of two, where the neighbours take 50 us."""
    made = curve(lambda size: 20_000 + 0.3 * size + 12_000 * (size > 8192), transport="tcp", sizes=QUICK)
    points = [replace(each, time_ns=Estimate(2e7, 1e7, 4e7)) if each.bytes == 1 << 16 else each for each in made.points]
    slow = [each for each in found_in(replace(made, points=tuple(points))) if 1 << 16 in each.subject.sizes_bytes]
    assert [(each.code, each.facts["size_bytes"]) for each in slow] == [("slow size", 1 << 16)]


def test_a_slow_size_that_a_fit_takes_for_a_switch_is_reported_as_an_outlier() -> None:
    """20 ms at 64 KiB, after the switch."""
    made = curve(
        lambda size: 20_000 + 0.3 * size + 9_000 * (size > 32768), transport="tcp", sizes=QUICK, precision=0.02
    )
    points = [replace(each, time_ns=Estimate(2e7, 1e7, 3e7)) if each.bytes == 1 << 16 else each for each in made.points]
    (slow,) = found_in(replace(made, points=tuple(points)))
    assert (slow.code, title_of(slow)) == ("slow size", "64 KiB is an outlier")
    assert slow.facts["expected_ns"] == pytest.approx(29_000 + 0.3 * (1 << 16), rel=0.2)


@pytest.mark.parametrize("ns_per_byte", [0.02, 0.1])
@pytest.mark.parametrize("jump_ns", [8e3, 1e5])
def test_a_switch_stays_one(jump_ns: float, ns_per_byte: float) -> None:
    (switch,) = found_in(stalled(0, 1.0, jump_ns=jump_ns, ns_per_byte=ns_per_byte))
    assert (switch.code, switch.subject.sizes_bytes) == ("protocol switch", (1 << 16, 1 << 17))


def test_a_switch_downwards_stays_one() -> None:
    (switch,) = found_in(curve(lambda size: 500 + (0.5 * size if size <= 8192 else 500.0 + 0.05 * size), sizes=TWENTY))
    assert "fall_ns" in switch.facts


# ---- distant sizes ---------------------------------------------------------------------------------------------------


def root(sizes: tuple[int, ...]) -> MeasuredCurve:
    return curve(lambda size: 100.0 + 10 * size**0.5, sizes=sizes, precision=0.001)


def test_a_curve_of_distant_sizes_may_have_a_switch_and_names_refine() -> None:
    (dense,) = found_in(root(TWENTY))
    assert (dense.cause, dense.fix) == ("curved", None)
    (sparse,) = found_in(root((*TWENTY[:12], *(5 * size // 4 for size in TWENTY[12:]))))  # a step of 2.5
    assert sparse.cause == "sparse"
    assert sparse.fix is not None
    assert "--refine" in sparse.fix.argv
    assert "too far apart" in cause_of(sparse)


# ---- two groups of launches ------------------------------------------------------------------------------------------


def launched(*launch_ns: float) -> MeasuredCurve:
    """A curve of one size, each of whose launches has three measurements around its time."""
    measurements = tuple(
        summary(launch_id, value * share) for launch_id, value in enumerate(launch_ns) for share in (0.99, 1.0, 1.01)
    )
    point = CurvePoint(8, near(launch_ns[0]), 8.0, measurements)
    return MeasuredCurve("tcp", "pingpong", 2, (), "near", (point,))


def summary(launch_id: int, median_ns: float) -> MeasurementSummary:
    made = make_measurement(make_point(), [[1, 1, 1]] * 2)
    return summary_of(made)._replace(launch_id=launch_id, median_ns=median_ns)


@pytest.mark.parametrize(
    ("launch_ns", "groups"),
    [
        ((100, 101, 102, 155, 156, 157), (3, 6)),
        ((100, 101, 102, 103, 156, 158), (2, 6)),
        ((100, 101, 102, 150, 151, 152), None),  # closer than half
        ((100, 101, 102, 103, 104, 160), None),  # one slow launch
        ((100, 140, 196, 300, 420, 590), None),  # no groups: each is as wide as the gap
    ],
)
def test_two_groups_of_launches(launch_ns: tuple[float, ...], groups: tuple[int, int] | None) -> None:
    findings = found("groups of launches", reading(launched(*launch_ns)))
    assert [(each.facts["slow_launches"], each.facts["launches"]) for each in findings] == ([groups] if groups else [])


def test_groups_of_launches_need_four() -> None:
    assert isinstance(not_checked("groups of launches", reading(launched(100, 100, 200))), NotChecked)


# ---- words -----------------------------------------------------------------------------------------------------------


def test_a_slow_library_is_shown_with_its_time_and_the_usual_one() -> None:
    name = "mpi@mpich-5.0.2"
    warning = Warning_("yield", name, f"{name} calls sched_yield in round trips of short messages.", "Use another.")
    floors = {(name, 2): near(46.0)}
    of = reading(curve(line(1300, 0), transport=name, sizes=SIZES), floors=floors, warnings=(warning,), facts=FACTS)
    (slow,) = found("latency above the floor", of)
    assert title_of(slow) == "slow for short messages"
    assert evidence_of(slow) == "1.30 us ±1% for 8 B, where at most 460 ns is usual on this machine (10 floors)."
    assert cause_of(slow) == "It yields the CPU while it waits."
