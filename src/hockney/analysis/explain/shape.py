"""What one curve shows by itself: sizes that cost nothing; and steps of printed times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hockney.analysis.explain.curve import Curve, Mark, Place, Reading, finding_about, subject_of
from hockney.analysis.explain.finding import Evidence, Found, Lacking, difference, ratio, relative, time_text
from hockney.analysis.explain.finding import Finding as OldFinding
from hockney.analysis.finding import Absence, Finding, NotChecked
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


def _step(curve: Curve, lower: Mark, upper: Mark) -> OldFinding | None:
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


def flat(reading: Reading) -> list[Finding] | NotChecked:
    """Sizes up to which a message takes as long as the shortest; of several numbers of ranks the first's."""
    curves = [curve for curve in curves_of_shapes(reading) if len(curve.marks) >= 3]
    if not curves:
        return no_shape(reading, "three sizes or more")
    found: dict[tuple[str, str], Finding] = {}
    for curve in curves:
        finding = _level(curve) or _plateau(curve)
        if finding is not None:
            found.setdefault((curve.transport, curve.name), finding)
    return list(found.values())


def _level(curve: Curve) -> Finding | None:
    """The first sizes whose times are equal within 3 %, in ratios known to 10 %."""
    first = curve.marks[0].time_ns
    same = [curve.marks[0]]
    for mark in curve.marks[1:]:
        over = ratio(mark.time_ns, first)
        if not over.low <= 1 <= over.high or abs(over.value - 1) > _ALIKE:
            break
        if relative(over) <= _KNOWN:
            same.append(mark)
    last = same[-1]
    if len(same) < 2 or last.bytes < _WIDE * max(4, same[0].bytes):
        return None
    facts = {"first_ns": first, "first_bytes": same[0].bytes, "last_ns": last.time_ns, "flat_bytes": last.bytes}
    return Finding("flat latency", subject_of(curve, tuple(mark.bytes for mark in same)), facts)


def _plateau(curve: Curve) -> Finding | None:
    """Where the longer sizes lie on one line, the size at which that line reaches the time of the shortest."""
    first, rest = curve.marks[0], curve.marks[1:]
    if rest[0].bytes > _PLATEAU * max(4, first.bytes):
        return None
    fit = fit_line([mark.bytes for mark in rest], [mark.time_ns.value for mark in rest])
    if not isinstance(fit, Segment) or fit.relative_rms > _STRAIGHT or fit.ns_per_byte.value <= 0:
        return None
    if first.time_ns.low < (1 + _FALL) * fit.time_ns(first.bytes):
        return None
    time = first.time_ns
    reached = Estimate(*((ns - fit.t0_ns.value) / fit.ns_per_byte.value for ns in (time.value, time.low, time.high)))
    if reached.low < _WIDE * max(4, first.bytes):
        return None
    facts = {"plateau_ns": time, "first_bytes": first.bytes, "flat_bytes": reached}
    return Finding("flat latency", subject_of(curve, (first.bytes,)), facts)


def curves_of_shapes(reading: Reading) -> list[Curve]:
    """The curves whose shape is looked at: of each place those of the first pattern that it has."""
    places: dict[Place, list[Curve]] = {}
    for curve in reading.of(*SHAPES):
        places.setdefault(curve.place, []).append(curve)
    return [curve for found in places.values() for curve in _first_pattern(found)]


def no_shape(reading: Reading, needed: str) -> NotChecked:
    """There is no curve of a shape, or none with what is `needed`."""
    if curves_of_shapes(reading):
        return NotChecked(Absence.INSUFFICIENT_DATA, detail=f"needs {needed}")
    return NotChecked(Absence.NOT_MEASURED, detail=f"needs a curve of {_either(SHAPES)}")


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
