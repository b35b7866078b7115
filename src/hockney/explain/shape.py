"""What one curve shows by itself: switches, blips, falls of the rate, sizes that cost nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hockney.explain.curve import Curve, Mark, Place, Reading, finding_about
from hockney.explain.finding import (
    Evidence,
    Finding,
    Found,
    Lacking,
    difference,
    is_above,
    negative,
    ratio,
    ratio_text,
    relative,
    sizes_text,
    time_text,
)
from hockney.explain.thresholds import Threshold, sources_of, thresholds_of
from hockney.fit import Estimate, NoFit, Segment, SegmentFit, Switch, fit_line, fit_segments
from hockney.units import BYTES_MAX, bytes_word, format_bytes, format_ns, format_rate

# A curve's shape is that of its transport, so of each transport the first of these that it has is looked at.
_SHAPES = ("pingpong", "putpong", "oneway", "pairs", "put", "get", "putring")
_SIZES_MIN = 6
_BEND = 0.25
_HEIGHT = 3.0  # a jump that is not known to such a factor has no height
_DOCUMENTED = 2  # a documented size says what a switch is if its place is known to such a factor
_BLIP = 0.05
_FALL = 0.10
_ALIKE = 0.03
_KNOWN = 0.10  # a ratio that is known less well is not called one of equals
_STRAIGHT = 0.02
_PLATEAU = 16  # times the shortest size: what lies between it and a line that begins farther off is not known


def switches(reading: Reading) -> Found:
    """Jumps between straight segments, and what the library documents there."""
    curves = [curve for curve in curves_of_shapes(reading) if len(curve.marks) >= _SIZES_MIN]
    if not curves:
        return Lacking("needs a curve of six sizes or more: three on either side of a switch")
    fits = [(curve, fit) for curve in curves if isinstance(fit := segments_of(curve), SegmentFit)]
    return [
        found
        for curve, fit in fits
        for number in range(len(fit.switches))
        if (found := _switch(curve, fit, number, reading) or _bend(curve, fit, number, reading)) is not None
    ]


def segments_of(curve: Curve) -> SegmentFit | NoFit:
    """The straight segments of a curve, its times known as well as their intervals say."""
    errors = [relative(mark.time_ns) for mark in curve.marks]
    return fit_segments(curve.sizes, [mark.time_ns.value for mark in curve.marks], errors)


def _switch(curve: Curve, fit: SegmentFit, number: int, reading: Reading) -> Finding | None:
    """A jump: another protocol begins with more work, or with less. Where the lines may meet there is none."""
    switch = fit.switches[number]
    jump = switch.jump_ns
    least = min(abs(switch.relative.low), abs(switch.relative.high))
    if not switch.is_jump:
        return None
    known = _known(curve, switch, reading)
    return finding_about(
        curve,
        "protocol switch",
        sentence=(
            f"Between {format_bytes(switch.below_bytes)} and {format_bytes(switch.above_bytes)} the time of "
            f"{curve.name} {_height(switch)}. "
            f"{_documented(known, switch) or _undocumented(switch, reading)}"
        ),
        effect=least,
        sizes_bytes=(switch.below_bytes, switch.above_bytes),
        evidence=(Evidence("jump", jump, "ns"), *_sides(fit, number)),
        remedy=_refine(curve, switch, fit.steps_at(switch), reading),
        sources=sources_of(known),
    )


def _undocumented(switch: Switch, reading: Reading) -> str:
    """A cache that ends there may be what looks like a switch; what is sent and what is received share it."""
    said = "No documented threshold of this transport is known there"
    ends = [
        f"the L{level} cache, {format_bytes(size)}"
        for level, size in reading.caches
        if switch.below_bytes <= size <= 2 * switch.above_bytes
    ]
    return (
        f"{said}; {' and '.join(ends)}, ends at about that size, which may be all there is to it."
        if ends
        else f"{said}."
    )


def _height(switch: Switch) -> str:
    """How far it jumps, where that is known to a factor; the interval holds the heights at both of its sizes."""
    falls = switch.jump_ns.value < 0
    jump, part = (negative(one) if falls else one for one in (switch.jump_ns, switch.relative))
    verb = "falls" if falls else "jumps"
    if jump.high > _HEIGHT * jump.low:
        return f"{verb}, by {format_ns(jump.low)} at least: how far is not known to a factor of {_HEIGHT:g}"
    return f"{verb} by {time_text(jump)}, {part.low:.0%} to {part.high:.0%}"


def documented_of(curve: Curve, reading: Reading) -> list[Threshold]:
    """The documented sizes of a curve's transport."""
    library, launcher = (of.get(curve.transport, "") for of in (reading.libraries, reading.launchers))
    return list(thresholds_of(curve.transport, reading.facts, library, launcher))


