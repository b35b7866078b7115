"""Rates that fall where a message no longer fits into a cache."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hockney.analysis.explain.curve import Curve, Mark, Reading, finding_about
from hockney.analysis.explain.finding import Evidence, Finding, Found, Lacking, is_above, ratio
from hockney.analysis.explain.shape import curves_of_shapes, no_curve
from hockney.analysis.explain.switches import jumps_of
from hockney.cli.rerun import as_then
from hockney.stats.fit import Estimate
from hockney.units import bytes_word, format_bytes, format_rate

_STREAMS = ("oneway", "twoway", "pairs", "pingpong", "put", "get", "stream")  # what has a rate, and no other company
_FALL = 0.10


def cache_falls(reading: Reading) -> Found:
    """A best rate beyond a cache that is below the one within."""
    if not reading.caches:
        return Lacking("the caches of the machine are not known")
    curves = [curve for curve in reading.of(*_STREAMS) if curve.marks]
    if not curves:
        return no_curve(_STREAMS)
    missing = _missing(reading)
    if missing == reading.caches:
        return _needed("a cache", curves, missing, as_then(reading.facts))
    pairs = [
        (curve, level, size, *both)
        for curve in curves
        for level, size in reading.caches
        if (both := _either_side(curve.marks, size)) is not None
    ]
    return [
        _fall(curve, level, size, own, beyond)
        for curve, level, size, within, beyond in pairs
        if _falls(within, beyond) and (own := _beside_jumps(curve, reading, size, within, beyond)) is not None
    ]


def unreached(reading: Reading) -> list[Lacking]:
    """The caches that no curve has sizes on both sides of, where it has of another one, and what they need."""
    missing = _missing(reading)
    if not missing or missing == reading.caches:
        return []
    names = " or ".join(f"L{level}" for level, _ in missing)
    needed = _needed("it", reading.of(*_STREAMS), missing, as_then(reading.facts))
    return [replace(needed, what=f"a bandwidth that falls beyond the {names} cache")]


def _missing(reading: Reading) -> list[tuple[int, int]]:
    curves = reading.of(*_STREAMS)
    return [cache for cache in reading.caches if not any(_either_side(curve.marks, cache[1]) for curve in curves)]


def _needed(of: str, curves: Sequence[Curve], missing: Sequence[tuple[int, int]], before: str) -> Lacking:
    """What was measured, and the sizes, doubling, that would have one on either side of each of these caches."""
    sizes = [size for curve in curves for size in curve.sizes]
    least, most = format_bytes(min(sizes)), format_bytes(max(sizes))
    here = f"all are of {least}" if least == most else f"they go from {least} to {most}"
    holds = " and ".join(f"the L{level} holds {format_bytes(size)}" for level, size in missing)
    low = 1 << (min(size for _, size in missing) // 4).bit_length() - 1
    high = 1 << (4 * max(size for _, size in missing) - 1).bit_length()
    # What carries the longest may carry longer ones.
    longest = max(curves, key=lambda curve: (curve.sizes[-1], -_STREAMS.index(curve.pattern)))
    command = (
        f"{before}hockney run {longest.pattern} -t {longest.transport} --bytes {bytes_word(low)}:{bytes_word(high)}"
    )
    return Lacking(f"needs sizes within and beyond {of}: here {here}, and {holds}", f"`{command}`")


Rated = tuple[int, Estimate]


def _either_side(marks: Sequence[Mark], cache_bytes: int) -> tuple[Rated, Rated] | None:
    """The best rates within a cache and beyond it, from sizes that are sure to lie there, with their sizes."""
    within = _best(marks, cache_bytes // 8, cache_bytes // 2)
    beyond = _best(marks, 2 * cache_bytes, 8 * cache_bytes)
    return None if within is None or beyond is None else (within, beyond)


def _falls(within: Rated, beyond: Rated) -> bool:
    return is_above(within[1], beyond[1]) and within[1].value > (1 + _FALL) * beyond[1].value


def _beside_jumps(curve: Curve, reading: Reading, cache_bytes: int, within: Rated, beyond: Rated) -> Rated | None:
    """The best rate within the cache of what is sent as beyond it; None where a jump of the time explains the fall.

    After a jump that costs a start-up the rate rises again with the size; what a cache costs stays. Only a jump that is
    told may take its place.
    """
    if curve not in curves_of_shapes(reading):
        return within
    for _, above_bytes in sorted(jumps_of(curve, reading)):
        if not within[0] < above_bytes <= beyond[0]:
            continue
        after = _best(curve.marks, above_bytes, max(above_bytes, cache_bytes // 2))
        if after is None or (2 * above_bytes > cache_bytes and _falls(beyond, after)):
            return None
        if 2 * above_bytes <= cache_bytes:
            within = after
    return within if _falls(within, beyond) else None


def _best(marks: Iterable[Mark], low: int, high: int) -> Rated | None:
    rated = [(mark.bytes, rate) for mark in marks if low <= mark.bytes <= high and (rate := mark.rate_bytes_per_s)]
    return max(rated, key=lambda one: one[1].value) if rated else None


def _fall(curve: Curve, level: int, cache_bytes: int, within: Rated, beyond: Rated) -> Finding:
    fall = ratio(beyond[1], within[1])
    return finding_about(
        curve,
        "bandwidth falls beyond a cache",
        sentence=(
            f"The rate of {curve.name} falls from {format_rate(within[1].value)} at {format_bytes(within[0])} to "
            f"{format_rate(beyond[1].value)} at {format_bytes(beyond[0])}, {1 - fall.value:.0%}: between them lies the "
            f"L{level} cache, {format_bytes(cache_bytes)}."
        ),
        effect=1 - fall.value,
        sizes_bytes=(within[0], beyond[0]),
        evidence=(Evidence("within", within[1], "B/s"), Evidence("beyond", beyond[1], "B/s")),
    )
