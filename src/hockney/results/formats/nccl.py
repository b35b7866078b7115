"""Text of nccl-tests and rccl-tests: times in us, the mean over iterations and, unless -a says otherwise, over ranks.

Only later versions name the collective. Times out of place are those of the pattern; in-place times are separate
points. Sizes are defined as in doc/PERFORMANCE.md of nccl-tests.
"""

from __future__ import annotations

import re

from hockney.results.formats.output import FormatError, Output, OutputRow, lines_of, read_size, row_of_time, rows_of

TITLE = "nccl-tests text"
_END = "# Avg bus bandwidth"


def is_format(text: str) -> bool:
    """Whether its table or its options are in it."""
    return re.search(r"nThread \d+ nGpus \d+|\balgbw\s+busbw\b", text) is not None


def read(text: str) -> list[Output]:
    """The outputs in a text of nccl-tests. Raises FormatError."""
    lines = lines_of(text)
    heads = [number for number, line in enumerate(lines) if line.startswith("#") and "busbw" in line]
    if not heads:
        raise FormatError("it has no table: its run failed")
    starts = [0, *(at + 1 for at in heads[:-1])]
    bounds = zip(starts, heads, [*heads[1:], len(lines)], strict=True)
    return [output for start, head, end in bounds for output in _read_one(lines[:end], start, head)]


def _read_one(lines: list[str], start: int, head: int) -> list[Output]:
    above = lines[start:head]
    if not any(line.startswith(_END) for line in lines[head:]):
        raise FormatError(f"the line '{_END}' is missing below line {head + 1}: the run was cut short")
    head_text = "\n".join(above)
    named = re.search(r"^# Collective test starting: (\w+?)_perf", head_text, re.MULTILINE)
    version = re.search(r"^# (nccl-tests version \S+)", head_text, re.MULTILINE)
    tool = version[1] if version else "nccl-tests"
    ranks = len(set(re.findall(r"^#\s+Rank\s+(\d+) ", head_text, re.MULTILINE))) or None
    titles = lines[head].lstrip("# ").split()
    times = [place for place, title in enumerate(titles) if title == "time"]
    rows: list[list[OutputRow]] = [[] for _ in times]
    for line, cells in rows_of(lines, head + 1, len(titles)):
        for place, of_kind in zip(times, rows, strict=True):
            wrong = cells[place + 3] if titles[place + 3 : place + 4] == ["#wrong"] else "N/A"
            if wrong.isdecimal() and int(wrong):
                raise FormatError(f"line {line} has wrong results: {wrong}")
            size = read_size(cells[0], line)
            of_kind.append(row_of_time(line, size, cells[place], 1e3, verified=wrong == "0"))
    pattern = None if named is None else "allreduce" if named[1] == "all_reduce" else f"nccl_{named[1]}"
    return [
        Output(tool, pattern, "nccl", of_kind, ranks, "mean", {"place": "in"} if kind else {})
        for kind, of_kind in enumerate(rows)
    ]
