"""Changes between two runs as text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.builders import make_info, make_point

from hockney.analysis.compare import Verdict
from hockney.analysis.compare.values import Comparison, Difference, Range, Reason, ReasonCode, SeriesChange
from hockney.report.changes import change_text, names_of, range_name, times_text
from hockney.report.documents.comparison import (
    bound_text,
    counts_text,
    footer,
    notes,
    only_in_sentence,
    protocol_text,
    row,
    states_sentence,
)
from hockney.stats.shift import Shift


@pytest.mark.parametrize(
    ("ratios", "by_factor", "text"),
    [
        ([(1.1, 1.02, 1.2)], False, "+10.0 % (+2.0 to +20)"),
        ([(1.1, 1.02, 1.4), (1.2, 1.05, 1.3), (1.3, 1.01, 1.35)], False, "+20.0 % (+1.0 to +40)"),
        ([(4.0, 3.0, 5.0), (5.0, 2.5, 8.0), (6.0, 4.0, 7.0)], True, "x5.00 (2.50 to 8.00)"),
        ([(2.5, 1.9, 3.5)], False, "+150.0 % (+90 to +250)"),
        ([(1.1, 1.02, 1.2)], True, "x1.10 (1.02 to 1.20)"),
        ([(1.05, 1.01, 1.0994)], False, "+5.0 % (+1.0 to +9.9)"),
        ([(1.05, 1.01, 1.0996)], False, "+5.0 % (+1.0 to +10)"),
    ],
)
def test_a_range_has_the_median_change_and_the_widest_bounds(
    ratios: list[tuple[float, float, float]], by_factor: bool, text: str
) -> None:
    assert change_text(Range(moved(*ratios)), by_factor=by_factor) == text


def moved(*ratios: tuple[float, float, float]) -> tuple[SeriesChange, ...]:
    """A series for each ratio with its interval, at sizes from 8 B on."""
    return tuple(
        SeriesChange(make_point(8 << place), Verdict.SLOWER, shift=Shift(*ratio, 0.95, 5, 5))
        for place, ratio in enumerate(ratios)
    )


@pytest.mark.parametrize(
    ("ratio", "by_factor"),
    [
        ((2.5, 1.9, 3.5), True),
        ((1.9, 1.8, 2.1), False),
        ((3.0, 2.0, 4.0), True),
        ((0.5, 0.4, 0.6), True),
        ((0.6, 0.4, 0.7), False),
        ((0.3, 0.2, 0.5), True),
    ],
)
def test_all_changes_of_a_comparison_have_one_unit(ratio: tuple[float, float, float], by_factor: bool) -> None:
    """Also a small change, the summary, and a change on a model without noise."""
    exact = SeriesChange(make_point(pattern="ring"), Verdict.SLOWER, shift=Shift(1.3, 1.3, 1.3, 1.0, 1, 1))
    comparison = compared(*moved((1.1, 1.02, 1.2), ratio), exact)
    assert comparison.is_by_factor is by_factor
    texts = [*(row(alike, comparison, {})[3] for alike in comparison.ranges), counts_text(compared(*moved(ratio)))]
    assert [("%" in text, "x" in text) for text in texts] == [(not by_factor, by_factor)] * len(texts)


def compared(*changes: SeriesChange, **more: Any) -> Comparison:
    return Comparison(1, 2, (6, 6), more.pop("margin", 1.05), (), changes, (make_info(), make_info()), **more)


def same(high: float, **point: Any) -> SeriesChange:
    """A series without a difference, whose interval ends here."""
    return SeriesChange(make_point(**point), Verdict.SAME, shift=Shift(1.0, 0.96, high, 0.95, 5, 5))


@pytest.mark.parametrize(
    ("times_ns", "text"),
    [
        ([(100.0, 110.0, False)], ("100 ns", "110 ns")),
        ([(300.0, 330.0, False), (100.0, 110.0, False), (200.0, None, False)], ("100-300 ns", "110-330 ns")),
        ([(100.0, None, False), (2000.0, None, False)], ("100 ns-2.00 us", "–")),
        ([(100.0, 110.0, False), (200.0, 220.0, True)], ("100-200 ns†", "110-220 ns†")),
    ],
)
def test_the_times_of_a_range_are_its_least_and_greatest(
    times_ns: list[tuple[float, float | None, bool]], text: tuple[str, str]
) -> None:
    alike = Range(
        tuple(
            SeriesChange(make_point(8 << place), Verdict.SAME, base_ns=base, new_ns=new, is_short=is_short)
            for place, (base, new, is_short) in enumerate(times_ns)
        )
    )
    assert (times_text(alike, 0), times_text(alike, 1)) == text


@pytest.mark.parametrize(
    ("points", "name"),
    [
        ([make_point(8)], "pingpong on shm, 8 B"),
        ([make_point(8), make_point(64)], "pingpong on shm, 8-64 B"),
        ([make_point(8), make_point(2048)], "pingpong on shm, 8 B-2 KiB"),
        ([make_point(8, ranks=3)], "pingpong on shm, 3 ranks, 8 B"),
        ([make_point(0, pattern="barrier")], "barrier on shm"),
    ],
)
def test_the_name_of_a_range_has_its_sizes_and_ranks_other_than_two(points: list[Any], name: str) -> None:
    assert range_name(Range(tuple(SeriesChange(point, Verdict.SAME) for point in points))) == name


@pytest.mark.parametrize(
    ("margin", "highs", "text"),
    [
        (1.125, (1.02, 1.05), "New is equal at 2 sizes (a difference above 12.5 % would have shown)"),
        (1.01, (1.02, 1.063, 1.051), "New is equal at 3 sizes (a difference above 6.3 % would have shown)"),
        (1.0, (1.02,), "New is equal at 8 B (a difference above 4 % would have shown)"),
    ],
)
def test_equal_series_have_one_bound_that_holds_for_all(margin: float, highs: tuple[float, ...], text: str) -> None:
    """The margin, or the farthest end of an interval on either side, here -4 %."""
    assert counts_text(compared(*map(same, highs), margin=margin)) == text


@pytest.mark.parametrize(
    ("by", "digits"), [(0.05, "5"), (0.1251, "12.5"), (0.00123, "0.123"), (0.0001, "0.01"), (12.3456, "1230")]
)
def test_a_bound_has_three_digits(by: float, digits: str) -> None:
    assert bound_text("slowdown", by) == f"a slowdown above {digits} % would have shown"


JOINED = "In rows of several sizes: the median change, the outermost interval."
EXTREMES = "Changes leave out extreme launches, base and new do not."


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([same(1.02)], ""),
        ([same(1.02, size_bytes=8), same(1.02, size_bytes=64)], JOINED),
        ([same(1.02, size_bytes=8), same(1.02, pattern="ring")], ""),
        ([replace(same(1.02), states=("near", "near"))], "Machine state: near."),
        (
            [replace(same(1.02, pattern=name), states=("near", new)) for name, new in (("a", "far"), ("b", "near"))],
            "Machine state: near in run 1 and far in run 2 (1 series); near (1 series).",
        ),
        (
            [replace(same(1.02, pattern=f"p{n}"), states=(name, name)) for n, name in enumerate("abca")],
            "Machine state: a (2 series); b (1 series); …",
        ),
        ([replace(same(1.02), base_ns=100.0, new_ns=103.0)], EXTREMES),
        ([replace(same(1.02), base_ns=100.0, new_ns=95.0)], EXTREMES),
        ([replace(same(1.02), base_ns=100.0, new_ns=101.0)], ""),
        ([replace(same(1.02), base_ns=100.0)], ""),
        ([SeriesChange(make_point(8 << n), Verdict.SAME, shift=Shift(1.0, 1.0, 1.0, 1.0, 1, 1)) for n in (0, 1)], ""),
    ],
)
def test_the_footer_explains_joined_rows_states_and_extreme_launches(changes: list[SeriesChange], text: str) -> None:
    assert footer(compared(*changes)) == text


def test_the_footer_of_an_alternation_says_that_changes_are_by_round() -> None:
    alternated = replace(compared(replace(same(1.02), base_ns=100.0, new_ns=103.0)), interleaved=True)
    assert footer(alternated).startswith("Changes compare both sides round by round")
    assert footer(replace(alternated, changes=(same(1.02),))) == ""


def test_without_noise_equal_series_are_within_the_margin() -> None:
    exact = SeriesChange(make_point(), Verdict.SAME, shift=Shift(1.0, 1.0, 1.0, 1.0, 1, 1))
    assert counts_text(compared(exact, margin=1.0)) == "New is equal at 8 B"


def test_the_summary_has_the_change_of_a_single_size() -> None:
    slow = SeriesChange(make_point(4096), Verdict.SLOWER, shift=Shift(1.25, 1.2, 1.3, 0.95, 6, 6))
    text = "New is slower at 4 KiB (+25.0 %), equal at 2 sizes (a difference above 5 % would have shown)"
    assert counts_text(compared(slow, same(1.0), same(1.0))) == text


@pytest.mark.parametrize(("transports", "more"), [(3, ""), (4, ", …")])
def test_the_first_three_curves_of_one_run_only_are_named(transports: int, more: str) -> None:
    points = [make_point(size, f"t{place}") for place in range(transports) for size in (8, 64)]
    named = ", ".join(f"pingpong on t{place}" for place in range(3))
    assert only_in_sentence(3, points) == f"only in run 3: {2 * transports} series ({named}{more})"


@pytest.mark.parametrize(("others", "more"), [((), ""), (("c",), ""), (("c", "d"), "; …")])
def test_the_two_most_frequent_pairs_of_states_are_named(others: tuple[str, ...], more: str) -> None:
    reasons = [Reason(ReasonCode.NO_COMMON_STATE, {"runs": (1, 2), "base": ["a"], "new": [new]}) for new in "bb"]
    reasons += [Reason(ReasonCode.NO_COMMON_STATE, {"runs": (1, 2), "base": ["a"], "new": [new]}) for new in others]
    (sentence,) = states_sentence(
        compared(*(SeriesChange(make_point(), Verdict.INCONCLUSIVE, reasons=(reason,)) for reason in reversed(reasons)))
    )
    assert sentence.startswith(f"inconclusive: {len(reasons)} series have ")
    states = sentence.partition("(")[2].partition(")")[0]
    assert states.startswith("run 1: a, run 2: b")
    assert states.count("run 2: ") == min(2, 1 + len(others))
    assert states.endswith("…") == bool(more)
    assert states_sentence(compared(same(1.0))) == []


@pytest.mark.parametrize(
    ("base", "new", "name"),
    [
        ("Open MPI 4.1.4 (ob1)", "Open MPI 5.0.1 (ob1)", "Open MPI 4.1.4 -> Open MPI 5.0.1"),
        ("Open MPI 5.0.1 (ob1)", "Open MPI 5.0.1 (ob1)", "mpi@a -> mpi@b"),
    ],
)
def test_a_transport_in_place_of_another_has_both_names(base: str, new: str, name: str) -> None:
    libraries = {"mpi@a": base, "mpi@b": new, "tcp/2": "TCP"}
    names = names_of(compared(libraries=libraries, renamed={"mpi@a": "mpi@b"}))
    assert names["mpi@b"] == name
    assert names["tcp/2"].endswith(", 2 on each host")


@pytest.mark.parametrize("option", ["--json", "--all"])
@pytest.mark.parametrize(("count", "more"), [(0, None), (3, 0), (5, 2)])
def test_three_differences_are_named_and_the_others_counted(count: int, more: int | None, option: str) -> None:
    differences = tuple(Difference(f"thing {place}", "a", None) for place in range(count))
    comparison = replace(compared(same(1.0)), differences=differences)
    brief, full = (
        [line for line in notes(comparison, everything=everything, more=option) if line.startswith("changed: ")]
        for everything in (False, True)
    )
    assert [line.count("thing ") for line in (*brief, *full)] == ([] if more is None else [3, count])
    assert [line.endswith(f" ({more} more: {option})") for line in brief] == ([] if more is None else [more > 0])


@pytest.mark.parametrize(
    ("limit", "verdict", "is_named"),
    [("a_limit", Verdict.SLOWER, True), ("a_limit", Verdict.SAME, False), (None, Verdict.SLOWER, False)],
)
def test_a_documented_limit_is_named_if_the_range_changed(limit: str | None, verdict: Verdict, is_named: bool) -> None:
    text = protocol_text(Range((SeriesChange(make_point(), verdict),), limit))
    assert (text is not None and "a_limit" in text) == is_named
    assert is_named or text is None
