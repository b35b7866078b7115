"""Rates that fall where a message no longer fits into a cache."""

from __future__ import annotations

from collections.abc import Iterable

from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve, Reading, subject_of
from hockney.analysis.explain.switches import protocol_jumps
from hockney.analysis.finding import Absence, Finding, NotChecked
from hockney.analysis.repeat import same_places
from hockney.errors import Fix
from hockney.stats.fit import Estimate
from hockney.units import bytes_word, format_bytes


def cache_limits(reading: Reading) -> list[Finding] | NotChecked:
    """Find, for each cache, curves whose best rate beyond it is 10 % below the best rate within it."""
    curves = [curve for curve in reading.curves if reading.is_link(curve) and curve.points]
    if not reading.caches:
        return NotChecked(Absence.NOT_APPLICABLE, why="caches not known")
    if not curves:
        return NotChecked(Absence.NOT_MEASURED, why="two ranks")
    sides = [
        (curve, cache, within, beyond)
        for curve in curves
        for cache in reading.caches
        if (within := _best(curve.points, cache[1] // 8, cache[1] // 2)) is not None
        and (beyond := _best(curve.points, 2 * cache[1], 8 * cache[1])) is not None
    ]
    if not sides:
        return _not_reached(curves, reading)
    findings = []
    for curve, (level, cache_bytes), within, beyond in sides:
        share = beyond[1] / within[1]
        if not within[1].is_above(beyond[1]) or share.value >= 0.9:
            continue
        # With a protocol switch in between, the cost of the cache is not known.
        jumps = protocol_jumps(curve, reading)
        if not any(within[0] < jump.above_bytes and jump.below_bytes < beyond[0] for jump in jumps):
            facts = {
                "level": level,
                "cache_bytes": cache_bytes,
                "within_bytes_per_s": within[1],
                "within_bytes": within[0],
                "beyond_bytes_per_s": beyond[1],
                "beyond_bytes": beyond[0],
                "fall_share": 1 - share.value,
            }
            subject = subject_of(curve, (within[0], beyond[0]))
            findings.append(Finding("cache limit", subject, facts, effect=1 - share.value))
    return findings


def _not_reached(curves: Iterable[MeasuredCurve], reading: Reading) -> NotChecked:
    """The check with a command that measures doubling sizes on both sides of each cache."""
    caches = [f"L{level} ({format_bytes(size)})" for level, size in reading.caches]
    sizes = [size for _, size in reading.caches]
    low, high = 1 << (min(sizes) // 4).bit_length() - 1, 1 << (4 * max(sizes) - 1).bit_length()
    longest = max(curves, key=lambda curve: curve.sizes[-1])
    words = f"{bytes_word(low)}:{bytes_word(high)}"
    command = ("hockney", "run", longest.pattern, *same_places(reading.plan, longest.transport), "--bytes", words)
    fix = Fix("measure sizes", command, run_facts=reading.facts)
    return NotChecked(Absence.INSUFFICIENT_DATA, why="both sides of caches", facts={"caches": caches}, how=fix)


def _best(points: Iterable[CurvePoint], low: int, high: int) -> tuple[int, Estimate] | None:
    rated = [(point.bytes, rate) for point in points if low <= point.bytes <= high and (rate := point.rate_bytes_per_s)]
    return max(rated, key=lambda sized: sized[1].value, default=None)
