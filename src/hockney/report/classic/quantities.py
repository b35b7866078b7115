"""What reports print of their points, in their units: a small table of functions over the figures of a run."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

from hockney.analysis.host_series import time_of_rank
from hockney.machine.facts import data_caches
from hockney.model import Measurement
from hockney.report.classic.over_pairs import by_distance, half_rate, over_pairs, rmax
from hockney.report.classic.quantity import TIME, Basis, Context, Members, Quantity, reason_of
from hockney.report.classic.values import Reported, exactly
from hockney.results.figures import SEVERAL_STATES
from hockney.stats.fit import JUMP, NoFit, fit_line, fit_segments

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
    "largest time of a pair": replace(_PAIR, combine=over_pairs(max)),
    "least time of a pair": replace(_PAIR, combine=over_pairs(min)),
    "mean time of the pairs": replace(_PAIR, combine=over_pairs(fmean)),
    "mean rate of the pairs": replace(_PAIR, unit="MB/s", combine=over_pairs(fmean)),
    "Rmax": Quantity("MB/s", combine=rmax, over_pairs=True),
    "N 1/2": Quantity("words", combine=half_rate, over_pairs=True),
    "rate at N 1/2": Quantity("MB/s", combine=half_rate, over_pairs=True),
    "base": replace(_CP, combine=by_distance("base")),
    "each hop": replace(_CP, combine=by_distance("hop")),
    "each change of direction": replace(_CP, combine=by_distance("change")),
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
