"""Rows and cells of the report of a made-up run of a classic suite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.report.runs import Made, options, store_run, stored

from hockney.cli import execute
from hockney.model import Point
from hockney.report.classic import ClassicReport, make_report
from hockney.report.classic.values import BenchmarkRows, Here, PublishedRow
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
        assert report.details is not None  # samples are read while the file is open
    return report


def groups(path: Path, suite: str, made: Sequence[Made], **info: Any) -> dict[str, BenchmarkRows]:
    return {group.benchmark.title: group for group in report_of(path, suite, made, **info).groups}


def shown(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The output of `hockney show --tables` for the last run, or of `hockney show` with these words."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOCKNEY_STORE", str(path / "r.db"))  # with --store, printed commands may be longer than a line
        assert (
            execute(["show", *([] if "--page" in words else ["--tables"]), *(w for w in words if w != "--page")]) == 0
        )
    return capsys.readouterr().out


def row(group: BenchmarkRows, *begins: object, quantity: str = "") -> PublishedRow:
    """The row whose first names are these, of the quantity if a figure has several."""
    texts = tuple(map(str, begins))
    matching = [row for row in group.rows if row.names[: len(texts)] == texts and quantity in ("", row.quantity)]
    assert len(matching) == 1, (begins, [row.names for row in matching])
    return matching[0]


def cell(group: BenchmarkRows, *begins: object, column: str = "", quantity: str = "") -> Here:
    """The cell of a row in a column, or in the only one."""
    cells = row(group, *begins, quantity=quantity).cells
    return cells[column] if column else next(iter(cells.values()))


def number(group: BenchmarkRows, *begins: object, column: str = "", quantity: str = "") -> float:
    value = cell(group, *begins, column=column, quantity=quantity).value
    assert value.number is not None, value.reason
    return value.number


def about(value: float) -> object:
    return pytest.approx(value, rel=2e-3)
