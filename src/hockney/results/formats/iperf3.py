"""JSON of iperf3: streams of TCP write blocks for some seconds; each interval is a measurement.

The rate is that of all streams together; the time that in which each of them writes a block. Both directions of --bidir
are curves of their own. An interval shorter than half of the first is left out: the last one may hold a few blocks
only. For datagrams the received bytes count, which iperf3 reports for the whole test only. Datagrams, parallel streams
and both directions at once are separate patterns. (iperf 3.12; src/iperf_api.c.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from hockney.results.formats.output import BYTES_MAX, FormatError, Output, OutputRow, ReadOutputs

TITLE = "iperf3 JSON"
# The key of a direction's sum; of intervals before version 3.11 the second direction had the name of the first.
_REVERSE = ("sum_bidir_reverse", "sum again")
_EVENTS = ("start", "interval", "end", "error", "server_output_text", "server_output_json")


def whole_documents(documents: Iterable[Any]) -> list[Any]:
    """The documents, where the events of --json-stream are put together again."""
    whole: list[Any] = []
    for document in documents:
        event, data = document.get("event"), document.get("data")
        if event not in _EVENTS:
            whole.append(document)
            continue
        if event == "start" or not whole:
            whole.append({"intervals": []})
        if event == "interval":
            whole[-1]["intervals"].append(data)
        else:
            whole[-1][event] = data
    return whole


def read(document: Mapping[str, Any]) -> ReadOutputs | None:
    """What a JSON of iperf3 holds; None for another document. Raises FormatError."""
    start = document.get("start")
    if not isinstance(start, dict) or not ({"intervals", "error"} & document.keys()):
        return None
    if isinstance(document.get("error"), str):
        raise FormatError(f"its run failed: {document['error']}")
    if "end" not in document:
        raise FormatError("its 'end' is missing: the run was cut short")
    try:
        asked, intervals, end = start["test_start"], document["intervals"], document["end"]
        protocol, streams, block = str(asked["protocol"]).lower(), int(asked["num_streams"]), int(asked["blksize"])
        kept = [interval for interval in intervals if not interval["sum"].get("omitted")]
        reverse = next((key for key in _REVERSE if kept and key in kept[0]), None)
        directions = [[_sum(interval[key]) for interval in kept] for key in ("sum", reverse) if key]
        if protocol == "udp":
            received = ("sum_received", "sum_received_bidir_reverse")
            directions = [[_sum(end[key])] for key, _ in zip(received, directions, strict=False)]
        version = str(start.get("version", "iperf3"))
        is_reverse = bool(asked.get("reverse"))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise FormatError("it is JSON, but not what iperf3 -J prints of a test") from error
    if not 1 <= streams <= 10_000 or not 0 < block <= BYTES_MAX:
        raise FormatError(f"it has {streams} streams and blocks of {block} B")
    is_plain = protocol == "tcp" and streams == 1 and reverse is None
    options = {} if streams == 1 else {"streams": str(streams)}
    outputs, rows, notes = [], 0, []
    for number, sums in enumerate(directions):
        times, short = _times(sums, streams * block)
        rows += len(sums)
        notes += [f"no figure of interval {each}, as it is short" for each in short]
        way = (
            {"direction": ("forward", "reverse")[number]} if reverse else {"direction": "reverse"} if is_reverse else {}
        )
        row = [OutputRow(0, block, tuple(times))] if times else []
        pattern, rate = "stream" if is_plain else "iperf3", Fraction(streams)
        outputs.append(Output(version, pattern, protocol, row, 2, "slowest", options | way, rate=rate))
    return ReadOutputs(outputs, rows, rows - len(notes), 0, notes)


def _times(sums: Sequence[tuple[float, float]], size_bytes: int) -> tuple[list[float], list[int]]:
    """The time of each interval in ns, and the numbers of those that are too short."""
    times, short = [], []
    for number, (seconds, count) in enumerate(sums, 1):
        if seconds < sums[0][0] / 2:
            short.append(number)
        elif not (0 < seconds < 1e6 and 0 < count < 1e18):
            raise FormatError(f"interval {number} has {count:g} B in {seconds:g} s: nothing was sent")
        else:
            times.append(size_bytes * seconds * 1e9 / count)
    return times, short


def _sum(of_all: Mapping[str, Any]) -> tuple[float, float]:
    """The seconds and bytes of an interval."""
    return float(of_all["seconds"]), float(of_all["bytes"])
