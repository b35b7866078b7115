"""Figures that are multiples of one time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hockney.analysis.explain.curve import Curve, Mark, Reading
from hockney.analysis.explain.finding import Evidence, Finding, Found, Lacking
from hockney.stats.fit import Estimate
from hockney.units import counted, format_ns

# Slices and ticks of schedulers: powers of two of a transputer's 1 us, and Linux ticks 100 to 1000 times a second.
_PERIODS_NS = tuple(1e3 * period for period in (64, 100, 128, 250, 256, 512, 1000, 1024, 2000, 3000, 4000, 10000))
_NEAR = 0.005  # of a period, on either side of a multiple
_CHANCE = 1e-3  # that a finding is none, all periods tried together
_AS_SURE = 10.0
_LOCKED_MIN = 5


def locked_values(reading: Reading) -> Found:
    """Many figures that lie on multiples of one period."""
    groups: dict[tuple[str, bool], list[tuple[Curve, Mark]]] = {}
    for curve in reading.curves:
        # Slices show where ranks compute; figures of ranks that only communicate would water them down.
        computes = bool(float(curve.option("delay_us") or 0))
        groups.setdefault((curve.transport, computes), []).extend((curve, mark) for mark in curve.marks)
    tried = [_locked(transport, figures) for (transport, _), figures in groups.items()]
    if all(isinstance(one, Lacking) for one in tried):
        return Lacking(
            f"needs {_LOCKED_MIN} different figures of one transport above 64 us, each known better than a period"
        )
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
    different = "" if any(curve.oversubscribed for curve, _ in on) else "different "
    return [
        Finding(
            kind="values locked to a period",
            transport=transport,
            pattern=", ".join(patterns),
            sentence=(
                f"{len(on)} of {able_count} {different}figures lie on multiples of {format_ns(period_ns)} ({values}"
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
    """Of figures that are nearly equal the first: the same time twice is no second sign of a period.

    But it is where ranks share CPUs, for their times are the scheduler's, and else would grow with the size.
    """
    kept: list[tuple[Curve, Mark]] = []
    for curve, mark in sorted(figures, key=lambda one: one[1].time_ns.value):
        if not kept or curve.oversubscribed or mark.time_ns.value > (1 + 4 * _NEAR) * kept[-1][1].time_ns.value:
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
