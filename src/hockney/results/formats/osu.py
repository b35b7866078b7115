"""Text of the OSU Micro-Benchmarks, versions 3 to 7: latencies in us, rates in MB/s (10^6 bytes).

`osu_latency` is half a round trip. Rates of `osu_bibw` and `osu_mbw_mr` are those of both directions, of all pairs. A
collective's latency is the mean over its ranks; their number is not printed. Only `osu_mbw_mr` prints the number of
messages in flight. (README of the OSU Micro-Benchmarks 7.4.)
"""

from __future__ import annotations

import itertools
import re

from hockney.results.formats.output import (
    FormatError,
    Output,
    OutputRow,
    has_line,
    lines_of,
    read_size,
    row_of_rate,
    row_of_time,
    rows_of,
)

TITLE = "OSU micro-benchmarks text"
_HEADER = re.compile(r"^# (OSU (.+?) Test(?: v\S+| \(Version \S+\))?)\s*$")
# The title without "OSU", "MPI" and "Test" -> the pattern with the same definition, and whose time.
PATTERNS = {
    "Latency": ("pingpong", "root"),
    "Bandwidth": ("oneway", "root"),
    "Bi-Directional Bandwidth": ("twoway", "root"),
    "Multiple Bandwidth / Message Rate": ("pairs", "sources"),
    "Allreduce Latency": ("allreduce", "mean"),
    "All-to-All Personalized Exchange Latency": ("alltoall", "mean"),
    "Broadcast Latency": ("multicast", "mean"),
    "Barrier Latency": ("barrier", "mean"),
}


def is_format(text: str) -> bool:
    """Whether a header of OSU is in it."""
    return has_line(text, "# OSU ")


def read(text: str) -> list[Output]:
    """The outputs in a text of the OSU benchmarks. Raises FormatError."""
    lines = lines_of(text)
    starts = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    return [_read_one(lines[:end], start) for start, end in itertools.pairwise([*starts, len(lines)])]


def _read_one(lines: list[str], start: int) -> Output:
    header = _HEADER.match(lines[start])
    assert header is not None
    first, _, rest = header[2].partition(" ")
    api = re.split(r"[-_]", first)[0].lower()  # MPI, MPI-CUDA, MPI_Put
    name = header[2] if "_" in first else rest
    as_named = "osu_" + re.sub(r"\W+", "_", re.sub(r"^MPI_", "", name)).strip("_").lower()
    pattern, timed = PATTERNS.get(name, (as_named, "mean")) if api == "mpi" else (as_named, "mean")
    pairs, window = _pairs(lines[start:])
    at, columns = _columns(lines, start)
    titles = columns if columns[0] == "Size" else ["Size", *columns]
    known = (number for number, title in enumerate(titles) if re.search(r"MB/s|Latency|Overall", title))
    column = next(known, None)
    if column is None:
        raise FormatError(f"line {at + 1} has no column of a latency or a rate: {lines[at].strip()}")
    is_sized, is_rate = columns[0] == "Size", "MB/s" in titles[column]
    rows: list[OutputRow] = []
    for line, words in rows_of(lines, at + 1, len(columns)):
        cells = words if is_sized else ["0", *words]
        size = read_size(cells[0], line)
        if "Fail" in cells:
            raise FormatError(f"line {line} says that its data were wrong: 'Fail'")
        if is_rate:
            rows.append(row_of_rate(line, size, cells[column], 1e6, pairs or 1))
        else:
            rows.append(row_of_time(line, size, cells[column], 1e3, verified="Pass" in cells))
    return Output(
        tool=header[1],
        pattern=pattern,
        transport={"openshmem": "shmem"}.get(api, api),
        rows=rows,
        ranks=2 * pairs if pairs else 2 if re.match("pingpong|oneway|twoway|osu_(put|get|acc)", pattern) else None,
        timed=timed,
        options={"algorithm": "native"} if pattern == "multicast" else {},
        window=window,
        is_sized=is_sized,
    )


def _pairs(lines: list[str]) -> tuple[int | None, int | None]:
    for line in lines:
        match = re.match(r"#(?: \[ pairs: (\d+) \])?(?: \[ window size: (\d+) \])?\s*$", line)
        if match and any(match.groups()):
            pairs, window = (int(number) if number else None for number in match.groups())
            return pairs, window
    return None, None


def _columns(lines: list[str], start: int) -> tuple[int, list[str]]:
    """The line of the titles, and these: two blanks part them, or the unit in brackets ends them."""
    for number, line in enumerate(lines[start + 1 :], start + 1):
        if line.startswith("#") and re.search(r"\(us\)|MB/s", line):
            text = re.sub(r"\)\s+", ")  ", line.lstrip("# ").rstrip())
            return number, [title.strip() for title in re.split(r"\s{2,}", text)]
        if line and line[0].isdecimal():
            break
    raise FormatError(f"line {start + 1} has no table below it: its run failed")
