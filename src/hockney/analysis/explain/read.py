"""A stored run as a Reading. It is read once, without samples: the medians of the measurements are stored."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hockney.analysis.explain.curve import CurvePoint, JobKey, MeasuredCurve, Options, Reading
from hockney.analysis.explain.fits import loggp_of
from hockney.analysis.finding import Note
from hockney.analysis.impact import impacts_of
from hockney.analysis.pairs import ClassOf, Summarized, classes_of, pair_matrices, pair_of, usable
from hockney.analysis.repeat import LAUNCHES_WANTED, more_launches, resume
from hockney.errors import HockneyError
from hockney.model import DIGITS, Measurement, Point, PointStatus, RunStatus
from hockney.results.runs import Run, Series, arrived_share, main_state, summary_time
from hockney.results.store import MeasurementSummary
from hockney.stats import MIXED, State, median
from hockney.stats.figures import STREAM_EVENTS_MIN
from hockney.stats.fit import Estimate


def read_run(run: Run) -> Reading:
    """Read a run for the detectors. Raises HockneyError if it has no figure, or none with an interval.

    Each transport, at each number of ranks, is seen in one state: figures of different states are not compared. A
    point without an interval in that state is on no curve.
    """
    summarized = [
        (series, members) for series, members in usable(run) if not series.is_harness and series.measurements_by_state
    ]
    fix = resume(run.id, run.info)
    matrices = tuple(pair_matrices(run))  # between hosts they have intervals where no curve has one
    is_known = any(time.low is not None for matrix in matrices for time in matrix.times.values())
    if not summarized and not is_known:
        reasons = [series.reason for series in run.series if series.reason]
        why = reasons[0] if reasons else "it has no measurement of a transport"
        none = f"{run.name} has no figures, so there is nothing to explain: {why}"
        raise HockneyError(none, fix=None if reasons else fix)
    counts: dict[JobKey, list[Counter[str]]] = {}
    for series, measurements in summarized:
        counts.setdefault(_job_of(series), []).append(Counter(state.name for _, state in measurements))
    states = {job: main_state(points) for job, points in counts.items()}
    oversubscribed = {(launch.transport, launch.ranks) for launch in run.launches.values() if launch.oversubscribed}
    curves, without_interval = _curves(summarized, states, oversubscribed)
    if not curves and not is_known:
        raise HockneyError(f"no figure of {run.name} has a confidence interval yet", fix=fix)
    fitting = [
        (series, members)
        for series, members in summarized
        if _job_of(series) not in oversubscribed and not run.info.is_imported
    ]
    class_of = classes_of(run)
    return Reading(
        subject=run.name,
        run=run.id,
        curves=tuple(curves),
        notes=tuple(_notes(run, without_interval, curves)),
        by_class=tuple(_by_class(fitting, class_of)),
        floors=_floors(summarized, states),
        libraries={launch.transport: launch.library for launch in run.launches.values()},
        launchers={launch.transport: launch.argv[0] for launch in run.launches.values() if launch.argv},
        facts=run.facts,
        warnings=run.warnings,
        plan=run.info.plan,
        impacts=impacts_of(run),
        samples=functools.partial(_samples, fitting),
        class_of=class_of,
        matrices=matrices,
        loggp=tuple(loggp_of(fitting, class_of)),
    )


def _job_of(series: Series) -> JobKey:
    return series.point.transport, series.point.ranks


def _curves(
    summarized: Iterable[tuple[Series, Summarized]],
    states: Mapping[JobKey, str | None],
    oversubscribed: set[JobKey],
) -> tuple[list[MeasuredCurve], list[Point]]:
    """The curves in the order of the plan, and the points without an interval in their state."""
    points: dict[tuple[str, str, int, Options, str], list[CurvePoint]] = {}
    algorithms: dict[tuple[str, str, int, Options, str], str | None] = {}
    without_interval: list[Point] = []
    for series, measurements in summarized:
        point, state_name = series.point, states[_job_of(series)] or ""
        in_state = [measurement for measurement, state in measurements if state.name == state_name]
        curve_point = _curve_point(point.bytes, in_state, exact=series.is_exact)
        if curve_point is None:
            without_interval.append(point)
        else:
            key = point.transport, point.pattern, point.ranks, point.options, state_name
            points.setdefault(key, []).append(curve_point)
            algorithms[key] = in_state[-1].definition.algorithm
    curves = [
        MeasuredCurve(
            *key,
            points=tuple(sorted(members, key=lambda point: point.bytes)),
            oversubscribed=(key[0], key[2]) in oversubscribed,
            algorithm=algorithms[key],
        )
        for key, members in points.items()
    ]
    return curves, without_interval


def _curve_point(size_bytes: int, measurements: Sequence[MeasurementSummary], *, exact: bool) -> CurvePoint | None:
    """A point of a curve; None without an interval, or if it reaches 0: the time is below the clock's.

    `exact`: of a model without noise, so that the time is its own bounds. An imported time is known to its printed
    digits at best.
    """
    if not measurements:
        return None
    interval = summary_time(measurements, exact=exact)[0]
    time, definition = interval.estimate, measurements[0].definition
    payload_bytes = arrived_share(measurements) * definition.bytes_per_rep / definition.divisor or None
    digits_ns = [measurement.counters[DIGITS][0] for measurement in measurements if DIGITS in measurement.counters]
    if digits_ns:
        low, high = interval.value - max(digits_ns), interval.value + max(digits_ns)
        seen = time or Estimate(interval.value, low, high)
        time = Estimate(interval.value, min(low, seen.low), max(high, seen.high))
        measurements = ()  # rounds of several outputs are not the same rounds
    return None if time is None or time.low <= 0 else CurvePoint(size_bytes, time, payload_bytes, measurements)


def _by_class(summarized: Iterable[tuple[Series, Summarized]], class_of: ClassOf) -> Iterator[MeasuredCurve]:
    """The curves of pairs of ranks by class: the median of the pairs, with an interval that encloses all of theirs."""
    curves: dict[tuple[str, str, int, Options, str, str], dict[int, list[CurvePoint]]] = {}
    for series, measurements in summarized:
        point = series.point
        if point.traits.links != "ends":
            continue
        options = tuple(option for option in point.options if option[0] not in ("source", "target"))
        by_class: dict[tuple[str, str], list[MeasurementSummary]] = {}
        for measurement, state in measurements:
            pair_class = class_of(pair_of(point), measurement.launch_id)
            by_class.setdefault((state.name, pair_class), []).append(measurement)
        for where, members in by_class.items():
            curve_point = _curve_point(point.bytes, members, exact=False)
            if curve_point is not None:
                sizes = curves.setdefault((point.transport, point.pattern, point.ranks, options, *where), {})
                sizes.setdefault(point.bytes, []).append(curve_point)
    for (transport, pattern, ranks, options, state_name, pair_class), sizes in curves.items():
        points = tuple(
            replace(pairs[0], time_ns=Estimate.of_all([pair.time_ns for pair in pairs]), measurements=())
            for _, pairs in sorted(sizes.items())
        )
        count = sum(len(pair.measurements) for pairs in sizes.values() for pair in pairs)
        of = transport, pattern, ranks, options, state_name
        yield MeasuredCurve(*of, points, pair_class=pair_class, n_measurements=count)


def _floors(
    summarized: Iterable[tuple[Series, Summarized]], states: Mapping[JobKey, str | None]
) -> dict[JobKey, Estimate]:
    """The floor of each job: that of its state, with an interval that encloses the floors seen by each transport."""
    seen_ns: dict[JobKey, list[float]] = {}
    floor_ns: dict[str | None, float] = {}
    for series, measurements in summarized:
        job = _job_of(series)
        for measurement, state in measurements:
            probe = measurement.probe
            if probe.floor_ns and probe.reference is None and state.floor_ns and state.name == states[job]:
                seen_ns.setdefault(job, []).append(sum(probe.floor_ns) / 2)
                floor_ns[state.name] = state.floor_ns
    by_state: dict[str | None, list[Estimate]] = {}
    for job, values_ns in seen_ns.items():
        estimate, value_ns = median(values_ns).estimate, floor_ns[states[job]]
        if estimate is not None and estimate.low > 0:
            by_state.setdefault(states[job], [Estimate(value_ns, value_ns, value_ns)]).append(estimate)
    floors = {name: replace(Estimate.of_all(each), value=each[0].value) for name, each in by_state.items()}
    return {job: floors[states[job]] for job in seen_ns if states[job] in floors}


def _samples(
    summarized: Iterable[tuple[Series, Summarized]], most: int, patterns: Sequence[str]
) -> list[tuple[Measurement, State]]:
    """Whole series, evenly chosen from each transport, until they have about `most` measurements."""
    by_transport: dict[str, list[Series]] = {}
    counts: Counter[str] = Counter()
    for series, measurements in summarized:
        if measurements and (not patterns or series.point.pattern in patterns):
            by_transport.setdefault(series.point.transport, []).append(series)
            counts[series.point.transport] += len(measurements)
    return [
        (measurement, state)
        for transport, members in by_transport.items()
        for series in members[:: -(-counts[transport] * len(by_transport) // most)]
        for measurement, state in zip(series.measurements, series.states, strict=True)
        if state != MIXED and measurement.elapsed_ns.size
    ]


def _notes(run: Run, without_interval: Sequence[Point], curves: Sequence[MeasuredCurve]) -> Iterator[Note]:
    """The caveats that limit the findings."""
    from hockney import __version__

    if run.info.version != __version__:
        yield Note("another version", {"version": run.info.version, "this_version": __version__})
    if run.status in (RunStatus.KILLED, RunStatus.INTERRUPTED):
        how = "killed" if run.status is RunStatus.KILLED else "stopped"
        yield Note("ended early", {"how": how}, resume(run.id, run.info))
    elif run.status is RunStatus.RUNNING:
        yield Note("still running")
    elif run.launch_count == 1 and not all(series.is_exact for series in run.series):
        code = "imported" if run.info.is_imported else "one launch"
        yield Note(code, fix=more_launches(run.id, run.info, LAUNCHES_WANTED))
    if without_interval:
        yield Note("points without interval", {"points": len(without_interval), "example": str(without_interval[0])})
    failed = [series for series in run.series if series.status is PointStatus.FAILED]
    if failed:
        facts = {"points": len(failed), "example": str(failed[0].point), "why": failed[0].reason or "unknown"}
        yield Note("failed points", facts)
    short = [
        series.point
        for series, measurements in run.summaries()
        if series.point.is_stream
        and any(each.batch * each.definition.divisor < STREAM_EVENTS_MIN for each, _ in measurements if each.samples)
    ]
    if short:
        yield Note("short streams", {"streams": len(short), "example": str(short[0])})
    places = sorted({f"{curve.transport}, {curve.ranks} ranks" for curve in curves if curve.oversubscribed})
    if places:
        yield Note("oversubscribed", {"places": places})
