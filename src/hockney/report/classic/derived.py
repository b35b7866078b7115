"""Tables that reports derive: the Paragon's ratios to the native library and jumps of curves, the T3D's distances."""

from __future__ import annotations

from collections.abc import Sequence

from hockney.archive import published
from hockney.machine.topology import Topology
from hockney.report.classic.layout import by_label, contents, layouts, title_of
from hockney.report.classic.models import models_of, way_of
from hockney.report.classic.reading import NOT_PLANNED, WORD_BYTES, RunReader
from hockney.report.classic.values import Cell, ClassicColumn, ClassicTable, Measured, blank, plain_table
from hockney.results.runs import Series
from hockney.stats.fit import JUMP, DistanceFit, Estimate, NoFit, fit_distance, fit_segments
from hockney.units import format_bytes

# ---- Paragon -----------------------------------------------------------------------------------------------------


def ratio_table(bandwidth: ClassicTable) -> ClassicTable:
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
        return ClassicTable("ratio", title, columns, (), ("Nothing native was measured.",))
    rows = tuple((row[1], *(_ratio(row[place], row[native]) for place in others)) for row in bandwidth.rows[1:])
    note = f"Bandwidth over that of {bandwidth.columns[native].title}, the fastest here that is not PVM."
    return ClassicTable("ratio", title, columns, rows, (note,))


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


def jumps_table(reader: RunReader) -> ClassicTable:
    """The jumps and outliers of each transport's ping-pong, next to those that the report states."""
    curves: dict[str, list[Series]] = {}
    for series in reader.series("pingpong"):
        if series.point.ranks == 2 and not series.point.options:
            curves.setdefault(series.point.transport, []).append(series)
    rows: list[tuple[Cell, ...]] = []
    for transport, curve in curves.items():
        measured = reader.together(sorted(curve, key=lambda series: series.point.bytes))
        known = [
            (series.point.bytes, cell.value, cell.interval.relative)
            for series, cell in measured
            if cell.value and cell.interval is not None
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


# ---- T3D: base + hops + changes of direction between CPUs --------------------------------------------------------


def distance_table(reader: RunReader) -> ClassicTable:
    """The parameters for each way to ping-pong a word, or one column with the reason if none has a fit."""
    layout = next(each for each in layouts("t3d") if each.name == "ping_pong")
    series = [each for each in reader.series(*layout.patterns) if each.point.bytes == WORD_BYTES]
    results = {label: _fit(group, reader) for label, group in by_label(layout, series).items()}
    fits = {label: fit for label, fit in results.items() if isinstance(fit, tuple)}
    why = next((reason for reason in results.values() if isinstance(reason, str)), NOT_PLANNED)
    rows: list[tuple[Cell, ...]] = []
    for title, name, published_ns in contents("t3d")["distance"]:
        cells = [_parameter(name, *fit, published_ns) for fit in fits.values()]
        rows.append((title, f"{published_ns:.3g}", *(cells or [blank("ns", why, published_ns)])))
    scatters = [Measured("ns", fit.rms_ns, state=state, computed=True) for fit, state in fits.values()]
    rows += [("scatter about it (rms)", "", *scatters)] if fits else []
    columns = [ClassicColumn("what"), ClassicColumn("published", "published")]
    columns += [ClassicColumn(title_of(label), "measured", label) for label in fits or [("this machine",)]]
    title = "What distance adds: base + hops + changes of direction, ns"
    return ClassicTable("distance", title, tuple(columns), tuple(rows), tuple(contents("t3d")["notes"]["distance"]))


def _parameter(name: str, fit: DistanceFit, state: str | None, published_ns: float) -> Measured:
    value: Estimate | None = getattr(fit, f"{name}_ns")
    if value is None:
        return blank("ns", "routes between CPUs have no directions", published_ns)
    return Measured("ns", value.value, value.low, value.high, state, published=published_ns)


def _fit(group: Sequence[Series], reader: RunReader) -> tuple[DistanceFit, str | None] | str:
    """The fit with its state, or why there is none."""
    measured = reader.together(group)
    if not measured:
        return reader.reason(group[0])
    times_ns: dict[tuple[int, int], float] = {}
    hops: dict[tuple[int, int], int] = {}
    changes: dict[tuple[int, int], int] = {}
    for series, cell in measured:
        options = reader.options(series.point)
        pair = int(options["source"]), int(options["target"])
        model = models_of(reader.run).get(series.point.transport)
        way = way_of(model, pair) if model is not None else None
        if way is not None:
            times_ns[pair], (hops[pair], changes[pair]) = 1e3 * (cell.value or 0.0), way
            continue
        borders = _borders(series, pair, reader)
        if isinstance(borders, str):
            return borders
        times_ns[pair], hops[pair] = 1e3 * (cell.value or 0.0), borders
    fit = fit_distance(times_ns, hops, changes or None)
    return fit.reason if isinstance(fit, NoFit) else (fit, measured[0][1].state)


def _borders(series: Series, pair: tuple[int, int], reader: RunReader) -> int | str:
    """The number of borders between the CPUs of two ranks, or why it is unknown."""
    if series.oversubscribed:
        return "more ranks than CPUs: scheduling times do not depend on distance"
    placed = {tuple(launch.cpus[rank] for rank in pair) for launch in series.launches}
    topology = reader.run.facts.get("topology", {})
    if "cores" not in topology:
        return "the topology of this machine's CPUs is unknown"
    if reader.between_hosts(series) or len(placed) != 1 or min(min(cpus) for cpus in placed) < 0:
        return "the CPUs of a pair are unknown"
    ((source, target),) = placed
    return Topology.from_json(topology).borders(source, target)
