"""What reports print of their points, in their units: a small table of functions over the figures of a run."""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from hockney.analysis.host_series import time_of_rank
from hockney.archive.points import Spec
from hockney.machine.facts import data_caches
from hockney.model import Definition, Measurement, Point, PointStatus
from hockney.report.classic.distance import fit_of
from hockney.report.classic.predicted import PredictedSeries
from hockney.report.classic.values import Reported, exactly
from hockney.results.figures import SEVERAL_STATES, Figure
from hockney.results.runs import Run, Series
from hockney.stats import ONE_LAUNCH, UNKNOWN
from hockney.stats.figures import estimate_of
from hockney.stats.fit import JUMP, NoFit, fit_line, fit_segments
from hockney.stats.interval import Estimate
from hockney.stats.npb import ft_class, ft_operations

WORD_BYTES = 8
NOT_PLANNED = "not asked for in this run"
_CP_NS = 1e3 / 150  # the clock period of the T3D


@dataclass(frozen=True)
class Basis:
    """A point besides its time: a row of the load table is of several loads (archive/points.py)."""

    point: Point
    definition: Definition
    hertz: float
    spec: Spec

    @property
    def load_bytes(self) -> int:
        return self.spec.load_bytes or self.point.bytes

    def rate_mb_s(self, time_ns: float) -> float:
        return self.definition.bytes_per_rep / (time_ns * self.definition.divisor) * 1e3

    def speed_mops(self, time_ns: float) -> float:
        """The speed of one rank, by the NPB's count."""
        return ft_operations(str(ft_class(self.point))) / (time_ns * self.definition.divisor) * 1e3 / self.point.ranks

    def pairs_mb_s(self, time_ns: float) -> float:
        """Half of the ranks send at a time, and the time is half a round trip."""
        return self.point.ranks * self.point.bytes / (time_ns * self.definition.divisor) * 1e3


@dataclass(frozen=True)
class Context:
    """What a quantity needs besides the points of its row: the run, the row, the ways to send that are compared."""

    run: Run
    spec: Spec
    ways: Mapping[str, Sequence[Series]] = field(default_factory=dict)

    @functools.cached_property
    def hertz(self) -> float:
        return clock_hz(self.run.facts) or 0.0


Members = Sequence[Series]


@dataclass(frozen=True)
class Quantity:
    """A quantity: its unit; its value from a point's time in ns, or from each measurement; or from many points.

    `over_pairs`: its points are of many pairs of ranks.
    """

    unit: str
    of: Callable[[Basis, float], float] = lambda basis, ns: ns / 1e3
    of_measurement: Callable[[Measurement], float | None] | None = None
    combine: Callable[[Quantity, Members, Context], Reported] | None = None
    over_pairs: bool = False
    by_clock: bool = False

    def value(self, members: Members, context: Context) -> Reported:
        """Of all series that match a row: of one point the one with the fewest options, unless it has no figure."""
        if self.combine is not None:
            return self.combine(self, members, context)
        only = min(members, key=lambda each: (each.shown is None, len(each.point.options)))
        if only.shown is None:
            return Reported(self.unit, reason="; ".join(dict.fromkeys(map(reason_of, members))))
        return self.of_series(only, context)

    def of_series(self, series: Series, context: Context, figure: Figure | None = None) -> Reported:
        """Of one series; by default the figure that is shown."""
        figure = figure or series.shown
        if figure is None or (self.of_measurement is None and figure.time.value <= 0):
            return Reported(self.unit, reason=reason_of(series))
        if self.by_clock and not context.hertz:
            return Reported(self.unit, reason="the clock of the CPU is not known")
        if self.of_measurement is not None:
            return median(series, figure, self.unit, self.of_measurement)
        basis = Basis(series.point, figure.definition, context.hertz, context.spec)
        return _value(
            series, figure, self.unit, figure.time.mapped(functools.partial(self.of, basis)), figure.interval_over
        )


