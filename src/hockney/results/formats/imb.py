"""Text of the Intel MPI Benchmarks (IMB-MPI1 and its like): times in us.

`t` of PingPong is half a round trip; `t_max` is the slowest rank's mean, `t_avg` the mean over ranks. The megabytes of
its rates changed with versions, so times alone are read. (Intel MPI Benchmarks User Guide 2021, "MPI-1 Benchmarks".)
"""

from __future__ import annotations

import itertools
import re

from hockney.results.formats.output import FormatError, Output, has_line, lines_of, read_size, row_of_time, rows_of

TITLE = "IMB text"
_VERSION = re.compile(r"Intel ?\(R\) MPI Benchmarks?,? (?:Suite )?(?:V(?:ersion )?)?([\w. ]+?)\s*(?:,|$)")
_BENCHMARK = re.compile(r"^#\s+Benchmarking\s+(\S+)")
_END = "# All processes entering MPI_Finalize"
# The pattern with the same definition, whose time, and the column.
_PATTERNS = {
    "pingpong": ("pingpong", "root"),
    "sendrecv": ("ring", "mean"),
    "allreduce": ("allreduce", "slowest"),
    "alltoall": ("alltoall", "slowest"),
    "bcast": ("multicast", "slowest"),
    "barrier": ("barrier", "slowest"),
}
_COLUMNS = {"root": "t[usec]", "mean": "t_avg[usec]", "slowest": "t_max[usec]"}


def is_format(text: str) -> bool:
    """Whether a header of IMB is in it."""
    return has_line(text, r"#\s+Benchmarking \S")


def read(text: str) -> list[Output]:
    """The outputs in a text of IMB. Raises FormatError."""
    lines = lines_of(text)
    if not any(line.startswith(_END) for line in lines):
        raise FormatError(f"its last line, '{_END}', is missing: the run was cut short, or only a part was saved")
    version = next((match[1] for line in lines if (match := _VERSION.search(line))), "")
    starts = [number for number, line in enumerate(lines) if _BENCHMARK.match(line)]
    return [_read_one(lines[:end], start, version) for start, end in itertools.pairwise([*starts, len(lines)])]


def _read_one(lines: list[str], start: int, version: str) -> Output:
    match = _BENCHMARK.match(lines[start])
    assert match is not None
    name = match[1]
    ranks = next(
        (int(said[1]) for line in lines[start:] if (said := re.match(r"#\s+#processes\s*=\s*(\d+)", line))), None
    )
    at = next((number for number in range(start, len(lines)) if "#repetitions" in lines[number]), None)
    if at is None:
        raise FormatError(f"line {start + 1}, {name}, has no table below it: its run failed")
    titles = lines[at].split()
    if "Group" in titles:
        raise FormatError(f"line {at + 1} is of several groups at once (-multi), which cannot be imported")
    pattern, timed = _PATTERNS.get(name.lower(), (f"imb_{name.lower()}", ""))
    timed = timed or ("root" if _COLUMNS["root"] in titles else "slowest")
    if _COLUMNS[timed] not in titles:
        raise FormatError(f"line {at + 1} has no column {_COLUMNS[timed]}")
    time_column = titles.index(_COLUMNS[timed])
    is_sized = "#bytes" in titles
    rows = []
    for line, cells in rows_of(lines, at + 1, len(titles)):
        size = read_size(cells[titles.index("#bytes")], line) if is_sized else 0
        rows.append(row_of_time(line, size, cells[time_column], 1e3))
    return Output(
        tool=f"Intel MPI Benchmarks {version}, {name}".replace(" ,", ","),
        pattern=pattern,
        transport="mpi",
        rows=rows,
        ranks=ranks,
        timed=timed,
        options={"algorithm": "native"} if pattern == "multicast" else {},
        is_sized=is_sized,
    )
