"""What is fitted to a run: the straight segments of each transport's curves, and LogGP's parameters where prtt ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hockney.analysis.explain.curve import ClassCurve, Curve, Reading
from hockney.analysis.explain.finding import sizes_text
from hockney.analysis.explain.shape import REACH, curves_of_shapes, segments_of
from hockney.stats.fit import Estimate, LogGP, NoFit, Segment, SegmentFit
from hockney.units import counted

# What moves messages from end to end. A transport's own curve is that of the first that it has (curves_of_shapes); the
# others are fitted beside it where they have a curve, which takes as many sizes as a line does.
_BESIDE = ("pingpong", "oneway", "twoway", "pairs")
LOGGP = "LogGP"  # as what a run lacks
_SIZES_MIN = 3


@dataclass(frozen=True)
class Line:
    """A segment of a curve: t_0 where its line meets size 0, the rate it approaches, and what it misses.

    `pair_class` is what the two ranks share, "" where that is not known. `relative_rms` is of (measured - fitted) /
    fitted. t_0, r_inf and n_1/2 are None where the figures don't tell them: all three of a transition, whose sizes lie
    so close together that its line tells the way from one segment to the next and nothing of size 0 or of endless ones.
    `residuals` are those of each size on it, `sizes_bytes`.
    """

    transport: str
    pattern: str
    ranks: int
    pair_class: str
    state: str
    first_bytes: int
    last_bytes: int
    sizes: int
    t0_ns: Estimate | None
    r_inf_bytes_per_s: Estimate | None
    n_half_bytes: Estimate | None
    relative_rms: float
    sizes_bytes: tuple[int, ...] = ()
    residuals: tuple[float, ...] = ()


@dataclass(frozen=True)
class OffLine:
    """A size of a curve that lies on none of its lines."""

    transport: str
    pattern: str
    ranks: int
    pair_class: str
    state: str
    bytes: int
    time_ns: Estimate


@dataclass(frozen=True)
class Parameters:
    """LogGP's parameters of one segment of a transport's round trips (`pattern` has their options) in one state."""

    transport: str
    pattern: str
    ranks: int
    pair_class: str
    state: str
    loggp: LogGP


def lines_of(reading: Reading) -> tuple[tuple[Line, ...], dict[str, str]]:
    """The lines of each transport and pair class in each state, and by its name why a curve has none.

    That is said of no state beside one with lines. A line that tells neither its start nor a rate is left out. Patterns
    beside a transport's first have lines in the state that is looked at.
    """
    lines: list[Line] = []
    without: dict[str, str] = {}
    fitted: set[tuple[str, int, str, str]] = set()
    for one in _curves(reading):
        curve = one.curve
        fit = segments_of(curve)
        told = [_line(one, fit, each) for each in _told(fit)] if isinstance(fit, SegmentFit) else []
        lines.extend(told)
        if told:
            fitted.add((*curve.place, curve.pattern, one.pair_class))
        elif (*curve.place, curve.pattern, one.pair_class) not in fitted:
            without.setdefault(f"{curve.name} on {curve.transport}", _why_none(fit))
    return tuple(lines), without


def _curves(reading: Reading) -> list[ClassCurve]:
    """Of each place the curves of the first pattern that it has, the state that most measurements saw first.

    Then others.
    """
    shapes = curves_of_shapes(reading)
    first = {curve.place: curve.pattern for curve in shapes}
    beside = [curve for curve in reading.of(*_BESIDE) if curve.pattern != first.get(curve.place)]
    states = {curve.place: curve.state for curve in (*shapes, *beside)}
    places = list(states)

    def order(one: ClassCurve) -> tuple[int, int, int]:
        pattern = one.curve.pattern
        is_first = pattern == first.get(one.curve.place)
        return places.index(one.curve.place), -1 if is_first else _BESIDE.index(pattern), -one.measurements

    def is_fitted(curve: Curve) -> bool:
        if curve.pattern == first.get(curve.place):
            return True
        is_usual = curve.state == states.get(curve.place)
        return curve.pattern in _BESIDE and is_usual and len(curve.marks) >= _SIZES_MIN

    # What is no pattern of two ranks alone, or printed, is of no class and in one state.
    classed = {(one.curve.place, one.curve.pattern) for one in reading.by_class}
    others = [curve for curve in (*shapes, *beside) if (curve.place, curve.pattern) not in classed]
    found = [*reading.by_class, *(ClassCurve(curve, "", 0) for curve in others)]
    return sorted((one for one in found if is_fitted(one.curve)), key=order)


def _told(fit: SegmentFit) -> list[Segment]:
    return [segment for segment in fit.segments if _tells(segment) and not fit.is_ambiguous(segment)]


def _why_none(fit: SegmentFit | NoFit) -> str:
    if isinstance(fit, NoFit):
        return fit.reason
    off = [fit.left_out_of(one) for one in fit.segments if _tells(one) and fit.is_ambiguous(one)]
    if off:
        return f"too few sizes: the one {sizes_text(off[0])} lies off the line of the others, maybe for a switch"
    return "its times scatter so much that they tell no line"


def _tells(segment: Segment) -> bool:
    return not segment.t0_ns.low <= 0 <= segment.t0_ns.high or segment.r_inf_bytes_per_s is not None


def _line(one: ClassCurve, fit: SegmentFit, segment: Segment) -> Line:
    curve = one.curve
    own = fit.on_line(segment)
    tells = segment.last_bytes >= REACH * segment.first_bytes
    return Line(
        curve.transport,
        curve.name,
        curve.ranks,
        one.pair_class,
        curve.state,
        segment.first_bytes,
        segment.last_bytes,
        segment.sizes,
        segment.t0_ns if tells else None,
        segment.r_inf_bytes_per_s if tells else None,
        segment.n_half_bytes if tells else None,
        segment.relative_rms,
        tuple(fit.sizes_bytes[at] for at in own),
        tuple(fit.residuals[at] for at in own),
    )


def off_lines_of(reading: Reading) -> Iterator[OffLine]:
    """The sizes that no line of their curve explains, where it has lines: too few on their side of a jump, or odd."""
    for one in _curves(reading):
        curve, fit = one.curve, segments_of(one.curve)
        for at in fit.outliers if isinstance(fit, SegmentFit) and _told(fit) else ():
            mark = curve.marks[at]
            yield OffLine(
                curve.transport, curve.name, curve.ranks, one.pair_class, curve.state, mark.bytes, mark.time_ns
            )


def parameters_of(reading: Reading) -> tuple[tuple[Parameters, ...], dict[str, str]]:
    """LogGP's parameters, and by its name why a transport that ran prtt has none, or a run that has no prtt."""
    found: list[Parameters] = []
    without: dict[str, str] = {}
    if not reading.loggp and not reading.published:
        is_there = any(curve.pattern == "prtt" for curve in reading.curves)
        without[LOGGP] = (
            "needs measurements of prtt in one state of the machine, with no more ranks than CPUs"
            if is_there
            else "needs the pattern prtt, with delays and without"
        )
    for one in reading.loggp:
        pattern = " ".join(["prtt", *(f"{name}={value}" for name, value in one.options)])
        name = f"LogGP of {pattern} on {one.transport}, {counted(one.ranks, 'rank')} ({one.state})"
        if isinstance(one.found, NoFit):
            without[name] = one.found.reason
        else:
            found.extend(
                Parameters(one.transport, pattern, one.ranks, one.pair_class, one.state, each) for each in one.found
            )
        if one.short_bytes:
            without[f"{name} {sizes_text(one.short_bytes)}"] = "the delay is shorter than the round trip there"
    return tuple(found), without


def by_reason(found: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """What has no fit and why: names that share a reason together."""
    names: dict[str, list[str]] = {}
    for name, reason in found.items():
        names.setdefault(reason, []).append(name)
    return ((", ".join(own), reason) for reason, own in names.items())
