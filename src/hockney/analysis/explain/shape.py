"""What one curve shows by itself: sizes that cost nothing; and steps of printed times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hockney.analysis.explain.curve import Curve, Mark, Place, Reading, finding_about
from hockney.analysis.explain.finding import (
    Evidence,
    Finding,
    Found,
    Lacking,
    difference,
    ratio,
    relative,
    sizes_text,
    time_text,
)
from hockney.stats.fit import Estimate, NoFit, Segment, SegmentFit, fit_line, fit_segments
from hockney.units import format_bytes, format_ns, format_rate

# A curve's shape is that of its transport, so of each transport the first of these that it has is looked at.
SHAPES = ("pingpong", "putpong", "oneway", "pairs", "put", "get", "putring")
# Times its first size must a line's last one be: else size 0 lies farther off than twice what it spans.
REACH = 1.5
_FALL = 0.10
_ALIKE = 0.03
_KNOWN = 0.10  # a ratio that is known less well is not called one of equals
_WIDE = 4  # a plateau reaches from the shortest size, or 4 B, to so many times that
_STRAIGHT = 0.02
_PLATEAU = 16  # times the shortest size: what lies between it and a line that begins farther off is not known


def steps(reading: Reading) -> Found:
    """Sizes between which the time rises by more than a published best rate explains."""
    curves = [curve for curve in reading.curves if curve.peak_bytes_per_s is not None and len(curve.marks) > 1]
    if not curves:
        return Lacking("needs a best rate that was published beside times of two sizes")
    return [
        found
        for curve in curves
        for lower, upper in zip(curve.marks, curve.marks[1:], strict=False)
        if (found := _step(curve, lower, upper)) is not None
    ]


def _step(curve: Curve, lower: Mark, upper: Mark) -> Finding | None:
    peak = curve.peak_bytes_per_s
    assert peak is not None
    more = (upper.bytes - lower.bytes) * 1e9
    explained = Estimate(more / peak.value, more / peak.high, more / peak.low)
    rest = difference(difference(upper.time_ns, lower.time_ns), explained)
    effect = rest.value / lower.time_ns.value
    if rest.low <= 0 or effect < _FALL:
        return None
    return finding_about(
        curve,
        "protocol switch",
        sentence=(
            f"From {format_bytes(lower.bytes)} to {format_bytes(upper.bytes)} the time of {curve.name} rises by "
            f"{format_ns(upper.time_ns.value - lower.time_ns.value)}, of which the best rate "
            f"({format_rate(peak.value)}) explains {format_ns(explained.value)}: {time_text(rest)} is a step, so short "
            "messages go another way."
        ),
        effect=effect,
        sizes_bytes=(lower.bytes, upper.bytes),
        evidence=(Evidence("step", rest, "ns"), Evidence("best rate", peak, "B/s")),
    )


def flat(reading: Reading) -> Found:
    """Sizes up to which a message takes as long as the shortest."""
    curves = [curve for curve in curves_of_shapes(reading) if len(curve.marks) >= 3]
    if not curves:
        return lacking_shape(reading, "of three sizes or more")
    found: dict[tuple[str, str], Finding] = {}
    for curve in curves:
        finding = _level(curve) or _plateau(curve)
        if finding is not None:
            found.setdefault((curve.transport, curve.name), finding)  # of several numbers of ranks the first
    return list(found.values())


def _level(curve: Curve) -> Finding | None:
    """The sizes at the beginning whose times can't be told from the first, though each is known well enough for it."""
    first = curve.marks[0].time_ns
    same = [curve.marks[0]]
    for mark in curve.marks[1:]:
        time = mark.time_ns
        over = ratio(time, first)
        alike = over.low <= 1 <= over.high and abs(over.value - 1) <= _ALIKE
        if not alike:
            break
        if relative(over) <= _KNOWN:
            same.append(mark)
    if len(same) < 2 or same[-1].bytes < _WIDE * max(4, same[0].bytes):
        return None
    return finding_about(
        curve,
        "latency independent of size",
        sentence=(
            f"Up to {format_bytes(same[-1].bytes)} the size costs nothing that could be seen: {curve.name} takes "
            f"{time_text(first)} at {format_bytes(same[0].bytes)} and {time_text(same[-1].time_ns)} there."
        ),
        effect=0.0,
        sizes_bytes=tuple(mark.bytes for mark in same),
        evidence=(Evidence("shortest", first, "ns"), Evidence("longest that is alike", same[-1].time_ns, "ns")),
    )


def _plateau(curve: Curve) -> Finding | None:
    """Where the longer sizes lie on one line, the size at which that line reaches the time of the shortest."""
    first, rest = curve.marks[0], curve.marks[1:]
    if rest[0].bytes > _PLATEAU * max(4, first.bytes):
        return None
    fit = fit_line([mark.bytes for mark in rest], [mark.time_ns.value for mark in rest])
    if not isinstance(fit, Segment) or fit.relative_rms > _STRAIGHT or fit.ns_per_byte.value <= 0:
        return None
    line_ns = fit.time_ns(first.bytes)
    if first.time_ns.low < (1 + _FALL) * line_ns:
        return None
    reached = [
        (time_ns - fit.t0_ns.value) / fit.ns_per_byte.value
        for time_ns in (first.time_ns.value, first.time_ns.low, first.time_ns.high)
    ]
    if min(reached) < _WIDE * max(4, first.bytes):
        return None
    return finding_about(
        curve,
        "latency independent of size",
        sentence=(
            f"{curve.name} of {format_bytes(first.bytes)} among {curve.ranks} takes {format_ns(first.time_ns.value)}, "
            f"as long as the line through the sizes {sizes_text(tuple(mark.bytes for mark in rest))} gives for "
            f"{format_bytes(round(reached[0]))}. No size between the two was measured."
        ),
        effect=0.0,
        sizes_bytes=(first.bytes,),
        evidence=(
            Evidence("shortest", first.time_ns, "ns"),
            Evidence("size that the line gives", Estimate(*reached), "B"),
        ),
    )


def curves_of_shapes(reading: Reading) -> list[Curve]:
    """The curves whose shape is looked at: of each place those of the first pattern that it has."""
    places: dict[Place, list[Curve]] = {}
    for curve in reading.of(*SHAPES):
        places.setdefault(curve.place, []).append(curve)
    return [curve for found in places.values() for curve in _first_pattern(found)]


def lacking_shape(reading: Reading, what: str) -> Lacking:
    """Why no shape could be looked at: there is no curve that has one, or none that is `what` is needed."""
    return Lacking(f"needs a curve {what}") if curves_of_shapes(reading) else no_curve(SHAPES)


def no_curve(patterns: Sequence[str]) -> Lacking:
    """There is no curve of any of these patterns."""
    return Lacking(f"needs a curve of {_either(patterns)}, and there is none here")


def _either(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _first_pattern(found: Sequence[Curve]) -> Iterator[Curve]:
    first = min(found, key=lambda curve: SHAPES.index(curve.pattern)).pattern
    return (curve for curve in found if curve.pattern == first and curve.marks)


def segments_of(curve: Curve) -> SegmentFit | NoFit:
    """The straight segments of a curve, its times known as well as their intervals say."""
    errors = [relative(mark.time_ns) for mark in curve.marks]
    return fit_segments(curve.sizes, [mark.time_ns.value for mark in curve.marks], errors)
