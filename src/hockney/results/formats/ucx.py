"""ucx_perftest: text.

The line `Final:`, with the average over the whole test; MB are 2^20 bytes. A latency is half a round trip. The size
stands in the heading that a server prints, or in the options of the command. (src/tools/perf/perftest_run.c.)
"""

from __future__ import annotations

import re

from hockney.results.formats.output import Format, FormatError, Output, OutputTable, curves, number_said

_TITLES = (
    *("Stage", "iterations", "p50 (us)", "average (us)", "overall (us)"),
    *("average rate (MiB/s)", "overall rate (MiB/s)", "average (msg/s)", "overall (msg/s)"),
)
_PATTERNS = dict.fromkeys(("tag_lat", "tag_match_latency"), "pingpong") | {"tag_bw": "ucx_tag_match_bandwidth"}


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
    name = re.sub(r"\W+", "_", test[1]).lower()
    base = Output(f"ucx_perftest {test[1]}", _PATTERNS.get(name, f"ucx_{name}"), "ucx", 2, options=table.heading_says)
    main = "overall (us)" if name.endswith(("latency", "_lat")) else "overall rate (MiB/s)"
    return curves(table, base, main, size=size)


FORMAT = Format(
    "ucx_perftest",
    _read,
    head=re.compile(r"\s*\|\s+Stage\s+\| # iterations \|(.*\|){7}"),
    titles=lambda *_: _TITLES,
    row=re.compile(r"\s*Final:"),
    said=(
        (r"\| Data layout:\s+(\w+)", "layout", ""),
        (r"\| Send memory:\s+(\S+)", "send_memory", "host"),
        (r"\| Recv memory:\s+(\S+)", "receive_memory", "host"),
        (r"\| Window size:\s+(\d+)", "window", "32"),
    ),
)
