"""Draws a chart or a matrix as marks at points, from plain values: SVG and PNG write them, without a browser."""

from __future__ import annotations

import math
import textwrap
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hockney.report.charts import (
    Axis,
    Chart,
    Form,
    Line,
    PairValues,
    Picture,
    PointValues,
    Strip,
    Unit,
    View,
    interval_of,
)
from hockney.units import format_bytes, format_ns, format_rate, printable

WIDTH, HEIGHT = 960, 480
_LEFT, _TOP, _BOTTOM, _ROW, _SUM = 78, 16, 46, 24, 56  # around a plot; the height of a row, the width of its sum
_LETTER, _LINE = 7.0, 16.0  # the width of a letter and the height of a line of text
_VERDICTS = {"slower": "c1", "faster": "c0", "inconclusive": "c7", "no difference seen": "c2"}
_RAMP = ((253, 231, 140), (203, 186, 105), (150, 143, 118), (107, 106, 118), (62, 74, 108), (0, 32, 77))
Spot = tuple[float, float]


@dataclass(frozen=True)
class Mark:
    """A part of a drawing: a line, a filled area, a dot or a text at its points. Colours are names of the page's."""

    kind: Literal["line", "area", "dot", "text"]
    points: tuple[Spot, ...]
    color: str
    width: float = 1.0  # of a line; of a dot the radius
    dash: str = ""
    opacity: float = 1.0
    is_hollow: bool = False
    text: str = ""
    anchor: Literal["start", "middle", "end"] = "start"
    is_bold: bool = False
    rgb: tuple[int, int, int] | None = None  # instead of the colour


@dataclass(frozen=True)
class Drawing:
    """Marks from back to front on a sheet of paper."""

    width: float
    height: float
    marks: tuple[Mark, ...]


def drawn(picture: Picture, color_of: Mapping[str, int]) -> Drawing:
    """A picture with title, note and source; `color_of` a transport is its number in the list of colours."""
    if isinstance(picture.shown, PairValues):
        body = drawn_matrix(picture.shown)
        titles = [f"All pairs of {picture.shown.ends}", picture.shown.name]
        note = "Framed pairs are outliers." if picture.shown.framed else ""
    else:
        chart, view = picture.shown
        body, titles, note = drawn_view(chart, view, color_of), [chart.title, view.name], chart.note
    heads = [_text(title, 120) for title in titles if title]
    feet = [*textwrap.wrap(printable(note), 140), _text(picture.source, 130)]
    top = _LINE * (len(heads) + 1)
    marks = [Mark("text", ((16, 6 + _LINE * (n + 1)),), "ink", text=text, is_bold=True) for n, text in enumerate(heads)]
    marks += [replace(mark, points=tuple((x, y + top) for x, y in mark.points)) for mark in body.marks]
    below = top + body.height + _LINE
    marks += [Mark("text", ((16, below + _LINE * n),), "soft", text=text) for n, text in enumerate(feet) if text]
    return Drawing(body.width, below + _LINE * len(feet), tuple(marks))


# ---- axes -----------------------------------------------------------------------------------------------------------


def position(axis: Axis, value: float) -> float:
    """Where a value is on its axis: of a tail the number of nines."""
    if axis.scale in ("log2", "log10"):
        return math.log(value, 2 if axis.scale == "log2" else 10)
    return -math.log10(max(1 - value, 1e-9)) if axis.scale == "tail" else value


def is_drawable(axis: Axis, value: float | None) -> bool:
    """Logarithms have no zero."""
    return value is not None and math.isfinite(value) and (value > 0 or not axis.scale.startswith("log"))


