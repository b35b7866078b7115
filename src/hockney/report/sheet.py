"""The data sheet: one row per transport in one machine state. Values only; cli/sheet.py prints them.

`COLUMNS` is the list of its columns. A record there is complete, except for its key in docs/json.md.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hockney.analysis.explain.curve import MeasuredCurve
from hockney.analysis.explain.fits import FittedLine, last_line
from hockney.analysis.explain.layers import LATENCY_BYTES, Layer, layers_between
from hockney.analysis.explain.read import curves_of
from hockney.analysis.pairs import FARTHEST
from hockney.model import PointStatus, RunInfo, Warning_
from hockney.report.words import NOTHING, RANGE_MARK, ROUGH, SHORT_MARK, figure_text, placements, plain_names
from hockney.results.figures import Figure
from hockney.results.placement import used_interfaces
from hockney.results.runs import Run, Series
from hockney.results.traits import transport_traits
from hockney.stats import MIXED, ONE_LAUNCH, RANGE, state_order
from hockney.stats.interval import Estimate
from hockney.units import format_ns, format_rate

OTHER_STATE = "°"
MARKS = {
    f"^{NOTHING}": f"{NOTHING}: not enough data",
    "~": "~: known to worse than ±25 %",
    r"\*": "*: more ranks than CPUs, so these are scheduling times",
    rf"–\S*\)(?!{RANGE_MARK})": "a–b: both ends where ± would exceed 50 %",
    RANGE_MARK: f"{RANGE_MARK}: a range, as one machine state has too few measurements for an interval",
    f" {RANGE_MARK}": f"{RANGE_MARK} alone: a single measurement, or both ends are printed alike",
}
"""The meaning of each mark in a cell, by an expression that finds it."""

_FORMATS = {"ns": format_ns, "bytes/s": format_rate, "bytes": lambda value: format_rate(value).removesuffix("/s")}
_OF_STREAMS = (("window", "16"),)
# Of the patterns that it shows.
_OPTIONS = {"pingpong": (), "barrier": (), "oneway": _OF_STREAMS, "twoway": _OF_STREAMS}


@dataclass(frozen=True)
class Value(Estimate):
    """A value with its bounds, in the unit of its column.

    `over` is what they cover, as of a Figure: "launches", "within one launch", "exact" or "range". `state` is its
    machine state, `is_mixed`: of several. `at_bytes` is the size of a best rate. `is_short`: a stream with fewer than 8
    events per sample.
    """

    over: str
    state: str
    is_mixed: bool = False
    at_bytes: int | None = None
    is_short: bool = False

    @property
    def has_interval(self) -> bool:
        return self.over != RANGE

    @property
    def is_range(self) -> bool:
        """As of a Figure."""
        return self.is_mixed or not self.has_interval


def is_other(value: Value | Figure | None, state: str | None) -> bool:
    """Whether a value is of another machine state than this one; None: any."""
    return value is not None and state is not None and not value.is_mixed and value.state != state


def _value(figure: Figure, estimate: Estimate, at_bytes: int | None = None) -> Value:
    bounds = estimate.value, estimate.low, estimate.high
    return Value(*bounds, figure.interval_over, figure.state, figure.is_mixed, at_bytes, figure.is_short)


class TransportFigures:
    """The figures of a transport, of its series, in this machine state; None: those that tables show."""

    def __init__(self, members: Sequence[Series], state: str | None = None) -> None:
        first = members[0]
        self.transport, self.state = first.point.transport, state or first.run.state_of(*first.job) or ""
        self._series = [each for each in members if _OPTIONS.get(each.point.pattern) == each.point.options]
        self._figures = {figure.series: figure for series in self._series for figure in series.figures_in(state)}

    def time_ns(self, pattern: str, size: int = 0) -> Value | None:
        """The time of a pattern."""
        figure = self._times(pattern).get(size)
        return None if figure is None else _value(figure, figure.time)

    def best_rate_bytes_per_s(self, pattern: str) -> Value | None:
        """The best of the large sizes with 16 messages in flight; None where one has no figure, as it may be the best.

        A size that the transport cannot send does not count. If it can send none, the rate is that of 32 KiB.
        """
        measured = [
            series
            for series in self._series
            if series.point.pattern == pattern and series.status is not PointStatus.SKIPPED
        ]
        sizes = {series.point.bytes for series in measured} & {1 << 16, 1 << 18, 1 << 20} or {1 << 15}
        figures = [self._figures.get(series) for series in measured if series.point.bytes in sizes]
        rates = [
            _value(figure, rate, figure.point.bytes)
            for figure in figures
            if figure is not None and (rate := figure.bytes_per_s) is not None
        ]
        return max(rates, key=lambda rate: rate.value, default=None) if len(rates) == len(figures) else None

    def fitted(self, pick: Callable[[FittedLine], Estimate | None]) -> Value | None:
        """A parameter of `line`; None where its interval includes zero."""
        estimate = pick(self.line) if self.line else None
        if self.line is None or estimate is None or estimate.low <= 0:
            return None
        figures = self._times("pingpong")
        overs = {figures[size].interval_over for size in self.line.sizes_bytes}
        over = overs.pop() if len(overs) == 1 else ONE_LAUNCH
        return Value(estimate.value, estimate.low, estimate.high, over, self.state)

    @functools.cached_property
    def curve(self) -> MeasuredCurve | None:
        """The ping-pong in this state, as explain reads it; None without an interval in it."""
        figures = (figure for figure in self._times("pingpong").values() if figure.state == self.state)
        return next(iter(curves_of(figures)), None)

    @functools.cached_property
    def line(self) -> FittedLine | None:
        """The straight segment of the ping-pong's longest messages, as explain has it.

        None where longer ones were measured in another state only: there it may be another line.
        """
        curve = self.curve
        line = None if curve is None or curve.oversubscribed else last_line(curve)
        sizes = {figure.point.bytes for figure in self._figures.values() if figure.point.pattern == "pingpong"}
        return line if curve and line and {n for n in sizes if n > line.last_bytes} <= {*curve.sizes} else None

    def _times(self, pattern: str) -> dict[int, Figure]:
        """The figures of a pattern, by ascending size; of several numbers of ranks, those of the first."""
        times: dict[int, Figure] = {}
        for series, figure in self._figures.items():
            if series.point.pattern == pattern:
                times.setdefault(series.point.bytes, figure)
        return dict(sorted(times.items()))


@dataclass(frozen=True)
class SheetColumn:
    """A column: `key` is its name in JSON, `unit` is "ns", "bytes/s" or "bytes", `pick` finds its value."""

    title: str
    key: str
    unit: str
    definition: str
    pick: Callable[[TransportFigures], Value | None]

    @property
    def is_fitted(self) -> bool:
        """Whether its values are parameters of a line, which are shown without an interval."""
        return self.key in ("r_inf_bytes_per_s", "n_half_bytes")

    def texts(self, value: Value | None) -> tuple[str, str]:
        """`1.83 us`, `±2%`, as figure_text; `~156 kB` without bounds of a fit known to worse than ±25 %."""
        if value is None:
            return NOTHING, ""
        if self.is_fitted:
            return "~" * (value.relative > 0.25) + self.text_of(value.value), ""
        shown, bounds = figure_text(value, self.text_of, is_range=value.is_range)
        return shown + SHORT_MARK * value.is_short, bounds

    def best(self, values: Iterable[Value | None]) -> list[Value]:
        """Those of its values that are the best, or not told apart from it; rough ones and those of fits never are."""
        known = [value for value in values if value is not None and not self.is_fitted]
        if not known:
            return []
        if self.unit == "ns":
            limit = min(known, key=lambda value: value.value).high
            best = [value for value in known if value.low <= limit]
        else:
            limit = max(known, key=lambda value: value.value).low
            best = [value for value in known if value.high >= limit]
        return [value for value in best if value.relative <= ROUGH]

    @property
    def text_of(self) -> Callable[[float], str]:
        """How a number of the column is printed."""
        return _FORMATS[self.unit]


def marks_text(cells: Iterable[str], marks: Mapping[str, str] = MARKS) -> str:
    """The meaning of the marks in cells, in one sentence; empty without marks."""
    text = "\n".join(map(str.strip, cells))
    meanings = "; ".join(meaning for mark, meaning in marks.items() if re.search(mark, text, re.MULTILINE))
    return meanings and f"{meanings}."


COLUMNS = (
    SheetColumn(
        "latency (8 B)", "latency_ns", "ns", "half a round trip of 8 B (pingpong)",
        lambda of: of.time_ns("pingpong", LATENCY_BYTES),
    ),
    SheetColumn(
        "bandwidth", "bandwidth_bytes_per_s", "bytes/s",
        "the rate of 256 KiB (udp: 32 KiB) with 16 messages in flight (oneway)",
        lambda of: of.best_rate_bytes_per_s("oneway"),
    ),
    SheetColumn(
        "bidirectional", "bidirectional_bytes_per_s", "bytes/s",
        "the same with both ranks sending at once, the bytes of both counted (twoway)",
        lambda of: of.best_rate_bytes_per_s("twoway"),
    ),
    SheetColumn("barrier", "barrier_ns", "ns", "a barrier of two ranks (barrier)", lambda of: of.time_ns("barrier")),
    SheetColumn(
        "r_inf", "r_inf_bytes_per_s", "bytes/s",
        "the asymptotic rate of the last straight segment of pingpong's time over size",
        lambda of: of.fitted(lambda line: line.r_inf_bytes_per_s),
    ),
    SheetColumn(
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

    def marks(self, key: str) -> str:
        """Those of a cell, besides its own."""
        return "*" * self.oversubscribed + OTHER_STATE * is_other(self.values[key], self.state)

    @property
    def full_name(self) -> str:
        """The name with the placement."""
        return ", ".join(filter(None, (self.name, self.placement)))


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
    """The whole sheet. `state` is the machine state of its rows, of most if they differ.

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
    def columns(self) -> list[SheetColumn]:
        """The column with the floor, and those in which a row has a value."""
        return [
            column for column in COLUMNS if column is COLUMNS[0] or any(row.values[column.key] for row in self.rows)
        ]

    @property
    def values(self) -> list[Value]:
        """All values but those of fits."""
        of_rows = [row.values[column.key] for row in self.rows for column in COLUMNS if not column.is_fitted]
        return [value for value in of_rows if value is not None]


