"""The columns of the data sheet: a record of `COLUMNS` is complete, except for its key in docs/json.md."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hockney.analysis.explain.curve import MeasuredCurve
from hockney.analysis.explain.fits import FittedLine, last_line
from hockney.analysis.explain.layers import LATENCY_BYTES
from hockney.analysis.explain.read import curves_of
from hockney.model import PointStatus
from hockney.report.words import NOTHING, RANGE_MARK, ROUGH, SHORT_MARK, figure_text
from hockney.results.figures import Figure
from hockney.results.runs import Series
from hockney.stats import ONE_LAUNCH, RANGE
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
        """The straight segment of the ping-pong's longest messages; None where longer ones have another state."""
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
        """Those of its values that are the best, or not distinguishable from it; never rough ones or those of fits."""
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


def marks_text(cells: Iterable[str]) -> str:
    """The meaning of the marks in cells, in one sentence; empty without marks."""
    text = "\n".join(map(str.strip, cells))
    meanings = "; ".join(meaning for mark, meaning in MARKS.items() if re.search(mark, text, re.MULTILINE))
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
