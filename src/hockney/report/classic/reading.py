"""A run as the tables need it: its series by pattern, and a figure of each in the report's units."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hockney import stats
from hockney.errors import unnamed
from hockney.model import Measurement, Point, PointStatus
from hockney.report.classic.values import Measured
from hockney.results.runs import Run, Series
from hockney.stats import Figure
from hockney.stats.npb import ft_class, ft_mops

Options = Mapping[str, str]
NOT_PLANNED = "not asked for in this run"
SEVERAL_STATES = "several states"

_LOCAL = ("memload",)  # they send nothing, so the null transport is as good as any


@dataclass(frozen=True)
class Quantity:
    """What a report prints of a point: its unit, and how it follows from the time in ns, or from each measurement."""

    unit: str
    of: Callable[[Point, Figure, float], float] = lambda point, figure, ns: ns
    larger_is_better: bool = False
    of_measurement: Callable[[Point, Measurement], float | None] | None = None


def _rate_mb_s(figure: Figure, time_ns: float) -> float:
    return figure.definition.bytes_per_rep / (time_ns * figure.definition.divisor) * 1e3


def _mean_us(point: Point, measurement: Measurement) -> float:
    """The mean time of an event."""
    return float(measurement.times_ns().mean()) / 1e3


def _cpu_percent(point: Point, measurement: Measurement, *, of_sender: bool) -> float | None:
    source = int(dict(point.options).get("source", 0))
    rank = source if of_sender else 1 - source
    used = measurement.cpu_user_ns[rank] + measurement.cpu_system_ns[rank]
    return 100 * used / measurement.wall_ns[rank] if measurement.wall_ns[rank] else None


def _ft_mops(point: Point, figure: Figure, time_ns: float) -> float:
    return ft_mops(str(ft_class(point)), time_ns * figure.definition.divisor) / point.ranks


QUANTITIES: Mapping[str, Quantity] = {
    "time": Quantity("us", lambda point, figure, ns: ns / 1e3),
    "whole time": Quantity("us", lambda point, figure, ns: 2 * ns / 1e3),
    "rate": Quantity("MB/s", lambda point, figure, ns: _rate_mb_s(figure, ns), True),
    "half the rate": Quantity("MB/s", lambda point, figure, ns: _rate_mb_s(figure, ns) / 2, True),
    "rate per rank": Quantity("MB/s", lambda point, figure, ns: _rate_mb_s(figure, ns) / point.ranks, True),
    # Half of the ranks send at a time, and the time is half a round trip.
    "rate of pairs": Quantity(
        "MB/s",
        lambda point, figure, ns: point.ranks * point.bytes / (ns * figure.definition.divisor) * 1e3,
        True,
    ),
    "speed per rank": Quantity("Mop/s", _ft_mops, True),
    "mean time": Quantity("us", of_measurement=_mean_us),
    "CPU of the sender": Quantity("%", of_measurement=functools.partial(_cpu_percent, of_sender=True)),
    "CPU of the receiver": Quantity("%", of_measurement=functools.partial(_cpu_percent, of_sender=False)),
}


class Reading:
    """A run for tables. `defaults` are the options that points leave out, by pattern."""

    def __init__(self, run: Run, defaults: Mapping[str, Options] | None = None) -> None:
        self.run = run
        self._defaults = defaults or {}
        self._figures: dict[Series, list[Figure]] = {}
        states: Counter[str] = Counter(state.name for series in run.series for state in series.states)
        self._common = [name for name, _ in states.most_common() if name not in ("mixed", "unknown")]

    def series(self, *patterns: str) -> list[Series]:
        """All series of these patterns without those of the harness, in the order of the plan."""
        found = (series.point for series in self.run.series)
        wanted = [
            point.pattern in patterns and (point.transport != "null" or point.pattern in _LOCAL) for point in found
        ]
        return [series for series, is_wanted in zip(self.run.series, wanted, strict=True) if is_wanted]

    def options(self, point: Point) -> dict[str, str]:
        """The options of a point with the defaults."""
        return {**self._defaults.get(point.pattern, {}), **dict(point.options)}

    def figure(self, series: Series, state: str | None = None) -> Figure | None:
        """The figure of a series in a state, by default in the run's most frequent one among those with an interval.

        None without a figure, or if it has no interval but another state's has.
        """
        found = self._ordered(series)
        fitting = (one for one in found if state in (None, one.state) and (one is found[0] or one.low_ns is not None))
        return next(fitting, None)

    def _ordered(self, series: Series) -> list[Figure]:
        def place(figure: Figure) -> tuple[bool, bool, int, int]:
            return (figure.low_ns is None, figure.state == "mixed", self._rank(figure.state), -figure.n_measurements)

        if series not in self._figures:
            self._figures[series] = sorted(series.figures(), key=place)
        return self._figures[series]

    def _rank(self, state: str) -> int:
        """States by their frequency in the run; mixed and unknown last."""
        return self._common.index(state) if state in self._common else len(self._common)

    def one_state(self, found: Iterable[Series]) -> str | None:
        """The state that most of these series have figures in, preferably with intervals."""
        figures = [figure for figure in map(self.figure, found) if figure is not None]
        count = Counter(figure.state for figure in figures)
        sure = Counter(figure.state for figure in figures if figure.low_ns is not None)

        def place(state: str) -> tuple[bool, bool, int, int, int]:
            return (state == "mixed", state == "unknown", -count[state], -sure[state], self._rank(state))

        return min(count, key=place, default=None)

    def together(self, found: Sequence[Series], quantity: Quantity) -> list[tuple[Series, Measured]]:
        """The series that have a figure in one common state, with these figures."""
        state = self.one_state(found)
        cells = [(series, self.cell(series, quantity, state=state)) for series in found]
        return [(series, cell) for series, cell in cells if cell.value is not None]

    def measurements(self, series: Series, state: str | None = None) -> list[Measurement]:
        """The measurements of a series' figure."""
        figure = self.figure(series, state)
        if figure is None:
            return []
        return [
            measurement
            for measurement, one in zip(series.measurements, series.states, strict=True)
            if one.name == figure.state
            and (measurement.definition, measurement.batch) == (figure.definition, figure.batch)
            and measurement.elapsed_ns.size
        ]

    def median(
        self, series: Series, unit: str, of: Callable[[Measurement], float | None], state: str | None = None
    ) -> Measured:
        """A figure from a value of each measurement, combined as times are; `of` returns None without a value."""
        figure = self.figure(series, state)
        each = [(of(measurement), measurement.launch_id) for measurement in self.measurements(series, state)]
        known = [(value, launch_id) for value, launch_id in each if value is not None]
        if figure is None or not known:
            return blank(unit, self.reason(series) if figure is None else "nothing was counted")
        values, launch_ids = zip(*known, strict=True)
        found, over = stats.time_of(values, launch_ids)
        covers = None if found.low is None else over
        shown = self._shown(figure, series)
        return Measured(unit, found.value, found.low, found.high, shown, series.oversubscribed, interval_over=covers)

    def of_rank(self, series: Series, rank: int, state: str | None = None) -> Measured:
        """The time on one rank, in us."""

        def time_us(measurement: Measurement) -> float:
            import numpy as np

            return (
                float(np.median(measurement.elapsed_ns[rank]))
                / (measurement.batch * measurement.definition.divisor)
                / 1e3
            )

        return self.median(series, "us", time_us, state)

    @staticmethod
    def _shown(figure: Figure, series: Series) -> str | None:
        """The state of a figure for its cell; a single rank has no floor, and so no state."""
        return None if series.point.ranks == 1 and figure.state == stats.UNKNOWN.name else figure.state

    def cell(
        self, series: Series, quantity: Quantity, published: float | None = None, state: str | None = None
    ) -> Measured:
        """A series as a cell; `state` as for `figure`."""
        figure = self.figure(series, state)
        if figure is None or (quantity.of_measurement is None and figure.value_ns <= 0):
            return blank(quantity.unit, self.reason(series), published)
        return replace(self._cell(series, figure, quantity), published=published, is_short=figure.is_short)

    def _cell(self, series: Series, figure: Figure, quantity: Quantity) -> Measured:
        if quantity.of_measurement is not None:
            return self.median(
                series, quantity.unit, functools.partial(quantity.of_measurement, series.point), figure.state
            )

        def of(time_ns: float | None) -> float | None:
            return None if time_ns is None else quantity.of(series.point, figure, time_ns)

        ends = [end for end in (of(figure.low_ns), of(figure.high_ns)) if end is not None]
        low, high = sorted(ends) if len(ends) == 2 else (None, None)
        shown = self._shown(figure, series)
        over = None if low is None else figure.interval_over
        return Measured(quantity.unit, of(figure.value_ns), low, high, shown, series.oversubscribed, interval_over=over)

    def fastest(self, series: Series, quantity: Quantity) -> Measured:
        """The fastest sample of a series in any state, as a cell."""
        figures = [figure for figure in self._ordered(series) if figure.minimum_ns > 0]
        if not figures:
            return blank(quantity.unit, self.reason(series))
        figure = min(figures, key=lambda one: one.minimum_ns)
        value = quantity.of(series.point, figure, figure.minimum_ns)
        return Measured(quantity.unit, value, oversubscribed=series.oversubscribed, computed=True)

    def best(
        self, found: Sequence[Series], quantity: Quantity, published: float | None = None, *, fastest: bool = False
    ) -> tuple[Series | None, Measured]:
        """The best of several series in any state, with its size; `fastest`: by the fastest sample of each.

        Figures without an interval count only for a series that has no others.
        """
        cells = [
            (series, self.fastest(series, quantity) if fastest else self._cell(series, figure, quantity))
            for series in found
            for figure in self._sure(series)
            if figure.value_ns > 0
        ]
        if not cells:
            return None, blank(quantity.unit, self.reason(found[0]) if found else NOT_PLANNED, published)
        sign = 1 if quantity.larger_is_better else -1
        series, cell = max(cells, key=lambda pair: sign * (pair[1].value or 0.0))
        return series, replace(cell, at_bytes=series.point.bytes, published=published)

    def _sure(self, series: Series) -> list[Figure]:
        figures = self._ordered(series)
        return [figure for figure in figures if figure.low_ns is not None] or figures[:1]

    @staticmethod
    def reason(series: Series) -> str:
        """Why a series has no figure, without the name of the transport, which the table has."""
        point, reason = series.point, series.reason and unnamed(series.reason, series.point.transport, "this transport")
        if reason is not None and reason.startswith(f"{point.ranks} ranks on "):
            return "more ranks than CPUs would measure the scheduler; with --oversubscribe hockney run does so"
        if series.status is PointStatus.FAILED:
            return f"failed: {reason or 'no reason was stored'}"
        if series.status is PointStatus.SKIPPED:
            return f"skipped: {reason or 'no reason was stored'}"
        return "not reached: the time was up, or the run was stopped"

    @staticmethod
    def between_hosts(series: Series) -> bool:
        """Whether its ranks were on more than one host."""
        return any(len(set(launch.hosts)) > 1 for launch in series.launches)


def blank(unit: str, reason: str, published: float | None = None) -> Measured:
    """A cell without a figure."""
    return Measured(unit, reason=reason, published=published)


def states_note(cells: Iterable[Measured]) -> tuple[str | None, str | None]:
    """The most frequent state of some cells, and the sentence for it; None without any."""
    count = Counter(cell.state for cell in cells if cell.value is not None and cell.state is not None)
    if not count:
        return None, None
    common = max(count, key=lambda state: (state not in ("mixed", SEVERAL_STATES), count[state]))
    if set(count) == {stats.UNKNOWN.name}:
        return common, None
    return common, f"State of the machine: {common}{'' if len(count) == 1 else ', unless a cell names another'}."


def options_text(options: Iterable[tuple[str, str]]) -> str:
    """`window=16 until=sent`."""
    return " ".join(f"{name}={value}" for name, value in options)
