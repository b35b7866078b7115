"""Protocol switches (confirmed or suspected), drift, bends, and curved stretches of a curve.

A machine that slows down for seconds may do so during the measurements of one size and not of its neighbour. This
resembles a switch with a narrow interval. So the height of a jump is the median of the ratios of measurements of the
same round, which are a fraction of a second apart.
"""

from __future__ import annotations

import itertools
import operator
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve, Reading, subject_of
from hockney.analysis.explain.layers import carried_by
from hockney.analysis.finding import Finding, NotChecked
from hockney.analysis.repeat import same_placement
from hockney.analysis.thresholds import Threshold, thresholds_of
from hockney.errors import Fix
from hockney.model import IMPORTED
from hockney.stats.fit import JUMP, Estimate, Segment, SegmentFit, Switch
from hockney.units import BYTES_MAX, bytes_word

_LARGE = 0.25  # of a time or of a slope: a jump is suspected even where its interval includes none
_NOISY = 0.1  # intervals wider than this, in parts of the time, may make a smooth curve of a jump
_SPARSE = 2  # between sizes farther apart, a curve may also have a switch
_CLOSE = 1.125  # between such neighbours a smooth curve does not jump


# The evidence for a jump in the rounds that measured both sizes. unknown: too few did. drift: the machine changed
# instead. wide: the interval of the fit's jump includes none, and neighbouring sizes differ by a large one.
Answer = Literal["jump", "unknown", "drift", "wide"]


def switches(reading: Reading) -> list[Finding] | NotChecked:
    """Each curve's switches, drifts, and bend or curved stretch."""
    curves = reading.shapes_of(6, "six sizes")
    if isinstance(curves, NotChecked):
        return curves
    findings = [finding for curve in curves for finding in _of_curve(curve, reading)]
    return [_with_layer(finding, findings, reading) for finding in findings]


def _with_layer(finding: Finding, findings: Sequence[Finding], reading: Reading) -> Finding:
    """A confirmed switch of an MPI with the `layer` that it belongs to: the one below, if that switches there, too."""
    about = finding.subject
    lower = carried_by(about.transport, reading.libraries, {other.subject.transport for other in findings})
    for other in findings:
        of_lower = replace(about, transport=lower or "", sizes_bytes=other.subject.sizes_bytes)
        if other.subject == of_lower and _is_same_switch(finding, other):
            return replace(finding, facts={**finding.facts, "layer": lower})
    return finding


def _is_same_switch(*findings: Finding) -> bool:
    """Whether all are confirmed switches that may be at one size."""
    if not all((each.code, each.facts.get("answer")) == ("protocol switch", "confirmed") for each in findings):
        return False
    above = max(each.subject.sizes_bytes[0] for each in findings)
    return above < min(each.subject.sizes_bytes[1] for each in findings)


def _of_curve(curve: MeasuredCurve, reading: Reading) -> Iterator[Finding]:
    fit = curve.segments
    if not isinstance(fit, SegmentFit):
        return
    thresholds = _documented(curve, reading)
    ends = [_step(curve, switch) for switch in fit.switches if not fit.curved]
    steps = [at if sign > 0 else at - 1 for at, sign in ends]
    slow = {at: found for at in (*fit.outliers, *steps) if (found := _slow_size(curve, fit, at)) is not None}
    yield from slow.values()
    if fit.curved:
        yield from _curved(curve, fit, reading)
    else:
        jumps, bends = dict[tuple[int, int], Finding](), []  # the ranges of two fits may have the same jump
        for at, switch, (below, above) in zip(steps, fit.switches, itertools.pairwise(fit.segments), strict=True):
            if at in slow:
                continue
            if (jump := _judged(curve, switch, below, above, reading)) is not None:
                jumps.setdefault(jump[0].between, _switch(curve, *jump, thresholds, reading))
            elif _is_bend(below, above):
                bends.append(_bend(curve, switch, below, above, thresholds))
        yield from jumps.values()
        yield from sorted(bends, key=lambda bend: -bend.effect)[:1]


def protocol_jumps(curve: MeasuredCurve, reading: Reading) -> list[Switch]:
    """The jumps of a curve's fit that no cache explains, or that have a documented limit."""
    fit, thresholds = curve.segments, _documented(curve, reading)
    jumps = [switch for switch in fit.switches if switch.is_jump] if isinstance(fit, SegmentFit) else []
    return [switch for switch in jumps if not _may_be_caches(switch) or _documented_at(switch, thresholds)]


def _documented(curve: MeasuredCurve, reading: Reading) -> list[Threshold]:
    library, launcher = (of.get(curve.transport, "") for of in (reading.libraries, reading.launchers))
    return list(thresholds_of(curve.transport, reading.facts, library, launcher))


