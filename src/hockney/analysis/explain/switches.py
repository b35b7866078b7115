"""Where a curve goes over from one straight line to another: jumps, bends, and what the library documents there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hockney.analysis.explain.blips import blips_of
from hockney.analysis.explain.curve import Curve, Reading, finding_about
from hockney.analysis.explain.finding import (
    Evidence,
    Finding,
    Found,
    is_above,
    negative,
    ratio,
    ratio_text,
    time_text,
)
from hockney.analysis.explain.paired_rounds import Judgement, in_all, is_sharp, judge, leaping_states, leaps
from hockney.analysis.explain.shape import REACH, curves_of_shapes, lacking_shape, segments_of
from hockney.analysis.explain.thresholds import Threshold, sources_of, thresholds_of
from hockney.cli.rerun import as_then
from hockney.results.traits import transport_traits
from hockney.stats.fit import JUMP, SegmentFit, Switch
from hockney.units import BYTES_MAX, bytes_word, counted, format_bytes, format_ns, format_two_sizes
from hockney.worker.mpi_transport import copied_by_kernel

_JUMPS = ("protocol switch", "jump")
_SIZES_MIN = 6
_BEND = 0.25
_HEIGHT = 3.0  # a jump that is not known to such a factor has no height
_SLOWEST_BYTES_PER_NS = 2.0  # at which a processor of today reads the slowest of its memory: 2 GB/s
_CLOSE = 1.125  # such neighbours' own documented sizes may be a jump's: what a library adds to a message is not known
_DOCUMENTED = 2  # a documented size says what a switch is if its place is known to such a factor

# Within a state: the most seen was 2.4, of 8 B on tcp, whose ranks sleep while they wait (docs/explain.md).
_DRIFT_MAX = 3.0


def switches(reading: Reading) -> Found:
    """Jumps between straight segments, and what the library documents there."""
    curves = [curve for curve in curves_of_shapes(reading) if len(curve.marks) >= _SIZES_MIN]
    if not curves:
        return lacking_shape(reading, "of six sizes or more: three on either side of a switch")
    return [found for curve in curves for found in _of_curve(curve, reading)]


def jumps_of(curve: Curve, reading: Reading) -> list[tuple[int, int]]:
    """The neighbouring sizes of a curve between which its time is said to jump, and not for drift."""
    jumps = [found.sizes_bytes for found in _of_curve(curve, reading) if found.kind in _JUMPS]
    return [(below_bytes, above_bytes) for below_bytes, above_bytes in jumps]


def _of_curve(curve: Curve, reading: Reading) -> Iterator[Finding]:
    fit = segments_of(curve)
    if not isinstance(fit, SegmentFit) or len(curve.marks) < _SIZES_MIN:
        return
    for number in range(len(fit.switches)):
        found = _found(curve, fit, number, reading)
        if found is not None:
            yield found
    blips = {size for one in blips_of(curve, fit, reading.page_bytes) for size in one.sizes_bytes}
    for run in leaps(curve, fit):
        if len(run) == 1 and not blips.isdisjoint((run[0].below_bytes, run[0].above_bytes)):
            continue  # up to a single size and down again
        yield _gradual(curve, fit, run, reading) if len(run) > 1 else _leap(curve, fit, run[0], reading)


def _found(curve: Curve, fit: SegmentFit, number: int, reading: Reading) -> Finding | None:
    """What the rounds that measured both sizes show stands, whatever the lines through all measurements say."""
    fitted = fit.switches[number]
    judgement = judge(curve, fit, number)
    if judgement is None:
        if not fitted.is_jump:
            return _bend(curve, fit, number, reading)
        return _switch(curve, fit, fitted, _time_of(curve, fitted), _sides(fit, number), reading)
    judged = judgement.switch
    if judged is not None and _is_borne_out(judged, fitted):
        return _switch(curve, fit, judged, _time_of(curve, judged), _sides(fit, number), reading)
    if not fitted.is_jump:
        return _bend(curve, fit, number, reading)
    if not _is_settled(judgement) and not _may_be_drift(fitted):
        return _switch(curve, fit, fitted, _line_of(curve, fitted), _sides(fit, number), reading)
    states = [] if _is_settled(judgement) else leaping_states(reading, curve, fitted)
    if states:
        jump = f"{_line_of(curve, fitted)}; the rounds of {' and of '.join(states)} have a jump there, too"
        return _switch(curve, fit, fitted, jump, _sides(fit, number), reading)
    return _doubtful(curve, fit, number, judgement, reading)


def _may_be_drift(switch: Switch) -> bool:
    """Whether the machine may change times by as much as the jump is at the least, while its state stays the same."""
    low, high = 1 + switch.relative.low, 1 + switch.relative.high
    return low < _DRIFT_MAX and high > 1 / _DRIFT_MAX


def _is_borne_out(judged: Switch, fitted: Switch) -> bool:
    """A jump of JUMP for sure; or one for sure, of about JUMP.

    Where all measurements together say that it is one of JUMP.
    """
    same_way = judged.relative.value * fitted.relative.value > 0
    return judged.is_jump or (fitted.is_jump and same_way and not judged.bend and abs(judged.relative.value) >= JUMP)


def _leap(curve: Curve, fit: SegmentFit, leap: Switch, reading: Reading) -> Finding:
    """A jump beside a size that lies on no line, as where too few lie beyond it for a line of their own."""
    how = "less for a longer message" if leap.jump_ns.value < 0 else "more than in proportion to the size"
    what = f"it {_height(leap)}"
    if not _known(curve, fit, leap, reading) and _caches_at(curve, leap, reading):
        is_known = leap.jump_ns.high <= _HEIGHT * leap.jump_ns.low  # and it rises little by little
        what = f"by {time_text(leap.jump_ns) if is_known else f'{format_ns(leap.jump_ns.low)} at least'}"
    return _switch(curve, fit, leap, f"{_goes(curve, leap)}, {how}: {what}", (), reading)


def _gradual(curve: Curve, fit: SegmentFit, run: Sequence[Switch], reading: Reading) -> Finding:
    """Rises from size to size, each more than in proportion: what they come to is known, no place of it."""
    change = in_all(run)
    jump = (
        f"{_goes(curve, change)}, at each of {len(run)} steps more than in proportion to the size: gradually, or in "
        f"several jumps, by {format_ns(change.jump_ns.low)} at least beyond the proportion"
    )
    return replace(_switch(curve, fit, change, jump, (), reading), kind="gradual rise")


def _goes(curve: Curve, switch: Switch) -> str:
    below_ns, above_ns = (curve.at(size) for size in (switch.below_bytes, switch.above_bytes))
    assert below_ns is not None
    assert above_ns is not None
    return f"the time of {curve.name} goes from {format_ns(below_ns.value)} to {format_ns(above_ns.value)}"


def _switch(
    curve: Curve, fit: SegmentFit, switch: Switch, jump: str, sides: tuple[Evidence, ...], reading: Reading
) -> Finding:
    """A jump: another protocol begins with more work, or with less.

    It is not called so where other sizes are documented of the transport, and none there.
    """
    known = _known(curve, fit, switch, reading)
    remedy, in_vain = _refine(curve, switch, fit.steps_at(switch), reading)
    return finding_about(
        curve,
        "protocol switch" if known or not documented_of(curve, reading) else "jump",
        sentence=(
            f"Between {format_two_sizes(switch.below_bytes, switch.above_bytes)} {jump}. "
            f"{_documented(known, switch) or _undocumented(curve, switch, reading)}{in_vain}"
        ),
        effect=_least(switch),
        sizes_bytes=(switch.below_bytes, switch.above_bytes),
        evidence=(Evidence("jump", switch.jump_ns, "ns"), *sides),
        remedy=remedy,
        sources=sources_of(known),
    )


def _doubtful(curve: Curve, fit: SegmentFit, number: int, judgement: Judgement, reading: Reading) -> Finding:
    """What two sizes differ by may be what the machine changed by between the measurements to one and to the other."""
    fitted = fit.switches[number]
    known = _known(curve, fit, fitted, reading)
    return finding_about(
        curve,
        "a jump that may be drift",
        sentence=(
            f"Between {format_two_sizes(fitted.below_bytes, fitted.above_bytes)} "
            f"{_line_of(curve, fitted)}, but {_seen_together(judgement)}. {_documented(known, fitted)}".rstrip()
        ),
        effect=_least(judgement.switch or fitted),
        sizes_bytes=(fitted.below_bytes, fitted.above_bytes),
        evidence=(Evidence("jump of the line through all measurements", fitted.jump_ns, "ns"),),
        remedy=None if _is_settled(judgement) else _together(curve, fitted, reading),
        sources=sources_of(known),
    )


def _time_of(curve: Curve, switch: Switch) -> str:
    return f"the time of {curve.name} {_height(switch)}"


def _line_of(curve: Curve, switch: Switch) -> str:
    """As the lines have it, which know more sizes than the two: these are told beside it, with their own intervals."""
    own = " and ".join(
        time_text(mark.time_ns) for mark in curve.marks if mark.bytes in (switch.below_bytes, switch.above_bytes)
    )
    return f"the line through the medians of {curve.name} {_height(switch)}, where the two sizes themselves take {own}"


def _least(switch: Switch) -> float:
    """By which fraction the time jumps at the least."""
    return 0.0 if switch.bend else min(abs(switch.relative.low), abs(switch.relative.high))


def _is_settled(judgement: Judgement) -> bool:
    """Whether the rounds that measured both sizes know how far it goes: more of them would say the same."""
    return judgement.switch is not None and not judgement.switch.bend


def _seen_together(judgement: Judgement) -> str:
    judged = judgement.switch
    if judged is None:
        rounds = f"only {counted(judgement.rounds, 'round')}" if judgement.rounds else "no round"
        return f"{rounds} measured both sizes: it may be what the machine changed by in between"
    sizes = format_two_sizes(judged.below_bytes, judged.above_bytes)
    both = f"in the {judgement.rounds} rounds that measured {sizes}"
    if judged.bend:
        low, high = map(format_ns, (judged.jump_ns.low, judged.jump_ns.high))
        return f"{both} it is anything from {low} to {high}: it may be what the machine changed by in between"
    return f"{both} it {_height(judged)}: the rest is what the machine changed by in between"


def _undocumented(curve: Curve, switch: Switch, reading: Reading) -> str:
    """A cache that ends there may be what looks like a switch."""
    said = "No documented threshold of this transport is known there"
    ends = _caches_at(curve, switch, reading)
    if not ends:
        return f"{said}."
    return f"At about that size ends {' and '.join(ends)}, which may be all there is to it. {said}."


def _caches_at(curve: Curve, switch: Switch, reading: Reading) -> list[str]:
    """A kernel's copying goes through the inner caches in any case: nothing that shows ends with those."""
    last = max((level for level, _ in reading.caches), default=0)
    library, variables = reading.libraries.get(curve.transport, ""), reading.facts.get("environment")
    of_kernel = copied_by_kernel(transport_traits(reading.facts, curve.transport).carrier, library, variables)
    return [
        f"the L{level} cache, {format_bytes(size)}"
        for level, size in reading.caches
        if (level == last or not of_kernel) and _may_be_cache(switch, size)
    ]


