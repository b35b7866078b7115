"""The T3D newsletter's model of latency: base + hops + changes of direction between CPUs."""

from __future__ import annotations

from collections.abc import Sequence

from hockney.machine.topology import Topology
from hockney.report.classic.layout import contents, label_of, layouts, title_of
from hockney.report.classic.models import models_of, way_of
from hockney.report.classic.pairs import WORD_BYTES
from hockney.report.classic.reading import NOT_PLANNED, RunReader
from hockney.report.classic.values import Cell, ClassicColumn, Measured, Table, blank
from hockney.results.runs import Series
from hockney.stats.fit import DistanceFit, Estimate, NoFit, fit_distance


def distance_table(reader: RunReader) -> Table:
    """The parameters for each way to ping-pong a word, or one column with the reason if none has a fit."""
    layout = next(each for each in layouts("t3d") if each.name == "ping_pong")
    groups: dict[tuple[str, ...], list[Series]] = {}
    for series in reader.series(*layout.patterns):
        if series.point.bytes == WORD_BYTES:
            groups.setdefault(label_of(layout, "t3d", series), []).append(series)
    results = {label: _fit(group, reader) for label, group in groups.items()}
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
    return Table("distance", title, tuple(columns), tuple(rows), tuple(contents("t3d")["notes"]["distance"]))


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
