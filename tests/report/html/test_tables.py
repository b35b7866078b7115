"""The tables of the page: the sheet with its best values, and the environment, on runs whose times are known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.html.made import material, pingpong
from tests.report.runs import Made, options

from hockney.model import Point
from hockney.report.document import Block, Bullet
from hockney.report.page.tables import environment_of, sheet_table
from hockney.report.table import TextTable


def sheet(path: Path, *made: Made) -> TextTable:
    with material(path, *made, suite="quick") as known:
        table = sheet_table(known)
    assert table is not None
    return table


def best(table: TextTable, title: str) -> list[str]:
    """The transports whose cell of a column is marked."""
    place = table.columns.index(title)
    return [row[0].text for row in table.rows if row[place].is_best]


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
    table = sheet(tmp_path, *made)
    assert best(table, "latency (8 B)") == ["shm", "threads"]
    assert best(table, "bandwidth") == ["threads", "tcp"]
    assert "barrier" not in table.columns  # none was measured


@pytest.mark.parametrize(("far", "share"), [(0, " 100%"), (3, " 75%")])
def test_the_share_of_the_state_is_of_all_measurements(tmp_path: Path, far: int, share: str) -> None:
    near = pingpong("shm", measurements=9)
    table = sheet(tmp_path, replace(near, then=replace(near, measurements=far, floor_ns=160.0)))
    (note,) = (note for note in table.notes if note.startswith("Machine state: near"))
    assert share in note


def test_series_without_figures_are_counted_by_reason(tmp_path: Path) -> None:
    made = [pingpong("tcp", size, failed="rank 1 hung") for size in (8, 64)]
    made += [pingpong("tcp", 512, skipped="too long"), pingpong("shm")]
    with material(tmp_path, *made, launches=({}, {"index": 2}), pinned=True) as known:
        environment = list(environment_of(known))
    bullets = [block.text for block in environment if isinstance(block, Bullet)]
    assert bullets == ["failed, tcp (2): rank 1 hung", "skipped, tcp (1): too long"]
    assert [(row[0].text, row[4].text, row[-1].text) for row in table("Launches", environment).rows] == [
        ("tcp", "0, 1", "2"), ("shm", "0, 1", "2")
    ]  # fmt: skip


def table(title: str, blocks: Iterable[Block]) -> TextTable:
    return next(block for block in blocks if isinstance(block, TextTable) and block.title == title)


@pytest.mark.parametrize(("cpus", "text"), [((0, 1), "0, 1"), ((-1, 1), "unknown")])
def test_the_cpus_of_a_launch_are_unknown_where_one_is(tmp_path: Path, cpus: tuple[int, int], text: str) -> None:
    with material(tmp_path, pingpong("shm"), launches=({"cpus": cpus},)) as known:
        assert [launch[4].text for launch in table("Launches", environment_of(known)).rows] == [text]


def test_facts_within_facts_are_rows_with_their_path(tmp_path: Path) -> None:
    with material(tmp_path, pingpong("shm")) as known:
        facts = dict(table("Machine and plan", environment_of(known)).texts)
    assert (facts["software.c_compiler"], facts["software.commit"]) == ("cc 12.2", "abc")