def _value(series: Series, figure: Figure, unit: str, estimate: Estimate, over: str) -> Reported:
    is_predicted = isinstance(series, PredictedSeries)
    # A single rank has no floor, and so no state, and a model neither.
    has_state = figure.state != UNKNOWN.name or not (series.point.ranks == 1 or is_predicted or series.is_exact)
    return Reported(
        unit,
        series.widened(estimate) if isinstance(series, PredictedSeries) else estimate,
        None if is_predicted else over,
        figure.state if has_state else None,
        is_exact=series.is_exact and not is_predicted,
        is_predicted=is_predicted,
        is_oversubscribed=bool(figure.is_oversubscribed),
        is_short=figure.is_short,
    )


def median(series: Series, figure: Figure, unit: str, of: Callable[[Measurement], float | None]) -> Reported:
    """A value of each measurement of a figure, combined as times are; `of` returns None without a value."""
    valued = ((of(measurement), measurement.launch_id) for measurement in figure.samples_of)
    known = [(value, launch_id) for value, launch_id in valued if value is not None]
    if not known:
        return Reported(unit, reason="nothing was counted")
    time, over, _ = estimate_of(*zip(*known, strict=True), exact=series.is_exact)
    return _value(series, figure, unit, time, over)


def reason_of(series: Series) -> str:
    """Why a series has no figure."""
    if isinstance(series, PredictedSeries):
        return f"not predicted: {series.reason}"
    if series.status in (PointStatus.FAILED, PointStatus.SKIPPED):
        return f"{series.status.value}: {series.reason or 'no reason was stored'}"
    return "not reached: the time was up, or the run was stopped"


def clock_hz(facts: Mapping[str, Any]) -> int | None:
    """The CPU's highest frequency, else the one at the start of the run; None: unknown."""
    cpu = facts.get("cpu", {})
    hertz: int | None = cpu.get("frequency_max_hz") or cpu.get("frequency_now_hz")
    return hertz


# ---- many points -----------------------------------------------------------------------------------------------------


def _best(of: Quantity, members: Members, context: Context) -> Reported:
    """The best rate of several series in any state, with its size; ranges count only for a series without intervals."""
    values = [
        replace(of.of_series(each, context, figure), at_bytes=each.point.bytes)
        for each in members
        for figure in each.figures()
        if figure.time.value > 0 and (figure.is_shown or figure.has_interval)
    ]
    return max(values, key=lambda value: value.number or 0.0, default=Reported(of.unit, reason=reason_of(members[0])))


def _fastest(of: Quantity, members: Members, context: Context) -> Reported:
    """The fastest sample of the best series in any state; `of` is its quantity."""
    found = [
        (of.of(Basis(each.point, figure.definition, context.hertz, context.spec), figure.minimum_ns), each)
        for each in members
        for figure in each.figures()
        if figure.minimum_ns
    ]
    if not found:
        return Reported(of.unit, reason=reason_of(members[0]))
    number, series = (min if of.unit == "us" else max)(found, key=operator.itemgetter(0))
    return exactly(of.unit, number, is_oversubscribed=series.oversubscribed)


def _at_level(of: Quantity, members: Members, context: Context) -> Reported:
    """The largest working set in the first cache, or the largest of all if it is twice the last cache."""
    if not context.spec.level:
        return replace(of, combine=None).value(members, context)
    caches = [size for _, size in data_caches(context.run.facts)] or [0]
    is_memory = context.spec.level == "memory"
    inside = [each for each in members if is_memory or each.point.bytes <= caches[0]]
    largest = max(inside, key=lambda each: each.point.bytes, default=None)
    if largest is None or (is_memory and largest.point.bytes < 2 * max(caches)):
        where = "beyond all caches" if is_memory else "in L1"
        return Reported(of.unit, reason=f"no working set {where}")
    return replace(of.of_series(largest, context), at_bytes=largest.point.bytes)


