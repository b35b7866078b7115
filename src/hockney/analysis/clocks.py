"""The clocks of hosts, from the pattern `clocks`: how far each is ahead of the first one's, and how fast they drift.

Each rank compares its clock with that of its parent in a binomial tree: the rank without its lowest bit. Differences
and their errors add up along the way to rank 0 (docs/metrics.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hockney.model import Point
from hockney.stats.interval import t_quantile

if TYPE_CHECKING:
    from hockney.results.runs import Run, Series

AHEAD, ERROR = "clock_ahead_ns", "clock_error_ns"
READINGS = "clocks"  # in the facts of a run: comparisons of all its hosts, before and after it


class Seen(NamedTuple):
    """How far a clock was ahead at a time, and the largest error of that."""

    time_s: float
    ahead_ns: float
    error_ns: float


@dataclass(frozen=True)
class HostClock:
    """A host's clock compared with that of rank 0's host, where it was compared best; `drift_ppm` with its interval.

    None: too few measurements for a drift.
    """

    host: str
    ahead_ns: float
    error_ns: float
    drift_ppm: float | None
    drift_low_ppm: float | None
    drift_high_ppm: float | None


@dataclass(frozen=True)
class JobClocks:
    """The clocks of all hosts of a job, as one point measured them."""

    point: Point
    hosts: tuple[HostClock, ...]


@dataclass(frozen=True)
class ClockAround:
    """A host's clock compared with the first one's before and after a run; None: not compared then.

    `drift_ppm` is between the two, wrong by `drift_error_ppm` at most.
    """

    host: str
    before: Seen
    after: Seen | None = None
    drift_ppm: float | None = None
    drift_error_ppm: float | None = None


def clocks_around(run: Run) -> list[ClockAround]:
    """The clocks of a run's hosts before and after it: by its first comparison and its last; empty without any."""
    readings = [{host: Seen(**seen) for host, seen in reading.items()} for reading in run.facts.get(READINGS) or ()]
    if not readings:
        return []
    clocks = []
    for host, before in readings[0].items():
        after = readings[-1].get(host)
        between_s = after.time_s - before.time_s if after else 0.0
        if after and between_s > 0:
            ppm = (after.ahead_ns - before.ahead_ns) / between_s / 1000
            error_ppm = (before.error_ns + after.error_ns) / between_s / 1000
            clocks.append(ClockAround(host, before, after, ppm, error_ppm))
        else:
            clocks.append(ClockAround(host, before))
    return clocks


def clocks_of(run: Run) -> tuple[JobClocks, ...] | None:
    """What each point of the pattern `clocks` shows; None of a run without it."""
    compared = (series for series in run.series if series.point.pattern == "clocks" and series.measurements)
    return tuple(JobClocks(series.point, tuple(_hosts(series))) for series in compared) or None


def _hosts(series: Series) -> Iterable[HostClock]:
    """The clock of each host, by the rank with the smallest error in each measurement."""
    seen: dict[str, list[Seen]] = {}
    for measurement in series.measurements:
        best: dict[str, Seen] = {}
        along = zip(*(added_up(measurement.counters[name]) for name in (AHEAD, ERROR)), strict=True)
        for (host, _), (ahead_ns, error_ns) in zip(measurement.places, along, strict=True):
            if host not in best or error_ns < best[host].error_ns:
                best[host] = Seen(measurement.started_unix_s, ahead_ns, error_ns)
        for host, clock in best.items():
            seen.setdefault(host, []).append(clock)
    for host, clocks in seen.items():
        closest = min(clocks, key=lambda clock: clock.error_ns)
        yield HostClock(host, closest.ahead_ns, closest.error_ns, *(drift_ppm(clocks) or (None, None, None)))


def added_up(steps: Sequence[float]) -> list[float]:
    """For each rank the sum of `steps` over the ranks on the way to it from rank 0, which is itself at 0."""
    sums = [0.0]
    for rank in range(1, len(steps)):
        sums.append(sums[rank & (rank - 1)] + steps[rank])
    return sums


def drift_ppm(clocks: Sequence[Seen]) -> tuple[float, float, float] | None:
    """The slope of a line through differences over time, with its 95 % interval.

    None with fewer than six differences, or if all are of one time.
    """
    count = len(clocks)
    middle_s = math.fsum(clock.time_s for clock in clocks) / count
    mean_ns = math.fsum(clock.ahead_ns for clock in clocks) / count
    spread = math.fsum((clock.time_s - middle_s) ** 2 for clock in clocks)
    if count < 6 or spread == 0:
        return None
    slope = math.fsum((clock.time_s - middle_s) * (clock.ahead_ns - mean_ns) for clock in clocks) / spread
    left = math.fsum((clock.ahead_ns - mean_ns - slope * (clock.time_s - middle_s)) ** 2 for clock in clocks)
    half = t_quantile(count - 2) * math.sqrt(left / (count - 2) / spread)
    return slope / 1000, (slope - half) / 1000, (slope + half) / 1000
