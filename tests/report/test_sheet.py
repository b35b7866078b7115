"""The data sheet's figures have fixed definitions, whatever else a run has measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.report.runs import Made, options, store_run

from hockney.library import open_results
from hockney.model import Point
from hockney.report.sheet import Row, make_sheet


def row(path: Path, *made: Made) -> Row:
    store_run(path / "r.db", "quick", made)
    with open_results(path / "r.db") as results:
        (found,) = make_sheet(results.run()).rows
    return found


def oneway(size: int, window: int) -> Made:
    point = Point("shm", "oneway", 2, size, options(window=window))
    return Made(point, 1000.0, divisor=window, bytes_per_rep=window * size)


LATENCY = Made(Point("shm", "pingpong", 2, 8, ()), 50.0, divisor=2, bytes_per_rep=16)


def test_stream_is_of_long_messages_sixteen_under_way(tmp_path: Path) -> None:
    found = row(tmp_path, LATENCY, oneway(1 << 16, 16), oneway(1 << 16, 3), oneway(1 << 22, 16))
    assert found.stream_bytes_per_s is not None
    assert found.stream_bytes_per_s.value == pytest.approx(65536 / 1e-6, rel=0.01)
    assert found.stream_bytes_per_s.at_bytes == 1 << 16


@pytest.mark.parametrize("other", [oneway(7, 16), oneway(1 << 16, 3)])
def test_what_is_no_stream_is_not_shown_as_one(tmp_path: Path, other: Made) -> None:
    assert row(tmp_path, LATENCY, other).stream_bytes_per_s is None
