"""OSU micro-benchmarks, versions 3 to 7: text.

`osu_latency` is half a round trip. Rates of `osu_bibw` and `osu_mbw_mr` are those of both directions, of all pairs;
MB are 10^6 bytes. A collective's latency is the mean over its ranks; their number is not printed. Only `osu_mbw_mr`
prints the number of messages in flight; of others, a line of `set -x` above may. (README of version 7.4.)
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from hockney.results.formats.output import DEFINED, WINDOWED, Format, Output, OutputTable, curves, number_said
from hockney.suites.tools import NamedSeries, tools

_TYPES = {"MPI_CHAR": "int8", "MPI_INT": "int32", "MPI_FLOAT": "float32"}
_OF_TWO = r"(?:osu_)?(?:pingpong|oneway|twoway|put|get|acc|fetch_and_op|compare_and_swap)"
# What hockney itself wrote (results/osu_text.py).
_MADE = re.compile(
    r"^# Made by hockney \S+: (\w+)((?: \w+=\S+)*) on (\S+), (\d+) ranks?, .*?(of the slowest rank)?$", re.MULTILINE
)


@functools.cache
def benchmarks() -> dict[str, NamedSeries]:
    """The benchmarks that hockney defines alike, by the titles of their outputs."""
    rows = tools()["osu"].benchmarks.values()
    return {_key(row.title): row for row in rows if row.title and not row.differs and row.pattern in DEFINED}


def _key(title: str) -> str:
    """What the titles of all versions have in common: "Non-Blocking", "Alltoallv" and "Exchange" came and went."""
    return re.sub(r"personalized ?exchange|\W", "", title.lower())


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
    same, own = benchmarks().get(_key(f"{first.partition('-')[0]} {rest}")), _MADE.search(table.heading)
    said, options = table.heading_says, dict(same.options) if same else {}
    kind = said.pop("datatype", "")
    if own:
        options = dict(pair.split("=") for pair in own[2].split())
    elif "dtype" in options:  # OSU before 7 does not say that it adds MPI_FLOAT
        options["dtype"] = _TYPES.get(kind or "MPI_FLOAT", kind)
    elif kind not in ("", "MPI_CHAR"):
        said["datatype"] = kind
    options |= said
    if same and same.pattern in WINDOWED:
        options.pop("window", None)
    if "-" in first and "Send Buffer" not in table.heading:
        options["accelerator"] = accelerator[0]
    pairs = number_said(r"# (?:\[ p|P)airs: (\d+)", table.heading) or 0
    window = number_said(r"\[ window size: (\d+) \]", table.heading)
    pattern = own[1] if own else same.pattern if same else as_named
    timed = same.options.get("time", "sources" if pattern == "pairs" else "root") if same else "mean"
    transports = same.transports if same and same.transports else ({"openshmem": "shmem"}.get(api, api),)
    base = Output(
        tool=test[1],
        pattern=pattern,
        transport=own[3] if own else transports[0],
        ranks=int(own[4]) if own else 2 * pairs or (2 if re.match(_OF_TWO, pattern) else None),
        timed="slowest" if own and own[5] else timed,
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
        (r"# Datatype: (\w+)", "datatype", ""),
    ),
)
