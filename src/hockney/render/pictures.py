"""Drawings as SVG, for files and for the page, and as PNG, which needs matplotlib, an optional extra."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hockney.errors import HockneyError, UsageError
from hockney.render.drawing import Drawing, drawn
from hockney.render.svg import light_colors, svg
from hockney.report.charts import Picture
from hockney.units import printable

_AT_ONCE, _PICTURE_S = 50, 0.15
_DPI = 96


def write_pictures(
    pictures: Sequence[Picture], color_of: Mapping[str, int], folder: Path, form: str, say: Callable[[str], None]
) -> int:
    """Write a file for each picture; returns their size in bytes. Raises UsageError for png without matplotlib.

    `say` announces many pictures, with the time that they take.
    """
    write = writer(form)
    if form == "png" and len(pictures) > _AT_ONCE:
        say(f"{len(pictures)} pictures, about {_PICTURE_S * len(pictures):.0f} s")
    try:
        folder.mkdir(exist_ok=True)
        return sum(write(drawn(picture, color_of), folder / f"{picture.name}.{form}") for picture in pictures)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise HockneyError(f"cannot write pictures to {folder}: {why}") from error


def writer(form: str) -> Callable[[Drawing, Path], int]:
    """What writes a drawing to a file and returns its size in bytes. Raises UsageError for png without matplotlib."""
    if form == "svg":
        return lambda drawing, path: path.write_text(svg(drawing, light_colors(), is_file=True), encoding="utf-8")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"--format {form} needs matplotlib: install it with {shlex.quote(sys.executable)} -m pip install matplotlib"
        ) from error
    return _write_png


def _write_png(drawing: Drawing, path: Path) -> int:
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Polygon

    colors = light_colors()
    figure = Figure(figsize=(drawing.width / _DPI, drawing.height / _DPI))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0))
    axes.axis("off")
    for mark in drawing.marks:
        paint = "#{:02x}{:02x}{:02x}".format(*mark.rgb) if mark.rgb else colors[mark.color]
        x, y = zip(*mark.points, strict=True) if mark.points else ((), ())
        if mark.kind == "text":
            ends = {"start": "left", "middle": "center", "end": "right"}
            weight = "bold" if mark.is_bold else "normal"
            text = printable(mark.text)
            axes.text(x[0], y[0], text, color=paint, ha=ends[mark.anchor], size=9, weight=weight, parse_math=False)
        elif mark.kind == "area":
            axes.add_patch(Polygon(mark.points, color=paint, alpha=mark.opacity, lw=0))
        else:
            dots = mark.kind == "dot"
            dash = (0, tuple(float(part) for part in mark.dash.split())) if mark.dash else "-"
            face = colors["paper"] if mark.is_hollow else paint
            style = {"marker": "o", "ms": 1.5 * mark.width, "mfc": face} if dots else {"ls": dash}
            axes.add_line(Line2D(x, y, color=paint, lw=0.75 * (2 if dots else mark.width), alpha=mark.opacity, **style))
    with rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # a name may be in any language
        figure.savefig(path, dpi=1.5 * _DPI)
    return path.stat().st_size
