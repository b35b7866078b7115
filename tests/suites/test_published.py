"""The suite of a classic report measures every figure that the report published."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hockney.archive import Published, published, reports
from hockney.measure.plan import make_plan
from hockney.model import Point
from hockney.suites import Limits, load_suite
from hockney.worker.catalogue import load
from hockney.worker.points import RunOptions

Where = dict[str, Any]  # fields of a point, and options
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


def farm(figure: Published) -> Where:
    senders, receivers = int(figure.at["senders"]), int(figure.at["receivers"])
    return {"ranks": senders + receivers + 1, "bytes": figure.at["bytes"], "senders": str(senders)}


def of_size(pattern: str, **more: Any) -> Callable[[Published], Where]:
    """The figure's size and processors; a peak is of any size."""

    def where(figure: Published) -> Where:
        ranks = figure.at.get("processors", figure.at.get("nodes", 2))
        size = {"bytes": figure.at["bytes"]} if "bytes" in figure.at else {}
        return {"pattern": pattern, "ranks": 2 if figure.at.get("scope") == "intra-node" else ranks, **size, **more}

    return where


def events(pattern: str) -> Callable[[Published], Where]:
    def where(figure: Published) -> Where:
        size = figure.at.get("bytes", 1024)  # of Com-3.2 the report gives none
        return {"pattern": pattern, "ranks": figure.at["processors"], "bytes": size,
                "delay_us": str(figure.at["delay_us"])}  # fmt: skip

    return where


def load_of(figure: Published) -> Where:
    """Remote: a get of a word or a line; in page: one word after the other."""
    if figure.at["source"] == "Remote DRAM":
        return {"pattern": "get", "bytes": 8 if figure.at["destination"] == "Register" else 64}
    if figure.at["source"] == "DRAM Read Ahead":
        return {"pattern": "memload", "access": "read-ahead"}
    is_chased = figure.at["page"] == "out of page" or figure.at["source"] == "Cache"
    return {"pattern": "memload", **({} if is_chased else {"access": "stream"})}


def of_stream(figure: Published) -> Where:
    """The receiver is rank 1, or with source=1 rank 0; a figure without a size is of all."""
    ways = {name: str(figure.at[name]).replace("-", "") for name in ("write", "read")}
    return {"pattern": "stream", **ways, **({"bytes": figure.at["bytes"]} if "bytes" in figure.at else {})}


POINTS: dict[str, Callable[[Published], Where]] = {
    "Com-1.1": of_size("oneway"),
    "Com-1.2": of_size("twoway"),
    "Com-1.3": of_size("alltoall", algorithm="flat"),
    "Com-1.4": of_size("pairs"),
    "Com-1.5": of_size("outfarm"),
    "Com-1.6": of_size("multicast"),
    "Com-1.7": of_size("funnel"),
    "Com-2.1": lambda figure: {"pattern": "pushfarm", **farm(figure)},
    "Com-2.2": lambda figure: {"pattern": "pullfarm", **farm(figure)},
    "Com-3.1": events("robpush"),
    "Com-3.2": events("robpull"),
    "one-way (pingping)": of_size("oneway"),
    "two-way": of_size("twoway"),
    "ping-pong": of_size("pingpong"),
    "bisection": of_size("bisection"),
    "barrier": of_size("barrier"),
    "alltoall": of_size("alltoall"),
    "NPB 2.3 FT class A": lambda figure: {
        "pattern": "ft",
        "ranks": int(figure.at["nodes"]) * (2 if figure.system == "Scali-2" else 1),
        "class": "A",
    },
    "ping_pong": lambda figure: {"pattern": "putpong", "ranks": figure.at["npes"], "bytes": 8},
    "single_pairs": lambda figure: {"pattern": "put", "ranks": 16, **_words(figure)},
    "multiple_pairs": lambda figure: {"pattern": "putring", "ranks": 16, **_words(figure)},
    "pvm/mpi (previous newsletter)": lambda figure: {"pattern": "pingpong", "bytes": 8},
    "load table": load_of,
    "stream write/read": of_stream,
    "ping-pong bandwidth": lambda figure: {"pattern": "pingpong"},
}


def _words(figure: Published) -> Where:
    return {"bytes": figure.at["bytes"]} if "bytes" in figure.at else {}


def is_there(point: Point, options: dict[str, Any], where: Where) -> bool:
    fields = {"pattern": point.pattern, "ranks": point.ranks, "bytes": point.bytes}
    return all({**options, **fields}.get(name) == value for name, value in where.items())


@pytest.mark.parametrize("report", list(reports()))
def test_every_published_figure_has_a_point_in_its_suite(report: str) -> None:
    for figure in published(report):
        where = POINTS[figure.benchmark](figure)
        assert any(is_there(*point, where) for point in planned(report)), (figure.benchmark, where)


@pytest.mark.parametrize("report", ["scabench", "t3d"])
def test_a_peak_is_searched_from_short_to_long_messages(report: str) -> None:
    """A rate that still grows with the last size is no peak."""
    for pattern in {POINTS[figure.benchmark](figure)["pattern"] for figure in published(report)
                    if figure.metric in ("peak_bandwidth", "Rmax", "aggregate_bandwidth")}:  # fmt: skip
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
