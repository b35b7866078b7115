"""Documents as Markdown, for issue trackers. Nothing from outside is more than text in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from hockney.render.heat import figure_table, formatter
from hockney.report.document import (
    Block,
    Bullet,
    Column,
    Item,
    Matrix,
    More,
    Plot,
    Section,
    Sentence,
    Table,
    Text,
    Title,
)
from hockney.units import counted, format_bytes, local_time, printable

_MARKS = re.compile(r"([\\`*\[\]|#~]|(?<!\w)_|_(?!\w))")  # within a word, _ is a letter
_CODE = re.compile("`([^`]+)`")
_MATRIX_MAX = 16  # ends: more cannot be read as figures


def markdown(blocks: Iterable[Block]) -> str:
    """The text of a document, without the limits of a screen."""
    text = "\n".join(line for block in blocks for line in _lines(block))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _lines(block: Block) -> Iterator[str]:
    """Those of a block; all but points of a list have a blank line above and below."""
    match block:
        case Title(text=text, end=end):
            yield from ("", f"{'#' if end else '##'} {_plain(' · '.join(filter(None, (text, end))))}", "")
        case Text(text=text) | Sentence(text=text):
            yield from ("", _prose(text), "")
        case Item(text=text, head=head):
            yield f"- {f'**{_plain(head)}**: ' if head else ''}{_prose(text)}"
        case Bullet(text=text, below=below, others=others):
            yield f"- {' '.join(map(_prose, filter(None, (text, *below))))}"
            yield from (f"  - {_prose(other)}" for other in others)
        case Table(rows=rows):
            yield from ("", f"**{_plain(block.heading)}**", "") if block.heading else ()
            yield from _table(block.heads, rows)
        case Matrix(title=title, names=names):
            yield from _lines(Title(title))
            is_large = len(names) > _MATRIX_MAX
            only = Text(f"The matrix of {len(names)} ends is in --json only.")
            yield from _lines(only if is_large else figure_table(block))
        case Plot(title=title, curves=curves, unit=unit, over=over):
            yield from _lines(Title(title))
            sizes = sorted({size for points in curves.values() for size, _ in points})
            figure = formatter(unit)
            known = [{size: figure(value) for size, value in points} for points in curves.values()]
            place = format_bytes if over == "size" else local_time
            rows = [[place(size), *(of.get(size, "") for of in known)] for size in sizes]
            yield from _table([Column(over), *(Column(name, right=True) for name in curves)], rows)
        case Section(title=title, blocks=blocks):
            yield from _lines(Title(title)) if title else ()
            yield from (line for each in blocks for line in _lines(each))
        case More(option=option, counts=counts):
            more = ", ".join(counted(count, noun) for noun, count in counts.items() if count)
            yield from ("", f"More with {option}: {more}.", "") if more else ()
        case _:
            raise TypeError(f"{type(block).__name__} has no Markdown")


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str] | str]) -> Iterator[str]:
    """Rows of one text are headings of those below."""
    if not rows:
        return
    yield from ("", f"| {' | '.join(_plain(column.title) for column in columns)} |")
    yield f"| {' | '.join('---:' if column.right else '---' for column in columns)} |"
    for row in rows:
        cells = [f"**{_plain(row)}**"] if isinstance(row, str) else [_plain(cell).strip() for cell in row]
        yield f"| {' | '.join(cells + [''] * (len(columns) - len(cells)))} |"
    yield ""


def _prose(text: str) -> str:
    """A sentence, with commands in backquotes as code."""
    parts = _CODE.split(text)
    return "".join(f"`{printable(part)}`" if number % 2 else _plain(part) for number, part in enumerate(parts)).strip()


def _plain(text: str) -> str:
    """The text with escaped markup, and without mentions of users (`@name`)."""
    escaped = _MARKS.sub(r"\\\1", printable(text.replace("\n", " "), keep=""))
    escaped = escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"(?<!\w)@", "&#64;", escaped)
