"""The one reader of text: tables by their titles, with rows until the next titles, and the curves in a table.

Other lines between rows are skipped and counted. A format says which lines are titles, and what its columns mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from hockney.results.formats.lines import Line
from hockney.results.formats.output import FormatError, Output, OutputRow, number_of, read_number, read_size

_ROW = re.compile(r"\s*\d")
_ENDS_EARLY = {"time-out.;": "the time was up", "out-of-mem.;": "out of memory", "int-overflow;": "an integer overflow"}
# What a column holds, by its title: kind, and unit in ns, bytes/s or messages/s.
_UNITS = tuple(
    (re.compile(pattern, re.IGNORECASE), kind, unit)
    for pattern, kind, unit in (
        (r"^#?(?:bytes|size)$", "size", 1.0),
        (r"\(us\)|usec", "time", 1e3),
        (r"\(ns\)", "time", 1.0),
        (r"Mpps|Mxfers", "messages", 1e6),
        (r"(?:Messages|msg)/s", "messages", 1.0),
        (r"MiB/s", "rate", 2.0**20),
        (r"MB(?:ytes)?/s", "rate", 1e6),
        (r"GB/s", "rate", 1e9),
        (r"Gb/s", "rate", 1e9 / 8),
    )
)


@dataclass
class Table:
    """A table: the number of its line of titles, these, and the lines before, in and below it."""

    format: TextFormat
    line: int
    titles: Sequence[str]
    head: str  # what stands above the first heading of the file
    above: str  # what stands between the table before and its heading
    heading: str  # from the format's first line, or the table before, to the first row
    rows: list[tuple[int, list[str]]] = field(default_factory=list)
    below: str = ""
    notes: list[str] = field(default_factory=list)  # why a row became no figure

    def columns(self, places: Iterable[int]) -> Table:
        """The table of these columns alone."""
        kept = list(places)
        rows = [(line, [cells[place] for place in kept]) for line, cells in self.rows]
        return replace(self, titles=[self.titles[place] for place in kept], rows=rows)


@dataclass(frozen=True)
class TextFormat:
    """A format as text. `titles` takes a line, and the one before, and returns the titles of its columns, or None.

    `start`: the first line of a heading. `end`: a line without which the output was cut short, below each table
    (`ends_each`) or below the last one.
    """

    title: str
    titles: Callable[[str, str], Sequence[str] | None]
    read: Callable[[Table], Iterable[Output]]
    start: re.Pattern[str] | None = None
    end: str = ""
    ends_each: bool = False
    row: re.Pattern[str] = _ROW


def tables_of(lines: Sequence[Line], formats: Sequence[TextFormat]) -> tuple[list[Table], int]:
    """The tables in these lines, and the number of other lines. Raises FormatError, which names the line."""
    tables: list[Table] = []
    others, started, before, previous = 0, 0, [""], ""  # before: above the heading, and the heading
    for number, (text, is_error) in enumerate(lines, 1):
        if not text.strip():
            continue
        table = tables[-1] if tables and not started else None
        if table and not is_error and (cells := _cells(text, table)):
            if number == len(lines):
                raise FormatError(f"line {number}, its last, does not end: a part is missing; save the whole output")
            _add(table, number, cells)
            before = [""]
            continue
        starts = not is_error and any(format_.start and format_.start.match(text) for format_ in formats)
        of = None if is_error or starts else _titled(text, previous, formats)
        if (starts or of) and table and not table.rows and not table.notes:
            raise FormatError(f"line {table.line} is the head of a table without figures: its run failed")
        if starts and started:
            raise FormatError(f"line {started} has no table below it: its run failed")
        if tables and not of:
            tables[-1].below += text + "\n"
        if starts:
            started, before = number, ["\n".join(before), text]
        elif of:
            above, heading = (before[0], "\n".join(before[1:])) if started else ("", "\n".join(before))
            head = tables[0].head if tables else above
            tables.append(Table(of[0], number, of[1], head, above, heading))
            started, before = 0, [""]
        else:
            before.append(text)
            if table and not table.rows:
                table.heading += "\n" + text
            if (tables or started) and lines[number - 1].says_failed:
                raise FormatError(
                    f"line {number} says that the run failed: '{text.strip()[:80]}'. If it did not, delete that line"
                )
            others += is_error or (not started and re.match(r"\s*(?:[#|+]|[-=*]{5})", text) is None)
        previous = text
    if started:
        raise FormatError(f"line {started} has no table below it: its run failed")
    for table in tables:
        _check_end(table, tables)
    return tables, others


def _titled(text: str, previous: str, formats: Sequence[TextFormat]) -> tuple[TextFormat, Sequence[str]] | None:
    return next(((format_, titles) for format_ in formats if (titles := format_.titles(text, previous))), None)


def _cells(text: str, table: Table) -> list[str] | None:
    """The cells of a row; None for another line. A line that begins with a whole number is a row, unless it is prose."""
    if not table.format.row.match(text):
        return None
    cells = text.split()
    is_prose = len(cells) > 2 and cells[1].isalpha() and cells[2].rstrip(".,:;").isalpha()
    is_row = len(cells) == len(table.titles) or (cells[0].isdecimal() and not is_prose)
    return cells if is_row or table.format.row is not _ROW else None


def _add(table: Table, number: int, cells: list[str]) -> None:
    reason = next((_ENDS_EARLY[cell] for cell in cells if cell in _ENDS_EARLY), None)
    if reason:
        sizes = [cell for cell, title in zip(cells, table.titles, strict=False) if title == "#bytes"]
        table.notes.append(f"line {number}: no figure{f' of {sizes[0]} B' if sizes else ''}, as {reason}")
        return
    if len(cells) < len(table.titles):
        raise FormatError(f"line {number} has {len(cells)} numbers, not {len(table.titles)}: '{' '.join(cells)[:80]}'")
    table.rows.append((number, cells))


def _check_end(table: Table, tables: Sequence[Table]) -> None:
    """Raises FormatError for a table without rows, or without the end mark of its format."""
    if not table.rows and not table.notes:
        raise FormatError(f"line {table.line} is the head of a table without figures: its run failed")
    last = next(other for other in reversed(tables) if other.format is table.format)
    end = table.format.end
    if end and (table.format.ends_each or table is last) and not re.search(rf"^\s*{end}", table.below, re.MULTILINE):
        raise FormatError(f"the line '{end}' is missing below line {table.line}: the run was cut short")


# ---- the curves in a table -------------------------------------------------------------------------------------------


def said(heading: str, rules: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """The options that a heading names: by regular expression, name, and the value that is left out."""
    options = {}
    for pattern, name, usual in rules:
        match = re.search(pattern, heading, re.MULTILINE)
        value = "".join(part or "" for part in match.groups()) if match else ""
        if value and value != usual:
            options[name] = value
    return options


def number_said(pattern: str, text: str) -> int | None:
    """The whole number that the text says last."""
    found = re.findall(pattern, text, re.MULTILINE)
    return int(found[-1]) if found else None


def curves(
    table: Table,
    base: Output,
    main: str,
    *,
    flows: int = 1,
    size: int | None = None,
    keys: Mapping[str, tuple[str, Sequence[str]]] = {},  # noqa: B006  # never written
    rates: Mapping[str, Fraction | str] = {},  # noqa: B006
    repeats: bool = False,
) -> list[Output]:
    """The curves of a table: that of the column `main`, as `base` has it, and one of each other column of times or rates.

    `flows` share a rate. `size` is that of all rows, where no column says it. `keys` names columns that tell curves
    apart: title, option, usual values. `rates` are columns that follow from the times by another definition. `repeats`:
    a size may come again, as another measurement. Raises FormatError.
    """
    found: dict[tuple[tuple[tuple[str, str], ...], Fraction | str | None], dict[int, OutputRow]] = {}
    for line, cells in table.rows:
        row = _Row(line, table.titles, cells, flows, size)
        options = {name: row.texts[title] for title, (name, usual) in keys.items() if row.texts[title] not in usual}
        time = row.time(main)
        if time is None:
            table.notes.append(f"line {line}: no figure, as it shows {row.texts[main]} at {row.bytes} B")
            continue
        others: list[tuple[dict[str, str], Fraction | str | None, OutputRow]] = [(options, base.rate, time)]
        for title, rate in rates.items():
            others.append(({**options, "column": _short(title)}, rate, time))
        for title, extra in row.extra(main, (*keys, *rates)):
            others.append(({**options, "column": _short(title)}, base.rate, extra))
        for of, rate, one in others:
            rows = found.setdefault((tuple(sorted(of.items())), rate), {})
            known = rows.get(one.bytes)
            if known and not repeats:
                raise FormatError(f"line {line} has the size of line {known.line} again: {one.bytes} B")
            rows[one.bytes] = replace(known, times_ns=known.times_ns + one.times_ns) if known else one
    return [
        replace(base, options={**base.options, **dict(of)}, rate=rate, rows=list(rows.values()))
        for (of, rate), rows in found.items()
    ]


def _short(title: str) -> str:
    """`Min Latency(us)` -> `min`, `P50 Tail BW(MB/s)` -> `p50`: the value of the option `column`."""
    words = re.sub(r"\(.*?\)|\[.*?\]|[#/].*|\b(?:latency|lat|tail|comm|bw)\b\.?", " ", title, flags=re.IGNORECASE)
    return re.sub(r"[^\w.]+", "_", words.strip()).strip("_.").lower() or "rate"


class _Row:
    """The cells of a row by title, with what they hold."""

    def __init__(self, line: int, titles: Sequence[str], cells: Sequence[str], flows: int, size: int | None) -> None:
        self.line, self.flows = line, flows
        self.texts = dict(zip(titles, cells, strict=False))
        self.kinds = {title: kind for title in self.texts if (kind := _kind(title))}
        sizes = [title for title, (kind, _) in self.kinds.items() if kind == "size"]
        self.bytes = read_size(self.texts[sizes[0]], line) if sizes else size or 0
        wrong = {title: text for title, text in self.texts.items() if title.lower() in ("validation", "#wrong", "defects")}
        for title, text in wrong.items():
            if text == "Fail" or (title != "Validation" and number_of(text)):
                raise FormatError(f"line {line} says that its data were wrong: {title} {text}")
        self.verified = any(text == "Pass" or number_of(text) == 0 for text in wrong.values())
        self.numbers = {
            title: value
            for title, text in self.texts.items()
            if title not in wrong and title not in self.kinds and (value := number_of(text)) is not None
        }

    def time(self, title: str) -> OutputRow | None:
        """From the column `title`; None where a rate or a time of 0 B is too small for its digits."""
        kind, _ = self.kinds[title]
        if kind == "rate" and (self.bytes == 0 or not number_of(self.texts[title])):
            title = next((other for other, (its, _) in self.kinds.items() if its == "messages"), title)
        if self.bytes == 0 and not number_of(self.texts[title]) and number_of(self.texts[title]) is not None:
            return None
        if self.bytes == 0 and self.kinds[title][0] == "rate":
            return None
        row = self._figure(title)
        return replace(row, others=self.numbers) if self.numbers else row

    def extra(self, main: str, known: Sequence[str]) -> Iterator[tuple[str, OutputRow]]:
        """The figures of the other columns: of times, and of rates where the main column is a rate."""
        for title, (kind, _) in self.kinds.items():
            is_own = kind == "time" or (kind == "rate" == self.kinds[main][0] and self.bytes > 0)
            if is_own and title != main and title not in known and number_of(self.texts[title]):
                yield title, self._figure(title)

    def _figure(self, title: str) -> OutputRow:
        kind, unit = self.kinds[title]
        value, half = read_number(self.texts[title], self.line, "a time" if kind == "time" else "a rate")
        time_ns = value * unit
        if kind != "time":
            time_ns = self.flows * (self.bytes if kind == "rate" else 1) * 1e9 / time_ns
        return OutputRow(self.line, self.bytes, (time_ns,), time_ns * half / value, self.verified)


def _kind(title: str) -> tuple[str, float] | None:
    return next(((kind, unit) for pattern, kind, unit in _UNITS if pattern.search(title)), None)
