"""Where a curve goes over from one straight line to another: jumps, bends, and what the library documents there."""

from __future__ import annotations

from collections.abc import Sequence

from hockney.explain.curve import Curve, Reading, finding_about
from hockney.explain.finding import (
    Evidence,
    Finding,
    Found,
    Lacking,
    is_above,
    negative,
    ratio,
    ratio_text,
    relative,
    time_text,
)
from hockney.explain.shape import curves_of_shapes
from hockney.explain.thresholds import Threshold, sources_of, thresholds_of
from hockney.explain.together import Together, together
from hockney.fit import NoFit, SegmentFit, Switch, fit_segments
from hockney.units import BYTES_MAX, bytes_word, counted, format_bytes, format_ns

_SIZES_MIN = 6
_BEND = 0.25
_HEIGHT = 3.0  # a jump that is not known to such a factor has no height
_DOCUMENTED = 2  # a documented size says what a switch is if its place is known to such a factor


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
        if (found := _found(curve, fit, number, reading)) is not None
    ]


def segments_of(curve: Curve) -> SegmentFit | NoFit:
    """The straight segments of a curve, its times known as well as their intervals say."""
    errors = [relative(mark.time_ns) for mark in curve.marks]
    return fit_segments(curve.sizes, [mark.time_ns.value for mark in curve.marks], errors)


def _found(curve: Curve, fit: SegmentFit, number: int, reading: Reading) -> Finding | None:
    """What the rounds that measured both sizes show stands, whatever the lines through all visits say."""
    fitted = fit.switches[number]
    judged = together(curve, fit, number)
    if judged is None:
        jump = fitted if fitted.is_jump else None
    else:
        jump = judged.switch if judged.switch is not None and _bears_out(judged.switch, fitted) else None
    if jump is not None:
        return _switch(curve, fit, number, jump, reading)
    if judged is not None and fitted.is_jump:
        return _doubtful(curve, fitted, judged, reading)
    return _bend(curve, fit, number, reading)


def _bears_out(judged: Switch, fitted: Switch) -> bool:
    """Whether there is a jump for sure, and by the one or the other it is one of a size that counts."""
    same_way = judged.jump_ns.value * fitted.jump_ns.value > 0
    return judged.is_jump or (fitted.is_jump and same_way and not judged.bend)


def _switch(curve: Curve, fit: SegmentFit, number: int, switch: Switch, reading: Reading) -> Finding:
    """A jump: another protocol begins with more work, or with less. Where the lines may meet there is none."""
    jump = switch.jump_ns
    least = min(abs(switch.relative.low), abs(switch.relative.high))
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


def _doubtful(curve: Curve, switch: Switch, judged: Together, reading: Reading) -> Finding:
    """What two sizes differ by may be what the machine changed by between the visits to one and to the other."""
    rounds = f"only {counted(judged.rounds, 'round')}" if judged.rounds else "no round"
    seen = f"{rounds} measured both sizes"
    if judged.switch is not None:
        seen = (
            f"in the {judged.rounds} rounds that measured both by {time_text(judged.switch.jump_ns)}, not surely at all"
        )
    return finding_about(
        curve,
        "a jump that may be drift",
        sentence=(
            f"Between {format_bytes(switch.below_bytes)} and {format_bytes(switch.above_bytes)} the time of "
            f"{curve.name} {_height(switch)}, as the medians of all visits have it, but {seen}: the machine may have "
            "changed between the visits to one and to the other."
        ),
        effect=0.0,
        sizes_bytes=(switch.below_bytes, switch.above_bytes),
        evidence=(Evidence("jump over all visits", switch.jump_ns, "ns"),),
        remedy=f"`{_command(curve, switch, reading)}` measures them beside each other.",
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
    command = _command(curve, switch, reading)
    if reading.refined_s is not None:
        longer = f"{command} --time {2 * reading.refined_s:.15g}s"
        return f"This run has not found the place: `{longer}` has twice its time for it."
    known = "to a byte" if grain_bytes == 1 else f"to {format_bytes(grain_bytes)}, as closely as its sizes lie"
    return f"`{command}` finds the place {known}."


def _command(curve: Curve, switch: Switch, reading: Reading) -> str:
    """What looks closer at the sizes around a switch."""
    options = "".join(f" -o {name}={value}" for name, value in curve.options)
    reach = _reach(switch, reading.grains.get(curve.pattern, 1))
    what = f"{curve.pattern} -t {curve.transport} -n {curve.ranks}{options}"
    return f"hockney run {what} --bytes {reach} --refine --launches 1"


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
