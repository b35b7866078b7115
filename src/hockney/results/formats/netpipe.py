"""The file of NetPIPE 3 (np.out): per size its bytes, Mbit/s (of 2^20) and the time in s, half a round trip.

A time is the smallest of several trials. The file names neither the transport nor the number of trials, nor the mode:
streams (-s) or both directions (-2). It is read as round trips. Of rate and time the one with more digits counts.
(NetPIPE 3.7.2, netpipe.c.) It has no titles: a first line of three numbers tells it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hockney.results.formats.lines import CleanLine
from hockney.results.formats.output import (
    FormatError,
    Output,
    OutputRow,
    ReadOutputs,
    number_of,
    read_number,
    read_size,
)

TITLE = "NetPIPE np.out"


def read(lines: Sequence[CleanLine]) -> ReadOutputs | None:
    """What an np.out holds; None where no line has three numbers before another one. Raises FormatError."""
    rows: dict[int, OutputRow] = {}
    others = 0
    for line, (text, is_error) in enumerate(lines, 1):
        cells = text.split()
        if is_error or not cells or (rows and not cells[0][0].isdecimal()):
            others += bool(cells)
            continue
        if len(cells) != 3 or (not rows and None in map(number_of, cells)):
            if not rows:
                return None
            raise FormatError(f"line {line} is not a size, a rate and a time: '{text.strip()[:80]}'")
        if line == len(lines):
            raise FormatError(f"line {line}, its last, does not end: a part is missing; save the whole output")
        row = _row(line, cells)
        if row.bytes in rows:
            raise FormatError(f"line {line} has the size of line {rows[row.bytes].line} again: {row.bytes} B")
        rows[row.bytes] = row
    output = Output("NetPIPE 3", "pingpong", "netpipe", list(rows.values()), 2)
    return ReadOutputs([output], len(rows), len(rows), others) if rows else None


def _row(line: int, cells: Sequence[str]) -> OutputRow:
    size = read_size(cells[0], line)
    rate, half = read_number(cells[1], line, "a rate")
    time_s, time_half_s = read_number(cells[2], line, "a time")
    by_rate_s = size / (rate * (1 << 20) / 8)
    digits = half / rate, time_half_s / time_s
    if abs(by_rate_s / time_s - 1) > 2 * sum(digits):
        raise FormatError(f"line {line}: {cells[1]} Mbit/s and {cells[2]} s contradict each other at {size} B")
    value_ns = 1e9 * (by_rate_s if digits[0] < digits[1] else time_s)
    return OutputRow(line, size, (value_ns,), value_ns * min(digits))
