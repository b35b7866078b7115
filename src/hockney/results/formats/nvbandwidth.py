"""nvbandwidth: text and JSON.

A matrix of GB/s (10^9), or of ns, for each test. It does not say the size of its copies (512 MiB, unless --bufferSize
says otherwise), so a time is that of 10^9 bytes. The diagonal, and cells of pairs that were not measured, hold
nothing. (output.cpp.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hockney.results.formats.output import Document, Format, FormatError, Output, OutputTable, curves, number_of

_TEST = re.compile(r"\s*Running (\w+)\.\s*$", re.MULTILINE)
_UNIT = re.compile(r"\((GB/s|ns)\)\s*$")


def _titles(line: str, previous: str) -> Sequence[str]:
    unit = _UNIT.search(previous)
    return ["row", *(f"{name} ({unit[1]})" for name in line.split())] if unit else []


def _read(table: OutputTable) -> list[Output]:
    test = _TEST.match(table.heading)
    name = f"nvbandwidth_{test[1]}" if test else None
    outputs = []
    for at, title in enumerate(table.titles[1:], 1):
        rows = [(line, [cells[0], cells[at]]) for line, cells in table.rows if number_of(cells[at])]
        base = Output("nvbandwidth", name, "cuda", 2, options={"to": title.split()[0]}, is_sized=False)
        column = replace(table, titles=["row", title], rows=rows)
        outputs += curves(column, base, title, size=10**9, keys={"row": ("from", ())})
    return outputs


def _tables(document: Document) -> Iterable[OutputTable]:
    whole = document["nvbandwidth"]
    if "error" in whole:
        raise FormatError(f"its run failed: {whole['error']}")
    for case in whole["testcases"]:
        if case["status"] in ("Error", "Not Found") or "error" in case:
            raise FormatError(f"its run failed: {case['name']}: {case.get('error', case['status'])}")
        unit, matrix = _UNIT.search(case.get("bandwidth_description", "")), case.get("bandwidth_matrix", [[]])
        titles = ["row", *(f"{column} ({unit[1] if unit else 'GB/s'})" for column in range(len(matrix[0])))]
        rows = [(number, [str(cell) for cell in (number, *row)]) for number, row in enumerate(matrix)]
        if {len(cells) for _, cells in rows} != {len(titles)}:
            raise ValueError("a matrix has rows of one length")
        yield OutputTable(FORMAT, 1, titles, f"Running {case['name']}.", rows)


FORMAT = Format(
    "nvbandwidth",
    _read,
    head=re.compile(r"(?:\s+\d+)+\s*$"),
    titles=_titles,
    start=_TEST,
    row=re.compile(r"\s*\S+(?:\s+(?:[\d.]+|N/A))+\s*$"),
    is_document=lambda document: isinstance(document.get("nvbandwidth"), dict),
    tables=_tables,
)
