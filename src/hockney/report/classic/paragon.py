"""Values that the Paragon report derives from its curves: ratios to the native library, and jumps of curves."""

from __future__ import annotations

from collections.abc import Sequence

from hockney.archive import published
from hockney.report.classic.layout import contents
from hockney.report.classic.reading import NOT_PLANNED, RunReader
from hockney.report.classic.values import Cell, ClassicColumn, Measured, Table, blank, plain_table
from hockney.results.runs import Series
from hockney.stats.fit import JUMP, NoFit, fit_segments
from hockney.units import format_bytes


def ratio_table(bandwidth: Table) -> Table:
    """The bandwidth of each transport over that of the native one: the fastest that is not PVM."""
    places = [place for place, column in enumerate(bandwidth.columns) if column.kind == "measured"]
    natives = [place for place in places if not _is_pvm(bandwidth.columns[place])]
    best = {place: bandwidth.rows[0][place] for place in natives}
    rates = {place: cell.value for place, cell in best.items() if isinstance(cell, Measured) and cell.value is not None}
    native = max(rates, key=lambda place: rates[place], default=None)
    others = [place for place in places if place != native]
    columns = (bandwidth.columns[1], *(bandwidth.columns[place] for place in others))
    title = "Ratio to the native library"
    if native is None:
        return Table("ratio", title, columns, (), ("Nothing native was measured.",))
    rows = tuple((row[1], *(_ratio(row[place], row[native]) for place in others)) for row in bandwidth.rows[1:])
    note = f"Bandwidth over that of {bandwidth.columns[native].title}, the fastest here that is not PVM."
    return Table("ratio", title, columns, rows, (note,))


def _is_pvm(column: ClassicColumn) -> bool:
    """Whether a column is one of PVM's ways to send; models of PVM have its name among their distinctions."""
    transport, *ways = column.parts
    return transport.startswith("pvm") or not {*contents("paragon")["names"].values()}.isdisjoint(ways)


def _ratio(cell: Cell, base: Cell) -> Measured:
    """The ratio of two figures of the same machine state."""
    assert isinstance(cell, Measured)
    assert isinstance(base, Measured)
    if cell.value is None or not base.value:
        return blank("", cell.reason or base.reason or NOT_PLANNED)
    if "mixed" in (cell.state, base.state) or cell.state != base.state:
        return blank("", "not measured in one machine state with the native library")
    over = cell.estimate / base.estimate if cell.estimate and base.estimate and base.estimate.low > 0 else None
    return Measured(
        "",
        cell.value / base.value,
        over.low if over else None,
        over.high if over else None,
        cell.state,
        cell.oversubscribed or base.oversubscribed,
        interval_over=cell.interval_over if over else None,
        exact=cell.exact and base.exact,
    )


def jumps_table(reader: RunReader) -> Table:
    """The jumps and outliers of each transport's ping-pong, next to those that the report states."""
    curves: dict[str, list[Series]] = {}
    for series in reader.series("pingpong"):
        if series.point.ranks == 2 and not series.point.options:
            curves.setdefault(series.point.transport, []).append(series)
    rows: list[tuple[Cell, ...]] = []
    for transport, curve in curves.items():
        measured = reader.together(sorted(curve, key=lambda series: series.point.bytes))
        known = [
            (series.point.bytes, cell.value, cell.precision)
            for series, cell in measured
            if cell.value is not None and cell.precision is not None
        ]
        rows += [(transport, *jump) for jump in jumps_of(known)]
    for metric, *texts in contents("paragon")["jumps"]:
        figure = next(each for each in published("paragon") if each.metric == metric)
        rows.append((texts[0], figure, *texts[1:]))
    page = reader.run.facts.get("memory", {}).get("page_bytes")
    notes = [*contents("paragon")["notes"]["jumps"], *([f"A page here: {format_bytes(page)}."] if page else [])]
    return plain_table("jumps", "Where curves jump", "method|size|what|how much", rows, *notes)


def jumps_of(curve: Sequence[tuple[int, float, float]]) -> list[tuple[str, str, str]]:
    """Size, kind and extent of each jump and outlier of a curve of sizes, times and their relative half-widths."""
    sizes, times, spreads = zip(*curve, strict=True) if curve else ((), (), ())
    fit = fit_segments(sizes, times, spreads)
    if isinstance(fit, NoFit):
        return [("", "", "fewer than three sizes have figures with an interval")]
    if fit.curved:
        return [("", "curved", f"{len(curve)} sizes lie on a smooth curve")]
    off = [(switch.above_bytes, "jump", switch.relative.value) for switch in fit.switches if switch.is_jump]
    off += [
        (fit.sizes_bytes[at], "outlier", fit.residuals[at]) for at in fit.outliers if abs(fit.residuals[at]) >= JUMP
    ]
    return [
        (format_bytes(size), kind, f"{abs(change):.0%} {'slower' if change > 0 else 'faster'} than the line before")
        for size, kind, change in sorted(off)
    ] or [("", "none", f"{len(curve)} sizes lie on straight lines")]
