"""What became of series, in words: one sentence for each range of sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any

from hockney.cli.copying import commands_in
from hockney.stats import CONFIDENCE
from hockney.units import format_bytes, percent_digits

if TYPE_CHECKING:
    from hockney.analysis.compare import Comparison, Difference, Range, SeriesChange
    from hockney.model import CurveKey, Point
    from hockney.stats.shift import Shift

_LISTED_MAX = 2  # sizes that one run has alone
_AS_FACTOR = 2.0  # what takes twice as long, or half, is said as a factor


def verdict_sentence(found: Comparison) -> str:
    """`Verdict: 3 slower, 12 without a difference seen, 40 inconclusive, 31 of them because …`."""
    from hockney.analysis.compare import Verdict

    words = {
        Verdict.SLOWER: "slower",
        Verdict.FASTER: "faster",
        Verdict.SAME: f"without a {difference_seen(found.margin)}",
        Verdict.INCONCLUSIVE: "inconclusive",
    }
    counts = found.counts
    text = ", ".join(f"{counts[verdict]} {word}" for verdict, word in words.items() if counts[verdict])
    reasons = Counter(change.reason for change in found.changes if change.verdict is Verdict.INCONCLUSIVE)
    for reason, count in reasons.most_common(1):
        if 2 * count <= counts[Verdict.INCONCLUSIVE]:
            break  # no reason is that of most
        most = f", {count} of them" if count < counts[Verdict.INCONCLUSIVE] else ", all" if count > 1 else ""
        text += f"{most} {_why(reason)}"
    # What nobody should overlook among those that are inconclusive.
    apart = Counter("longer" if one.apart > 1 else "shorter" for one in found.changes if one.apart is not None)
    text += "".join(f"; of {count} every launch took much {word} than any of the base" for word, count in apart.items())
    return f"Verdict: {text}"


def difference_seen(margin: float) -> str:
    """What there is none of: `difference seen`, `difference beyond 5 % seen`."""
    return f"difference beyond {percent_digits(margin - 1)} % seen" if margin > 1 else "difference seen"


def curve_name(change: SeriesChange) -> str:
    """`pingpong window=4 on tcp, 2 ranks`."""
    return _curve_text(change.point, change.point.transport)


def _curve_text(point: Point, transports: str) -> str:
    options = "".join(f" {name}={value}" for name, value in point.options)
    return f"{point.pattern}{options} on {transports}, {point.ranks_text}"


def sizes_text(found: Range) -> str:
    """`at 8 B`, `from 8 KiB to 32 KiB`; empty for a pattern without sizes."""
    if not found.first.point.is_sized:
        return ""
    first, last = found.changes[0].point.bytes, found.changes[-1].point.bytes
    return f"at {format_bytes(first)}" if first == last else f"from {format_bytes(first)} to {format_bytes(last)}"


def range_sentence(found: Range, confidence: float = CONFIDENCE, margin: float = 1.0) -> str:
    """`pingpong on tcp, 2 ranks: slower by 8-11 % from 8 KiB to 32 KiB (near; 95 % intervals 6 to 14 %)`.

    What moved says also which protocol its sizes go by, where that is known; what did not, where it would
    have by itself; what is inconclusive, how far all launches of the runs lie apart, if they do.
    """
    shifts = [shift for shift in found.shifts if shift.low is not None]
    moved = found.verdict.value in ("slower", "faster")
    verdict = f"no {difference_seen(margin)}" if found.verdict.value == "no difference seen" else found.verdict.value
    effect = f" {_effect([shift.ratio for shift in shifts])}" if moved else ""
    seen = f"{' / '.join(found.states)}; " if found.states else ""
    known = f" ({seen}{_interval(shifts, confidence)}{_beyond(found)})" if shifts else ""
    if found.first.reason and _is_drift(found.first.reason):
        return f"{curve_name(found.first)}{f' {sizes_text(found)}'.rstrip()}{known}: {_why(found.first.reason)}"
    reason = f", {_why(found.first.reason)}" if found.first.reason else ""
    protocol = f", {found.protocol}" if moved and found.protocol else ""
    sizes = f" {sizes_text(found)}".rstrip()
    apart = f"; yet {_apart_text(found.apart)}" if found.apart else ""
    return f"{curve_name(found.first)}: {verdict}{effect}{sizes}{protocol}{known}{reason}{apart}"


def _is_drift(reason: str | None) -> bool:
    from hockney.analysis.compare.drift import DRIFTED

    return (reason or "").startswith(DRIFTED)


def _why(reason: str | None) -> str:
    """`because …`; where the machine drifted `inconclusive: the machine drifted by 4 % …`."""
    return f"inconclusive: {reason}" if _is_drift(reason) else f"because {reason}"


def _apart_text(ratio: float) -> str:
    """`each launch of the new run took at least 16.2 times as long as any of the base, in whatever state`."""
    bound, rounding = ("least", ROUND_FLOOR) if ratio > 1 else ("most", ROUND_CEILING)
    digits = Context(prec=3, rounding=rounding).create_decimal_from_float(ratio).normalize()
    return f"each launch of the new run took at {bound} {digits:f} times as long as any of the base, in whatever state"


def _beyond(found: Range) -> str:
    """`; 32 KiB would be a difference by itself, but does not stand out …`: else it reads as a contradiction."""
    apart = [change.point for change in found.changes if change.is_beyond]
    if found.verdict.value != "no difference seen" or not apart:
        return ""
    which = "" if len(found.changes) == 1 else f"{', '.join(format_bytes(point.bytes) for point in apart)} "
    each = (
        "would be a difference by themselves, but do" if len(apart) > 1 else "would be a difference by itself, but does"
    )
    return f"; {which}{each} not stand out among all series"


def gathered_sentences(ranges: Sequence[Range]) -> Iterator[str]:
    """Inconclusive ranges by reason, the one of most series first, curves with the same sizes in one line.

    A reason of one range alone is a sentence as any other.
    """
    by_reason: dict[str | None, list[Range]] = {}
    for one in ranges:
        by_reason.setdefault(one.first.reason, []).append(one)
    counts = {reason: sum(len(one.changes) for one in own) for reason, own in by_reason.items()}
    for reason, own in sorted(by_reason.items(), key=lambda item: -counts[item[0]]):
        if len(own) == 1:
            yield range_sentence(own[0])
            continue
        yield f"{counts[reason]} series, {_why(reason)}:"
        yield from (f"  {line}" for line in _curve_lines(own))


def _curve_lines(ranges: Sequence[Range]) -> Iterator[str]:
    """`pingpong on tcp, unix, 2 ranks: at 8 B, from 1 KiB to 64 KiB`; what lies apart in a line of its own."""
    from hockney.model import curve_of

    curves: dict[CurveKey, list[Range]] = {}
    for one in ranges:
        if one.apart is None:
            curves.setdefault(curve_of(one.first.point), []).append(one)
        else:
            name = ": ".join(filter(None, (curve_name(one.first), sizes_text(one))))
            yield f"{name}; yet {_apart_text(one.apart)}"
    alike: dict[tuple[str, tuple[tuple[str, str], ...], int, str], list[Point]] = {}
    for own in curves.values():
        point, sizes = own[0].first.point, ", ".join(sizes_text(one) for one in own)
        alike.setdefault((point.pattern, point.options, point.ranks, sizes), []).append(point)
    for (*_, sizes), points in alike.items():
        name = _curve_text(points[0], ", ".join(point.transport for point in points))
        yield f"{name}: {sizes}" if sizes else name


def _effect(ratios: list[float]) -> str:
    """`by 8-11 %` of the base's time, `by a factor of 2.4`."""
    low, high = sorted((min(ratios), max(ratios)))
    if high >= _AS_FACTOR or low <= 1 / _AS_FACTOR:
        factors = sorted(ratio if ratio > 1 else 1 / ratio for ratio in (low, high))
        return f"by a factor of {_span(*map(_factor, factors))}"
    percents = sorted(abs(ratio - 1) for ratio in (low, high))
    digits = 0 if percents[0] >= 0.0995 else 1
    return f"by {_span(*(f'{100 * percent:.{digits}f}' for percent in percents))} %"


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low}-{high}"


