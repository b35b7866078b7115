"""Outputs of other benchmarks as figures: one file for each format, with `is_format`, and `read` from text to outputs.

`read_outputs` recognizes the format. A value that a text does not contain stays None; `docs/import.md` lists the values
of each format.
"""

from __future__ import annotations

from hockney.errors import UsageError
from hockney.results.formats import imb, iperf3, nccl, netpipe, osu
from hockney.results.formats.output import FormatError, Output

__all__ = ["NAMES", "Output", "read_outputs"]


_FORMATS = (iperf3, nccl, imb, osu, netpipe)  # the last one has no words to know it by
NAMES = ", ".join(format_.TITLE for format_ in _FORMATS)


def read_outputs(text: str, name: str) -> list[Output]:
    """The outputs in the text of the file `name`, at least one. Raises UsageError, which names the line."""
    for format_ in _FORMATS:
        if format_.is_format(text):
            try:
                outputs: list[Output] = format_.read(text)
                if not any(output.rows for output in outputs):
                    raise FormatError("it holds no figures: its run failed, or only a part of its output was saved")
            except FormatError as error:
                raise UsageError(f"cannot import {name} ({format_.TITLE}): {error}") from error
            return outputs
    raise UsageError(f"cannot import {name}: its format is unknown; known are {NAMES}")
