"""LogGP's parameters of a run that has measured the pattern prtt, as the suite loggp does.

A time is the median over measurements in one state and needs an interval. The four times of a fit are of one transport,
one number of ranks, and the same options but for messages and delay_ns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hockney.analysis.pairs import ClassOf, Summarized, pair_of
from hockney.results.runs import Series, summary_time
from hockney.results.store import MeasurementSummary
from hockney.stats.fit import Estimate, LogGP, NoFit, RoundTrips, fit_loggp

# Transport, ranks, and the options but for messages and delay_ns.
_Setting = tuple[str, int, tuple[tuple[str, str], ...]]
_Call = tuple[int, int, int]  # bytes, messages, and the delay asked for
_Measurements = dict[_Call, list[MeasurementSummary]]


@dataclass(frozen=True)
class FittedTrips:
    """The fit of one setting in one state."""

    transport: str
    ranks: int
    options: tuple[tuple[str, str], ...]
    state: str
    pair_class: str
    fit: tuple[LogGP, ...] | NoFit


def loggp_of(summarized: Iterable[tuple[Series, Summarized]], class_of: ClassOf) -> Iterator[FittedTrips]:
    """One fit for each setting, state and pair class, the most measured first."""
    settings: dict[_Setting, dict[tuple[str, str], _Measurements]] = {}  # by state and pair class
    for series, measurements in summarized:
        point = series.point
        if point.pattern != "prtt":
            continue
        options = dict(point.options)
        call = point.bytes, int(options.pop("messages", 1)), int(options.pop("delay_ns", 0))
        by_state = settings.setdefault((point.transport, point.ranks, tuple(options.items())), {})
        for measurement, state in measurements:
            where = state.name, class_of(pair_of(point), measurement.launch_id)
            by_state.setdefault(where, {}).setdefault(call, []).append(measurement)
    for setting, by_state in settings.items():
        for where, calls in sorted(by_state.items(), key=lambda item: -sum(map(len, item[1].values()))):
            yield FittedTrips(*setting, *where, _fit(calls))


def delay_of(measurements: Iterable[MeasurementSummary]) -> float | None:
    """The real length of a delay, by the counters of the source; None without one."""
    counted = [member.counters for member in measurements if member.counters]
    delays = sum(sum(counters.get("delays", ())) for counters in counted)
    return sum(sum(counters["delay_ns"]) for counters in counted) / delays if delays else None


def _fit(measurements: _Measurements) -> tuple[LogGP, ...] | NoFit:
    """Fit without the sizes whose delay is shorter than a round trip, if three are left."""
    trips = list(_trips(measurements))
    if not trips:
        return NoFit("needs prtt with one message and several, with a delay and without, each with an interval")
    long_enough = [trip for trip in trips if trip.delay_ns >= trip.one_ns]
    return fit_loggp(long_enough if len(long_enough) >= 3 else trips)


def _trips(measurements: _Measurements) -> Iterator[RoundTrips]:
    """The sizes that have all four times."""
    times: dict[_Call, Estimate] = {}
    for call, members in measurements.items():
        time = summary_time(members)[0].estimate
        times |= {} if time is None else {call: time}
    messages = max((messages for _, messages, _ in times), default=1)
    delay_ns = max((delay_ns for *_, delay_ns in times), default=0)
    for size in sorted({size for size, *_ in times}) if messages > 1 and delay_ns > 0 else ():
        calls = [(size, 1, 0), (size, messages, 0), (size, 1, delay_ns), (size, messages, delay_ns)]
        if not all(call in times for call in calls):
            continue
        waited_ns = delay_of(measurements[calls[-1]])
        if waited_ns is not None:
            errors_ns = tuple((times[call].high - times[call].low) / 2 for call in calls)
            one_ns, burst_ns, one_delayed_ns, spaced_ns = (times[call].value for call in calls)
            yield RoundTrips(size, messages, one_ns, burst_ns, one_delayed_ns, spaced_ns, waited_ns, errors_ns)