def _interval(shifts: list[Shift], confidence: float) -> str:
    """`time -0.8 % to +2.1 %, 95 % interval over launches`; of several intervals the outermost ends.

    `2.3 to 2.5 times as long, …` where all of it is as far from 1 as that.
    """
    lows = [shift.low for shift in shifts if shift.low is not None]
    highs = [shift.high for shift in shifts if shift.high is not None]
    kind = f"{100 * confidence:.3g} % interval"
    kind = f"outermost ends of the {kind}s" if len(shifts) > 1 else kind
    low, high = min(lows), max(highs)
    if low >= _AS_FACTOR or high <= 1 / _AS_FACTOR:
        return f"{_factor(low)} to {_factor(high)} times as long, {kind} over launches"
    return f"time {change_text(low)} to {change_text(high)}, {kind} over launches"


def _factor(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}"


def change_text(ratio: float) -> str:
    """1.081 -> `+8.1 %`."""
    return f"{100 * (ratio - 1):+.1f} %"


def surroundings_lines(found: Comparison) -> Iterator[str]:
    """`changed: kernel: Linux 6.1 -> Linux 6.6`, `disturbed: run 3: when the run began, …`: before any series."""
    for changed in found.differences:
        yield f"changed: {changed.what}: {difference_text(changed)}"
    for disturbed in found.disturbances:
        cause = disturbed.cause.rstrip(".")
        yield f"disturbed: run {disturbed.run}: {cause[:1].lower()}{cause[1:]}"


