"""A run as the tables need it: its series by pattern, and a figure of each in the report's units."""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from hockney.analysis.health.matrices import time_of_rank
from hockney.machine.facts import data_caches
from hockney.model import Definition, Measurement, Point, PointStatus
from hockney.report.classic.predicted import PredictedSeries
from hockney.report.classic.values import Measured, blank
from hockney.results.figures import SEVERAL_STATES, Figure
from hockney.results.runs import Run, Series
from hockney.stats import ONE_LAUNCH, UNKNOWN
from hockney.stats.figures import estimate_of
from hockney.stats.fit import NoFit, fit_line
from hockney.stats.npb import ft_class, ft_operations

_ALL_CACHES = "beyond all caches"
NOT_PLANNED = "not asked for in this run"
WORD_BYTES = 8
# For one word: over the pairs, or over the means of series of pairs; its rate. For all sizes: the best mean rate, the
# fewest words that reach half the rate, and that rate.
STATISTICS: Mapping[str, Callable[[Sequence[float]], float] | None] = {
    "max": max, "min": min, "mean": fmean, "mean rate": fmean, "best rate": None, "half words": None, "half rate": None,
}  # fmt: skip


@dataclass(frozen=True)
class Basis:
    """Properties of a point, besides its time, that a quantity needs.

    A row of the load table represents `loads` of the pattern, which carry `load_bytes` together (0: the point's size).
    """

    point: Point
    definition: Definition
    hertz: float = 0.0
    loads: int = 1
    load_bytes: int = 0

    def cycles(self, time_ns: float) -> float:
        """Clock periods of the loads."""
        return time_ns * self.loads * self.hertz / 1e9

    def speed_mops(self, time_ns: float) -> float:
        """The speed of all ranks, by the NPB's count."""
        return ft_operations(str(ft_class(self.point))) / (time_ns * self.definition.divisor) * 1e3

    def rate_mb_s(self, time_ns: float) -> float:
        return self.definition.bytes_per_rep / (time_ns * self.definition.divisor) * 1e3


@dataclass(frozen=True)
class Quantity:
    """A printed quantity of a point: its unit, and its formula from the time in ns, or from each measurement."""

    unit: str
    of: Callable[[Basis, float], float] = lambda of, ns: ns
    larger_is_better: bool = False
    of_measurement: Callable[[Measurement], float | None] | None = None
    by_clock: bool = False


def _sender(measurement: Measurement) -> int:
    return int(dict(measurement.point.options).get("source", 0))


def _cpu_percent(measurement: Measurement, rank: int) -> float | None:
    used = measurement.cpu_user_ns[rank] + measurement.cpu_system_ns[rank]
    return 100 * used / measurement.wall_ns[rank] if measurement.wall_ns[rank] else None


def _per_write(measurement: Measurement, name: str, rank: int) -> float | None:
    writes = measurement.elapsed_ns.shape[1] * measurement.batch * measurement.definition.messages_per_rep
    return measurement.counters[name][rank] / writes if name in measurement.counters and writes else None


def _delay_us(measurement: Measurement) -> float | None:
    counters = measurement.counters
    return sum(counters["delay_ns"]) / max(1.0, sum(counters["delays"])) / 1e3 if "delay_ns" in counters else None


QUANTITIES: Mapping[str, Quantity] = {
    "time": Quantity("us", lambda of, ns: ns / 1e3),
    "whole time": Quantity("us", lambda of, ns: 2 * ns / 1e3),
    "rate": Quantity("MB/s", lambda of, ns: of.rate_mb_s(ns), True),
    "half the rate": Quantity("MB/s", lambda of, ns: of.rate_mb_s(ns) / 2, True),
    "rate per rank": Quantity("MB/s", lambda of, ns: of.rate_mb_s(ns) / of.point.ranks, True),
    # Half of the ranks send at a time, and the time is half a round trip.
    "rate of pairs": Quantity(
        "MB/s", lambda of, ns: of.point.ranks * of.point.bytes / (ns * of.definition.divisor) * 1e3, True
    ),
    "speed per rank": Quantity("Mop/s", lambda of, ns: of.speed_mops(ns) / of.point.ranks, True),
    "speed of two ranks": Quantity("Mop/s", lambda of, ns: of.speed_mops(ns) / of.point.ranks * 2, True),
    "load time": Quantity("ns", lambda of, ns: ns * of.loads),
    "load cycles": Quantity("cp", lambda of, ns: of.cycles(ns), by_clock=True),
    "words per cycle": Quantity(
        "words/cp", lambda of, ns: (of.load_bytes or of.point.bytes) / 8 / of.cycles(ns), by_clock=True
    ),
    "load rate": Quantity("MB/s", lambda of, ns: (of.load_bytes or of.point.bytes) / (ns * of.loads) * 1e3, True),
    "mean time": Quantity("us", of_measurement=lambda seen: float(seen.times_ns().mean()) / 1e3),
    "delay taken": Quantity("us", of_measurement=_delay_us),
    "time of the sender": Quantity("us", of_measurement=lambda seen: time_of_rank(seen, _sender(seen)) / 1e3),
    "time of the receiver": Quantity("us", of_measurement=lambda seen: time_of_rank(seen, 1 - _sender(seen)) / 1e3),
    "CPU of the sender": Quantity("%", of_measurement=lambda seen: _cpu_percent(seen, _sender(seen))),
    "CPU of the receiver": Quantity("%", of_measurement=lambda seen: _cpu_percent(seen, 1 - _sender(seen))),
    "full buffers": Quantity("", of_measurement=lambda seen: _per_write(seen, "write_would_block", _sender(seen))),
    "empty buffers": Quantity("", of_measurement=lambda seen: _per_write(seen, "read_would_block", 1 - _sender(seen))),
}


