"""What one pattern shows beside another over one transport: ratios with a usual value, and orders that can't be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hockney.analysis.explain.curve import Curve, Options, Reading, finding_about, is_like
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
    time_text,
)
from hockney.stats.fit import Estimate
from hockney.units import format_bytes, format_ns

# A pattern of which many are under way at once -> the same done by one alone, timed alike.
_IDLE = {"pairs": "oneway", "bisection": "pingpong", "putring": "put"}
_NOT_COMPARED = ("distance", "source", "target")
_NEAR = 0.10
_SLOWER = 0.02
_GAIN = 0.03
_SHARED = 0.05
_TOTALS_MIN = 4
_WHOLE = 0.07  # how far from a whole number the interval of a quotient may reach
_FULL_DUPLEX = 0.55  # and what is seen of it: above 0.5 by a little
_LESS = 0.45
_KNOWN = 0.10  # a ratio that is known less well is told by its nearer bound
_HALF_DUPLEX = 0.75  # of a message's time alone: between full duplex, 0.5, and half duplex, 1


def oneway_and_half_round_trip(reading: Reading) -> Found:
    """One-way messages beside half the round trip: streaming hides latency, so it may be faster, and not slower."""
    return _beside_pingpong(reading, "oneway")


def twoway_and_half_round_trip(reading: Reading) -> Found:
    """Messages both ways at once beside half the round trip."""
    return _beside_pingpong(reading, "twoway")


def _beside_pingpong(reading: Reading, pattern: str) -> Found:
    pairs = list(_pairs(reading, pattern, "pingpong"))
    if not pairs:
        return Lacking(f"needs {pattern} beside pingpong on one transport")
    return [found for one, pingpong in pairs if (found := _order(one, pingpong)) is not None]


def _order(curve: Curve, other: Curve) -> Finding | None:
    """Where the shortest common size of two curves differs. A window of several messages is meant to be faster."""
    marks = _common(curve, other)
    if not marks or curve.option("window"):
        return None
    size, own, of_other = marks[0]
    quotient = ratio(own, of_other)
    faster = quotient.high < 1 and quotient.value < 1 - _NEAR
    if not faster and (quotient.low <= 1 or quotient.value < 1 + _SLOWER):
        return None
    way = "two-way" if curve.pattern == "twoway" else "one-way"
    kind = f"{way} {'faster' if faster else 'slower'} than half the round trip"
    why = (
        "its messages overlap, so it is no latency: a message is under way while the next is sent"
        if faster
        else "a stream of messages should hide part of what a single one costs, so here the sender waits for something"
    )
    return finding_about(
        curve,
        kind,
        sentence=(
            f"A message of {format_bytes(size)} takes {format_ns(own.value)} by {curve.name} and "
            f"{format_ns(of_other.value)} by half the round trip, {ratio_text(quotient)} times: {why}."
        ),
        effect=0.0 if faster else quotient.value - 1,
        sizes_bytes=(size,),
        evidence=(
            Evidence(curve.name, own, "ns"),
            Evidence("half the round trip", of_other, "ns"),
            Evidence("ratio", quotient, ""),
        ),
    )


def duplex(reading: Reading) -> Found:
    """Two-way time per message over the one-way one: 1/2 where both directions go at once, 1 where they take turns."""
    pairs = list(_pairs(reading, "twoway", "oneway"))
    if not pairs:
        return Lacking("needs twoway beside oneway on one transport")
    return [found for two, one in pairs if (found := _duplex(two, one)) is not None]


def _duplex(two: Curve, one: Curve) -> Finding | None:
    """Of the sizes that say something: those whose ratio lies on one side of full duplex for sure."""
    found = [
        (size, quotient)
        for size, own, of_one in _common(two, one)
        for quotient in [ratio(own, of_one)]
        if quotient.low > _FULL_DUPLEX or quotient.high < _LESS
    ]
    if not found:
        return None
    (first, of_first), (last, of_last) = found[0], found[-1]
    span = f"{_duplex_text(of_first)} at {format_bytes(first)}"
    if len(found) > 1:
        span += f" and {_duplex_text(of_last)} at {format_bytes(last)}"
    words = []
    if any(quotient.low > _FULL_DUPLEX for _, quotient in found):
        turns = of_last.low > _HALF_DUPLEX
        words.append(f"the two directions {'take turns for the greater part' if turns else 'slow each other down'}")
    if any(quotient.high < _LESS for _, quotient in found):
        words.append("below 0.5 one direction alone is the slow one: its sender or receiver waits where two don't")
    return finding_about(
        two,
        "duplex ratio",
        sentence=(
            f"A message of {two.name} costs {span} times the one of {one.name}, where 0.5 is full duplex and 1 half: "
            f"{'; '.join(words)}."
        ),
        effect=max(abs(2 * _duplex_told(quotient) - 1) for _, quotient in found),
        sizes_bytes=tuple(size for size, _ in found),
        evidence=tuple(Evidence(f"ratio at {format_bytes(size)}", quotient, "") for size, quotient in found),
    )


def _duplex_told(quotient: Estimate) -> float:
    """The value, or, where it is known too badly, the bound that is nearer to full duplex."""
    if relative(quotient) <= _KNOWN:
        return quotient.value
    return quotient.low if quotient.low > _FULL_DUPLEX else quotient.high


def _duplex_text(quotient: Estimate) -> str:
    told = _duplex_told(quotient)
    if told == quotient.value:
        return ratio_text(quotient)
    return f"at {'least' if told == quotient.low else 'most'} {told:.3g}"


def loaded_and_idle(reading: Reading) -> Found:
    """Many at once that are faster than one alone."""
    pairs = list(_loaded(reading))
    if not pairs:
        return Lacking("needs one and the same message alone and with others beside it (pairs and oneway, for one)")
    found = []
    for loaded, idle in pairs:
        faster = [
            (size, own, of_idle) for size, own, of_idle in _common(loaded, idle) if own.high < (1 - _GAIN) * of_idle.low
        ]
        if faster:
            size, own, of_idle = faster[0]
            gain = difference(of_idle, own)
            found.append(
                finding_about(
                    loaded,
                    "loaded faster than idle",
                    sentence=(
                        f"With all ranks at it at once ({loaded.name}) a message of {format_bytes(size)} takes "
                        f"{format_ns(own.value)}, alone ({idle.name}) {format_ns(of_idle.value)}: load by itself "
                        f"can't save {time_text(gain)}, so something else differs between the two."
                    ),
                    effect=gain.value / of_idle.value,
                    sizes_bytes=tuple(each[0] for each in faster),
                    evidence=(Evidence("loaded", own, "ns"), Evidence("alone", of_idle, "ns")),
                )
            )
    return found


def shared_path(reading: Reading) -> Found:
    """A best rate under load that is a whole fraction of the one alone: so many share something."""
    pairs = [
        (loaded, idle, own, alone)
        for loaded, idle in _loaded(reading)
        if (own := _peak(loaded)) is not None and (alone := _peak(idle)) is not None
    ]
    if not pairs:
        return Lacking("needs a best rate alone and with others beside it")
    found = []
    for loaded, idle, own, alone in pairs:
        quotient = ratio(alone, own)
        sharing = round(quotient.value)
        whole = sharing - _WHOLE <= quotient.low and quotient.high <= sharing + _WHOLE
        if whole and 2 <= sharing <= _at_once(loaded):
            found.append(
                finding_about(
                    loaded,
                    "a path shared by several",
                    sentence=(
                        f"Under load ({loaded.name}) each gets {1 / quotient.value:.3f} of the best rate alone "
                        f"({idle.name}): as if {sharing} shared one path."
                    ),
                    effect=quotient.value - 1,
                    evidence=(Evidence("alone", alone, "B/s"), Evidence("loaded", own, "B/s")),
                )
            )
    return found


def _at_once(loaded: Curve) -> int:
    """How many are under way: each rank's own in a ring, else one a pair."""
    return loaded.ranks if loaded.pattern == "putring" else loaded.ranks // 2


