"""Protocol switches (confirmed, suspected or not seen), bends, and curved stretches of a curve."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hockney.analysis.estimates import is_above, ratio, scaled
from hockney.analysis.explain.curve import Curve, Reading, subject_of
from hockney.analysis.explain.paired_rounds import Answer, Step, is_sharp, steps_of
from hockney.analysis.explain.shape import REACH, curves_of_shapes, no_shape
from hockney.analysis.explain.thresholds import Threshold, thresholds_of
from hockney.analysis.finding import Finding, Fix, NotChecked
from hockney.stats.fit import JUMP, Estimate, Segment, SegmentFit, Switch
from hockney.units import BYTES_MAX, bytes_word

_SIZES_MIN = 6
_BEND = 0.25
_HEIGHT = 3.0  # a jump known less well than to this factor has only a least height
_CLOSE = 1.125  # between such neighbours a smooth curve does not jump, and a documented size of either may be the cause
_DOCUMENTED = 2  # a documented size confirms a switch whose place is known to this factor
_NEAR = 4  # neighbours farther apart do not show that nothing happens between them
_SLOWEST_BYTES_PER_NS = 2.0  # the slowest memory of today: a cache costs no more than reading the message from it


def switches(reading: Reading) -> list[Finding] | NotChecked:
    """Each curve's switches, drifts, its bend if it has one, and the documented sizes at which it shows nothing."""
    curves = [curve for curve in curves_of_shapes(reading) if len(curve.points) >= _SIZES_MIN]
    if not curves:
        return no_shape(reading, "six sizes or more: three on each side of a switch")
    return [finding for curve in curves for finding in _of_curve(curve, reading)]


def jump_places(curve: Curve) -> list[tuple[int, int]]:
    """The neighbouring sizes between which a curve jumps, ascending."""
    fit = curve.segments
    if not isinstance(fit, SegmentFit) or len(curve.points) < _SIZES_MIN:
        return []
    return sorted(step.places for step in steps_of(curve, fit) if step.answer is Answer.JUMP)


def _of_curve(curve: Curve, reading: Reading) -> Iterator[Finding]:
    fit = curve.segments
    if not isinstance(fit, SegmentFit):
        return
    thresholds = documented_of(curve, reading)
    steps = steps_of(curve, fit)
    jumps = [step for step in steps if step.answer is Answer.JUMP]
    gradual = _neighbouring_rises(jumps)
    for step in steps:
        if step.answer is Answer.DRIFT:
            facts = _height(step.switch) | {"rounds": step.rounds}
            yield _finding("drift", curve, step, facts)
        elif step.answer is Answer.UNKNOWN:
            facts = {"answer": "suspected", "rounds": step.rounds} | _height(step.switch)
            yield _finding("protocol switch", curve, step, facts, "drift", _fix(curve, step.switch, reading))
        elif step.answer is Answer.JUMP and step not in gradual:
            yield _switch(curve, step, thresholds, reading)
    bends = [step for step, number in zip(steps, range(len(fit.switches)), strict=False) if _is_bend(fit, number, step)]
    if len(bends) == 1 and not gradual and not any(map(_is_short, fit.segments)):
        yield _bend(curve, fit, steps.index(bends[0]), thresholds)
    else:
        yield from _curved(curve, fit, [*bends, *gradual])
    yield from _not_seen(curve, fit, thresholds)


def _finding(
    code: str, curve: Curve, step: Step, facts: dict[str, Any], cause: str = "", fix: Fix | None = None
) -> Finding:
    below, above = step.places
    part = step.switch.relative
    effect = 0.0 if step.switch.bend else min(abs(part.low), abs(part.high))
    facts = {"below_bytes": below, "above_bytes": above} | facts
    return Finding(code, subject_of(curve, step.places), facts, cause, fix, effect)


def _height(switch: Switch) -> dict[str, Any]:
    """How far the time jumps or falls; the least where it is not known to a factor of 3."""
    sign = -1.0 if switch.jump_ns.value < 0 else 1.0
    name = "fall" if sign < 0 else "jump"
    jump, part = (_signed(one, sign) for one in (switch.jump_ns, switch.relative))
    if switch.bend or jump.high <= _HEIGHT * jump.low:
        return {f"{name}_ns": jump, f"{name}_share": part}
    return {f"least_{name}_ns": jump.low}


