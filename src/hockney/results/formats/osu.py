"""Text of the OSU Micro-Benchmarks, versions 3 to 7: latencies in us, rates in MB/s (10^6 bytes).

`osu_latency` is half a round trip. Rates of `osu_bibw` and `osu_mbw_mr` are those of both directions, of all pairs. A
collective's latency is the mean over its ranks; their number is not printed. Only `osu_mbw_mr` prints the number of
messages in flight; of others, a line of `set -x` above may. (README of the OSU Micro-Benchmarks 7.4.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hockney.results.formats.output import FormatError, Output
from hockney.results.formats.tables import OutputTable, TextFormat, curves, number_said, said

_HEADER = re.compile(r"\s*# (OSU (.+?) Test(?: v\S+| \(Version \S+\))?)\s*$", re.MULTILINE)
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
_SAID = (
    (r"Send Buffer on \w+ \((\w)\) and Receive Buffer on \w+ \((\w)\)", "buffers", "HH"),
    (r"# Window creation: (?:MPI_Win_)?(\w+)", "memory", ""),
    (r"# Synchronization: (?:MPI_Win_)?(\w+)", "sync", ""),
    (r"# Datatype: (\w+)", "datatype", "MPI_CHAR"),
)


def _titles(line: str, previous: str) -> Sequence[str] | None:
    """Two blanks part the titles, or the unit in brackets ends them; some tables have no '#'."""
    if not re.search(r"\w\.? ?\(us\)|\bMB/s\)?(?:\s|$)", line):
        return None
    titles = [part.strip() for part in re.split(r"\s{2,}", re.sub(r"\)\s+", ")  ", line.lstrip("# ").rstrip()))]
    if re.match(r"\s*#\s*(?:Size|Overall|Avg|Latency|Bandwidth|MB/s)", line) or all(
        re.search(r"\((?:us|%|MB/s)\)$|^Validation$", part) for part in titles
    ):
        return titles
    return None


def _read(table: OutputTable) -> list[Output]:
    header = _HEADER.match(table.heading)
    if header is None:
        raise FormatError(f"line {table.line} has no line '# OSU … Test' above it: save the whole output")
    first, _, rest = header[2].partition(" ")
    api, *accelerator = re.split(r"[-_]", first.lower())  # MPI, MPI-CUDA, MPI_Put
    name = header[2] if "_" in first else rest
    as_named = "osu_" + re.sub(r"\W+", "_", re.sub(r"^MPI_", "", name)).strip("_").lower()
    pattern, timed = PATTERNS.get(name, (as_named, "mean")) if api == "mpi" else (as_named, "mean")
    main = next((title for title in table.titles if re.search(r"MB/s|Latency|Overall", title)), None)
    if main is None:
        raise FormatError(f"line {table.line} has no column of a latency or a rate: {' '.join(table.titles)}")
    options = {"algorithm": "native"} if pattern == "multicast" else {}
    if "-" in first and "Send Buffer" not in table.heading:
        options["accelerator"] = accelerator[0]
    pairs = number_said(r"# (?:\[ p|P)airs: (\d+)", table.heading)
    window = number_said(r"\[ window size: (\d+) \]", table.heading)
    base = Output(
        tool=header[1],
        pattern=pattern,
        transport={"openshmem": "shmem"}.get(api, api),
        rows=(),
        ranks=2 * pairs if pairs else 2 if re.match("pingpong|oneway|twoway|osu_(put|get|acc)", pattern) else None,
        timed=timed,
        options=options | said(table.heading, _SAID),
        window=window or number_said(r"\bosu_\w+\b.*?\s(?:-W|--window-size)[ =]?(\d+)", table.above),
        is_sized="Size" in table.titles,
    )
    return curves(table, base, main, flows=pairs or 1)


FORMAT = TextFormat("OSU micro-benchmarks text", _titles, _read, _HEADER)