class RunReader:
    """A run for tables. `defaults` are the options that points leave out, by pattern; `predicted`: its predictions."""

    def __init__(
        self, run: Run, defaults: Mapping[str, Mapping[str, str]], predicted: Sequence[PredictedSeries] = ()
    ) -> None:
        self.run = run
        self._predicted = predicted
        self._defaults = defaults

    def series(self, *patterns: str) -> list[Series]:
        """All series of these patterns for tables in the order of the plan.

        Those of the harness only of a pattern that sends nothing: the null transport is as good for it as any.
        """
        return [
            series
            for series in self.run.series
            if series.point.pattern in patterns
            and series.point.role != "basic"
            and (not series.is_harness or series.point.pattern == "memload")
        ]

    def predicted(self, *patterns: str) -> list[Series]:
        """The points of these patterns that were not measured, on a model of this machine."""
        return [series for series in self._predicted if series.point.pattern in patterns]

    def options(self, point: Point) -> dict[str, str]:
        return {**self._defaults.get(point.pattern, {}), **dict(point.options)}

    def figure(self, series: Series, state: str | None = None) -> Figure | None:
        """The figure of a series in a state, by default the one that is shown; None without one."""
        return next((each for each in series.figures() if each.state == state or (each.is_shown and not state)), None)

    def together(self, series: Sequence[Series]) -> list[tuple[Series, Measured]]:
        """The series with a figure in the machine state that most of their figures are of, with their times in us."""
        cells = [(each, self.cell(each, "time")) for each in series]
        known = [(each, cell) for each, cell in cells if cell.value is not None]
        states = Counter(cell.state for _, cell in known)
        return [(each, cell) for each, cell in known if states[cell.state] == max(states.values())]

    def cell(
        self, series: Series, quantity: str, state: str | None = None, loads: tuple[int, int] = (1, 0)
    ) -> Measured:
        """A series as a cell; `quantity` is a name of QUANTITIES, `state` as for `figure`, `loads` as for Basis."""
        figure, what = self.figure(series, state), QUANTITIES[quantity]
        if figure is None or (what.of_measurement is None and figure.time.value <= 0):
            return blank(what.unit, self.reason(series))
        if what.by_clock and not clock_hz(self.run.facts):
            return blank(what.unit, "the clock of the CPU is not known")
        return replace(self._cell(series, figure, what, loads), is_short=figure.is_short)

    def _cell(self, series: Series, figure: Figure, quantity: Quantity, loads: tuple[int, int] = (1, 0)) -> Measured:
        if quantity.of_measurement is not None:
            return self.median(series, figure, quantity.unit, quantity.of_measurement)
        basis = Basis(series.point, figure.definition, clock_hz(self.run.facts) or 0.0, *loads)
        times = Measured("ns", figure.time.value, figure.time.low, figure.time.high)
        return replace(
            times.converted(quantity.unit, lambda time_ns: quantity.of(basis, time_ns)),
            state=self._shown(figure, series),
            oversubscribed=bool(figure.is_oversubscribed),
            interval_over=figure.interval_over,
            exact=figure.is_exact,
        )

    @property
    def is_exact(self) -> bool:
        """Whether all series are of models without noise."""
        return bool(self.run.series) and all(series.is_exact for series in self.run.series)

    def median(self, series: Series, figure: Figure, unit: str, of: Callable[[Measurement], float | None]) -> Measured:
        """A value of each measurement of a figure, combined as times are; `of` returns None without a value."""
        valued = ((of(measurement), measurement.launch_id) for measurement in figure.samples_of)
        known = [(value, launch_id) for value, launch_id in valued if value is not None]
        if not known:
            return blank(unit, "nothing was counted")
        time, over, _ = estimate_of(*zip(*known, strict=True), exact=series.is_exact)
        return Measured(
            *(unit, time.value, time.low, time.high, self._shown(figure, series), bool(figure.is_oversubscribed)),
            interval_over=over,
            exact=series.is_exact,
        )

    @staticmethod
    def _shown(figure: Figure, series: Series) -> str | None:
        """The state of a figure for its cell; a single rank has no floor, and so no state, and a model neither."""
        has_none = series.point.ranks == 1 or isinstance(series, PredictedSeries)
        return None if has_none and figure.state == UNKNOWN.name else figure.state

    def fastest(self, series: Series, quantity: str) -> Measured:
        """The fastest sample of a series in any state, as a cell."""
        what = QUANTITIES[quantity]
        figures = [(figure.minimum_ns, figure) for figure in series.figures() if figure.minimum_ns]
        if not figures:
            return blank(what.unit, self.reason(series))
        minimum_ns, figure = min(figures, key=operator.itemgetter(0))
        value = what.of(Basis(series.point, figure.definition), minimum_ns)
        return Measured(what.unit, value, oversubscribed=series.oversubscribed, computed=True)

    def best(self, series: Sequence[Series], quantity: str) -> tuple[Series | None, Measured]:
        """The best of several series in any state, with its size.

        Figures without an interval count only for a series that has no others.
        """
        what = QUANTITIES[quantity]
        cells = [
            (each, self._cell(each, figure, what))
            for each in series
            for figure in each.figures()
            if figure.time.value > 0 and (figure.is_shown or figure.has_interval)
        ]
        if not cells:
            return None, blank(what.unit, self.reason(series[0]) if series else NOT_PLANNED)
        sign = 1 if what.larger_is_better else -1
        chosen, cell = max(cells, key=lambda pair: sign * (pair[1].value or 0.0))
        return chosen, replace(cell, at_bytes=chosen.point.bytes)

    @staticmethod
    def reason(series: Series) -> str:
        if isinstance(series, PredictedSeries):
            return f"not predicted: {series.reason}"
        if series.status in (PointStatus.FAILED, PointStatus.SKIPPED):
            return f"{series.status.value}: {series.reason or 'no reason was stored'}"
        return "not reached: the time was up, or the run was stopped"

    @staticmethod
    def between_hosts(series: Series) -> bool:
        """Whether its ranks were on more than one host."""
        return any(len(set(launch.hosts)) > 1 for launch in series.launches)


