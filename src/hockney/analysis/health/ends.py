"""The hosts and links of a health run as series, by which it is compared with another one.

`flows from=n3` is what n3 sends to all others, `flows to=n3` what it receives, `flows from=n3 to=n5` the link between
the two; `rounds` are latencies, the same both ways. Networks have no machine state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hockney.analysis.clusters import Pair
from hockney.analysis.health.matrices import LATENCY, RATE, SUITE, directed, hosts_of, pair_times
from hockney.model import FROM, TO, Measurement, Point, PointStatus
from hockney.results.runs import Run, Series
from hockney.results.store import MeasurementSummary, StoredPoint
from hockney.stats import UNKNOWN
from hockney.stats.shift import LAUNCHES_MIN

LINKS_MAX = 64
"""Hosts: of more, only they are compared, not their links."""
_Measured = tuple[MeasurementSummary, int]  # with the number of its unit


class EndSeries(Series):
    """A host, or the link of two. A unit is a partner of the host, or a measurement of the link."""

    def __init__(self, run: Run, point: Point, of_round: Series, measured: Sequence[_Measured]) -> None:
        status = PointStatus.PRECISE if measured else of_round.status
        super().__init__(run, StoredPoint(-1, point, status, None if measured else of_round.reason))
        self.pairs = [(each, UNKNOWN) for each, _ in measured]
        self.numbered: dict[int, Measurement] = {}  # samples are of whole rounds
        self._units = {each.id: unit for each, unit in measured}

    def unit_of(self, measurement: MeasurementSummary) -> int:
        """The number of the value that is compared."""
        return self._units[measurement.id]


def series_of(run: Run) -> Sequence[Series]:
    """The series by which a run is compared: its own, of a health run those of its hosts and links.

    Of three hosts only links, as each host meets too few; hosts alone if not all rounds were reached.
    """
    if run.info.suite != SUITE:
        return run.series
    hosts = hosts_of(run)
    rounds = [series for series in run.series if series.point.pattern in (LATENCY, RATE)]
    are_all = all(series.counts or series.status is PointStatus.FAILED for series in rounds)
    with_links, with_hosts = are_all and len(hosts) <= LINKS_MAX, len(hosts) > LAUNCHES_MIN
    found: dict[Point, tuple[Series, list[_Measured]]] = {}
    for series in rounds:
        known, size = {each.id: each for each, _ in series.pairs}, series.point.bytes
        of_pair: dict[Pair, list[MeasurementSummary]] = {pair: [] for pair in directed(series.point)}
        for pair, number, measurement, time_ns in pair_times(series):
            once = measurement.definition.divisor
            definition = replace(measurement.definition, bytes_per_rep=once * size, messages_per_rep=once)
            times = {"median_ns": time_ns, "min_ns": time_ns, "max_ns": time_ns}
            of_pair[pair].append(known[number]._replace(**times, definition=definition, counters={}))
        for (a, b), measured in of_pair.items():
            ends = {(FROM, a): b, (TO if series.point.pattern == RATE else FROM, b): a} if with_hosts else {}
            partners = {((name, hosts[host]),): partner for (name, host), partner in ends.items()}
            link = {((FROM, hosts[a]), (TO, hosts[b])): None} if with_links else {}
            for options, partner in {**partners, **link}.items():
                point = Point(series.point.transport, series.point.pattern, 2, size, options)
                units = [(each, each.id if partner is None else partner) for each in measured]
                found.setdefault(point, (series, []))[1].extend(units)
    return [EndSeries(run, point, of_round, of_point) for point, (of_round, of_point) in found.items()]
