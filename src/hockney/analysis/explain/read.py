"""A stored run as a Reading. It is read once, without samples: the medians of the measurements are stored."""

from __future__ import annotations

import functools
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hockney.analysis.estimates import of_all
from hockney.analysis.explain.curve import ClassCurve, Curve, CurvePoint, Key, Options, Place, Reading
from hockney.analysis.explain.loggp import loggp_of
from hockney.analysis.explain.pairs import classes_of, pair_matrices, pair_of
from hockney.analysis.finding import Note
from hockney.analysis.repeat import LAUNCHES, more_launches, resume
from hockney.errors import HockneyError
from hockney.model import Measurement, Point, PointStatus, RunStatus
from hockney.results.runs import Run, Series, main_state
from hockney.results.store import MeasurementSummary
from hockney.stats import MIXED, State, median, time_of
from hockney.stats.figures import STREAM_EVENTS_MIN
from hockney.stats.fit import Estimate

Summarized = list[tuple[MeasurementSummary, State]]
_ENDED_EARLY = {RunStatus.KILLED: "killed", RunStatus.INTERRUPTED: "interrupted"}


def read_run(run: Run) -> Reading:
    """Raises HockneyError where the run has no figure, or none with an interval.

    Each transport, at each number of ranks, is seen in one state: figures of different states are not compared. A
    point without an interval in that state is on no curve.
    """
    summarized = [
        (series, [(one, state) for one, state in measurements if state != MIXED and one.median_ns is not None])
        for series, measurements in run.summaries()
        if series.status is not PointStatus.FAILED and measurements  # samples of a failed point may be wrong
    ]
    subject = f"run {run.id}" + (f" ({run.label})" if run.label else "")
    fix = resume(run.id, run.info)
    continued = f"continue it with `{shlex.join(fix.argv)}`" if fix.argv else fix.text.lower()
    if not summarized:
        reasons = Counter(series.reason for series in run.series if series.reason)
        why = reasons.most_common(1)[0][0] if reasons else f"it has no measurement; {continued}"
        raise HockneyError(f"{subject} has no figures, so there is nothing to explain: {why}")
    summarized = [(series, measurements) for series, measurements in summarized if series.point.transport != "null"]
    if not summarized:
        raise HockneyError(f"{subject} measured only the harness (transport null), so there is nothing to explain")
    states = _states(summarized)
    oversubscribed = {(launch.transport, launch.ranks) for launch in run.launches.values() if launch.oversubscribed}
    curves, without_interval = _curves(summarized, states, oversubscribed)
    if not curves:
        raise HockneyError(
            f"no figure of {subject} has a confidence interval yet: measure longer (--time), or {continued}"
        )
    fitting = [(series, own) for series, own in summarized if _place(series) not in oversubscribed]
    return Reading(
        subject=subject,
        curves=tuple(curves),
        notes=tuple(_notes(run, without_interval, curves)),
        by_class=tuple(_by_class(run, fitting)),
        floors=_floors(summarized, states),
        libraries={launch.transport: launch.library for launch in run.launches.values()},
        launchers={launch.transport: launch.argv[0] for launch in run.launches.values() if launch.argv},
        facts=run.facts,
        warnings=run.warnings,
        grains=run.info.plan.get("grains", {}),
        refined_s=run.info.plan["time_s"] if run.info.plan.get("exact") else None,
        samples=functools.partial(_samples, fitting),
        class_of=classes_of(run),
        matrices=tuple(pair_matrices(run)),
        loggp=tuple(loggp_of(run)),
    )


def _place(series: Series) -> Place:
    return series.point.transport, series.point.ranks


def _states(summarized: Iterable[tuple[Series, Summarized]]) -> dict[Place, str]:
    """The state that a table of each place would show."""
    counts: dict[Place, list[Counter[str]]] = {}
    for series, measurements in summarized:
        counts.setdefault(_place(series), []).append(Counter(state.name for _, state in measurements))
    states = {place: main_state(points) for place, points in counts.items()}
    return {place: state for place, state in states.items() if state is not None}