def _may_be_cache(switch: Switch, cache_bytes: int) -> bool:
    """Whether a cache may end where the time jumps; what is sent and what is received share it.

    It fills little by little: what happens from one size to nearly the same is no cache's doing; nor is a fall, nor
    what takes longer than the whole message from the next level of the memory.
    """
    return (
        0 < switch.jump_ns.value <= switch.above_bytes / _SLOWEST_BYTES_PER_NS
        and not is_sharp(switch)
        and switch.below_bytes <= cache_bytes <= 2 * switch.above_bytes
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


def _known(curve: Curve, fit: SegmentFit, switch: Switch, reading: Reading) -> list[Threshold]:
    """What is documented between the two sizes; or else of one of them, but of no other jump.

    That is of the greater one, the last before another way begins, or where they are close of the lesser one too.
    """
    sizes = switch.below_bytes, switch.above_bytes
    documented = documented_of(curve, reading)
    known = [one for one in documented if one.lies_between(*sizes)]
    if known:
        return known
    is_close = switch.above_bytes <= _CLOSE * switch.below_bytes
    beside = [one for one in documented if one.is_size_of(switch.below_bytes if is_close else 0, switch.above_bytes)]
    others = [*fit.switches, *itertools.chain(*leaps(curve, fit))] if beside else []
    return [one for one in beside if not any(one.lies_between(own.below_bytes, own.above_bytes) for own in others)]


def _documented(known: Sequence[Threshold], switch: Switch) -> str:
    """What is documented between the two sizes; that it is the switch is said only where these are close."""
    if not known:
        return ""
    texts = "; ".join(threshold.text for threshold in known)
    if switch.above_bytes <= _DOCUMENTED * switch.below_bytes:
        is_there = known[0].lies_between(switch.below_bytes, switch.above_bytes)
        return f"Documented {'there' if is_there else 'right beside it'}: {texts}."
    return f"In that range lies {texts}; whether it is the switch, sizes so far apart don't tell."


def _refine(curve: Curve, switch: Switch, steps: Sequence[tuple[int, int]], reading: Reading) -> tuple[str | None, str]:
    """How to find the place, or else why there is none; neither where it is known.

    That is where no wider step is left that `--refine` would look into.
    """
    grain_bytes = reading.grains.get(curve.pattern, 1)
    if all(above - below <= grain_bytes for below, above in steps):
        return None, ""
    if reading.has_refined(curve, switch.below_bytes, switch.above_bytes):
        return None, (
            " This run has looked closer, and `--refine` would add no size here: the change is gradual, or the sizes "
            "are near to each other already. Name those in between with `--bytes` to see."
        )
    command = f"`{_command(curve, switch, reading)}`"
    known = "to a byte" if grain_bytes == 1 else f"to {format_bytes(grain_bytes)}, as closely as its sizes lie"
    if reading.refined_s is not None:
        return f"This run does not know the place {known}: {command} looks around it alone, for twice as long.", ""
    return f"{command} looks for the place, {known}.", ""


def _command(curve: Curve, switch: Switch, reading: Reading) -> str:
    """What looks closer at the sizes around a switch; twice as long where this run did that already."""
    options = "".join(f" -o {name}={value}" for name, value in curve.options)
    reach = _reach(switch, reading.grains.get(curve.pattern, 1))
    what = f"{curve.pattern} -t {curve.transport} -n {curve.ranks}{options}"
    longer = "" if reading.refined_s is None else f" --time {2 * reading.refined_s:.15g}s"
    return f"{as_then(reading.facts)}hockney run {what} --bytes {reach} --refine --launches 1{longer}"


def _together(curve: Curve, switch: Switch, reading: Reading) -> str:
    """How to have two sizes measured in the same rounds, and often enough."""
    longer = " for longer" if reading.refined_s else ""
    return f"`{_command(curve, switch, reading)}` measures them together{longer}."


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
    known = _known(curve, fit, switch, reading)
    below, above = fit.segments[number].ns_per_byte, fit.segments[number + 1].ns_per_byte
    if not (is_above(above, below) or is_above(below, above)) or below.low <= 0 or above.low <= 0:
        return None
    if any(one.last_bytes < REACH * one.first_bytes for one in fit.segments[number : number + 2]):
        return _way(curve, fit, number, known)
    quotient = ratio(above, below)
    if 1 - _BEND < quotient.value < 1 + _BEND:
        return None
    last_bytes = fit.segments[number + 1].last_bytes
    end = "on" if number + 2 == len(fit.segments) else f"to {format_bytes(last_bytes)}"
    with_bend_ns, without_ns = (fit.segments[which].time_ns(last_bytes) for which in (number + 1, number))
    return finding_about(
        curve,
        "bend",
        sentence=(
            f"From {format_bytes(switch.above_bytes)} {end} each byte of {curve.name} takes {above.value:.3g} ns, "
            f"up to {format_bytes(switch.below_bytes)} {below.value:.3g} ns: {ratio_text(quotient)} times. "
            f"{_documented(known, switch)}".rstrip()
        ),
        effect=abs(with_bend_ns / without_ns - 1),
        sizes_bytes=(switch.below_bytes, switch.above_bytes),
        evidence=_sides(fit, number),
        sources=sources_of(known),
    )


def _way(curve: Curve, fit: SegmentFit, number: int, known: Sequence[Threshold]) -> Finding | None:
    """Sizes so close together tell no line, but the way to the next one: how far it leaves the line below."""
    below, upper = fit.segments[number : number + 2]
    switch = fit.switches[number]
    first_ns, last_ns = (curve.at(size) for size in (switch.below_bytes, upper.last_bytes))
    line_ns = below.time_ns(upper.last_bytes)
    if below.last_bytes < REACH * below.first_bytes or first_ns is None or last_ns is None or line_ns <= 0:
        return None
    if not last_ns.low > (1 + _BEND) * line_ns:
        return None
    return finding_about(
        curve,
        "gradual rise",
        sentence=(
            f"From {format_bytes(switch.below_bytes)} to {format_bytes(upper.last_bytes)} the time of {curve.name} "
            f"goes from {format_ns(first_ns.value)} to {format_ns(last_ns.value)}, where the line of "
            f"shorter messages comes to {format_ns(line_ns)}. {_documented(known, switch)}".rstrip()
        ),
        effect=last_ns.value / line_ns - 1,
        sizes_bytes=(switch.below_bytes, upper.last_bytes),
        evidence=(*_sides(fit, number), Evidence("time after it", last_ns, "ns")),
        sources=sources_of(known),
    )
