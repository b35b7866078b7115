"""The representative curves of a transport, and the sizes up to which latency is flat."""

from __future__ import annotations

from hockney.analysis.explain.curve import CurvePoint, JobKey, MeasuredCurve, Reading, subject_of
from hockney.analysis.finding import Absence, Finding, NotChecked
from hockney.results.traits import pattern_traits

_LINKS = ("ends", "halves", "ring")


def flat(reading: Reading) -> list[Finding] | NotChecked:
    """Sizes up to which a message takes as long as the shortest; of several numbers of ranks the first's.

    They reach from the shortest size, or 4 B, to four times that at least.
    """
    curves = [curve for curve in curves_of_shapes(reading) if len(curve.points) >= 3]
    if not curves:
        return no_shape(reading, "three sizes")
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


def curves_of_shapes(reading: Reading) -> list[MeasuredCurve]:
    """The curves whose shape is examined: those of the plainest pattern between two ranks, for each job.

    One pair alone is plainer than several at once, and a round trip than a stream. LogGP is fitted to prtt instead.
    """
    plainness: dict[MeasuredCurve, tuple[int, bool, bool]] = {}
    for curve in reading.curves:
        traits = pattern_traits(reading.facts, curve.pattern)
        if traits.payload and traits.links in _LINKS and curve.points and curve.pattern != "prtt":
            plainness[curve] = _LINKS.index(traits.links), traits.stream, curve.pattern != "pingpong"
    curves = [curve for curve in plainness if not curve.oversubscribed]
    plainest: dict[JobKey, str] = {}
    for curve in sorted(curves, key=lambda curve: plainness[curve]):
        plainest.setdefault(curve.job, curve.pattern)
    return [curve for curve in curves if curve.pattern == plainest[curve.job]]


def no_shape(reading: Reading, why: str) -> NotChecked:
    """The NotChecked for a run without a curve of a shape, or with too few sizes (`why`)."""
    if curves_of_shapes(reading):
        return NotChecked(Absence.INSUFFICIENT_DATA, why=why)
    return NotChecked(Absence.NOT_MEASURED, why="two ranks")
