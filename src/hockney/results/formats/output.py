"""Shared by all formats: the fields of a format, its tables and the curves in them, and printed numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from hockney.model import Definition

BYTES_MAX = 1 << 50
FIRST_NUMBER = re.compile(r"\s*\d")
Document = Mapping[str, Any]
# The kind of a column by its title, and its unit in ns, bytes/s or messages/s.
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


class FormatError(Exception):
    """The text breaks its format; the message is one sentence that names the line."""


@dataclass(frozen=True)
class OutputRow:
    """The figure of one message size: its times by the pattern's definition, in ns.

    There is one time for each measurement in the output. `digits_ns` is the rounding error of the printed digits.
    `others` are the other numbers of the row, such as an overlap, by the title of their column.
    """

    line: int
    bytes: int
    times_ns: tuple[float, ...]
    digits_ns: float = 0.0
    verified: bool = False
    others: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Output:
    """One curve of one output of a benchmark; an output is one launch. None: the output does not state it.

    `pattern` is hockney's where the definitions agree, else the benchmark's own name. `timed` is as in Definition.
    `options` are those of the heading, with `column` if the times are not from the main column. `window`: messages in
    flight, for patterns that have a window. `is_sized`: it has message sizes. `rate`: the bytes that its rate counts
    per byte of the size (without sizes: per repetition), or "busbw", as nccl-tests define it; None: by `definition`.
    """

    tool: str
    pattern: str | None
    transport: str
    ranks: int | None
    rows: Sequence[OutputRow] = ()
    timed: str = "root"
    options: Mapping[str, str] = field(default_factory=dict)
    window: int | None = None
    is_sized: bool = True
    rate: Fraction | str | None = None
    started_unix_s: float | None = None


@dataclass(frozen=True)
class ReadOutputs:
    """The outputs in a file; `notes` name rows that are no figure, `lines_left_out` are no rows, comments or blanks."""

    outputs: Sequence[Output]
    rows: int
    rows_read: int
    lines_left_out: int
    notes: Sequence[str] = ()


@dataclass
class OutputTable:
    """A table: its titles and the number of their line, its rows with their lines, and the text around it."""

    format: Format
    line: int
    titles: Sequence[str]
    heading: str  # from the format's first line, or the table before, to the first row
    rows: list[tuple[int, list[str]]] = field(default_factory=list)
    above: str = ""  # between the table before and the heading
    head: str = ""  # above the first heading of the file
    has_end: bool = False  # the end mark of its format follows
    notes: list[str] = field(default_factory=list)  # why a row became no figure
    outputs: Sequence[Output] = ()  # of a format that reads them as it makes the table

    @property
    def heading_says(self) -> dict[str, str]:
        """The options that its heading names."""
        options = {}
        for pattern, name, usual in self.format.said:
            match = re.search(pattern, self.heading, re.MULTILINE)
            if match and "".join(match.groups()) != usual:
                options[name] = "".join(match.groups())
        return options

    def test(self, words: str) -> re.Match[str]:
        """The line of its heading that names the test. Raises FormatError without one."""
        match = self.format.start and self.format.start.search(self.heading)
        if not match:
            raise FormatError(f"line {self.line} has no line '{words}' above it: save the whole output")
        return match

    def main(self, *patterns: str) -> str:
        """The first title that one of these expressions finds, in their order. Raises FormatError without any."""
        for title in (title for pattern in patterns for title in self.titles if re.search(pattern, title)):
            return title
        raise FormatError(f"line {self.line} has no column with a known time or rate: {' '.join(self.titles)}")


@dataclass(frozen=True)
class Format:
    """The outputs of a benchmark. `read` makes them from a table.

    Text: `head` matches the line of titles, or the first row if the table is not headed. `titles` makes the titles of
    this line and the one before; [] if it has none. `start` matches the first line of a heading. `end`: the line below
    each table (`ends_each`) or below the last one; without it the output was cut short. `said`: the options of a
    heading, each as a regular expression, a name, and the value that is left out.

    JSON: `is_document`: whether an object is of this format; `tables` makes its tables. `joined` merges objects that
    are parts of one.
    """

    name: str
    read: Callable[[OutputTable], Iterable[Output]] = lambda table: table.outputs
    head: re.Pattern[str] | None = None
    titles: Callable[[str, str], Sequence[str]] = lambda line, _: line.split()
    is_headed: bool = True
    start: re.Pattern[str] | None = None
    end: str = ""
    ends_each: bool = False
    row: re.Pattern[str] = FIRST_NUMBER
    said: Sequence[tuple[str, str, str]] = ()
    is_document: Callable[[Document], object] | None = None
    tables: Callable[[Document], Iterable[OutputTable]] = lambda _: ()
    joined: Callable[[list[Any]], list[Any]] = lambda documents: documents


WINDOWED = ("oneway", "twoway", "pairs")
_ROOTED = ("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv", "scan", "exscan")
_ALL_TO_ALL = (
    *("alltoall", "alltoallv", "alltoallw", "allgather", "allgatherv"),
    *("reduce_scatter", "reduce_scatter_block"),
)
_NEAR = tuple(f"neighbor_{name}" for name in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"))
_ATOMICS = ("accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap")
# The divisor of the time, and the messages of a repetition, by ranks and window. Neighbours are two, as OSU has them.
DEFINED: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "pingpong": lambda ranks, window: (2, 2),
    "bisection": lambda ranks, window: (2, ranks),
    "pingping": lambda ranks, window: (1, ranks),
    "oneway": lambda ranks, window: (window, window),
    "twoway": lambda ranks, window: (2 * window, 2 * window),
    "pairs": lambda ranks, window: (window, ranks // 2 * window),
    "ring": lambda ranks, window: (1, ranks),
    "barrier": lambda ranks, window: (1, 0),
    "allreduce": lambda ranks, window: (1, 2 * (ranks - 1)),
    **dict.fromkeys(_ROOTED, lambda ranks, window: (1, ranks - 1)),
    **dict.fromkeys(_ALL_TO_ALL, lambda ranks, window: (1, ranks * (ranks - 1))),
    **dict.fromkeys(_NEAR, lambda ranks, window: (1, 2 * ranks)),
    **dict.fromkeys(("put", "get", *_ATOMICS), lambda ranks, window: (1, 1)),
}
_NATIVE = {"barrier", "allreduce", *_ROOTED, *_ALL_TO_ALL, *_NEAR}
# busbw / algbw on n ranks (doc/PERFORMANCE.md of nccl-tests); of other collectives it is 1.
_BUSBW = {"allreduce": 2} | dict.fromkeys(
    ("nccl_all_gather", "nccl_reduce_scatter", "nccl_alltoall", "nccl_gather", "nccl_scatter"), 1
)  # times (n - 1) / n


def definition(
    pattern: str,
    ranks: int,
    size_bytes: int,
    window: int,
    timed: str,
    rate: Fraction | str | None = None,
    *,
    is_vector: bool = False,
) -> Definition:
    """The definition of the worker's pattern of this name; for another name, a message per repetition.

    `is_vector`: the size is that of a block for each rank together (`bytes_of=vector`).
    """
    native = "native" if pattern in _NATIVE else None
    if rate is not None:
        if isinstance(rate, str):
            rate = Fraction(_BUSBW[pattern] * (ranks - 1), ranks) if pattern in _BUSBW else Fraction(1)
        return Definition(timed, rate.denominator, rate.numerator * size_bytes, rate.numerator, native)
    divisor, messages = DEFINED[pattern](ranks, window) if pattern in DEFINED else (1, 1)
    return Definition(timed, divisor, messages * size_bytes // (ranks if is_vector else 1), messages, native)


# ---- numbers ---------------------------------------------------------------------------------------------------------


def read_size(cell: str, line: int) -> int:
    """A number of bytes; 64k and 1m are powers of 1024. Raises FormatError."""
    match = re.fullmatch(r"(\d{1,18})(?:\.(\d))?([kmgKMG]?)", cell)
    scale = 1 << {"": 0, "k": 10, "m": 20, "g": 30}[match[3].lower()] if match else 0
    size = int(match[1]) * scale + int(match[2] or 0) * scale // 10 if match else -1
    if match is None or (match[2] and not match[3]) or not 0 <= size <= BYTES_MAX:
        raise FormatError(f"line {line}: '{cell}' is not a message size in bytes")
    return size


def number_of(cell: str) -> float | None:
    """A printed number of 0 or more; None for any other text."""
    plain = cell.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", cell) else cell
    if len(cell) < 40 and re.fullmatch(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", plain):
        value = float(plain)
        return value if value < 1e15 else None
    return None


def read_number(cell: str, line: int, what: str) -> tuple[float, float]:
    """A number above 0, and half a unit of its last digit. Raises FormatError."""
    value = number_of(cell)
    if not value:
        raise FormatError(f"line {line}: '{cell}' is not {what} above 0")
    return value, 0.0 if "e" in cell.lower() else 0.5 * 10.0 ** -len(cell.partition(".")[2])


# ---- the curves in a table -------------------------------------------------------------------------------------------


def number_said(pattern: str, text: str) -> int | None:
    """The last whole number that the pattern finds in the text."""
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
    """The curves of a table: one of the column `main`, and one of each other column of its kind.

    `base` has what the curves share. `flows`: how many flows share a rate. `size`: that of all rows if no column has
    it. `keys`: columns that distinguish curves, with the option and its usual values. `rates`: columns that follow from
    the times by another definition. `repeats`: a repeated size is another measurement, not an error. Raises
    FormatError.
    """
    kinds = {title: kind for title in table.titles if (kind := _kind(title))}
    if main not in kinds:
        raise FormatError(f"the column '{main}' of the table at line {table.line} has no unit that hockney knows")
    own = {title: key for title, key in (keys or {}).items() if title in table.titles}
    used, as_main = (main, *own, *(rates or ())), ("time", kinds[main][0])
    others = [title for title, (kind, _) in kinds.items() if kind in as_main and title not in used]
    found: dict[tuple[tuple[tuple[str, str], ...], Fraction | str | None], dict[int, OutputRow]] = {}
    for line, cells in table.rows:
        row = _TableRow(line, dict(zip(table.titles, cells, strict=False)), kinds, flows, size)
        row.numbers.update({title: 0.0 for title in others if number_of(row.texts[title]) == 0})
        figure = row.figure(main)
        if figure is None:
            table.notes.append(f"line {line}: no figure, because it shows {row.texts[main]} at {row.bytes} B")
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
                raise FormatError(f"line {line} repeats the size of line {before.line}: {one.bytes} B")
            rows[one.bytes] = replace(before, times_ns=before.times_ns + one.times_ns) if before else one
    return [
        replace(base, options={**base.options, **dict(own_options)}, rate=rate, rows=list(rows.values()))
        for (own_options, rate), rows in found.items()
    ]


def _short(title: str) -> str:
    """`Min Latency(us)` -> `min`, `P50 Tail BW(MB/s)` -> `p50`: the value of the option `column`."""
    words = re.sub(r"\(.*?\)|\[.*?\]|[#/].*|\b(?:latency|lat|tail|comm|bw)\b\.?", " ", title, flags=re.IGNORECASE)
    return re.sub(r"[^\w.]+", "_", words.strip()).strip("_.").lower() or "rate"


def _kind(title: str) -> tuple[str, float] | None:
    return next((kind for pattern, kind in _UNITS.items() if re.search(pattern, title)), None)


class _TableRow:
    """The cells of a row by title, and their numbers. Raises FormatError if a check of the data failed."""

    def __init__(
        self, line: int, texts: Mapping[str, str], kinds: Mapping[str, tuple[str, float]], flows: int, size: int
    ) -> None:
        self.line, self.texts, self._kinds, self._flows = line, texts, kinds, flows
        sized = next((title for title, (kind, _) in kinds.items() if kind == "size"), None)
        self.bytes = read_size(texts[sized], line) if sized else size
        checks = {title: texts[title] for title in _CHECKS if title in texts}
        for title, text in checks.items():
            if text == "Fail" or number_of(text):
                raise FormatError(f"line {line} reports wrong data: {title} {text}")
        self._verified = any(text == "Pass" or number_of(text) == 0 for text in checks.values())
        plain = {title: number_of(text) for title, text in texts.items() if title not in kinds and title not in checks}
        self.numbers = {title: value for title, value in plain.items() if value is not None}

    def figure(self, title: str) -> OutputRow | None:
        """The figure of the column `title`; None if a rate or a time of 0 B is too small for its digits."""
        (kind, unit), text = self._kinds[title], self.texts[title]
        if self.bytes == 0 and (kind == "rate" or number_of(text) == 0):
            messages = next((other for other, (its, _) in self._kinds.items() if its == "messages"), None)
            return self.figure(messages) if kind == "rate" and messages else None
        value, half = read_number(text, self.line, "a time" if kind == "time" else "a rate")
        counted = {"time": 0, "rate": self.bytes, "messages": 1}[kind]
        time_ns = self._flows * counted * 1e9 / (value * unit) if counted else value * unit
        return OutputRow(self.line, self.bytes, (time_ns,), time_ns * half / value, self._verified)
