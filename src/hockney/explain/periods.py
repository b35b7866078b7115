"""What recurs: figures that are multiples of one time, and samples that are slow again and again."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hockney.explain.curve import Curve, Mark, Reading
from hockney.explain.finding import Evidence, Finding, Found, Lacking, time_text
from hockney.fit import Estimate
from hockney.model import Visit
from hockney.stats import median
from hockney.units import counted, format_ns

# Slices and ticks of schedulers: powers of two of a transputer's 1 us, and Linux ticks 100 to 1000 times a second.
_PERIODS_NS = tuple(1e3 * period for period in (64, 100, 128, 250, 256, 512, 1000, 1024, 2000, 3000, 4000, 10000))
_TICKS_NS = tuple(1e6 * period for period in (1, 2, 3, 4, 10))
_NEAR = 0.005  # of a period, on either side of a multiple
_CHANCE = 1e-3  # that a finding is none, all periods tried together
_AS_SURE = 10.0
_LOCKED_MIN = 5
_SLOW = 2.0  # times the median of its visit
_SHARE = 1e-3
_ALIKE = 0.25  # an excess that is so near the median of all transports' is like it
_GAPS_MIN = 12
_GAP_NEAR = 0.05
_VISITS_MAX = 1500


def locked_values(reading: Reading) -> Found:
    """Many figures that lie on multiples of one period."""
    groups: dict[tuple[str, bool], list[tuple[Curve, Mark]]] = {}
    for curve in reading.curves:
        # Slices show where ranks compute; figures of ranks that only communicate would water them down.
        computes = bool(float(curve.option("delay_us") or 0))
        groups.setdefault((curve.transport, computes), []).extend((curve, mark) for mark in curve.marks)
    tried = [_locked(transport, figures) for (transport, _), figures in groups.items()]
    if all(isinstance(one, Lacking) for one in tried):
        return Lacking(f"needs {_LOCKED_MIN} figures of one transport above 64 us, each known better than a period")
    return [found for one in tried if isinstance(one, list) for found in one]


def _locked(transport: str, figures: Sequence[tuple[Curve, Mark]]) -> Found:
    tries = []
    for period_ns in _PERIODS_NS:
        able = _different([(curve, mark) for curve, mark in figures if _can_tell(mark.time_ns, period_ns)])
        on = [(curve, mark) for curve, mark in able if _off(mark.time_ns.value, period_ns) <= _NEAR]
        chance = _tail(len(able), 2 * _NEAR, len(on)) * len(_PERIODS_NS)
        if len(able) >= _LOCKED_MIN:
            tries.append((chance, period_ns, on, len(able)))
    if not tries:
        return Lacking("")
    surest = min(chance for chance, *_ in tries)
    # Multiples of a period are multiples of its half: of those about as sure the longest.
    chance, period_ns, on, able_count = [one for one in tries if one[0] <= _AS_SURE * surest][-1]
    if len(on) < _LOCKED_MIN or chance > _CHANCE:
        return []
    values = ", ".join(format_ns(mark.time_ns.value) for _, mark in on[:4])
    patterns = sorted({curve.pattern for curve, _ in on})
    return [
        Finding(
            kind="values locked to a period",
            transport=transport,
            pattern=", ".join(patterns),
            sentence=(
                f"{len(on)} of {able_count} different figures lie on multiples of {format_ns(period_ns)} ({values}"
                f"{', …' if len(on) > 4 else ''}; {' and '.join(patterns)}), where {2 * _NEAR * able_count:.1f} would "
                "by chance: they end with a time slice, not with the work."
            ),
            effect=len(on) / able_count,
            evidence=tuple(
                Evidence(f"{curve.name}, {counted(curve.ranks, 'rank')}", mark.time_ns, "ns") for curve, mark in on
            ),
        )
    ]


def _different(figures: Sequence[tuple[Curve, Mark]]) -> list[tuple[Curve, Mark]]:
    """Of figures that are nearly equal the first: the same time twice is no second sign of a period."""
    kept: list[tuple[Curve, Mark]] = []
    for curve, mark in sorted(figures, key=lambda one: one[1].time_ns.value):
        if not kept or mark.time_ns.value > (1 + 4 * _NEAR) * kept[-1][1].time_ns.value:
            kept.append((curve, mark))
    return kept


def _can_tell(time: Estimate, period_ns: float) -> bool:
    """Whether it is long enough to be a multiple, and known well enough to be beside one."""
    return time.value > (1 - _NEAR) * period_ns and time.high - time.low <= 2 * _NEAR * period_ns


def _off(value_ns: float, period_ns: float) -> float:
    """How far from the next multiple, as a fraction of the period."""
    cycles = value_ns / period_ns
    return abs(cycles - round(cycles))


def _tail(n: int, p: float, k: int) -> float:
    """P(binomial(n, p) >= k)."""
    logs = math.lgamma(n + 1), math.log(p), math.log(1 - p)
    return math.fsum(
        math.exp(logs[0] - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * logs[1] + (n - i) * logs[2])
        for i in range(k, n + 1)
    )


@dataclass(frozen=True)
class _Slow:
    """The outliers of a transport: how many of how many samples, how far apart, and how much longer they are.

    `share` is what they take more than the others, as a part of the time of all samples.
    """

    transport: str
    count: int
    samples: int
    gaps_ns: list[float]
    excess_ns: Estimate
    share: float


def outliers(reading: Reading) -> Found:
    """Samples of more than twice their visit's median, with their period where they have one.

    Where they are alike on most transports, they are no transport's own: that is one finding.
    """
    by_transport: dict[str, list[Visit]] = {}
    for visit, _ in reading.samples(_VISITS_MAX):
        by_transport.setdefault(visit.point.transport, []).append(visit)
    if not by_transport:
        return Lacking("needs samples")
    slow = [one for transport, visits in by_transport.items() if (one := _slow(transport, visits)) is not None]
    alike = _alike(slow)
    found = [_outliers([one], one.transport) for one in slow if one not in alike]
    return [*found, _outliers(alike, "")] if alike else found


def _slow(transport: str, visits: Sequence[Visit]) -> _Slow | None:
    """None where they are too few to speak of."""
    import numpy as np

    slow, samples, gaps_ns, excess_ns, whole_ns = 0, 0, [], [], 0.0
    for visit in visits:
        times_ns = visit.times_ns()
        middle = float(np.median(times_ns))
        where = np.flatnonzero(times_ns > _SLOW * middle)
        slow, samples = slow + len(where), samples + len(times_ns)
        scale = visit.batch * visit.definition.divisor
        whole_ns += float(times_ns.sum()) * scale
        if len(where):
            # A sample's place in time: barriers lie between samples, so the mean of the visit is what it takes.
            # Neighbours are one disturbance.
            starts = where[np.diff(where, prepend=-2) > 1]
            gaps_ns += (np.diff(starts) * visit.wall_ns[0] / len(times_ns)).tolist()
            excess_ns += ((times_ns[where] - middle) * scale).tolist()
    if samples == 0 or slow < 6 or slow < _SHARE * samples:
        return None
    typical = median(excess_ns)
    if typical.low is None or typical.high is None:
        return None
    excess = Estimate(typical.value, typical.low, typical.high)
    return _Slow(transport, slow, samples, gaps_ns, excess, sum(excess_ns) / whole_ns)


def _alike(slow: Sequence[_Slow]) -> list[_Slow]:
    """Those of the transports whose excess is about the median of all, where they are most, and two at the least."""
    if len(slow) < 2:
        return []
    middle_ns = statistics.median(one.excess_ns.value for one in slow)
    alike = [
        one
        for one in slow
        if one.excess_ns.low <= middle_ns <= one.excess_ns.high
        or abs(one.excess_ns.value - middle_ns) <= _ALIKE * middle_ns
    ]
    return alike if len(alike) >= 2 and 2 * len(alike) > len(slow) else []


def _outliers(slow: Sequence[_Slow], transport: str) -> Finding:
    count, samples = sum(one.count for one in slow), sum(one.samples for one in slow)
    period_ns = _period([gap for one in slow for gap in one.gaps_ns])
    when = f"about every {format_ns(period_ns)}" if period_ns else "without a period that could be seen"
    longer = f"such a sample is {time_text(slow[0].excess_ns)} longer."
    if len(slow) > 1:
        values = [one.excess_ns.value for one in slow]
        longer = (
            f"such a sample is about as much longer on {', '.join(one.transport for one in slow)} "
            f"({format_ns(min(values))} to {format_ns(max(values))}): that points to the machine, not to a transport."
        )
    evidence = [
        Evidence(f"excess on {one.transport}" if len(slow) > 1 else "excess", one.excess_ns, "ns") for one in slow
    ]
    if period_ns:
        evidence.append(Evidence("period", Estimate(period_ns, period_ns, period_ns), "ns"))
    return Finding(
        kind="outliers",
        transport=transport,
        sentence=(
            f"{count / samples:.2%} of the samples looked at ({count:,} of {samples:,}) take more than twice their "
            f"visit's median, {when}; {longer}"
        ),
        effect=max(one.share for one in slow),
        evidence=tuple(evidence),
        remedy="`hockney doctor` says what else runs on these CPUs." if period_ns else None,
    )


def _period(gaps_ns: Sequence[float]) -> float | None:
    """The tick of which the gaps are multiples, more often than by chance."""
    tries = []
    for period_ns in _TICKS_NS:
        able = [gap for gap in gaps_ns if 0.5 * period_ns <= gap <= 4.5 * period_ns]
        on = sum(_off(gap, period_ns) <= _GAP_NEAR for gap in able)
        if len(able) >= _GAPS_MIN and 2 * len(able) >= len(gaps_ns):
            tries.append((_tail(len(able), 2 * _GAP_NEAR, on) * len(_TICKS_NS), -period_ns))
    chance, negative_ns = min(tries, default=(1.0, 0.0))
    return -negative_ns if chance <= _CHANCE else None