# ---- jumps ----------------------------------------------------------------------------------------------------------


def _step(curve: MeasuredCurve, fitted: Switch) -> tuple[int, float]:
    """The index after the greatest step, as outliers may lie within a switch; 1.0 if the time rises, else -1.0."""
    sign, times = 1.0 if fitted.relative.value > 0 else -1.0, [point.time_ns.value for point in curve.points]
    within = range(curve.sizes.index(fitted.below_bytes) + 1, curve.sizes.index(fitted.above_bytes) + 1)
    return max(within, key=lambda at: sign * times[at] / times[at - 1]), sign


def _slow_size(curve: MeasuredCurve, fit: SegmentFit, at: int) -> Finding | None:
    """A single slow size: 25 % above the line of its neighbours, which leaves it out, and the next one is not.

    Where they are on no one line, slow by more than in proportion, and the next one has lost more than half of the
    rise: a switch, up or down, moves all sizes beyond it.
    """
    if not 0 < at < len(curve.points) - 1:
        return None
    before, slow, after = curve.points[at - 1 : at + 2]
    before_ns, left_ns = before.time_ns.value, after.time_ns.value - before.time_ns.value
    around = [each for each in fit.segments if {at - 1, at + 1} <= {*fit.on_line(each)}]
    if at in fit.outliers and around:
        expected_ns, after_ns = map(around[0].time_ns, (slow.bytes, after.bytes))
        is_slow = after.time_ns.high < (1 + _LARGE) * after_ns and slow.time_ns.low >= (1 + _LARGE) * expected_ns
    else:
        expected_ns = before_ns + left_ns * (slow.bytes - before.bytes) / (after.bytes - before.bytes)
        is_lost = after.time_ns.high - before_ns < (slow.time_ns.low - before_ns) / 2
        is_slow = is_lost and slow.time_ns.low * before.bytes >= (1 + _LARGE) * before_ns * slow.bytes > 0
    facts = {"size_bytes": slow.bytes, "time_ns": slow.time_ns, "expected_ns": expected_ns}
    effect = slow.time_ns.value / expected_ns - 1
    return Finding("slow size", subject_of(curve, (slow.bytes,)), facts, effect=effect) if is_slow else None


def _judged(
    curve: MeasuredCurve, fitted: Switch, before: Segment, after: Segment, reading: Reading
) -> tuple[Switch, Answer, int] | None:
    """A jump with its sizes and height, and how many rounds measured both of its sizes; None: there is no jump.

    Where intervals and common rounds leave several sizes, the height is the fit's; else that between neighbours.
    """
    if IMPORTED not in reading.plan and (only := _only_jump(curve, fitted, before, after)) is not None:
        return only[0], "jump", only[1]
    at, sign = _step(curve, fitted)
    lower, upper = curve.points[at - 1 : at + 1]
    if fitted.is_jump and not fitted.is_located:
        lower, upper = (curve.points[curve.sizes.index(size)] for size in fitted.between)
    # Not of published figures, or of several pairs. Several imported outputs have no rounds in common.
    is_measured = bool(lower.measurements and upper.measurements) and IMPORTED not in reading.plan
    if fitted.is_jump and not is_measured:
        return fitted, "jump", 0
    over, rounds = upper.over(lower)
    if fitted.is_jump and over is None:
        return fitted, "unknown", rounds

    def is_large(ratio: float) -> bool:
        """Whether a ratio of the two times is a jump of a quarter wherever it is between them."""
        heights = _between(Estimate(ratio, ratio, ratio), before, after, lower, upper).relative
        return min(sign * heights.low, sign * heights.high) >= _LARGE

    seen = over or upper.time_ns / lower.time_ns
    switch = _between(seen, before, after, lower, upper)
    if not fitted.is_jump:
        if over is not None and is_large(upper.time_ns.value / lower.time_ns.value) and _is_below(switch, _LARGE / 2):
            return switch, "drift", rounds
        is_wide = is_large(seen.value) and not switch.bend
        return (replace(switch, between=fitted.between), "wide", 0) if is_wide else None
    is_jump = sign * switch.relative.value >= JUMP
    if not fitted.is_located:
        return fitted, "jump" if is_jump else "unknown", rounds
    if not is_jump and _is_below(switch, abs(fitted.relative.value) / 2):
        return switch, "drift", rounds
    return (switch, "jump", rounds) if is_jump and not switch.bend else (fitted, "unknown", rounds)


