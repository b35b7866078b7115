"""Drawings as SVG: a file, or a part of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from hockney.render.drawing import Drawing, Mark
from hockney.units import printable

STYLE = Path(__file__).parent / "html" / "page.css"  # of the page, which also has the colours of drawings
_FONTS = "Helvetica, Arial, Liberation Sans, sans-serif"


def light_colors() -> dict[str, str]:
    """The colours of the light theme, by name."""
    return dict(re.findall(r"--([\w-]+): light-dark\((#\w+)", STYLE.read_text(encoding="utf-8")))


def svg(drawing: Drawing, colors: Mapping[str, str], *, is_file: bool = False) -> str:
    """The element; `colors` by their names. A file has its size, fonts, and paper."""
    head = f'viewBox="0 0 {drawing.width:g} {drawing.height:g}" font-size="12"'
    if is_file:
        ends = f'width="{drawing.width:g}" height="{drawing.height:g}"'
        paper = f'<rect width="100%" height="100%" fill="{colors["paper"]}"/>'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {head} {ends} font-family="{_FONTS}">{paper}'
    else:
        head = f'<svg {head} aria-hidden="true">'
    return "\n".join([head, *_elements(drawing.marks, colors), "</svg>"]) + "\n"


def _elements(marks: Sequence[Mark], colors: Mapping[str, str]) -> Iterator[str]:
    for mark in marks:
        paint = "#{:02x}{:02x}{:02x}".format(*mark.rgb) if mark.rgb else colors[mark.color]
        faint = f' opacity="{mark.opacity:g}"' if mark.opacity < 1 else ""
        if mark.kind == "text":
            (x, y), bold = mark.points[0], ' font-weight="600"' * mark.is_bold
            anchor = f' text-anchor="{mark.anchor}"' if mark.anchor != "start" else ""
            yield f'<text x="{x:.5g}" y="{y:.5g}" fill="{paint}"{anchor}{bold}>{escape(printable(mark.text))}</text>'
        elif mark.kind == "dot":
            fill = (
                f'fill="{colors["paper"]}" stroke="{paint}" stroke-width="2"' if mark.is_hollow else f'fill="{paint}"'
            )
            yield f'<circle cx="{mark.points[0][0]:.5g}" cy="{mark.points[0][1]:.5g}" r="{mark.width:g}" {fill}/>'
        elif mark.points:
            path = "M" + "L".join(f"{x:.5g} {y:.5g}" for x, y in mark.points)
            dash = f' stroke-dasharray="{mark.dash}"' if mark.dash else ""
            line = f'fill="none" stroke="{paint}" stroke-width="{mark.width:g}" stroke-linejoin="round"{dash}'
            look = line if mark.kind == "line" else f'fill="{paint}"'
            yield f'<path d="{path}" {look}{faint}/>'
