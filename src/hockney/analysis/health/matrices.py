"""The measurements of a run of `hockney health`: rates, latencies and lost segments, by pairs of hosts."""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hockney.analysis.clusters import Pair
from hockney.analysis.host_series import LATENCY, hosts_of, pair_times
from hockney.model import Measurement
from hockney.results.runs import Run
from hockney.stats import interval
from hockney.stats.interval import Interval

UNUSABLE = "unusable_hosts"  # in the stored plan: the cause by host
LOST = "lost_hosts"  # in the stored facts: a list of causes by host
DEMAND = "host_demand"  # in the plan: what it takes to reach a host
REMEDIES = "host_remedies"  # there too: by host, of those that answer, but cannot be used
_BREAK = 0.03  # of the segments of a measurement


@dataclass(frozen=True)
class Sent:
    """Segments that a host's kernel counted as it sent to another host.

    `times`: measurements in which any was lost; `breaks`: in which so many were that the link was down for a moment.
    """

    segments: float = 0
    lost: float = 0
    times: int = 0
    measurements: int = 0
    breaks: int = 0

    @property
    def lost_share(self) -> float:
        """Of all segments; 0 where nothing was counted."""
        return self.lost / self.segments if self.segments else 0.0

    @property
    def is_interrupted(self) -> bool:
        """Whether all is lost now and then, and nothing most of the time."""
        return self.breaks > 0 and 2 * self.times <= self.measurements

    def __add__(self, other: Sent) -> Sent:
        return Sent(*map(operator.add, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class Matrices:
    """By pairs of indices in `hosts`, from the first to the second.

    `bytes_per_s` and `sent` are those of flows, with all pairs of a round at once; latencies, and those of the fastest
    messages, are half a round trip of a short message, the same both ways. `most_bytes_per_s`: the highest rates.
    """

    hosts: tuple[str, ...]
    bytes_per_s: Mapping[Pair, Interval]
    most_bytes_per_s: Mapping[Pair, float]
    latency_ns: Mapping[Pair, Interval]
    fastest_ns: Mapping[Pair, float]
    sent: Mapping[Pair, Sent]

    @property
    def usual_bytes_per_s(self) -> float | None:
        """The usual rate."""
        return usual({pair: rate.value for pair, rate in self.bytes_per_s.items()})

    @property
    def usual_ns(self) -> float | None:
        """The usual latency."""
        return usual({pair: time.value for pair, time in self.latency_ns.items()}, statistics.median_low)

    @property
    def usual_fastest_ns(self) -> float | None:
        """The usual time of the fastest message."""
        return usual(self.fastest_ns, statistics.median_low)

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return len(self.hosts) * (len(self.hosts) - 1) // 2

    @property
    def measured(self) -> int:
        """How many pairs have a rate."""
        return len({frozenset(pair) for pair in self.bytes_per_s})


def usual(
    values: Mapping[Pair, float], median: Callable[[Iterable[float]], float] = statistics.median_high
) -> float | None:
    """The usual value: the median over hosts of each one's as the first of pairs; None without values.

    With four hosts, a slow one is in half of the pairs, but the first in only a quarter. Of two middle rates the higher
    one is usual, and of times the lower one, by `median`.
    """
    rows: dict[int, list[float]] = {}
    for (host, _), value in values.items():
        rows.setdefault(host, []).append(value)
    return median(map(median, rows.values())) if rows else None


def matrices_of(run: Run) -> Matrices:
    """The median of all measurements of each pair, in any machine state: networks have no floor."""
    hosts = hosts_of(run)
    rates: dict[Pair, list[float]] = {}
    latencies: dict[Pair, list[float]] = {}
    fastest_ns: dict[Pair, float] = {}
    sent: dict[Pair, Sent] = {}
    for series in run.series:
        for (a, b), _, measurement, time_ns in pair_times(series):
            if series.point.pattern == LATENCY:
                latencies.setdefault((a, b), []).append(time_ns)
                least_ns = float(measurement.elapsed_ns[a].min()) / (measurement.batch * measurement.definition.divisor)
                fastest_ns[a, b] = fastest_ns[b, a] = min(least_ns, fastest_ns.get((a, b), math.inf))
            else:
                rates.setdefault((a, b), []).append(1e9 * series.point.bytes / time_ns)
                sent[a, b] = sent.get((a, b), Sent()) + _sent(measurement, a)
    latency_ns = {pair: interval.median(times) for pair, times in latencies.items()}
    return Matrices(
        hosts=hosts,
        bytes_per_s={pair: interval.median(values) for pair, values in rates.items()},
        most_bytes_per_s={pair: max(values) for pair, values in rates.items()},
        latency_ns=latency_ns | {(b, a): time for (a, b), time in latency_ns.items()},
        fastest_ns=fastest_ns,
        sent=sent,
    )


def _sent(measurement: Measurement, rank: int) -> Sent:
    """The counters of segments; only TCP has them. A counter of 32 bits may have wrapped around."""
    segments, again, needless = (
        max(0.0, measurement.counters[name][rank]) if name in measurement.counters else 0.0
        for name in ("segments", "retransmits", "needless_retransmits")
    )
    lost = max(0.0, again - needless)
    return Sent(segments, lost, int(lost > 0), 1, int(lost > _BREAK * segments))
