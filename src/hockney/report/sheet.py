"""The data sheet: one row per transport in one machine state. Values only; cli/sheet.py prints them.

`COLUMNS` is the list of its columns. A record there is complete, except for its key in docs/json.md.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hockney.analysis.explain.layers import Layer, layer_at
from hockney.model import NOT_MEASURED, Definition, PointStatus, RunInfo, Warning_
from hockney.report.names import placements, plain_names
from hockney.results.placement import used_interfaces
from hockney.results.runs import Run, Series, arrived_share, summary_time, table_state
from hockney.results.store import MeasurementSummary
from hockney.results.traits import transport_traits
from hockney.stats import BETWEEN_LAUNCHES, ONE_LAUNCH, State, place, rate_bytes_per_s
from hockney.stats.figures import STREAM_EVENTS_MIN
from hockney.stats.fit import Segment, SegmentFit, fit_segments
from hockney.stats.interval import Estimate
from hockney.units import format_ns, format_rate

NOTHING = "–"
MARKS = {
    NOTHING: "not enough data",
    "~": "known to worse than ±25 %",
    "*": "more ranks than CPUs, so these are scheduling times",
}
_FORMATS: Mapping[str, Callable[[float], str]] = {
    "ns": format_ns,
    "bytes/s": format_rate,
    "bytes": lambda value: format_rate(value).removesuffix("/s"),
}
_LATENCY_BYTES = 8
_STREAM_OPTIONS = (("window", "16"),)
_OPTIONS: Mapping[str, tuple[tuple[str, str], ...]] = {  # of the patterns that it shows
    "pingpong": (),
    "barrier": (),
    "oneway": _STREAM_OPTIONS,
    "twoway": _STREAM_OPTIONS,
}
Members = list[tuple[Series, list[tuple[MeasurementSummary, State]]]]  # of a transport


@dataclass(frozen=True)
class Value(Estimate):
    """A value with its 95 % interval, in the unit of its column.

    `over` is the variation that the interval covers: "launches" or "within one launch". `at_bytes` is the size of a
    best rate. `is_short`: a stream with fewer than 8 events per sample. Without a confidence interval, the bounds are 0
    and infinity.
    """

    over: str
    at_bytes: int | None = None
    is_short: bool = False

    @property
    def has_interval(self) -> bool:
        return math.isfinite(self.high)


_Figure = tuple[Value, Definition, float]  # a time, and the share of the messages that arrived


class TransportFigures:
    """The figures of one transport in one machine state, from stored medians: no samples are read.

    `or_most`: where a point has none in it, those in the state with most of its measurements.
    """

    def __init__(self, members: Members, state: str, *, or_most: bool = False) -> None:
        self._figures: dict[Series, _Figure | None] = {}
        for series, measurements in members:
            if _OPTIONS.get(series.point.pattern) == series.point.options:
                counts = Counter(of.name for _, of in measurements)
                most = max(counts, key=lambda name: counts[name], default=state)
                wanted = most if or_most and not counts[state] else state
                self._figures[series] = _figure(series, [each for each, of in measurements if of.name == wanted])

    def time_ns(self, pattern: str, size: int = 0) -> Value | None:
        """The time of a pattern."""
        return self._times(pattern).get(size)

    def best_rate_bytes_per_s(self, pattern: str) -> Value | None:
        """The better of two sizes with 16 messages in flight; None where one has no figure, as it may be the better.

        A size that the transport cannot send does not count. If it can send neither, the rate is that of 32 KiB.
        """
        figures = [
            (series.point.bytes, figure)
            for series, figure in self._figures.items()
            if series.point.pattern == pattern and series.status is not PointStatus.SKIPPED
        ]
        sizes = {size for size, _ in figures} & {1 << 16, 1 << 18, 1 << 20} or {1 << 15}
        rates = [None if figure is None else _rate(*figure, size) for size, figure in figures if size in sizes]
        known = [rate for rate in rates if rate is not None]
        return max(known, key=lambda rate: rate.value, default=None) if len(known) == len(rates) else None

    def fitted(self, pick: Callable[[Segment], Estimate | None]) -> Value | None:
        """A parameter of `line`; None where its interval includes zero."""
        estimate = pick(self.line) if self.line else None
        if self.line is None or estimate is None or estimate.low <= 0:
            return None
        sizes = range(self.line.first_bytes, self.line.last_bytes + 1)
        overs = {time.over for size, time in self._times("pingpong").items() if size in sizes}
        over = BETWEEN_LAUNCHES if overs == {BETWEEN_LAUNCHES} else ONE_LAUNCH
        return Value(estimate.value, estimate.low, estimate.high, over)

    @functools.cached_property
    def line(self) -> Segment | None:
        """The straight segment of the ping-pong's longest messages.

        None where a size on it was not measured in this state: the line might bridge a protocol switch.
        """
        curve = {size: time for size, time in self._times("pingpong").items() if time.has_interval}
        fit = fit_segments([*curve], [time.value for time in curve.values()], [t.relative for t in curve.values()])
        if not isinstance(fit, SegmentFit):
            return None
        line = fit.segments[-1]
        points = (each.point for each in self._figures if each.status not in NOT_MEASURED)
        sizes = {point.bytes for point in points if point.pattern == "pingpong" and point.bytes >= line.first_bytes}
        return line if sizes <= curve.keys() and not fit.is_ambiguous(line) else None

    def _times(self, pattern: str) -> dict[int, Value]:
        """The times of a pattern, by ascending size; of several numbers of ranks, those of the first."""
        times: dict[int, Value] = {}
        for series, figure in self._figures.items():
            if figure is not None and series.point.pattern == pattern:
                times.setdefault(series.point.bytes, figure[0])
        return dict(sorted(times.items()))


def _figure(series: Series, measurements: Sequence[MeasurementSummary]) -> _Figure | None:
    """The figure of a series; None without a measurement that has a time."""
    known = [each for each in measurements if each.median_ns is not None]
    if not known:
        return None
    definition = known[0].definition
    interval, over = summary_time(known, exact=series.is_exact)
    time = interval.estimate or Estimate(interval.value, 0.0, math.inf)
    is_short = series.point.is_stream and known[0].batch * definition.divisor < STREAM_EVENTS_MIN
    return Value(time.value, time.low, time.high, over, None, is_short), definition, arrived_share(known)


def _rate(time: Value, definition: Definition, arrived: float, size: int) -> Value | None:
    times_ns = (time.value, time.high, time.low)
    rate, low, high = (rate_bytes_per_s(definition, time_ns, arrived) for time_ns in times_ns)
    return None if rate is None else Value(rate, low or 0.0, high or math.inf, time.over, size, time.is_short)


@dataclass(frozen=True)
class Column:
    """A column: `key` is its name in JSON, `unit` is "ns", "bytes/s" or "bytes", `pick` finds its value.

    `is_extra`: a terminal shows it with -v only, as more columns than six need a second part of the table.
    """

    title: str
    key: str
    unit: str
    definition: str
    pick: Callable[[TransportFigures], Value | None]
    is_extra: bool = False

    @property
    def is_fitted(self) -> bool:
        """Whether its values are parameters of a line, which are shown without an interval."""
        return self.key in ("r_inf_bytes_per_s", "n_half_bytes")

    def text(self, value: Value | None) -> str:
        """`1.83 us`; `~156 kB` of a fit known to worse than ±25 %."""
        if value is None:
            return NOTHING
        return "~" * (self.is_fitted and value.relative > 0.25) + _FORMATS[self.unit](value.value)


def marks_text(text: str, marks: Mapping[str, str] = MARKS) -> str:
    """The meaning of the marks in a text, in one sentence; empty without marks."""
    return "; ".join(f"{mark}: {meaning}" for mark, meaning in marks.items() if mark in text)


COLUMNS = (
    Column(
        "latency (8 B)", "latency_ns", "ns", "half a round trip of 8 B (pingpong)",
        lambda of: of.time_ns("pingpong", _LATENCY_BYTES),
    ),
    Column(
        "bandwidth", "bandwidth_bytes_per_s", "bytes/s",
        "the rate of 256 KiB (udp: 32 KiB) with 16 messages in flight (oneway)",
        lambda of: of.best_rate_bytes_per_s("oneway"),
    ),
    Column(
        "bidirectional", "bidirectional_bytes_per_s", "bytes/s",
        "the same with both ranks sending at once, the bytes of both counted (twoway)",
        lambda of: of.best_rate_bytes_per_s("twoway"),
    ),
    Column("barrier", "barrier_ns", "ns", "a barrier of two ranks (barrier)", lambda of: of.time_ns("barrier")),
    Column(
        "r_inf", "r_inf_bytes_per_s", "bytes/s",
        "the asymptotic rate of the last straight segment of pingpong's time over size",
        lambda of: of.fitted(lambda line: line.r_inf_bytes_per_s),
    ),
    Column(
        "n_1/2", "n_half_bytes", "bytes", "the size at which that segment reaches half of r_inf",
        lambda of: of.fitted(lambda line: line.n_half_bytes),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One transport in one machine state: `values` by the key of their column, None where there is not enough data.

    `placement` is where its ranks are, empty where the run has one placement only; `hosts`: the hosts of its ranks.

    `fit_from_bytes`, `fit_to_bytes` and `fit_rms` describe the segment that r_inf and n_1/2 come from.
    """

    transport: str
    name: str
    placement: str
    hosts: tuple[str, ...]
    library: str
    state: str
    floor_ns: float | None
    values: dict[str, Value | None]
    fit_from_bytes: int | None
    fit_to_bytes: int | None
    fit_rms: float | None
    oversubscribed: bool

    @property
    def is_between_hosts(self) -> bool:
        return len(set(self.hosts)) > 1

    @property
    def full_name(self) -> str:
        """The name with the placement."""
        return ", ".join(filter(None, (self.name, self.placement)))

    @property
    def has_interval(self) -> bool:
        return any(value is not None and value.has_interval for value in self.values.values())


