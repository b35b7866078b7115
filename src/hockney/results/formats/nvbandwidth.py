"""Text and JSON of nvbandwidth: a matrix of GB/s (10^9), or of ns, for each test.

It does not say the size of its copies (512 MiB, unless --bufferSize says otherwise), so a time is that of 10^9 bytes.
The diagonal, and cells of pairs that were not measured, hold nothing. (output.cpp, json_output.cpp.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hockney.results.formats.output import FormatError, Output, number_of
from hockney.results.formats.tables import OutputTable, TextFormat, curves

_TEST = re.compile(r"\s*Running (\w+)\.\s*$", re.MULTILINE)
_UNIT = re.compile(r"\((GB/s|ns)\)\s*$")
_COPY_BYTES = 10**9


def _titles(line: str, previous: str) -> Sequence[str] | None:
    unit = _UNIT.search(previous) if re.fullmatch(r"(?:\s+\d+)+\s*", line) else None
    return ["row", *(f"{name} ({unit[1]})" for name in line.split())] if unit else None


def _read(table: OutputTable) -> list[Output]:
    test = _TEST.match(table.heading)
    name = f"nvbandwidth_{test[1]}" if test else None
    base = Output("nvbandwidth", name, "cuda", (), 2, "root", is_sized=False)
    outputs = []
    for place, title in enumerate(table.titles[1:], 1):
        column = table.columns((0, place))
        column.rows = [(line, cells) for line, cells in column.rows if number_of(cells[1])]
        of_column = replace(base, options={"to": title.split()[0]})
        outputs += curves(column, of_column, title, size=_COPY_BYTES, keys={"row": ("from", ())})
    return outputs


FORMAT = TextFormat("nvbandwidth text", _titles, _read, _TEST, row=re.compile(r"\s*\S+(?:\s+(?:[\d.]+|N/A))+\s*$"))


def document_tables(document: Mapping[str, Any]) -> list[OutputTable] | None:
    """The tables of a JSON of nvbandwidth, as its text has them; None for another document. Raises FormatError."""
    whole = document.get("nvbandwidth")
    if not isinstance(whole, dict):
        return None
    if "error" in whole:
        raise FormatError(f"its run failed: {whole['error']}")
    tables: list[OutputTable] = []
    for case in whole["testcases"]:
        if case["status"] in ("Error", "Not Found") or "error" in case:
            raise FormatError(f"its run failed: {case['name']}: {case.get('error', case['status'])}")
        unit, matrix = _UNIT.search(case.get("bandwidth_description", "")), case.get("bandwidth_matrix", [])
        titles = [
            "row",
            *(f"{place} ({unit[1] if unit else 'GB/s'})" for place in range(len(matrix[0]) if matrix else 0)),
        ]
        rows = [(number, [str(number), *row]) for number, row in enumerate(matrix)]
        tables.append(OutputTable(FORMAT, len(tables) + 1, titles, f"Running {case['name']}.", rows))
    return tables
