"""Detectors of oddities in published figures: they make oddities.json, and tests run them on changed figures.

Their bounds fit printed figures; no run is judged by them.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from hockney.analysis.explain.curve import MeasuredCurve, Options, Reading, subject_of
from hockney.analysis.explain.laws import BY_MESSAGES, BY_SENDERS, LawRow, Odd, is_off, rows, without
from hockney.analysis.explain.pattern_pairs import common_sizes, loaded_and_idle, same_setting
from hockney.analysis.explain.shape import curves_of_shapes
from hockney.analysis.finding import Detector, Finding, NotChecked, Subject
from hockney.archive import Published, machines
from hockney.archive.curves import PublishedReading, estimate_of, read_machine
from hockney.stats.fit import Estimate, Segment, fit_line

_STEP = 0.10
_SAME = 0.005
_MATCH = 0.03
_NEAR_PERIOD = 0.005

# ---- one curve, one column -----------------------------------------------------------------------------------------


def steps(reading: Reading) -> Iterator[Finding]:
    """Sizes between which the time rises by more than a published best rate explains."""
    for curve in reading.curves:
        peak = curve.peak_bytes_per_s
        if peak is None:
            continue
        for lower, upper in itertools.pairwise(curve.points):
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
                subject = subject_of(curve, (lower.bytes, upper.bytes))
                yield Finding("protocol switch", subject, facts, effect=effect)


def plateaus(reading: Reading) -> Iterator[Finding]:
    """If the longer sizes form one line, the size at which that line reaches the time of the shortest."""
    curves = {curve.name: curve for curve in reversed(curves_of_shapes(reading)) if len(curve.points) >= 4}
    for curve in reversed(curves.values()):
        first, rest = curve.points[0], curve.points[1:]
        shortest, time = max(4, first.bytes), first.time_ns
        if rest[0].bytes > 16 * shortest:  # a line that begins farther off says nothing of the shortest size
            continue
        fit = fit_line([point.bytes for point in rest], [point.time_ns.value for point in rest])
        if not isinstance(fit, Segment) or fit.relative_rms > 0.02 or fit.ns_per_byte.value <= 0:
            continue
        start_ns = fit.t0_ns.value
        reached = (time - Estimate(start_ns, start_ns, start_ns)) * (1 / fit.ns_per_byte.value)
        if time.low >= (1 + _STEP) * fit.time_ns(first.bytes) and reached.low >= 4 * shortest:
            facts = {"plateau_ns": time, "first_bytes": first.bytes, "flat_bytes": reached}
            yield Finding("flat latency", subject_of(curve, (first.bytes,)), facts)


def derived_columns(reading: PublishedReading) -> Iterator[Finding]:
    """Rates that are not words over clock periods, as the other rows' are."""
    rows = _with_columns(reading, "words", "cp")
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
    rows = _with_columns(reading, "latency_cp", "cp")
    longer = [figure for figure in rows if float(figure.at["latency_cp"]) > float(figure.at["cp"])]
    if longer:
        latencies, totals = ([float(figure.at[name]) for figure in longer] for name in ("latency_cp", "cp"))
        where = [_where(figure) for figure in longer]
        facts = {"rows": where, "latencies": latencies, "totals": totals, "of": len(rows)}
        effect = min(latency / total for latency, total in zip(latencies, totals, strict=True)) - 1
        yield Finding("part longer than the whole", Subject(reading.subject), facts, effect=effect)


def _with_columns(reading: PublishedReading, *columns: str) -> list[Published]:
    """The figures that have these columns."""
    return [figure for figure in reading.figures if figure.value and {*columns} <= figure.at.keys()]


def _where(figure: Published) -> str:
    return f"{figure.get('source')} to {figure.get('destination')} {figure.get('page') or ''}".strip()


# ---- two patterns ---------------------------------------------------------------------------------------------------


def half_round_trips(reading: Reading) -> Iterator[Finding]:
    """One-way and two-way messages compared with half the round trip of the shortest common size.

    Streaming hides latency: it may be faster, and should not be slower.
    """
    for curve, pingpong in (*same_setting(reading, "oneway", "pingpong"), *same_setting(reading, "twoway", "pingpong")):
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
    for out, multi in same_setting(reading, "outfarm", "multicast"):
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


# ---- grids ---------------------------------------------------------------------------------------------------------


def identical_rows(reading: Reading) -> Iterator[Finding]:
    """Two rows with the same times, though one is of 1.5 times as many messages or more."""
    growing = {row.pattern for row in rows(reading) if row.law is BY_MESSAGES}
    for fewer, more in _row_pairs(reading, sorted(growing)):
        ratios = [a.time_ns / b.time_ns for a, b in zip(fewer.points, more.points, strict=True)]
        factor = (more.ranks - 1) / (fewer.ranks - 1)
        if factor >= 1.5 and all(abs(over.value - 1) <= _SAME and over.relative <= 10 * _SAME for over in ratios):
            facts = {"same_as_ranks": more.ranks, "time_ratio": ratios}
            yield Finding("identical rows", subject_of(fewer, fewer.sizes), facts, effect=factor - 1)


