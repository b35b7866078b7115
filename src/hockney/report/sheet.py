"""The data sheet: what a machine's transports do, each figure with its state and floor, and what each layer adds.

Values only; cli/sheet.py shows them. A figure without an interval is not shown as a figure: the cell says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hockney.analysis.explain.curve import started_once
from hockney.analysis.explain.finding import relative
from hockney.analysis.explain.layers import Layer, layer_at, layers_below, over_floor
from hockney.model import NOT_MEASURED, Launch, Point, PointStatus, Warning_
from hockney.results.runs import Run, Series
from hockney.stats import LAUNCHES, ONE_LAUNCH, Figure, place, time_of
from hockney.stats.fit import Estimate, Segment, SegmentFit, fit_segments

LATENCY_BYTES = 8
# What stream and two-way are figures of; a run may have been asked for other sizes and options.
_STREAM_BYTES = (1 << 16, 1 << 20)
_STREAM_OPTIONS = (("window", "16"),)


@dataclass(frozen=True)
class Value(Estimate):
    """One figure of the sheet, in ns, bytes/s or bytes, as the column says.

    `over` is what the interval is over: "launches", or "within one launch" where one alone saw that state.
    """

    over: str
    at_bytes: int | None = None  # the message size at which a best rate was found


@dataclass(frozen=True)
class Row:
    """One transport in one state of the machine. None: not measured, or too few measurements for an interval.

    r_inf and n_1/2 are of the last straight segment of the ping-pong's curve, from `fit_from_bytes` to
    `fit_to_bytes`; None where it does not tell them. `fit_rms` is what it misses.
    """

    transport: str
    library: str
    state: str
    floor_ns: float | None
    latency_ns: Value | None
    stream_bytes_per_s: Value | None
    twoway_bytes_per_s: Value | None
    barrier_ns: Value | None
    r_inf_bytes_per_s: Value | None
    n_half_bytes: Value | None
    fit_from_bytes: int | None
    fit_to_bytes: int | None
    fit_rms: float | None
    oversubscribed: bool

    @property
    def values(self) -> tuple[Value | None, ...]:
        """Its figures, as the columns stand."""
        rates = self.stream_bytes_per_s, self.twoway_bytes_per_s
        return self.latency_ns, *rates, self.barrier_ns, self.r_inf_bytes_per_s, self.n_half_bytes


@dataclass(frozen=True)
class Failure:
    """Points of one transport that were not measured, for one reason."""

    transport: str
    status: PointStatus
    points: int
    reason: str


@dataclass(frozen=True)
class Sheet:
    """All of it. `harness_ns` is what the loop itself costs per repetition. `states` are in order of their floor.

    `started_once` says what the intervals do not hold where every job was started once; else it is empty, and
    `starts` is how often they were. `also_ready` are transports that were ready too, and are not in the run.
    """

    run_id: int
    rows: tuple[Row, ...]
    layers: tuple[Layer, ...]
    harness_ns: Value | None
    clock_ns: float | None
    started_once: str
    starts: int
    states: tuple[tuple[str, float | None, int], ...]  # name, floor, measurements
    warnings: tuple[Warning_, ...]
    failures: tuple[Failure, ...]
    also_ready: tuple[str, ...]


def make_sheet(run: Run) -> Sheet:
    """The data sheet of a run that holds the patterns of the suite `quick`, or some of them."""
    figures = {series: [figure for figure in series.figures() if figure.state != "mixed"] for series in run.series}
    transports = list(dict.fromkeys(series.point.transport for series in run.series))
    libraries = {launch.transport: launch for launch in run.launches.values()}
    rows: list[Row] = []
    for transport in transports:
        if transport == "null":
            continue
        own = {series: found for series, found in figures.items() if series.point.transport == transport}
        launch = libraries.get(transport)
        for state, floor_ns in _states_of(own.values()):
            row = _row(transport, launch, state, floor_ns, own)
            if any((row.latency_ns, row.stream_bytes_per_s, row.twoway_bytes_per_s, row.barrier_ns)):
                rows.append(row)
    harness = [_value(f) for s, found in figures.items() if s.point.transport == "null" for f in found]
    clocks = [launch.clock_ns for launch in run.launches.values()]
    return Sheet(
        run_id=run.id,
        rows=tuple(rows),
        layers=tuple(_layers(rows, _floors(run.series))),
        harness_ns=_harness(harness),
        clock_ns=min(clocks, default=None),
        started_once=started_once(run),
        starts=len({launch.index for launch in run.launches.values()}),
        states=tuple(_measurements_by_state(run.series)),
        warnings=run.warnings,
        failures=(*_failures(run.series), *_too_short(run.series, rows)),
        also_ready=tuple(name for name in run.info.facts.get("transports", ()) if name not in ("null", *transports)),
    )


def _harness(found: Sequence[Value | None]) -> Value | None:
    """A whole repetition: the ping-pong's figure is half of one. The harness waits for nobody, so any state will do."""
    half = next((value for value in found if value is not None), None)
    return None if half is None else Value(2 * half.value, 2 * half.low, 2 * half.high, half.over)