@dataclass(frozen=True)
class Failure:
    """Points of one transport that have no figure, for one reason."""

    transport: str
    status: PointStatus
    points: int
    reason: str


@dataclass(frozen=True)
class StateCount:
    """A machine state of the run: its floor, and how many measurements saw it."""

    name: str
    floor_ns: float | None
    measurements: int


@dataclass(frozen=True)
class Network:
    """The reference of rows between hosts: half a round trip of 8 B through a socket, and the speed of interfaces.

    The speed is that of the fastest one with an address, on the host where it is lowest; None: unknown.
    """

    transport: str | None
    latency_ns: Value | None
    bytes_per_s: float | None


@dataclass(frozen=True)
class Sheet:
    """The whole sheet. `state` is the one machine state of its rows, or None.

    `harness_ns` is the cost of the measuring loop per repetition. `also_ready` are other transports that could run.
    `network` is the reference of rows between hosts, None without such rows.
    """

    run_id: int
    state: str | None
    rows: tuple[Row, ...]
    layers: tuple[Layer, ...]
    harness_ns: Value | None
    clock_ns: float | None
    launches_per_job: int
    states: tuple[StateCount, ...]
    warnings: tuple[Warning_, ...]
    failures: tuple[Failure, ...]
    network: Network | None
    also_ready: tuple[str, ...]

    @property
    def has_interval(self) -> bool:
        return any(row.has_interval for row in self.rows)


