"""The NPB table of the ScaBench data sheet: one line a machine, one column for each number of nodes."""

from __future__ import annotations

from hockney.archive import published
from hockney.report.classic.reading import NOT_PLANNED, QUANTITIES, Reading, blank
from hockney.report.classic.values import Cell, Column, Measured, Table
from hockney.results.runs import Series

_BENCHMARK = "NPB 2.3 FT class A"
_BESIDE = "Scali-1"  # one process a node, as one rank a CPU is here
_SPEED = QUANTITIES["speed per rank"]


def npb_table(reading: Reading) -> Table:
    """FT in Mop/s a node: the published machines, then this one, a line for each transport and class."""
    figures = [one for one in published("scabench") if one.benchmark == _BENCHMARK]
    own: dict[tuple[str, str], dict[int, Series]] = {}
    for series in reading.series("ft"):
        size = reading.options(series.point)["class"]
        own.setdefault((series.point.transport, size), {})[series.point.ranks] = series
    nodes = [int(one.at["nodes"]) for one in figures if one.system == _BESIDE]
    extra = sorted({ranks for found in own.values() for ranks in found} - set(nodes))
    counts = sorted([*nodes, *extra])
    rows: list[tuple[Cell, ...]] = []
    for system in dict.fromkeys(one.system for one in figures):
        there = {one.at["nodes"]: one for one in figures if one.system == system}
        rows.append((system, "A", *(there.get(count, "") for count in counts)))
    beside = {one.at["nodes"]: one.value for one in figures if one.system == _BESIDE}
    for (transport, size), found in own.items():
        cells = [_cell(found.get(count), beside.get(count) if size == "A" else None, reading) for count in counts]
        rows.append((f"here: {transport}", size, *cells))
    if not own:
        rows.append(("here", "A", *(blank(_SPEED.unit, NOT_PLANNED) for _ in counts)))
    columns = (Column("machine"), Column("class"), *(Column(str(count), "measured") for count in counts))
    notes = (
        "Columns are nodes: processes of the published machines (Scali-2: two a node), ranks here.",
        f"Operations are counted by NPB's own formula. Ratios are to {_BESIDE}, and for class A only.",
    )
    return Table("npb-ft", "NAS Parallel Benchmark FT, Mop/s per node", columns, tuple(rows), notes)


def _cell(series: Series | None, published_value: float | None, reading: Reading) -> Measured:
    if series is None:
        return blank(_SPEED.unit, NOT_PLANNED, published_value)
    return reading.cell(series, _SPEED, published_value)
