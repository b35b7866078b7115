"""How the times between all pairs of ranks look: a matrix, the classes of pairs, and who stands out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from hockney.analysis.explain.pairs import PairClass, PairMatrix
from hockney.cli import render
from hockney.cli.render import Column
from hockney.report.findings_pairs import inconclusive_text, outlier_text
from hockney.stats import Interval
from hockney.units import counted, format_bytes, format_ns

_SHOWN_MAX = 16  # ranks; a larger matrix is nothing to read, and stands in --json
_OWN_FORM = ("times", "classes", "outliers", "inconclusive")  # of a matrix, in JSON
_INCONCLUSIVE_SHOWN = 5  # pairs
_UNITS = ((1e3, "ns", 1.0), (1e6, "us", 1e3), (float("inf"), "ms", 1e6))


def print_pairs(matrices: Iterable[PairMatrix]) -> None:
    """Each matrix with what it says. Idle ones come before loaded ones of the same."""
    for matrix in sorted(matrices, key=lambda one: (one.transport, one.ranks, one.options, one.bytes, one.load)):
        _print_matrix(matrix)


def pairs_as_json(matrices: Iterable[PairMatrix]) -> dict[str, Any]:
    """For --json: `time_ns[source][target]` with its interval, null on the diagonal and where there is none."""
    found = [
        {
            **{name: value for name, value in asdict(matrix).items() if name not in _OWN_FORM},
            "time_ns": _square(matrix, lambda time: time.value),
            "low_ns": _square(matrix, lambda time: time.low),
            "high_ns": _square(matrix, lambda time: time.high),
            "classes": [asdict(one) for one in matrix.classes],
            "outliers": [{**asdict(one), "factor": one.factor} for one in matrix.outliers],
            "inconclusive": [asdict(one) for one in matrix.inconclusive],
        }
        for matrix in matrices
    ]
    return {"matrices": found}


def _square(matrix: PairMatrix, of: Callable[[Interval], float | None]) -> list[list[float | None]]:
    cells = [[matrix.time(a, b) for b in range(matrix.ranks)] for a in range(matrix.ranks)]
    return [[None if time is None else of(time) for time in row] for row in cells]


def _print_matrix(matrix: PairMatrix) -> None:
    company = "one pair at a time" if matrix.load == "idle" else "disjoint pairs at once"
    floor = "" if matrix.floor_ns is None else f", floor {format_ns(matrix.floor_ns)}"
    options = "".join(f", {name}={value}" for name, value in matrix.options)
    render.title(
        f"Half a round trip of {format_bytes(matrix.bytes)} on {matrix.transport}, {matrix.ranks} ranks{options}, "
        f"{company} ({matrix.state}{floor})"
    )
    if matrix.oversubscribed:
        render.note("There were more ranks than CPUs: scheduling times, not the transport's own.")
    if matrix.ranks <= _SHOWN_MAX:
        _print_cells(matrix)
    else:
        render.note(f"A matrix of {matrix.ranks} ranks is nothing to read: it stands in --json.")
    if matrix.missing:
        render.note(f"{counted(matrix.missing, 'pair')} without a figure in this state.")
    for one in matrix.classes:
        render.note(_class_sentence(one))
    for outlier in matrix.outliers:
        render.note(f"! {outlier_text(outlier, matrix.hosts)}", style="yellow")
    for pair in matrix.inconclusive[:_INCONCLUSIVE_SHOWN]:
        render.note(f"? {inconclusive_text(pair, matrix.hosts)}")
    if len(matrix.inconclusive) > _INCONCLUSIVE_SHOWN:
        render.note(
            f"? and {counted(len(matrix.inconclusive) - _INCONCLUSIVE_SHOWN, 'pair')} more; --json has them all"
        )


def _print_cells(matrix: PairMatrix) -> None:
    largest = max(time.value for time in matrix.times.values())
    unit, scale = next((unit, scale) for limit, unit, scale in _UNITS if largest < limit)
    columns = [Column(f"{unit}, from", key=True), *(Column(f"to {b}", right=True) for b in range(matrix.ranks))]
    rows = [
        [str(a), *("" if time is None else f"{time / scale:.3g}" for time in row)]
        for a, row in enumerate(_square(matrix, lambda time: time.value))
    ]
    render.table(columns, rows)


def _class_sentence(one: PairClass) -> str:
    count = counted(len(one.pairs), "pair")
    spread = "" if len(one.pairs) == 1 else f", from {format_ns(one.fastest_ns)} to {format_ns(one.slowest_ns)}"
    return f"{one.name}: {format_ns(one.median_ns)} ({count}{spread})"
