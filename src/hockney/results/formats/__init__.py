"""Outputs of other benchmarks as figures: one file for each format, which says what its titles and headings mean.

`read_outputs` finds the tables of all formats in a text, whatever stands between them, else JSON documents. A value
that a text does not contain stays None; `docs/import.md` lists the values of each format.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hockney.errors import UsageError
from hockney.results.formats import fabtests, imb, iperf3, nccl, netpipe, nvbandwidth, osu, perftest, ucx
from hockney.results.formats.lines import CleanLine, documents_of, lines_of
from hockney.results.formats.output import FormatError, Output, ReadOutputs
from hockney.results.formats.tables import OutputTable, Scan

__all__ = ["NAMES", "Output", "ReadOutputs", "read_outputs"]

_TEXTS = tuple(module.FORMAT for module in (osu, imb, nccl, perftest, ucx, fabtests, nvbandwidth))
_JSON_AS_TABLES = (nccl, perftest, nvbandwidth)
NAMES = ", ".join(
    [
        *(format_.title for format_ in _TEXTS),
        netpipe.TITLE,
        iperf3.TITLE,
        "JSON of nccl-tests, perftest and nvbandwidth",
    ]
)


def read_outputs(text: str, name: str) -> ReadOutputs:
    """What the text of the file `name` holds: one output or more. Raises UsageError, which names the line."""
    lines = lines_of(text)
    try:
        scan = Scan(lines, _TEXTS)
        reading = _of_tables(scan.tables, scan) if scan.tables else _of_documents(lines) or netpipe.read(lines)
        if reading and not any(output.rows for output in reading.outputs):
            raise FormatError("it holds no figures: its run failed, or only a part of its output was saved")
    except FormatError as error:
        raise UsageError(f"cannot import {name}: {error}") from error
    if reading is None:
        raise UsageError(f"cannot import {name}: its format is unknown; known are {NAMES}")
    return reading


def _of_tables(tables: Sequence[OutputTable], scan: Scan | None = None) -> ReadOutputs:
    rows = sum(len(table.rows) + len(table.notes) for table in tables)
    outputs = [output for table in tables for output in table.format.read(table)]
    notes = [note for table in tables for note in table.notes]
    return ReadOutputs(
        outputs, rows, rows - len(notes), scan.others if scan else 0, [*notes, *(scan.notes if scan else ())]
    )


def _of_documents(lines: Sequence[CleanLine]) -> ReadOutputs | None:
    """What the JSON documents hold together; None where one is of no known format."""
    documents, others = documents_of(lines)
    readings = [_of_document(document) for document in iperf3.whole_documents(documents)]
    known = [reading for reading in readings if reading]
    if not known or len(known) < len(readings):
        return None
    return ReadOutputs(
        [output for reading in known for output in reading.outputs],
        sum(reading.rows for reading in known),
        sum(reading.rows_read for reading in known),
        others,
        [note for reading in known for note in reading.notes],
    )


def _of_document(document: Any) -> ReadOutputs | None:
    try:
        for format_ in _JSON_AS_TABLES:
            if (tables := format_.document_tables(document)) is not None:
                return _of_tables(tables)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise FormatError("it is JSON of a known benchmark, but a part is missing or damaged") from error
    return iperf3.read(document)
