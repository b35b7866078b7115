"""The one reader of text: tables by their titles, with rows until the next titles.

Other lines between rows are skipped and counted. A format says which lines are titles, and what its columns mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hockney.results.formats.lines import CleanLine
from hockney.results.formats.output import FIRST_NUMBER, Format, FormatError, OutputTable

_CHROME = re.compile(r"\s*(?:[#|+]|[-=*]{5})")  # comments, rulers, and commands of `set -x`
_ENDS_EARLY = {"time-out.;": "the time was up", "out-of-mem.;": "out of memory", "int-overflow;": "an integer overflow"}


class Scan:
    """The tables in these lines, the number of other lines, and notes. Raises FormatError, which names the line."""

    def __init__(self, lines: Sequence[CleanLine], formats: Sequence[Format]) -> None:
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
        last = {table.format.name: table for table in self.tables}
        for table in self.tables:
            end = table.format.end if table.format.ends_each or table is last[table.format.name] else ""
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
        pairs = ((each, each.titles(text, previous)) for each in self._formats if each.head and each.head.match(text))
        of = None if line.is_error or starts else next((pair for pair in pairs if pair[1]), None)
        if starts or (of and not self._started):
            self._close()
        if of:
            head = self.tables[0].head if self.tables else self._above
            heading = "".join(self._heading)
            self.tables.append(OutputTable(of[0], number, of[1], heading, above=self._above, head=head))
            self._started, self._above, self._heading = 0, "", []
            if not of[0].is_headed:
                self._take(number, line, previous, is_last=is_last)
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
        """What sounded like a failure was none: the output continues."""
        self.notes += [f"{sentence}, but its output continues" for sentence in self._suspects]
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
    return cells if is_row or row is not FIRST_NUMBER else None


def _add(table: OutputTable, number: int, cells: list[str]) -> None:
    reason = next((_ENDS_EARLY[cell] for cell in cells if cell in _ENDS_EARLY), None)
    if reason:
        size = f" of {cells[table.titles.index('#bytes')]} B" if "#bytes" in table.titles else ""
        table.notes.append(f"line {number}: no figure{size}, as {reason}")
    elif len(cells) < len(table.titles):
        raise FormatError(f"line {number} has {len(cells)} numbers, not {len(table.titles)}: '{' '.join(cells)[:80]}'")
    else:
        table.rows.append((number, cells))
