"""The measurements of a run of `hockney health` by pairs of hosts, and its hosts and links as series, to be compared.

`flows from=n3` is what n3 sends to all others, `flows to=n3` what it receives, `flows from=n3 to=n5` the link between
the two; `rounds` are latencies, the same both ways. Networks have no machine state.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from hockney.analysis.clusters import Pair
from hockney.analysis.pairs import partners
from hockney.model import FROM, TO, Measurement, Point, PointStatus
from hockney.results.runs import Run, Series
from hockney.results.store import MeasurementSummary, StoredPoint
from hockney.stats import UNKNOWN
from hockney.stats.shift import LAUNCHES_MIN
from hockney.worker.hosts import parse_hosts

SUITE = "health"
LATENCY, RATE = "rounds", "flows"  # the patterns of the suite
LINKS_MAX = 32
"""Hosts: of more, only they are compared, not their links."""
_Measured = tuple[MeasurementSummary, int]  # with the number of its unit
_Options = tuple[tuple[str, str], ...]


class EndSeries(Series):
    """A host, or the link of two. Its unit is a partner, of a link or of three hosts or fewer a measurement."""

    def __init__(self, run: Run, point: Point, of_round: Series, measured: Sequence[_Measured]) -> None:
        status = PointStatus.PRECISE if measured else of_round.status
        super().__init__(run, StoredPoint(-1, point, status, None if measured else of_round.reason))
        self.pairs = [(each, UNKNOWN) for each, _ in sorted(measured)]  # as they were made
        self.numbered = {}  # samples are of whole rounds
        self._units = {each.id: unit for each, unit in measured}

    def unit_of(self, measurement: MeasurementSummary) -> int:
        """The number of the value that is compared."""
        return self._units[measurement.id]


def series_of(run: Run, weak: Collection[str] = ()) -> Sequence[Series]:
    """The series by which a run is compared: its own, of a health run those of its hosts and links.

    Links only if all rounds were reached, and of LINKS_MAX hosts or fewer. Pairs with a `weak` host count only as its
    own, and as links.
    """
    if run.info.suite != SUITE:
        return run.series
    hosts = hosts_of(run)
    rounds = [series for series in run.series if series.point.pattern in (LATENCY, RATE)]
    tried = [series for series in rounds if series.counts or series.status is PointStatus.FAILED]
    are_all = len({pair for series in tried for pair in directed(series.point)}) == len(hosts) * (len(hosts) - 1)
    has_links, has_partners = are_all and len(hosts) <= LINKS_MAX, len({*hosts}.difference(weak)) > LAUNCHES_MIN
    found: dict[Point, tuple[Series, list[_Measured]]] = {}
    for series in rounds:
        known, size = {each.id: each for each, _ in series.pairs}, series.point.bytes
        of_pair: dict[Pair, list[MeasurementSummary]] = {pair: [] for pair in directed(series.point)}
        for pair, number, measurement, time_ns in pair_times(series):
            once = measurement.definition.divisor
            definition = replace(measurement.definition, bytes_per_rep=once * size, messages_per_rep=once)
            of_pair[pair].append(
                known[number]._replace(
                    median_ns=time_ns, min_ns=time_ns, max_ns=time_ns, definition=definition, counters={}
                )
            )
        for (a, b), measured in of_pair.items():
            back = TO if series.point.pattern == RATE else FROM
            units: dict[_Options, int | None] = {((FROM, hosts[a]),): b, ((back, hosts[b]),): a}
            if has_links:
                units[(FROM, hosts[a]), (TO, hosts[b])] = None
            for options, partner in units.items():
                point = Point(series.point.transport, series.point.pattern, 2, size, options)
                by_partner = partner if has_partners else None
                is_of_partner = partner is not None and hosts[partner] in weak and options[0][1] not in weak
                units_of = [(each, each.id if by_partner is None else by_partner) for each in measured]
                of_point = [] if is_of_partner else units_of
                found.setdefault(point, (series, []))[1].extend(of_point)
    return [EndSeries(run, point, of_round, of_point) for point, (of_round, of_point) in found.items()]


# ---- pairs of hosts --------------------------------------------------------------------------------------------------


def hosts_of(run: Run) -> tuple[str, ...]:
    """The names of the hosts, in the order of ranks."""
    return tuple(host.name for host in parse_hosts(",".join(run.info.plan["hosts"])))


def pair_times(series: Series) -> Iterator[tuple[Pair, int, Measurement, float]]:
    """Of a point of the suite each pair, measurement with its number, and ns of a message that arrived; else none."""
    pairs = directed(series.point) if series.point.pattern in (LATENCY, RATE) else []
    for (number, measurement), (a, b) in itertools.product(series.numbered.items() if pairs else (), pairs):
        share = _arrived_share(measurement, b) if series.point.pattern == RATE else 1.0
        yield (a, b), number, measurement, time_of_rank(measurement, a) / share


def directed(point: Point) -> list[Pair]:
    """The pairs of ranks that a point of the suite measures, the one whose samples count first."""
    options = dict(point.options)
    met = partners(point.ranks, int(options.get("round", "1")))
    return met if options.get("direction", "up") == "up" else [(b, a) for a, b in met]


def time_of_rank(measurement: Measurement, rank: int) -> float:
    """A message's time by the samples of one rank."""
    batch_ns = statistics.median(measurement.elapsed_ns[rank].tolist())
    return float(batch_ns) / (measurement.batch * measurement.definition.divisor)


def _arrived_share(measurement: Measurement, rank: int) -> float:
    """The share of the messages to a rank that arrived: UDP loses some. At least one counts as arrived."""
    messages: float = measurement.elapsed_ns.shape[1] * measurement.batch * measurement.definition.divisor
    lost = measurement.counters["lost"][rank] if "lost" in measurement.counters else 0.0
    return max(1.0, messages - lost) / messages
