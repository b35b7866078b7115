"""The suite of a classic report measures every figure that the report published."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import pytest

from hockney.archive import published, reports
from hockney.archive.points import Spec
from hockney.measure.plan import make_plan
from hockney.model import Point
from hockney.suites import Limits, load_suite
from hockney.worker.catalogue import load
from hockney.worker.points import RunOptions

# Which transports measure a report; one that has all that its patterns need is enough.
TRANSPORTS = {
    "atlas": ("shm",), "scabench": ("shm",), "t3d": ("shm", "null"), "ancor": ("unix",), "paragon": ("shm", "tcp"),
}  # fmt: skip


@functools.cache
def planned(report: str) -> tuple[tuple[Point, dict[str, Any]], ...]:
    """Every point with all its options, on a machine with a CPU for every rank; the T3D's 16 are for all pairs."""
    catalogue = load()
    points: list[Point] = []
    topology = SimpleNamespace(cache_sizes=lambda: {1: 32 << 10, 2: 1 << 20, 3: 32 << 20})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hockney.worker.points.read_topology", lambda: topology)
        for ranks in ((), (16,)) if report == "t3d" else ((),):
            asked = RunOptions(transports=TRANSPORTS[report], ranks=ranks, limits=Limits(time_s=1e6))
            points += make_plan(load_suite(report), asked, catalogue, 64).points
    defaults = {
        name: {option.name: option.default for option in pattern.options}
        for name, pattern in catalogue.patterns.items()
    }
    listed = (point for point in points if point.role != "basic")
    return tuple((point, {**defaults[point.pattern], **dict(point.options)}) for point in listed)


def is_there(point: Point, options: dict[str, Any], spec: Spec, defaults: dict[str, Any]) -> bool:
    """Whether a point is that of a figure; what the figure's point leaves out is of any size or ranks."""
    if point.pattern not in spec.patterns[:1]:
        return False
    if spec.ranks not in (None, point.ranks) or spec.bytes not in (None, point.bytes):
        return False
    return all(str(options[name]) == str(spec.options.get(name, defaults[name])) for name in _IN_ROWS & options.keys())


# Options that rows name: without one of them a point has the default.
_IN_ROWS = {name for report in reports() for each in published(report) if each.spec for name in each.spec.options}


@pytest.mark.parametrize("report", list(reports()))
def test_every_published_figure_has_a_point_in_its_suite(report: str) -> None:
    patterns = load().patterns
    for figure in published(report):
        if figure.spec is None:  # nothing here measures it
            assert figure.benchmark in ("load table", "ping-pong bandwidth")
            continue
        options = patterns[figure.spec.patterns[0]].options
        defaults = {option.name: option.default for option in options}
        assert any(is_there(*point, figure.spec, defaults) for point in planned(report)), figure.spec


@pytest.mark.parametrize("report", ["scabench", "t3d"])
def test_a_peak_is_searched_from_short_to_long_messages(report: str) -> None:
    """A rate that still grows with the last size is no peak."""
    peaks = [each.spec for each in published(report) if each.quantities[0] in ("best rate", "Rmax") and each.spec]
    for pattern in {spec.patterns[0] for spec in peaks}:
        sizes = {point.bytes for point, _ in planned(report) if point.pattern == pattern}
        assert min(sizes) <= 32, pattern
        assert max(sizes) >= 1 << 20, pattern


def test_all_pairs_of_the_newsletter_are_measured() -> None:
    every = planned("t3d")
    pairs = {(given["source"], given["target"]) for p, given in every if (p.pattern, p.bytes) == ("putpong", 8)}
    assert len(pairs) == 16 * 15
    assert all(source != target for source, target in pairs)
    distances = {given["distance"] for point, given in every if point.pattern == "putring"}
    assert distances == {str(distance) for distance in range(1, 16)}


@pytest.mark.parametrize(("most", "processors"), [(16, {4, 8, 16}), (8, {4, 8}), (3, set())])
def test_a_number_of_ranks_leaves_the_larger_rows_of_a_report_out(most: int, processors: set[int]) -> None:
    """`run atlas -n 16`: no row has more ranks, and those of fewer are measured, too."""
    plan = make_plan(load_suite("atlas"), RunOptions(transports=("shm",), ranks=(most,)), load(), 64)
    of_rows = [point for point in plan.points if point.role != "basic"]
    assert max(point.ranks for point in of_rows) <= most
    assert {point.ranks for point in of_rows if point.pattern == "pairs"} == processors
    assert {point.ranks for point in of_rows if point.pattern == "oneway"} == {2}
