"""LogGP's parameters of a run that has measured the pattern prtt, per state of the machine; as the suite loggp does.

A time is the median over measurements in one state, as everywhere, and needs an interval. The four times that belong
together are of one transport, one number of ranks, and the same options but for messages and delay_ns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hockney.analysis.explain.pairs import classes_of, pair_of
from hockney.model import Point, PointStatus
from hockney.results.runs import Run
from hockney.results.store import MeasurementSummary
from hockney.stats import MIXED, Interval, State, time_of
from hockney.stats.fit import LogGP, NoFit, RoundTrips, fit_loggp

_SIZES_MIN = 3
_Options = tuple[tuple[str, str], ...]
_Place = tuple[str, int, _Options]  # transport, ranks, and options beside messages and delay_ns
_Call = tuple[int, int, int]  # bytes, messages, and the delay that was asked for
_Measurements = dict[_Call, list[MeasurementSummary]]


@dataclass(frozen=True)
class Fitted:
    """What the round trips of one place in one state give.

    `short_bytes`: sizes left out, their delay being shorter. `pair_class`: what its two ranks share.
    """

    transport: str
    ranks: int
    options: _Options
    state: str
    found: tuple[LogGP, ...] | NoFit
    short_bytes: tuple[int, ...]
    pair_class: str = ""


def loggp_of(run: Run) -> Iterator[Fitted]:
    """Every place's, but for those of more ranks than CPUs, over the sizes that have all four times in one state."""
    crowded = {(launch.transport, launch.ranks) for launch in run.launches.values() if launch.oversubscribed}
    class_of = classes_of(run)
    places: dict[_Place, dict[tuple[State, str], _Measurements]] = {}  # by state and pair class
    for series, measurements in run.summaries():
        point = series.point
        is_crowded = (point.transport, point.ranks) in crowded
        if point.pattern != "prtt" or is_crowded or point.transport == "null" or series.status is PointStatus.FAILED:
            continue
        place, call = _place_of(point)
        pair = pair_of(point)
        for measurement, state in measurements:
            if measurement.median_ns is not None and state != MIXED:
                where = (state, class_of(pair, measurement.launch_id))
                places.setdefault(place, {}).setdefault(where, {}).setdefault(call, []).append(measurement)
    for place, seen in places.items():
        for (state, pair_class), own in sorted(seen.items(), key=lambda one: -sum(map(len, one[1].values()))):
            found, short_bytes = _fit(own)
            yield Fitted(*place, state.name, found, short_bytes, pair_class)


def _place_of(point: Point) -> tuple[_Place, _Call]:
    given = dict(point.options)
    call = point.bytes, int(given.pop("messages", 1)), int(given.pop("delay_ns", 0))
    return (point.transport, point.ranks, tuple(given.items())), call


def _fit(measurements: _Measurements) -> tuple[tuple[LogGP, ...] | NoFit, tuple[int, ...]]:
    times = {call: time for call, own in measurements.items() if (time := _time(own)).low is not None}
    delays = {call: delay_ns for call, own in measurements.items() if (delay_ns := _delay_ns(own)) is not None}
    trips = list(_trips(times, delays))
    if not trips:
        return NoFit(
            "LogGP needs prtt with one message and with several, each with a delay and without, and an interval of each"
        ), ()
    long_enough = [trip for trip in trips if trip.delay_ns >= trip.one_ns]
    if len(long_enough) < _SIZES_MIN:
        return fit_loggp(trips), ()
    return fit_loggp(long_enough), tuple(trip.size_bytes for trip in trips if trip not in long_enough)


def _trips(times: Mapping[_Call, Interval], delays: Mapping[_Call, float]) -> Iterator[RoundTrips]:
    """The sizes that have all four times."""
    messages = max((messages for _, messages, _ in times), default=1)
    delay_ns = max((delay_ns for *_, delay_ns in times), default=0)
    for size in sorted({size for size, *_ in times}) if messages > 1 and delay_ns > 0 else ():
        calls = [(size, 1, 0), (size, messages, 0), (size, 1, delay_ns), (size, messages, delay_ns)]
        if calls[-1] in delays and all(call in times for call in calls):
            own = [times[call] for call in calls]
            one_ns, burst_ns, one_delayed_ns, spaced_ns = (time.value for time in own)
            errors_ns = tuple(((time.high or 0.0) - (time.low or 0.0)) / 2 for time in own)
            yield RoundTrips(size, messages, one_ns, burst_ns, one_delayed_ns, spaced_ns, delays[calls[-1]], errors_ns)


def _time(measurements: Sequence[MeasurementSummary]) -> Interval:
    medians_ns = [measurement.median_ns for measurement in measurements if measurement.median_ns is not None]
    return time_of(medians_ns, [measurement.launch_id for measurement in measurements])[0]


def _delay_ns(measurements: Iterable[MeasurementSummary]) -> float | None:
    """What a delay really took: the source alone counts them."""
    counted = [measurement.counters for measurement in measurements if measurement.counters]
    delays = sum(sum(counters["delays"]) for counters in counted)
    return sum(sum(counters["delay_ns"]) for counters in counted) / delays if delays else None