def make_sheet(run: Run, *, every_state: bool = False) -> Sheet:
    """The data sheet of a run of the suite `quick`, in the machine state that tables show or in every one.

    A transport appears without any interval only if it has none in any state.
    """
    by_transport: dict[str, Members] = {}
    for member in run.summaries():
        by_transport.setdefault(member[0].point.transport, []).append(member)
    harness = [
        member for name in run.harness for member in by_transport.pop(name, []) if member[0].point.pattern == "pingpong"
    ]
    where = placements(run.launches.values())
    groups: dict[str, list[Series]] = {}
    for transport, members in by_transport.items():
        groups.setdefault(where.get(transport, ""), []).extend(series for series, _ in members)
    chosen = {placement: table_state(members) for placement, members in groups.items()}
    states = _states(run)
    rows: list[Row] = []
    for transport, members in by_transport.items():
        names = (
            [each.name for each in states if each.name != "mixed"]
            if every_state
            else [chosen[where.get(transport, "")], table_state(series for series, _ in members)]
        )
        known = [
            row
            for name in dict.fromkeys(names)
            if name and (row := _row(run, transport, members, name, states, is_pure=every_state))
        ]
        known = [row for row in known if row.has_interval] or known[:1]
        rows += known if every_state else known[:1]
    shown = {row.state for row in rows}
    return Sheet(
        run_id=run.id,
        state=shown.pop() if len(shown) == 1 else None,
        rows=tuple(rows),
        layers=tuple(_layers(rows, run.facts)),
        harness_ns=_harness_ns(harness),
        clock_ns=min((launch.clock_ns for launch in run.launches.values()), default=None),
        launches_per_job=run.launch_count,
        states=states,
        warnings=run.warnings,
        failures=tuple(_failures(by_transport, [row for row in rows if row.has_interval])),
        network=_network(rows, run.info),
        also_ready=tuple(sorted({*run.facts.get("transports", ())} - {*run.harness, *by_transport})),
    )


