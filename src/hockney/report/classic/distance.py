"""The T3D newsletter's model of latency: base + hops + changes of direction between CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hockney.machine.topology import Topology
from hockney.report.classic.layout import contents
from hockney.report.classic.reading import NOT_PLANNED, QUANTITIES, Reading, blank
from hockney.report.classic.values import Cell, Column, Measured, Table
from hockney.results.runs import Series
from hockney.stats.fit import DistanceFit, NoFit, fit_distance

PERIOD_NS = 1 / 0.150  # of the T3D's clock


def distance_table(groups: Mapping[tuple[str, ...], Sequence[Series]], reading: Reading) -> Table:
    """The parameters for each group of pairs, or one column with the reason if none has a fit."""
    found = {parts: _fit(group, reading) for parts, group in groups.items()}
    fits = {parts: fit for parts, fit in found.items() if isinstance(fit, tuple)}
    why = next((reason for reason in found.values() if isinstance(reason, str)), NOT_PLANNED)
    rows: list[tuple[Cell, ...]] = []
    for spec in contents("t3d")["distance"]:
        published_ns = spec["published_cp"] * PERIOD_NS
        cells = [_parameter(spec["parameter"], *fit, published_ns) for fit in fits.values()]
        rows.append((spec["title"], f"{published_ns:.3g}", *(cells or [blank("ns", why, published_ns)])))
    if fits:
        scatters = [Measured("ns", fit.rms_ns, state=state, computed=True) for fit, state in fits.values()]
        farthest = ["rank {} to rank {}".format(*fit.worst_pair) for fit, _ in fits.values()]
        rows += [("scatter about it (rms)", "", *scatters), ("farthest from it", "", *farthest)]
    columns = [Column("what"), Column("published", "published")]
    columns += [Column(", ".join(parts), "measured", parts) for parts in fits] or [Column("this machine", "measured")]
    title = "What distance adds: base + hops + changes of direction, ns"
    return Table("distance", title, tuple(columns), tuple(rows), tuple(contents("t3d")["notes"]["distance"]))


def _parameter(name: str, fit: DistanceFit, state: str | None, published_ns: float) -> Measured:
    value_ns: float | None = getattr(fit, f"{name}_ns")
    if value_ns is None:
        return blank("ns", "routes between CPUs have no directions", published_ns)
    arm_ns = fit.reach * getattr(fit, f"{name}_se_ns")
    return Measured("ns", value_ns, value_ns - arm_ns, value_ns + arm_ns, state, published=published_ns)


def _fit(group: Sequence[Series], reading: Reading) -> tuple[DistanceFit, str | None] | str:
    """The fit with its state, or why there is none."""
    measured = reading.together(group, QUANTITIES["time"])
    if not measured:
        return reading.reason(group[0]) if group else NOT_PLANNED
    times_ns: dict[tuple[int, int], float] = {}
    hops: dict[tuple[int, int], int] = {}
    for series, cell in measured:
        options = reading.options(series.point)
        pair = int(options["source"]), int(options["target"])
        borders = _borders(series, pair, reading)
        if isinstance(borders, str):
            return borders
        times_ns[pair], hops[pair] = 1e3 * (cell.value or 0.0), borders
    fit = fit_distance(times_ns, hops)
    return fit.reason if isinstance(fit, NoFit) else (fit, measured[0][1].state)


def _borders(series: Series, pair: tuple[int, int], reading: Reading) -> int | str:
    """The number of borders between the CPUs of two ranks, or why it is unknown."""
    if series.oversubscribed:
        return "more ranks than CPUs: scheduling times do not depend on distance"
    if reading.between_hosts(series):
        return "the ranks were on several hosts, whose network is unknown"
    placed = {tuple(launch.cpus[rank] for rank in pair) for launch in series.launches}
    try:
        topology = Topology.from_json(reading.run.facts.get("topology", {}))
    except KeyError:
        return "the topology of this machine's CPUs is unknown"
    if len(placed) != 1 or min(min(cpus) for cpus in placed) < 0 or not topology.cores:
        return "the CPUs of a pair are unknown"
    ((one, other),) = placed
    return topology.borders(one, other)
