"""iperf3: JSON (-J), and the events of --json-stream.

Streams of TCP write blocks for some seconds; each interval is a measurement. The rate is that of all streams; the
time that in which each of them writes a block. Both directions of --bidir are separate curves. An interval
shorter than half of the first is left out: the last one may hold a few blocks only. For datagrams the received bytes
count, which iperf3 reports for the whole test only. Datagrams, parallel streams and both directions at once are
separate patterns. (iperf 3.12; src/iperf_api.c.)
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from hockney.results.formats.output import BYTES_MAX, Document, Format, FormatError, Output, OutputTable, curves

# The keys of a direction's sum; of intervals before version 3.11 the second direction had the name of the first.
_REVERSE = ("sum_bidir_reverse", "sum again")
_EVENTS = ("start", "interval", "end", "error", "server_output_text", "server_output_json")


def _joined(documents: Iterable[Any]) -> list[Any]:
    """The documents, where the events of --json-stream are put together again."""
    whole: list[Any] = []
    follows = False  # an event
    for document in documents:
        event, data = document.get("event"), document.get("data")
        if event == "start" or event not in _EVENTS or not follows:
            whole.append({"intervals": []} if event in _EVENTS else document)
        if event == "interval":
            whole[-1]["intervals"].append(data)
        elif event in _EVENTS:
            whole[-1][event] = data
        follows = event in _EVENTS
    return whole


def _tables(document: Document) -> Iterable[OutputTable]:
    if isinstance(document.get("error"), str):
        raise FormatError(f"its run failed: {document['error']}")
    if "end" not in document:
        raise FormatError("its 'end' is missing: the run was cut short")
    start, end = document["start"], document["end"]
    asked = start["test_start"]
    protocol, streams, block = str(asked["protocol"]).lower(), int(asked["num_streams"]), int(asked["blksize"])
    if not 1 <= streams <= 10_000 or not 0 < block <= BYTES_MAX:
        raise FormatError(f"it has {streams} streams and blocks of {block} B")
    kept = [interval for interval in document["intervals"] if not interval["sum"].get("omitted")]
    reverse = next((key for key in _REVERSE if kept and key in kept[0]), None)
    directions = {"forward": [each["sum"] for each in kept]}
    directions |= {"reverse": [each[reverse] for each in kept]} if reverse else {}
    if protocol == "udp":
        received = {"forward": "sum_received", "reverse": "sum_received_bidir_reverse"}
        directions = {way: [end[received[way]]] for way in directions}
    pattern = "stream" if protocol == "tcp" and streams == 1 and reverse is None else "iperf3"
    for way, sums in directions.items():
        options = {"streams": str(streams)} if streams > 1 else {}
        if reverse or asked.get("reverse"):
            options["direction"] = way if reverse else "reverse"
        table = OutputTable(FORMAT, 1, ("size", "time (ns)"), "")
        for number, of_all in enumerate(sums, 1):
            seconds, count = float(of_all["seconds"]), float(of_all["bytes"])
            if seconds < float(sums[0]["seconds"]) / 2:
                table.notes.append(f"no figure of interval {number}, as it is short")
            elif not (0 < seconds < 1e6 and 0 < count < 1e18):
                raise FormatError(f"interval {number} has {count:g} B in {seconds:g} s: nothing was sent")
            else:  # written with an exponent, a number is exact
                table.rows.append((number, [str(block), f"{streams * block * seconds * 1e9 / count:.17e}"]))
        tool, rate = str(start.get("version", "iperf3")), Fraction(streams)
        date = float(start["timestamp"]["timesecs"]) if "timestamp" in start else None
        base = Output(tool, pattern, protocol, 2, timed="slowest", options=options, rate=rate, started_unix_s=date)
        table.outputs = curves(table, base, "time (ns)", repeats=True)
        yield table


FORMAT = Format(
    "iperf3",
    is_document=lambda document: isinstance(document.get("start"), dict) and {"intervals", "error"} & document.keys(),
    tables=_tables,
    joined=_joined,
)
