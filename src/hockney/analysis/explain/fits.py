"""Fits to a run: the straight segments of each transport's curves, and LogGP's parameters if prtt ran."""

from __future__ import annotations

from dataclasses import dataclass

from hockney.analysis.explain.curve import MeasuredCurve, Reading
from hockney.analysis.explain.shape import curves_of_shapes
from hockney.analysis.finding import Absence, NotChecked, Subject
from hockney.model import pattern_text
from hockney.results.traits import pattern_traits
from hockney.stats.fit import Estimate, LogGP, NoFit, Segment, SegmentFit


@dataclass(frozen=True)
class Fitted:
    """The curve of a fit: `pattern` with its options; `pair_class` is the class of the two ranks, "" if unknown."""

    transport: str
    pattern: str
    ranks: int
    pair_class: str
    state: str


@dataclass(frozen=True)
class FittedLine(Fitted):
    """A segment of a curve: t_0 (its line's time at size 0), its asymptotic rate r_inf, and its residuals.

    t_0, r_inf and n_1/2 are None where the data do not determine them, and for sizes too close together for a line.
    `residuals` are (measured - fitted) / fitted, of each of its `sizes_bytes`; `relative_rms` is of these.
    """

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
class OffLine(Fitted):
    """A size of a curve that lies on none of the curve's lines."""

    bytes: int
    time_ns: Estimate


@dataclass(frozen=True)
class Parameters(Fitted):
    """LogGP's parameters of one segment of a transport's round trips."""

    loggp: LogGP


def lines_of(reading: Reading) -> tuple[list[FittedLine], list[OffLine], list[NotChecked]]:
    """The lines of each transport and pair class in each state, the sizes on none, and the curves without a line."""
    lines: list[FittedLine] = []
    off_lines: list[OffLine] = []
    gaps: dict[tuple[str, str, int], NotChecked] = {}
    for curve in _curves(reading):
        fit = curve.segments
        names = curve.transport, curve.name, curve.ranks, curve.pair_class, curve.state
        known = _determined(fit) if isinstance(fit, SegmentFit) else []
        if isinstance(fit, SegmentFit) and known:
            lines += [_line(Fitted(*names), fit, segment) for segment in known]
            off_lines += [OffLine(*names, curve.sizes[at], curve.points[at].time_ns) for at in fit.outliers]
        else:
            why, facts = ("no fit", {"reason": fit.reason}) if isinstance(fit, NoFit) else ("scatter", {})
            about = Subject(curve.transport, curve.name)
            gaps.setdefault(names[:3], NotChecked(Absence.INSUFFICIENT_DATA, "lines", why, facts, subject=about))
    fitted = {(line.transport, line.pattern, line.ranks) for line in lines}
    return lines, off_lines, list(dict.fromkeys(gap for key, gap in gaps.items() if key not in fitted))


def _curves(reading: Reading) -> list[MeasuredCurve]:
    """The curves of each job's first pattern, the most measured first; then streams between two ranks."""
    first = {curve.job: curve.pattern for curve in curves_of_shapes(reading)}
    jobs = list(dict.fromkeys([*first, *(curve.job for curve in reading.curves)]))
    # Patterns of more than two ranks, and published figures, have no pair class and one state.
    classed = {(curve.job, curve.pattern) for curve in reading.by_class}
    rest = (curve for curve in reading.curves if (curve.job, curve.pattern) not in classed)
    fitted = []
    for curve in (*reading.by_class, *rest):
        is_first = curve.pattern == first.get(curve.job)
        is_stream = pattern_traits(reading.facts, curve.pattern).stream and reading.is_link(curve)
        if is_first or (is_stream and len(curve.points) >= 3):
            order = jobs.index(curve.job), not is_first, curve.pattern, -curve.n_measurements
            fitted.append((order, curve))
    return [curve for _, curve in sorted(fitted, key=lambda each: each[0])]


def _determined(fit: SegmentFit) -> list[Segment]:
    """The segments of which start or rate is known."""
    return [
        segment
        for segment in fit.segments
        if not fit.is_ambiguous(segment)
        and (not segment.t0_ns.low <= 0 <= segment.t0_ns.high or segment.r_inf_bytes_per_s is not None)
    ]


def _line(of: Fitted, fit: SegmentFit, segment: Segment) -> FittedLine:
    on_line = fit.on_line(segment)
    # Else size 0 is farther away than twice the range of the line.
    is_long = segment.last_bytes >= 1.5 * segment.first_bytes
    return FittedLine(
        **vars(of),
        first_bytes=segment.first_bytes,
        last_bytes=segment.last_bytes,
        sizes=segment.sizes,
        t0_ns=segment.t0_ns if is_long else None,
        r_inf_bytes_per_s=segment.r_inf_bytes_per_s if is_long else None,
        n_half_bytes=segment.n_half_bytes if is_long else None,
        relative_rms=segment.relative_rms,
        sizes_bytes=tuple(fit.sizes_bytes[at] for at in on_line),
        residuals=tuple(fit.residuals[at] for at in on_line),
    )


def parameters_of(reading: Reading) -> tuple[list[Parameters], list[NotChecked]]:
    """LogGP's parameters, and why a transport that ran prtt has none."""
    parameters: list[Parameters] = []
    gaps: list[NotChecked] = []
    if reading.libraries and not reading.loggp:  # a run, not published figures
        gaps.append(NotChecked(Absence.NOT_MEASURED, "LogGP", "delays"))
    for trips in reading.loggp:
        pattern = pattern_text("prtt", trips.options)
        if isinstance(trips.fit, NoFit):
            about, facts = Subject(trips.transport, pattern, trips.ranks, trips.state), {"reason": trips.fit.reason}
            gaps.append(NotChecked(Absence.INSUFFICIENT_DATA, "parameters", "no fit", facts, subject=about))
        else:
            names = trips.transport, pattern, trips.ranks, trips.pair_class, trips.state
            parameters += [Parameters(*names, segment) for segment in trips.fit]
    return parameters, gaps
