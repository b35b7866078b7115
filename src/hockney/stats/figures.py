"""From the measurements of one point to the figures that are shown: one per state of the machine.

The replicate is one launch (the median of its measurements), because placement and addresses change between launches
only. With one launch the interval holds within that launch: its replicate is then the median of one measurement.
Samples within a measurement are neighbours in time and share whatever disturbed it, so they are no replicates.
`interval_over` says which it was. See T. Kalibera, R. Jones, Rigorous Benchmarking in Reasonable Time, ISMM 2013.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from hockney.model import Definition, Measurement
from hockney.stats import interval
from hockney.stats.interval import CONFIDENCE, Interval
from hockney.stats.states import MachineProbe, State, classify, place

_LAUNCH_MEASUREMENTS = 3  # of a launch in a state: a median of fewer is one outlier,
_LAUNCHES_WHOLE = 6  # and is left out where so many launches have more
STREAM_EVENTS_MIN = 8  # in a sample of a stream: fewer, and its start and its end are what is timed
P99_SAMPLES_MIN = 100  # fewer, and the 99th percentile is just the maximum

LAUNCHES, ONE_LAUNCH = "launches", "within one launch"  # what an interval is over


@dataclass(frozen=True)
class Figure:
    """What one point took in one state. Times are ns by `definition`, rates payload bytes/s over all its messages.

    `value_ns` is the geometric mean of the launches' medians, of one launch the median of its measurements' medians.
    `low_ns` and `high_ns` enclose the true value with the probability `coverage`; all three are None where there are
    too few measurements to say. `between_launches` and `within_launches` are relative standard deviations: of
    launches, without what their measurements' scatter adds, and of the measurements of one launch. `launches_needed`
    would reach the precision that the run was asked for, by both. They are None where there are too few launches or
    measurements. `p99_ns` is None where a sample is not one repetition, or below 100 samples. Rates are None where the
    pattern counts no bytes, messages/s where it counts no messages. `slowest_rank` is the rank that took longest in
    most samples and `slowest_share` in what part of them, where the definition takes the slowest (1 / ranks and little
    more: nobody stands out).
    """

    state: str
    floor_ns: float | None
    value_ns: float
    low_ns: float | None
    high_ns: float | None
    coverage: float | None
    interval_over: str  # LAUNCHES or ONE_LAUNCH
    between_launches: float | None
    within_launches: float | None
    launches_needed: int | None
    n_measurements: int
    n_samples: int
    n_launches: int
    minimum_ns: float
    p99_ns: float | None
    rate_bytes_per_s: float | None
    rate_low_bytes_per_s: float | None
    rate_high_bytes_per_s: float | None
    messages_per_s: float | None
    messages_low_per_s: float | None
    messages_high_per_s: float | None
    slowest_rank: int | None
    slowest_share: float | None
    verified: bool | None  # whether any measurement's payload was checked, in whatever state; None: no payload
    batch: int  # repetitions in a sample
    n_left_out: int  # measurements of other batches
    is_short: bool  # fewer than 8 events follow each other in a sample of a stream
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
) -> list[Figure]:
    """The figures of one point: per state from the nearest level on, then "mixed", then "unknown".

    `states` holds the state of each measurement, best classified over the whole run; else the given measurements alone
    decide. `precision` is what the run was asked for. Measurements without samples are left out; measurements of
    different definitions (a run resumed by a later version) are never put into one figure, nor are different batches
    (`of_one_batch`).
    """
    of_measurements = classify([signs_of(measurement) for measurement in measurements]) if states is None else states
    groups: dict[tuple[State, Definition], list[Measurement]] = {}
    for measurement, state in zip(measurements, of_measurements, strict=True):
        if measurement.elapsed_ns.size:
            groups.setdefault((state, measurement.definition), []).append(measurement)
    ordered = sorted(groups, key=lambda key: place(key[0].name, key[0].floor_ns))
    verified = _verified(measurements)
    return [_figure(state, groups[state, definition], verified, confidence, precision) for state, definition in ordered]


def of_one_batch(points: Sequence[Hashable], batches: Sequence[int], conditions: Iterable[Hashable]) -> list[bool]:
    """Whether each of some measurements has the batch that most of its point and condition have.

    Of several the largest.

    A figure never mixes batches: what weighs once in each of them would scatter its times. `conditions` is only read
    where a point has several, because a large run has hundreds of thousands of measurements.
    """
    if len(set(zip(points, batches, strict=True))) == len(set(points)):
        return [True] * len(points)
    groups = list(zip(points, conditions, strict=True))
    main: dict[Hashable, tuple[int, int]] = {}
    for (group, batch), count in Counter(zip(groups, batches, strict=True)).items():
        main[group] = max(main.get(group, (0, 0)), (count, batch))
    return [main[group][1] == batch for group, batch in zip(groups, batches, strict=True)]


def signs_of(measurement: Measurement) -> MachineProbe:
    """What tells the state of a measurement."""
    return MachineProbe(
        measurement.floor_ns, measurement.pace_ns, measurement.solo_ns, measurement.reference, measurement.places
    )


def _verified(measurements: Sequence[Measurement]) -> bool | None:
    """Of a whole point: a long payload is checked in its first measurement alone, whatever the state was then."""
    if any(measurement.verified for measurement in measurements):
        return True
    return False if any(measurement.has_payload for measurement in measurements) else None


def _figure(
    state: State, measurements: list[Measurement], verified: bool | None, confidence: float, precision: float | None
) -> Figure:
    import numpy as np

    definition, n_all = measurements[0].definition, len(measurements)
    counts = of_one_batch([0] * n_all, [measurement.batch for measurement in measurements], [0] * n_all)
    measurements = [measurement for measurement, is_counted in zip(measurements, counts, strict=True) if is_counted]
    batch = measurements[0].batch
    times_ns = [measurement.times_ns() for measurement in measurements]
    medians_ns = [float(np.median(times)) for times in times_ns]
    launch_ids = [measurement.launch_id for measurement in measurements]
    time, over = time_of(medians_ns, launch_ids, confidence)
    between, within = scatter_of(medians_ns, launch_ids)
    samples_ns = np.concatenate(times_ns)
    single = batch == 1 and len(samples_ns) >= P99_SAMPLES_MIN
    slowest_rank, slowest_share = _slowest(measurements)
    return Figure(
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
        p99_ns=float(np.quantile(samples_ns, 0.99)) if single else None,
        rate_bytes_per_s=rate_bytes_per_s(definition, time.value),
        rate_low_bytes_per_s=rate_bytes_per_s(definition, time.high),
        rate_high_bytes_per_s=rate_bytes_per_s(definition, time.low),
        messages_per_s=messages_per_s(definition, time.value),
        messages_low_per_s=messages_per_s(definition, time.high),
        messages_high_per_s=messages_per_s(definition, time.low),
        slowest_rank=slowest_rank,
        slowest_share=slowest_share,
        verified=verified,
        batch=batch,
        n_left_out=n_all - len(measurements),
        is_short=measurements[0].point.is_stream and batch * definition.divisor < STREAM_EVENTS_MIN,
        definition=definition,
    )


def rate_bytes_per_s(definition: Definition, time_ns: float | None) -> float | None:
    """Payload bytes of a repetition over its time; None where either is nothing."""
    return _per_s(definition.bytes_per_rep, definition, time_ns)


def messages_per_s(definition: Definition, time_ns: float | None) -> float | None:
    """Messages of a repetition over its time; None where either is nothing."""
    return _per_s(definition.messages_per_rep, definition, time_ns)


def _per_s(count: int, definition: Definition, time_ns: float | None) -> float | None:
    if time_ns is None or time_ns <= 0 or count == 0:
        return None
    return count / (time_ns * definition.divisor) * 1e9


def time_of(
    medians_ns: Sequence[float], launch_ids: Sequence[int], confidence: float = CONFIDENCE
) -> tuple[Interval, str]:
    """The time of a point from its measurements' medians, and what its interval is over."""
    launches = _by_launch(medians_ns, launch_ids)
    if len(launches) > 1:
        return interval.geometric_mean([statistics.median(of_one) for of_one in launches], confidence), LAUNCHES
    return interval.median(medians_ns, confidence), ONE_LAUNCH