def _curves(
    summarized: Iterable[tuple[Series, Summarized]], states: Mapping[Place, str], oversubscribed: set[Place]
) -> tuple[list[Curve], list[Point]]:
    """The curves in the order of the plan, and the points without an interval in their state."""
    curves: dict[Key, list[tuple[CurvePoint, list[MeasurementSummary]]]] = {}
    without_interval: list[Point] = []
    for series, measurements in summarized:
        point = series.point
        in_state = [one for one, state in measurements if state.name == states.get(_place(series))]
        # A definition changes only where a later version resumes a run.
        in_state = [one for one in in_state if one.definition == in_state[-1].definition]
        curve_point = _curve_point(point.bytes, in_state)
        if curve_point is None:
            without_interval.append(point)
        else:
            key = (point.transport, point.pattern, point.ranks, point.options)
            curves.setdefault(key, []).append((curve_point, in_state))
    found = []
    for key, members in curves.items():
        members.sort(key=lambda member: member[0].bytes)
        place = key[0], key[2]
        found.append(
            Curve(
                *key,
                state=states[place],
                points=tuple(point for point, _ in members),
                oversubscribed=place in oversubscribed,
                counters=_counters(one for _, in_state in members for one in in_state),
                algorithm=members[-1][1][-1].definition.algorithm,
            )
        )
    return found, without_interval


def _curve_point(size_bytes: int, measurements: Sequence[MeasurementSummary]) -> CurvePoint | None:
    """None where there are too few measurements for an interval, or it reaches 0: the time is below the clock's."""
    if not measurements:
        return None
    medians_ns = [one.median_ns for one in measurements if one.median_ns is not None]
    time = time_of(medians_ns, [one.launch_id for one in measurements])[0].estimate
    definition = measurements[0].definition
    payload_bytes = definition.bytes_per_rep / definition.divisor or None
    return None if time is None or time.low <= 0 else CurvePoint(size_bytes, time, payload_bytes, measurements)


def _counters(measurements: Iterable[MeasurementSummary]) -> dict[str, tuple[float, ...]]:
    """The sums of what the measurements counted."""
    sums: dict[str, tuple[float, ...]] = {}
    for measurement in measurements:
        for name, values in measurement.counters.items():
            before = sums.get(name, (0.0,) * len(values))
            sums[name] = tuple(map(sum, zip(before, values, strict=True)))
    return sums


def _by_class(run: Run, summarized: Iterable[tuple[Series, Summarized]]) -> Iterator[ClassCurve]:
    """The curves of pairs of ranks by what they share: the median of the pairs, enclosing the intervals of all."""
    class_of = classes_of(run)
    found: dict[tuple[str, str, int, Options, str, str], dict[int, list[CurvePoint]]] = {}
    for series, measurements in summarized:
        point = series.point
        if point.traits.links != "ends" or not measurements:
            continue
        options = tuple(option for option in point.options if option[0] not in ("source", "target"))
        pair, definition = pair_of(point), measurements[-1][0].definition
        by_class: dict[tuple[str, str], list[MeasurementSummary]] = {}
        for measurement, state in measurements:
            if measurement.definition == definition:
                by_class.setdefault((class_of(pair, measurement.launch_id), state.name), []).append(measurement)
        for (pair_class, state_name), own in by_class.items():
            curve_point = _curve_point(point.bytes, own)
            if curve_point is not None:
                key = (point.transport, point.pattern, point.ranks, options, pair_class, state_name)
                found.setdefault(key, {}).setdefault(point.bytes, []).append(curve_point)
    for (transport, pattern, ranks, options, pair_class, state_name), sizes in found.items():
        points = tuple(_of_pairs(sizes[size]) for size in sorted(sizes))
        count = sum(len(member.measurements) for members in sizes.values() for member in members)
        yield ClassCurve(Curve(transport, pattern, ranks, options, state_name, points), pair_class, count)


