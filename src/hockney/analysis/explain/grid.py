"""What a grid of points shows: rows that are alike, laws that are broken, speeds and delays that surprise."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from hockney.analysis.explain.curve import Curve, Reading, finding_about, is_like
from hockney.analysis.explain.finding import (
    Evidence,
    Finding,
    Found,
    Lacking,
    difference,
    is_above,
    ratio,
    ratio_text,
    relative,
    scaled,
    sizes_text,
)
from hockney.analysis.explain.laws import (
    BY_MESSAGES,
    FIGURES_MIN,
    LAWS,
    ON_LINE,
    Odd,
    Row,
    departures,
    farthest_off,
    odd_one_out,
    rows,
)
from hockney.stats.fit import Estimate
from hockney.units import format_bytes, format_ns, format_rate

_SAME = 0.005
_SAME_KNOWN = 0.05
_SIZES_MIN = 3  # of a row, to be called the same as another
_BENT = 0.015
_FASTER = 1.25
_MATCH = 0.03
_MATCH_KNOWN = 0.10
_DELAY = 0.03
_FARMS = ("pushfarm", "pullfarm")
_ONE_BY_ONE = ("robpush", "robpull")  # farms whose messages come one after another
_GROWING = tuple(pattern for pattern, laws in LAWS.items() if laws == (BY_MESSAGES,))


def identical_rows(reading: Reading) -> Found:
    """Two rows of a grid with the same times, though one stands for half as many messages again or more."""
    pairs = [
        (fewer, more)
        for one, other in itertools.combinations(reading.of(*_GROWING), 2)
        if _is_same_row(one, other)
        for fewer, more in [sorted((one, other), key=lambda curve: curve.ranks)]
        if 2 * (more.ranks - 1) >= 3 * (fewer.ranks - 1)
    ]
    if not pairs:
        return Lacking("needs one pattern of many messages at two numbers of ranks, with three sizes or more")
    return [
        finding_about(
            fewer,
            "two rows of a grid identical",
            sentence=(
                f"{fewer.name} among {fewer.ranks} takes as long as among {more.ranks}, at all of "
                f"{len(fewer.marks)} sizes to {_SAME:.1%}, though that is {more.ranks - 1} messages for "
                f"{fewer.ranks - 1}: one row may be a copy of the other."
            ),
            effect=(more.ranks - 1) / (fewer.ranks - 1) - 1,
            sizes_bytes=fewer.sizes,
            evidence=tuple(
                Evidence(f"ratio at {format_bytes(mark.bytes)}", ratio(mark.time_ns, other.time_ns), "")
                for mark, other in zip(fewer.marks, more.marks, strict=True)
            ),
        )
        for fewer, more in pairs
        if _is_copy([ratio(mark.time_ns, other.time_ns) for mark, other in zip(fewer.marks, more.marks, strict=True)])
    ]


def _is_copy(ratios: Sequence[Estimate]) -> bool:
    """All are equal, and enough of them known well enough to be called so."""
    known = [over for over in ratios if relative(over) <= _SAME_KNOWN]
    return len(known) >= _SIZES_MIN and all(abs(over.value - 1) <= _SAME for over in ratios)


def _is_same_row(one: Curve, other: Curve) -> bool:
    alike = (one.pattern, one.transport, one.options, one.state) == (
        other.pattern, other.transport, other.options, other.state,
    )  # fmt: skip
    return alike and one.ranks != other.ranks and one.sizes == other.sizes and len(one.marks) >= _SIZES_MIN


def broken_laws(reading: Reading) -> Found:
    """A number of ranks, senders or receivers whose times do not keep to the law of the others."""
    groups: dict[tuple[str, tuple[str, ...], str], list[Row]] = {}
    for pattern in LAWS:
        for row in rows(reading.of(pattern)):
            if len(row.items) >= FIGURES_MIN:
                # Rows over receivers differ in their senders: together they tell more than each.
                fixed = tuple(text for text in row.fixed if not text.startswith("senders="))
                groups.setdefault((pattern, fixed, row.law.axis), []).append(row)
    if not groups:
        return Lacking("needs one pattern at four numbers of ranks, senders or receivers")
    return [found for members in groups.values() for found in _broken(members)]


def _broken(members: Sequence[Row]) -> Iterator[Finding]:
    odd = [found for row in members if (found := odd_one_out(row)) is not None]
    for x in dict.fromkeys(found.item.x for found in odd):
        own = [found for found in odd if found.item.x == x]
        if 2 * len(own) < len(members):
            continue
        curve, law = own[0].item.curve, own[0].row.law
        sizes = tuple(sorted({found.row.size_bytes for found in own}))
        low, high = sorted((min(own, key=_relative).relative, max(own, key=_relative).relative))
        kept = sorted({row.size_bytes for row in members} - set(sizes))
        yield Finding(
            kind="a scaling law broken",
            transport=curve.transport,
            pattern=curve.pattern,
            state=curve.state,
            sentence=(
                f"{curve.pattern} with {x:.0f} {law.axis} ({_span([found.item.curve.ranks for found in own])} ranks) "
                f"takes {_percent(low, high)} {'more' if low > 0 else 'less'} than the others' law gives, "
                f"{sizes_text(sizes)}{_kept_text(kept, sizes)}."
            ),
            effect=max(abs(low), abs(high)),
            sizes_bytes=sizes,
            evidence=tuple(
                Evidence(f"{' '.join(found.row.fixed[2:])} {format_bytes(found.row.size_bytes)} over the law".strip(),
                         found.over, "")
                for found in own
            ),
        )  # fmt: skip


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def _relative(odd: Odd) -> float:
    return odd.relative


def _percent(low: float, high: float) -> str:
    small, large = sorted((abs(low), abs(high)))
    return f"{large:.0%}" if f"{small:.0%}" == f"{large:.0%}" else f"{small:.1%} to {large:.1%}"


def _kept_text(kept: Sequence[int], broken: Sequence[int]) -> str:
    if not kept:
        return ""
    if kept[-1] < broken[0]:
        return f", and keeps it {sizes_text(tuple(kept))}: bandwidth is what lacks, not time per message"
    return f", and keeps it {sizes_text(tuple(kept))}"


def bent_laws(reading: Reading) -> Found:
    """A farm whose time is not linear in its senders."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for curve_pattern in _FARMS:
        for row in rows(reading.of(curve_pattern)):
            if row.law.axis == "senders" and len(row.items) >= FIGURES_MIN:
                groups.setdefault((curve_pattern, row.fixed[0], row.fixed[1]), []).append(row)
    if not groups:
        return Lacking("needs a farm with four numbers of senders")
    found = []
    for (pattern, transport, state), members in groups.items():
        off = [odd for row in members if (odd := farthest_off(row)) is not None and abs(odd.relative) > _BENT]
        if 3 * len(off) < 2 * len(members):
            continue
        kinks = _kinks(off)
        told = list(itertools.chain(*kinks)) or off
        most = max(told, key=lambda odd: abs(odd.relative))
        where = ", ".join(str(round(x)) for x in sorted({odd.item.x for odd in told}))
        most_text = f"{format_ns(abs(most.item.time_ns.value - most.expected_ns))} ({abs(most.relative):.1%})"
        which = (
            f"in {len(kinks)} of them the others lie on one line to {ON_LINE:.1%}, and with {where} "
            f"senders it is up to {most_text} off it"
            if kinks
            else f"at most {most_text}; farthest off with {where} senders"
        )
        found.append(
            Finding(
                kind="a scaling law broken",
                transport=transport,
                pattern=pattern,
                state=state,
                sentence=(
                    f"{pattern} is not linear in its senders: in {len(off)} of {len(members)} rows a figure is farther "
                    f"than {_BENT:.1%} from the line through all; {which}."
                ),
                effect=abs(most.relative),
                sizes_bytes=(most.row.size_bytes,),
                evidence=tuple(
                    Evidence(f"{odd.row.fixed[-1]}, {odd.item.x:.0f} senders over the line",
                             odd.over, "")
                    for odd in told
                ),
            )
        )  # fmt: skip
    return found