def _overhead(of: Quantity, members: Members, context: Context) -> Reported:
    """The time of an empty message, by one line through all measured sizes."""
    known = [(each.point.bytes, value) for each in members if (value := TIME.of_series(each, context)).estimate]
    if not known:
        return Reported(of.unit, reason=reason_of(members[0]))
    fit = fit_line([size for size, _ in known], [1e3 * (value.number or 0.0) for _, value in known])
    if isinstance(fit, NoFit) or fit.t0_ns.value <= 0:
        return Reported(
            of.unit, reason=fit.reason if isinstance(fit, NoFit) else "the line through the times gives none"
        )
    states = {value.state for _, value in known}
    is_exact = all(value.is_exact for _, value in known)
    state = None if is_exact else states.pop() if len(states) == 1 else SEVERAL_STATES
    is_oversubscribed = any(value.is_oversubscribed for _, value in known)
    return Reported(of.unit, fit.t0_ns * 1e-3, "fit", state, is_exact=is_exact, is_oversubscribed=is_oversubscribed)


# ---- statistics over pairs, as the T3D newsletter has them -----------------------------------------------------------


def _over_pairs(choose: Callable[[Sequence[float]], float]) -> Callable[[Quantity, Members, Context], Reported]:
    """A statistic over all pairs for one word; of its time, or as a rate."""

    def value(of: Quantity, members: Members, context: Context) -> Reported:
        (best, *_) = _by_state(members, context, choose) or [Reported("us", reason=reason_of(members[0]))]
        return best if of.unit == "us" else best.converted(of.unit, lambda us: WORD_BYTES / us)

    return value


def _by_state(
    members: Members, context: Context, choose: Callable[[Sequence[float]], float] | None = None
) -> list[Reported]:
    """A statistic over the pairs of ranks in each state that has as many of them as any, the shown one first.

    The same of their intervals' ends encloses it. If all ranks send at once, each rank and its target are a pair.
    Without `choose`: the mean over series, each of which is a mean over its pairs.
    """
    found: dict[str, list[tuple[Series, Figure]]] = {}
    shown: Counter[str] = Counter()
    for each in members:
        for figure in each.figures():
            if figure.time.value > 0:
                found.setdefault(figure.state, []).append((each, figure))
                shown[figure.state] += figure.is_shown
    if not found:
        return []
    common = max(found, key=lambda state: shown[state])
    most = len(found[common])
    states = [common, *(state for state in found if state != common and len(found[state]) >= most)]
    return [_of_state(found[state], len(members), context, choose) for state in states]


def _of_state(
    found: Sequence[tuple[Series, Figure]],
    asked: int,
    context: Context,
    choose: Callable[[Sequence[float]], float] | None,
) -> Reported:
    values, pairs = [TIME.of_series(each, context, figure) for each, figure in found], 1
    if any(figure.definition.timed == "mean" for _, figure in found):
        pairs = found[0][0].point.ranks
        if choose is not None:
            of_ranks = [functools.partial(_time_us, rank=rank) for rank in range(pairs)]
            values = [median(each, figure, "us", of_rank) for each, figure in found for of_rank in of_ranks]
    estimates = [value.estimate for value in values if value.estimate is not None]
    of = choose or fmean
    overs = {value.over for value in values}
    return replace(
        values[0],
        estimate=Estimate(*(of([getattr(each, end) for each in estimates]) for end in ("value", "low", "high"))),
        over=ONE_LAUNCH if ONE_LAUNCH in overs else values[0].over,
        is_oversubscribed=any(value.is_oversubscribed for value in values),
        pairs=(len(found) * pairs, asked * pairs),
    )


def _time_us(measurement: Measurement, rank: int) -> float:
    return time_of_rank(measurement, rank) / 1e3


def _best_rates(members: Members, context: Context) -> dict[int, Reported]:
    """The best mean rate over all pairs at each size, of all states in which they were measured."""
    sizes: dict[int, list[Series]] = {}
    for each in sorted(members, key=lambda each: each.point.bytes):
        if each.point.bytes > 0:
            sizes.setdefault(each.point.bytes, []).append(each)
    rates = {}
    for size, of_size in sizes.items():
        means = _by_state(of_size, context)
        values = [mean.converted("MB/s", functools.partial(operator.truediv, size)) for mean in means]
        if values:
            rates[size] = replace(max(values, key=lambda value: value.number or 0.0), at_bytes=size)
    return rates


