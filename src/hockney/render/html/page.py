"""Puts values, styles and scripts into one page. Outside text is escaped; the policy forbids the rest."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hockney.render.drawing import drawn_view
from hockney.render.svg import STYLE, light_colors, svg
from hockney.render.terminal import whole
from hockney.report.page import ReportPage
from hockney.units import printable

_FOLDER = Path(__file__).parent
_SCRIPTS = ("vendor/echarts.min.js", "js/base.js", "js/draw.js", "js/curves.js", "js/matrix.js", "js/page.js")


def html_page(page: ReportPage) -> str:
    """The page as text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    colors = {name: f"var(--{name})" for name in light_colors()}
    scripts = [_inlined(name) for name in _SCRIPTS]
    style = _inlined(STYLE.name)
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["prose"] = _prose
    environment.filters["kind"] = lambda block: type(block).__name__
    return environment.get_template("page.html.jinja").render(
        page.sections,
        policy=policy(scripts, style),
        style=Markup(style),  # our own file
        scripts=[Markup(script) for script in scripts],
        data=Markup(json_block(page.data)),  # nothing in it ends the element
        json_attribute=lambda value: json.dumps(_clean(value)),
        static=lambda chart: Markup(svg(drawn_view(chart, chart.views[0], page.color_of), colors)),  # escapes its texts
    )


def _shown(value: Any) -> Any:
    """A value of the page's; a text from outside without characters that steer a reader's screen."""
    return _whole(printable(value)) if isinstance(value, str) and not hasattr(value, "__html__") else value  # our own


def _whole(text: str) -> str:
    """With hard blanks before units; an interval may be on the next line."""
    return whole(text).replace("\N{NO-BREAK SPACE}±", " ±")


def _prose(text: str) -> Any:
    """A sentence, with text in backquotes as code."""
    from markupsafe import Markup, escape

    parts = str(escape(_whole(printable(text)))).split("`")
    if len(parts) % 2 == 0:  # a single one is no quotation
        return Markup("`".join(parts))  # escaped above
    return Markup("".join(_code(part) if number % 2 else part for number, part in enumerate(parts)))


def _code(command: str) -> str:
    """A command whose words are broken only where a line has no room for one."""
    return f"<code>{' '.join(f'<span>{word}</span>' for word in command.split(' '))}</code>"


def policy(scripts: list[str], style: str) -> str:
    """The Content-Security-Policy: only inlined scripts may run, and nothing may be loaded."""
    hashes = " ".join(f"'{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def json_block(data: Mapping[str, Any]) -> str:
    """JSON that is safe in a script element with any text in it."""
    text = json.dumps(_clean(data), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _clean(value: Any) -> Any:
    """Without characters that steer a reader's screen, in texts and in names of keys."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(str(name)): _clean(each) for name, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list | tuple) else value


def _inlined(name: str) -> str:
    text = (_FOLDER / name).read_text(encoding="utf-8")
    if re.search(r"</(script|style)", text, re.IGNORECASE):
        raise ValueError(f"{name} ends its own element")
    return text


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