def _only_jump(curve: MeasuredCurve, fitted: Switch, before: Segment, after: Segment) -> tuple[Switch, int] | None:
    """The jump between two close sizes of several in a fit's range, if the rounds of all neighbours show none but it.

    Drift widens the intervals of times, and so the range, but not those of ratios in the same round.
    """
    first, last = (curve.sizes.index(size) for size in fitted.between)
    steps = []
    for lower, upper in itertools.pairwise(curve.points[first : last + 1]):
        over, rounds = upper.over(lower)
        if over is None:
            return None
        steps.append((_between(over, before, after, lower, upper), rounds))
    (jump, rounds), *others = sorted(steps, key=lambda step: -abs(step[0].relative.value))
    height = abs(jump.relative.value)
    is_jump = height >= JUMP and not jump.bend and jump.above_bytes <= _CLOSE * jump.below_bytes
    is_only = others and all(_is_below(other, height / 2) for other, _ in others)
    return (jump, rounds) if is_jump and is_only else None


def _is_below(switch: Switch, height: float) -> bool:
    return max(abs(switch.relative.low), abs(switch.relative.high)) < height


def _between(over: Estimate, before: Segment, after: Segment, lower: CurvePoint, upper: CurvePoint) -> Switch:
    """The ratio of two times without the slopes of the lines; the switch may be at either size."""
    below_ns, above_ns = lower.time_ns.value, upper.time_ns.value
    gap_bytes = upper.bytes - lower.bytes
    led = max(0.0, 1 - after.ns_per_byte.value * gap_bytes / above_ns)
    grown = max(1e-3, 1 + before.ns_per_byte.value * gap_bytes / below_ns)
    at_lower, at_upper = ([bound * by - 1 for bound in (over.value, over.low, over.high)] for by in (led, 1 / grown))
    relative = _enclosing(at_lower, at_upper)
    jump = _enclosing([part * below_ns for part in at_lower], [part * below_ns * grown for part in at_upper])
    between = lower.bytes, upper.bytes
    return Switch(*between, jump, relative, bend=relative.low <= 0 <= relative.high, between=between)


