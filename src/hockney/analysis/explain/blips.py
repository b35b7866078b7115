"""One size that is slower than its neighbours on both sides: at a whole page, an allocation or a copy may go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hockney.analysis.explain.curve import Curve, Reading, finding_about
from hockney.analysis.explain.finding import Evidence, Finding, Found, Lacking, difference, time_text
from hockney.analysis.explain.paired_rounds import ratio_in_rounds
from hockney.analysis.explain.shape import curves_of_shapes, lacking_shape, segments_of
from hockney.stats.fit import NoFit, Segment, SegmentFit
from hockney.units import format_bytes

if TYPE_CHECKING:
    from hockney.model import BoolArray

_BLIP = 0.05
_CLOSE = 4  # times: neighbours farther off tell little of what lies between
_STEP = 2.0  # so much better than a step, in variances, must a blip explain the times
_PAGES = {1: "the page size", 2: "two pages"}  # of larger multiples most sizes that anyone measures are one


def page_blip(reading: Reading) -> Found:
    """A time at a whole page above the line that its neighbours on both sides lie on."""
    page = reading.page_bytes
    if page is None:
        return Lacking("the page size of the machine is not known")
    curves = [curve for curve in curves_of_shapes(reading) if any(_places(curve, page))]
    if not curves:
        sizes = f"the page size, {format_bytes(page)}, or two pages, and a size on either side within {_CLOSE}x"
        return lacking_shape(reading, f"with {sizes}")
    return [found for curve in curves for found in blips_of(curve, segments_of(curve), page)]


def blips_of(curve: Curve, fit: SegmentFit | NoFit, page_bytes: int | None) -> Iterator[Finding]:
    """Those of one curve with its fit; none where the page size is not known."""
    if page_bytes is None or not isinstance(fit, SegmentFit):
        return
    for at, name in _places(curve, page_bytes):
        found = _blip(curve, fit, at, name)
        if found is not None:
            yield found


def _places(curve: Curve, page_bytes: int) -> Iterator[tuple[int, str]]:
    """Where the curve has a page, or two, between neighbours close enough, and what that is called."""
    for at in range(1, len(curve.marks) - 1):
        before, size, after = curve.sizes[at - 1 : at + 2]
        pages = _PAGES.get(size // page_bytes) if size % page_bytes == 0 else None
        if pages is not None and size <= _CLOSE * before and after <= _CLOSE * size:
            yield at, pages


def _blip(curve: Curve, fit: SegmentFit, at: int, name: str) -> Finding | None:
    """Where the fit leaves that size out, and its neighbours not: switches and bends, which it tries, fit worse."""
    if at not in fit.outliers:
        return None
    mark, line = curve.marks[at], fit.lines_ns[at]
    segment = _line_around(fit, at)
    if segment is None or line.low <= 0:
        return None
    excess = difference(mark.time_ns, line)
    effect = excess.value / line.value
    if excess.low <= 0 or effect < _BLIP or _may_be_step(fit, segment, at):
        return None
    if not all(_is_borne_out(curve, fit, at, beside) for beside in (at - 1, at + 1)):
        return None
    return finding_about(
        curve,
        "blip at the page size",
        sentence=(
            f"At {name}, {format_bytes(mark.bytes)}, {curve.name} takes {time_text(excess)} more than the line that "
            f"the sizes on both sides lie on, {effect:.0%}."
        ),
        effect=effect,
        sizes_bytes=(mark.bytes,),
        evidence=(Evidence("excess", excess, "ns"), Evidence("line", line, "ns")),
    )


def _line_around(fit: SegmentFit, at: int) -> Segment | None:
    """The segment that both neighbours lie on."""
    if not {at - 1, at + 1}.isdisjoint(fit.outliers):
        return None
    before, after = fit.sizes_bytes[at - 1], fit.sizes_bytes[at + 1]
    return next((one for one in fit.segments if one.first_bytes <= before and after <= one.last_bytes), None)


def _may_be_step(fit: SegmentFit, segment: Segment, at: int) -> bool:
    """Whether the times may as well step there, on two lines that are parallel: a small step takes few sizes off one.

    Least squares with either, relative to the line, each with as many parameters.
    """
    import numpy as np

    own = [*fit.on_line(segment), at]
    sizes, times = (np.array([of[i] for i in own]) for of in (fit.sizes_bytes, fit.times_ns))
    level = np.maximum([fit.lines_ns[i].value for i in own], 1e-3 * times)  # a line that goes below zero is no level
    places = np.array(own)

    def missed(change: BoolArray) -> float:
        columns = np.stack([1 / level, sizes / level, change / level], axis=1)
        left = times / level - columns @ np.linalg.lstsq(columns, times / level, rcond=None)[0]
        return float(left @ left)

    steps = min(missed(places >= at), missed(places > at))
    return steps <= (1 + _STEP / len(own)) * missed(places == at)


def _is_borne_out(curve: Curve, fit: SegmentFit, at: int, beside: int) -> bool:
    """Whether the rounds that measured a neighbour, too, show it; else the machine may have changed in between.

    Of printed figures there are none.
    """
    neighbour, mark = curve.marks[beside], curve.marks[at]
    if not (neighbour.measurements and mark.measurements):
        return True
    over, _ = ratio_in_rounds(neighbour, mark)
    return over is not None and over.low * fit.lines_ns[beside].value > fit.lines_ns[at].value
