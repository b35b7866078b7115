"""All figures of a run as curves over message size, in every machine state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hockney.analysis.explain import Explanation
from hockney.analysis.explain.fits import FittedLine
from hockney.analysis.finding import Subject
from hockney.model import PointStatus
from hockney.report.charts import plain
from hockney.results.figures import Figure
from hockney.results.runs import Run
from hockney.stats import MIXED, ROUNDING, Estimate, rate_per_s

COPY = "memcpy"  # the reference of other curves
_OF_PAIRS = {"source", "target", "round"}  # options that name a pair of ranks: these points are in the matrices
_BOUNDS = {"y": "value", "low": "low", "high": "high"}


@dataclass(frozen=True)
class CurveData:
    """A pattern on a transport: times over sizes in bytes, ascending, in the machine states that `state` names.

    `times_ns` are by size, without rounding; `ranges` are the sizes whose bounds are no interval of one machine state.
    `payload` is the number of bytes moved in that time over the size, None if a rate has no meaning. `arrived` are the
    shares of messages that were not lost, by the sizes that lost some. `is_main`: the figures that tables show.
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
    times_ns: Mapping[int, Estimate]
    arrived: Mapping[int, float] = field(default_factory=dict)
    ranges: frozenset[int] = frozenset()

    @property
    def is_drawn(self) -> bool:
        """Whether it has enough sizes for a curve."""
        return sum(size > 0 for size in self.times_ns) >= 3

    def rate_at(self, size: int) -> Estimate | None:
        """The rate of a size in bytes/s."""
        time = self.times_ns.get(size)
        if time is None or self.payload is None:
            return None
        return rate_per_s(self.payload * size * self.arrived.get(size, 1.0), time)


def curves_of(run: Run) -> list[CurveData]:
    """Every curve of a run in the order of its plan, without pairs of ranks, and of the harness only memcpy.

    The main one of a pattern has the figures that tables show; another for each state has those that they do not.
    """
    members: dict[tuple[str, str, int, str], list[Figure]] = {}  # by transport, pattern with options, ranks, state
    for series in run.series:
        point = series.point
        is_of_pair = any(name in _OF_PAIRS for name, _ in point.options)
        is_harness = series.is_harness and point.pattern != COPY
        if series.status is PointStatus.FAILED or is_harness or is_of_pair:
            continue
        for figure in series.figures():
            if figure.time.value > 0 and (figure.is_shown or figure.state != MIXED.name):
                name = "" if figure.is_shown else figure.state
                members.setdefault((point.transport, point.pattern_text, point.ranks, name), []).append(figure)
    curves = []
    for (transport, pattern, ranks, name), of_curve in members.items():
        figures = sorted(of_curve, key=lambda figure: figure.point.bytes)
        floors_ns = {figure.floor_ns for figure in figures}
        curves.append(
            CurveData(
                run=run.id,
                transport=transport,
                pattern=pattern,
                ranks=ranks,
                state="; ".join(dict.fromkeys(figure.state for figure in figures)),
                is_main=not name,
                floor_ns=floors_ns.pop() if len(floors_ns) == 1 else None,
                payload=_payload(figures),
                is_sized=figures[0].point.is_sized,
                times_ns={figure.point.bytes: _time(figure) for figure in figures},
                arrived={figure.point.bytes: figure.arrived for figure in figures if figure.arrived < 1},
                ranges=frozenset(figure.point.bytes for figure in figures if figure.is_range),
            )
        )
    return curves


def _time(figure: Figure) -> Estimate:
    value = figure.time.value
    return Estimate(value, value, value) if figure.interval_over == ROUNDING else figure.time


def _payload(figures: Sequence[Figure]) -> float | None:
    """Bytes moved in the pattern's time, over the size; None where that differs from size to size."""
    shares = set()
    for figure in figures:
        if not figure.point.is_sized or figure.point.rate_hz:
            return None
        if figure.point.bytes:
            shares.add(round(figure.definition.bytes_per_rep / figure.definition.divisor / figure.point.bytes, 6))
    share = shares.pop() if len(shares) == 1 else 0.0
    return share or None


def curves_json(curves: Iterable[CurveData], transports: Sequence[str]) -> list[dict[str, Any]]:
    """The curves in the page's embedded form: every figure once, transports by their number in the list."""
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
            "ranges": sorted(curve.ranges),
            **{key: [plain(getattr(time, of)) for time in curve.times_ns.values()] for key, of in _BOUNDS.items()},
        }
        for curve in curves
    ]


def fits_json(explanation: Explanation | None, run: int, transports: Sequence[str]) -> dict[str, Any]:
    """Fitted segments and protocol switches of a run, to be drawn on its curves."""
    if explanation is None:
        return {"segments": [], "switches": []}

    def of_curve(about: FittedLine | Subject) -> dict[str, Any]:
        number = transports.index(about.transport)
        return {"run": run, "t": number, "pattern": about.pattern, "ranks": about.ranks, "state": about.state}

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
        if finding.code == "protocol switch" and finding.subject.transport in transports
    ]
    return {"segments": segments, "switches": switches}
