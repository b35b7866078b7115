"""Shared by all formats: outputs and rows as values, their definitions, and numbers as they are printed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from hockney.model import Definition

BYTES_MAX = 1 << 50


class FormatError(Exception):
    """The text does not have its format; one sentence, which names the line."""


@dataclass(frozen=True)
class OutputRow:
    """The figure of one message size: its times by the pattern's definition, in ns.

    There is one time for each measurement in the output. `digits_ns` is the rounding error of the printed digits.
    `others` are numbers of the row that are no times, such as an overlap, by the title of their column.
    """

    line: int
    bytes: int
    times_ns: tuple[float, ...]
    digits_ns: float = 0.0
    verified: bool = False
    others: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Output:
    """One curve of one output of a benchmark, which is one start of its job. None: not said.

    `pattern` is hockney's where the definitions agree, else the benchmark's own name. `timed` is as in Definition.
    `options` hold what the heading says, and `column` where the times are not those of the main column. `window` are
    messages in flight, for patterns that have a window. `is_sized`: it has message sizes. `rate`: the bytes that its
    rate counts, per byte of the size (without sizes: per repetition), or "busbw", as nccl-tests define it; None: as
    `definition` has it.
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
    rate: Fraction | str | None = None
    started_unix_s: float | None = None


@dataclass(frozen=True)
class ReadOutputs:
    """What a file holds. `rows_read` of its `rows` became figures; `notes` name each of the others.

    `lines_left_out` counts lines that are neither rows nor comments nor blank.
    """

    outputs: Sequence[Output]
    rows: int
    rows_read: int
    lines_left_out: int
    notes: Sequence[str] = ()


WINDOWED = ("oneway", "twoway", "pairs")
_NATIVE = ("alltoall", "allreduce", "multicast", "barrier")
# busbw / algbw on n ranks (doc/PERFORMANCE.md of nccl-tests); of other collectives it is 1.
_BUSBW = {"allreduce": 2} | dict.fromkeys(
    ("nccl_all_gather", "nccl_reduce_scatter", "nccl_alltoall", "nccl_gather", "nccl_scatter"), 1
)  # times (n - 1) / n


def definition(
    pattern: str, ranks: int, size_bytes: int, window: int, timed: str, rate: Fraction | str | None = None
) -> Definition:
    """The definition of the worker's pattern of this name; for another name, a message per repetition."""
    halves, others = ranks // 2, ranks - 1
    native = "native" if pattern in _NATIVE else None
    if rate is not None:
        if isinstance(rate, str):
            rate = Fraction(_BUSBW[pattern] * others, ranks) if pattern in _BUSBW else Fraction(1)
        return Definition(timed, rate.denominator, rate.numerator * size_bytes, rate.numerator, native)
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
    return Definition(timed, divisor, messages * size_bytes, messages, native)


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