def make_sheet(run: Run, *, every_state: bool = False) -> Sheet:
    """The data sheet of a run of the suite `quick`: the figures that tables show, or those of every machine state."""
    by_transport: dict[str, list[Series]] = {}
    for series in run.series:
        by_transport.setdefault(series.point.transport, []).append(series)
    harness = [each for name in run.harness for each in by_transport.pop(name, [])]
    states = _states(run)
    names = [*dict.fromkeys(each.name for each in states if each.name != MIXED.name)] if every_state else [None]
    every = (TransportFigures(members, name) for members in by_transport.values() for name in names)
    found = [(row, figures.curve) for figures in every if (row := _row(run, figures, states)) is not None]
    rows = [row for row, _ in found]
    remote = ((curve, FARTHEST if row.is_between_hosts else "") for row, curve in found if curve is not None)
    shown = Counter(row.state for row in rows if not row.is_between_hosts) or Counter(row.state for row in rows)
    return Sheet(
        run_id=run.id,
        state=max(shown, key=lambda name: shown[name], default=None),
        rows=tuple(rows),
        layers=tuple(
            layers_between((replace(curve, pair_class=name) for curve, name in remote), run.facts, run.libraries, {})
        ),
        harness_ns=_harness_ns(harness),
        clock_ns=min((launch.clock_ns for launch in run.launches.values()), default=None),
        launches_per_job=run.launch_count,
        states=states,
        warnings=run.warnings,
        failures=tuple(_failures(by_transport)),
        network=_network(rows, run.info),
        also_ready=tuple(sorted({*run.facts.get("transports", ())} - {*run.harness, *by_transport})),
    )


