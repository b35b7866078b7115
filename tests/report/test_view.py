"""The screens of a classic report's tables: nothing wider than a line, no column that is blank throughout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.matrix import matrix
from tests.report.cells import shown
from tests.report.runs import Made, options, oversubscribed, store_run
from tests.report.test_classic import stream

from hockney import stats
from hockney.model import Point
from hockney.report.classic.values import NOTHING, Cell, ClassicColumn, ClassicTable, LeftOut, Measured
from hockney.report.classic.view import states_note, view_of

MPI = ("mpi@mpich-5.0.2", "mpi@openmpi-4.1.4", "mpi@mpich-4.0.2")


def cell(value: float) -> Measured:
    return Measured("us", value)


def no(reason: str) -> Measured:
    return Measured("us", reason=reason)


def grid(*rows: tuple[Cell, ...], heading: int = 0) -> ClassicTable:
    parts = [("shm", "put", "2 ranks"), ("tcp", "put", "2 ranks"), ("udp", "put", "2 ranks")]
    columns = [ClassicColumn("ranks"), ClassicColumn("size"), ClassicColumn("published", "published")]
    columns += [ClassicColumn(f"{' '.join(one[:2])}, 2 ranks", "measured", one) for one in parts]
    return ClassicTable("a", "A", tuple(columns), rows, heading=heading)


FULL = ("2", "8", "1", cell(1), cell(2), cell(3))


def test_a_column_without_a_figure_becomes_a_sentence() -> None:
    rows = [("2", size, "1", cell(1), no("no puts"), no("no puts")) for size in ("8", "64")]
    view = view_of(grid(*rows))
    assert [column.title for column in view.columns] == ["ranks", "size", "published", "shm put, 2 ranks"]
    assert view.left_out == (LeftOut("no puts"),)
    assert [len(row) for row in view.rows] == [4, 4]


def test_a_row_without_a_figure_becomes_a_sentence() -> None:
    blank = [(ranks, "8", "", *(no("oversubscribed"),) * 3) for ranks in "3456789"]
    view = view_of(grid(FULL, *blank))
    assert view.rows == (FULL,)
    assert view.left_out == (LeftOut("oversubscribed", tuple(f"{ranks} 8" for ranks in "3456789")),)
    assert view.left_out[0].sentence("(1)") == "Not measured (1): 3 8; 4 8; 5 8; 6 8; 7 8; and 2 more."


def test_a_blank_cell_among_figures_stays() -> None:
    view = view_of(grid(("2", "8", "1", cell(1), no("a"), no("b")), ("4", "8", "1", no("a"), no("b"), cell(1))))
    assert view.left_out == (LeftOut("a", ("tcp put, 2 ranks",)),)
    assert [len(row) for row in view.rows] == [5, 5]


def test_a_published_row_without_a_figure_has_dashes() -> None:
    view = view_of(grid(FULL, ("4", "8", "7.7", *(no("oversubscribed"),) * 3)))
    assert view.rows[1] == ("4", "8", "7.7", *(NOTHING,) * 3)
    assert view.left_out == (LeftOut("oversubscribed", ("4 8",)),)


def test_a_table_without_a_figure_has_the_published_ones() -> None:
    rows = [(ranks, "8", "1", *(no(reason),) * 3) for ranks, reason in (("2", "a"), ("4", "b"))]
    view = view_of(grid(*rows))
    assert view.rows == (("2", "8", "1"), ("4", "8", "1"))
    assert view.left_out == (LeftOut("a", ("2 8",)), LeftOut("b", ("4 8",)))
    assert not view_of(grid(*((*row[:2], "", *row[3:]) for row in rows))).rows


def test_a_published_column_without_a_figure_goes_and_the_heading_with_it() -> None:
    row = ("2", "8", "", *FULL[3:])
    assert [column.title for column in view_of(grid(row)).columns[:2]] == ["ranks", "size"]
    assert view_of(grid(row, heading=3)).heading == 2


# ---- on the page -----------------------------------------------------------------------------------------------------


def wide(suite: str) -> list[Made]:
    """A run with many transports: some can do all, some have no such pattern, and most points have too many ranks."""
    if suite == "t3d":
        made = [
            Made(Point(f"{name}:rma", pattern, 2, size), 100 + size, bytes_per_rep=size)
            for name in MPI
            for pattern in ("putpong", "putring", "put", "pingpong", "ring", "oneway", "get")
            for size in (8, 64, 4096)
        ]
        lacks = "{pattern} needs put and get, which {name} does not offer"
        made += [
            Made(Point(name, pattern, 2, 8), skipped=lacks.format(pattern=pattern, name=name))
            for name in (*MPI, "pvm@3.4.6")
            for pattern in ("putpong", "putring", "put", "get")
        ]
        return [*made, *(Made(Point("null", "memload", 1, size), 9, bytes_per_rep=8) for size in (16384, 1 << 24))]
    if suite == "ancor":
        return [stream(size, source=source) for size in (1, 1000, 65500) for source in (0, 1)]
    if suite == "paragon":
        names = ("shm", "tcp", *(f"pvm@3.4.6:{way}" for way in ("psend", "inplace-daemon", "raw-daemon", "default")))
        return [
            Made(Point(name, "pingpong", 2, size), 1000 + size, divisor=2, bytes_per_rep=2 * size)
            for name in names
            for size in (8, 1024, 65536)
        ]
    patterns = ("oneway", "twoway", "alltoall", "pingpong", "bisection", "barrier", "outfarm")
    made = [
        Made(Point(name, pattern, 2, size, options(window=16) if pattern == "oneway" else ()), 100 + size,
             bytes_per_rep=size)
        for name in ("shm", *MPI) for pattern in patterns for size in ((0,) if pattern == "barrier" else (0, 4, 64))
    ]  # fmt: skip
    return [*made, *(oversubscribed(name, "alltoall", 4, 4) for name in MPI)]


@pytest.mark.parametrize("width", matrix([60, 80, 100, 120], short=[60]))
@pytest.mark.parametrize("suite", ["t3d", "ancor", "paragon", "atlas", "scabench"])
def test_no_line_of_a_report_is_wider_than_the_line(
    suite: str, width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    store_run(tmp_path / "r.db", suite, wide(suite))
    text = shown(tmp_path, capsys)
    assert max(map(len, text.splitlines())) <= width
    assert "published" in text


def test_a_missing_figure_has_a_number_and_its_reason_is_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_run(tmp_path / "r.db", "t3d", wide("t3d"))
    text = " ".join(shown(tmp_path, capsys).split())
    tables, _, reasons = text.partition("Why figures are missing")
    (number,) = re.findall(r"\((\d+)\) skipped: put needs put and get, which mpi@mpich-5.0.2 does not offer", reasons)
    assert f"Not measured ({number}): " in tables
    assert "which mpi@mpich-5.0.2 does not offer" not in tables
    assert text.count("The published rate at N 1/2 is exactly half of Rmax") == 1  # a note of three tables
    assert "State of the machine: unknown" not in text  # of one rank there is nothing to know


def test_a_load_is_below_the_published_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_run(tmp_path / "r.db", "t3d", wide("t3d"))
    lines = shown(tmp_path, capsys).splitlines()
    place = next(
        place for place, line in enumerate(lines) if line.startswith("source Remote DRAM, destination Register")
    )
    assert [line.split()[:5] for line in lines[place + 1 : place + 3]] == [
        ["get", "of", "8", "B", f"{name}:rma"] for name in MPI[:2]
    ]


@pytest.mark.parametrize(
    ("states", "common", "is_alone"),
    [
        (("near", "far", "near"), "near", False),
        (("far", "mixed", "mixed"), "far", False),
        (("far", "far"), "far", True),
        (("mixed", "mixed"), "mixed", True),
        ((None, None), None, False),
    ],
)
def test_the_note_names_the_most_frequent_steady_state(
    states: tuple[str | None, ...], common: str | None, is_alone: bool
) -> None:
    named, note = states_note([*(Measured("us", 1.0, state=state) for state in states), Measured("us", state="rare")])
    assert named == common
    assert (note is None) == (common is None)
    assert note is None or note.endswith(f": {common}.") == is_alone


def test_an_unknown_state_has_no_note() -> None:
    assert states_note([Measured("us", 1.0, state=stats.UNKNOWN.name)]) == (stats.UNKNOWN.name, None)
