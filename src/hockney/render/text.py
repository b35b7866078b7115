"""Prints documents: tables and colours on a terminal, aligned plain text in a pipe.

Plain text has no box characters and no escape codes. In a pipe a table row is one line for grep and awk, unless COLUMNS
sets a width.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import click

from hockney.render import terminal
from hockney.render.heat import figure_table, heat_lines
from hockney.render.plot import plot_dates, plot_lines
from hockney.render.streams import print_line
from hockney.render.tables import table_lines
from hockney.render.terminal import is_colored, is_fitted, line_width, text_width, wrapped
from hockney.report.document import (
    Block,
    Bullet,
    Document,
    Item,
    Matrix,
    More,
    Plot,
    Section,
    Sentence,
    Table,
    Text,
    Title,
    Tone,
)
from hockney.units import counted, printable

_CUT = " …"
_WIDTH = 100  # columns of a line that `lines_max` counts
_FIGURES_MAX = 8  # rows of a matrix of figures; a larger one is a heat map
_STYLES: dict[Tone, dict[str, Any]] = {
    "strong": {"bold": True},
    "quiet": {"dim": True},
    "caution": {"fg": "yellow"},
    "error": {"fg": "red"},
}


def show(document: Document | Iterable[Block]) -> None:
    """Print a document, in at most `lines_max` lines if it has this limit."""
    if not isinstance(document, Document):
        document = Document(tuple(document))
    write = print if is_colored() else print_line
    for line in (line for lines in fit(document) for line in lines):
        write(line)


def say(text: str) -> None:
    """Print one sentence."""
    show([Sentence(text)])


def fit(document: Document) -> list[list[str]]:
    """The lines of each block; blocks with the highest priority are left out until all lines fit."""
    shown = [(block, _lines(block, is_first=number == 0)) for number, block in enumerate(document.blocks)]
    left_out: list[Block] = []
    if document.lines_max is not None:
        room = max(document.lines_max, document.lines_max * _WIDTH // line_width())  # a narrow screen needs more lines
        for each in sorted((each for each in shown if each[0].priority), key=lambda each: -each[0].priority):
            if sum(len(lines) for _, lines in shown) <= room:
                break
            shown.remove(each)
            left_out.append(each[0])
    counts: Counter[str] = Counter()
    for block in left_out:
        counts[block.noun] += block.count * bool(block.noun)
    for block, lines in shown:
        if isinstance(block, More):
            is_cut = any(line.endswith(_CUT) for other, cut in shown if isinstance(other, Bullet) for line in cut)
            more = [counted(count, noun) for noun, count in (Counter(block.counts) + counts).items()]
            text = ", ".join(more + ["the rest of each cut line"] * is_cut)
            lines[:] = _styled(wrapped(f"More with {block.option}: {text}.", rest="  "), "quiet") if text else []
    return [lines for _, lines in shown]


def _lines(block: Block, *, is_first: bool = False) -> list[str]:
    """The lines of a block; a title has a blank line above unless it is the first block."""
    match block:
        case Title(text=text, end=end):
            return [""] * (not is_first) + _title(text, end)
        case Sentence(text=text):
            return _styled(wrapped(text) if terminal.is_terminal() else [text])
        case Text(text=text, tone=tone, is_cut=is_cut):
            return _styled([_shortened(text)] if is_cut else wrapped(text, rest="  "), tone)
        case Item(text=text, head=head, tone=tone):
            return _styled(wrapped(f"{head}: {text}" if head else text, first="  ", rest="    "), tone)
        case Bullet():
            return _styled(_bullet(block))
        case Table():
            heading = (lambda: ["", *_title(block.heading)]) if block.heading else list
            return table_lines(block, style, fits=block.fits or is_fitted(), heading=heading)
        case Plot():
            lines = plot_lines(block.curves, block.unit) if block.over == "size" else plot_dates(block)
            return [*_lines(Title(block.title), is_first=is_first), *lines] if lines else []
        case Matrix():
            is_small = len(block.names) <= _FIGURES_MAX
            lines = _lines(figure_table(block)) if is_small else heat_lines(block)
            return [*_lines(Title(block.title), is_first=is_first), *lines]
        case Section(title=title, blocks=blocks):
            parts = enumerate((Title(title), *blocks) if title else blocks)
            return [line for number, part in parts for line in _lines(part, is_first=is_first and not number)]
        case More():
            return [""]  # room for its line, which `fit` writes
    raise TypeError(f"{type(block).__name__} has no text")


def _title(text: str, end: str = "") -> list[str]:
    room = min(line_width(), _WIDTH) - text_width(text + end)
    if end:
        text = f"{text}{' ' * room}{end}" if room > 1 else f"{text} · {end}"
    return _styled([text] if end and room > 1 else wrapped(text), "strong")


def _shortened(text: str) -> str:
    return textwrap.shorten(printable(text), line_width(), placeholder=_CUT, break_on_hyphens=False)


def _bullet(bullet: Bullet) -> list[str]:
    width = line_width()
    room = None if bullet.lines_max is None else bullet.lines_max * max(_WIDTH, width) // width
    lines, below = _parts(bullet.text, bullet.below)
    if room is not None and len(lines) + len(below) > room and bullet.below:
        lines, below = _parts(f"{bullet.text} {bullet.below[0]}".rstrip(), bullet.below[1:])
        room = max(1, room - len(below))
        if len(lines) > room:
            lines[room - 1 :] = [lines[room - 1].rpartition(" ")[0] + _CUT]
    return lines + below + [line for text in bullet.others for line in wrapped(text, first="  - ", rest="    ")]


def _parts(text: str, below: Sequence[str]) -> tuple[list[str], list[str]]:
    under = [line for part in below if part for line in wrapped(part, first="  ", rest="    ")]
    return wrapped(text, first="- ", rest="  "), under


def _styled(lines: Sequence[str], tone: Tone = "") -> list[str]:
    return [style(printable(line), tone) for line in lines]


def style(text: str, tone: Tone) -> str:
    """The text in the style of a tone; plain text if the output has no colours."""
    return click.style(text, **_STYLES[tone]) if tone and text and is_colored() else text
