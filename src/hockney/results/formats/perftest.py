"""perftest (`ib_send_lat`, `ib_write_bw` and their like): text and JSON.

Averages; MB are 2^20 bytes, Gb 10^9 bits. A latency is half a round trip, except of reads and atomics. The rate of
`-b` counts both directions. (src/perftest_parameters.c.) JSON holds the last size only, and does not say the unit of
its rates: that follows from the message rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hockney.results.formats.output import Document, Format, FormatError, Output, OutputTable, curves

_TITLE = re.compile(r"#\w+|\S+(?: \S+)*?\[[^\]]*\]|\S+(?: \S+)*")
_JSON_TITLES = {"MsgSize": "#bytes", "n_iterations": "#iterations", "MsgRate": "MsgRate[Mpps]", "CPU_util": "CPU_util"}


def _read(table: OutputTable) -> list[Output]:
    test = table.test("… Test")[1]
    name = "_".join(test.lower().split())
    pattern = "pingpong" if name == "send_latency" else f"perftest_{name}"
    base = Output(f"perftest {test}", pattern, "verbs", 2, options=table.heading_says)
    return curves(table, base, table.main("^(?:BW average|t_avg)"), keys={"#sl": ("service_level", ("0",))})


def _tables(document: Document) -> Iterable[OutputTable]:
    info, results, unit = document["test_info"], document["results"], "MiB/sec"
    if "BW_average" in results:
        counted = float(results["MsgRate"]) * 1e6 * int(results["MsgSize"])
        sizes = {unit: 2.0**20, "Gb/sec": 1e9 / 8}
        off = {name: abs(float(results["BW_average"]) * size - counted) for name, size in sizes.items()}
        unit = min(off, key=off.__getitem__)
        if off[unit] > 0.04 * counted:
            raise FormatError("it does not say whether its rates are in MiB/s or Gb/s: save the text")
    titles = [
        _JSON_TITLES.get(name, f"{name.replace('_', ' ')}[{unit}]" if name.startswith("BW") else f"{name}[usec]")
        for name in results
    ]
    said = (f" {name.replace('_', ' ')} : {value}" for name, value in info.items())
    heading = "\n".join([str(info["test"]).replace("_", " ").replace("RDMA ", "RDMA_"), *said])
    yield OutputTable(FORMAT, 1, titles, heading, [(1, list(map(str, results.values())))])


FORMAT = Format(
    "perftest",
    _read,
    head=re.compile(r"\s*#bytes\s.*#iterations\s.*\["),
    titles=lambda line, _: _TITLE.findall(line.replace("[MB/", "[MiB/")),
    start=re.compile(r"\s*((?:Send|Send_imm|RDMA_\w+|Atomic)(?: \w+)*) Test\s*$", re.MULTILINE),
    said=(
        (r"Connection type\s*: (\w+)", "connection", "RC"),
        (r"Number of qps\s*: (\d+)", "qps", "1"),
        (r"Dual-port\s*: (\w+)", "dual_port", "OFF"),
        (r"TX depth\s*: (\d+)", "depth", "128"),
        (r"Post List\s*: (\d+)", "post_list", "1"),
    ),
    is_document=lambda document: "test_info" in document and isinstance(document.get("results"), dict),
    tables=_tables,
)
