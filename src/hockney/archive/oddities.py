"""Oddities of published figures: patterns, columns and sizes that contradict each other.

A detector here has bounds that fit printed figures; no run is judged by it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import pairwise

from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve, Options, Reading, subject_of
from hockney.analysis.explain.pattern_pairs import alike, common_sizes, loaded_and_idle
from hockney.analysis.explain.shape import curves_of_shapes
from hockney.analysis.finding import Finding, Subject
from hockney.archive import Published
from hockney.archive.curves import PublishedReading, estimate_of
from hockney.stats.fit import Estimate, Segment, fit_line

_STEP = 0.10


def steps(reading: Reading) -> Iterator[Finding]:
    """Sizes between which the time rises by more than a published best rate explains."""
    for curve in reading.curves:
        if curve.peak_bytes_per_s is not None:
            for lower, upper in pairwise(curve.points):
                yield from _step(curve, curve.peak_bytes_per_s, lower, upper)


def _step(curve: MeasuredCurve, peak: Estimate, lower: CurvePoint, upper: CurvePoint) -> Iterator[Finding]:
    explained = (upper.bytes - lower.bytes) * 1e9 / peak
    rest = upper.time_ns - lower.time_ns - explained
    effect = rest.value / lower.time_ns.value
    if rest.low > 0 and effect >= _STEP:
        facts = {
            "answer": "suspected",
            "below_bytes": lower.bytes,
            "above_bytes": upper.bytes,
            "step_ns": rest,
            "peak_bytes_per_s": peak,
            "explained_ns": explained.value,
        }
        yield Finding("protocol switch", subject_of(curve, (lower.bytes, upper.bytes)), facts, effect=effect)


def plateaus(reading: Reading) -> Iterator[Finding]:
    """If the longer sizes form one line, the size at which that line reaches the time of the shortest."""
    curves = {curve.name: curve for curve in reversed(curves_of_shapes(reading)) if len(curve.points) >= 4}
    for curve in reversed(curves.values()):
        yield from _plateau(curve)


def _plateau(curve: MeasuredCurve) -> Iterator[Finding]:
    first, rest = curve.points[0], curve.points[1:]
    shortest = max(4, first.bytes)
    if rest[0].bytes > 16 * shortest:  # a line that begins farther off says nothing of the shortest size
        return
    fit = fit_line([point.bytes for point in rest], [point.time_ns.value for point in rest])
    if not isinstance(fit, Segment) or fit.relative_rms > 0.02 or fit.ns_per_byte.value <= 0:
        return
    time = first.time_ns
    reached = time.mapped(lambda ns: (ns - fit.t0_ns.value) / fit.ns_per_byte.value)
    if time.low >= (1 + _STEP) * fit.time_ns(first.bytes) and reached.low >= 4 * shortest:
        facts = {"plateau_ns": time, "first_bytes": first.bytes, "flat_bytes": reached}
        yield Finding("flat latency", subject_of(curve, (first.bytes,)), facts)


def derived_columns(reading: PublishedReading) -> Iterator[Finding]:
    """Rates that are not words over clock periods, as the other rows' are."""
    rows = _rows(reading, "words", "cp")
    per_cp = [float(figure.at["words"]) / float(figure.at["cp"]) for figure in rows]
    # The clock rate, in the report's units, on which most rows agree.
    scale = statistics.median([(figure.value or 0.0) / rate for figure, rate in zip(rows, per_cp, strict=True)] or [0])
    off = []
    for figure, rate in zip(rows, per_cp, strict=True):
        computed, printed = scale * rate, estimate_of(figure)
        if abs(printed.value / computed - 1) > 0.02 and not printed.low <= computed <= printed.high:
            off.append((figure, computed))
    if off:
        facts = {
            "rows": [_where(figure) for figure, _ in off],
            "printed": [figure.printed for figure, _ in off],
            "computed": [round(computed, 1) for _, computed in off],
        }
        effect = max(abs((figure.value or 0.0) / computed - 1) for figure, computed in off)
        yield Finding("derived figure", Subject(reading.subject), facts, effect=effect)


