"""The data sheet as values: one row per transport in one machine state. documents/sheet.py shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hockney.analysis.explain.layers import LATENCY_BYTES, Layer, layers_between
from hockney.analysis.pair_classes import FARTHEST
from hockney.model import PointStatus, RunInfo, Warning_
from hockney.report.columns import COLUMNS, OTHER_STATE, SheetColumn, TransportFigures, Value, is_other
from hockney.report.words import placements, plain_names
from hockney.results.placement import used_interfaces
from hockney.results.runs import Run, Series
from hockney.results.traits import transport_traits
from hockney.stats import MIXED, state_order


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
        layers=tuple(layers_between(run, (replace(curve, pair_class=name) for curve, name in remote), {})),
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