def _states_of(found: Iterable[Sequence[Figure]]) -> list[tuple[str, float | None]]:
    """States in which something has an interval, by floor."""
    states: dict[str, list[float]] = {}
    for figures in found:
        for figure in figures:
            if figure.low_ns is not None:
                states.setdefault(figure.state, []).append(figure.floor_ns or 0.0)
    ordered = sorted(states.items(), key=lambda item: place(item[0], item[1][0]))
    return [(name, floors[0] or None) for name, floors in ordered]


def _measurements_by_state(series: Iterable[Series]) -> list[tuple[str, float | None, int]]:
    count = Counter((state.name, state.floor_ns) for one in series for state in one.states)
    ordered = sorted(count.items(), key=lambda item: place(*item[0]))
    return [(name, floor_ns, measurements) for (name, floor_ns), measurements in ordered]


def _row(
    transport: str,
    launch: Launch | None,
    state: str,
    floor_ns: float | None,
    own: Mapping[Series, Sequence[Figure]],
) -> Row:
    curve: dict[int, Value] = {}
    rates: dict[str, dict[int, Value]] = {}
    latency: Value | None = None
    barrier: Value | None = None
    for series, figures in own.items():
        figure = next((f for f in figures if f.state == state and f.low_ns is not None), None)
        if figure is None:
            continue
        time = _value(figure)
        if series.point.pattern == "pingpong" and time is not None:
            curve.setdefault(series.point.bytes, time)
            latency = time if series.point.bytes == LATENCY_BYTES else latency
        elif series.point.pattern == "barrier":
            barrier = time
        elif _is_stream(series.point) and (rate := _rate(figure, series.point.bytes)) is not None:
            rates.setdefault(series.point.pattern, {})[series.point.bytes] = rate
    measured = [series.point for series in own if series.status not in NOT_MEASURED]
    line = _last_line(curve, {point.bytes for point in measured if point.pattern == "pingpong"})
    streams = [series.point for series in own if _is_stream(series.point)]
    return Row(
        transport=transport,
        library=launch.library if launch else "",
        state=state,
        floor_ns=floor_ns,
        latency_ns=latency,
        stream_bytes_per_s=_best(rates.get("oneway", {}), "oneway", streams),
        twoway_bytes_per_s=_best(rates.get("twoway", {}), "twoway", streams),
        barrier_ns=barrier,
        r_inf_bytes_per_s=_fitted(line.r_inf_bytes_per_s, line, curve) if line else None,
        n_half_bytes=_fitted(line.n_half_bytes, line, curve) if line else None,
        fit_from_bytes=line.first_bytes if line else None,
        fit_to_bytes=line.last_bytes if line else None,
        fit_rms=line.relative_rms if line else None,
        oversubscribed=launch is not None and launch.oversubscribed,
    )


def _is_stream(point: Point) -> bool:
    return point.bytes in _STREAM_BYTES and point.options == _STREAM_OPTIONS


def _best(rates: Mapping[int, Value], pattern: str, streams: Iterable[Point]) -> Value | None:
    """The best of the sizes asked for; None where this state lacks one of them, which may be the best."""
    sizes = {point.bytes for point in streams if point.pattern == pattern}
    return max(rates.values(), key=lambda rate: rate.value) if sizes and sizes == rates.keys() else None


