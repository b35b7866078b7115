"""Fits to a run: the straight segments of each transport's curves, and LogGP's parameters if prtt ran.

A time of prtt is the median over measurements in one state and needs an interval. The four times of a fit of LogGP are
of one transport, one number of ranks, and the same options but for messages and delay_ns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hockney.analysis.explain.curve import Fitted, MeasuredCurve, Parameters, Reading
from hockney.analysis.finding import Absence, NotChecked, Subject
from hockney.analysis.pair_classes import ClassOf, pair_of
from hockney.analysis.pairs import Summarized
from hockney.model import pattern_text
from hockney.results.figures import measured_time
from hockney.results.runs import Series
from hockney.results.store import MeasurementSummary
from hockney.results.traits import pattern_traits
from hockney.stats import RANGE
from hockney.stats.fit import Estimate, LogGP, NoFit, RoundTrips, Segment, SegmentFit, fit_loggp

_Call = tuple[int, int, int]  # of prtt: bytes, messages, and the delay asked for
_Calls = dict[_Call, list[MeasurementSummary]]


@dataclass(frozen=True)
class FittedLine(Fitted):
    """A segment of a curve: t_0 (its line's time at size 0), its asymptotic rate r_inf, and its residuals.

    t_0, r_inf and n_1/2 are None where the data do not determine them, and for sizes too close together for a line.
    `residuals` are (measured - fitted) / fitted, of each of its `sizes_bytes`; `relative_rms` is of these.
    """

    first_bytes: int
    last_bytes: int
    sizes: int
    t0_ns: Estimate | None
    r_inf_bytes_per_s: Estimate | None
    n_half_bytes: Estimate | None
    relative_rms: float
    sizes_bytes: tuple[int, ...] = ()
    residuals: tuple[float, ...] = ()


@dataclass(frozen=True)
class OffLine(Fitted):
    """A size of a curve that lies on none of the curve's lines."""

    bytes: int
    time_ns: Estimate


# ---- lines ----------------------------------------------------------------------------------------------------------


def lines_of(reading: Reading) -> tuple[list[FittedLine], list[OffLine], list[NotChecked]]:
    """The lines of each transport and pair class in each state, the sizes on none, and the curves without a line."""
    lines: list[FittedLine] = []
    off_lines: list[OffLine] = []
    gaps: dict[tuple[str, str, int], NotChecked] = {}
    for curve in _curves(reading):
        fit = curve.segments
        why, facts = ("no fit", {"reason": fit.reason}) if isinstance(fit, NoFit) else ("scatter", {})
        about = Subject(curve.transport, curve.name)
        gap = NotChecked(Absence.INSUFFICIENT_DATA, "lines", why, facts, subject=about)
        gaps.setdefault((curve.transport, curve.name, curve.ranks), gap)
        if isinstance(fit, SegmentFit):
            determined = [line for segment in fit.segments if (line := _line(curve, fit, segment)) is not None]
            lines += determined
            off = fit.outliers if determined else ()
            off_lines += [OffLine(*_names(curve), curve.sizes[at], curve.points[at].time_ns) for at in off]
    fitted = {(line.transport, line.pattern, line.ranks) for line in lines}
    return lines, off_lines, list(dict.fromkeys(gap for key, gap in gaps.items() if key not in fitted))


def last_line(curve: MeasuredCurve) -> FittedLine | None:
    """The line of the longest messages; None where the data do not determine one."""
    fit = curve.segments
    return None if isinstance(fit, NoFit) else _line(curve, fit, fit.segments[-1])


def _names(curve: MeasuredCurve) -> tuple[str, str, int, str, str]:
    return curve.transport, curve.name, curve.ranks, curve.pair_class, curve.state


def _curves(reading: Reading) -> list[MeasuredCurve]:
    """The curves of each job's first pattern, the most measured first; then streams between two ranks."""
    first = {curve.job: curve.pattern for curve in reading.shapes}
    jobs = list(dict.fromkeys([*first, *(curve.job for curve in reading.curves)]))
    # Patterns of more than two ranks, and published figures, have no pair class and one state.
    classed = {(curve.job, curve.pattern) for curve in reading.by_class}
    rest = (curve for curve in reading.curves if (curve.job, curve.pattern) not in classed)
    fitted = []
    for curve in (*reading.by_class, *rest):
        is_first = curve.pattern == first.get(curve.job)
        is_stream = pattern_traits(reading.facts, curve.pattern).stream and reading.is_link(curve)
        if is_first or (is_stream and len(curve.points) >= 3):
            order = jobs.index(curve.job), not is_first, curve.pattern, -curve.n_measurements
            fitted.append((order, curve))
    return [curve for _, curve in sorted(fitted, key=lambda each: each[0])]


def _line(curve: MeasuredCurve, fit: SegmentFit, segment: Segment) -> FittedLine | None:
    """None where neither its start nor its rate is known."""
    has_start = not segment.t0_ns.low <= 0 <= segment.t0_ns.high
    if fit.is_ambiguous(segment) or not (has_start or segment.r_inf_bytes_per_s is not None):
        return None
    on_line = fit.on_line(segment)
    # Else size 0 is farther away than twice the range of the line.
    is_long = segment.last_bytes >= 1.5 * segment.first_bytes
    return FittedLine(
        *_names(curve),
        first_bytes=segment.first_bytes,
        last_bytes=segment.last_bytes,
        sizes=segment.sizes,
        t0_ns=segment.t0_ns if is_long else None,
        r_inf_bytes_per_s=segment.r_inf_bytes_per_s if is_long else None,
        n_half_bytes=segment.n_half_bytes if is_long else None,
        relative_rms=segment.relative_rms,
        sizes_bytes=tuple(fit.sizes_bytes[at] for at in on_line),
        residuals=tuple(fit.residuals[at] for at in on_line),
    )


# ---- LogGP ----------------------------------------------------------------------------------------------------------


def parameters_of(reading: Reading) -> tuple[list[Parameters], list[NotChecked]]:
    """LogGP's parameters, and why a transport that ran prtt has none."""
    gaps = [each for each in reading.loggp if isinstance(each, NotChecked)]
    if reading.libraries and not reading.loggp:  # a run, not published figures
        gaps = [NotChecked(Absence.NOT_MEASURED, "LogGP", "delays")]
    return [each for each in reading.loggp if isinstance(each, Parameters)], gaps


def loggp_of(summarized: Iterable[tuple[Series, Summarized]], class_of: ClassOf) -> Iterator[Parameters | NotChecked]:
    """The parameters for each setting, state and pair class, the most measured first; or why there are none."""
    settings: dict[tuple[str, str, int], dict[tuple[str, str], _Calls]] = {}  # by pair class and state
    for series, measurements in summarized:
        point = series.point
        if point.pattern != "prtt":
            continue
        options = dict(point.options)
        call = point.bytes, int(options.pop("messages", 1)), int(options.pop("delay_ns", 0))
        pattern = pattern_text(point.pattern, tuple(options.items()))
        by_class = settings.setdefault((point.transport, pattern, point.ranks), {})
        for measurement, state in measurements:
            where = class_of(pair_of(point), measurement.launch_id), state.name
            by_class.setdefault(where, {}).setdefault(call, []).append(measurement)
    for setting, by_class in settings.items():
        for where, calls in sorted(by_class.items(), key=lambda item: -sum(map(len, item[1].values()))):
            fit = _fit(calls)
            if isinstance(fit, NoFit):
                about = Subject(*setting, where[1])
                yield NotChecked(
                    Absence.INSUFFICIENT_DATA, "parameters", "no fit", {"reason": fit.reason}, subject=about
                )
            else:
                yield from (Parameters(*setting, *where, segment) for segment in fit)


def delay_of(measurements: Iterable[MeasurementSummary]) -> float | None:
    """The real length of a delay, by the counters of the source; None without one."""
    counted = [member.counters for member in measurements if member.counters]
    delays = sum(sum(counters.get("delays", ())) for counters in counted)
    return sum(sum(counters["delay_ns"]) for counters in counted) / delays if delays else None


def _fit(measurements: _Calls) -> tuple[LogGP, ...] | NoFit:
    """Fit without the sizes whose delay is shorter than a round trip, if three are left."""
    trips = list(_trips(measurements))
    if not trips:
        return NoFit("needs prtt with one message and several, with a delay and without, each with an interval")
    long_enough = [trip for trip in trips if trip.delay_ns >= trip.one_ns]
    return fit_loggp(long_enough if len(long_enough) >= 3 else trips)


def _trips(measurements: _Calls) -> Iterator[RoundTrips]:
    """The sizes that have all four times."""
    times: dict[_Call, Estimate] = {}
    for call, members in measurements.items():
        time, over, _ = measured_time(members)
        times |= {} if over == RANGE else {call: time}
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