def _rmax(of: Quantity, members: Members, context: Context) -> Reported:
    """The best mean rate of all sizes and states."""
    rates = _best_rates(members, context)
    if len(rates) < 2:
        return Reported(of.unit, reason="only one size was measured" if rates else reason_of(members[0]))
    return max(rates.values(), key=lambda value: value.number or 0.0)


def _half(of: Quantity, members: Members, context: Context) -> Reported:
    """The fewest words that reach half of Rmax, or the rate there.

    Between two measured sizes the time lies on a line, so that the answer is no step of sizes. The first size that
    reaches half is the answer if it is the shortest of all.
    """
    best = _rmax(replace(of, unit="MB/s"), members, context)
    if best.number is None:
        return replace(best, unit=of.unit)
    half = best.number / 2
    if of.unit == "MB/s":
        return exactly(of.unit, half, state=best.state, is_predicted=best.is_predicted)
    times_us = {size: size / (rate.number or half) for size, rate in _best_rates(members, context).items()}
    reach = next(size for size, time_us in times_us.items() if size >= half * time_us)
    below = max((size for size in times_us if size < reach), default=None)
    size = float(reach)
    if below is not None:
        slope = (times_us[reach] - times_us[below]) / (reach - below)
        size = half * (times_us[below] - slope * below) / (1 - half * slope)
    return exactly(of.unit, size / WORD_BYTES, state=best.state, is_predicted=best.is_predicted)


def _by_distance(name: str) -> Callable[[Quantity, Members, Context], Reported]:
    """A parameter of latency = base + hops + changes of direction, in clock periods of the T3D."""

    def value(of: Quantity, members: Members, context: Context) -> Reported:
        fit = fit_of(members, context.run)
        if isinstance(fit, str):
            return Reported(of.unit, reason=fit)
        estimate: Estimate | None = getattr(fit[0], f"{name}_ns")
        if estimate is None:
            return Reported(of.unit, reason="routes between CPUs have no directions")
        return Reported(of.unit, estimate * (1 / _CP_NS), "fit", fit[1], is_exact=fit[1] is None)

    return value


# ---- ways to send, as the Paragon report compares them ---------------------------------------------------------------


def _place(of: Quantity, members: Members, context: Context) -> Reported:
    """The place of a way to send in the order of best rates."""
    rates = {way: RATE_BEST.value(others, context).number for way, others in context.ways.items()}
    own = rates.get(context.spec.on)
    if own is None:
        return Reported(of.unit, reason=reason_of(members[0]))
    if rates.get("native") is None:
        return Reported(of.unit, reason="nothing native was measured")
    return exactly(of.unit, 1.0 + sum(rate > own for rate in rates.values() if rate is not None))


def _to_native(of: Quantity, members: Members, context: Context) -> Reported:
    """The best rate over that of the native library."""
    own = RATE_BEST.value(members, context)
    native = context.ways.get("native")
    base = RATE_BEST.value(native, context) if native else Reported("", reason="nothing native was measured")
    if own.estimate is None or base.estimate is None or base.estimate.low <= 0:
        return Reported(of.unit, reason=own.reason or base.reason)
    has_interval = own.interval is not None and base.interval is not None
    return replace(own, unit=of.unit, estimate=own.estimate / base.estimate, over=own.over if has_interval else None)


def _jump(of: Quantity, members: Members, context: Context) -> Reported:
    """The last size before the times leave their straight line by JUMP or more."""
    figures = [(each.point.bytes, figure) for each in members if (figure := each.shown) is not None]
    curve = sorted((size, figure.time) for size, figure in figures if figure.has_interval and size)
    fit = (
        fit_segments(*map(list, zip(*((size, t.value, t.relative) for size, t in curve), strict=True)))
        if curve
        else None
    )
    if fit is None or isinstance(fit, NoFit):
        return Reported(of.unit, reason="fewer than three sizes have figures with an interval")
    jumps = [switch.below_bytes for switch in fit.switches if switch.is_jump]
    jumps += [fit.sizes_bytes[at - 1] for at in fit.outliers if at and abs(fit.residuals[at]) >= JUMP]
    if not jumps:
        return Reported(
            of.unit, reason=f"no jump: {len(curve)} sizes lie on {'a smooth curve' if fit.curved else 'lines'}"
        )
    return exactly(of.unit, min(jumps) / 1e6)