@dataclass(frozen=True)
class _Scale:
    """From values to pixels, with the ticks between: their values and texts."""

    axis: Axis
    low: float
    high: float
    first: float
    last: float

    def at(self, value: float) -> float:
        share = (position(self.axis, value) - self.low) / ((self.high - self.low) or 1.0)
        return self.first + share * (self.last - self.first)

    def ticks(self, most: int) -> Iterator[tuple[float, str]]:
        """Every or every second power of four of sizes, decades of others, round values where there are few."""
        axis, span = self.axis, self.high - self.low
        if axis.scale == "tail":
            shares = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
            yield from ((each, f"{100 * each:.6g} %") for each in shares if position(axis, each) <= self.high + 0.01)
        elif axis.scale == "log2":
            step = 2 if axis.unit == "bytes" and span > 4 else 1
            while span / step > most:
                step *= 2
            first = math.ceil((self.low - 1e-9) / step) * step
            begin = [self.low] if axis.unit == "bytes" and first - self.low > 0.4 * step else []
            yield from _texts(axis, (2.0**at for at in (*begin, *range(first, int(self.high + 1e-9) + 1, step))))
        elif axis.scale == "time":
            form = "%Y-%m-%d" if span > 6 * 86400 else "%m-%d %H:%M"
            values = [self.low + span * part / 4 for part in range(5)]
            yield from ((value, time.strftime(form, time.gmtime(value))) for value in values)
        elif axis.scale == "log10" and span >= 0.6:
            factors = (1,) if span > 2.5 else (1, 3) if span > 1.2 else (1, 2, 5)
            values = [f * 10.0**d for d in range(math.floor(self.low), math.ceil(self.high) + 1) for f in factors]
            shown = [value for value in values if self.low <= math.log10(value) <= self.high]
            yield from _texts(axis, shown[:: max(1, -(-len(shown) // most))])
        else:
            ends = (10**self.low, 10**self.high) if axis.scale == "log10" else (self.low, self.high)
            yield from _texts(axis, _round_values(*ends, min(most, 6)))


def _round_values(low: float, high: float, most: int) -> list[float]:
    rough = (high - low) / max(most, 1) or 1.0
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= rough * 0.999)
    return [step * at for at in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


def _texts(axis: Axis, values: Iterable[float]) -> Iterator[tuple[float, str]]:
    return ((value, value_text(axis.unit, value)) for value in values)


def _scale(axis: Axis, values: Sequence[float], ends: Spot) -> _Scale:
    """Of all values that are drawn; logarithms have a margin."""
    at = [position(axis, value) for value in values if is_drawable(axis, value)] or [0.0, 1.0]
    low, high = min(at), max(at)
    if axis.scale == "log10":
        margin = max(0.05, (high - low) * 0.05)
        low, high = low - margin, high + margin
    elif axis.scale in ("linear", "tail"):
        low, high = 0.0, max(high, 1.0) if axis.scale == "tail" else high or 1.0
    elif low == high:
        low, high = low - 1, high + 1
    return _Scale(axis, low, high, *ends)


def value_text(unit: Unit, value: float) -> str:
    """The text of a tick, without trailing zeros: `1 us`, `64 KiB`, `50 %`."""
    if unit == "bytes":
        return format_bytes(round(value))
    if unit == "share":
        return f"{100 * value:.4g} %"
    if unit in ("ns", "bytes/s"):
        text = "0 " if not value else (format_ns if unit == "ns" else format_rate)(value)
        number, _, name = text.partition(" ")
        return f"{float(number.replace(',', '')):g} {name}".strip()
    return f"×{value:.3g}" if unit == "ratio" else f"{value:.4g}"


def _text(text: str, most: int = 36) -> str:
    """A text that may come from outside, on one line; of a long one both ends, since the run comes last."""
    line = " ".join(printable(text).split())
    return line if len(line) <= most else f"{line[: most - 12]}…{line[-11:]}"


# ---- a view of a chart ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plot:
    """A view with its scales; each line with its colour and the points that its axes can show."""

    kind: Form
    x: _Scale
    y: _Scale
    right: float
    lines: tuple[tuple[Line, str, list[PointValues]], ...]

    def at(self, point: PointValues, end: int = 1) -> Spot:
        """The pixels of a point, of its value or an end of its interval."""
        return self.x.at(point[0]), self.y.at(point[end] or 0.0)


def drawn_view(chart: Chart, view: View, color_of: Mapping[str, int]) -> Drawing:
    """The plot with its axes; names are at the ends of lines, or in a list at the right."""
    y_axis, rows = view.y or chart.y, view.names
    left = 16 + _LETTER * max(len(_text(name)) for name in rows) if rows else _LEFT
    gutter = 24 + _LETTER * max((len(_text(line.name)) for line in view.lines), default=0)
    right = WIDTH - gutter - _SUM * (chart.kind == "bars")
    bottom = _ROW * len(rows) + _TOP if rows else HEIGHT - _BOTTOM - _ROW * len(view.strips)
    lines = []
    for number, line in enumerate(view.lines):
        points = [p for p in line.points if is_drawable(chart.x, p[0]) and (rows or is_drawable(y_axis, p[1]))]
        if points:
            lines.append((line, _color(chart, line, number, color_of), points))
    shown = [point for *_, points in lines for point in points]
    x_values = [value for point in shown for value in (point[0], *(interval_of(point) if rows else ())) if value]
    if chart.kind == "bars":  # the length of each stack
        lengths = defaultdict[float, float](float)
        for length, row, *_ in shown:
            lengths[row] += length
        x_values = [0.0, *lengths.values()]
    x = _scale(chart.x, x_values, (left, right))
    plot = _Plot(chart.kind, x, _scale(y_axis, [point[1] for point in shown], (bottom, _TOP)), right, tuple(lines))
    marks = [*_axis_marks(plot, has_rows=bool(rows))]
    marks += [
        Mark("text", ((left - 8, _middle(n) + 4),), "ink", text=_text(name), anchor="end")
        for n, name in enumerate(rows)
    ]
    marks += {"bars": _bars, "intervals": _intervals, "lines": _lines, "points": _lines}[chart.kind](plot)
    marks += _labels(plot)
    below = bottom + _BOTTOM
    for number, strip in enumerate(view.strips):
        marks += _strip(strip, plot, below + _ROW * number, color_of)
    return Drawing(WIDTH, below + _ROW * len(view.strips), tuple(marks))


def _middle(row: float) -> float:
    return _TOP + _ROW * (row + 0.5)


def _axis_marks(plot: _Plot, *, has_rows: bool) -> Iterator[Mark]:
    x, y = plot.x, plot.y
    for value, text in x.ticks(max(3, int((x.last - x.first) / 62))):
        yield Mark("line", ((x.at(value), _TOP), (x.at(value), y.first)), "hair")
        yield Mark("text", ((x.at(value), y.first + 16),), "soft", text=text, anchor="middle")
    for value, text in () if has_rows else y.ticks(9):
        yield Mark("line", ((x.first, y.at(value)), (x.last, y.at(value))), "hair")
        yield Mark("text", ((x.first - 8, y.at(value) + 4),), "soft", text=text, anchor="end")
    yield Mark("line", ((x.first, y.first), (x.last, y.first)), "faint")
    yield Mark("text", (((x.first + x.last) / 2, y.first + 34),), "soft", text=x.axis.title, anchor="middle")
    yield Mark("text", ((4, _TOP - 4),), "soft", text=y.axis.title)


def _color(chart: Chart, line: Line, number: int, color_of: Mapping[str, int]) -> str:
    if chart.kind == "intervals":
        return _VERDICTS.get(line.name, "c7")
    if line.kind == "reference":
        return "soft"
    if chart.kind == "bars" and line.transport is None and line.name == "floor":
        return "floor"
    return f"c{(color_of.get(line.transport or '', number) if line.color is None else line.color) % 10}"


def _lines(plot: _Plot) -> Iterator[Mark]:
    """Curves with their bands, and hollow dots of published figures; of the kind "points" only dots."""
    for line, color, points in plot.lines:
        at = tuple(map(plot.at, points))
        is_published = line.kind == "published"
        if is_published or (plot.kind == "points" and line.kind == "measured"):
            yield from (Mark("dot", (each,), color, 4.5, is_hollow=is_published) for each in at)
            continue
        for stretch in _stretches(points, plot.y.axis):
            high, low = ([plot.at(point, end) for point in stretch] for end in (3, 2))
            yield Mark("area", (*high, *low[::-1]), color, opacity=0.16)
        dash = "6 4" if line.kind in ("reference", "model") else line.dash
        yield Mark("line", at, color, 1.2 if line.kind == "reference" else 2.0, dash)
        if line.kind == "measured" and plot.y.axis.scale != "tail" and len(points) <= 100:
            yield from (Mark("dot", (each,), color, 2.6) for each in at)
        ringed = {point for point, label in zip(line.points, line.labels, strict=False) if label}
        yield from (
            Mark("dot", (spot,), color, 5.5, is_hollow=True) for spot, p in zip(at, points, strict=True) if p in ringed
        )


def _stretches(points: Sequence[PointValues], axis: Axis) -> list[list[PointValues]]:
    """The points between gaps, where there is no interval."""
    found: list[list[PointValues]] = [[]]
    for point in points:
        if all(is_drawable(axis, end) for end in interval_of(point)):
            found[-1].append(point)
        else:
            found.append([])
    return [each for each in found if len(each) > 1 and any(point[2:] != (point[1],) * 2 for point in each)]


def _bars(plot: _Plot) -> Iterator[Mark]:
    ends = defaultdict[float, float](float)
    for _, color, points in plot.lines:
        for length, row, *_ in points:
            start, ends[row] = ends[row], ends[row] + length
            yield _box(plot.x.at(start), _middle(row) - 8, plot.x.at(ends[row]), _middle(row) + 8, color)
    for row, total in ends.items():
        text = value_text(plot.x.axis.unit, float(f"{total:.3g}"))
        yield Mark("text", ((plot.x.at(total) + 6, _middle(row) + 4),), "ink", text=text)


def _box(left: float, top: float, right: float, bottom: float, color: str, opacity: float = 1.0) -> Mark:
    return Mark("area", ((left, top), (right, top), (right, bottom), (left, bottom)), color, opacity=opacity)


def _intervals(plot: _Plot) -> Iterator[Mark]:
    yield Mark("line", ((plot.x.at(1.0), _TOP), (plot.x.at(1.0), plot.y.first)), "soft")
    for _, color, points in plot.lines:
        for point in points:
            y, ends = _middle(point[1]), [plot.x.at(end or point[0]) for end in interval_of(point)]
            yield Mark("line", ((ends[0], y), (ends[1], y)), color, 2.5, opacity=0.55)
            yield Mark("dot", ((plot.x.at(point[0]), y),), color, 4.0)


def _labels(plot: _Plot) -> Iterator[Mark]:
    """The names of the lines at the right: each at the end of its line, moved so that none overlap; else in a list."""
    at_ends, taken = plot.kind == "lines", _TOP - 4.0
    if len(plot.lines) == 1 and not at_ends:
        return
    lines = sorted(plot.lines, key=lambda line: plot.at(line[2][-1])[1]) if at_ends else plot.lines
    edge, has_room = plot.right + _SUM * (plot.kind == "bars") + 14, plot.y.first - _TOP > _LINE * len(lines)
    for number, (line, color, points) in enumerate(lines):
        end, most = plot.at(points[-1]), plot.y.first + 4 - _LINE * (len(lines) - 1 - number)
        taken = max(taken + _LINE, min(end[1], most if has_room else math.inf) if at_ends else 0.0)
        if at_ends:
            yield Mark("line", (end, (edge - 3, taken)), color, 0.8, opacity=0.5)
        else:
            yield Mark("dot", ((edge - 2, taken),), color, 4.0, is_hollow=line.kind == "published")
        yield Mark("text", ((edge + 6 * (not at_ends), taken + 4),), color, text=_text(line.name))


def _strip(strip: Strip, plot: _Plot, top: float, color_of: Mapping[str, int]) -> Iterator[Mark]:
    """A row under the axis with the fastest of each size: a colour each, and the names where they have room."""
    for first, last, transports, text in strip.spans:
        left, end, step = plot.x.at(first), plot.x.at(last), (_ROW - 5) / len(transports)
        for number, name in enumerate(transports):
            y = top + step * number
            yield _box(left + 1, y, end - 1, y + step, f"c{color_of.get(name, 0) % 10}", 0.3)
        if len(text) * _LETTER < end - left - 6:
            yield Mark("text", (((left + end) / 2, top + 14),), "ink", text=text, anchor="middle")
    yield Mark("text", ((plot.right + 14, top + 14),), "soft", text=strip.name)


# ---- a matrix -------------------------------------------------------------------------------------------------------


def drawn_matrix(matrix: PairValues) -> Drawing:
    """A square of cells, dark where slow, on a logarithmic scale; outliers are framed."""
    count, side, left, top = len(matrix.values), 560.0, 150.0, 40.0
    known = [value for row in matrix.values.tolist() for value in row if not math.isnan(value)]
    low, high = min(known, default=1.0), max(known, default=1.0)
    share = shades(low, high, is_rate=matrix.unit == "bytes/s")
    cell, names = side / max(count, 1), matrix.names
    marks = []
    for a, row in enumerate(matrix.values.tolist()):
        for b, value in enumerate(row):
            if not math.isnan(value):
                box = _box(left + b * cell, top + a * cell, left + (b + 1) * cell, top + (a + 1) * cell, "")
                marks.append(replace(box, rgb=_shade(share(value))))
    step = next((each for each in (1, 2, 4, 8, 16, 32, 64, 128) if each * cell >= 30), count)
    for rank in range(0, count, step):
        at = (rank + 0.5) * cell
        marks.append(Mark("text", ((left - 6, top + at + 4),), "soft", text=_text(names[rank], 20), anchor="end"))
        short = names[rank].partition(" ")[0][-6:]
        marks.append(Mark("text", ((left + at, top - 8),), "soft", text=short, anchor="middle"))
    for ranks in matrix.framed:
        if len(ranks) == 2:
            for a, b in (ranks, ranks[::-1]):
                box = _box(left + b * cell, top + a * cell, left + (b + 1) * cell, top + (a + 1) * cell, "strong")
                marks.append(Mark("line", (*box.points, box.points[0]), "strong", 2.0))
    for number, value in enumerate((low, math.sqrt(low * high), high)):
        y = top + 20 + 26 * number
        box = _box(left + side + 30, y, left + side + 54, y + 22, "")
        marks.append(replace(box, rgb=_shade(share(value))))
        text = value_text(matrix.unit, float(f"{value:.3g}"))
        marks.append(Mark("text", ((left + side + 62, y + 16),), "soft", text=text))
    return Drawing(WIDTH, top + side + 20, tuple(marks))


def shades(low: float, high: float, *, is_rate: bool) -> Callable[[float], float]:
    """From a value to a share of the ramp, by logarithm; 1 is the slowest, of times the highest."""
    span = math.log(high / low) or 1.0

    def share(value: float) -> float:
        of_range = math.log(value / low) / span
        return 1 - of_range if is_rate else of_range

    return share


def _shade(share: float) -> tuple[int, int, int]:
    exact = min(len(_RAMP) - 1.001, max(0.0, share * (len(_RAMP) - 1)))
    at, rest = int(exact), exact - int(exact)
    first, second = _RAMP[at], _RAMP[at + 1]
    red, green, blue = (round(a + rest * (b - a)) for a, b in zip(first, second, strict=True))
    return red, green, blue
