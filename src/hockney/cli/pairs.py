"""The times between all pairs of ranks on the screen and in JSON: matrix, classes of pairs, slow pairs and ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from hockney.analysis.explain.pairs import PairMatrix
from hockney.cli import render
from hockney.cli.render import Column
from hockney.report.findings import class_text, inconclusive_text, outlier_text
from hockney.stats import Interval
from hockney.units import counted, format_bytes, format_ns

_RANKS_MAX = 16  # of a matrix that is printed


def print_pairs(matrices: Iterable[PairMatrix]) -> None:
    """Print each matrix with its classes and outliers, idle before loaded."""
    for matrix in sorted(matrices, key=lambda m: (m.transport, m.ranks, m.options, m.bytes, m.load)):
        _print_matrix(matrix)


def pairs_as_json(matrices: Iterable[PairMatrix]) -> dict[str, Any]:
    """For --json: `time_ns[source][target]` with its interval, null on the diagonal and where nothing was measured."""
    documents = []
    for matrix in matrices:
        document = asdict(matrix)
        del document["times"]
        document["time_ns"] = _square(matrix, lambda time: time.value)
        document["low_ns"] = _square(matrix, lambda time: time.low)
        document["high_ns"] = _square(matrix, lambda time: time.high)
        for outlier, of_matrix in zip(document["outliers"], matrix.outliers, strict=True):
            outlier["factor"] = of_matrix.factor
        documents.append(document)
    return {"matrices": documents}


def _square(matrix: PairMatrix, of: Callable[[Interval], float | None]) -> list[list[float | None]]:
    cells = [[matrix.time(a, b) for b in range(matrix.ranks)] for a in range(matrix.ranks)]
    return [[None if time is None else of(time) for time in row] for row in cells]


def _print_matrix(matrix: PairMatrix) -> None:
    load = "one pair at a time" if matrix.load == "idle" else "disjoint pairs at once"
    floor = "" if matrix.floor_ns is None else f", floor {format_ns(matrix.floor_ns)}"
    options = "".join(f", {name}={value}" for name, value in matrix.options)
    render.title(
        f"Half a round trip of {format_bytes(matrix.bytes)} on {matrix.transport}, {matrix.ranks} ranks{options}, "
        f"{load} ({matrix.state}{floor})"
    )
    if matrix.oversubscribed:
        render.note("There were more ranks than CPUs: scheduling times, not the transport's own.")
    if matrix.ranks <= _RANKS_MAX:
        _print_cells(matrix)
    else:
        render.note(f"The matrix of {matrix.ranks} ranks is in --json only.")
    if matrix.missing:
        render.note(f"{counted(matrix.missing, 'pair')} not measured in this state.")
    for pair_class in matrix.classes:
        render.note(class_text(pair_class))
    for outlier in matrix.outliers:
        render.note(f"! {outlier_text(outlier, matrix.hosts)}", style="yellow")
    if matrix.inconclusive:
        count = counted(len(matrix.inconclusive), "pair")
        render.note(
            f"? {count} inconclusive (--json has all): {inconclusive_text(matrix.inconclusive[0], matrix.hosts)}"
        )


def _print_cells(matrix: PairMatrix) -> None:
    columns = [Column("from", key=True), *(Column(f"to {b}", right=True) for b in range(matrix.ranks))]
    rows = [
        [str(a), *("" if time is None else format_ns(time) for time in row)]
        for a, row in enumerate(_square(matrix, lambda time: time.value))
    ]
    render.table(columns, rows)