def clock_hz(facts: Mapping[str, Any]) -> int | None:
    """The CPU's highest frequency, else the one at the start of the run; None: unknown."""
    cpu = facts.get("cpu", {})
    hertz: int | None = cpu.get("frequency_max_hz") or cpu.get("frequency_now_hz")
    return hertz


# ---- the figure of a row ---------------------------------------------------------------------------------------------


def chosen(
    how: str, series: Sequence[Series], quantity: str, loads: tuple[int, int], reader: RunReader
) -> tuple[Series | None, Measured]:
    """The figure of a row from all series that match it, and its series, if it has a single one.

    `how` as for a Part of a layout, `loads` as for Basis.
    """
    if how == "best":
        return reader.best(series, quantity)
    if how in STATISTICS:
        return None, _statistic(how, series, reader)
    if how in ("t0", "r_inf"):
        return None, _of_line(how, series, QUANTITIES[quantity].unit, reader)
    if how:
        return _at_level(how, series, quantity, loads, reader)
    # The series with the fewest options, unless it has no figure.
    only = min(series, key=lambda each: (reader.figure(each) is None, len(each.point.options)))
    return only, reader.cell(only, quantity, loads=loads)


def _at_level(
    how: str, series: Sequence[Series], quantity: str, loads: tuple[int, int], reader: RunReader
) -> tuple[Series | None, Measured]:
    """The largest working set in the first cache, or the largest of all if it is twice the last cache."""
    caches = [size for _, size in data_caches(reader.run.facts)] or [0]
    inside = [each for each in series if how == _ALL_CACHES or each.point.bytes <= caches[0]]
    largest = max(inside, key=lambda each: each.point.bytes, default=None)
    if largest is None or (how == _ALL_CACHES and largest.point.bytes < 2 * max(caches)):
        return None, blank(QUANTITIES[quantity].unit, f"no working set {how}")
    return largest, replace(reader.cell(largest, quantity, loads=loads), at_bytes=largest.point.bytes)