def _kinks(off: Sequence[Odd]) -> list[list[Odd]]:
    """Of each row what leaves the line of its other figures, where two thirds of these rows agree on it."""
    by_place: dict[tuple[float, ...], list[list[Odd]]] = {}
    for odd in off:
        found = departures(odd.row)
        by_place.setdefault(tuple(one.item.x for one in found), []).append(found)
    alike = max(by_place.values(), key=len)
    return alike if alike[0] and 3 * len(alike) >= 2 * len(off) else []


def two_speeds(reading: Reading) -> Found:
    """More ranks that are faster per byte than fewer: the messages of the fewer went another way."""
    slopes = [
        (curve, slope)
        for curve in reading.of(*_ONE_BY_ONE)
        if not float(curve.option("delay_us") or 0) and (slope := _slope(curve, curve.ranks - 1)) is not None
    ]
    pairs = [
        (fewer, more)
        for fewer, more in itertools.permutations(slopes, 2)
        if _is_same_row(fewer[0], more[0]) and fewer[0].ranks < more[0].ranks
    ]
    if not pairs:
        return Lacking("needs the rate per message of one pattern at two numbers of ranks")
    known = [(curve, slope) for curve in reading.of("oneway", "pairs") if (slope := _slope(curve, 1)) is not None]
    return [
        finding_about(
            fewer,
            "two speeds in one grid",
            sentence=(
                f"{fewer.name} among {fewer.ranks} takes {slow.value:.3g} ns per byte of a message"
                f"{_match(slow, known)}, among {more.ranks} only {fast.value:.3g} ns{_match(fast, known)}: "
                f"{_what_differs(fewer, more, reading)}"
            ),
            effect=slow.value / fast.value - 1,
            sizes_bytes=fewer.sizes[-2:],
            evidence=(Evidence("slow", slow, "ns/B"), Evidence("fast", fast, "ns/B")),
        )
        for (fewer, slow), (more, fast) in pairs
        if is_above(slow, fast) and slow.value > _FASTER * fast.value
    ]