def _peak(curve: Curve) -> Estimate | None:
    """The best rate of one message's payload; that of all ranks together is no rate of one."""
    if curve.peak_bytes_per_s is not None:
        return curve.peak_bytes_per_s
    rated = [
        Estimate(mark.bytes / time.value * 1e9, mark.bytes / time.high * 1e9, mark.bytes / time.low * 1e9)
        for mark in curve.marks
        if mark.bytes >= 1 << 16 and (time := mark.time_ns).low > 0
    ]
    return max(rated, key=lambda rate: rate.value, default=None)


def same_data(reading: Reading) -> Found:
    """Different data for each receiver beside the same for all: where the difference begins, a cache ends."""
    groups: dict[tuple[str, Options, str], list[_Total]] = {}
    for out, multi in _pairs(reading, "outfarm", "multicast"):
        # The shortest size tells what a message costs, not what its data do.
        for size, own, of_all in _common(out, multi)[1:]:
            total = ((out.ranks - 1) * size, ratio(own, of_all))
            groups.setdefault((out.transport, out.options, out.state), []).append(total)
    able = {place: totals for place, totals in groups.items() if len(totals) >= _TOTALS_MIN}
    if not able:
        return Lacking("needs outfarm beside multicast at four totals of data or more")
    return [
        found
        for (transport, _, state), totals in able.items()
        if (found := _end_of_cache(transport, state, totals, reading)) is not None
    ]


_Total = tuple[int, Estimate]  # bytes of different data for all receivers, and how many times as long they take


