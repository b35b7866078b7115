"""What only published figures show: steps that a best rate does not explain, and columns that contradict each other."""

from __future__ import annotations

import statistics
from itertools import pairwise

from hockney.analysis.estimates import difference
from hockney.analysis.explain.curve import Curve, CurvePoint, Reading, subject_of
from hockney.analysis.explain.shape import curves_of_shapes
from hockney.analysis.finding import Finding, Subject
from hockney.archive import Published
from hockney.archive.curves import PublishedReading, estimate_of
from hockney.stats.fit import Estimate, Segment, fit_line

_STEP = 0.10
_FLAT_FACTOR = 4  # a plateau reaches from the shortest size, or 4 B, to this factor of it
_NEAR_FACTOR = 16  # a line that begins farther off says nothing of the shortest size
_STRAIGHT = 0.02
_OFF = 0.02  # beyond what rounding explains


def steps(reading: Reading) -> list[Finding]:
    """Sizes between which the time rises by more than a published best rate explains."""
    curves = [curve for curve in reading.curves if curve.peak_bytes_per_s is not None and len(curve.points) > 1]
    findings = (_step(curve, lower, upper) for curve in curves for lower, upper in pairwise(curve.points))
    return [finding for finding in findings if finding is not None]


def _step(curve: Curve, lower: CurvePoint, upper: CurvePoint) -> Finding | None:
    peak = curve.peak_bytes_per_s
    assert peak is not None
    more = (upper.bytes - lower.bytes) * 1e9
    explained = Estimate(more / peak.value, more / peak.high, more / peak.low)
    rest = difference(difference(upper.time_ns, lower.time_ns), explained)
    effect = rest.value / lower.time_ns.value
    if rest.low <= 0 or effect < _STEP:
        return None
    facts = {
        "answer": "suspected",
        "below_bytes": lower.bytes,
        "above_bytes": upper.bytes,
        "step_ns": rest,
        "peak_bytes_per_s": peak,
        "explained_ns": explained.value,
    }
    return Finding("protocol switch", subject_of(curve, (lower.bytes, upper.bytes)), facts, effect=effect)


def plateaus(reading: Reading) -> list[Finding]:
    """Where the longer sizes lie on one line, the size at which that line reaches the time of the shortest."""
    curves = {curve.name: curve for curve in reversed(curves_of_shapes(reading)) if len(curve.points) >= 4}
    findings = map(_plateau, reversed(curves.values()))
    return [finding for finding in findings if finding is not None]


def _plateau(curve: Curve) -> Finding | None:
    first, rest = curve.points[0], curve.points[1:]
    if rest[0].bytes > _NEAR_FACTOR * max(4, first.bytes):
        return None
    fit = fit_line([point.bytes for point in rest], [point.time_ns.value for point in rest])
    if not isinstance(fit, Segment) or fit.relative_rms > _STRAIGHT or fit.ns_per_byte.value <= 0:
        return None
    time = first.time_ns
    reached = Estimate(*((ns - fit.t0_ns.value) / fit.ns_per_byte.value for ns in (time.value, time.low, time.high)))
    if time.low < (1 + _STEP) * fit.time_ns(first.bytes) or reached.low < _FLAT_FACTOR * max(4, first.bytes):
        return None
    facts = {"plateau_ns": time, "first_bytes": first.bytes, "flat_bytes": reached}
    return Finding("flat latency", subject_of(curve, (first.bytes,)), facts)


def derived_columns(reading: PublishedReading) -> list[Finding]:
    """Rates that are not words over clock periods, as the other rows' are."""
    rows = _rows(reading, "words", "cp")
    per_cp = [float(figure.at["words"]) / float(figure.at["cp"]) for figure in rows]
    # The clock rate, in the report's units, on which most rows agree.
    scale = statistics.median([(figure.value or 0.0) / rate for figure, rate in zip(rows, per_cp, strict=True)] or [0])
    off = []
    for figure, rate in zip(rows, per_cp, strict=True):
        computed, printed = scale * rate, estimate_of(figure)
        if abs(printed.value / computed - 1) > _OFF and not printed.low <= computed <= printed.high:
            off.append((figure, computed))
    if not off:
        return []
    facts = {
        "rows": [_where(figure) for figure, _ in off],
        "printed": [figure.printed for figure, _ in off],
        "computed": [round(computed, 1) for _, computed in off],
    }
    effect = max(abs((figure.value or 0.0) / computed - 1) for figure, computed in off)
    return [Finding("derived figure", Subject(reading.subject), facts, effect=effect)]


def long_latencies(reading: PublishedReading) -> list[Finding]:
    """Latencies that are printed as longer than all that they are a part of."""
    rows = _rows(reading, "latency_cp", "cp")
    longer = [figure for figure in rows if float(figure.at["latency_cp"]) > float(figure.at["cp"])]
    if not longer:
        return []
    latencies, totals = ([float(figure.at[name]) for figure in longer] for name in ("latency_cp", "cp"))
    facts = {"rows": [_where(figure) for figure in longer], "latencies": latencies, "totals": totals, "of": len(rows)}
    effect = min(latency / total for latency, total in zip(latencies, totals, strict=True)) - 1
    return [Finding("part longer than the whole", Subject(reading.subject), facts, effect=effect)]


def _rows(reading: PublishedReading, *columns: str) -> list[Published]:
    """The figures that have these columns."""
    return [figure for figure in reading.figures if figure.value and {*columns} <= figure.at.keys()]


def _where(figure: Published) -> str:
    return f"{figure.get('source')} to {figure.get('destination')} {figure.get('page') or ''}".strip()
