"""Text of fabtests and fi_pingpong of libfabric: us per transfer, which is half a round trip of its ping-pongs.

Only fi_pingpong says by its columns what it measures. Sizes are rounded to a tenth of k, m or g. (common/shared.c.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hockney.results.formats.output import Output
from hockney.results.formats.tables import OutputTable, TextFormat, curves

_MAIN = "usec/xfer"


def _titles(line: str, previous: str) -> Sequence[str] | None:
    titles = line.split()
    return titles if titles[-3:-1] == ["MB/sec", _MAIN] and titles[0] in ("name", "bytes") else None


def _read(table: OutputTable) -> list[Output]:
    pattern = "pingpong" if "#ack" in table.titles else None
    base = Output("fi_pingpong" if pattern else "fabtests", pattern, "libfabric", (), 2)
    return curves(table, base, _MAIN, keys={"name": ("test", ())})


FORMAT = TextFormat(
    "fabtests text", _titles, _read, row=re.compile(r"\s*(?:[A-Za-z]\S*\s+)?\d+(?:\.\d)?[kmg]?\s+\d\S*\s.*s\s+[\d.]+\s")
)
