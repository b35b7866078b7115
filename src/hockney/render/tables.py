"""Tables as lines of text, within the width of a screen."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from hockney.render.terminal import line_width, text_width, whole, wrapped
from hockney.report.document import Column, Table, Tone
from hockney.units import printable

GAP = 2  # blanks between columns
_WRAP_MIN = 14  # a column of sentences is at least this wide

Style = Callable[[str, Tone], str]


def table_lines(table: Table, style: Style, *, fits: bool, heading: Callable[[], list[str]] = list) -> list[str]:
    """The lines of a table, each part under those of `heading`, and the note on hidden columns; none without rows."""
    columns = table.heads
    blocks: list[tuple[str, list[list[str]]]] = [("", [])]
    for row in table.rows:
        if isinstance(row, str):
            blocks.append((row, []))
        else:
            cells = [printable(text, keep="") for text in row]
            blocks[-1][1].append(cells + [""] * (len(columns) - len(cells)))
    printed = [row for _, block in blocks for row in block]
    if not printed:
        return []
    longest = [max(map(text_width, texts)) for texts in zip(*printed, strict=True)]
    natural = [max(len(column.title), length) for column, length in zip(columns, longest, strict=True)]
    if fits and table.narrow and _total(range(len(columns)), natural) > line_width():
        return table_lines(replace(table, rows=table.narrow, narrow=()), style, fits=fits, heading=heading)
    spans = [max(map(_longest_word, texts)) for texts in zip(*printed, strict=True)]
    words = [span if column.right else 0 for column, span in zip(columns, spans, strict=True)]  # figures stay whole
    parts, least = [list(range(len(columns)))], natural
    if fits:
        least = list(map(_least_width, columns, longest, spans))
        parts = split_columns(columns, least, line_width())
    lines: list[str] = []
    for number, part in enumerate(parts):
        lines += heading() or [""] * (number > 0)
        lines += _part_lines(columns, blocks, _grown(part, least, natural, words if fits else None), style)
    hidden = [column.title for index, column in enumerate(columns) if not any(index in part for part in parts)]
    if hidden:
        text = f"(columns hidden, screen too narrow: {', '.join(hidden)})"
        lines += [style(line, "quiet") for line in wrapped(text, rest="  ")]
    return lines


def _longest_word(text: str) -> int:
    """Its width, a number and its unit being one."""
    return max((text_width(word) for word in whole(text).split(" ")), default=0)


def _least_width(column: Column, longest: int, longest_word: int) -> int:
    """The least width of a column: titles and sentences are broken between words, a third of the line stays whole."""
    of_title = max(map(len, whole(column.title).split(" ")))
    least = max(min(_WRAP_MIN, longest), min(longest_word, line_width() // 3))
    return max(of_title, least if column.wrap else longest)


def split_columns(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[list[int]]:
    """The indices of the columns of each table to print, so that none is wider than `width` if possible."""
    shown = list(range(len(columns)))
    for index, column in enumerate(columns):
        if column.optional and _total(shown, widths) > width:
            shown.remove(index)
    if _total(shown, widths) <= width:
        return [shown]
    keys = [index for index, column in enumerate(columns) if column.key] or [0]
    parts = [keys[:]]
    for index in range(len(columns)):
        if index not in keys:
            if len(parts[-1]) > len(keys) and _total([*parts[-1], index], widths) > width:
                parts.append(keys[:])
            parts[-1].append(index)
    return parts


def _total(part: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[index] for index in part) + GAP * (len(part) - 1)


def _grown(
    part: Sequence[int], least: Sequence[int], natural: Sequence[int], words: Sequence[int] | None
) -> dict[int, int]:
    """The widths of these columns by index: they share the room of the line, none wider than it needs.

    With the longest `words` of columns and too little room, the widest column is narrower: its cells are broken between
    words.
    """
    widths = {index: least[index] for index in part}
    room = line_width() - _total(part, least)
    if room < 0 and words is not None:
        widest = max(part, key=lambda index: least[index])
        widths[widest] = max(min(_WRAP_MIN, least[widest]), words[widest], least[widest] + room)
    room = max(0, room)
    by_need = sorted(part, key=lambda index: natural[index] - least[index])
    for left, index in zip(range(len(by_need), 0, -1), by_need, strict=True):
        more = min(natural[index] - least[index], room // left)
        widths[index] += more
        room -= more
    return widths


def _cell(text: str, width: int, *, right: bool) -> list[str]:
    """The lines of a cell; what has no room in the column even so is broken anywhere."""
    lines: list[str] = []
    for line in [text] if right and len(text) <= width else wrapped(text, width):
        lines += textwrap.wrap(line, width, break_on_hyphens=False) if len(line) > width else [line]
    blanks = (" " * (width - text_width(line)) for line in lines)
    return [blank + line if right else line + blank for line, blank in zip(lines, blanks, strict=True)]


def _part_lines(
    columns: Sequence[Column], blocks: Sequence[tuple[str, list[list[str]]]], widths: Mapping[int, int], style: Style
) -> list[str]:
    """The titles, then each heading with its rows, in the columns that have a width."""

    def aligned(row: Sequence[str], *, is_head: bool = False) -> Iterator[str]:
        cells = [_cell(row[index], width, right=columns[index].right) for index, width in widths.items()]
        height = max(map(len, cells))
        for cell in cells:
            blank = [" " * text_width(cell[0])] * (height - len(cell))
            cell[:] = blank + cell if is_head else cell + blank
        tones: list[Tone] = ["strong" if is_head else columns[index].tone for index in widths]
        for parts in zip(*cells, strict=True):
            yield (" " * GAP).join(map(style, parts, tones)).rstrip()

    titles = [column.title for column in columns]
    lines = list(aligned(titles, is_head=True)) if any(titles) else []
    for heading, block in blocks:
        lines += wrapped(heading, rest="  ") if heading else []
        lines += [line for row in block for line in aligned(row)]
    return lines
