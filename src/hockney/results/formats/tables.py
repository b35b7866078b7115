"""The one reader of text: tables by their titles, with rows until the next titles, and the curves in a table.

Other lines between rows are skipped and counted. A format says which lines are titles, and what its columns mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from hockney.results.formats.lines import CleanLine
from hockney.results.formats.output import FormatError, Output, OutputRow, number_of, read_number, read_size

_ROW = re.compile(r"\s*\d")
_CHROME = re.compile(r"\s*(?:[#|+]|[-=*]{5})")  # comments, rulers, and commands of `set -x`
_ENDS_EARLY = {"time-out.;": "the time was up", "out-of-mem.;": "out of memory", "int-overflow;": "an integer overflow"}
# What a column holds, by its title: kind, and unit in ns, bytes/s or messages/s.
_UNITS = {
    r"^#?(?:bytes|[sS]ize)$": ("size", 1.0),
    r"\(us\)|usec": ("time", 1e3),
    r"\(ns\)": ("time", 1.0),
    r"Mpps|Mxfers": ("messages", 1e6),
    r"(?:Messages|[Mm]sg)/s": ("messages", 1.0),
    r"MiB/s": ("rate", 2.0**20),
    r"M[Bb](?:ytes)?/s": ("rate", 1e6),
    r"GB/s": ("rate", 1e9),
    r"Gb/s": ("rate", 1e9 / 8),
}
_CHECKS = ("Validation", "#wrong", "defects")  # columns of a check of the data


@dataclass
class OutputTable:
    """A table: the number of its line of titles, these, its rows with their lines, and the text around it."""

    format: TextFormat
    line: int
    titles: Sequence[str]
    heading: str  # from the format's first line, or the table before, to the first row
    rows: list[tuple[int, list[str]]] = field(default_factory=list)
    above: str = ""  # between the table before and the heading
    head: str = ""  # above the first heading of the file
    has_end: bool = False  # the end mark of its format stands below
    notes: list[str] = field(default_factory=list)  # why a row became no figure

    def test(self, words: str) -> re.Match[str]:
        """The line of its heading that names the test. Raises FormatError without one."""
        match = self.format.start and self.format.start.search(self.heading)
        if not match:
            raise FormatError(f"line {self.line} has no line '{words}' above it: save the whole output")
        return match

    def main(self, *patterns: str) -> str:
        """The first title that the first of these regular expressions finds. Raises FormatError without any."""
        for title in (title for pattern in patterns for title in self.titles if re.search(pattern, title)):
            return title
        raise FormatError(f"line {self.line} has no column of a time or a rate that is known: {' '.join(self.titles)}")


@dataclass(frozen=True)
class TextFormat:
    """A format as text. `titles` takes a line, and the one before, and returns the titles of its columns, or None.

    `start`: the first line of a heading. `end`: a line without which the output was cut short, below each table
    (`ends_each`) or below the last one.
    """

    title: str
    titles: Callable[[str, str], Sequence[str] | None]
    read: Callable[[OutputTable], Iterable[Output]]
    start: re.Pattern[str] | None = None
    end: str = ""
    ends_each: bool = False
    row: re.Pattern[str] = _ROW


class Scan:
    """The tables in these lines, the number of other lines, and notes. Raises FormatError, which names the line."""

    def __init__(self, lines: Sequence[CleanLine], formats: Sequence[TextFormat]) -> None:
        self.tables: list[OutputTable] = []
        self.others = 0
        self.notes: list[str] = []
        self._formats = formats
        self._started = 0  # the line at which a heading began that has no table yet
        self._above, self._heading = "", list[str]()  # a list: a log may have millions of lines
        self._suspects: list[str] = []  # lines that say that the run failed: it did, if nothing follows
        previous = ""
        for number, line in enumerate(lines, 1):
            if line.text.strip():
                self._take(number, line, previous, is_last=number == len(lines))
                previous = line.text
        self._close()
        if self._suspects:
            self._fail("")
        last = {table.format.title: table for table in self.tables}
        for table in self.tables:
            end = table.format.end if table.format.ends_each or table is last[table.format.title] else ""
            if end and not table.has_end:
                raise FormatError(f"the line '{end}' is missing below line {table.line}: the run was cut short")

    def _take(self, number: int, line: CleanLine, previous: str, *, is_last: bool) -> None:
        text = line.text
        table = self.tables[-1] if self.tables and not self._started else None
        cells = _cells(text, table) if table and not line.is_error else None
        starts = not line.is_error and any(each.start and each.start.match(text) for each in self._formats)
        if table and cells:
            if is_last:
                raise FormatError(f"line {number}, its last, does not end: a part is missing; save the whole output")
            _add(table, number, cells)
            self._heading = []
            self._settle()
            return
        each = ((format_, format_.titles(text, previous)) for format_ in self._formats)
        of = None if line.is_error or starts else next(((format_, titles) for format_, titles in each if titles), None)
        if starts or (of and not self._started):
            self._close()
        if of:
            head = self.tables[0].head if self.tables else self._above
            heading = "".join(self._heading)
            self.tables.append(OutputTable(of[0], number, of[1], heading, above=self._above, head=head))
            self._started, self._above, self._heading = 0, "", []
            return
        if self.tables and (end := self.tables[-1].format.end) and text.lstrip().startswith(end):
            self.tables[-1].has_end = True
            self._settle()
        if starts:
            self._started, self._above, self._heading = number, "".join(self._heading), []
        elif table and not table.rows and len(table.heading) < 100_000:
            table.heading += text + "\n"
        self._heading.append(text + "\n")
        self.others += line.is_error or not (self._started or _CHROME.match(text))
        if (self.tables or self._started) and line.says_failed:
            self._suspects.append(f"line {number} says that the run failed: '{text.strip()[:80]}'")
            if line.says_died:
                self._fail("")

    def _settle(self) -> None:
        """What sounded like a failure was none: the output goes on."""
        self.notes += [f"{sentence}, but its output goes on" for sentence in self._suspects]
        self._suspects = []

    def _close(self) -> None:
        """Before another heading, or at the end. Raises FormatError for a heading without table, or without rows."""
        if self._started:
            self._fail(f"line {self._started} has no table below it: its run failed")
        if self.tables and not (self.tables[-1].rows or self.tables[-1].notes):
            self._fail(f"line {self.tables[-1].line} is the head of a table without figures: its run failed")

    def _fail(self, sentence: str) -> None:
        raise FormatError(f"{self._suspects[0]}. If it did not, delete that line" if self._suspects else sentence)


def _cells(text: str, table: OutputTable) -> list[str] | None:
    """The cells of a row; None for another line. One that begins with a whole number is a row, unless it is prose."""
    row = table.format.row
    if not row.match(text):
        return None
    cells = text.split()
    is_prose = len(cells) > 2 and cells[1].isalpha() and cells[2].rstrip(".,:;").isalpha()
    is_row = len(cells) == len(table.titles) or (cells[0].isdecimal() and not is_prose)
    return cells if is_row or row is not _ROW else None


def _add(table: OutputTable, number: int, cells: list[str]) -> None:
    reason = next((_ENDS_EARLY[cell] for cell in cells if cell in _ENDS_EARLY), None)
    if reason:
        size = f" of {cells[table.titles.index('#bytes')]} B" if "#bytes" in table.titles else ""
        table.notes.append(f"line {number}: no figure{size}, as {reason}")
    elif len(cells) < len(table.titles):
        raise FormatError(f"line {number} has {len(cells)} numbers, not {len(table.titles)}: '{' '.join(cells)[:80]}'")
    else:
        table.rows.append((number, cells))


# ---- the curves in a table -------------------------------------------------------------------------------------------


def said(heading: str, rules: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """The options that a heading names: by regular expression, name, and the value that is left out."""
    options = {}
    for pattern, name, usual in rules:
        match = re.search(pattern, heading, re.MULTILINE)
        if match and "".join(match.groups()) != usual:
            options[name] = "".join(match.groups())
    return options


def number_said(pattern: str, text: str) -> int | None:
    """The whole number that the text says last."""
    found = re.findall(pattern, text, re.MULTILINE)
    return int(found[-1]) if found else None


def curves(
    table: OutputTable,
    base: Output,
    main: str,
    *,
    flows: int = 1,
    size: int = 0,
    keys: Mapping[str, tuple[str, Sequence[str]]] | None = None,
    rates: Mapping[str, Fraction | str] | None = None,
    repeats: bool = False,
) -> list[Output]:
    """The curves of a table: that of the column `main`, as `base` has it, and one of each other column of its kind.

    `flows` share a rate. `size` is that of all rows, where no column says it. `keys` are columns that tell curves
    apart, with the option and its usual values. `rates` are columns that follow from the times by another definition.
    `repeats`: a size may come again, as another measurement. Raises FormatError.
    """
    kinds = {title: kind for title in table.titles if (kind := _kind(title))}
    if main not in kinds:
        raise FormatError(f"the column '{main}' of the table at line {table.line} has no unit of time that is known")
    own = {title: key for title, key in (keys or {}).items() if title in table.titles}
    used, as_main = (main, *own, *(rates or ())), ("time", kinds[main][0])
    others = [title for title, (kind, _) in kinds.items() if kind in as_main and title not in used]
    found: dict[tuple[tuple[tuple[str, str], ...], Fraction | str | None], dict[int, OutputRow]] = {}
    for line, cells in table.rows:
        row = _TableRow(line, dict(zip(table.titles, cells, strict=False)), kinds, flows, size)
        row.numbers.update({title: 0.0 for title in others if number_of(row.texts[title]) == 0})
        figure = row.figure(main)
        if figure is None:
            table.notes.append(f"line {line}: no figure, as it shows {row.texts[main]} at {row.bytes} B")
            continue
        options = {name: row.texts[title] for title, (name, usual) in own.items() if row.texts[title] not in usual}
        ways = [("", base.rate, replace(figure, others=row.numbers))]
        ways += [(_short(title), rate, figure) for title, rate in (rates or {}).items()]
        extra = ((title, row.figure(title)) for title in others if number_of(row.texts[title]))
        ways += [(_short(title), base.rate, other) for title, other in extra if other]
        for column, rate, one in ways:
            of = options | {"column": column} if column else options
            rows = found.setdefault((tuple(sorted(of.items())), rate), {})
            before = rows.get(one.bytes)
            if before and not repeats:
                raise FormatError(f"line {line} has the size of line {before.line} again: {one.bytes} B")
            rows[one.bytes] = replace(before, times_ns=before.times_ns + one.times_ns) if before else one
    native = {"algorithm": "native"} if base.pattern == "multicast" else {}
    return [
        replace(base, options={**base.options, **native, **dict(own_options)}, rate=rate, rows=list(rows.values()))
        for (own_options, rate), rows in found.items()
    ]


def _short(title: str) -> str:
    """`Min Latency(us)` -> `min`, `P50 Tail BW(MB/s)` -> `p50`: the value of the option `column`."""
    words = re.sub(r"\(.*?\)|\[.*?\]|[#/].*|\b(?:latency|lat|tail|comm|bw)\b\.?", " ", title, flags=re.IGNORECASE)
    return re.sub(r"[^\w.]+", "_", words.strip()).strip("_.").lower() or "rate"


def _kind(title: str) -> tuple[str, float] | None:
    return next((kind for pattern, kind in _UNITS.items() if re.search(pattern, title)), None)


class _TableRow:
    """The cells of a row by title, and what they hold. Raises FormatError where a check of the data failed."""

    def __init__(
        self, line: int, texts: Mapping[str, str], kinds: Mapping[str, tuple[str, float]], flows: int, size: int
    ) -> None:
        self.line, self.texts, self._kinds, self._flows = line, texts, kinds, flows
        sized = next((title for title, (kind, _) in kinds.items() if kind == "size"), None)
        self.bytes = read_size(texts[sized], line) if sized else size
        checks = {title: texts[title] for title in _CHECKS if title in texts}
        for title, text in checks.items():
            if text == "Fail" or number_of(text):
                raise FormatError(f"line {line} says that its data were wrong: {title} {text}")
        self._verified = any(text == "Pass" or number_of(text) == 0 for text in checks.values())
        plain = {title: number_of(text) for title, text in texts.items() if title not in kinds and title not in checks}
        self.numbers = {title: value for title, value in plain.items() if value is not None}

    def figure(self, title: str) -> OutputRow | None:
        """From the column `title`; None where a rate or a time of 0 B is too small for its digits."""
        (kind, unit), text = self._kinds[title], self.texts[title]
        if self.bytes == 0 and (kind == "rate" or number_of(text) == 0):
            messages = next((other for other, (its, _) in self._kinds.items() if its == "messages"), None)
            return self.figure(messages) if kind == "rate" and messages else None
        value, half = read_number(text, self.line, "a time" if kind == "time" else "a rate")
        counted = {"time": 0, "rate": self.bytes, "messages": 1}[kind]
        time_ns = self._flows * counted * 1e9 / (value * unit) if counted else value * unit
        return OutputRow(self.line, self.bytes, (time_ns,), time_ns * half / value, self._verified)