def scatter_of(medians_ns: Sequence[float], launch_ids: Sequence[int]) -> tuple[float | None, float | None]:
    """The relative standard deviations between launches and of measurements within a launch; None: too few, or no time.

    Within: by absolute deviations from the launch's median, which odd measurements hardly move. Between: what is left
    of the scatter of launch medians when that of a median of so many measurements is taken off: pi / 2 of a mean's
    variance.
    """
    launches = _by_launch(medians_ns, launch_ids)
    if min(medians_ns) <= 0:
        return None, None
    logs = [[math.log(median_ns) for median_ns in of_one] for of_one in launches]
    middles = [statistics.median(of_one) for of_one in logs]
    within = between = None
    if len(medians_ns) > len(launches):
        deviations = [abs(log - middle) for of_one, middle in zip(logs, middles, strict=True) for log in of_one]
        free = len(deviations) / (len(deviations) - len(launches))
        within = 1.4826 * statistics.median(deviations) * math.sqrt(free)
    if len(launches) > 1:
        own = (within or 0.0) ** 2 * statistics.fmean((math.pi / 2 if len(one) > 2 else 1) / len(one) for one in logs)
        between = math.sqrt(max(0.0, statistics.variance(middles) - own))
    return between, within


def needed_for(medians_ns: Sequence[float], launch_ids: Sequence[int], precision: float) -> int | None:
    """How many launches such as these reach a precision; None where one launch, or a time of zero, does not say."""
    launches = _by_launch(medians_ns, launch_ids)
    if len(launches) < 2 or min(medians_ns) <= 0:
        return None
    middles = [math.log(statistics.median(of_one)) for of_one in launches]
    return interval.launches_needed(statistics.stdev(middles), precision)


def _by_launch(medians_ns: Sequence[float], launch_ids: Sequence[int]) -> list[list[float]]:
    launches: dict[int, list[float]] = {}
    for launch_id, median_ns in zip(launch_ids, medians_ns, strict=True):
        launches.setdefault(launch_id, []).append(median_ns)
    whole = [of_one for of_one in launches.values() if len(of_one) >= _LAUNCH_MEASUREMENTS]
    return whole if len(whole) >= _LAUNCHES_WHOLE else list(launches.values())


def _slowest(measurements: list[Measurement]) -> tuple[int | None, float | None]:
    import numpy as np

    if measurements[0].definition.timed != "slowest":
        return None, None
    ranks = max(len(measurement.elapsed_ns) for measurement in measurements)
    times_slowest = np.zeros(ranks, dtype=np.int64)
    for measurement in measurements:
        times_slowest += np.bincount(measurement.elapsed_ns.argmax(axis=0), minlength=ranks)
    rank = int(times_slowest.argmax())
    return rank, float(times_slowest[rank] / times_slowest.sum())
