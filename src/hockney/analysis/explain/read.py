"""A stored run as a Reading. It is read once, without samples: the medians of the measurements are stored."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hockney.analysis.explain.curve import CurvePoint, JobKey, MeasuredCurve, Options, Reading
from hockney.analysis.explain.fits import loggp_of
from hockney.analysis.finding import Note, as_warned, load_of
from hockney.analysis.impact import impacts_of
from hockney.analysis.pair_classes import ClassOf, classes_of, pair_of
from hockney.analysis.pairs import Summarized, pair_matrices, usable
from hockney.analysis.repeat import further, longer, resume
from hockney.errors import HockneyError
from hockney.model import Measurement, Point, PointStatus, RunStatus
from hockney.results.figures import Figure
from hockney.results.runs import Run, Series
from hockney.results.store import MeasurementSummary
from hockney.stats import MIXED, ONE_LAUNCH, State, median
from hockney.stats.fit import Estimate


def read_run(run: Run) -> Reading:
    """Read a run for the detectors. Raises HockneyError if it has no figure, or none with an interval.

    Each transport, at each number of ranks, is seen in one state: figures of different states are not compared. A
    point without an interval in that state is on no curve.
    """
    summarized = [(series, members) for series, members in usable(run) if not series.is_harness and series.counts]
    fix = resume(run.id, run.info)
    matrices = tuple(pair_matrices(run))  # between hosts they have intervals where no curve has one
    is_known = any(time.low is not None for matrix in matrices for time in matrix.times.values())
    if not summarized and not is_known:
        reasons = [series.reason for series in run.series if series.reason]
        why = reasons[0] if reasons else "it has no measurement of a transport"
        none = f"{run.name} has no figures, so there is nothing to explain: {why}"
        raise HockneyError(none, fix=None if reasons else fix)
    oversubscribed = {(launch.transport, launch.ranks) for launch in run.launches.values() if launch.oversubscribed}
    shown = [series.shown for series, _ in summarized if series.shown is not None]
    known = {each.series for each in shown if _is_for_curves(each) and each.state == run.state_of(*each.series.job)}
    curves = curves_of(each for each in shown if each.series in known)
    without_interval = [each.point for each in shown if each.series not in known]
    fitting = [
        (series, members)
        for series, members in summarized
        if series.job not in oversubscribed and not run.info.is_imported
    ]
    class_of = classes_of(run)
    by_class = tuple(_by_class(run, [series for series, _ in fitting], class_of))
    if not curves and not by_class and not is_known:
        none = f"no figure of {run.name} has a confidence interval in one machine state yet"
        raise HockneyError(none, fix=longer(run) or fix)
    return Reading(
        subject=run.name,
        run=run.id,
        curves=tuple(curves),
        notes=tuple(_notes(run, without_interval, curves)),
        by_class=by_class,
        floors=_floors(summarized, run.frame.states),
        libraries=run.libraries,
        launchers={launch.transport: launch.argv[0] for launch in run.launches.values() if launch.argv},
        facts=run.facts,
        warnings=run.warnings,
        plan=run.info.plan,
        impacts=impacts_of(run),
        samples=functools.partial(_samples, fitting),
        measured=[(series.point, each) for series, pairs in fitting for each, _ in pairs],
        class_of=class_of,
        matrices=matrices,
        loggp=tuple(loggp_of(fitting, class_of)),
    )


def curves_of(figures: Iterable[Figure]) -> list[MeasuredCurve]:
    """The curves of those figures that have an interval in one state, in the order of the plan."""
    alike: dict[tuple[str, str, int, Options, str], list[Figure]] = {}
    for figure in filter(_is_for_curves, figures):
        point = figure.point
        key = point.transport, point.pattern, point.ranks, point.options, figure.state
        alike.setdefault(key, []).append(figure)
    return [
        MeasuredCurve(
            *key,
            points=tuple(_curve_point(each) for each in sorted(members, key=lambda each: each.point.bytes)),
            oversubscribed=any(each.is_oversubscribed for each in members),
            algorithm=members[-1].definition.algorithm,
        )
        for key, members in alike.items()
    ]


def _is_for_curves(figure: Figure) -> bool:
    """Whether its time has bounds to fit to, above 0: an interval, or the digits of an imported one."""
    return (figure.has_interval or figure.is_imported) and figure.time.low > 0 and not figure.is_mixed


def _curve_point(figure: Figure) -> CurvePoint:
    return CurvePoint(figure.point.bytes, figure.time, figure.payload_bytes or None, figure.measurements)


def _by_class(run: Run, members: Iterable[Series], class_of: ClassOf) -> Iterator[MeasuredCurve]:
    """The curves of pairs of ranks by class: the median of the pairs, with an interval that encloses all of theirs."""
    curves: dict[tuple[str, str, int, Options, str, str], dict[int, list[CurvePoint]]] = {}
    for series in members:
        point = series.point
        if point.traits.links != "ends":
            continue
        options = tuple(option for option in point.options if option[0] not in ("source", "target"))
        by_class: dict[str, list[tuple[MeasurementSummary, State]]] = {}
        for pair in series.pairs:
            by_class.setdefault(class_of(pair_of(point), pair[0].launch_id), []).append(pair)
        for pair_class, pairs in by_class.items():
            for figure in run.frame.rows_of(series, pairs):
                if _is_for_curves(figure):
                    key = point.transport, point.pattern, point.ranks, options, figure.state, pair_class
                    curves.setdefault(key, {}).setdefault(point.bytes, []).append(_curve_point(figure))
    for key, sizes in curves.items():
        points = tuple(
            replace(pairs[0], time_ns=Estimate.of_all([pair.time_ns for pair in pairs]), measurements=())
            for _, pairs in sorted(sizes.items())
        )
        count = sum(len(pair.measurements) for pairs in sizes.values() for pair in pairs)
        yield MeasuredCurve(*key[:5], points, pair_class=key[5], n_measurements=count)


def _floors(
    summarized: Iterable[tuple[Series, Summarized]], states: Mapping[JobKey, str | None]
) -> dict[JobKey, Estimate]:
    """The floor of each job: that of its state, with an interval that encloses the floors seen by each transport."""
    seen_ns: dict[JobKey, list[float]] = {}
    floor_ns: dict[str | None, float] = {}
    for series, measurements in summarized:
        job = series.job
        for measurement, state in measurements:
            probe = measurement.probe
            if probe.floor_ns and probe.reference is None and state.floor_ns and state.name == states.get(job):
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
    from hockney.version import __version__

    for warning in run.warnings:
        if warning.kind in ("cma", "shm", "memlock"):  # limits that long messages go round
            yield Note("warned", {"cause": warning.cause}, as_warned(warning.remedy))
    if run.info.version != __version__:
        yield Note("another version", {"version": run.info.version, "this_version": __version__})
    if run.status in (RunStatus.KILLED, RunStatus.STOPPED):
        yield Note("ended early", {"how": run.status.value}, resume(run.id, run.info))
    elif run.status is RunStatus.RUNNING:
        yield Note("still running")
    elif run.info.is_imported and run.launch_count == 1:
        yield Note("imported", fix=further(run))
    elif any(figure.interval_over == ONE_LAUNCH for figure in run.shown):
        yield Note("one launch", fix=further(run))
    if without_interval:
        facts = {"points": len(without_interval), "example": str(without_interval[0])}
        is_most = 2 * len(without_interval) > len(run.shown)
        yield Note("points without interval", facts, longer(run) if is_most else None)
    failed = [series for series in run.series if series.status is PointStatus.FAILED]
    if failed:
        facts = {"points": len(failed), "example": str(failed[0].point), "why": failed[0].reason or "unknown"}
        yield Note("failed points", facts)
    good = (series for series in run.series if series.status is not PointStatus.FAILED and not series.is_harness)
    short = [series.point for series in good if any(figure.is_short for figure in series.figures())]
    if short:
        busy = load_of(run.warnings)
        facts = {"streams": len(short), "example": str(short[0]), **({"busy": busy.cause} if busy else {})}
        yield Note("short streams", facts)
    shared = sorted({f"{curve.transport}, {curve.ranks} ranks" for curve in curves if curve.oversubscribed})
    if shared:
        yield Note("oversubscribed", {"places": shared})
