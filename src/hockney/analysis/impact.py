"""How much a background slows a pattern: its time under load over its time idle.

Each round measures a point idle and loaded one after the other, so the ratio of a round has no drift of the machine in
it. All rounds count, in any machine state.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hockney.analysis.finding import Finding, Subject
from hockney.model import Measurement, Point, PointStatus
from hockney.results.traits import transport_traits
from hockney.stats import Interval, time_of
from hockney.stats.figures import percentile
from hockney.stats.interval import middle

if TYPE_CHECKING:
    from hockney.results.runs import Run


@dataclass(frozen=True)
class Times:
    """The median of a point, and percentiles of its samples; None: insufficient data, or several in a sample."""

    p50_ns: float
    p99_ns: float | None
    p999_ns: float | None


@dataclass(frozen=True)
class Impact:
    """The effect of a background on `point`: `factor` is the loaded time over the idle time, over this many rounds.

    `interval_over` is what the interval of the factor covers, as a figure's.
    """

    point: Point
    factor: Interval
    interval_over: str
    rounds: int
    idle: Times
    loaded: Times


@dataclass(frozen=True)
class Impacts:
    """All that a run measured under its background."""

    background: str
    impacts: tuple[Impact, ...]


def impacts_of(run: Run) -> Impacts | None:
    """The impact on each point that was measured idle and loaded; None of a run without a background."""
    background = next((series.point.background for series in run.series if series.point.background), None)
    if background is None:
        return None
    series = {each.point: each.measurements for each in run.series if each.status is not PointStatus.FAILED}
    idle = [point for point in series if not point.background]
    impacts = (_impact(point, series[point], series.get(point.under(background), ())) for point in idle)
    return Impacts(background, tuple(impact for impact in impacts if impact is not None))


def _impact(point: Point, idle: Sequence[Measurement], loaded: Sequence[Measurement]) -> Impact | None:
    """None without a round that has both."""
    before, under = ({each.round: each for each in members if each.elapsed_ns.size} for members in (idle, loaded))
    pairs = [(before[number], under[number]) for number in sorted(before.keys() & under.keys())]
    if not pairs:
        return None
    idle, loaded = zip(*pairs, strict=True)
    ratios = [over / below for below, over in zip(_medians_ns(idle), _medians_ns(loaded), strict=True)]
    factor, over_what = time_of(ratios, [measurement.launch_id for measurement in idle])
    return Impact(point, factor, over_what, len(pairs), _times(idle), _times(loaded))


def _medians_ns(measurements: Sequence[Measurement]) -> list[float]:
    return [middle(measurement.times_ns()) for measurement in measurements]


def _times(measurements: Sequence[Measurement]) -> Times:
    import numpy as np

    samples_ns = np.concatenate([measurement.times_ns() for measurement in measurements])
    is_single = all(measurement.batch == 1 for measurement in measurements)
    p99_ns, p999_ns = (percentile(samples_ns, share) if is_single else None for share in (0.99, 0.999))
    return Times(statistics.median(_medians_ns(measurements)), p99_ns, p999_ns)


def greatest_impacts(impacts: Impacts | None, facts: Mapping[str, Any]) -> list[Finding]:
    """Of each transport but the harness the point that its background slows most; none without a background."""
    greatest: dict[str, Impact] = {}
    if impacts is None:
        return []
    for impact in impacts.impacts:
        transport, low = impact.point.transport, impact.factor.low
        known = greatest.get(transport)
        if low is None or low <= 1.05 or transport_traits(facts, transport).is_harness:
            continue
        if known is None or impact.factor.value > known.factor.value:
            greatest[transport] = impact
    return [_finding(impact, impacts.background) for impact in greatest.values()]


def _finding(impact: Impact, background: str) -> Finding:
    point, factor = impact.point, impact.factor
    facts: dict[str, Any] = {
        "background": background,
        "slower_ratio": factor.estimate,
        "idle_ns": impact.idle.p50_ns,
        "loaded_ns": impact.loaded.p50_ns,
        "rounds": impact.rounds,
    }
    if point.is_sized:
        facts["size_bytes"] = point.bytes
    if impact.idle.p99_ns is not None and impact.loaded.p99_ns is not None:
        facts |= {"idle_p99_ns": impact.idle.p99_ns, "loaded_p99_ns": impact.loaded.p99_ns}
    subject = Subject(point.transport, point.pattern_text, point.ranks, sizes_bytes=(point.bytes,))
    return Finding("impact", subject, facts, effect=factor.value - 1)
