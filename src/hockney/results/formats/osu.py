"""OSU micro-benchmarks, versions 3 to 7: text.

`osu_latency` is half a round trip. Rates of `osu_bibw` and `osu_mbw_mr` are those of both directions, of all pairs;
MB are 10^6 bytes. A collective's latency is the mean over its ranks; their number is not printed. Only `osu_mbw_mr`
prints the number of messages in flight; of others, a line of `set -x` above may. (README of version 7.4.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hockney.results.formats.output import Format, Output, OutputTable, curves, number_said

# The title without "OSU", "MPI" and "Test" -> the pattern with the same definition, and whose time.
PATTERNS = {
    "Latency": ("pingpong", "root"),
    "Bandwidth": ("oneway", "root"),
    "Bi-Directional Bandwidth": ("twoway", "root"),
    "Multiple Bandwidth / Message Rate": ("pairs", "sources"),
    "Allreduce Latency": ("allreduce", "mean"),
    "All-to-All Personalized Exchange Latency": ("alltoall", "mean"),
    "Broadcast Latency": ("bcast", "mean"),
    "Barrier Latency": ("barrier", "mean"),
}
_OF_TWO = "pingpong|oneway|twoway|osu_(put|get|acc)"
# What hockney itself wrote (results/osu_text.py).
_MADE = re.compile(r"^# Made by hockney \S+: .* on (\S+), (\d+) ranks?, .*?(of the slowest rank)?$", re.MULTILINE)


def _titles(line: str, _: str) -> Sequence[str]:
    """Two blanks part the titles, or the unit in brackets ends them; some tables have no '#'."""
    titles = [part.strip() for part in re.split(r"\s{2,}", re.sub(r"\)\s+", ")  ", line.lstrip("# ").rstrip()))]
    is_comment = re.match(r"\s*#\s*(?:Size|Overall|Avg|Latency|Bandwidth|MB/s)", line)
    return titles if is_comment or all(re.search(r"\((?:us|%|MB/s)\)$|^Validation$", part) for part in titles) else []


def _read(table: OutputTable) -> list[Output]:
    test = table.test("# OSU … Test")
    first, _, rest = test[2].partition(" ")
    api, *accelerator = re.split(r"[-_]", first.lower())  # MPI, MPI-CUDA, MPI_Put
    name = test[2] if "_" in first else rest
    as_named = "osu_" + re.sub(r"\W+", "_", name.removeprefix("MPI_")).strip("_").lower()
    pattern, timed = (PATTERNS if api == "mpi" else {}).get(name, (as_named, "mean"))
    options = table.heading_says
    if "-" in first and "Send Buffer" not in table.heading:
        options["accelerator"] = accelerator[0]
    pairs = number_said(r"# (?:\[ p|P)airs: (\d+)", table.heading) or 0
    own = _MADE.search(table.heading)
    window = number_said(r"\[ window size: (\d+) \]", table.heading)
    base = Output(
        tool=test[1],
        pattern=pattern,
        transport=own[1] if own else {"openshmem": "shmem"}.get(api, api),
        ranks=int(own[2]) if own else 2 * pairs or (2 if re.match(_OF_TWO, pattern) else None),
        timed="slowest" if own and own[3] else timed,
        options=options,
        window=window or number_said(r"\bosu_\w+\b.*?\s(?:-W|--window-size)[ =]?(\d+)", table.above),
        is_sized="Size" in table.titles,
    )
    return curves(table, base, table.main("MB/s|Latency|Overall"), flows=pairs or 1)


FORMAT = Format(
    "OSU micro-benchmarks",
    _read,
    head=re.compile(r".*?(?:\w\.? ?\(us\)|\bMB/s\)?(?:\s|$))"),
    titles=_titles,
    start=re.compile(r"\s*# (OSU (.+?) Test(?: v\S+| \(Version \S+\))?)\s*$", re.MULTILINE),
    said=(
        (r"Send Buffer on \w+ \((\w)\) and Receive Buffer on \w+ \((\w)\)", "buffers", "HH"),
        (r"# Window creation: (?:MPI_Win_)?(\w+)", "memory", ""),
        (r"# Synchronization: (?:MPI_Win_)?(\w+)", "sync", ""),
        (r"# Datatype: (\w+)", "datatype", "MPI_CHAR"),
    ),
)
