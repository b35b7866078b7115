"""All figures of a run as curves over message size, in every machine state, from medians that are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.analysis.explain import Explanation
from hockney.model import PointStatus
from hockney.report.html.charts import plain
from hockney.results.runs import Run, Series, main_state, summary_time
from hockney.results.store import MeasurementSummary
from hockney.stats import MIXED

COPY = "memcpy"  # the reference of other curves
_OF_PAIRS = {"source", "target", "round"}  # options that name a pair of ranks: these points are in the matrices
_BOUNDS = ("y", "low", "high")
_Figure = tuple[float, float | None, float | None]  # with its bounds
_Member = tuple[Series, list[MeasurementSummary]]  # in one state
_Key = tuple[str, str, int, str]  # transport, pattern with options, ranks, state


@dataclass(frozen=True)
class CurveData:
    """A pattern on a transport in one machine state: times over sizes in bytes, ascending.

    `times_ns` are by size, each with its bounds, which are None if there are too few measurements for an interval.
    `payload` is the number of bytes moved in that time over the size, None if a rate has no meaning. `is_main`: the
    state that tables show.
    """

    run: int
    transport: str
    pattern: str
    ranks: int
    state: str
    is_main: bool
    floor_ns: float | None
    payload: float | None
    is_sized: bool
    times_ns: Mapping[int, _Figure]

    @property
    def is_drawn(self) -> bool:
        """Whether it has enough sizes for a curve."""
        return sum(size > 0 for size in self.times_ns) >= 3

    def rate_at(self, size: int) -> _Figure | None:
        """The rate of a size in bytes/s with its interval."""
        time = self.times_ns.get(size)
        if time is None or self.payload is None or time[0] <= 0:
            return None
        scale, (value, low, high) = 1e9 * self.payload * size, time
        return scale / value, scale / high if high else None, scale / low if low else None


def curves_of(run: Run) -> list[CurveData]:
    """Every curve of a run in the order of its plan, without pairs of ranks, and of the harness only memcpy."""
    members: dict[_Key, list[_Member]] = {}
    counts: dict[tuple[str, int], list[Mapping[str, int]]] = {}
    floors_ns: dict[str, float | None] = {}
    for series, measurements in run.summaries():
        point = series.point
        is_of_pair = any(name in _OF_PAIRS for name, _ in point.options)
        is_harness = series.is_harness and point.pattern != COPY
        if series.status is PointStatus.FAILED or is_harness or is_of_pair:
            continue
        by_state: dict[str, list[MeasurementSummary]] = {}
        for measurement, state in measurements:
            if state != MIXED and measurement.median_ns:
                by_state.setdefault(state.name, []).append(measurement)
                floors_ns.setdefault(state.name, state.floor_ns)
        counts.setdefault((point.transport, point.ranks), []).append(
            {name: len(of_state) for name, of_state in by_state.items()}
        )
        for name, of_state in by_state.items():
            key = point.transport, point.pattern_text, point.ranks, name
            members.setdefault(key, []).append((series, of_state))
    main = {place: main_state(of_points) for place, of_points in counts.items()}
    return [
        _curve(run.id, key, of_key, key[3] == main[key[0], key[2]], floors_ns[key[3]])
        for key, of_key in members.items()
    ]


def _curve(run: int, key: _Key, members: Iterable[_Member], is_main: bool, floor_ns: float | None) -> CurveData:
    transport, pattern, ranks, state = key
    ordered = sorted(members, key=lambda member: member[0].point.bytes)
    return CurveData(
        run=run,
        transport=transport,
        pattern=pattern,
        ranks=ranks,
        state=state,
        is_main=is_main,
        floor_ns=floor_ns,
        payload=_payload(ordered),
        is_sized=ordered[0][0].point.is_sized,
        times_ns={series.point.bytes: _time(series, measurements) for series, measurements in ordered},
    )


def _time(series: Series, measurements: Sequence[MeasurementSummary]) -> _Figure:
    time = summary_time(measurements, exact=series.is_exact)[0]
    return time.value, time.low, time.high


def _payload(members: Sequence[_Member]) -> float | None:
    """Bytes moved in the pattern's time, over the size; None where that differs from size to size."""
    shares = set()
    for series, measurements in members:
        point, definition = series.point, measurements[-1].definition
        if not point.is_sized or point.rate_hz:
            return None
        if point.bytes:
            shares.add(round(definition.bytes_per_rep / definition.divisor / point.bytes, 6))
    share = shares.pop() if len(shares) == 1 else 0.0
    return share or None


def curves_json(curves: Iterable[CurveData], transports: Sequence[str]) -> list[dict[str, Any]]:
    """The curves in the page's embedded form: every figure once, transports by their place in the list."""
    return [
        {
            "run": curve.run,
            "t": transports.index(curve.transport),
            "pattern": curve.pattern,
            "ranks": curve.ranks,
            "state": curve.state,
            "main": curve.is_main,
            "drawn": curve.is_drawn,
            "floor": plain(curve.floor_ns),
            "payload": curve.payload,
            "sized": curve.is_sized,
            "x": list(curve.times_ns),
            **{name: [plain(time[at]) for time in curve.times_ns.values()] for at, name in enumerate(_BOUNDS)},
        }
        for curve in curves
    ]


def fits_json(explanation: Explanation | None, run: int, transports: Sequence[str]) -> dict[str, Any]:
    """Fitted segments and protocol switches of a run, to be drawn on its curves."""
    if explanation is None:
        return {"segments": [], "switches": []}
    segments = [
        {
            "run": run,
            "t": transports.index(line.transport),
            "pattern": line.pattern,
            "ranks": line.ranks,
            "state": line.state,
            "from": line.first_bytes,
            "to": line.last_bytes,
            "t0": plain(line.t0_ns.value),
            "r": plain(line.r_inf_bytes_per_s.value),
        }
        for line in explanation.lines
        if line.t0_ns is not None and line.r_inf_bytes_per_s is not None and line.transport in transports
    ]
    switches = [
        {
            "run": run,
            "t": transports.index(finding.subject.transport),
            "pattern": finding.subject.pattern,
            "ranks": finding.subject.ranks,
            "state": finding.subject.state,
            "below": finding.facts["below_bytes"],
            "above": finding.facts["above_bytes"],
            "answer": finding.facts.get("answer", ""),
        }
        for finding in explanation.findings
        if finding.code == "protocol switch"
        and {"below_bytes", "above_bytes"} <= finding.facts.keys()
        and finding.subject.transport in transports
    ]
    return {"segments": segments, "switches": switches}