def _what_differs(fewer: Curve, more: Curve, reading: Reading) -> str:
    """The place of the fewer, unless the other pattern of the kind takes as long a message among both numbers of ranks.

    In a report each pattern may have had places of its own, in a run it has not.
    """
    apart = "the first was placed farther apart."
    twins = [
        [one for one in reading.of(*_ONE_BY_ONE) if is_like(one, curve) and one.options == curve.options]
        for curve in (fewer, more)
    ]
    for one, other in itertools.product(*twins):
        if one.pattern == other.pattern != fewer.pattern and one.sizes == other.sizes:
            first, second = (scaled(curve.marks[-1].time_ns, 1 / (curve.ranks - 1)) for curve in (one, other))
            over = ratio(first, second)
            if abs(over.value - 1) <= _MATCH and relative(over) <= _MATCH_KNOWN:
                same = f"a message takes {format_ns(first.value)} among {one.ranks} and {format_ns(second.value)} among"
                if reading.published:
                    return f"{apart} Not so in {one.name}: there {same} {other.ranks}, so the two lay alike."
                return f"the first went another way. In {one.name} {same} {other.ranks}, so it is not their place."
    return apart


def _slope(curve: Curve, messages: int) -> Estimate | None:
    """The ns per byte of one of so many messages one after another, from the two longest."""
    if len(curve.marks) < 3:
        return None
    before, last = curve.marks[-2:]
    return scaled(difference(last.time_ns, before.time_ns), 1 / messages / (last.bytes - before.bytes))


def _match(slope: Estimate, known: Sequence[tuple[Curve, Estimate]]) -> str:
    near = [
        curve
        for curve, own in known
        if own.low > 0
        if slope.low > 0
        for over in [ratio(slope, own)]
        if abs(over.value - 1) <= _MATCH and relative(over) <= _MATCH_KNOWN
    ]
    return f", the rate of {near[0].pattern} among {near[0].ranks}" if near else ""


