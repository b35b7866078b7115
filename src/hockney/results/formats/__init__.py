"""Outputs of other benchmarks as figures.

`read_outputs` finds the tables of all formats in a text, whatever stands between them, else JSON documents. A value
that a text does not contain stays None; `docs/import.md` lists the values of each format. A format is one file, with
its `FORMAT`, and one name in `_MODULES`.
"""

from __future__ import annotations

from collections.abc import Sequence

from hockney.errors import UsageError
from hockney.results.formats import fabtests, imb, iperf3, nccl, netpipe, nvbandwidth, osu, perftest, ucx
from hockney.results.formats.lines import CleanLine, documents_of, lines_of
from hockney.results.formats.output import Document, Format, FormatError, Output, OutputTable, ReadOutputs
from hockney.results.formats.tables import Scan

__all__ = ["FORMATS", "Output", "ReadOutputs", "read_outputs"]

_MODULES = (osu, imb, nccl, perftest, ucx, fabtests, nvbandwidth, netpipe, iperf3)
FORMATS: tuple[Format, ...] = tuple(module.FORMAT for module in _MODULES)


def read_outputs(text: str, name: str) -> ReadOutputs:
    """What the text of the file `name` holds: one output or more. Raises UsageError, which names the line."""
    lines = lines_of(text)
    try:
        scan = Scan(lines, FORMATS)
        tables, others = scan.tables, scan.others
        if not tables:
            tables, others = _read_documents(lines)
        rows = sum(len(table.rows) + len(table.notes) for table in tables)
        outputs = [output for table in tables for output in table.format.read(table)]
        if tables and not any(output.rows for output in outputs):
            raise FormatError("it holds no figures: its run failed, or only a part of its output was saved")
    except FormatError as error:
        raise UsageError(f"cannot import {name}: {error}") from error
    if not tables:
        texts = ", ".join(f"{each.name} text" for each in FORMATS if each.head)
        documents = ", ".join(each.name for each in FORMATS if each.is_document)
        raise UsageError(f"cannot import {name}: its format is unknown; known are {texts}, and JSON of {documents}")
    notes = [note for table in tables for note in table.notes]
    return ReadOutputs(outputs, rows, rows - len(notes), others, [*notes, *scan.notes])


def _read_documents(lines: Sequence[CleanLine]) -> tuple[list[OutputTable], int]:
    """The tables in JSON documents, none if one is of no known format; and the other lines. Raises FormatError."""
    documents, others = documents_of(lines)
    for each in FORMATS:
        documents = each.joined(documents)
    found = [_tables_of(document) for document in documents]
    return ([] if [] in found else [table for tables in found for table in tables]), others


def _tables_of(document: Document) -> list[OutputTable]:
    for each in FORMATS:
        if each.is_document and each.is_document(document):
            try:
                return list(each.tables(document))
            except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
                raise FormatError(f"it is JSON of {each.name}, but a part is missing or damaged") from error
    return []
