"""Rates that fall where a message no longer fits into a cache."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hockney.analysis.estimates import is_above, ratio
from hockney.analysis.explain.curve import Curve, CurvePoint, Reading, subject_of
from hockney.analysis.explain.shape import curves_of_shapes
from hockney.analysis.explain.switches import jump_places
from hockney.analysis.finding import Absence, Finding, Fix, NotChecked
from hockney.stats.fit import Estimate
from hockney.units import bytes_word, format_bytes

_STREAMS = ("oneway", "twoway", "pairs", "pingpong", "put", "get", "stream")  # patterns that have a rate
_FALL = 0.10

Rated = tuple[int, Estimate]


def cache_limits(reading: Reading) -> list[Finding] | NotChecked:
    """For each cache the curves whose best rate beyond it is 10 % below the best rate within it."""
    curves = [curve for curve in reading.of(*_STREAMS) if curve.points]
    if not reading.caches:
        return NotChecked(Absence.NOT_APPLICABLE, detail="the caches of the machine are not known")
    if not curves:
        return NotChecked(Absence.NOT_MEASURED, detail=f"needs a curve of {', '.join(_STREAMS)}")
    if _unreached(reading) == reading.caches:
        return _not_reached(reading.caches, curves, reading)
    found = []
    for curve in curves:
        for level, cache_bytes in reading.caches:
            within, beyond = _either_side(curve, reading, cache_bytes)
            if within and beyond and _falls(within, beyond):
                facts = {
                    "level": level,
                    "cache_bytes": cache_bytes,
                    "within_bytes_per_s": within[1],
                    "within_bytes": within[0],
                    "beyond_bytes_per_s": beyond[1],
                    "beyond_bytes": beyond[0],
                    "fall_share": 1 - (share := ratio(beyond[1], within[1]).value),
                }
                subject = subject_of(curve, (within[0], beyond[0]))
                found.append(Finding("cache limit", subject, facts, effect=1 - share))
    return found


def unreached_caches(reading: Reading) -> list[NotChecked]:
    """The caches that no curve has sizes on both sides of, where one has of another cache."""
    missing = _unreached(reading)
    if not missing or missing == reading.caches:
        return []
    return [_not_reached(missing, reading.of(*_STREAMS), reading)]


def _unreached(reading: Reading) -> list[tuple[int, int]]:
    curves = reading.of(*_STREAMS)
    return [cache for cache in reading.caches if not any(all(_sides(curve.points, cache[1])) for curve in curves)]


def _not_reached(missing: Sequence[tuple[int, int]], curves: Sequence[Curve], reading: Reading) -> NotChecked:
    """With doubling sizes on both sides of each of these caches, on the transport that has the longest message."""
    caches = ", ".join(f"L{level} ({format_bytes(size)})" for level, size in missing)
    low = 1 << (min(size for _, size in missing) // 4).bit_length() - 1
    high = 1 << (4 * max(size for _, size in missing) - 1).bit_length()
    longest = max(curves, key=lambda curve: (curve.sizes[-1], -_STREAMS.index(curve.pattern)))
    sizes = f"{bytes_word(low)}:{bytes_word(high)}"
    command = ("hockney", "run", longest.pattern, "-t", longest.transport, "--bytes", sizes)
    return NotChecked(
        Absence.INSUFFICIENT_DATA,
        "cache limits",
        f"needs sizes within and beyond {caches}",
        Fix("Measure them", command, reading.facts),
    )


def _sides(points: Sequence[CurvePoint], cache_bytes: int) -> tuple[Rated | None, Rated | None]:
    """The best rates within a cache and beyond it, from sizes that surely lie there."""
    return _best(points, cache_bytes // 8, cache_bytes // 2), _best(points, 2 * cache_bytes, 8 * cache_bytes)


def _either_side(curve: Curve, reading: Reading, cache_bytes: int) -> tuple[Rated | None, Rated | None]:
    """As `_sides`, with what is sent within the cache in the same way as beyond it.

    After a jump that costs a start-up the rate rises again with the size; what a cache costs stays.
    """
    within, beyond = _sides(curve.points, cache_bytes)
    if within is None or beyond is None or not _falls(within, beyond) or curve not in curves_of_shapes(reading):
        return within, beyond
    for _, above_bytes in jump_places(curve):
        if not within[0] < above_bytes <= beyond[0]:
            continue
        after = _best(curve.points, above_bytes, max(above_bytes, cache_bytes // 2))
        if after is None or (2 * above_bytes > cache_bytes and _falls(beyond, after)):
            return None, beyond
        if 2 * above_bytes <= cache_bytes:
            within = after
    return within, beyond


def _falls(within: Rated, beyond: Rated) -> bool:
    return is_above(within[1], beyond[1]) and within[1].value > (1 + _FALL) * beyond[1].value


def _best(points: Iterable[CurvePoint], low: int, high: int) -> Rated | None:
    rated = [(point.bytes, rate) for point in points if low <= point.bytes <= high and (rate := point.rate_bytes_per_s)]
    return max(rated, key=lambda one: one[1].value) if rated else None
