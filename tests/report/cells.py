"""Cells of the classic tables of a made-up run, by the beginning of their row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.report.runs import Made, options, store_run, stored

from hockney.cli import execute
from hockney.model import Point
from hockney.report.classic import make_report
from hockney.report.classic.conclusions import ClassicReport
from hockney.report.classic.values import Cell, ClassicTable, Measured
from hockney.results.store import Store

MPI = "mpi@openmpi-4.1.4"


def point(transport: str, pattern: str, ranks: int, size: int, **given: object) -> Point:
    return Point(transport, pattern, ranks, size, options(**given))


def report_of(path: Path, suite: str, made: Sequence[Made], **info: Any) -> ClassicReport:
    """Of a run of these points, which is stored as the last one."""
    store_run(path / "r.db", suite, made, **info)
    with Store.open(path / "r.db") as store:
        report = make_report(stored(store))
    assert report is not None
    return report


def tables(path: Path, suite: str, made: Sequence[Made], **info: Any) -> dict[str, ClassicTable]:
    return {table.name: table for table in report_of(path, suite, made, **info).tables}


def shown(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The output of `hockney show --tables` for the last run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOCKNEY_STORE", str(path / "r.db"))  # with --store, printed commands may be longer than a line
        assert execute(["show", "--tables", *words]) == 0
    return capsys.readouterr().out


def row(table: ClassicTable, *begins: str) -> tuple[Cell, ...]:
    """The row whose first cells are these; a unit may follow after a comma."""
    matching = [
        cells
        for cells in table.rows
        if all(text in (cell, str(cell).rpartition(", ")[0]) for cell, text in zip(cells, begins, strict=False))
    ]
    assert len(matching) == 1, (begins, matching)
    return matching[0]


def measured(cell: Cell) -> Measured:
    """A figure of this machine, with a value."""
    assert isinstance(cell, Measured)
    assert cell.value is not None, cell.reason
    return cell


def figure(cell: Cell) -> float:
    return measured(cell).value or 0.0


def reason(cell: Cell) -> str:
    assert isinstance(cell, Measured)
    assert cell.value is None
    assert cell.reason is not None
    return cell.reason


def about(value: float) -> object:
    return pytest.approx(value, rel=2e-3)
