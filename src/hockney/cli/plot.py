"""Plots in a terminal or a pipe: several curves over message size, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.cli import render
from hockney.cli.streams import print_line
from hockney.units import format_bytes, format_ns, format_rate

_MARKS = "ox+*#@%&=$abcdefghijklmnpqrstuvwyz"
_HEIGHT = 22
_TICKS_MAX = 9
_FORMATS: dict[str, Callable[[float], str]] = {"ns": format_ns, "bytes/s": format_rate}


@dataclass(frozen=True)
class PlotCurve:
    """Values at message sizes in bytes. What a logarithm cannot show (0 B, no positive value) is left out."""

    label: str
    sizes: Sequence[int]
    values: Sequence[float]

    @property
    def points(self) -> list[tuple[float, float]]:
        """Logarithms of sizes and values."""
        pairs = zip(self.sizes, self.values, strict=True)
        return [(math.log2(size), math.log10(value)) for size, value in pairs if size > 0 and value > 0]


def print_plot(title: str, curves: Sequence[PlotCurve], unit: str) -> None:
    """Print a plot as wide as the screen, with a mark for each curve; `unit` is "ns", "bytes/s" or another text."""
    drawn = [(mark, curve) for mark, curve in zip(_MARKS, (curve for curve in curves if curve.points), strict=False)]
    if not drawn:
        return
    import plotext  # 0.4 s

    text: Callable[[float], str] = _FORMATS.get(unit) or (lambda value: f"{value:,.3g} {unit}".strip())
    figure: Any = plotext.figure
    figure.clear()
    plotext.terminal.limit(False, False)
    figure.plot_size(render.line_width(), _HEIGHT)
    figure.theme("default" if render.is_colored() else "colorless")
    figure.canvas("default")
    for mark, curve in drawn:
        figure.draw(figure.signal(*map(list, zip(*curve.points, strict=True)), marker=mark))
    sizes, values = zip(*(point for _, curve in drawn for point in curve.points), strict=True)
    figure.ruler("x").ticks(_ticks(sizes), [format_bytes(2**tick) for tick in _ticks(sizes)])
    figure.ruler("y").ticks(_ticks(values), [text(10.0**tick) for tick in _ticks(values)])
    render.title(title)
    for line in figure.build().string(colorless=not render.is_colored()).rstrip("\n").split("\n"):
        if render.is_colored():
            print(line)
        else:
            print_line(line.rstrip())
    render.note("   ".join(f"{mark} {curve.label}" for mark, curve in drawn))


def _ticks(logarithms: Sequence[float]) -> list[int]:
    first, last = math.floor(min(logarithms)), math.ceil(max(logarithms))
    return list(range(first, last + 1, max(1, math.ceil((last - first) / (_TICKS_MAX - 1)))))
