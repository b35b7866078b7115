"""What is fitted to a run: the straight segments of each transport's curves, and LogGP's parameters where prtt ran."""

from __future__ import annotations

from dataclasses import dataclass

from hockney.analysis.explain.curve import ClassCurve, Curve, Reading
from hockney.analysis.explain.shape import REACH, curves_of_shapes
from hockney.analysis.finding import Absence, NotChecked
from hockney.stats.fit import Estimate, LogGP, NoFit, Segment, SegmentFit
from hockney.units import format_bytes

# Patterns that get lines: the transport's own curve is that of the first that it has (curves_of_shapes).
_WITH_LINES = ("pingpong", "oneway", "twoway", "pairs")
_SIZES_MIN = 3


@dataclass(frozen=True)
class Line:
    """A segment of a curve: t_0 where its line meets size 0, the rate it approaches, and what it misses.

    `pair_class` is what the two ranks share, "" where unknown. t_0, r_inf and n_1/2 are None where the data do not
    determine them, and for sizes too close together for a line. `residuals` are (measured - fitted) / fitted, of each
    of its `sizes_bytes`; `relative_rms` is of these.
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


@dataclass(frozen=True)
class Lines:
    """All lines of a reading, the sizes on none of them, and the curves that have no line."""

    lines: tuple[Line, ...]
    off_lines: tuple[OffLine, ...]
    not_checked: tuple[NotChecked, ...]


def lines_of(reading: Reading) -> Lines:
    """The lines of each transport and pair class in each state."""
    lines: list[Line] = []
    off_lines: list[OffLine] = []
    fitted: set[tuple[str, str, int]] = set()
    without: dict[tuple[str, str, int], tuple[str, str]] = {}
    for one in _curves(reading):
        curve, fit = one.curve, one.curve.segments
        key = curve.transport, curve.name, curve.ranks
        known = _determined(fit)
        if isinstance(fit, SegmentFit) and known:
            fitted.add(key)
            of = curve.transport, curve.name, curve.ranks, one.pair_class, curve.state
            lines += [_line(of, fit, segment) for segment in known]
            off_lines += [OffLine(*of, curve.sizes[at], curve.points[at].time_ns) for at in fit.outliers]
        else:
            without.setdefault(key, (f"lines through {curve.name} on {curve.transport}", _why_none(fit)))
    gaps = {text: None for key, text in without.items() if key not in fitted}
    return Lines(
        tuple(lines),
        tuple(off_lines),
        tuple(NotChecked(Absence.INSUFFICIENT_DATA, what, detail) for what, detail in gaps),
    )


def _curves(reading: Reading) -> list[ClassCurve]:
    """For each place the curves of its first pattern in all states, the most measured first; then other patterns."""
    shapes = curves_of_shapes(reading)
    first = {curve.place: curve.pattern for curve in shapes}
    others = [curve for curve in reading.of(*_WITH_LINES) if curve.pattern != first.get(curve.place)]
    states = {curve.place: curve.state for curve in (*shapes, *others)}
    places = list(states)

    def order(one: ClassCurve) -> tuple[int, int, int]:
        pattern = one.curve.pattern
        rank = -1 if pattern == first.get(one.curve.place) else _WITH_LINES.index(pattern)
        return places.index(one.curve.place), rank, -one.measurements

    def is_fitted(curve: Curve) -> bool:
        if curve.pattern == first.get(curve.place):
            return True
        is_main = curve.state == states.get(curve.place)
        return curve.pattern in _WITH_LINES and is_main and len(curve.points) >= _SIZES_MIN

    # Patterns of more than two ranks, and published figures, have no pair class and one state.
    classed = {(one.curve.place, one.curve.pattern) for one in reading.by_class}
    unclassed = [curve for curve in (*shapes, *others) if (curve.place, curve.pattern) not in classed]
    found = [*reading.by_class, *(ClassCurve(curve, "", 0) for curve in unclassed)]
    return sorted((one for one in found if is_fitted(one.curve)), key=order)


def _determined(fit: SegmentFit | NoFit) -> list[Segment]:
    if isinstance(fit, NoFit):
        return []
    return [one for one in fit.segments if _is_determined(one) and not fit.is_ambiguous(one)]


def _is_determined(segment: Segment) -> bool:
    return not segment.t0_ns.low <= 0 <= segment.t0_ns.high or segment.r_inf_bytes_per_s is not None


def _why_none(fit: SegmentFit | NoFit) -> str:
    if isinstance(fit, NoFit):
        return fit.reason
    off = [fit.left_out_of(one) for one in fit.segments if _is_determined(one) and fit.is_ambiguous(one)]
    if off:
        return f"too few sizes: {format_bytes(off[0][0])} lies off the line of the others, maybe for a switch"
    return "the times scatter too much for a line"


def _line(of: tuple[str, str, int, str, str], fit: SegmentFit, segment: Segment) -> Line:
    on_line = fit.on_line(segment)
    is_long = segment.last_bytes >= REACH * segment.first_bytes
    return Line(
        *of,
        segment.first_bytes,
        segment.last_bytes,
        segment.sizes,
        segment.t0_ns if is_long else None,
        segment.r_inf_bytes_per_s if is_long else None,
        segment.n_half_bytes if is_long else None,
        segment.relative_rms,
        tuple(fit.sizes_bytes[at] for at in on_line),
        tuple(fit.residuals[at] for at in on_line),
    )


def parameters_of(reading: Reading) -> tuple[tuple[Parameters, ...], list[NotChecked]]:
    """LogGP's parameters, and why a transport that ran prtt, or some of its sizes, have none."""
    found: list[Parameters] = []
    gaps: list[NotChecked] = []
    if not reading.loggp and not reading.is_published:
        has_prtt = any(curve.pattern == "prtt" for curve in reading.curves)
        reason = Absence.INSUFFICIENT_DATA if has_prtt else Absence.NOT_MEASURED
        gaps.append(NotChecked(reason, "LogGP", "needs prtt with delays and without, in one state"))
    for one in reading.loggp:
        pattern = " ".join(["prtt", *(f"{name}={value}" for name, value in one.options)])
        name = f"LogGP of {pattern} on {one.transport}, {one.ranks} ranks ({one.state})"
        if isinstance(one.found, NoFit):
            gaps.append(NotChecked(Absence.INSUFFICIENT_DATA, name, one.found.reason))
        else:
            of = one.transport, pattern, one.ranks, one.pair_class, one.state
            found += [Parameters(*of, segment) for segment in one.found]
        if one.short_bytes:
            sizes = ", ".join(map(format_bytes, one.short_bytes))
            gaps.append(
                NotChecked(Absence.NOT_APPLICABLE, f"{name} at {sizes}", "the delay is shorter than the round trip")
            )
    return tuple(found), gaps