def _of_line(what: str, series: Sequence[Series], unit: str, reader: RunReader) -> Measured:
    """The time of an empty message (t0), or the rate of long ones (r_inf), by one line through all measured sizes."""
    cells = [(each.point.bytes, reader.cell(each, "time")) for each in series]
    known = [(size, cell) for size, cell in cells if cell.value is not None]
    if not known:
        return blank(unit, reader.reason(series[0]))
    fit = fit_line([size for size, _ in known], [1e3 * (cell.value or 0.0) for _, cell in known])
    if isinstance(fit, NoFit):
        return blank(unit, fit.reason)
    estimate, scale = (fit.t0_ns, 1e-3) if what == "t0" else (fit.r_inf_bytes_per_s, 1e-6)
    if estimate is None or estimate.value <= 0:
        return blank(unit, "the line through the times gives none")
    states = {cell.state for _, cell in known}
    state = states.pop() if len(states) == 1 else SEVERAL_STATES
    oversubscribed = any(cell.oversubscribed for _, cell in known)
    of_line = Measured("", estimate.value, estimate.low, estimate.high, state, oversubscribed)
    return of_line.converted(unit, lambda value: scale * value)


# ---- statistics over pairs, as the T3D newsletter has them ---------------------------------------------------------


def _statistic(how: str, series: Sequence[Series], reader: RunReader) -> Measured:
    """A statistic over all pairs of a pattern on one transport, in us, MB/s or words; of one state for each size."""
    choose = STATISTICS[how]
    if choose is not None:
        cell = _over_pairs(series, WORD_BYTES, reader, choose)
        return _rate(WORD_BYTES, cell) if how == "mean rate" else cell
    sizes = sorted({each.point.bytes for each in series if each.point.bytes > 0})
    cells = {size: _rate(size, _over_pairs(series, size, reader)) for size in sizes}
    rates = {size: (cell.value, cell) for size, cell in cells.items() if cell.value is not None}
    if len(rates) < 2:
        return blank("MB/s", "only one size was measured" if rates else reader.reason(series[0]))
    size = max(rates, key=lambda size: rates[size][0])
    if how == "best rate":
        return replace(rates[size][1], at_bytes=size)
    half, cell = next((at, cell) for at, (value, cell) in rates.items() if value >= rates[size][0] / 2)
    if how == "half rate":
        return cell
    return replace(cell, unit="words", value=half / WORD_BYTES, low=None, high=None, at_bytes=half, computed=True)


def _rate(size_bytes: int, time_us: Measured) -> Measured:
    """B/us are MB/s."""
    return time_us.converted("MB/s", lambda value: size_bytes / value)


def _over_pairs(
    series: Sequence[Series],
    size_bytes: int,
    reader: RunReader,
    choose: Callable[[Sequence[float]], float] | None = None,
) -> Measured:
    """A statistic over the pairs of ranks in one state; the same of their intervals' ends encloses it.

    If all ranks send concurrently, each rank and its target are a pair. Without `choose`: the mean over series, each of
    which is a mean over its pairs.
    """
    of_size = [each for each in series if each.point.bytes == size_bytes]
    measured = reader.together(of_size)
    if not measured:
        return blank("us", reader.reason(of_size[0]) if of_size else NOT_PLANNED)
    cells, pairs = [cell for _, cell in measured], 1
    figures = [(each, reader.figure(each, cell.state)) for each, cell in measured]
    if any(figure is not None and figure.definition.timed == "mean" for _, figure in figures):
        pairs = of_size[0].point.ranks
        if choose is not None:
            cells = [
                reader.median(each, figure, "ns", functools.partial(time_of_rank, rank=rank)).converted(
                    "us", lambda ns: ns / 1e3
                )
                for each, figure in figures
                for rank in range(pairs)
                if figure is not None
            ]
    known = [cell.interval for cell in cells if cell.interval is not None]
    complete, of = len(known) == len(cells), choose or fmean
    overs = {cell.interval_over for cell in cells}
    return Measured(
        "us",
        of([cell.value for cell in cells if cell.value is not None]),
        of([each.low for each in known]) if complete else None,
        of([each.high for each in known]) if complete else None,
        cells[0].state,
        any(cell.oversubscribed for cell in cells),
        pairs=(len(measured) * pairs, len(of_size) * pairs),
        interval_over=(ONE_LAUNCH if ONE_LAUNCH in overs else cells[0].interval_over) if complete else None,
        exact=cells[0].exact,
    )
