"""What distance adds to the latency of a pair of ranks: on a torus by hops and turns, on a host by borders of CPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hockney.machine.topology import Topology
from hockney.report.classic.models import models_of, way_of
from hockney.results.runs import Run, Series
from hockney.stats.fit import DistanceFit, NoFit, fit_distance


def fit_of(members: Sequence[Series], run: Run) -> tuple[DistanceFit, str | None] | str:
    """The fit to the latencies of all pairs in the state of most of them, or why there is none."""
    figures = [(each, figure) for each in members if (figure := each.shown) is not None]
    states = Counter(figure.state for _, figure in figures)
    times_ns: dict[tuple[int, int], float] = {}
    hops: dict[tuple[int, int], int] = {}
    changes: dict[tuple[int, int], int] = {}
    for series, figure in figures:
        if states[figure.state] < max(states.values()):
            continue
        options = dict(series.point.options)
        pair = int(options.get("source", 0)), int(options.get("target", 1))
        model = models_of(run).get(series.point.transport)
        way = way_of(model, pair) if model is not None else None
        times_ns[pair] = figure.time.value
        if way is not None:
            hops[pair], changes[pair] = way
            continue
        borders = _borders(series, pair, run)
        if isinstance(borders, str):
            return borders
        hops[pair] = borders
    if not times_ns:
        return "no pair of ranks has a latency"
    fit = fit_distance(times_ns, hops, changes or None)
    if isinstance(fit, NoFit):
        return fit.reason
    is_exact = all(each.is_exact for each in members)
    return fit, None if is_exact else max(states, key=lambda state: states[state])


def _borders(series: Series, pair: tuple[int, int], run: Run) -> int | str:
    """The number of borders between the CPUs of two ranks, or why it is unknown."""
    if not series.launches:
        return "predicted pairs are all alike"
    if series.oversubscribed:
        return "more ranks than CPUs: scheduling times do not depend on distance"
    placed = {tuple(launch.cpus[rank] for rank in pair) for launch in series.launches}
    topology = run.facts.get("topology", {})
    if "cores" not in topology:
        return "the topology of this machine's CPUs is unknown"
    if len({host for launch in series.launches for host in launch.hosts}) > 1 or len(placed) != 1:
        return "the CPUs of a pair are unknown"
    ((source, target),) = placed
    return (
        "the CPUs of a pair are unknown"
        if min(source, target) < 0
        else Topology.from_json(topology).borders(source, target)
    )
