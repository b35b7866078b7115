"""Text and JSON of nccl-tests and rccl-tests: times in us, means over iterations and, unless -a says otherwise, ranks.

Only later versions name the collective. Times out of place are those of the pattern; in-place times are separate
curves, as are algbw and busbw where they differ. Sizes and rates are defined in doc/PERFORMANCE.md of nccl-tests. A
size that is rounded down may come again, as does every size with -N. (src/util.cu, common.cu.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import PurePath
from typing import Any

from hockney.results.formats.output import FormatError, Output
from hockney.results.formats.tables import OutputTable, TextFormat, curves, said

_UNITS = {"time": "(us)", "cputime": "(us)", "algbw": "(GB/s)", "busbw": "(GB/s)", "i_cv%": ""}
_KEYS = {
    "type": ("datatype", ("float",)),
    "redop": ("redop", ("sum", "none", "")),
    "root": ("root", ("-1", "0")),
}
_SAID = (
    (r"graph: (\d+)", "graph", "0"),
    (r"agg iters: (\d+)", "aggregated", "1"),
    (r"# (Blocking) En", "blocking", ""),
)
_JSON = {"time": "time", "alg_bw": "algbw", "bus_bw": "busbw", "nwrong": "#wrong"}


def _titles(line: str, previous: str) -> Sequence[str] | None:
    if not re.match(r"\s*#\s+size\s.*\bbusbw\b", line):
        return None
    return [title + _UNITS.get(title, "(us)" if title.startswith("i_") else "") for title in line.lstrip("# ").split()]


def _read(table: OutputTable) -> list[Output]:
    above = f"{table.above}\n{table.heading}"
    named = re.search(r"^\s*# Collective test starting: (\w+?)_perf", above, re.MULTILINE)
    version = re.search(r"^\s*# (nccl-tests version \S+)", above, re.MULTILINE)
    ranks = len(set(re.findall(r"^\s*#\s+Rank\s+(\d+) ", above, re.MULTILINE)))
    base = Output(
        tool=version[1] if version else "nccl-tests",
        pattern=None if named is None else "allreduce" if named[1] == "all_reduce" else f"nccl_{named[1]}",
        transport="nccl",
        rows=(),
        ranks=ranks or None,
        timed="mean",
        options=said(above, _SAID),
    )
    times = [place for place, title in enumerate(table.titles) if re.match("(cpu)?time", title)]
    outputs = []
    for place, start, end in zip(({}, {"place": "in"}), times, [*times[1:], len(table.titles)], strict=False):
        half = table.columns([*range(times[0]), *range(start, end)])
        of_place = Output(**{**vars(base), "options": {**base.options, **place}})
        rates: dict[str, Fraction | str] = {"algbw(GB/s)": Fraction(1), "busbw(GB/s)": "busbw"}
        outputs += curves(half, of_place, table.titles[start], keys=_KEYS, rates=rates, repeats=True)
    return outputs


FORMAT = TextFormat(
    "nccl-tests text",
    _titles,
    _read,
    re.compile(r"\s*# nThread \d+ nGpus \d+"),
    "# Avg bus bandwidth",
    ends_each=True,
)


def document_tables(document: Mapping[str, Any]) -> list[OutputTable] | None:
    """The table of a JSON of nccl-tests, as its text has it; None for another document. Raises FormatError."""
    if not {"nccl_version", "args", "config"} <= document.keys():
        return None
    if "end_time" not in document:
        raise FormatError("its end, 'end_time', is missing: the run was cut short")
    if document["out_of_bounds"]["okay"] not in ("true", True):
        raise FormatError(f"its data were wrong: out_of_bounds {document['out_of_bounds']['count']}")
    config = document["config"]
    heading = [f"# Collective test starting: {PurePath(document['args'][0]).name}"]
    heading += [f"graph: {config['graph']} agg iters: {config['aggregated_iterations']}"]
    heading += [f"#  Rank {device['rank']} " for device in config["devices"]]
    if config.get("blocking_collectives") == "true":
        heading.append("# Blocking Enabled")
    front, places = ("size", "count", "type", "redop", "root"), ("out_of_place", "in_place")
    titles = [*front, *(title + _UNITS.get(title, "") for _ in places for title in _JSON.values())]
    table = OutputTable(FORMAT, 1, titles, "\n".join(heading))
    for number, row in enumerate(document["results"], 1):
        cells = [str(row[name]).strip() for name in front]
        for figures in (row.get(place) or {} for place in places):
            cells += [str(figures.get(name, figures.get("cpu_time"))) for name in _JSON]
        table.rows.append((number, cells))
    return [table]