def _enclosing(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """The mean of the first of each, in an interval that encloses all."""
    return Estimate((first[0] + second[0]) / 2, min(*first, *second), max(*first, *second))


def _switch(
    curve: MeasuredCurve, switch: Switch, answer: Answer, rounds: int, thresholds: Sequence[Threshold], reading: Reading
) -> Finding:
    """Confirmed if it is known to an eighth, or to a factor of two next to a documented limit.

    Between more distant sizes a cache, or any smooth curve, may cause an equal rise.
    """
    below, above = switch.between
    subject, facts = subject_of(curve, (below, above)), {"below_bytes": below, "above_bytes": above}
    part = switch.relative
    effect = abs(part.value) if switch.bend else min(abs(part.low), abs(part.high))
    if answer == "drift":
        return Finding("drift", subject, {**facts, "rounds": rounds, **_height(switch)})
    cause, of_cause = "", dict[str, Any]()
    known, cache = _documented_at(switch, thresholds), _cache_at(switch, reading)
    if answer == "unknown":
        cause, of_cause, known = "drift", {"rounds": rounds}, []
    elif known:
        cause, of_cause = "documented", known[0].facts
    elif cache is not None and answer == "jump":
        cause, of_cause = "cache", {"level": cache[0], "cache_bytes": cache[1]}
    is_close = above <= _CLOSE * below or (bool(known) and above <= 2 * below)
    is_confirmed = answer == "jump" and is_close
    all_facts = {"answer": "confirmed" if is_confirmed else "suspected", **facts, **of_cause, **_height(switch)}
    fix = None if is_confirmed else _fix(curve, below, above, reading)
    return Finding("protocol switch", subject, all_facts, cause, fix, effect, _sources(known))


def _sources(thresholds: Sequence[Threshold]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(threshold.source for threshold in thresholds))


def _height(switch: Switch) -> dict[str, Any]:
    """How far the time jumps or falls."""
    jump, part = switch.jump_ns, switch.relative
    if jump.value >= 0:
        return {"jump_ns": jump, "jump_share": part}
    fall, fall_part = (value.mapped(operator.neg) for value in (jump, part))
    return {"fall_ns": fall, "fall_share": fall_part}


def _documented_at(switch: Switch, thresholds: Sequence[Threshold]) -> list[Threshold]:
    """The limits documented where the switch seems to be, else where it may be."""
    within = ((switch.below_bytes, switch.above_bytes), switch.between)  # one that fills a limit may take longer
    known = ([each for each in thresholds if each.lies_between(below, above + 1)] for below, above in within)
    return next((limits for limits in known if limits), [])


def _may_be_caches(switch: Switch) -> bool:
    """Whether a cache may explain a jump: a rise, not at one size, and no larger than slow memory's (2 GB/s)."""
    is_close = switch.between[1] <= _CLOSE * switch.between[0]
    return 0 < switch.jump_ns.value <= switch.above_bytes / 2 and not is_close


def _cache_at(switch: Switch, reading: Reading) -> tuple[int, int] | None:
    """The cache that may explain a rise: the two buffers, of the sender and the receiver, fill it about there."""
    fitting = (cache for cache in reading.caches if switch.below_bytes <= cache[1] <= 2 * switch.above_bytes)
    return next(fitting, None) if _may_be_caches(switch) else None


def _fix(curve: MeasuredCurve, below: int, above: int, reading: Reading) -> Fix:
    """Measure the sizes around a switch in the same rounds; for twice as long if this run did that already."""
    if IMPORTED in reading.plan:
        return Fix("smaller steps", facts={"below_bytes": below, "above_bytes": above})  # by the other benchmark
    options = [word for name, value in curve.options for word in ("-o", f"{name}={value}")]
    grain = reading.plan.get("grains", {}).get(curve.pattern, 1)
    low = max(grain, 1 << max(0, below.bit_length() - 4)) if below else 0
    high = min(1 << ((above - 1).bit_length() + 3), BYTES_MAX)
    longer = ["--time", f"{2 * reading.plan['time_s']:.15g}s"] if reading.plan.get("exact") else []
    where = same_placement(reading.plan, curve.transport)
    command = ["hockney", "run", curve.pattern, *where, "-n", str(curve.ranks), *options]
    command += ["--bytes", f"{bytes_word(low)}:{bytes_word(high)}", "--refine", "--launches", "1", *longer]
    return Fix("measure between", tuple(command), run_facts=reading.facts)


# ---- bends and curved stretches -------------------------------------------------------------------------------------


def _is_bend(below: Segment, above: Segment) -> bool:
    """Whether each byte costs 25 % more or less in the upper segment, with 95 % confidence."""
    if min(below.ns_per_byte.low, above.ns_per_byte.low) <= 0:
        return False
    changes = above.ns_per_byte.is_above(below.ns_per_byte) or below.ns_per_byte.is_above(above.ns_per_byte)
    return changes and abs((above.ns_per_byte / below.ns_per_byte).value - 1) >= _LARGE


def _bend(
    curve: MeasuredCurve, switch: Switch, below: Segment, above: Segment, thresholds: Sequence[Threshold]
) -> Finding:
    """The finding; `effect` is the change of the time at the last size of the upper segment."""
    known = _documented_at(switch, thresholds)
    facts: dict[str, Any] = {
        "below_bytes": switch.between[0],
        "above_bytes": switch.between[1],
        "before_ns_per_byte": below.ns_per_byte,
        "after_ns_per_byte": above.ns_per_byte,
        "slope_ratio": above.ns_per_byte / below.ns_per_byte,
    }
    return Finding(
        "bend",
        subject_of(curve, switch.between),
        facts | (known[0].facts if known else {}),
        cause="documented" if known else "",
        effect=abs(above.time_ns(above.last_bytes) / below.time_ns(above.last_bytes) - 1),
        sources=_sources(known),
    )


def _curved(curve: MeasuredCurve, fit: SegmentFit, reading: Reading) -> Iterator[Finding]:
    """One finding for a curve that no straight lines describe. Between distant sizes it may have a switch."""
    first, last, line_ns = curve.points[0], curve.points[-1], fit.segments[0].time_ns(curve.sizes[-1])
    over = last.time_ns.value / line_ns if line_ns > 0 else 1.0
    if abs(over - 1) >= _LARGE:
        noise = statistics.median(point.time_ns.relative for point in curve.points)
        facts = {
            "from_bytes": first.bytes,
            "to_bytes": last.bytes,
            "first_ns": first.time_ns,
            "last_ns": last.time_ns,
            "line_ns": line_ns,
            "noise_share": noise,
        }
        pairs = [pair for pair in itertools.pairwise(curve.points) if pair[1].bytes > _SPARSE * max(pair[0].bytes, 64)]
        cause, fix = "curved" if noise <= _NOISY else "noisy", None
        if pairs:
            below, above = max(pairs, key=lambda pair: pair[1].time_ns.value / pair[0].time_ns.value)
            cause, fix = "sparse", _fix(curve, below.bytes, above.bytes, reading)
        yield Finding("bend", subject_of(curve, (first.bytes, last.bytes)), facts, cause, fix, abs(over - 1))
