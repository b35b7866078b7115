"""fabtests and fi_pingpong of libfabric: text.

us per transfer, which is half a round trip of its ping-pongs. Only fi_pingpong says by its columns what it measures.
Sizes are rounded to a tenth of k, m or g. (common/shared.c.)
"""

from __future__ import annotations

import re

from hockney.results.formats.output import Format, Output, OutputTable, curves


def _read(table: OutputTable) -> list[Output]:
    pattern = "pingpong" if "#ack" in table.titles else None
    base = Output("fi_pingpong" if pattern else "fabtests", pattern, "libfabric", 2)
    return curves(table, base, "usec/xfer", keys={"name": ("test", ())})


FORMAT = Format(
    "fabtests",
    _read,
    head=re.compile(r"\s*(?:name|bytes)\s.*\sMB/sec\s+usec/xfer\s+\S+\s*$"),
    row=re.compile(r"\s*(?:[A-Za-z]\S*\s+)?\d+(?:\.\d)?[kmg]?\s+\d\S*\s.*s\s+[\d.]+\s"),
)
