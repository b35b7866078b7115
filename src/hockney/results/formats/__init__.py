"""Outputs of other benchmarks as figures.

`read_outputs` finds the tables of all formats in a text, whatever stands between them, else JSON documents. A value
that a text does not contain stays None; `docs/import.md` lists the values of each format.
"""

from __future__ import annotations

from hockney.errors import UsageError
from hockney.results.formats.documents import DOCUMENT_FORMATS, read_documents
from hockney.results.formats.lines import lines_of
from hockney.results.formats.output import FormatError, Output, ReadOutputs
from hockney.results.formats.tables import Scan
from hockney.results.formats.texts import TEXT_FORMATS, read_netpipe

__all__ = ["Output", "ReadOutputs", "read_outputs"]


def read_outputs(text: str, name: str) -> ReadOutputs:
    """What the text of the file `name` holds: one output or more. Raises UsageError, which names the line."""
    lines = lines_of(text)
    try:
        scan = Scan(lines, TEXT_FORMATS)
        tables, others = scan.tables, scan.others
        for read in (read_documents, read_netpipe):
            if not tables:
                tables, others = read(lines)
        rows = sum(len(table.rows) + len(table.notes) for table in tables)
        outputs = [output for table in tables for output in table.format.read(table)]
        if tables and not any(output.rows for output in outputs):
            raise FormatError("it holds no figures: its run failed, or only a part of its output was saved")
    except FormatError as error:
        raise UsageError(f"cannot import {name}: {error}") from error
    if not tables:
        known = ", ".join([*(format_.title for format_ in TEXT_FORMATS), "NetPIPE np.out"])
        raise UsageError(
            f"cannot import {name}: its format is unknown; known are {known}, and JSON of {', '.join(DOCUMENT_FORMATS)}"
        )
    notes = [note for table in tables for note in table.notes]
    return ReadOutputs(outputs, rows, rows - len(notes), others, [*notes, *scan.notes])
