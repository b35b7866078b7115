"""Sizes up to which latency is flat, and rates that fall where a message no longer fits into a cache."""

from __future__ import annotations

from collections.abc import Iterable

from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve, Reading, subject_of
from hockney.analysis.explain.switches import protocol_jumps
from hockney.analysis.finding import Absence, Finding, NotChecked
from hockney.analysis.repeat import same_placement
from hockney.errors import Fix
from hockney.results.traits import transport_traits
from hockney.stats.fit import Estimate
from hockney.units import bytes_word, format_bytes

_FALL = 0.1
_MESSAGES = 100  # as long as the longest: what measuring all sizes takes


def cache_limits(reading: Reading) -> list[Finding] | NotChecked:
    """Find, for each cache, curves whose best rate beyond it is below the best rate within it by 10 % at least.

    Not of models, whose rates the caches of this machine do not decide.
    """
    links = [curve for curve in reading.curves if reading.is_link(curve) and curve.points]
    curves = [curve for curve in links if "virtual" not in transport_traits(reading.facts, curve.transport).caps]
    if not reading.caches or (links and not curves):
        return NotChecked(Absence.NOT_APPLICABLE, why="no caches" if reading.caches else "caches not known")
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
        if share.high > 1 - _FALL:
            continue
        # With a protocol switch in between, the cost of the cache is not known.
        jumps = protocol_jumps(curve, reading)
        if not any(within[0] < jump.between[1] and jump.between[0] < beyond[0] for jump in jumps):
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
    """The check with a command that measures doubling sizes on both sides of each cache that the time is enough for.

    Not on sockets, whose rate the kernel decides more than a cache.
    """
    in_memory = [curve for curve in curves if transport_traits(reading.facts, curve.transport).carrier != "kernel"]
    if not in_memory:
        return NotChecked(Absence.NOT_APPLICABLE, why="no caches")
    longest = max(in_memory, key=lambda curve: curve.sizes[-1])
    byte_s = longest.points[-1].time_ns.value / 1e9 / max(1, longest.sizes[-1])
    most_bytes = reading.plan.get("time_s", 60.0) / (_MESSAGES * byte_s)
    caches = [(level, size) for level, size in reading.caches if 2 * size <= most_bytes]
    if not caches:
        return NotChecked(Absence.NOT_APPLICABLE, why="caches too large")
    sizes = [size for _, size in caches]
    low, high = 1 << (min(sizes) // 4).bit_length() - 1, 1 << (2 * max(sizes) - 1).bit_length()
    words = f"{bytes_word(low)}:{bytes_word(high)}"
    command = ("hockney", "run", longest.pattern, *same_placement(reading.plan, longest.transport), "--bytes", words)
    fix = Fix("measure sizes", command, run_facts=reading.facts)
    facts = {"caches": [f"L{level} ({format_bytes(size)})" for level, size in caches]}
    return NotChecked(Absence.INSUFFICIENT_DATA, why="both sides of caches", facts=facts, how=fix)


def _best(points: Iterable[CurvePoint], low: int, high: int) -> tuple[int, Estimate] | None:
    rated = [(point.bytes, rate) for point in points if low <= point.bytes <= high and (rate := point.rate_bytes_per_s)]
    return max(rated, key=lambda sized: sized[1].value, default=None)


def flat(reading: Reading) -> list[Finding] | NotChecked:
    """Sizes up to which a message takes as long as the shortest; of several numbers of ranks the first's.

    They reach from the shortest size, or 4 B, to four times that at least.
    """
    curves = reading.shapes_of(3, "three sizes")
    if isinstance(curves, NotChecked):
        return curves
    findings: dict[tuple[str, str], Finding] = {}
    for curve in curves:
        equal = _equal(curve)
        first, last = equal[0], equal[-1]
        if last.bytes >= 4 * max(4, first.bytes):
            facts = {
                "first_ns": first.time_ns,
                "first_bytes": first.bytes,
                "last_ns": last.time_ns,
                "flat_bytes": last.bytes,
            }
            finding = Finding("flat latency", subject_of(curve, tuple(point.bytes for point in equal)), facts)
            findings.setdefault((curve.transport, curve.name), finding)
    return list(findings.values())


def _equal(curve: MeasuredCurve) -> list[CurvePoint]:
    """The first points of a curve whose times do not differ: by 3 % at most, in a ratio known to 10 %."""
    first, *rest = curve.points
    equal = [first]
    for point in rest:
        over = point.time_ns / first.time_ns
        if not over.low <= 1 <= over.high or abs(over.value - 1) > 0.03:
            break
        if over.relative <= 0.1:
            equal.append(point)
    return equal
