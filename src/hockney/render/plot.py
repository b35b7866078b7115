"""Plots in a terminal or a pipe: several curves over message size, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hockney.render.heat import formatter
from hockney.render.terminal import is_colored, line_width, wrapped
from hockney.units import format_bytes

_MARKS = "ox+*#@%&=$abcdefghijklmnpqrstuvwyz"
_HEIGHT = 22


def plot_lines(curves: Mapping[str, Sequence[tuple[int, float]]], unit: str) -> list[str]:
    """Curves of (size in bytes, value) as wide as the screen; `unit` is "ns", "bytes/s" or another text.

    Points without a logarithm (0 B, no positive value) are left out.
    """
    logarithms = {
        label: [(math.log2(size), math.log10(value)) for size, value in points if size > 0 and value > 0]
        for label, points in curves.items()
    }
    drawn = list(zip(_MARKS, ((label, points) for label, points in logarithms.items() if points), strict=False))
    if not drawn:
        return []
    import plotext  # 0.4 s

    text = formatter(unit)
    figure: Any = plotext.figure
    figure.clear()
    plotext.terminal.limit(False, False)
    figure.plot_size(line_width(), _HEIGHT)
    figure.theme("default" if is_colored() else "colorless")
    figure.canvas("default")
    for mark, (_, points) in drawn:
        figure.draw(figure.signal(*map(list, zip(*points, strict=True)), marker=mark))
    sizes, values = zip(*(point for _, (_, points) in drawn for point in points), strict=True)
    figure.ruler("x").ticks(_ticks(sizes), [format_bytes(2**tick) for tick in _ticks(sizes)])
    figure.ruler("y").ticks(_ticks(values), [text(10.0**tick) for tick in _ticks(values)])
    lines = figure.build().string(colorless=not is_colored()).rstrip("\n").split("\n")
    whole = (f"{mark} {label}".replace(" ", "\N{NO-BREAK SPACE}") for mark, (label, _) in drawn)
    under = _hidden([curve for _, curve in drawn], (max(values) - min(values)) / _HEIGHT)
    legend = ["   ".join(whole), *([f"Hidden: {'; '.join(under)}."] if under else [])]
    above = lines if is_colored() else [line.rstrip() for line in lines]
    return above + [line for text in legend for line in wrapped(text, rest="  ")]


def _hidden(curves: Sequence[tuple[str, Sequence[tuple[float, float]]]], row: float) -> list[str]:
    """`shm under threads`: curves of which most points are within a row of one that is drawn later."""
    hidden = []
    for number, (label, points) in enumerate(curves):
        for above, others in curves[number + 1 :]:
            values = dict(others)
            if sum(size in values and abs(value - values[size]) <= row / 2 for size, value in points) > len(points) / 2:
                hidden.append(f"{label} under {above}")
                break
    return hidden


def _ticks(logarithms: Sequence[float]) -> list[int]:
    """At most nine."""
    first, last = math.floor(min(logarithms)), math.ceil(max(logarithms))
    return list(range(first, last + 1, max(1, math.ceil((last - first) / 8))))