def _signed(value: Estimate, sign: float) -> Estimate:
    return value if sign > 0 else Estimate(-value.value, -value.high, -value.low)


def _switch(curve: Curve, step: Step, thresholds: Sequence[Threshold], reading: Reading) -> Finding:
    """A jump that the rounds show. It is confirmed where a limit is documented, or where its place is known well.

    Between sizes farther apart a cache, or any smooth curve, may rise as much.
    """
    below, above = step.places
    known = _documented_at(step, thresholds)
    is_close = above <= _CLOSE * below
    is_confirmed = is_close or (bool(known) and above <= _DOCUMENTED * below)
    facts: dict[str, Any] = {"answer": "confirmed" if is_confirmed else "suspected"} | _height(step.switch)
    cause, sources = "", tuple(dict.fromkeys(one.source for one in known))
    cache = _cache_at(step.switch, reading)
    if known:
        cause, facts = "documented", facts | known[0].facts
    elif cache is not None:
        cause, facts = "cache", facts | {"level": cache[0], "cache_bytes": cache[1]}
    fix = None if is_confirmed or reading.has_refined(curve, below, above) else _fix(curve, step.switch, reading)
    return replace(_finding("protocol switch", curve, step, facts, cause, fix), sources=sources)


def _documented_at(step: Step, thresholds: Sequence[Threshold]) -> list[Threshold]:
    """What is documented between the two sizes, or else of the greater one, or of close ones' lesser one."""
    below, above = step.places
    between = [one for one in thresholds if one.lies_between(below, above)]
    is_close = above <= _CLOSE * below
    return between or [one for one in thresholds if one.is_size_of(below if is_close else 0, above)]


def _cache_at(switch: Switch, reading: Reading) -> tuple[int, int] | None:
    """The cache that may explain a rise: the two buffers, of the sender and the receiver, fill it about there."""
    is_possible = 0 < switch.jump_ns.value <= switch.above_bytes / _SLOWEST_BYTES_PER_NS and not is_sharp(switch)
    fitting = [cache for cache in reading.caches if switch.below_bytes <= cache[1] <= 2 * switch.above_bytes]
    return fitting[0] if fitting and is_possible else None


def documented_of(curve: Curve, reading: Reading) -> list[Threshold]:
    """The documented sizes of a curve's transport."""
    library, launcher = (of.get(curve.transport, "") for of in (reading.libraries, reading.launchers))
    return list(thresholds_of(curve.transport, reading.facts, library, launcher))


def _fix(curve: Curve, switch: Switch, reading: Reading) -> Fix:
    """Measure the sizes around a switch in the same rounds; for twice as long if this run did that already."""
    options = [word for name, value in curve.options for word in ("-o", f"{name}={value}")]
    grain = reading.grains.get(curve.pattern, 1)
    low = max(grain, 1 << max(0, switch.below_bytes.bit_length() - 4)) if switch.below_bytes else 0
    high = min(1 << ((switch.above_bytes - 1).bit_length() + 3), BYTES_MAX)
    longer = [] if reading.refined_s is None else ["--time", f"{2 * reading.refined_s:.15g}s"]
    command = ["hockney", "run", curve.pattern, "-t", curve.transport, "-n", str(curve.ranks), *options]
    command += ["--bytes", f"{bytes_word(low)}:{bytes_word(high)}", "--refine", "--launches", "1", *longer]
    return Fix("Measure the sizes between", tuple(command), reading.facts)


# ---- bends and curved stretches -------------------------------------------------------------------------------------


def _neighbouring_rises(jumps: Sequence[Step]) -> list[Step]:
    """The jumps that share a size with another rise: a gradual rise, of which no one place is known."""
    rises = [step for step in jumps if step.switch.relative.value > 0 and not is_sharp(step.switch)]
    return [
        step
        for step in rises
        if any(step.places[0] == other.places[1] or step.places[1] == other.places[0] for other in rises)
    ]