def caution_sentence(found: Comparison) -> str | None:
    """Why what is slower or faster may be the machine's own drift; None where there is a cause that does not drift."""
    if found.interleaved:
        return None
    sleeping = ", ".join(found.drifting)
    if found.has_no_cause:
        but = ", but for what disturbed the runs" if found.disturbances else ""
        above_all = f", above all on {sleeping}, where ranks sleep while they wait" if sleeping else ""
        return (
            f"No cause of what is slower or faster is known{but}: the machine may have drifted from one run to the "
            f"other{above_all}. To be sure, measure both in alternation: `hockney compare --interleave`."
        )
    if sleeping:
        return (
            f"On {sleeping} ranks sleep while they wait, and what it takes to wake them drifts for minutes: two runs "
            "one after the other may differ without a cause of theirs. To be sure, measure both in alternation: "
            "`hockney compare --interleave`."
        )
    return None


def difference_text(difference: Difference) -> str:
    """`Linux 6.1 -> Linux 6.6`."""
    return f"{difference.base or 'not known'} -> {difference.new or 'not known'}"


def alone_sentence(run: int, points: Sequence[Point]) -> str:
    """`only in run 3: 13 series (pingpong on tcp, unix at 6 sizes from 8 B to 64 KiB; barrier on tcp)`."""
    sizes: dict[tuple[str, str], set[int]] = {}
    for point in points:
        sizes.setdefault((point.pattern, point.transport), set()).update([point.bytes] if point.is_sized else [])
    alike: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for (pattern, transport), own in sizes.items():
        alike.setdefault((pattern, tuple(sorted(own))), []).append(transport)
    kinds = "; ".join(
        f"{pattern} on {', '.join(names)}{_alone_sizes_text(own)}" for (pattern, own), names in alike.items()
    )
    return f"only in run {run}: {len(points)} series ({kinds})"


def _alone_sizes_text(sizes: Sequence[int]) -> str:
    """` at 8 B and 64 B`; of many ` at 6 sizes from 8 B to 64 KiB`, for the other run may have some between."""
    if len(sizes) > _LISTED_MAX:
        return f" at {len(sizes)} sizes from {format_bytes(sizes[0])} to {format_bytes(sizes[-1])}"
    return f" at {' and '.join(map(format_bytes, sizes))}" if sizes else ""


def comparison_json(found: Comparison) -> dict[str, Any]:
    """All that a comparison says; `sentence` is what people read."""
    return {
        "base": found.base,
        "new": found.new,
        "launches": {"base": found.launches[0], "new": found.launches[1]},
        "interleaved": found.interleaved,
        "margin": found.margin,
        "differences": [asdict(difference) for difference in found.differences],
        "disturbances": [asdict(disturbance) for disturbance in found.disturbances],
        "counts": {verdict.value: count for verdict, count in found.counts.items()},
        "explained_by_chance": found.by_chance,
        "confidence": found.confidence,
        "ranges": [range_json(one, found.confidence, found.margin) for one in found.ranges],
        "series": [_series_json(change) for change in found.changes],
        "only_base": [point_json(point) for point in found.only_base],
        "only_new": [point_json(point) for point in found.only_new],
        "remedies": found.remedies,
        "commands": commands_in(*found.remedies),
        "drifting": found.drifting,
    }


def point_json(point: Point) -> dict[str, Any]:
    """A point with its options by name."""
    known = {name: value for name, value in asdict(point).items() if name != "traits"}
    return {**known, "options": dict(point.options)}


def range_json(found: Range, confidence: float, margin: float) -> dict[str, Any]:
    """One range of sizes."""
    point = found.first.point
    return {
        "verdict": found.verdict.value,
        "sentence": range_sentence(found, confidence, margin),
        "transport": point.transport,
        "pattern": point.pattern,
        "ranks": point.ranks,
        "options": dict(point.options),
        "bytes": [change.point.bytes for change in found.changes],
        "states": found.states,
        "protocol": found.protocol,
        "reason": found.first.reason,
        "apart": found.apart,
    }


def _series_json(change: SeriesChange) -> dict[str, Any]:
    return {
        "point": point_json(change.point),
        "verdict": change.verdict.value,
        "reason": change.reason,
        "states": change.states,
        "shift": None if change.shift is None else asdict(change.shift),
        "chance": change.chance,
        "apart": change.apart,
    }
