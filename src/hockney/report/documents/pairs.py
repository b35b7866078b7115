"""The times between all pairs of ranks as a document and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any

from hockney.analysis.pairs import PairMatrix, pair_matrices
from hockney.report.document import Block, Text, Title
from hockney.report.documents.table_kind import TableKind
from hockney.report.notes import one_launch
from hockney.report.pairs import HOSTS_MAX, pair_block, rank_values
from hockney.results.runs import Run
from hockney.stats import Interval
from hockney.units import counted, format_ns


def pairs_as_json(matrices: Iterable[PairMatrix]) -> dict[str, Any]:
    """For --json: `time_ns[source][target]` with its interval, null on the diagonal and for pairs without one."""
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


def matrix_blocks(matrix: PairMatrix) -> Iterator[Block]:
    """It with its classes and outliers."""
    floor = "" if matrix.floor_ns is None else f", floor {format_ns(matrix.floor_ns)}"
    values = rank_values(matrix, str)
    title = f"Half a round trip: {values.name} ({matrix.state}{floor})"
    if matrix.ranks <= HOSTS_MAX:
        yield pair_block(values, title)
    else:
        yield Title(title)
        yield Text(f"The matrix of {matrix.ranks} ranks is in --json only.")
    if matrix.oversubscribed:
        yield Text("There were more ranks than CPUs: scheduling times, not the transport's own.")
    if matrix.missing:
        yield Text(f"{counted(matrix.missing, 'pair')} not measured in this state.")
    for text in values.classes:
        yield Text(text)
    for text in values.outliers:
        yield Text(f"! {text}", tone="caution")
    if matrix.inconclusive:
        count = counted(len(matrix.inconclusive), "pair")
        yield Text(f"? {count} inconclusive (--json has all): {values.inconclusive[0]}")


def _pairs(matrices: Iterable[PairMatrix], run: Run) -> Iterator[Block]:
    for matrix in matrices:
        yield from matrix_blocks(matrix)
    yield from one_launch(series.shown.interval_over for series in run.series if series.shown)


KIND = TableKind(pair_matrices, lambda matrices, run, *_: _pairs(matrices, run), pairs_as_json)