def long_latencies(reading: PublishedReading) -> Iterator[Finding]:
    """Latencies that are printed as longer than all that they are a part of."""
    rows = _rows(reading, "latency_cp", "cp")
    longer = [figure for figure in rows if float(figure.at["latency_cp"]) > float(figure.at["cp"])]
    if longer:
        latencies, totals = ([float(figure.at[name]) for figure in longer] for name in ("latency_cp", "cp"))
        where = [_where(figure) for figure in longer]
        facts = {"rows": where, "latencies": latencies, "totals": totals, "of": len(rows)}
        effect = min(latency / total for latency, total in zip(latencies, totals, strict=True)) - 1
        yield Finding("part longer than the whole", Subject(reading.subject), facts, effect=effect)


def _rows(reading: PublishedReading, *columns: str) -> list[Published]:
    """The figures that have these columns."""
    return [figure for figure in reading.figures if figure.value and {*columns} <= figure.at.keys()]


def _where(figure: Published) -> str:
    return f"{figure.get('source')} to {figure.get('destination')} {figure.get('page') or ''}".strip()


# ---- two patterns ---------------------------------------------------------------------------------------------------


def half_round_trips(reading: Reading) -> Iterator[Finding]:
    """One-way and two-way messages compared with half the round trip of the shortest common size.

    Streaming hides latency: it may be faster, and should not be slower.
    """
    for curve, pingpong in (*alike(reading, "oneway", "pingpong"), *alike(reading, "twoway", "pingpong")):
        for size, time_ns, half_ns in () if curve.option("window") else common_sizes(curve, pingpong)[:1]:
            over = time_ns / half_ns
            is_faster = over.high < 1 and over.value < 0.90
            if is_faster or (over.low > 1 and over.value >= 1.02):
                facts = {"size_bytes": size, "time_ns": time_ns, "half_round_trip_ns": half_ns, "time_ratio": over}
                cause, effect = ("messages overlap", 0.0) if is_faster else ("the sender waits", over.value - 1)
                yield Finding("streaming against round trip", subject_of(curve, (size,)), facts, cause, effect=effect)


def faster_under_load(reading: Reading) -> Iterator[Finding]:
    """Messages that are faster with others under way than alone: something else differs between the two."""
    for loaded, idle in loaded_and_idle(reading):
        faster = [sizes for sizes in common_sizes(loaded, idle) if sizes[1].high < 0.97 * sizes[2].low]
        if faster:
            size, loaded_ns, idle_ns = faster[0]
            gain = idle_ns - loaded_ns
            facts = {
                "size_bytes": size,
                "loaded_ns": loaded_ns,
                "alone": idle.name,
                "alone_ns": idle_ns,
                "gain_ns": gain,
            }
            subject = subject_of(loaded, tuple(size for size, *_ in faster))
            yield Finding("faster under load", subject, facts, effect=gain.value / idle_ns.value)


def same_data(reading: Reading) -> Iterator[Finding]:
    """Different data for each receiver compared with the same for all: where the gap begins, a cache ends."""
    groups: dict[tuple[str, Options, str], list[tuple[int, Estimate]]] = {}
    for out, multi in alike(reading, "outfarm", "multicast"):
        # The shortest size shows the cost of a message without that of its data.
        for size, out_ns, multi_ns in common_sizes(out, multi)[1:]:
            group = groups.setdefault((out.transport, out.options, out.state), [])
            group.append(((out.ranks - 1) * size, out_ns / multi_ns))
    for (transport, _, state), totals in groups.items():
        yield from _end_of_cache(transport, state, totals)


def _end_of_cache(transport: str, state: str, totals: list[tuple[int, Estimate]]) -> Iterator[Finding]:
    """At the widest step between neighbouring totals, if all below are cheaper than all above."""
    totals = sorted(totals, key=lambda total: total[0])
    cut = max(range(1, len(totals)), key=lambda at: totals[at][1].value - totals[at - 1][1].value)
    below = max((over for _, over in totals[:cut]), key=lambda over: over.high)
    above = min((over for _, over in totals[cut:]), key=lambda over: over.low)
    if above.is_above(below) and above.value - below.value >= 0.05:
        low, high = totals[cut - 1][0], totals[cut][0]
        facts = {"within_bytes": low, "within_ratio": below, "beyond_bytes": high, "beyond_ratio": above}
        subject = Subject(transport, "outfarm and multicast", None, state, (low, high))
        yield Finding("data beyond a cache", subject, facts, effect=above.value - below.value)
