"""Lines and LogGP as explain hands them out and prints them, of curves of known truth."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.analysis.explain.readings import SIZES, curve, line, reading
from tests.stats.fit.test_loggp import SMALL
from tests.stats.fit.truth import sizes_of

from hockney.analysis.explain.curve import MeasuredCurve, Parameters
from hockney.analysis.explain.fits import lines_of
from hockney.analysis.finding import Absence
from hockney.render.text import show
from hockney.report.documents.findings import line_blocks, loggp_blocks, off_line_blocks, with_half_width
from hockney.report.findings import check_name
from hockney.stats.fit import Estimate, NoFit, fit_loggp

TRIPS = [SMALL.trips(size) for size in sizes_of(24)]


def in_class(of: MeasuredCurve, measurements: int) -> MeasuredCurve:
    return replace(of, pair_class="one core", n_measurements=measurements)


def test_each_segment_is_a_line() -> None:
    made = curve(lambda size: 500 + 0.1 * size if size <= 2048 else 2000 + 0.05 * size, ranks=4)
    lines, _, gaps = lines_of(reading(made))
    below, above = lines
    assert not gaps
    assert (below.transport, below.pattern, below.ranks, below.state) == ("shm", "pingpong", 4, "near")
    assert (below.first_bytes, below.last_bytes, above.first_bytes, above.last_bytes) == (8, 2048, 4096, 65536)
    assert (below.sizes, above.sizes) == (9, 5)
    assert below.t0_ns is not None
    assert below.t0_ns.value == pytest.approx(500)
    assert above.r_inf_bytes_per_s is not None
    assert above.r_inf_bytes_per_s.value == pytest.approx(2e10)
    assert below.n_half_bytes is not None
    assert below.n_half_bytes.value == pytest.approx(5000)
    assert below.relative_rms < 1e-6


def test_a_line_between_close_sizes_is_a_transition_without_a_rate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From 8,128 to 8,191 B the time climbs from one protocol to the next, by 20 ns a byte."""
    rise = (8128, 8144, 8160, 8176, 8191)
    sizes = sorted({*SIZES[:10], 5000, 6000, 7000, *rise, 12000, 24000, 36000, 48000, 65536})

    def time_ns(size: int) -> float:
        return 500 + 0.1 * size + 20 * min(max(0, size - 8112), 80)

    lines = lines_of(reading(curve(time_ns, sizes=sizes)))[0]
    (transition,) = [one for one in lines if one.last_bytes < 1.5 * one.first_bytes]
    assert (transition.first_bytes, transition.last_bytes) == (8128, 8191)
    assert (transition.t0_ns, transition.r_inf_bytes_per_s, transition.n_half_bytes) == (None, None, None)
    assert all(one.r_inf_bytes_per_s is not None for one in lines if one is not transition)
    show(line_blocks(lines))
    (row,) = [row for row in capsys.readouterr().out.splitlines() if "8,128 B - 8,191 B" in row]
    assert "below 0" not in row
    assert "/s" not in row


@pytest.mark.parametrize(("last_bytes", "has_start"), [(1450, False), (1550, True)])
def test_a_line_is_half_as_long_again_as_its_first_size(last_bytes: int, has_start: bool) -> None:
    (fitted,) = lines_of(reading(curve(sizes=[1000, 1200, last_bytes])))[0]
    assert (fitted.t0_ns is not None, fitted.r_inf_bytes_per_s is not None) == (has_start, has_start)


def test_each_size_of_a_line_has_its_residual() -> None:
    """0.6 % above the line at one size; a size off every line belongs to none."""
    made = curve(lambda size: (500 + 0.1 * size) * {512: 1.006, 1024: 2.0}.get(size, 1.0))
    (fitted,) = lines_of(reading(made))[0]
    assert fitted.sizes_bytes == tuple(size for size in SIZES if size != 1024)
    assert len(fitted.residuals) == fitted.sizes == len(fitted.sizes_bytes)
    most, at_bytes = max(zip(fitted.residuals, fitted.sizes_bytes, strict=True))
    assert most == pytest.approx(0.006, abs=0.001)
    assert at_bytes == 512
    assert fitted.relative_rms == pytest.approx((sum(r**2 for r in fitted.residuals) / fitted.sizes) ** 0.5, rel=0.01)


def test_sizes_on_no_line_are_named_with_their_times(capsys: pytest.CaptureFixture[str]) -> None:
    lines, off_lines, _ = lines_of(reading(curve(lambda size: (200 if size <= 16 else 2500) + 0.1 * size)))
    assert [one.first_bytes for one in lines] == [32]
    assert [(one.transport, one.pattern, one.state, one.bytes) for one in off_lines] == [
        ("shm", "pingpong", "near", 8),
        ("shm", "pingpong", "near", 16),
    ]
    show(off_line_blocks(off_lines))
    text = "Off every line of pingpong on shm (near): 8 B (201 ns), 16 B (202 ns)."
    assert " ".join(capsys.readouterr().out.split()) == text
    assert lines_of(reading(curve()))[1] == []


