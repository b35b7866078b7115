"""nccl-tests and rccl-tests: text and JSON.

Means over iterations and, unless -a says otherwise, ranks. Only later versions name the collective. Times out of
place are those of the pattern; in-place times are separate curves, as are algbw and busbw where they differ. Sizes
and rates are defined in doc/PERFORMANCE.md. A size that is rounded down may come again, as does every size with -N.
(src/util.cu, common.cu.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import PurePath

from hockney.results.formats.output import Document, Format, FormatError, Output, OutputTable, curves

_UNITS = {"time": "(us)", "cputime": "(us)", "algbw": "(GB/s)", "busbw": "(GB/s)", "i_cv%": ""}
_KEYS = {"type": ("datatype", ("float",)), "redop": ("redop", ("sum", "none", "")), "root": ("root", ("-1", "0"))}
_RATES: dict[str, Fraction | str] = {"algbw(GB/s)": Fraction(1), "busbw(GB/s)": "busbw"}
_JSON_KEYS = ("time", "alg_bw", "bus_bw", "nwrong")


def _titles(line: str, _: str) -> Sequence[str]:
    """With their units, which the line below has."""
    return [title + _UNITS.get(title, "(us)" if title.startswith("i_") else "") for title in line.lstrip("# ").split()]


def _read(table: OutputTable) -> list[Output]:
    above, titles = f"{table.above}\n{table.heading}", list(table.titles)
    named = re.search(r"^\s*# Collective test starting: (\w+?)_perf", above, re.MULTILINE)
    version = re.search(r"^\s*# (nccl-tests version \S+)", above, re.MULTILINE)
    ranks = len(set(re.findall(r"^\s*#\s+Rank\s+(\d+) ", above, re.MULTILINE)))
    pattern = None if named is None else "allreduce" if named[1] == "all_reduce" else f"nccl_{named[1]}"
    tool = version[1] if version else "nccl-tests"
    times = [at for at, title in enumerate(titles) if re.match("(cpu)?time", title)]
    outputs = []
    for buffers, start, end in zip(({}, {"place": "in"}), times, [*times[1:], None], strict=False):
        rows = [(line, cells[: times[0]] + cells[start:end]) for line, cells in table.rows]
        half = replace(table, titles=titles[: times[0]] + titles[start:end], rows=rows)
        base = Output(tool, pattern, "nccl", ranks or None, timed="mean", options=table.heading_says | buffers)
        outputs += curves(half, base, titles[start], keys=_KEYS, rates=_RATES, repeats=True)
    return outputs


def _tables(document: Document) -> Iterable[OutputTable]:
    if "end_time" not in document:
        raise FormatError("its end, 'end_time', is missing: the run was cut short")
    if document["out_of_bounds"]["okay"] not in ("true", True):
        raise FormatError(f"its data were wrong: out_of_bounds {document['out_of_bounds']['count']}")
    config = document["config"]
    heading = [f"# Collective test starting: {PurePath(document['args'][0]).name}"]
    heading += [f"graph: {config['graph']} agg iters: {config['aggregated_iterations']}"]
    heading += [f"#  Rank {device['rank']} " for device in config["devices"]]
    heading += ["# Blocking Enabled"] if config.get("blocking_collectives") == "true" else []
    front = ("size", "count", "type", "redop", "root")
    titles = _titles(" ".join([*front, *("time algbw busbw #wrong",) * 2]), "")
    table = OutputTable(FORMAT, 1, titles, "\n".join(heading))
    for number, row in enumerate(document["results"], 1):
        cells = [str(row[name]).strip() for name in front]
        for figures in (row.get(buffers) or {} for buffers in ("out_of_place", "in_place")):
            cells += [str(figures.get(name, figures.get("cpu_time"))) for name in _JSON_KEYS]
        table.rows.append((number, cells))
    yield table


FORMAT = Format(
    "nccl-tests",
    _read,
    head=re.compile(r"\s*#\s+size\s.*\bbusbw\b"),
    titles=_titles,
    start=re.compile(r"\s*# nThread \d+ nGpus \d+"),
    end="# Avg bus bandwidth",
    ends_each=True,
    said=(
        (r"graph: (\d+)", "graph", "0"),
        (r"agg iters: (\d+)", "aggregated", "1"),
        (r"# (Blocking) En", "blocking", ""),
    ),
    is_document=lambda document: {"nccl_version", "args", "config"} <= document.keys(),
    tables=_tables,
)
