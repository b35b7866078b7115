"""The tables of the page: the sheet with its best values, and the environment, on runs whose times are known."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.report.html.made import material, pingpong
from tests.report.runs import Made, options

from hockney.model import Point
from hockney.report.document import Block, Cell, Section, Table
from hockney.report.page.tables import environment_of, sections_of


def sheet(path: Path, *made: Made) -> Section:
    with material(path, *made, suite="quick") as known:
        return sections_of(known)["sheet"]


def best(table: Table, title: str) -> list[str]:
    """The transports whose cell of a column is marked."""
    place = [column.title for column in table.heads].index(title)
    cells = {row[0]: row[place] for row in table.rows if len(row) == len(table.heads)}  # the floor has fewer
    return [name for name, cell in cells.items() if isinstance(cell, Cell) and cell.is_best]


def stream(transport: str, time_ns: float, **more: float) -> list[Made]:
    return [
        Made(Point(transport, "oneway", 2, size, options(window=16)), time_ns * size, 16, 16 * size, **more)  # type: ignore[arg-type]
        for size in (1 << 16, 1 << 20)
    ]


def test_the_best_value_is_marked_with_those_whose_interval_overlaps(tmp_path: Path) -> None:
    """The least time, and the greatest rate."""
    made = [
        pingpong("shm", 8, 50.0, scatter=0.05),
        pingpong("threads", 8, 51.0, scatter=0.05),
        pingpong("tcp", 8, 99.0),
    ]
    made += [*stream("shm", 0.2), *stream("threads", 0.1, scatter=0.05), *stream("tcp", 0.102, scatter=0.05)]
    (table,) = sheet(tmp_path, *made).tables
    assert best(table, "latency (8 B)") == ["shm", "threads"]
    assert best(table, "bandwidth") == ["threads", "tcp"]
    assert "barrier" not in [column.title for column in table.heads]  # none was measured


def test_launches_that_are_alike_are_one_row(tmp_path: Path) -> None:
    with material(tmp_path, pingpong("tcp"), pingpong("shm"), launches=({}, {"index": 2}), pinned=True) as known:
        launched = rows("Launches", environment_of(known))
    assert [(row[0], row[4], row[-1]) for row in launched] == [("tcp", "0, 1", "2"), ("shm", "0, 1", "2")]


def rows(title: str, blocks: Iterable[Block]) -> list[list[str]]:
    return next(block.rows for block in blocks if isinstance(block, Section) and block.title == title)


@pytest.mark.parametrize(("cpus", "text"), [((0, 1), "0, 1"), ((-1, 1), "unknown")])
def test_the_cpus_of_a_launch_are_unknown_where_one_is(tmp_path: Path, cpus: tuple[int, int], text: str) -> None:
    with material(tmp_path, pingpong("shm"), launches=({"cpus": cpus},)) as known:
        assert [launch[4] for launch in rows("Launches", environment_of(known))] == [text]


def test_facts_within_facts_are_rows_with_their_path(tmp_path: Path) -> None:
    with material(tmp_path, pingpong("shm")) as known:
        facts = rows("Machine and plan", environment_of(known))
    assert ["software.c_compiler", "cc 12.2"] in facts
    assert ["software.commit", "abc"] in facts
