"""Oddities in the published grids of the archive: copied rows, kinks, two speeds, delays and time slices.

A detector here has bounds that fit printed figures; no run is judged by it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from hockney.analysis.explain.curve import MeasuredCurve, Reading, subject_of
from hockney.analysis.explain.laws import BY_MESSAGES, BY_SENDERS, LawRow, Odd, is_off, rows, without
from hockney.analysis.finding import Finding, Subject
from hockney.stats.fit import Estimate

_SAME = 0.005
_MATCH = 0.03
_NEAR_PERIOD = 0.005


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
