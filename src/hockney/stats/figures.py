"""The figures of a point from its measurements: one per machine state.

The unit of replication is the launch, because placement and addresses change between launches only (T. Kalibera,
R. Jones, Rigorous Benchmarking in Reasonable Time, ISMM 2013). With one launch it is the measurement, and the interval
holds within that launch. Samples within a measurement are not independent.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hockney.model import DIGITS, Definition, Measurement
from hockney.stats import interval
from hockney.stats.interval import CONFIDENCE, Interval
from hockney.stats.states import State, classify, place

if TYPE_CHECKING:
    from hockney.model import FloatArray

STREAM_EVENTS_MIN = 8  # in a sample of a stream: with fewer, its start and end dominate the time
P99_SAMPLES_MIN = 100

BETWEEN_LAUNCHES, ONE_LAUNCH = "launches", "within one launch"  # the kinds of variation that an interval covers
EXACT = "exact"  # of a model without noise: the interval is the value itself


@dataclass(frozen=True)
class Figure:
    """The times and rates of a point in one machine state, as exported. None: insufficient data.

    `value_ns` is the geometric mean of the launches' medians; with one launch the median of its measurements' medians.
    `low_ns` and `high_ns` are its confidence interval with the probability `coverage`. `between_launches` and
    `within_launches` are relative standard deviations, the former without the scatter of measurements;
    `launches_needed` would reach the precision of the run. Rates count the payload, and are None without one.
    `slowest_rank` took longest in `slowest_share` of the samples, if the definition takes the slowest rank. Samples,
    minimum and batch are None for imported figures.
    """

    state: str
    floor_ns: float | None
    value_ns: float
    low_ns: float | None
    high_ns: float | None
    coverage: float | None
    interval_over: str  # BETWEEN_LAUNCHES, ONE_LAUNCH or EXACT
    between_launches: float | None
    within_launches: float | None
    launches_needed: int | None
    n_measurements: int
    n_samples: int | None
    n_launches: int
    minimum_ns: float | None
    p99_ns: float | None
    p999_ns: float | None
    rate_bytes_per_s: float | None
    rate_low_bytes_per_s: float | None
    rate_high_bytes_per_s: float | None
    messages_per_s: float | None
    messages_low_per_s: float | None
    messages_high_per_s: float | None
    slowest_rank: int | None
    slowest_share: float | None
    verified: bool | None  # whether the payload was checked in any measurement of the point; None: no payload
    batch: int | None  # repetitions in a sample
    n_left_out: int  # measurements of other batches
    is_short: bool  # a stream with fewer than STREAM_EVENTS_MIN events in a sample
    definition: Definition

    @property
    def precision(self) -> float | None:
        """As Interval.precision."""
        return Interval(self.value_ns, self.low_ns, self.high_ns, self.n_measurements, self.coverage).precision


def figures_of(
    measurements: Sequence[Measurement],
    states: Sequence[State] | None = None,
    confidence: float = CONFIDENCE,
    precision: float | None = None,
    exact: bool = False,
) -> list[Figure]:
    """The figures of one point by state, in the order of `place`.

    `states` are those of the measurements, classified over the whole run; by default from these measurements alone.
    `precision` is that of the run; `exact`: its clock is a model's, without noise. A figure never mixes definitions or
    batches (`of_one_batch`).
    """
    of_measurements = classify([measurement.probe for measurement in measurements]) if states is None else states
    groups: dict[tuple[State, Definition], list[Measurement]] = {}
    for measurement, state in zip(measurements, of_measurements, strict=True):
        if measurement.elapsed_ns.size:
            groups.setdefault((state, measurement.definition), []).append(measurement)
    ordered = sorted(groups, key=lambda key: place(key[0].name, key[0].floor_ns))
    # A long payload is checked in its first measurement alone.
    has_payload = any(measurement.has_payload for measurement in measurements)
    verified = any(measurement.verified for measurement in measurements) or (False if has_payload else None)
    return [_figure(state, groups[state, of], verified, confidence, precision, exact=exact) for state, of in ordered]


def of_one_batch(points: Sequence[Hashable], batches: Sequence[int], conditions: Iterable[Hashable]) -> list[bool]:
    """Whether each measurement has the most frequent batch of its point and condition, the largest of several.

    `conditions` is read only where a point has several batches: a run has hundreds of thousands of measurements.
    """
    if len(set(zip(points, batches, strict=True))) == len(set(points)):
        return [True] * len(points)
    groups = list(zip(points, conditions, strict=True))
    main: dict[Hashable, tuple[int, int]] = {}
    for (group, batch), count in Counter(zip(groups, batches, strict=True)).items():
        main[group] = max(main.get(group, (0, 0)), (count, batch))
    return [main[group][1] == batch for group, batch in zip(groups, batches, strict=True)]


def _figure(
    state: State,
    measurements: list[Measurement],
    verified: bool | None,
    confidence: float,
    precision: float | None,
    *,
    exact: bool,
) -> Figure:
    import numpy as np

    definition, n_all = measurements[0].definition, len(measurements)
    counts = of_one_batch([0] * n_all, [measurement.batch for measurement in measurements], [0] * n_all)
    measurements = list(itertools.compress(measurements, counts))
    batch = measurements[0].batch
    times_ns = [measurement.times_ns() for measurement in measurements]
    medians_ns = [float(np.median(times)) for times in times_ns]
    launch_ids = [measurement.launch_id for measurement in measurements]
    digits_ns = [measurement.counters[DIGITS][0] for measurement in measurements if DIGITS in measurement.counters]
    time, over = time_of(medians_ns, launch_ids, confidence, exact=exact and not digits_ns)
    if digits_ns and time.low is not None and time.high is not None:
        time = replace(time, low=max(0.0, time.low - max(digits_ns)), high=time.high + max(digits_ns))
    between, within = scatter_of(medians_ns, launch_ids)
    samples_ns = np.concatenate(times_ns)
    slowest_rank, slowest_share = _slowest(measurements)
    figure = Figure(
        state=state.name,
        floor_ns=state.floor_ns,
        value_ns=time.value,
        low_ns=time.low,
        high_ns=time.high,
        coverage=time.coverage,
        interval_over=over,
        between_launches=between,
        within_launches=within,
        launches_needed=None if precision is None else needed_for(medians_ns, launch_ids, precision),
        n_measurements=len(measurements),
        n_samples=len(samples_ns),
        n_launches=len(set(launch_ids)),
        minimum_ns=float(samples_ns.min()),
        p99_ns=percentile(samples_ns, 0.99) if batch == 1 else None,
        p999_ns=percentile(samples_ns, 0.999) if batch == 1 else None,
        rate_bytes_per_s=rate_bytes_per_s(definition, time.value),
        rate_low_bytes_per_s=rate_bytes_per_s(definition, time.high),
        rate_high_bytes_per_s=rate_bytes_per_s(definition, time.low),
        messages_per_s=_per_s(definition.messages_per_rep, definition, time.value),
        messages_low_per_s=_per_s(definition.messages_per_rep, definition, time.high),
        messages_high_per_s=_per_s(definition.messages_per_rep, definition, time.low),
        slowest_rank=slowest_rank,
        slowest_share=slowest_share,
        verified=verified,
        batch=batch,
        n_left_out=n_all - len(measurements),
        is_short=measurements[0].point.is_stream
        and batch * definition.divisor < STREAM_EVENTS_MIN
        and not measurements[0].point.rate_hz,
        definition=definition,
    )
    if not digits_ns:
        return figure
    # An imported figure has no samples.
    unknown: dict[str, Any] = dict.fromkeys(("n_samples", "minimum_ns", "batch", "slowest_rank", "slowest_share"))
    return replace(figure, **unknown, verified=verified or None)


def percentile(samples_ns: FloatArray, share: float) -> float | None:
    """The 99th (0.99) or 99.9th of the samples; None where they are so few that it would be their maximum."""
    import numpy as np

    return float(np.quantile(samples_ns, share)) if len(samples_ns) >= round(1 / (1 - share)) else None


def rate_bytes_per_s(definition: Definition, time_ns: float | None) -> float | None:
    """Payload bytes of a repetition over its time; None if either is zero."""
    return _per_s(definition.bytes_per_rep, definition, time_ns)


def _per_s(count: int, definition: Definition, time_ns: float | None) -> float | None:
    if time_ns is None or time_ns <= 0 or count == 0:
        return None
    return count / (time_ns * definition.divisor) * 1e9


def time_of(
    medians_ns: Sequence[float], launch_ids: Sequence[int], confidence: float = CONFIDENCE, *, exact: bool = False
) -> tuple[Interval, str]:
    """The time of a point from its measurements' medians, and the kind of variation in its interval.

    `exact`: of a model without noise, so that the time is its own bounds.
    """
    if exact:
        value = time_of(medians_ns, launch_ids)[0].value
        return Interval(value, value, value, len(medians_ns), 1.0), EXACT
    launches = _by_launch(medians_ns, launch_ids)
    if len(launches) > 1:
        return interval.geometric_mean(list(map(statistics.median, launches)), confidence), BETWEEN_LAUNCHES
    return interval.median(medians_ns, confidence), ONE_LAUNCH


def scatter_of(medians_ns: Sequence[float], launch_ids: Sequence[int]) -> tuple[float | None, float | None]:
    """The relative standard deviations between launches and within a launch; None: insufficient data.

    Within: from median absolute deviations. Between: the variance of launch medians less the variance of a median of as
    many measurements, which is pi / 2 times that of a mean.
    """
    if min(medians_ns) <= 0:
        return None, None
    launches = [[math.log(ns) for ns in launch] for launch in _by_launch(medians_ns, launch_ids)]
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
    launches = _by_launch(medians_ns, launch_ids)
    if len(launches) < 2 or min(medians_ns) <= 0:
        return None
    middles = [math.log(statistics.median(launch)) for launch in launches]
    return interval.launches_needed(statistics.stdev(middles), precision)


def _by_launch(medians_ns: Sequence[float], launch_ids: Sequence[int]) -> list[list[float]]:
    """The medians of each launch; where six have three measurements or more, the others are left out."""
    launches: dict[int, list[float]] = {}
    for launch_id, median_ns in zip(launch_ids, medians_ns, strict=True):
        launches.setdefault(launch_id, []).append(median_ns)
    whole = [launch for launch in launches.values() if len(launch) >= 3]
    return whole if len(whole) >= 6 else list(launches.values())


def _slowest(measurements: list[Measurement]) -> tuple[int | None, float | None]:
    import numpy as np

    if measurements[0].definition.timed != "slowest":
        return None, None
    slowest = np.concatenate([measurement.elapsed_ns.argmax(axis=0) for measurement in measurements])
    times_slowest = np.bincount(slowest)
    rank = int(times_slowest.argmax())
    return rank, float(times_slowest[rank] / times_slowest.sum())