def _row_pairs(reading: Reading, patterns: Sequence[str]) -> Iterator[tuple[MeasuredCurve, MeasuredCurve]]:
    """Rows of three sizes or more that differ in the number of ranks only, the one of fewer ranks first."""
    for fewer, more in itertools.permutations(reading.of(*patterns), 2):
        same = (fewer.pattern, fewer.transport, fewer.options, fewer.state, fewer.sizes) == (
            more.pattern, more.transport, more.options, more.state, more.sizes,
        )  # fmt: skip
        if same and fewer.ranks < more.ranks and len(fewer.points) >= 3:
            yield fewer, more


def kinked_laws(reading: Reading) -> Iterator[Finding]:
    """Farms in which the same one or two numbers of senders are off the line of the others, in most rows."""
    members: dict[tuple[str, str, str], list[LawRow]] = {}
    for row in rows(reading):
        if row.law is BY_SENDERS:
            members.setdefault((row.transport, row.pattern, row.state), []).append(row)
    for (transport, pattern, state), of_farm in members.items():
        kinks = [kinks for row in of_farm if (kinks := _kinks(row))]
        places = Counter(tuple(odd.item.x for odd in row) for row in kinks)
        where, count = places.most_common(1)[0] if places else ((), 0)
        if 2 * count >= len(of_farm):
            odd = [odd for row in kinks if tuple(odd.item.x for odd in row) == where for odd in row]
            most = max(odd, key=lambda figure: abs(figure.relative))
            time_ns = most.item.time_ns.value
            facts = {
                "senders": [round(x) for x in where],
                "kinked_rows": count,
                "rows": len(of_farm),
                "most_off_ns": abs(time_ns - time_ns / most.over_ratio.value),
                "most_off_share": abs(most.relative),
            }
            subject = Subject(transport, pattern, None, state)
            yield Finding("kinked scaling law", subject, facts, effect=abs(most.relative))