def _end_of_cache(transport: str, state: str, totals: list[_Total], reading: Reading) -> Finding | None:
    """Where the widest step between neighbouring totals lies, if all below are cheaper than all above."""
    totals = sorted(totals, key=lambda total: total[0])
    cut = max(range(1, len(totals)), key=lambda at: totals[at][1].value - totals[at - 1][1].value)
    below, above = totals[:cut], totals[cut:]
    under = max((quotient for _, quotient in below), key=lambda quotient: quotient.high)
    over = min((quotient for _, quotient in above), key=lambda quotient: quotient.low)
    if not is_above(over, under) or over.value - under.value < _SHARED:
        return None
    low, high = below[-1][0], above[0][0]
    caches = [f"the L{level} of {format_bytes(size)}" for level, size in reading.caches if low <= size <= high]
    return Finding(
        kind="bandwidth falls beyond a cache",
        transport=transport,
        pattern="outfarm and multicast",
        state=state,
        sentence=(
            f"Different data for each receiver cost at most {under.value:.3f} times the same data for all, as long "
            f"as they are {format_bytes(low)} or less together, and {over.value:.3f} times or more from "
            f"{format_bytes(high)} on: the source's data no longer fit a cache{_named(caches)}."
        ),
        effect=over.value - under.value,
        sizes_bytes=(low, high),
        evidence=(Evidence("most within", under, ""), Evidence("least beyond", over, "")),
    )


def _named(caches: list[str]) -> str:
    return f" ({', '.join(caches)})" if caches else " of a size in between"


def stream_modes(reading: Reading) -> Found:
    """What a mode of writing costs: per write, and per byte."""
    curves = [curve for curve in reading.of("stream") if len(curve.marks) >= 2]
    pairs = [(one, other) for one in curves for other in curves if _differ_in_write(one, other)]
    if not pairs:
        return Lacking("needs the pattern stream with blocking and with non-blocking writes")
    return [found for blocking, other in pairs if (found := _mode(blocking, other)) is not None]


def _differ_in_write(one: Curve, other: Curve) -> bool:
    def rest(curve: Curve) -> dict[str, str]:
        return {name: value for name, value in curve.options if name not in ("write", "source")}

    modes = one.option("write") or "blocking", other.option("write") or "blocking"
    return modes == ("blocking", "nonblocking") and is_like(one, other) and rest(one) == rest(other)


def _mode(blocking: Curve, other: Curve) -> Finding | None:
    marks = _common(blocking, other)
    if len(marks) < 2:
        return None
    (first, own, of_other), (last, own_last, of_other_last) = marks[0], marks[-1]
    per_write = difference(own, of_other)
    share = 1 / (last - first)
    slope = scaled(difference(own_last, own), share)
    other_slope = scaled(difference(of_other_last, of_other), share)
    apart = is_above(slope, other_slope) or is_above(other_slope, slope)
    if per_write.low <= 0 or slope.low <= 0 or other_slope.low <= 0 or not apart:
        return None
    per_byte = ratio(slope, other_slope)
    return finding_about(
        blocking,
        "a mode costs per byte too",
        sentence=(
            f"A blocking write takes {time_text(per_write)} more than a non-blocking one at "
            f"{format_bytes(first)}, and each byte up to {format_bytes(last)} takes {ratio_text(per_byte)} times as "
            "long: it is not only the overhead of a write that differs."
        ),
        effect=abs(per_byte.value - 1),
        sizes_bytes=(first, last),
        evidence=(Evidence("per write", per_write, "ns"), Evidence("per byte, ratio", per_byte, "")),
    )


# ---- which curves go together ---------------------------------------------------------------------------------------


def _pairs(reading: Reading, pattern: str, other: str) -> Iterator[tuple[Curve, Curve]]:
    """Curves of two patterns over one transport with the same options, as far as both have them."""
    for one, two in itertools.product(reading.of(pattern), reading.of(other)):
        if is_like(one, two) and (one.options == two.options or not two.options):
            yield one, two


def _loaded(reading: Reading) -> Iterator[tuple[Curve, Curve]]:
    for loaded in reading.of(*_IDLE):
        for idle in reading.of(_IDLE[loaded.pattern]):
            same = loaded.transport == idle.transport and loaded.state == idle.state
            if same and _comparable(loaded) == _comparable(idle):
                yield loaded, idle


def _comparable(curve: Curve) -> dict[str, str]:
    return {name: value for name, value in curve.options if name not in _NOT_COMPARED}


def _common(one: Curve, other: Curve) -> list[tuple[int, Estimate, Estimate]]:
    """The sizes that both have, with both times."""
    times = {mark.bytes: mark.time_ns for mark in other.marks}
    return [(mark.bytes, mark.time_ns, times[mark.bytes]) for mark in one.marks if mark.bytes in times]