def _known(curve: Curve, switch: Switch, reading: Reading) -> list[Threshold]:
    return [one for one in documented_of(curve, reading) if one.lies_between(switch.below_bytes, switch.above_bytes)]


def _documented(known: Sequence[Threshold], switch: Switch) -> str:
    """What is documented between the two sizes; that it is the switch is said only where these are close."""
    if not known:
        return ""
    texts = "; ".join(threshold.text for threshold in known)
    if switch.above_bytes <= _DOCUMENTED * switch.below_bytes:
        return f"Documented there: {texts}."
    return f"In that range lies {texts}; whether it is the switch, sizes so far apart don't tell."


def _refine(curve: Curve, switch: Switch, steps: Sequence[tuple[int, int]], reading: Reading) -> str | None:
    """How to find the place; None where it is known: where no wider step is left that `--refine` would look into."""
    grain_bytes = reading.grains.get(curve.pattern, 1)
    if all(above - below <= grain_bytes for below, above in steps):
        return None
    options = "".join(f" -o {name}={value}" for name, value in curve.options)
    command = (
        f"hockney run {curve.pattern} -t {curve.transport} -n {curve.ranks}{options} "
        f"--bytes {_reach(switch, grain_bytes)} --refine --launches 1"
    )
    if reading.refined_s is not None:
        longer = f"{command} --time {2 * reading.refined_s:.15g}s"
        return f"This run has not found the place: `{longer}` has twice its time for it."
    known = "to a byte" if grain_bytes == 1 else f"to {format_bytes(grain_bytes)}, as closely as its sizes lie"
    return f"`{command}` finds the place {known}."


def _reach(switch: Switch, grain_bytes: int) -> str:
    """Doubling sizes around a switch, as --bytes takes them: enough of them on either side for a line."""
    low = max(grain_bytes, 1 << max(0, switch.below_bytes.bit_length() - 4)) if switch.below_bytes else 0
    high = 1 << ((switch.above_bytes - 1).bit_length() + 3)
    return f"{bytes_word(low)}:{bytes_word(min(high, BYTES_MAX))}"


def _sides(fit: SegmentFit, number: int) -> tuple[Evidence, ...]:
    below, above = fit.segments[number], fit.segments[number + 1]
    return (
        Evidence("start-up below", below.t0_ns, "ns"),
        Evidence("start-up above", above.t0_ns, "ns"),
        Evidence("per byte below", below.ns_per_byte, "ns/B"),
        Evidence("per byte above", above.ns_per_byte, "ns/B"),
    )


def _bend(curve: Curve, fit: SegmentFit, number: int, reading: Reading) -> Finding | None:
    """No jump that can be told from a change of slope, but bytes that cost more or less from there on."""
    switch = fit.switches[number]
    known = _known(curve, switch, reading)
    below, above = fit.segments[number].ns_per_byte, fit.segments[number + 1].ns_per_byte
    if not (is_above(above, below) or is_above(below, above)) or below.low <= 0 or above.low <= 0:
        return None
    quotient = ratio(above, below)
    if 1 - _BEND < quotient.value < 1 + _BEND:
        return None
    return finding_about(
        curve,
        "bend",
        sentence=(
            f"From {format_bytes(switch.above_bytes)} on each byte of {curve.name} takes {above.value:.3g} ns, up to "
            f"{format_bytes(switch.below_bytes)} {below.value:.3g} ns: {ratio_text(quotient)} times. "
            f"{_documented(known, switch)}".rstrip()
        ),
        effect=0.0,
        sizes_bytes=(switch.below_bytes, switch.above_bytes),
        evidence=_sides(fit, number),
        sources=sources_of(known),
    )


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


def page_blip(reading: Reading) -> Found:
    """A time at the page size above the line between its neighbours."""
    page = reading.page_bytes
    if page is None:
        return Lacking("the page size of the machine is not known")
    triples = [(curve, *three) for curve in curves_of_shapes(reading) if (three := _around(curve, page)) is not None]
    if not triples:
        return Lacking(f"needs a curve with the page size, {format_bytes(page)}, and a size on either side within 4x")
    return [found for curve, before, at, after in triples if (found := _blip(curve, before, at, after)) is not None]


def _around(curve: Curve, size: int) -> tuple[Mark, Mark, Mark] | None:
    for before, at, after in zip(curve.marks, curve.marks[1:], curve.marks[2:], strict=False):
        if at.bytes == size and 4 * before.bytes >= size and after.bytes <= 4 * size:
            return before, at, after
    return None