def _kinks(row: LawRow) -> list[Odd]:
    """One or two outlying figures of a row with at least three times as many, if the rest is on a line."""
    for count in range(1, min(2, len(row.items) // 3) + 1):
        tries = [without(row, left_out) for left_out in itertools.combinations(row.items, count)]
        straight = [odd for odd, off in tries if off <= _SAME and all(is_off(figure, off) for figure in odd)]
        if straight:
            return straight[0] if len(straight) == 1 else []
    return []


def two_speeds(reading: Reading) -> Iterator[Finding]:
    """A farm whose messages are faster per byte among more ranks: among fewer, they took another path."""
    # Farms whose messages come one after another.
    for fewer, more in _row_pairs(reading, ("robpush", "robpull")):
        slow, fast = (_slope(curve, curve.ranks - 1) for curve in (fewer, more))
        if not _delay_us(fewer) and slow.is_above(fast) and slow.value > 1.25 * fast.value:
            facts = {
                "slow_ns_per_byte": slow,
                "slow_like": _like(slow, reading),
                "fast_ns_per_byte": fast,
                "fast_like": _like(fast, reading),
                "fast_ranks": more.ranks,
            }
            effect = slow.value / fast.value - 1
            yield Finding("two speeds", subject_of(fewer, fewer.sizes[-2:]), facts, effect=effect)


def _slope(curve: MeasuredCurve, messages: int) -> Estimate:
    """The time per byte of one of several messages in a row, from the two longest."""
    before, last = curve.points[-2:]
    return (last.time_ns - before.time_ns) * (1 / messages / (last.bytes - before.bytes))


def _like(slope: Estimate, reading: Reading) -> str:
    """The pattern of two ranks with the same time per byte, "" if there is none."""
    known = [(curve.pattern, _slope(curve, 1)) for curve in reading.of("oneway", "pairs")]
    return next((name for name, of in known if of.low > 0 and abs(slope.value / of.value - 1) <= _MATCH), "")


def delays(reading: Reading) -> Iterator[Finding]:
    """Farms in which a microsecond of delay adds more than that, between the two longest delays of each row."""
    rows_of: dict[tuple[object, ...], list[MeasuredCurve]] = {}
    for curve in filter(_delay_us, reading.curves):
        row = curve.transport, curve.pattern, curve.ranks, curve.state, curve.sizes
        rows_of.setdefault(row, []).append(curve)
    slopes: dict[tuple[str, str], list[Estimate]] = {}
    for curves in rows_of.values():
        *_, shorter, longer = sorted(curves, key=_delay_us)
        asked_ns = 1e3 * (_delay_us(longer) - _delay_us(shorter))
        added = longer.points[0].time_ns - shorter.points[0].time_ns
        slopes.setdefault((longer.transport, longer.pattern), []).append(added * (1 / asked_ns))
    for (transport, pattern), of_farm in slopes.items():
        low, high = (chosen(of_farm, key=lambda slope: slope.value) for chosen in (min, max))
        if high.low > 1 + _MATCH and low.low > 0:
            facts = {"least_ratio": low, "most_ratio": high}
            yield Finding("long delays", Subject(transport, pattern), facts, effect=high.value - 1)


def _delay_us(curve: MeasuredCurve) -> float:
    return float(curve.option("delay_us") or 0)


def own_block(reading: Reading) -> Iterator[Finding]:
    """An all-to-all that moves less per rank among two ranks than among four, as each also copies its own block."""
    for two, four in itertools.permutations(reading.of("alltoall"), 2):
        rates = two.peak_bytes_per_s, four.peak_bytes_per_s
        if (two.ranks, four.ranks) == (2, 4) and two.state == four.state and rates[0] and rates[1]:
            gain = rates[1] / rates[0]
            facts = {"among_2_bytes_per_s": rates[0], "among_4_bytes_per_s": rates[1], "gain_ratio": gain}
            if gain.low > 1:
                yield Finding("broken scaling law", subject_of(two), facts, "own block", effect=gain.value - 1)


def time_slices(reading: Reading) -> Iterator[Finding]:
    """Times of ranks that compute, a tenth of which are multiples of one time slice: by chance 1 % are."""
    figures = [
        (curve, point)
        for curve in filter(_delay_us, reading.curves)
        for point in curve.points
        if point.time_ns.relative <= _NEAR_PERIOD
    ]
    multiples: list[tuple[int, float, list[str]]] = []
    for period_ns in (64e3, 128e3, 256e3, 512e3, 1024e3):  # slices of a transputer's scheduler
        cycles = [(curve.pattern, point.time_ns.value / period_ns) for curve, point in figures]
        on = [pattern for pattern, count in cycles if round(count) > 0 and abs(count - round(count)) <= _NEAR_PERIOD]
        multiples.append((len(on), period_ns, on))
    count, period_ns, patterns = max(multiples)
    if count >= max(5, len(figures) / 10):
        facts = {"period_ns": period_ns, "multiples": count, "figures": len(figures)}
        subject = Subject(reading.subject, ", ".join(sorted(set(patterns))))
        yield Finding("time slices", subject, facts, effect=count / len(figures))


# ---- all -----------------------------------------------------------------------------------------------------------

# Detectors for printed reports only.
ODDITIES: tuple[Detector, ...] = (
    Detector("streaming against round trip", "streams against round trips", half_round_trips),
    Detector("faster under load", "latency under load", faster_under_load),
    Detector("data beyond a cache", "different data against the same data", same_data),
    Detector("identical rows", "identical rows", identical_rows),
    Detector("kinked scaling law", "kinks in scaling laws", kinked_laws),
    Detector("two speeds", "two speeds in one grid", two_speeds),
    Detector("long delays", "delays longer than requested", delays),
    Detector("broken scaling law", "the share of the own block", own_block),
    Detector("time slices", "times that are multiples of a time slice", time_slices),
    Detector("protocol switch", "steps beyond the best rate", steps),
    Detector("flat latency", "plateaus below a line", plateaus),
    Detector("derived figure", "derived figures", derived_columns),
    Detector("part longer than the whole", "parts longer than the whole", long_latencies),
)


def text_of_record() -> str:
    """The text of oddities.json, with a line for each detector: `python -m tests.archive.oddities` prints it."""
    machines = (
        f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, rows)) + "\n]" for name, rows in recorded().items()
    )
    return "{\n" + ",\n".join(machines) + "\n}\n"


def recorded() -> dict[str, list[dict[str, Any]]]:
    """What oddities.json has to hold: of each machine the findings of each detector, or why it has none."""
    return {
        name: [record for one in ODDITIES if (record := _record(one, read_machine(machine)))]
        for name, machine in machines().items()
    }


def _record(detector: Detector, reading: Reading) -> dict[str, Any] | None:
    """None where it finds nothing."""
    result = detector.find(reading)
    known = {"code": detector.code, "what": detector.what}
    if isinstance(result, NotChecked):
        return {**known, "gap": {"reason": result.reason.value, "why": result.why, "facts": dict(result.facts)}}
    findings = [{name: value for name, value in asdict(each).items() if name not in ("code", "fix")} for each in result]
    return {**known, "findings": findings} if findings else None


if __name__ == "__main__":
    print(text_of_record(), end="")