def delays(reading: Reading) -> Found:
    """What a delay took over what was asked for."""
    counted: list[Curve] = []
    rest: list[Curve] = []
    for curve in (one for one in reading.curves if not one.oversubscribed):
        if float(curve.option("delay_us") or 0):
            (counted if curve.counters.get("delays", (0,))[0] else rest).append(curve)
    if not counted and not rest:
        return Lacking("needs robpush or robpull with a delay")
    found = [finding for curve in counted if (finding := _delay_counted(curve)) is not None]
    groups: dict[tuple[str, str], list[Estimate]] = {}
    for longer, shorter in _neighbours(rest):
        groups.setdefault((longer.transport, longer.pattern), []).append(_delay_slope(longer, shorter))
    for (transport, pattern), slopes in groups.items():
        low, high = min(slopes, key=lambda one: one.value), max(slopes, key=lambda one: one.value)
        if high.low > 1 + _DELAY and low.low > 0:
            found.append(
                Finding(
                    kind="delays longer than asked for",
                    transport=transport,
                    pattern=pattern,
                    sentence=(
                        f"In {pattern} each microsecond of delay that is asked for adds {ratio_text(low)} to "
                        f"{ratio_text(high)} us between the two longest delays: the delay is not timed by a clock."
                    ),
                    effect=high.value - 1,
                    evidence=(Evidence("least", low, ""), Evidence("most", high, "")),
                )
            )
    return found


def _delay_counted(curve: Curve) -> Finding | None:
    asked_ns = 1e3 * float(curve.option("delay_us") or 0)
    took_ns = curve.counters["delay_ns"][0] / curve.counters["delays"][0]
    over = took_ns / asked_ns
    if abs(over - 1) <= _DELAY:
        return None
    return finding_about(
        curve,
        "delays longer than asked for" if over > 1 else "delays shorter than asked for",
        sentence=f"A delay of {format_ns(asked_ns)} in {curve.pattern} took {format_ns(took_ns)}, {over:.2f} times.",
        effect=abs(over - 1),
        sizes_bytes=curve.sizes,
        remedy="delay_kind=clock is busy until the clock says so.",
    )


def _neighbours(curves: Sequence[Curve]) -> Iterator[tuple[Curve, Curve]]:
    """Of each grid's row the two longest delays, the longest first."""
    groups: dict[tuple[object, ...], list[Curve]] = {}
    for curve in curves:
        options = tuple(pair for pair in curve.options if pair[0] != "delay_us")
        groups.setdefault((curve.transport, curve.pattern, curve.ranks, options, curve.state), []).append(curve)
    for members in groups.values():
        members.sort(key=lambda curve: -float(curve.option("delay_us") or 0))
        if len(members) >= 2:
            yield members[0], members[1]


def _delay_slope(longer: Curve, shorter: Curve) -> Estimate:
    """Of the shortest message, of which least hides behind a delay."""
    asked_us = float(longer.option("delay_us") or 0) - float(shorter.option("delay_us") or 0)
    return scaled(difference(longer.marks[0].time_ns, shorter.marks[0].time_ns), 1 / (1e3 * asked_us))


def own_block(reading: Reading) -> Found:
    """An all-to-all that moves less for each rank among two than among four."""
    curves = [curve for curve in reading.of("alltoall") if curve.option("algorithm") != "flat"]
    rates = {
        (curve.transport, curve.state, curve.ranks): (curve, rate)
        for curve in curves
        if (rate := _rate_of_rank(curve)) is not None
    }
    pairs = [
        (two, rates[transport, state, 4])
        for (transport, state, ranks), two in rates.items()
        if ranks == 2 and (transport, state, 4) in rates
    ]
    if not pairs:
        return Lacking("needs an all-to-all of the library's own among 2 and among 4 ranks")
    return [
        finding_about(
            curve,
            "a scaling law broken",
            sentence=(
                f"An all-to-all moves {format_rate(two.value)} for each rank among 2 and {format_rate(four.value)} "
                f"among 4, {ratio_text(ratio(four, two))} times: the own block, half of what is copied among 2, takes "
                "its share."
            ),
            effect=four.value / two.value - 1,
            evidence=(Evidence("among 2", two, "B/s"), Evidence("among 4", four, "B/s")),
        )
        for (curve, two), (_, four) in pairs
        if is_above(four, two)
    ]


def _rate_of_rank(curve: Curve) -> Estimate | None:
    """What crosses to other ranks, for each rank; the own block is not counted."""
    if curve.peak_bytes_per_s is not None:
        return curve.peak_bytes_per_s
    mark = curve.marks[-1]
    if mark.bytes < 1 << 16 or mark.time_ns.low <= 0:
        return None
    moved = 1e9 * (curve.ranks - 1) * mark.bytes
    return Estimate(moved / mark.time_ns.value, moved / mark.time_ns.high, moved / mark.time_ns.low)