# ---- of a measurement ------------------------------------------------------------------------------------------------


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


TIME = Quantity("us")
RATE = Quantity("MB/s", Basis.rate_mb_s)
RATE_BEST = replace(RATE, combine=_best)
_PAIR = Quantity("us", over_pairs=True)
_CP = Quantity("cp", over_pairs=True)
QUANTITIES: Mapping[str, Quantity] = {
    "time": TIME,
    "whole time": Quantity("us", lambda of, ns: 2 * ns / 1e3),
    "mean time": Quantity("us", of_measurement=lambda seen: float(seen.times_ns().mean()) / 1e3),
    "rate": RATE,
    "best rate": RATE_BEST,
    "best rate of each direction": Quantity("MB/s", lambda of, ns: of.rate_mb_s(ns) / 2, combine=_best),
    "best rate of each rank": Quantity("MB/s", lambda of, ns: of.rate_mb_s(ns) / of.point.ranks, combine=_best),
    "best rate of all pairs": Quantity("MB/s", Basis.pairs_mb_s, combine=_best),
    "speed of each rank": Quantity("Mop/s", Basis.speed_mops),
    "speed of two ranks": Quantity("Mop/s", lambda of, ns: 2 * of.speed_mops(ns)),
    "largest time of a pair": replace(_PAIR, combine=_over_pairs(max)),
    "least time of a pair": replace(_PAIR, combine=_over_pairs(min)),
    "mean time of the pairs": replace(_PAIR, combine=_over_pairs(fmean)),
    "mean rate of the pairs": replace(_PAIR, unit="MB/s", combine=_over_pairs(fmean)),
    "Rmax": Quantity("MB/s", combine=_rmax, over_pairs=True),
    "N 1/2": Quantity("words", combine=_half, over_pairs=True),
    "rate at N 1/2": Quantity("MB/s", combine=_half, over_pairs=True),
    "base": replace(_CP, combine=_by_distance("base")),
    "each hop": replace(_CP, combine=_by_distance("hop")),
    "each change of direction": replace(_CP, combine=_by_distance("change")),
    "load rate": Quantity("MB/s", lambda of, ns: of.load_bytes / (ns * of.spec.loads) * 1e3, combine=_at_level),
    "best load rate": Quantity("MB/s", lambda of, ns: of.load_bytes / ns * 1e3, combine=_best),
    "load time": Quantity("ns", lambda of, ns: ns * of.spec.loads, combine=_at_level),
    "load cycles": Quantity("cp", lambda of, ns: ns * of.hertz / 1e9, by_clock=True),
    "words per cycle": Quantity("words/cp", lambda of, ns: 1e9 / (ns * of.hertz), by_clock=True),
    "overhead": Quantity("us", combine=_overhead),
    "delay taken": Quantity("us", of_measurement=_delay_us),
    "time of the sender": Quantity("us", of_measurement=lambda seen: time_of_rank(seen, _sender(seen)) / 1e3),
    "time of the receiver": Quantity("us", of_measurement=lambda seen: time_of_rank(seen, 1 - _sender(seen)) / 1e3),
    "CPU of the sender": Quantity("%", of_measurement=lambda seen: _cpu_percent(seen, _sender(seen))),
    "CPU of the receiver": Quantity("%", of_measurement=lambda seen: _cpu_percent(seen, 1 - _sender(seen))),
    "write would block": Quantity("", of_measurement=lambda seen: _per_write(seen, "write_would_block", _sender(seen))),
    "read would block": Quantity(
        "", of_measurement=lambda seen: _per_write(seen, "read_would_block", 1 - _sender(seen))
    ),
    "place": Quantity("", combine=_place),
    "ratio to the native library": Quantity("", combine=_to_native),
    "jump": Quantity("MB", combine=_jump),
}


def also_of(name: str, quantity: str, members: Members, context: Context) -> Reported:
    """The quantity next to a row's own one: the "fastest" sample of the same, or another one."""
    if name == "fastest":
        return _fastest(QUANTITIES[quantity], members, context)
    return QUANTITIES[name].value(members, context)