def _states(run: Run) -> tuple[StateCount, ...]:
    """The states that measurements saw, from the nearest to the farthest."""
    count = Counter(
        (state.name, state.floor_ns)
        for series, of_series in run.summaries()
        for _, state in of_series
        if not series.is_harness
    )
    ordered = sorted(count.items(), key=lambda item: place(*item[0]))
    return tuple(StateCount(name, floor_ns, measurements) for (name, floor_ns), measurements in ordered)


def _row(
    run: Run, transport: str, members: Members, state: str, states: Iterable[StateCount], *, is_pure: bool
) -> Row | None:
    """None where no point of the table was measured in that state.

    Points that were measured in other states alone have a value without interval, unless the row `is_pure`.
    """
    figures = TransportFigures(members, state)
    values = {column.key: column.pick(figures) for column in COLUMNS}
    if not any(values.values()):
        return None
    if not is_pure:
        others = TransportFigures(members, state, or_most=True)
        for column in COLUMNS:
            if values[column.key] is None and not column.is_fitted and (value := column.pick(others)):
                values[column.key] = replace(value, low=0.0, high=math.inf)
    launches = run.launches.values()
    launch = next(launch for launch in launches if launch.transport == transport)
    line = figures.line
    return Row(
        transport=transport,
        name=plain_names(launches)[transport],
        placement=placements(launches)[transport],
        hosts=launch.hosts,
        library=launch.library,
        state=state,
        floor_ns=next((each.floor_ns for each in states if each.name == state), None),
        values=values,
        fit_from_bytes=line.first_bytes if line else None,
        fit_to_bytes=line.last_bytes if line else None,
        fit_rms=line.relative_rms if line else None,
        oversubscribed=launch.oversubscribed,
    )


def _harness_ns(members: Members) -> Value | None:
    """A whole repetition: the ping-pong's figure is half of one. The harness waits for nobody, so any state will do."""
    state = table_state(series for series, _ in members)
    half = TransportFigures(members, state).time_ns("pingpong", _LATENCY_BYTES) if state else None
    if half is None or not half.has_interval:
        return None
    return Value(2 * half.value, 2 * half.low, 2 * half.high, half.over)


def _layers(rows: Sequence[Row], facts: Mapping[str, Any]) -> Iterable[Layer]:
    """The time each transport adds to the one below it, in one state and not oversubscribed."""
    latency = {
        (row.transport, row.state): value
        for row in rows
        if not row.oversubscribed and (value := row.values["latency_ns"]) is not None and value.has_interval
    }
    is_between = {row.transport: row.is_between_hosts for row in rows}
    for (transport, state), upper in latency.items():
        traits = transport_traits(facts, transport)
        lower = traits.below_remote if is_between[transport] else traits.below
        below = latency.get((lower or "", state))
        if lower is not None and below is not None and is_between[lower] == is_between[transport]:
            yield layer_at(_LATENCY_BYTES, transport, lower, state, upper, below)


def _network(rows: Sequence[Row], info: RunInfo) -> Network | None:
    """The socket with the least latency between hosts, and the slowest host's speed."""
    between = [row for row in rows if row.is_between_hosts]
    if not between:
        return None
    sockets = [
        (value, row.transport)
        for row in between
        if transport_traits(info.facts, row.transport).carrier == "kernel"
        and (value := row.values["latency_ns"]) is not None
    ]
    latency, transport = min(sockets, key=lambda each: each[0].value, default=(None, None))
    speeds = [[each["bits_per_s"] or 0 for each in known] for known in used_interfaces(info).values()]
    slowest = min((max(of_host, default=0) for of_host in speeds), default=0)
    return Network(transport, latency, slowest / 8 or None)


def _failures(by_transport: Mapping[str, Members], rows: Iterable[Row]) -> Iterable[Failure]:
    """Points that failed or were skipped, and transports without enough measurements in any one state."""
    shown = {row.transport for row in rows}
    for transport, members in by_transport.items():
        ended = Counter(
            (each.status, each.reason or "no reason is known")
            for each, _ in members
            if each.status in (PointStatus.FAILED, PointStatus.SKIPPED)
        )
        yield from (Failure(transport, status, points, reason) for (status, reason), points in ended.items())
        points = sum(bool(each.measurements_by_state) for each, _ in members)
        if points and transport not in shown:
            yield Failure(transport, PointStatus.BUDGET, points, "too few measurements in any one machine state")
