"""All figures of a run as curves over message size, in every machine state, from medians that are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hockney.analysis.explain import Explanation
from hockney.analysis.explain.fits import FittedLine
from hockney.analysis.finding import Subject
from hockney.model import PointStatus
from hockney.report.html.charts import plain
from hockney.results.runs import Run, Series, arrived_share, main_state, summary_time
from hockney.results.store import MeasurementSummary
from hockney.stats import MIXED

COPY = "memcpy"  # the reference of other curves
_OF_PAIRS = {"source", "target", "round"}  # options that name a pair of ranks: these points are in the matrices
_BOUNDS = ("y", "low", "high")
_Figure = tuple[float, float | None, float | None]  # with its bounds
_Member = tuple[Series, list[MeasurementSummary]]  # in one state


@dataclass(frozen=True)
class CurveData:
    """A pattern on a transport in one machine state: times over sizes in bytes, ascending.

    `times_ns` are by size, each with its bounds, which are None if there are too few measurements for an interval.
    `payload` is the number of bytes moved in that time over the size, None if a rate has no meaning. `arrived` are the
    shares of messages that were not lost, by the sizes that lost some. `is_main`: the state that tables show.
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
    arrived: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_drawn(self) -> bool:
        """Whether it has enough sizes for a curve."""
        return sum(size > 0 for size in self.times_ns) >= 3

    def rate_at(self, size: int) -> _Figure | None:
        """The rate of a size in bytes/s with its interval."""
        time = self.times_ns.get(size)
        if time is None or self.payload is None or time[0] <= 0:
            return None
        scale, (value, low, high) = 1e9 * self.payload * size * self.arrived.get(size, 1.0), time
        if scale == 0:
            return None
        return scale / value, scale / high if high else None, scale / low if low else None


def curves_of(run: Run) -> list[CurveData]:
    """Every curve of a run in the order of its plan, without pairs of ranks, and of the harness only memcpy."""
    members: dict[tuple[str, str, int, str], list[_Member]] = {}  # by transport, pattern with options, ranks, state
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
    curves = []
    for (transport, pattern, ranks, name), of_curve in members.items():
        ordered = sorted(of_curve, key=lambda member: member[0].point.bytes)
        times = [summary_time(measurements, exact=series.is_exact)[0] for series, measurements in ordered]
        sizes = [series.point.bytes for series, _ in ordered]
        arrived = {series.point.bytes: arrived_share(measurements) for series, measurements in ordered}
        curves.append(
            CurveData(
                run=run.id,
                transport=transport,
                pattern=pattern,
                ranks=ranks,
                state=name,
                is_main=name == main[transport, ranks],
                floor_ns=floors_ns[name],
                payload=_payload(ordered),
                is_sized=ordered[0][0].point.is_sized,
                times_ns={size: (time.value, time.low, time.high) for size, time in zip(sizes, times, strict=True)},
                arrived={size: share for size, share in arrived.items() if share < 1},
            )
        )
    return curves


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
            "arrived": curve.arrived,
            "x": list(curve.times_ns),
            **{name: [plain(time[at]) for time in curve.times_ns.values()] for at, name in enumerate(_BOUNDS)},
        }
        for curve in curves
    ]


def fits_json(explanation: Explanation | None, run: int, transports: Sequence[str]) -> dict[str, Any]:
    """Fitted segments and protocol switches of a run, to be drawn on its curves."""
    if explanation is None:
        return {"segments": [], "switches": []}

    def of_curve(about: FittedLine | Subject) -> dict[str, Any]:
        place = transports.index(about.transport)
        return {"run": run, "t": place, "pattern": about.pattern, "ranks": about.ranks, "state": about.state}

    segments = [
        {
            **of_curve(line),
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
            **of_curve(finding.subject),
            "below": finding.facts["below_bytes"],
            "above": finding.facts["above_bytes"],
            "answer": finding.facts["answer"],
        }
        for finding in explanation.findings
        if finding.code == "protocol switch"
        and finding.facts.get("answer") != "not seen"
        and finding.subject.transport in transports
    ]
    return {"segments": segments, "switches": switches}
