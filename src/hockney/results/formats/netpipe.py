"""NetPIPE 3: np.out.

Per size its bytes, Mbit/s (of 2^20) and the time in s, half a round trip: the smallest of several trials. The file
names neither the transport nor the number of trials, nor the mode: streams (-s) or both directions (-2). It is read
as round trips. Of rate and time the one with more digits counts. (NetPIPE 3.7.2, netpipe.c.)
"""

from __future__ import annotations

import re

from hockney.results.formats.output import Format, FormatError, Output, OutputRow, OutputTable, read_number, read_size


def _read(table: OutputTable) -> list[Output]:
    rows: dict[int, OutputRow] = {}
    for line, cells in table.rows:
        if len(cells) != 3:
            raise FormatError(f"line {line} is not a size, a rate and a time: '{' '.join(cells)[:80]}'")
        size = read_size(cells[0], line)
        rate, half = read_number(cells[1], line, "a rate")
        time_s, time_half_s = read_number(cells[2], line, "a time")
        by_rate_s = size / (rate * (1 << 20) / 8)
        digits = half / rate, time_half_s / time_s
        if abs(by_rate_s / time_s - 1) > 2 * sum(digits):
            raise FormatError(f"line {line}: {cells[1]} Mbit/s and {cells[2]} s contradict each other at {size} B")
        if size in rows:
            raise FormatError(f"line {line} repeats the size of line {rows[size].line}: {size} B")
        value_ns = 1e9 * (by_rate_s if digits[0] < digits[1] else time_s)
        rows[size] = OutputRow(line, size, (value_ns,), value_ns * min(digits))
    return [Output("NetPIPE 3", "pingpong", "netpipe", 2, list(rows.values()))]


FORMAT = Format(
    "NetPIPE np.out",
    _read,
    head=re.compile(r"\s*\d+\s+\d+\.\d+\s+\d+\.\d+\s*$"),
    titles=lambda _, previous: [] if previous else ("size", "Mbit/s", "s"),
    is_headed=False,
    row=re.compile(r"\s*\d.*"),  # whatever follows: a damaged row is no other line
)