def _of_pairs(members: Sequence[CurvePoint]) -> CurvePoint:
    if len(members) == 1:
        return members[0]
    return replace(members[0], time_ns=of_all([member.time_ns for member in members]), measurements=())


def _floors(summarized: Iterable[tuple[Series, Summarized]], states: Mapping[Place, str]) -> dict[Place, Estimate]:
    """The floor of each place, from the measurements of its shortest ping-pong of 64 B or less."""
    short = [
        (series.point.bytes, bool(series.point.options), _place(series), measurements)
        for series, measurements in summarized
        if series.point.pattern == "pingpong" and 0 < series.point.bytes <= 64
    ]
    floors: dict[Place, Estimate] = {}
    for _, _, place, measurements in sorted(short, key=lambda one: one[:2]):
        values_ns = [
            sum(one.signs.floor_ns) / 2
            for one, state in measurements
            if one.signs.floor_ns is not None and one.signs.reference is None and state.name == states.get(place)
        ]
        floor = median(values_ns).estimate if values_ns else None
        if floor is not None and floor.low > 0:
            floors.setdefault(place, floor)
    return floors


def _samples(
    summarized: Iterable[tuple[Series, Summarized]], most: int, patterns: Sequence[str] = ()
) -> list[tuple[Measurement, State]]:
    """Whole series, evenly chosen from each transport, until they have about `most` measurements."""
    by_transport: dict[str, list[tuple[Series, int]]] = {}
    for series, measurements in summarized:
        if measurements and (not patterns or series.point.pattern in patterns):
            by_transport.setdefault(series.point.transport, []).append((series, len(measurements)))
    chosen: list[Series] = []
    for members in by_transport.values():
        step = -(-sum(count for _, count in members) * len(by_transport) // most)
        chosen += [series for series, _ in members[::step]]
    return [
        (measurement, state)
        for series in chosen
        for measurement, state in zip(series.measurements, series.states, strict=True)
        if state != MIXED and measurement.elapsed_ns.size
    ]


def one_launch_note(run: Run) -> Note | None:
    """That the intervals of a run cover one launch only; None for a run of several."""
    if len({launch.index for launch in run.launches.values()}) != 1:
        return None
    return Note("one launch", fix=more_launches(run.id, run.info, LAUNCHES))


def _is_short(series: Series, measurements: Iterable[tuple[MeasurementSummary, State]]) -> bool:
    """Whether samples of a stream hold fewer than 8 events."""
    events = (one.batch * one.definition.divisor for one, _ in measurements if one.samples)
    return series.point.is_stream and min(events, default=STREAM_EVENTS_MIN) < STREAM_EVENTS_MIN


def _notes(run: Run, without_interval: Sequence[Point], curves: Sequence[Curve]) -> Iterator[Note]:
    """What limits the findings."""
    from hockney import __version__

    if run.info.version != __version__:
        yield Note("another version", {"version": run.info.version, "this_version": __version__})
    one_launch = one_launch_note(run)
    if run.status in _ENDED_EARLY:
        yield Note("ended early", {"how": _ENDED_EARLY[run.status]}, resume(run.id, run.info))
    elif run.status is RunStatus.RUNNING:
        yield Note("still running")
    elif one_launch is not None:
        yield one_launch
    if without_interval:
        yield Note("points without interval", {"points": len(without_interval), "example": str(without_interval[0])})
    failed = [series for series in run.series if series.status is PointStatus.FAILED]
    if failed:
        facts = {"points": len(failed), "example": str(failed[0].point), "why": failed[0].reason or "unknown"}
        yield Note("failed points", facts)
    short = [series.point for series, measurements in run.summaries() if _is_short(series, measurements)]
    if short:
        yield Note("short streams", {"streams": len(short), "example": str(short[0])})
    places = sorted({f"{curve.transport}, {curve.ranks} ranks" for curve in curves if curve.oversubscribed})
    if places:
        yield Note("oversubscribed", {"places": places})
