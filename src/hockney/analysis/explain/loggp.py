"""LogGP's parameters of a run that has measured the pattern prtt, as the suite loggp does.

A time is the median over measurements in one state and needs an interval. The four times of a fit are of one transport,
one number of ranks, and the same options but for messages and delay_ns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hockney.analysis.explain.pairs import classes_of, pair_of
from hockney.model import Point, PointStatus
from hockney.results.runs import Run
from hockney.results.store import MeasurementSummary
from hockney.stats import MIXED, time_of
from hockney.stats.fit import Estimate, LogGP, NoFit, RoundTrips, fit_loggp

_SIZES_MIN = 3
_Options = tuple[tuple[str, str], ...]
_Place = tuple[str, int, _Options]  # transport, ranks, and the options but for messages and delay_ns
_Call = tuple[int, int, int]  # bytes, messages, and the delay asked for
_Measurements = dict[_Call, list[MeasurementSummary]]


@dataclass(frozen=True)
class Fitted:
    """The fit of one place in one state. `short_bytes`: sizes left out, as their delay is shorter than a round trip."""

    transport: str
    ranks: int
    options: _Options
    state: str
    found: tuple[LogGP, ...] | NoFit
    short_bytes: tuple[int, ...]
    pair_class: str = ""


def loggp_of(run: Run) -> Iterator[Fitted]:
    """One fit for each place, state and pair class, the most measured first; none of oversubscribed places."""
    oversubscribed = {(launch.transport, launch.ranks) for launch in run.launches.values() if launch.oversubscribed}
    class_of = classes_of(run)
    places: dict[_Place, dict[tuple[str, str], _Measurements]] = {}  # by state and pair class
    for series, measurements in run.summaries():
        point = series.point
        is_out = (point.transport, point.ranks) in oversubscribed or point.transport == "null"
        if point.pattern != "prtt" or is_out or series.status is PointStatus.FAILED:
            continue
        place, call = _place_of(point)
        pair = pair_of(point)
        for measurement, state in measurements:
            if measurement.median_ns is not None and state != MIXED:
                where = (state.name, class_of(pair, measurement.launch_id))
                places.setdefault(place, {}).setdefault(where, {}).setdefault(call, []).append(measurement)
    for place, seen in places.items():
        for (state_name, pair_class), own in sorted(seen.items(), key=lambda one: -sum(map(len, one[1].values()))):
            found, short_bytes = _fit(own)
            yield Fitted(*place, state_name, found, short_bytes, pair_class)


def _place_of(point: Point) -> tuple[_Place, _Call]:
    options = dict(point.options)
    call = point.bytes, int(options.pop("messages", 1)), int(options.pop("delay_ns", 0))
    return (point.transport, point.ranks, tuple(options.items())), call


def _fit(measurements: _Measurements) -> tuple[tuple[LogGP, ...] | NoFit, tuple[int, ...]]:
    times = {call: time for call, own in measurements.items() if (time := _time(own)) is not None}
    delays = {call: delay_ns for call, own in measurements.items() if (delay_ns := _delay_ns(own)) is not None}
    trips = list(_trips(times, delays))
    if not trips:
        return NoFit("needs prtt with one message and several, with a delay and without, each with an interval"), ()
    long_enough = [trip for trip in trips if trip.delay_ns >= trip.one_ns]
    if len(long_enough) < _SIZES_MIN:
        return fit_loggp(trips), ()
    return fit_loggp(long_enough), tuple(trip.size_bytes for trip in trips if trip not in long_enough)


def _trips(times: Mapping[_Call, Estimate], delays: Mapping[_Call, float]) -> Iterator[RoundTrips]:
    """The sizes that have all four times."""
    messages = max((messages for _, messages, _ in times), default=1)
    delay_ns = max((delay_ns for *_, delay_ns in times), default=0)
    for size in sorted({size for size, *_ in times}) if messages > 1 and delay_ns > 0 else ():
        calls = [(size, 1, 0), (size, messages, 0), (size, 1, delay_ns), (size, messages, delay_ns)]
        if calls[-1] in delays and all(call in times for call in calls):
            own = [times[call] for call in calls]
            errors_ns = tuple((time.high - time.low) / 2 for time in own)
            one_ns, burst_ns, one_delayed_ns, spaced_ns = (time.value for time in own)
            yield RoundTrips(size, messages, one_ns, burst_ns, one_delayed_ns, spaced_ns, delays[calls[-1]], errors_ns)


def _time(measurements: Sequence[MeasurementSummary]) -> Estimate | None:
    medians_ns = [measurement.median_ns for measurement in measurements if measurement.median_ns is not None]
    return time_of(medians_ns, [measurement.launch_id for measurement in measurements])[0].estimate


def _delay_ns(measurements: Iterable[MeasurementSummary]) -> float | None:
    """What a delay really took, by the counters of the source."""
    counted = [measurement.counters for measurement in measurements if measurement.counters]
    delays = sum(sum(counters["delays"]) for counters in counted)
    return sum(sum(counters["delay_ns"]) for counters in counted) / delays if delays else None