def _last_line(curve: Mapping[int, Value], measured_bytes: Collection[int]) -> Segment | None:
    """The straight segment of the longest messages; None where this state lacks one of them, or a size in between.

    A line that bridges sizes whose times are not known in this state, or lie off it, may bridge a switch, too.
    """
    fit = fit_segments([*curve], [time.value for time in curve.values()], [relative(time) for time in curve.values()])
    if not isinstance(fit, SegmentFit):
        return None
    line = fit.segments[-1]
    is_whole = all(size in curve for size in measured_bytes if size >= line.first_bytes)
    return line if is_whole and not fit.is_ambiguous(line) else None


def _value(figure: Figure) -> Value | None:
    if figure.low_ns is None or figure.high_ns is None:
        return None
    return Value(figure.value_ns, figure.low_ns, figure.high_ns, figure.interval_over)


def _rate(figure: Figure, at_bytes: int) -> Value | None:
    rate, low, high = figure.rate_bytes_per_s, figure.rate_low_bytes_per_s, figure.rate_high_bytes_per_s
    if rate is None or low is None or high is None:
        return None
    return Value(rate, low, high, figure.interval_over, at_bytes)


def _fitted(estimate: Estimate | None, line: Segment, curve: Mapping[int, Value]) -> Value | None:
    """Of a line through times of these sizes; None where the interval holds zero: it tells nothing."""
    if estimate is None or estimate.low <= 0:
        return None
    overs = {time.over for size, time in curve.items() if line.first_bytes <= size <= line.last_bytes}
    return Value(estimate.value, estimate.low, estimate.high, LAUNCHES if overs == {LAUNCHES} else ONE_LAUNCH)


def _floors(series: Iterable[Series]) -> dict[str, Value]:
    """By state, the floor beside the latency of shm with its interval.

    The very measurements that it is the floor of.
    """
    found: dict[str, list[tuple[float, int]]] = {}
    for one in series:
        if (one.point.transport, one.point.pattern, one.point.bytes) == ("shm", "pingpong", LATENCY_BYTES):
            for measurement, state in zip(one.measurements, one.states, strict=True):
                if measurement.floor_ns is not None:
                    found.setdefault(state.name, []).append((sum(measurement.floor_ns) / 2, measurement.launch_id))
    floors = {}
    for name, of_measurements in found.items():
        floor, over = time_of(
            [floor_ns for floor_ns, _ in of_measurements], [launch_id for _, launch_id in of_measurements]
        )
        if floor.low is not None and floor.high is not None:
            floors[name] = Value(floor.value, floor.low, floor.high, over)
    return floors


def _layers(rows: Sequence[Row], floors: Mapping[str, Value]) -> Iterable[Layer]:
    """Within a state only, and of no scheduling times."""
    able = [row for row in rows if row.latency_ns is not None and not row.oversubscribed]
    latency = {(row.transport, row.state): row for row in able}
    for (transport, state), row in latency.items():
        own = row.latency_ns
        assert own is not None
        floor = floors.get(state)
        if transport == "shm" and floor is not None:
            yield over_floor(LATENCY_BYTES, state, own, floor)
        for lower in layers_below(transport):
            base = latency.get((lower, state))
            if base is not None and base.latency_ns is not None:
                yield layer_at(LATENCY_BYTES, transport, lower, state, own, base.latency_ns)


def _too_short(series: Iterable[Series], rows: Iterable[Row]) -> Iterable[Failure]:
    """Transports that were measured, and whose measurements are too few in each state for any interval."""
    shown = {row.transport for row in rows} | {"null"}
    for transport, points in Counter(one.point.transport for one in series if one.measurements).items():
        if transport not in shown:
            reason = "there were too few measurements in any one state for an interval; more time helps (--time)"
            yield Failure(transport, PointStatus.BUDGET, points, reason)


def _failures(series: Iterable[Series]) -> Iterable[Failure]:
    count: Counter[tuple[str, PointStatus, str]] = Counter()
    for one in series:
        if one.status in (PointStatus.FAILED, PointStatus.SKIPPED):
            count[one.point.transport, one.status, one.reason or "no reason is known"] += 1
    for (transport, status, reason), points in count.items():
        yield Failure(transport, status, points, reason)
