"""Shared by all formats: outputs and rows as values, and readers of lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hockney.model import Definition

_FAILED = re.compile(r"abort|signal|kill|error|fail|terminat|cancel|segmentation", re.IGNORECASE)
BYTES_MAX = 1 << 50


class FormatError(Exception):
    """The text does not have its format; one sentence, which names the line."""


@dataclass(frozen=True)
class OutputRow:
    """The figure of one message size: its times by the pattern's definition, in ns.

    There is one time for each measurement in the output. `digits_ns` is the rounding error of the printed digits.
    """

    line: int
    bytes: int
    times_ns: tuple[float, ...]
    digits_ns: float = 0.0
    verified: bool = False


@dataclass(frozen=True)
class Output:
    """One output of a benchmark: one start of its job. None: not said.

    `pattern` is hockney's where the definitions agree, else the benchmark's own name. `timed` is as in Definition.
    `window` are messages in flight, for patterns that have a window. `is_sized`: it has message sizes. Raises
    FormatError where a size comes twice.
    """

    tool: str
    pattern: str | None
    transport: str
    rows: Sequence[OutputRow]
    ranks: int | None
    timed: str = "root"
    options: Mapping[str, str] = field(default_factory=dict)
    window: int | None = None
    is_sized: bool = True

    def __post_init__(self) -> None:
        seen: dict[int, int] = {}
        for row in self.rows:
            if row.bytes in seen:
                raise FormatError(f"line {row.line} has the size of line {seen[row.bytes]} again: {row.bytes} B")
            seen[row.bytes] = row.line


WINDOWED = ("oneway", "twoway", "pairs")


def definition(pattern: str, ranks: int, size_bytes: int, window: int, timed: str) -> Definition:
    """The definition of the worker's pattern of this name; for another name, a message per repetition."""
    halves, others = ranks // 2, ranks - 1
    divisor, messages = {
        "pingpong": (2, 2),
        "oneway": (window, window),
        "twoway": (2 * window, 2 * window),
        "pairs": (window, halves * window),
        "ring": (1, ranks),
        "alltoall": (1, ranks * others),
        "allreduce": (1, 2 * others),
        "multicast": (1, others),
        "barrier": (1, 0),
    }.get(pattern, (1, 1))
    native = pattern in ("alltoall", "allreduce", "multicast", "barrier")
    return Definition(timed, divisor, messages * size_bytes, messages, "native" if native else None)


# ---- reading ---------------------------------------------------------------------------------------------------------


def has_line(text: str, start: str) -> bool:
    """Whether a line begins with the regular expression `start`, after a prefix of mpirun if there is one."""
    return re.search(rf"^(?:\[\d+,\d+\]<stdout>: ?)?{start}", text, re.MULTILINE) is not None


def lines_of(text: str) -> list[str]:
    """The lines of standard output, without the prefixes of mpirun. Raises FormatError if the last line is cut."""
    if text and not text.endswith("\n"):
        raise FormatError(
            f"line {text.count(chr(10)) + 1}, its last, does not end: a part is missing; save the whole output"
        )
    lines = text.replace("\r\n", "\n").split("\n")[:-1]
    tags = [re.match(r"\[\d+,\d+\]<std(out|err)>: ?", line) for line in lines]  # mpirun --tag-output
    # A line of standard error stays as an empty one, so that the others keep their numbers.
    return [
        line if tag is None else "" if tag[1] == "err" else line[tag.end() :]
        for line, tag in zip(lines, tags, strict=True)
    ]


def rows_of(lines: list[str], first: int, columns: int) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table from line `first` (from 0): their numbers (from 1) and cells.

    Lines between its head and its first row are skipped; it ends at a line that does not begin with a number.
    Raises FormatError for a row of fewer cells, for a line next to its rows with the words of a failure, and without
    any row.
    """
    any_row = False
    for number, line in enumerate(lines[first:], first + 1):
        cells = line.split()
        if cells and cells[0][0].isdecimal():
            if len(cells) < columns:
                raise FormatError(f"line {number} has {len(cells)} numbers, not {columns}: '{line.strip()[:80]}'")
            any_row = True
            yield number, cells
        elif cells and not line.startswith("#") and _FAILED.search(line):
            raise FormatError(f"line {number} says that the run failed: '{line.strip()[:80]}'")
        elif any_row:
            return
    if not any_row:
        raise FormatError(f"line {first} is the head of a table without figures: its run failed")


def read_size(cell: str, line: int) -> int:
    """A number of bytes. Raises FormatError."""
    if not cell.isdecimal() or len(cell) > 18 or int(cell) > BYTES_MAX:
        raise FormatError(f"line {line}: '{cell}' is not a message size in bytes")
    return int(cell)


def read_number(cell: str, line: int, what: str) -> tuple[float, float]:
    """A number above 0, and half a unit of its last digit. Raises FormatError."""
    match = re.fullmatch(r"\d+(?:\.(\d+))?(?:[eE][+-]?\d+)?", cell)
    value = float(cell) if match and len(cell) < 40 else 0.0
    if match is None or not 0 < value < 1e15:
        raise FormatError(f"line {line}: '{cell}' is not {what} above 0")
    return value, 0.0 if "e" in cell.lower() else 0.5 * 10.0 ** -len(match[1] or "")


def row_of_time(line: int, size_bytes: int, cell: str, unit_ns: float, *, verified: bool = False) -> OutputRow:
    """From a printed time. Raises FormatError."""
    value, half = read_number(cell, line, "a time")
    return OutputRow(line, size_bytes, (value * unit_ns,), half * unit_ns, verified)


def row_of_rate(line: int, size_bytes: int, cell: str, bytes_per_s: float, flows: int = 1) -> OutputRow:
    """From a printed rate of `flows` together: the time of a message of each. Raises FormatError."""
    value, half = read_number(cell, line, "a rate")
    if size_bytes == 0:
        raise FormatError(f"line {line} has a rate of messages of 0 B")
    time_ns = flows * size_bytes * 1e9 / (value * bytes_per_s)
    return OutputRow(line, size_bytes, (time_ns,), time_ns * half / value)
