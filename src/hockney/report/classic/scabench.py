"""The NPB table of the ScaBench data sheet: a row per machine, a column per number of nodes."""

from __future__ import annotations

from hockney.archive import published
from hockney.report.classic.reading import NOT_PLANNED, QUANTITIES, Reading, blank
from hockney.report.classic.values import Cell, Field, Table, table_of
from hockney.results.runs import Series

_BENCHMARK = "NPB 2.3 FT class A"
_COMPARED = "Scali-1"  # one process per node, as one rank per CPU here
_SPEED = QUANTITIES["speed per rank"]

_Row = tuple[str, str, dict[int, Cell]]  # machine, class, and a cell for each number of nodes


def npb_table(reading: Reading) -> Table:
    """FT in Mop/s per node: the published machines, then this one by transport and class."""
    figures = [figure for figure in published("scabench") if figure.benchmark == _BENCHMARK]
    by_system: dict[str, dict[int, Cell]] = {}
    for figure in figures:
        by_system.setdefault(figure.system, {})[int(figure.at["nodes"])] = figure
    values = {int(figure.at["nodes"]): figure.value for figure in figures if figure.system == _COMPARED}
    measured: dict[tuple[str, str], dict[int, Series]] = {}
    for series in reading.series("ft"):
        key = series.point.transport, reading.options(series.point)["class"]
        measured.setdefault(key, {})[series.point.ranks] = series
    counts = sorted({*values, *(ranks for row in measured.values() for ranks in row)})
    rows: list[_Row] = [(system, "A", row) for system, row in by_system.items()]
    for (transport, size), row in measured.items() or [(("", "A"), {})]:
        told = values if size == "A" else {}
        cells: dict[int, Cell] = {
            count: reading.cell(row[count], _SPEED, told.get(count))
            if count in row
            else blank(_SPEED.unit, NOT_PLANNED, told.get(count) if row else None)
            for count in counts
        }
        rows.append((f"here: {transport}" if transport else "here", size, cells))
    notes = (
        "Columns are nodes: processes of the published machines (Scali-2: two per node), ranks here.",
        f"Operations are counted by NPB's formula. Ratios are to {_COMPARED}, for class A only.",
    )
    fields = [Field[_Row]("machine", lambda row: row[0]), Field[_Row]("class", lambda row: row[1])]
    fields += map(_column, counts)
    return table_of("npb-ft", "NAS Parallel Benchmark FT, Mop/s per node", fields, rows, notes)


def _column(count: int) -> Field[_Row]:
    return Field(str(count), lambda row: row[2].get(count, ""), "measured")
