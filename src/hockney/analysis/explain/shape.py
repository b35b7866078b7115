"""The curves that stand for a transport, and the sizes up to which a message costs what the shortest does."""

from __future__ import annotations

from hockney.analysis.estimates import ratio, relative
from hockney.analysis.explain.curve import Curve, Place, Reading, subject_of
from hockney.analysis.finding import Absence, Finding, NotChecked

# A curve's shape is its transport's: of each place, the first of these that it has is examined.
SHAPES = ("pingpong", "putpong", "oneway", "pairs", "put", "get", "putring")
_EQUAL = 0.03
_KNOWN = 0.10  # a ratio that is known less well is not called one
_WIDE = 4  # a flat start reaches from the shortest size, or 4 B, to this factor at least


def flat(reading: Reading) -> list[Finding] | NotChecked:
    """Sizes up to which a message takes as long as the shortest; of several numbers of ranks the first's."""
    curves = [curve for curve in curves_of_shapes(reading) if len(curve.points) >= 3]
    if not curves:
        return no_shape(reading, "three sizes or more")
    findings: dict[tuple[str, str], Finding] = {}
    for curve in curves:
        finding = _flat(curve)
        if finding is not None:
            findings.setdefault((curve.transport, curve.name), finding)
    return list(findings.values())


def _flat(curve: Curve) -> Finding | None:
    first = curve.points[0]
    equal = [first]
    for point in curve.points[1:]:
        over = ratio(point.time_ns, first.time_ns)
        if not over.low <= 1 <= over.high or abs(over.value - 1) > _EQUAL:
            break
        if relative(over) <= _KNOWN:
            equal.append(point)
    last = equal[-1]
    if last.bytes < _WIDE * max(4, first.bytes):
        return None
    facts = {"first_ns": first.time_ns, "first_bytes": first.bytes, "last_ns": last.time_ns, "flat_bytes": last.bytes}
    return Finding("flat latency", subject_of(curve, tuple(point.bytes for point in equal)), facts)


def curves_of_shapes(reading: Reading) -> list[Curve]:
    """The curves whose shape is examined: for each place those of the first pattern that it has."""
    curves = reading.of(*SHAPES)
    first: dict[Place, str] = {}
    for curve in sorted(curves, key=lambda curve: SHAPES.index(curve.pattern)):
        first.setdefault(curve.place, curve.pattern)
    return [curve for curve in curves if curve.pattern == first[curve.place] and curve.points]


def no_shape(reading: Reading, needed: str) -> NotChecked:
    """There is no curve of a shape, or none with what is `needed`."""
    if curves_of_shapes(reading):
        return NotChecked(Absence.INSUFFICIENT_DATA, detail=f"needs {needed}")
    return NotChecked(Absence.NOT_MEASURED, detail=f"needs a curve of {', '.join(SHAPES[:-1])} or {SHAPES[-1]}")
