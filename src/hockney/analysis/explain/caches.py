"""Rates that fall where a message no longer fits into a cache."""

from __future__ import annotations

from collections.abc import Iterable

from hockney.analysis.estimates import is_above, ratio
from hockney.analysis.explain.curve import Curve, CurvePoint, Reading, subject_of
from hockney.analysis.explain.switches import may_be_caches
from hockney.analysis.finding import Absence, Finding, Fix, NotChecked
from hockney.stats.fit import Estimate, SegmentFit
from hockney.units import bytes_word, format_bytes

_FALL = 0.10

Rated = tuple[int, Estimate]


def cache_limits(reading: Reading) -> list[Finding] | NotChecked:
    """For each cache the curves whose best rate beyond it is 10 % below the best rate within it."""
    curves = [curve for curve in reading.curves if reading.is_link(curve) and curve.points]
    if not reading.caches:
        return NotChecked(Absence.NOT_APPLICABLE, detail="the caches of the machine are not known")
    if not curves:
        return NotChecked(Absence.NOT_MEASURED, detail="needs a curve of messages between two ranks")
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
        share = ratio(beyond[1], within[1])
        if is_above(within[1], beyond[1]) and share.value < 1 - _FALL and not _jumps_between(curve, within, beyond):
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


def _not_reached(curves: Iterable[Curve], reading: Reading) -> NotChecked:
    """With doubling sizes on both sides of each cache, on the transport that has the longest message."""
    caches = ", ".join(f"L{level} ({format_bytes(size)})" for level, size in reading.caches)
    sizes = [size for _, size in reading.caches]
    low, high = 1 << (min(sizes) // 4).bit_length() - 1, 1 << (4 * max(sizes) - 1).bit_length()
    longest = max(curves, key=lambda curve: curve.sizes[-1])
    words = f"{bytes_word(low)}:{bytes_word(high)}"
    command = ("hockney", "run", longest.pattern, "-t", longest.transport, "--bytes", words)
    fix = Fix("Measure them", command, reading.facts)
    return NotChecked(Absence.INSUFFICIENT_DATA, detail=f"needs sizes within and beyond {caches}", how=fix)


def _best(points: Iterable[CurvePoint], low: int, high: int) -> Rated | None:
    rated = [(point.bytes, rate) for point in points if low <= point.bytes <= high and (rate := point.rate_bytes_per_s)]
    return max(rated, key=lambda one: one[1].value) if rated else None


def _jumps_between(curve: Curve, within: Rated, beyond: Rated) -> bool:
    """Whether a protocol switch lies between two sizes: then what a cache costs is not known."""
    fit = curve.segments
    jumps = [one for one in fit.switches if one.is_jump] if isinstance(fit, SegmentFit) else []
    return any(within[0] < one.above_bytes and one.below_bytes < beyond[0] and not may_be_caches(one) for one in jumps)