def _blip(curve: Curve, before: Mark, at: Mark, after: Mark) -> Finding | None:
    share = (at.bytes - before.bytes) / (after.bytes - before.bytes)

    def between(low: float, high: float) -> float:
        return low + share * (high - low)

    line = Estimate(
        between(before.time_ns.value, after.time_ns.value),
        between(before.time_ns.low, after.time_ns.low),
        between(before.time_ns.high, after.time_ns.high),
    )
    # What is above its own successor is a blip; what is only above the line may be a switch, which `switches` tells.
    excess = difference(at.time_ns, line)
    if excess.low <= 0 or excess.value < _BLIP * line.value or not is_above(at.time_ns, after.time_ns):
        return None
    return finding_about(
        curve,
        "blip at the page size",
        sentence=(
            f"At the page size, {format_bytes(at.bytes)}, {curve.name} takes {time_text(excess)} more than the line "
            f"between its neighbours, {excess.value / line.value:.0%}, and more than the longer message after it."
        ),
        effect=excess.value / line.value,
        sizes_bytes=(at.bytes,),
        evidence=(Evidence("excess", excess, "ns"), Evidence("line", line, "ns")),
    )


def cache_falls(reading: Reading) -> Found:
    """A best rate beyond a cache that is below the one within."""
    if not reading.caches:
        return Lacking("the caches of the machine are not known")
    curves = reading.of("oneway", "twoway", "pairs", "pingpong", "put", "get", "stream")
    pairs = [
        (curve, level, size, *both)
        for curve in curves
        for level, size in reading.caches
        if (both := _either_side(curve, size)) is not None
    ]
    if not pairs:
        largest = max((curve.sizes[-1] for curve in curves), default=0)
        last = reading.caches[-1]
        return Lacking(
            f"needs sizes within and beyond a cache: the longest message is of {format_bytes(largest)}, the L{last[0]} "
            f"holds {format_bytes(last[1])}"
        )
    return [
        _fall(curve, level, size, within, beyond)
        for curve, level, size, within, beyond in pairs
        if is_above(within[1], beyond[1]) and within[1].value > (1 + _FALL) * beyond[1].value
    ]


Rated = tuple[int, Estimate]


def _either_side(curve: Curve, cache_bytes: int) -> tuple[Rated, Rated] | None:
    """The best rates within a cache and beyond it, from sizes that are sure to lie there, with their sizes."""
    within = _best(curve.marks, cache_bytes // 8, cache_bytes // 2)
    beyond = _best(curve.marks, 2 * cache_bytes, 8 * cache_bytes)
    return None if within is None or beyond is None else (within, beyond)


def _best(marks: Iterable[Mark], low: int, high: int) -> Rated | None:
    rated = [(mark.bytes, rate) for mark in marks if low <= mark.bytes <= high and (rate := mark.rate_bytes_per_s)]
    return max(rated, key=lambda one: one[1].value) if rated else None


def _fall(curve: Curve, level: int, cache_bytes: int, within: Rated, beyond: Rated) -> Finding:
    fall = ratio(beyond[1], within[1])
    return finding_about(
        curve,
        "bandwidth falls beyond a cache",
        sentence=(
            f"The rate of {curve.name} falls from {format_rate(within[1].value)} at {format_bytes(within[0])} to "
            f"{format_rate(beyond[1].value)} at {format_bytes(beyond[0])}, {1 - fall.value:.0%}: between them lies the "
            f"L{level} cache, {format_bytes(cache_bytes)}."
        ),
        effect=1 - fall.value,
        sizes_bytes=(within[0], beyond[0]),
        evidence=(Evidence("within", within[1], "B/s"), Evidence("beyond", beyond[1], "B/s")),
    )


def flat(reading: Reading) -> Found:
    """Sizes up to which a message takes as long as the shortest."""
    curves = [curve for curve in curves_of_shapes(reading) if len(curve.marks) >= 3]
    if not curves:
        return Lacking("needs a curve of three sizes or more")
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
        if not alike or relative(over) > _KNOWN:
            break
        same.append(mark)
    if len(same) < 2 or same[-1].bytes < 4 * max(4, same[0].bytes):
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
    return finding_about(
        curve,
        "latency independent of size",
        sentence=(
            f"{curve.name} of {format_bytes(first.bytes)} among {curve.ranks} takes {format_ns(first.time_ns.value)}, "
            f"as long as the line through the sizes {sizes_text(tuple(mark.bytes for mark in rest))} gives for "
            f"{format_bytes(round(reached[0]))}: up to about that size the payload costs nothing."
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
    for curve in reading.of(*_SHAPES):
        places.setdefault(curve.place, []).append(curve)
    return [curve for found in places.values() for curve in _first_pattern(found)]


def _first_pattern(found: Sequence[Curve]) -> Iterator[Curve]:
    first = min(found, key=lambda curve: _SHAPES.index(curve.pattern)).pattern
    return (curve for curve in found if curve.pattern == first and curve.marks)
