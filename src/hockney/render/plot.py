"""Plots in a terminal or a pipe: several curves over message size, both axes logarithmic, or over dates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hockney.render.heat import formatter
from hockney.render.terminal import is_colored, line_width, wrapped
from hockney.report.document import Plot
from hockney.units import format_bytes, local_time

_MARKS = "ox+*#@%&=$abcdefghijklmnpqrstuvwyz"
_HEIGHT = 22
_Drawn = tuple[str, tuple[str, Sequence[tuple[float, float]]]]  # a mark, and its curve with the name


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
    text = formatter(unit)
    sizes, values = zip(*(point for _, (_, points) in drawn for point in points), strict=True)
    across = {float(tick): format_bytes(2**tick) for tick in _ticks(sizes)}
    up = {float(tick): text(10.0**tick) for tick in _ticks(values)}
    under = _hidden([curve for _, curve in drawn], (max(values) - min(values)) / _HEIGHT)
    return [*_drawn(drawn, across, up), *(wrapped(f"Hidden: {'; '.join(under)}.", rest="  ") if under else [])]


def plot_dates(plot: Plot) -> list[str]:
    """Curves over dates, the first above the others. Values far from the usual ones are at the edge."""
    known = sorted(value for points in plot.curves.values() for _, value in points)
    low, high = known[len(known) // 20], known[-1 - len(known) // 20]
    room = (high - low or abs(high) or 1.0) / 4
    low, high = max(low - room, known[0]), min(high + room, known[-1])
    dates = [date for points in plot.curves.values() for date, _ in points]
    first, span = min(dates), max(1, max(dates) - min(dates))
    rows = [low + (high - low) * row / _HEIGHT for row in range(_HEIGHT + 1)]
    drawn: list[_Drawn] = [
        (mark, (name, [(float(date - first), min(max(value, low), high)) for date, value in points]))
        for mark, (name, points) in zip(_MARKS, plot.curves.items(), strict=False)
    ]
    changes = [(float(mark - first), row) for mark in plot.marks for row in rows]
    drawn = [*([("|", ("change", changes))] if changes else []), *reversed(drawn)]
    days = {span * step / 4: local_time(first + span * step / 4).partition(" ")[0] for step in range(5)}
    text = formatter(plot.unit)
    return _drawn(drawn, days, {value: text(value) for value in rows[:: _HEIGHT // 4]})


def _drawn(drawn: Sequence[_Drawn], across: Mapping[float, str], up: Mapping[float, str]) -> list[str]:
    """The lines of curves, each with its mark, and their legend; the ticks of both axes have texts."""
    import plotext  # 0.4 s

    figure: Any = plotext.figure
    figure.clear()
    plotext.terminal.limit(False, False)
    figure.plot_size(line_width(), _HEIGHT)
    figure.theme("default" if is_colored() else "colorless")
    figure.canvas("default")
    for mark, (_, points) in drawn:
        figure.draw(figure.signal(*map(list, zip(*points, strict=True)), marker=mark))
    for axis, ticks in (("x", across), ("y", up)):
        figure.ruler(axis).ticks([*ticks], [*ticks.values()])
    lines = figure.build().string(colorless=not is_colored()).rstrip("\n").split("\n")
    whole = (f"{mark} {label}".replace(" ", "\N{NO-BREAK SPACE}") for mark, (label, _) in drawn)
    return [line if is_colored() else line.rstrip() for line in lines] + wrapped("   ".join(whole), rest="  ")


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
