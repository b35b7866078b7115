"""The time of a point from its measurements, and what its interval covers.

The unit of replication is the launch, because placement and addresses change between launches only (T. Kalibera,
R. Jones, Rigorous Benchmarking in Reasonable Time, ISMM 2013). With one launch it is the measurement, and the interval
holds within that launch. Samples within a measurement are not independent.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hockney.model import Definition
from hockney.stats import interval
from hockney.stats.interval import Estimate, Interval

if TYPE_CHECKING:
    from hockney.model import FloatArray

INTERVAL_MEASUREMENTS = 6  # of a point in a state: fewer give no 95 % interval of a median
STREAM_EVENTS_MIN = 8  # in a sample of a stream: with fewer, its start and end dominate the time

BETWEEN_LAUNCHES, ONE_LAUNCH = "launches", "within one launch"  # the kinds of variation that an interval covers
EXACT = "exact"  # of a model without noise: the interval is the value itself
RANGE = "range"  # not an interval: the extremes seen, where there are too few measurements for one
ROUNDING = "rounding"  # neither: that of the digits of a single imported figure
_WIDEST = 10.0  # an interval over launches that spans a larger factor says less than the times seen


def main_batch(batches: Iterable[int]) -> int:
    """The most frequent, the largest of several: a stream's time depends on its batch, which has its start and end."""
    return max(Counter(batches).items(), key=lambda counted: counted[::-1])[0]


def samples_for(share: float) -> int:
    """How many samples a percentile, as 0.99, needs: with fewer it would be their maximum."""
    return round(1 / (1 - share))


def percentile(samples_ns: FloatArray, share: float) -> float | None:
    """The 99th (0.99) or 99.9th of the samples; None where they are too few."""
    import numpy as np

    return float(np.quantile(samples_ns, share)) if len(samples_ns) >= samples_for(share) else None


def arrived_share(definition: Definition, repetitions: int, counters: Iterable[Mapping[str, Sequence[float]]]) -> float:
    """The share of the messages that arrived: UDP loses some. Lost messages of barriers count, too."""
    messages = definition.messages_per_rep * repetitions
    lost = sum(sum(counted.get("lost", ())) for counted in counters)
    return max(0.0, 1 - lost / messages) if messages else 1.0


def rate_per_s(count: float, time_ns: Estimate) -> Estimate | None:
    """This many bytes or messages in a time, per second; None if either is zero."""
    if time_ns.value <= 0 or count == 0:
        return None
    high = count / time_ns.low * 1e9 if time_ns.low > 0 else math.inf
    return Estimate(count / time_ns.value * 1e9, count / time_ns.high * 1e9, high)


def time_of(medians_ns: Sequence[float], launch_ids: Sequence[int], *, exact: bool = False) -> tuple[Interval, str]:
    """The time of a point from its measurements' medians, and the kind of variation in its interval.

    Both are in the order of measurement. `exact`: of a model without noise, so that the time is its own bounds. No
    interval where it would span more than a factor of ten, as that over two launches far apart.
    """
    if exact:
        value = time_of(medians_ns, launch_ids)[0].value
        return Interval(value, value, value, len(medians_ns), 1.0), EXACT
    launches = by_launch(medians_ns, launch_ids)
    if len(launches) > 1:
        time = interval.geometric_mean(list(map(statistics.median, launches)))
        if time.low is not None and time.high is not None and time.high > _WIDEST * time.low:
            time = replace(time, low=None, high=None, coverage=None)
        return time, BETWEEN_LAUNCHES
    return interval.median_in_order(medians_ns), ONE_LAUNCH


def estimate_of(
    values: Sequence[float], launch_ids: Sequence[int], *, exact: bool = False, extremes: Sequence[float] = ()
) -> tuple[Estimate, str, float | None]:
    """A value with its bounds, what these cover (of BETWEEN_LAUNCHES, ONE_LAUNCH, EXACT, RANGE), and their coverage.

    Too few values for an interval: the bounds are the smallest and the largest; of a single one its `extremes`.
    """
    time, over = time_of(values, launch_ids, exact=exact)
    if time.estimate is not None:
        return time.estimate, over, time.coverage
    seen = values if len(values) > 1 else (*values, *extremes)
    return Estimate(time.value, min(seen), max(seen)), RANGE, None


def scatter_of(medians_ns: Sequence[float], launch_ids: Sequence[int]) -> tuple[float | None, float | None]:
    """The relative standard deviations between launches and within a launch; None: insufficient data.

    Within: from median absolute deviations. Between: the variance of launch medians less the variance of a median of as
    many measurements, which is pi / 2 times that of a mean.
    """
    if min(medians_ns) <= 0:
        return None, None
    launches = [[math.log(ns) for ns in launch] for launch in by_launch(medians_ns, launch_ids)]
    middles = list(map(statistics.median, launches))
    within = between = None
    if len(medians_ns) > len(launches):
        deviations = [abs(log - middle) for launch, middle in zip(launches, middles, strict=True) for log in launch]
        freedom = len(deviations) - len(launches)
        within = 1.4826 * statistics.median(deviations) * math.sqrt(len(deviations) / freedom)
    if len(launches) > 1:
        shares = statistics.fmean((math.pi / 2 if len(launch) > 2 else 1) / len(launch) for launch in launches)
        between = math.sqrt(max(0.0, statistics.variance(middles) - (within or 0.0) ** 2 * shares))
    return between, within


def needed_for(medians_ns: Sequence[float], launch_ids: Sequence[int], precision: float) -> int | None:
    """How many launches reach a precision; None with fewer than two launches, or a time of zero."""
    launches = by_launch(medians_ns, launch_ids)
    if len(launches) < 2 or min(medians_ns) <= 0:
        return None
    middles = [math.log(statistics.median(launch)) for launch in launches]
    return interval.launches_needed(statistics.stdev(middles), precision)


def by_launch(medians_ns: Sequence[float], launch_ids: Sequence[int]) -> list[list[float]]:
    """The medians of each launch; where six have three measurements or more, the others are left out."""
    launches: dict[int, list[float]] = {}
    for launch_id, median_ns in zip(launch_ids, medians_ns, strict=True):
        launches.setdefault(launch_id, []).append(median_ns)
    whole = [launch for launch in launches.values() if len(launch) >= 3]
    return whole if len(whole) >= 6 else list(launches.values())