def _is_bend(fit: SegmentFit, number: int, step: Step) -> bool:
    """No jump, but each byte surely costs 25 % more or less from there on."""
    below, above = fit.segments[number : number + 2]
    if step.answer is not Answer.NONE or min(below.ns_per_byte.low, above.ns_per_byte.low) <= 0:
        return False
    changes = is_above(above.ns_per_byte, below.ns_per_byte) or is_above(below.ns_per_byte, above.ns_per_byte)
    return changes and abs(ratio(above.ns_per_byte, below.ns_per_byte).value - 1) >= _BEND


def _bend(curve: Curve, fit: SegmentFit, number: int, thresholds: Sequence[Threshold]) -> Finding:
    """`effect`: what the bend changes of the time at the last size of the upper segment."""
    switch, (below, above) = fit.switches[number], fit.segments[number : number + 2]
    step = Step(switch, Answer.NONE)
    known = _documented_at(step, thresholds)
    facts: dict[str, Any] = {
        "before_ns_per_byte": below.ns_per_byte,
        "after_ns_per_byte": above.ns_per_byte,
        "slope_ratio": ratio(above.ns_per_byte, below.ns_per_byte),
    }
    found = _finding("bend", curve, step, facts | (known[0].facts if known else {}), "documented" if known else "")
    effect = abs(above.time_ns(above.last_bytes) / below.time_ns(above.last_bytes) - 1)
    return replace(found, effect=effect, sources=tuple(dict.fromkeys(one.source for one in known)))


def _is_short(segment: Segment) -> bool:
    """Whether its sizes are too close together for a line: it is the way from one segment to the next."""
    return segment.last_bytes < REACH * segment.first_bytes


def _curved(curve: Curve, fit: SegmentFit, steps: Sequence[Step]) -> Iterator[Finding]:
    """One finding for all of a curve that no straight line describes: several bends, or rises from size to size."""
    if not steps:
        return
    first, last = min(step.places[0] for step in steps), max(step.places[1] for step in steps)
    last = max([last] + [one.last_bytes for one in fit.segments if _is_short(one) and one.first_bytes == last])
    line = next((one for one in reversed(fit.segments) if one.first_bytes <= first), fit.segments[0])
    first_ns, last_ns, line_ns = curve.at(first), curve.at(last), line.time_ns(last)
    if first_ns is None or last_ns is None or line_ns <= 0:
        return
    over = scaled(last_ns, 1 / line_ns)
    if over.low > 1 + _BEND or over.high < 1 / (1 + _BEND):
        facts = {"from_bytes": first, "to_bytes": last, "first_ns": first_ns, "last_ns": last_ns, "line_ns": line_ns}
        yield Finding("bend", subject_of(curve, (first, last)), facts, "curved", effect=abs(over.value - 1))


# ---- documented sizes without a trace -------------------------------------------------------------------------------


def _not_seen(curve: Curve, fit: SegmentFit, thresholds: Sequence[Threshold]) -> Iterator[Finding]:
    """The documented sizes inside one straight segment, each with two sizes of that on either side."""
    unseen: dict[Threshold, tuple[int, int]] = {}
    for threshold in thresholds:
        above = bisect_left(curve.sizes, threshold.first_bytes)
        if threshold.is_of_build or above in (0, len(curve.sizes)):
            continue
        around = curve.sizes[above - 1], curve.sizes[above]
        is_off = not {above - 1, above}.isdisjoint(fit.outliers)
        is_straight = any(
            one.first_bytes < around[0] and around[1] < one.last_bytes and one.relative_rms <= JUMP
            for one in fit.segments
        )
        if is_straight and not is_off and around[1] <= _NEAR * around[0]:
            unseen[threshold] = around
    if unseen:
        sizes = tuple(sorted({size for around in unseen.values() for size in around}))
        facts = {
            "answer": "not seen",
            "thresholds": [one.name for one in unseen],
            "first_bytes": [one.first_bytes for one in unseen],
        }
        sources = tuple(dict.fromkeys(one.source for one in unseen))
        yield Finding("protocol switch", subject_of(curve, sizes), facts, sources=sources)
