"""The formats that are JSON, as tables: those of benchmarks that write text as well have that text's titles."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import PurePath
from typing import Any

from hockney.results.formats.lines import CleanLine, documents_of
from hockney.results.formats.output import BYTES_MAX, FormatError, Output
from hockney.results.formats.tables import OutputTable, TextFormat, curves
from hockney.results.formats.texts import NCCL, NCCL_UNITS, NVBANDWIDTH, NVBANDWIDTH_UNIT, PERFTEST

Document = Mapping[str, Any]


def read_documents(lines: Sequence[CleanLine]) -> tuple[list[OutputTable], int]:
    """The tables in the JSON documents among these lines, and the number of other lines. Raises FormatError.

    None are found where one document is of no known format.
    """
    documents, others = documents_of(lines)
    found = [_tables_of(document) for document in _whole(documents)]
    return ([] if [] in found else [table for tables in found for table in tables]), others


def _tables_of(document: Document) -> list[OutputTable]:
    name = next((name for name, (is_of_it, _) in DOCUMENT_FORMATS.items() if is_of_it(document)), None)
    try:
        return list(DOCUMENT_FORMATS[name][1](document)) if name else []
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise FormatError(f"it is JSON of {name}, but a part is missing or damaged") from error


# ---- nccl-tests ------------------------------------------------------------------------------------------------------

_NCCL_TITLES = {"time": "time", "alg_bw": "algbw", "bus_bw": "busbw", "nwrong": "#wrong"}


def _nccl(document: Document) -> Iterable[OutputTable]:
    if "end_time" not in document:
        raise FormatError("its end, 'end_time', is missing: the run was cut short")
    if document["out_of_bounds"]["okay"] not in ("true", True):
        raise FormatError(f"its data were wrong: out_of_bounds {document['out_of_bounds']['count']}")
    config = document["config"]
    heading = [f"# Collective test starting: {PurePath(document['args'][0]).name}"]
    heading += [f"graph: {config['graph']} agg iters: {config['aggregated_iterations']}"]
    heading += [f"#  Rank {device['rank']} " for device in config["devices"]]
    heading += ["# Blocking Enabled"] if config.get("blocking_collectives") == "true" else []
    front, places = ("size", "count", "type", "redop", "root"), ("out_of_place", "in_place")
    titles = [*front, *(title + NCCL_UNITS.get(title, "") for _ in places for title in _NCCL_TITLES.values())]
    table = OutputTable(NCCL, 1, titles, "\n".join(heading))
    for number, row in enumerate(document["results"], 1):
        cells = [str(row[name]).strip() for name in front]
        for figures in (row.get(place) or {} for place in places):
            cells += [str(figures.get(name, figures.get("cpu_time"))) for name in _NCCL_TITLES]
        table.rows.append((number, cells))
    yield table


# ---- perftest --------------------------------------------------------------------------------------------------------
# It holds the last size only, and does not say the unit of its rates: that follows from the message rate.

_PERFTEST_TITLES = {
    "MsgSize": "#bytes",
    "n_iterations": "#iterations",
    "MsgRate": "MsgRate[Mpps]",
    "CPU_util": "CPU_util",
}


def _perftest(document: Document) -> Iterable[OutputTable]:
    info, results = document["test_info"], document["results"]
    size, unit = int(results["MsgSize"]), "MiB/sec"
    if "BW_average" in results:
        counted = float(results["MsgRate"]) * 1e6 * size
        units = {unit: 2.0**20, "Gb/sec": 1e9 / 8}
        rates = {name: float(results["BW_average"]) * unit_bytes for name, unit_bytes in units.items()}
        unit = min(rates, key=lambda name: abs(rates[name] - counted))
        if abs(rates[unit] - counted) > 0.04 * counted:
            raise FormatError("it does not say whether its rates are in MiB/s or Gb/s: save the text")
    titles = [
        _PERFTEST_TITLES.get(name, f"{name.replace('_', ' ')}[{unit}]" if name.startswith("BW") else f"{name}[usec]")
        for name in results
    ]
    said = (f" {name.replace('_', ' ')} : {value}" for name, value in info.items())
    heading = "\n".join([str(info["test"]).replace("_", " ").replace("RDMA ", "RDMA_"), *said])
    yield OutputTable(PERFTEST, 1, titles, heading, [(1, list(map(str, results.values())))])


# ---- nvbandwidth -----------------------------------------------------------------------------------------------------


def _nvbandwidth(document: Document) -> Iterable[OutputTable]:
    whole = document["nvbandwidth"]
    if "error" in whole:
        raise FormatError(f"its run failed: {whole['error']}")
    for case in whole["testcases"]:
        if case["status"] in ("Error", "Not Found") or "error" in case:
            raise FormatError(f"its run failed: {case['name']}: {case.get('error', case['status'])}")
        unit, matrix = (
            NVBANDWIDTH_UNIT.search(case.get("bandwidth_description", "")),
            case.get("bandwidth_matrix", [[]]),
        )
        titles = ["row", *(f"{place} ({unit[1] if unit else 'GB/s'})" for place in range(len(matrix[0])))]
        rows = [(number, [str(cell) for cell in (number, *row)]) for number, row in enumerate(matrix)]
        if {len(cells) for _, cells in rows} != {len(titles)}:
            raise ValueError("a matrix has rows of one length")
        yield OutputTable(NVBANDWIDTH, 1, titles, f"Running {case['name']}.", rows)


# ---- iperf3 ----------------------------------------------------------------------------------------------------------
# Streams of TCP write blocks for some seconds; each interval is a measurement. The rate is that of all streams; the
# time that in which each of them writes a block. Both directions of --bidir are curves of their own. An interval
# shorter than half of the first is left out: the last one may hold a few blocks only. For datagrams the received bytes
# count, which iperf3 reports for the whole test only. Datagrams, parallel streams and both directions at once are
# separate patterns. (iperf 3.12; src/iperf_api.c.)

# The keys of a direction's sum; of intervals before version 3.11 the second direction had the name of the first.
_REVERSE = ("sum_bidir_reverse", "sum again")
_EVENTS = ("start", "interval", "end", "error", "server_output_text", "server_output_json")


def _whole(documents: Iterable[Any]) -> list[Any]:
    """The documents, where the events of --json-stream are put together again."""
    whole: list[Any] = []
    events: dict[str, Any] | None = None
    for document in documents:
        event, data = document.get("event"), document.get("data")
        if event not in _EVENTS:
            whole.append(document)
            events = None
            continue
        if event == "start" or events is None:
            events = {"intervals": []}
            whole.append(events)
        if event == "interval":
            events["intervals"].append(data)
        else:
            events[event] = data
    return whole


def _iperf3(document: Document) -> Iterable[OutputTable]:
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
    directions = {"forward": [_sum(each["sum"]) for each in kept]}
    directions |= {"reverse": [_sum(each[reverse]) for each in kept]} if reverse else {}
    if protocol == "udp":
        received = {"forward": "sum_received", "reverse": "sum_received_bidir_reverse"}
        directions = {way: [_sum(end[received[way]])] for way in directions}
    pattern = "stream" if protocol == "tcp" and streams == 1 and reverse is None else "iperf3"
    for way, sums in directions.items():
        options = {"streams": str(streams)} if streams > 1 else {}
        if reverse or asked.get("reverse"):
            options["direction"] = way if reverse else "reverse"
        version = str(start.get("version", "iperf3"))
        begun_s = float(start["timestamp"]["timesecs"]) if "timestamp" in start else None
        base = Output(version, pattern, protocol, (), 2, "slowest", options, None, True, Fraction(streams), begun_s)
        read = functools.partial(curves, base=base, main="time (ns)", repeats=True)
        table = OutputTable(TextFormat("iperf3 JSON", lambda *_: None, read), 1, ("size", "time (ns)"), "")
        for number, (seconds, count) in enumerate(sums, 1):
            if seconds < sums[0][0] / 2:
                table.notes.append(f"no figure of interval {number}, as it is short")
            elif not (0 < seconds < 1e6 and 0 < count < 1e18):
                raise FormatError(f"interval {number} has {count:g} B in {seconds:g} s: nothing was sent")
            else:  # written with an exponent, a number is exact
                table.rows.append((number, [str(block), f"{streams * block * seconds * 1e9 / count:.17e}"]))
        yield table


def _sum(of_all: Document) -> tuple[float, float]:
    """The seconds and bytes of an interval."""
    return float(of_all["seconds"]), float(of_all["bytes"])


DOCUMENT_FORMATS: dict[str, tuple[Callable[[Document], object], Callable[[Document], Iterable[OutputTable]]]] = {
    "nccl-tests": (lambda known: {"nccl_version", "args", "config"} <= known.keys(), _nccl),
    "perftest": (lambda known: "test_info" in known and isinstance(known.get("results"), dict), _perftest),
    "nvbandwidth": (lambda known: isinstance(known.get("nvbandwidth"), dict), _nvbandwidth),
    "iperf3": (lambda known: isinstance(known.get("start"), dict) and {"intervals", "error"} & known.keys(), _iperf3),
}
"""Which documents are of a benchmark, and their tables."""
