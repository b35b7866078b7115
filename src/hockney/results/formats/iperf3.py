"""JSON of iperf3: one stream of TCP writes blocks for some seconds; each interval is a measurement.

An interval shorter than half of the first is ignored: the last one may hold a few blocks only. For datagrams the
received bytes count, which iperf3 reports for the whole test only. Datagrams and parallel streams are separate
patterns. (iperf 3.12.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hockney.results.formats.output import BYTES_MAX, FormatError, Output, OutputRow

TITLE = "iperf3 JSON"


def is_format(text: str) -> bool:
    """Whether it may be a document of iperf3."""
    return text.lstrip().startswith("{")


def read(text: str) -> list[Output]:
    """The outputs in a JSON of iperf3. Raises FormatError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise FormatError(f"it is no whole JSON{f' (line {line})' if line else ''}: save the whole output") from error
    if isinstance(document, dict) and isinstance(document.get("error"), str):
        raise FormatError(f"its run failed: {document['error']}")
    try:
        asked, intervals = document["start"]["test_start"], document["intervals"]
        protocol, streams, block = str(asked["protocol"]).lower(), int(asked["num_streams"]), int(asked["blksize"])
        sums = [_sum(interval["sum"]) for interval in intervals if not interval["sum"].get("omitted")]
        if protocol == "udp":
            sums = [_sum(document["end"]["sum_received"])]
        version = str(document["start"].get("version", "iperf3"))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise FormatError("it is JSON, but not what iperf3 -J prints of a test") from error
    if streams < 1 or not 0 < block <= BYTES_MAX:
        raise FormatError(f"it has {streams} streams and blocks of {block} B")
    times = []
    whole = [(seconds, count) for seconds, count in sums if seconds >= sums[0][0] / 2]
    for number, (seconds, count) in enumerate(whole, 1):
        if not (0 < seconds < 1e6 and 0 < count < 1e18):
            raise FormatError(f"interval {number} has {count:g} B in {seconds:g} s: nothing was sent")
        times.append(streams * block * seconds * 1e9 / count)
    is_plain = protocol == "tcp" and streams == 1
    rows = [OutputRow(0, block, tuple(times))] if times else []
    options = {} if streams == 1 else {"streams": str(streams)}
    return [Output(version, "stream" if is_plain else "iperf3", protocol, rows, 2, "slowest", options)]


def _sum(of_all: Mapping[str, Any]) -> tuple[float, float]:
    """The seconds and bytes of an interval."""
    return float(of_all["seconds"]), float(of_all["bytes"])
