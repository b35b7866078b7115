"""Text of ucx_perftest: the line `Final:`, with the average over the whole test; MB are 2^20 bytes.

A latency is half a round trip. The size stands in the heading that a server prints, or in the options of the command.
(src/tools/perf/perftest_run.c.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hockney.results.formats.output import FormatError, Output
from hockney.results.formats.tables import OutputTable, TextFormat, curves, number_said, said

_TITLES = (
    *("Stage", "iterations", "p50 (us)", "average (us)", "overall (us)"),
    *("average rate (MiB/s)", "overall rate (MiB/s)", "average (msg/s)", "overall (msg/s)"),
)
_PATTERNS = {"tag_match_latency": "pingpong"}
_TESTS = {"tag_lat": "tag match latency", "tag_bw": "tag match bandwidth"}
_SAID = (
    (r"\| Data layout:\s+(\w+)", "layout", ""),
    (r"\| Send memory:\s+(\S+)", "send_memory", "host"),
    (r"\| Recv memory:\s+(\S+)", "receive_memory", "host"),
    (r"\| Window size:\s+(\d+)", "window", "32"),
)


def _titles(line: str, previous: str) -> Sequence[str] | None:
    return _TITLES if re.match(r"\s*\|\s+Stage\s+\| # iterations \|(.*\|){7}", line) else None


def _read(table: OutputTable) -> list[Output]:
    command = re.search(r"ucx_perftest\b.*", table.heading)
    words = command[0] if command else ""
    test = re.search(r"\| Test:\s+(.+?)\s*\|", table.heading) or re.search(r"\s-t ?(\w+)", words)
    size = number_said(r"\| Message size:\s+(\d+)", table.heading) or number_said(r"\s-s ?(\d+)\b", words)
    if test is None or size is None:
        raise FormatError(
            f"line {table.line} has neither its test nor its message size above it: put the command above it, "
            "for example 'ucx_perftest -t tag_lat -s 8', or save the output of the server"
        )
    name = re.sub(r"\W+", "_", _TESTS.get(test[1], test[1])).lower()
    is_latency = name.endswith(("latency", "_lat"))
    base = Output(
        f"ucx_perftest {test[1]}", _PATTERNS.get(name, f"ucx_{name}"), "ucx", (), 2, "root", said(table.heading, _SAID)
    )
    return curves(table, base, "overall (us)" if is_latency else "overall rate (MiB/s)", size=size)


FORMAT = TextFormat("ucx_perftest text", _titles, _read, row=re.compile(r"\s*Final:"))