def _states(run: Run) -> tuple[StateCount, ...]:
    """The states that measurements saw, from the nearest to the farthest."""
    count = Counter(
        (state.name, state.floor_ns) for series in run.series if not series.is_harness for _, state in series.pairs
    )
    ordered = sorted(count.items(), key=lambda item: state_order(*item[0]))
    return tuple(StateCount(name, floor_ns, measurements) for (name, floor_ns), measurements in ordered)


def _row(run: Run, figures: TransportFigures, states: Iterable[StateCount]) -> Row | None:
    """The row of a transport in a state; None where no point of the table has a figure."""
    values = {column.key: column.pick(figures) for column in COLUMNS}
    if not any(values.values()):
        return None
    launches, transport = run.launches.values(), figures.transport
    launch = next(launch for launch in launches if launch.transport == transport)
    line = figures.line
    return Row(
        transport=transport,
        name=plain_names(launches)[transport],
        placement=placements(launches)[transport],
        hosts=launch.hosts,
        library=run.libraries[transport],
        state=figures.state,
        floor_ns=next((each.floor_ns for each in states if each.name == figures.state), None),
        values=values,
        fit_from_bytes=line.first_bytes if line else None,
        fit_to_bytes=line.last_bytes if line else None,
        fit_rms=line.relative_rms if line else None,
        oversubscribed=launch.oversubscribed,
    )


def _harness_ns(members: Sequence[Series]) -> Value | None:
    """A whole repetition: the ping-pong's figure is half of one."""
    half = TransportFigures(members).time_ns("pingpong", LATENCY_BYTES) if members else None
    return half and Value(2 * half.value, 2 * half.low, 2 * half.high, half.over, half.state, half.is_mixed)


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


def _failures(by_transport: Mapping[str, Sequence[Series]]) -> Iterable[Failure]:
    """Points that failed or were skipped."""
    for transport, members in by_transport.items():
        ended = Counter(
            (each.status, each.reason or "no reason is known")
            for each in members
            if each.status in (PointStatus.FAILED, PointStatus.SKIPPED)
        )
        yield from (Failure(transport, status, points, reason) for (status, reason), points in ended.items())