def test_further_patterns_have_separate_lines() -> None:
    """In every state, and where they have a curve: two sizes are just figures."""
    trips, ways = curve(line(500, 0.1)), curve(line(200, 0.05), "oneway", options={"window": 16})
    slow = curve(line(400, 0.1), "oneway", options={"window": 16}, state="far")
    both, several = curve(line(300, 0.2), "twoway", sizes=SIZES[:2]), curve(line(700, 0.4), "pairs", ranks=4)
    rings = curve(line(900, 0.4), "ring", ranks=4)
    classed = [(trips, 90), (slow, 300), (ways, 200), (both, 9)]
    of = reading(rings, several, ways, trips, both, by_class=tuple(in_class(one, n) for one, n in classed))
    lines, _, gaps = lines_of(of)
    assert [(one.pattern, one.ranks, one.pair_class, one.state) for one in lines] == [
        ("pairs", 4, "", "near"),
        ("pingpong", 2, "one core", "near"),
        ("oneway window=16", 2, "one core", "far"),
        ("oneway window=16", 2, "one core", "near"),
    ]
    assert [one.t0_ns and one.t0_ns.value for one in lines] == pytest.approx([700, 500, 400, 200])
    assert gaps == []


def test_a_curve_without_a_line_says_why() -> None:
    lines, _, gaps = lines_of(reading(curve(sizes=SIZES[:2])))
    assert lines == []
    (gap,) = gaps
    assert (check_name(gap), gap.reason) == ("lines through pingpong on shm", Absence.INSUFFICIENT_DATA)


def test_the_state_with_most_measurements_is_first_and_one_with_too_few_sizes_is_left_out() -> None:
    near = curve(line(500, 0.1))
    far, few = curve(line(900, 0.2), state="far"), curve(sizes=SIZES[:2], state="near, contended")
    of = reading(
        near,
        by_class=(in_class(few, 12), in_class(far, 90), in_class(near, 400)),
    )
    lines, _, gaps = lines_of(of)
    assert [(one.state, one.pair_class) for one in lines] == [("near", "one core"), ("far", "one core")]
    assert [one.t0_ns and one.t0_ns.value for one in lines] == pytest.approx([500, 900])
    assert gaps == []


def test_lines_are_printed_with_their_arms(capsys: pytest.CaptureFixture[str]) -> None:
    show(line_blocks(lines_of(reading(curve(line(500, 0.1), ranks=4)))[0]))
    printed = capsys.readouterr().out
    row = next(row for row in printed.splitlines() if row.startswith("pingpong on shm, 4 ranks"))
    for cell in ("8 B - 64 KiB", "500 ns ±", "10.0 GB/s ±", "5,000 B ±", "0.0%", "near"):
        assert cell in row
    show(line_blocks([]))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (Estimate(200, 180, 220), "200 ±10%"),
        (Estimate(200, 110, 280), "200 ±45%"),
        (Estimate(200, 90, 280), "200 (90–280)"),
        (Estimate(213, 138, 422), "210 (140–420)"),
        (Estimate(-16, -29, -3), "below 0"),
        (Estimate(16, -3, 29), "at most 29"),
        (Estimate(-3, -16, 29), "at most 29"),
        (None, "-"),
    ],
)
def test_a_value_with_a_long_arm_is_a_range(value: Estimate | None, printed: str) -> None:
    assert with_half_width(value, lambda number: f"{number:.0f}") == printed


def test_undetermined_parameters_are_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    show(line_blocks(lines_of(reading(curve(lambda size: 500 + 5 * (size % 3), sizes=SIZES)))[0]))
    row = next(row for row in capsys.readouterr().out.splitlines() if row.startswith("pingpong on shm"))
    assert " - " in row.replace("8 B - 64 KiB", "")


def test_loggp_is_printed_by_segment(capsys: pytest.CaptureFixture[str]) -> None:
    fits = fit_loggp(TRIPS)
    assert not isinstance(fits, NoFit)
    show(loggp_blocks([Parameters("shm", "prtt", 2, "", "near", fit) for fit in fits]))
    row = next(row for row in capsys.readouterr().out.splitlines() if row.startswith("prtt on shm"))
    for cell in ("900 ns", "300 ns", "200 ns", "450 ns", "12.5 GB/s", "0.0%", "yes", "near"):
        assert cell in row
    show(loggp_blocks(()))
    assert capsys.readouterr().out == ""


def test_four_sizes_on_both_sides_of_a_switch_are_no_line() -> None:
    """Any three of four may be on a line, here all except 8 KiB, which may as well begin another protocol."""

    def time_ns(size: int) -> float:
        return 100 + size / 12.3 if size <= 4040 else 1500 + size / 16.7

    lines, off_lines, gaps = lines_of(reading(curve(time_ns, sizes=(8, 1024, 8192, 65536))))
    assert (lines, off_lines) == ([], [])
    assert len(gaps) == 1
    assert len(lines_of(reading(curve(line(100, 1 / 15), sizes=(8, 1024, 8192, 65536))))[0]) == 1
