"""Draws a chart of the HTML report with matplotlib, an optional extra. Colours are the page's."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hockney.report.findings import rank_names
from hockney.report.html.charts import Axis, Chart, Line, Unit, View, interval_of
from hockney.report.html.page import light_colors
from hockney.report.pairs import PairValues
from hockney.units import format_bytes, format_ns, format_rate, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS = "os^D"
_VERDICTS = {"slower": "c1", "faster": "c0", "inconclusive": "c7", "no difference seen": "c2"}
_RAMP = ("#fde78c", "#cbba69", "#968f76", "#6b6a76", "#3e4a6c", "#00204d")  # from light to dark, as on the page
_WIDTH_IN, _HEIGHT_IN, _ROW_IN = 8.0, 4.6, 0.26


@dataclass(frozen=True)
class Picture:
    """A view of a chart, or a matrix. `name` is that of its file, `source` names the run."""

    name: str
    shown: tuple[Chart, View] | PairValues
    source: str = ""


def drawn(picture: Picture, places: Mapping[str, int]) -> Figure:
    """The picture; `places` are those of the transports in the list of colours."""
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.add_axes((0, 0, 1, 1))
    colors = light_colors()
    if isinstance(picture.shown, PairValues):
        figure.set_size_inches(_WIDTH_IN, _WIDTH_IN * 0.7)
        _draw_matrix(figure, axes, picture.shown, colors)
        titles = [f"All pairs of {picture.shown.ends}", picture.shown.name]
        note = "Framed pairs are outliers." if picture.shown.framed else ""
    else:
        chart, view = picture.shown
        rows = len(view.names)
        figure.set_size_inches(_WIDTH_IN, rows * _ROW_IN + 0.4 if rows else _HEIGHT_IN)
        _draw_chart(axes, chart, view, places, colors)
        titles, note = [chart.title, view.name], chart.note
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, labelcolor=colors["ink"])
    for spine in axes.spines.values():
        spine.set_color(colors["faint"])
    axes.tick_params(which="both", length=0, labelcolor=colors["soft"])
    head = "\n".join(_text(title, 110) for title in titles if title)
    axes.set_title(head, loc="left", weight="bold", color=colors["ink"])
    foot = "\n".join([*textwrap.wrap(printable(note), 132), _text(picture.source, 120)])
    at: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "top"}
    axes.annotate(foot, (0, 0), (0, -44), fontsize=8, color=colors["soft"], **at)
    return figure


def _draw_chart(axes: Axes, chart: Chart, view: View, places: Mapping[str, int], colors: dict[str, str]) -> None:
    axes.set_axisbelow(True)
    axes.margins(0.08 if chart.kind == "points" else 0.04)
    if chart.kind == "bars":
        _draw_bars(axes, view, places, colors)
    elif chart.kind == "intervals":
        _draw_intervals(axes, view, colors)
    else:
        _draw_lines(axes, chart, view, places, colors)
    _scale(axes, chart.x, "x", view, colors)
    _scale(axes, view.y or chart.y, "y", view, colors)


def _place(line: Line, number: int, places: Mapping[str, int]) -> int:
    """The place in the list of colours of the line with this number in its view."""
    return places.get(line.transport or "", number) if line.color is None else line.color


def _at(axis: Axis, value: float) -> float:
    """The place of a value on its axis: for tails the number of nines, for dates days, as matplotlib requires."""
    if axis.scale == "tail":
        return -math.log10(max(1 - value, 1e-9))
    return value / 86400 if axis.scale == "time" else value


def _is_drawable(axis: Axis, value: float) -> bool:
    """Logarithms have no zero."""
    return value > 0 or not axis.scale.startswith("log")


def _draw_lines(axes: Axes, chart: Chart, view: View, places: Mapping[str, int], colors: dict[str, str]) -> None:
    """Curves with their bands, and marks of published figures; of the kind "points", only marks."""
    y_axis = view.y or chart.y
    before: Counter[str] = Counter()  # how many lines the transport has already, of further runs, or the references
    for number, line in enumerate(view.lines):
        place = _place(line, number, places)
        color = colors["soft" if line.kind == "reference" else f"c{place % 10}"]
        alike = line.transport or ("reference" if line.kind == "reference" else line.name)
        nth = before[alike]
        before[alike] += 1
        mark = _MARKS[(place + nth) % len(_MARKS)]
        points = [point for point in line.points if _is_drawable(chart.x, point[0]) and _is_drawable(y_axis, point[1])]
        x, y = [_at(chart.x, point[0]) for point in points], [_at(y_axis, point[1]) for point in points]
        name = _text(line.name)
        if line.kind == "published" or (chart.kind == "points" and line.kind == "measured"):
            face = "white" if line.kind == "published" else color
            axes.plot(x, y, mark, ms=6, mew=1.5, mec=color, mfc=face, label=name, zorder=4)
            continue
        dashes = {"model": ("--",), "reference": ("--", ":", "-.")}.get(line.kind, ("-", "--", ":"))
        has_marks = line.kind == "measured" and y_axis.scale != "tail" and len(points) <= 100
        width = 1.0 if line.kind == "reference" else 1.6
        axes.plot(x, y, dashes[nth % len(dashes)], color=color, lw=width, marker=mark * has_marks, ms=3.5, label=name)
        # A band ends where there is no interval.
        low, high = ([interval_of(point)[end] or math.nan for point in points] for end in (0, 1))
        axes.fill_between(x, low, high, color=color, alpha=0.16, lw=0)


def _draw_bars(axes: Axes, view: View, places: Mapping[str, int], colors: dict[str, str]) -> None:
    begin = [0.0] * len(view.names)
    for number, line in enumerate(view.lines):
        is_floor = line.transport is None and line.name == "floor"
        color = colors["floor" if is_floor else f"c{_place(line, number, places) % 10}"]
        rows, widths = [int(point[1]) for point in line.points], [point[0] for point in line.points]
        left = [begin[row] for row in rows]
        axes.barh(rows, widths, 0.72, left=left, color=color, edgecolor="white", lw=0.5, label=_text(line.name))
        for row, width in zip(rows, widths, strict=True):
            begin[row] += width


def _draw_intervals(axes: Axes, view: View, colors: dict[str, str]) -> None:
    axes.axvline(1, color=colors["soft"], lw=0.8)
    for line in view.lines:
        color = colors[_VERDICTS[line.name]]
        x, rows, low, high = zip(*line.points, strict=True)
        axes.hlines(rows, low, high, color=color, lw=2.2, alpha=0.55)
        axes.plot(x, rows, "o", ms=5, color=color, label=_text(line.name))


def _draw_matrix(figure: Figure, axes: Axes, matrix: PairValues, colors: dict[str, str]) -> None:
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import MaxNLocator

    low, high = float(np.nanmin(matrix.values)), float(np.nanmax(matrix.values))
    ramp = LinearSegmentedColormap.from_list("ramp", _RAMP if matrix.unit == "ns" else _RAMP[::-1])  # dark is slow
    image = axes.imshow(matrix.values, cmap=ramp, norm=LogNorm(low, max(high, low * 1.01)), interpolation="nearest")
    for ranks in matrix.framed:
        if len(ranks) == 2:
            for a, b in (ranks, ranks[::-1]):
                axes.add_patch(Rectangle((b - 0.5, a - 0.5), 1, 1, fill=False, ec=colors["strong"], lw=1.5))
    noun = matrix.ends.removesuffix("s")
    axes.set(xlabel=f"to {noun}", ylabel=f"from {noun}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(9, integer=True))
    names = rank_names(range(len(matrix.values)), matrix.hosts)
    axes.yaxis.set_major_formatter(lambda at, _: _text(names[int(at)]) if 0 <= at < len(names) else "")
    bar = figure.colorbar(image, ax=axes, shrink=0.6, ticks=sorted({low, math.sqrt(low * high), high}))
    bar.ax.set_yticklabels([_figure(matrix.unit, tick) for tick in bar.get_ticks()])
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)


# ---- axes -----------------------------------------------------------------------------------------------------------


def _scale(axes: Axes, axis: Axis, which: str, view: View, colors: dict[str, str]) -> None:
    """Set title, scale and ticks of the axis "x" or "y"."""
    from matplotlib import dates, ticker

    drawn = axes.xaxis if which == "x" else axes.yaxis
    drawn.set_label_text(axis.title, color=colors["soft"])
    if axis.scale == "names":
        drawn.set_ticks(range(len(view.names)), [_text(name, 60) for name in view.names], color=colors["ink"])
        axes.set_ylim(len(view.names) - 0.5, -0.5)  # from the top down
        return
    drawn.grid(visible=True, color=colors["hair"], lw=0.8)
    if axis.scale.startswith("log"):
        base = 2 if axis.scale == "log2" else 10
        (axes.set_xscale if which == "x" else axes.set_yscale)("log", base=base)
        low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
        decades = math.log10(high / low)
        factors = (1.0,) if base == 2 or decades > 2.5 else (1.0, 2.0, 5.0)
        is_short = base == 10 and decades < 1
        drawn.set_major_locator(ticker.MaxNLocator(5) if is_short else ticker.LogLocator(base, factors, numticks=9))
        drawn.set_minor_locator(ticker.NullLocator())
    elif axis.scale == "tail":
        shares = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
        drawn.set_major_locator(ticker.FixedLocator([_at(axis, share) for share in shares]))
        drawn.set_major_formatter(lambda at, _: f"{100 * (1 - 10**-at):.6g} %")
    elif axis.scale == "time":
        locator = dates.AutoDateLocator()  # type: ignore[no-untyped-call]
        drawn.set_major_locator(locator)
        drawn.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    else:
        (axes.set_xlim if which == "x" else axes.set_ylim)(0, None)
    if axis.scale not in ("tail", "time"):
        drawn.set_major_formatter(lambda value, _: _figure(axis.unit, value))


def _figure(unit: Unit, value: float) -> str:
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


def _text(text: str, most: int = 44) -> str:
    """A text that may come from outside, on one line; of a long one both ends, since the run comes last."""
    line = " ".join(printable(text).split())
    return line if len(line) <= most else f"{line[: most - 9]}…{line[-8:]}"
