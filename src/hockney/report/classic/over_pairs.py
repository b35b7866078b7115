"""Statistics over pairs of ranks, as the T3D newsletter has them, and what distance adds to their latency."""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

from hockney.analysis.host_series import time_of_rank
from hockney.machine.topology import Topology
from hockney.model import Measurement
from hockney.report.classic.models import models_of, way_of
from hockney.report.classic.quantity import TIME, Context, Members, Quantity, median, reason_of
from hockney.report.classic.values import Reported, exactly
from hockney.results.figures import Figure
from hockney.results.runs import Run, Series
from hockney.stats import ONE_LAUNCH
from hockney.stats.fit import DistanceFit, NoFit, fit_distance
from hockney.stats.interval import Estimate

_WORD_BYTES = 8
_CP_NS = 1e3 / 150  # the clock period of the T3D


def over_pairs(choose: Callable[[Sequence[float]], float]) -> Callable[[Quantity, Members, Context], Reported]:
    """A statistic over all pairs for one word; of its time, or as a rate."""

    def value(of: Quantity, members: Members, context: Context) -> Reported:
        (best, *_) = _by_state(members, context, choose) or [Reported("us", reason=reason_of(members[0]))]
        return best if of.unit == "us" else best.converted(of.unit, lambda us: _WORD_BYTES / us)

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


def rmax(of: Quantity, members: Members, context: Context) -> Reported:
    """The best mean rate of all sizes and states."""
    rates = _best_rates(members, context)
    if len(rates) < 2:
        return Reported(of.unit, reason="only one size was measured" if rates else reason_of(members[0]))
    return max(rates.values(), key=lambda value: value.number or 0.0)


def half_rate(of: Quantity, members: Members, context: Context) -> Reported:
    """The fewest words that reach half of Rmax, or the rate there.

    Between two measured sizes the time lies on a line, so that the answer is no step of sizes. The first size that
    reaches half is the answer if it is the shortest of all.
    """
    best = rmax(replace(of, unit="MB/s"), members, context)
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
    return exactly(of.unit, size / _WORD_BYTES, state=best.state, is_predicted=best.is_predicted)


def by_distance(name: str) -> Callable[[Quantity, Members, Context], Reported]:
    """A parameter of latency = base + hops + changes of direction, in clock periods of the T3D."""

    def value(of: Quantity, members: Members, context: Context) -> Reported:
        fit = _fit_of(members, context.run)
        if isinstance(fit, str):
            return Reported(of.unit, reason=fit)
        estimate: Estimate | None = getattr(fit[0], f"{name}_ns")
        if estimate is None:
            return Reported(of.unit, reason="routes between CPUs have no directions")
        return Reported(of.unit, estimate * (1 / _CP_NS), "fit", fit[1], is_exact=fit[1] is None)

    return value


def _fit_of(members: Sequence[Series], run: Run) -> tuple[DistanceFit, str | None] | str:
    """The fit to the latencies of all pairs in the state of most of them, or why there is none."""
    figures = [(each, figure) for each in members if (figure := each.shown) is not None]
    states = Counter(figure.state for _, figure in figures)
    times_ns: dict[tuple[int, int], float] = {}
    hops: dict[tuple[int, int], int] = {}
    changes: dict[tuple[int, int], int] = {}
    for series, figure in figures:
        if states[figure.state] < max(states.values()):
            continue
        options = dict(series.point.options)
        pair = int(options.get("source", 0)), int(options.get("target", 1))
        model = models_of(run).get(series.point.transport)
        way = way_of(model, pair) if model is not None else None
        times_ns[pair] = figure.time.value
        if way is not None:
            hops[pair], changes[pair] = way
            continue
        borders = _borders(series, pair, run)
        if isinstance(borders, str):
            return borders
        hops[pair] = borders
    if not times_ns:
        return "no pair of ranks has a latency"
    fit = fit_distance(times_ns, hops, changes or None)
    if isinstance(fit, NoFit):
        return fit.reason
    is_exact = all(each.is_exact for each in members)
    return fit, None if is_exact else max(states, key=lambda state: states[state])


def _borders(series: Series, pair: tuple[int, int], run: Run) -> int | str:
    """The number of borders between the CPUs of two ranks, or why it is unknown."""
    if not series.launches:
        return "predicted pairs are all alike"
    if series.oversubscribed:
        return "more ranks than CPUs: scheduling times do not depend on distance"
    topology = run.facts.get("topology", {})
    if "cores" not in topology:
        return "the topology of this machine's CPUs is unknown"
    (source, target), *others = {tuple(launch.cpus[rank] for rank in pair) for launch in series.launches}
    hosts = {host for launch in series.launches for host in launch.hosts}
    if len(hosts) > 1 or others or min(source, target) < 0:
        return "the CPUs of a pair are unknown"
    return Topology.from_json(topology).borders(source, target)
