"""Draws a chart of the HTML report with matplotlib, an optional extra.

Colours are the page's. Lines are labelled at their ends; a legend holds the labels without room.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hockney.report.html.charts import Axis, Chart, Line, Unit, View
from hockney.report.html.page import light_colors
from hockney.report.html.pairs import matrix_times_ns
from hockney.units import format_bytes, format_ns, format_rate, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hockney.analysis.pairs import PairMatrix

_MARKS = "os^D"
_VERDICTS = {"slower": "c1", "faster": "c0", "inconclusive": "c7", "no difference seen": "c2"}
_RAMP = ("#fde78c", "#cbba69", "#968f76", "#6b6a76", "#3e4a6c", "#00204d")  # from light to dark, as on the page
_WIDTH_IN, _HEIGHT_IN, _ROW_IN = 8.0, 4.6, 0.26
_Box = tuple[float, float, float, float]  # left, low, right, high


@dataclass(frozen=True)
class Picture:
    """A view of a chart, or a matrix; `name` is that of its file, `source` names the run."""

    name: str
    chart: Chart | None
    view: View
    source: str = ""
    matrix: PairMatrix | None = None


def drawn(picture: Picture, places: Mapping[str, int]) -> Figure:
    """The picture; `places` are those of the transports in the list of colours."""
    from matplotlib.figure import Figure

    colors = light_colors()
    chart, view = picture.chart, picture.view
    rows = len(view.names)
    height = _WIDTH_IN * 0.7 if chart is None else rows * _ROW_IN + 0.4 if rows else _HEIGHT_IN
    figure = Figure(figsize=(_WIDTH_IN, height))
    axes = figure.add_axes((0, 0, 1, 1))
    if chart is None:
        assert picture.matrix is not None
        _draw_matrix(figure, axes, picture.matrix)
        title, note = "Half a round trip of all pairs of ranks", "Framed pairs are outliers."
        note = note if picture.matrix.outliers else ""
    else:
        title, note = chart.title, chart.note
        _draw_chart(axes, replace(chart, y=view.y or chart.y), view, places, colors)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(chart is None)
    for spine in axes.spines.values():
        spine.set_color(colors["faint"])
    axes.tick_params(which="both", length=0, labelcolor=colors["soft"])
    top = [(title, 12, "bold", colors["ink"])]
    top += [(view.name, 10, "normal", colors["soft"])] if view.name else []
    y_title = (view.y or chart.y).title if chart is not None else ""
    top += [(y_title, 9, "normal", colors["soft"])] if y_title else []
    offset = 10.0
    for text, size, weight, color in reversed(top):
        axes.annotate(
            _text(text, 110),
            (0, 1),
            (0, offset),
            "axes fraction",
            textcoords="offset points",
            fontsize=size,
            fontweight=weight,
            color=color,
            va="bottom",
            ha="left",
        )
        offset += 1.7 * size
    _caption(axes, chart, [*textwrap.wrap(printable(note), 132), _text(picture.source, 120)], colors)
    return figure


def _caption(axes: Axes, chart: Chart | None, texts: list[str], colors: dict[str, str]) -> None:
    """A legend of the lines without a label in the picture, and the note, below the axes."""
    depth = 44.0 if chart is None or chart.x.title else 28.0
    handles, names = axes.get_legend_handles_labels()
    if handles:
        columns = max(1, min(len(names), 110 // (max(map(len, names)) + 8)))
        height = 72 * axes.figure.get_figheight()  # type: ignore[union-attr]
        axes.legend(
            handles,
            names,
            loc="upper left",
            bbox_to_anchor=(0, -depth / height),
            ncols=columns,
            frameon=False,
            borderaxespad=0,
            borderpad=0,
            labelcolor=colors["ink"],
            handlelength=1.4,
        )
        depth += 13.5 * -(-len(names) // columns) + 6
    axes.annotate(
        "\n".join(filter(None, texts)),
        (0, 0),
        (0, -depth),
        "axes fraction",
        textcoords="offset points",
        fontsize=8,
        color=colors["soft"],
        va="top",
        ha="left",
        linespacing=1.35,
    )


def _draw_chart(axes: Axes, chart: Chart, view: View, places: Mapping[str, int], colors: dict[str, str]) -> None:
    looks = [
        _look(number if line.transport is None else places.get(line.transport, number), line, colors)
        for number, line in enumerate(view.lines)
    ]
    axes.set_axisbelow(True)
    axes.margins(0.08 if chart.kind == "points" else 0.04)
    if chart.kind == "bars":
        _draw_bars(axes, view, looks, colors)
    elif chart.kind == "intervals":
        _draw_intervals(axes, view, colors)
    elif chart.kind == "points":
        for line, (color, mark) in zip(view.lines, looks, strict=True):
            is_published = line.kind == "published"
            x, y = [point[0] for point in line.points], [point[1] for point in line.points]
            ink = colors["soft"] if is_published else color
            if line.kind == "reference":
                axes.plot(x, y, "--", color=ink, lw=1.0)
                continue
            axes.plot(x, y, "o" if is_published else mark, ms=6, mew=1.5, mec=ink, mfc="white" if is_published else ink)
    else:
        _draw_lines(axes, chart, view, looks)
    _scale(axes, chart, view, "x", colors)
    _scale(axes, chart, view, "y", colors)
    if chart.kind == "points":
        _label_points(axes, view, looks, colors)
    elif chart.kind == "lines":
        _label_ends(axes, chart, view, looks)


def _look(place: int, line: Line, colors: dict[str, str]) -> tuple[str, str]:
    place = place if line.color is None else line.color
    ink = colors["soft"] if line.kind == "reference" else colors[f"c{place % 10}"]
    return ink, _MARKS[place % len(_MARKS)]


def _at(axis: Axis, value: float) -> float:
    """The place of a value on its axis: for tails the number of nines, for dates days, as matplotlib requires."""
    if axis.scale == "tail":
        return -math.log10(max(1 - value, 1e-9))
    return value / 86400 if axis.scale == "time" else value


def _places(chart: Chart, line: Line) -> list[tuple[float, float, float | None, float | None]]:
    """The points that can be drawn: logarithms have no zero."""
    return [
        (_at(chart.x, x), _at(chart.y, y), low, high)
        for x, y, low, high in line.points
        if (x > 0 or not chart.x.scale.startswith("log")) and (y > 0 or not chart.y.scale.startswith("log"))
    ]


def _draw_lines(axes: Axes, chart: Chart, view: View, looks: Sequence[tuple[str, str]]) -> None:
    styles: dict[str | None, int] = {}
    for line, (color, mark) in zip(view.lines, looks, strict=True):
        points = _places(chart, line)
        x, y = [point[0] for point in points], [point[1] for point in points]
        if line.kind == "published":
            axes.plot(x, y, mark, ms=6, mew=1.5, mec=color, mfc="white", label=_text(line.name), zorder=4)
            continue
        of_transport = styles.get(line.transport, 0) if line.transport else 0  # of further runs
        styles[line.transport] = of_transport + 1
        dash = "--" if line.kind in ("model", "reference") else ("-", "--", ":")[of_transport % 3]
        has_marks = line.kind == "measured" and chart.y.scale != "tail" and len(points) <= 100
        axes.plot(x, y, dash, color=color, lw=1.0 if line.kind == "reference" else 1.6, marker=mark * has_marks, ms=3.5)
        low = [each[2] or math.nan for each in points]  # a band ends where there is no interval
        high = [each[3] or math.nan for each in points]
        axes.fill_between(x, low, high, color=color, alpha=0.16, lw=0)


def _draw_bars(axes: Axes, view: View, looks: Sequence[tuple[str, str]], colors: dict[str, str]) -> None:
    begin = [0.0] * len(view.names)
    for line, (color, _) in zip(view.lines, looks, strict=True):
        rows = [int(point[1]) for point in line.points]
        ink = colors["floor"] if line.transport is None and line.name == "floor" else color
        widths = [point[0] for point in line.points]
        left = [begin[row] for row in rows]
        axes.barh(rows, widths, 0.72, left=left, color=ink, edgecolor="white", lw=0.5, label=_text(line.name))
        for row, width in zip(rows, widths, strict=True):
            begin[row] += width


def _draw_intervals(axes: Axes, view: View, colors: dict[str, str]) -> None:
    axes.axvline(1, color=colors["soft"], lw=0.8)
    for line in view.lines:
        color = colors[_VERDICTS.get(line.name, "c7")]
        rows = [point[1] for point in line.points]
        ends = [point[0] if point[2] is None else point[2] for point in line.points]
        axes.hlines(rows, ends, [p[0] if p[3] is None else p[3] for p in line.points], color=color, lw=2.2, alpha=0.55)
        axes.plot([point[0] for point in line.points], rows, "o", ms=5, color=color, label=_text(line.name))


def _draw_matrix(figure: Figure, axes: Axes, matrix: PairMatrix) -> None:
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import MaxNLocator

    times_ns = matrix_times_ns(matrix)
    low, high = float(np.nanmin(times_ns)), float(np.nanmax(times_ns))
    ramp = LinearSegmentedColormap.from_list("ramp", _RAMP)
    image = axes.imshow(times_ns, cmap=ramp, norm=LogNorm(low, max(high, low * 1.01)), interpolation="nearest")
    for outlier in matrix.outliers:
        if len(outlier.ranks) == 2:
            for a, b in (outlier.ranks, outlier.ranks[::-1]):
                axes.add_patch(Rectangle((b - 0.5, a - 0.5), 1, 1, fill=False, ec=light_colors()["strong"], lw=1.5))
    axes.set_xlabel("to rank")
    axes.set_ylabel("from rank")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(9, integer=True))
    bar = figure.colorbar(image, ax=axes, shrink=0.6, ticks=sorted({low, math.sqrt(low * high), high}))
    bar.ax.set_yticklabels([format_ns(tick) for tick in bar.get_ticks()])
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)


# ---- axes and labels ------------------------------------------------------------------------------------------------


def _scale(axes: Axes, chart: Chart, view: View, which: str, colors: dict[str, str]) -> None:
    from matplotlib import dates, ticker

    axis = chart.x if which == "x" else chart.y
    drawn = axes.xaxis if which == "x" else axes.yaxis
    if which == "x" and axis.title:
        axes.set_xlabel(axis.title, color=colors["soft"])
    if axis.scale == "names":
        drawn.set_ticks(range(len(view.names)), [_text(name, 60) for name in view.names], color=colors["ink"])
        axes.set_ylim(len(view.names) - 0.5, -0.5)  # from the top down
        return
    if which == "y" or chart.kind != "lines":
        drawn.grid(visible=True, color=colors["hair"], lw=0.8)
    if axis.scale.startswith("log"):
        base = 2 if axis.scale == "log2" else 10
        (axes.set_xscale if which == "x" else axes.set_yscale)("log", base=base)
        low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
        decades = math.log10(high / low)
        factors = (1.0,) if base == 2 or decades > 2.5 else (1.0, 3.0) if decades > 1.2 else (1.0, 2.0, 5.0)
        drawn.set_major_locator(ticker.LogLocator(base, factors, numticks=9))
        if decades < 0.5 and base == 10:
            drawn.set_major_locator(ticker.MaxNLocator(5))
        drawn.set_minor_locator(ticker.NullLocator())
    elif axis.scale == "tail":
        shares = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
        drawn.set_major_locator(ticker.FixedLocator([_at(axis, share) for share in shares]))
        drawn.set_major_formatter(ticker.FuncFormatter(lambda at, _: f"{100 * (1 - 10**-at):.6g} %"))
        return
    elif axis.scale == "time":
        first, last = axes.dataLim.intervalx
        margin = max(0.04 * (last - first), 0.5 / 24)  # half an hour
        axes.set_xlim(first - margin, last + margin)
        locator = dates.AutoDateLocator()  # type: ignore[no-untyped-call]
        drawn.set_major_locator(locator)
        drawn.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        return
    else:
        (axes.set_xlim if which == "x" else axes.set_ylim)(0, None)
    drawn.set_major_formatter(ticker.FuncFormatter(lambda value, _: _figure(axis.unit, value)))


def _figure(unit: Unit, value: float) -> str:
    """The text of a tick, without trailing zeros: `1 us`, `64 KiB`, `50 %`."""
    if unit == "bytes":
        return format_bytes(round(value))
    if unit == "share":
        return f"{100 * value:.4g} %"
    if unit in ("ns", "bytes/s"):
        text = "0 " if not value else (format_ns if unit == "ns" else format_rate)(value)
        number, _, name = text.partition(" ")
        return f"{float(number):g} {name}".strip()
    return f"×{value:.3g}" if unit == "ratio" else f"{value:.4g}"


def _label_ends(axes: Axes, chart: Chart, view: View, looks: Sequence[tuple[str, str]]) -> None:
    """The name of each line to the right of its end, moved up or down where two would overlap."""
    labels = []
    for line, (color, _) in zip(view.lines, looks, strict=True):
        points = _places(chart, line)
        if points and line.kind != "published":
            end = points[-1][:2]
            labels.append((_of_axes(axes, *end)[1], end, line.name.removesuffix(", model"), color))
    labels.sort()
    gap = 11.5 / 72 / axes.figure.get_figheight()  # type: ignore[union-attr]
    heights = _spread_out([label[0] for label in labels], gap)
    for (_, end, name, color), height in zip(labels, heights, strict=True):
        axes.annotate(
            _text(name),
            end,
            (1.015, height),
            "data",
            textcoords="axes fraction",
            color=color,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color, "lw": 0.6, "alpha": 0.6, "shrinkA": 1, "shrinkB": 2},
        )


def _of_axes(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """Where a point lies: (0, 0) is the lower left corner of the axes, (1, 1) the upper right one."""
    axes.get_xlim(), axes.get_ylim()  # fits the limits to all that is drawn
    across, up = axes.transAxes.inverted().transform(axes.transData.transform((x, y)))
    return float(across), float(up)


def _spread_out(values: Sequence[float], gap: float) -> list[float]:
    """Ascending values from 0 to 1, moved until neighbours have the given distance; beyond 1 if there is no room."""
    moved: list[float] = []
    for value in values:
        moved.append(max(value, moved[-1] + gap) if moved else max(value, 0.0))
    ceiling = max(1.0, gap * (len(values) - 1))
    for place in reversed(range(len(moved))):
        moved[place] = min(moved[place], ceiling)
        ceiling = moved[place] - gap
    return moved


def _label_points(axes: Axes, view: View, looks: Sequence[tuple[str, str]], colors: dict[str, str]) -> None:
    """The name of each line of one point next to it, at the first place that is free; to its right if none is."""
    wide_in, high_in = _WIDTH_IN, axes.figure.get_figheight()  # type: ignore[union-attr]
    point = (1 / 72 / wide_in, 1 / 72 / high_in)  # a point of type, as a share of the axes
    named = [(line, look) for line, look in zip(view.lines, looks, strict=True) if len(line.points) == 1]
    at = [_of_axes(axes, *line.points[0][:2]) for line, _ in named]
    marks = [(x - 5 * point[0], y - 5 * point[1], x + 5 * point[0], y + 5 * point[1]) for x, y in at]
    taken: list[_Box] = []
    for number, ((line, (color, _)), (x, y)) in enumerate(zip(named, at, strict=True)):
        name = _text(line.name)
        wide, high, gap = 5.4 * len(name) * point[0], 11 * point[1], 7 * point[0]
        corners = [(left, y + up * high) for up in (-0.5, 0.4, -1.4, 1.3, -2.3) for left in (x + gap, x - gap - wide)]
        corners += [(x - wide / 2, y + 0.7 * high), (x - wide / 2, y - 1.7 * high)]
        boxes = [(left, low, left + wide, low + high) for left, low in corners]
        others = [*taken, *marks[:number], *marks[number + 1 :]]
        free = next((box for box in boxes if box[0] >= 0 and not any(_overlap(box, o) for o in others)), boxes[0])
        taken.append(free)
        ink = colors["soft"] if line.kind == "published" else color
        axes.text(free[0], (free[1] + free[3]) / 2, name, transform=axes.transAxes, color=ink, va="center")


def _overlap(box: _Box, other: _Box) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def _text(text: str, most: int = 44) -> str:
    """A text that may come from outside, on one line; of a long one both ends, since the run comes last."""
    line = " ".join(printable(text).split())
    return line if len(line) <= most else f"{line[: most - 9]}…{line[-8:]}"
