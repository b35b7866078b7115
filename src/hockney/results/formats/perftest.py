"""Text and JSON of perftest (`ib_send_lat`, `ib_write_bw` and their like): averages; MB are 2^20 bytes, Gb 10^9 bits.

A latency is half a round trip, except of reads and atomics. The rate of `-b` counts both directions. The JSON holds the
last size only, and does not say the unit of its rates: that follows from the message rate. (src/perftest_parameters.c.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hockney.results.formats.output import FormatError, Output
from hockney.results.formats.tables import OutputTable, TextFormat, curves, said

_TEST = re.compile(r"\s*((?:Send|Send_imm|RDMA_\w+|Atomic)(?: \w+)*) Test\s*$", re.MULTILINE)
_SAID = (
    (r"Connection type\s*: (\w+)", "connection", "RC"),
    (r"Number of qps\s*: (\d+)", "qps", "1"),
    (r"Dual-port\s*: (\w+)", "dual_port", "OFF"),
    (r"TX depth\s*: (\d+)", "depth", "128"),
    (r"Post List\s*: (\d+)", "post_list", "1"),
)
_IN_JSON = {"MsgSize": "#bytes", "n_iterations": "#iterations", "MsgRate": "MsgRate[Mpps]", "CPU_util": "CPU_util"}


def _titles(line: str, previous: str) -> Sequence[str] | None:
    if not re.match(r"\s*#bytes\s.*#iterations\s.*\[", line):
        return None
    titles = re.findall(r"#\w+|\S+(?: \S+)*?\[[^\]]*\]|\S+(?: \S+)*", line)
    return [title.replace("[MB/", "[MiB/") for title in titles]


def _read(table: OutputTable) -> list[Output]:
    test = _TEST.search(table.heading)
    if test is None:
        raise FormatError(f"line {table.line} has no line with the name of its test above it: save the whole output")
    main = next((title for title in table.titles if re.match(r"BW average|t_avg", title)), None)
    if main is None:
        raise FormatError(f"line {table.line} has no column of averages: {' '.join(table.titles)}")
    name = "_".join(test[1].lower().split())
    pattern = "pingpong" if name == "send_latency" else f"perftest_{name}"
    options = said(table.heading, _SAID)
    base = Output(f"perftest {test[1]}", pattern, "verbs", (), 2, "root", options)
    return curves(table, base, main, keys={"#sl": ("service_level", ("0",))})


FORMAT = TextFormat("perftest text", _titles, _read, _TEST)


def document_tables(document: Mapping[str, Any]) -> list[OutputTable] | None:
    """The table of a JSON of perftest, as its text has it; None for another document. Raises FormatError."""
    info, results = document.get("test_info"), document.get("results")
    if not isinstance(info, dict) or not isinstance(results, dict) or "MsgSize" not in results:
        return None
    unit = "MiB/sec"
    if "BW_average" in results:
        counted = float(results["MsgRate"]) * 1e6 * int(results["MsgSize"])
        units = {unit: 2.0**20, "Gb/sec": 1e9 / 8}
        rates = {name: float(results["BW_average"]) * size for name, size in units.items()}
        unit = min(rates, key=lambda name: abs(rates[name] - counted))
        if abs(rates[unit] - counted) > 0.04 * counted:
            raise FormatError("it does not say whether its rates are in MiB/s or Gb/s: save the text")
    titles = [
        _IN_JSON.get(name, f"{name.replace('_', ' ')}[{unit}]" if name.startswith("BW") else f"{name}[usec]")
        for name in results
    ]
    said_ = "\n".join(f" {name.replace('_', ' ')} : {value}" for name, value in info.items())
    heading = f"{str(info['test']).replace('_', ' ').replace('RDMA ', 'RDMA_')}\n{said_}"
    return [OutputTable(FORMAT, 1, titles, heading, [(1, [str(value) for value in results.values()])])]
