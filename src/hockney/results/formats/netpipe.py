"""The file of NetPIPE 3 (np.out): per size its bytes, Mbit/s (of 2^20) and the time in s, half a round trip.

A time is the smallest of several trials. The file names neither the transport nor the number of trials, nor the mode:
streams (-s) or both directions (-2). It is read as round trips. Of rate and time the one with more digits counts.
(NetPIPE 3.7.2, netpipe.c.)
"""

from __future__ import annotations

from hockney.results.formats.output import FormatError, Output, OutputRow, lines_of, read_number, read_size

TITLE = "NetPIPE np.out"


def is_format(text: str) -> bool:
    """Whether its first line is three numbers."""
    cells = text.lstrip().partition("\n")[0].split()
    return len(cells) == 3 and all(cell.replace(".", "", 1).isdecimal() for cell in cells)


def read(text: str) -> list[Output]:
    """The outputs in a file of NetPIPE. Raises FormatError."""
    rows = []
    for line, whole in enumerate(lines_of(text), 1):
        cells = whole.split()
        if not cells:
            continue
        if len(cells) != 3:
            raise FormatError(f"line {line} is not a size, a rate and a time: '{whole.strip()[:80]}'")
        size = read_size(cells[0], line)
        rate, half = read_number(cells[1], line, "a rate")
        time_s, time_half_s = read_number(cells[2], line, "a time")
        by_rate_s = size / (rate * (1 << 20) / 8)
        digits = half / rate, time_half_s / time_s
        if abs(by_rate_s / time_s - 1) > 2 * sum(digits):
            raise FormatError(f"line {line}: {cells[1]} Mbit/s and {cells[2]} s contradict each other at {size} B")
        value_ns = 1e9 * (by_rate_s if digits[0] < digits[1] else time_s)
        rows.append(OutputRow(line, size, (value_ns,), value_ns * min(digits)))
    return [Output("NetPIPE 3", "pingpong", "netpipe", rows, 2)]
