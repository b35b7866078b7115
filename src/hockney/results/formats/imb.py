"""Text of the Intel MPI Benchmarks (IMB-MPI1 and its like): times in us.

`t` of PingPong is half a round trip; `t_max` is the slowest rank's mean, `t_avg` the mean over ranks. The megabytes of
its rates changed with versions, so they are read only where there are no times. (Intel MPI Benchmarks User Guide 2021,
"MPI-1 Benchmarks"; IMB_output.c.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from hockney.results.formats.output import FormatError, Output
from hockney.results.formats.tables import OutputTable, TextFormat, curves, number_said, said

_VERSION = re.compile(r"Intel ?\(R\) MPI Benchmarks?,? (?:Suite )?(?:V(?:ersion )?)?([\w. ]+?)\s*(?:,|$)", re.MULTILINE)
_BENCHMARK = re.compile(r"\s*#\s+Benchmarking\s+(?:Multi-)?(\S+)")
# The pattern with the same definition, whose time, and the column.
_PATTERNS = {
    "pingpong": ("pingpong", "root"),
    "sendrecv": ("ring", "mean"),
    "allreduce": ("allreduce", "slowest"),
    "alltoall": ("alltoall", "slowest"),
    "bcast": ("multicast", "slowest"),
    "barrier": ("barrier", "slowest"),
}
_COLUMNS = {"root": "t[usec]", "mean": "t_avg[usec]", "slowest": "t_max[usec]"}
_OTHER_COLUMNS = ("t[usec]", "t_max[usec]", "t_ovrl[usec]", "Mbytes/sec")
_RATES = {"sendrecv": 2, "exchange": 4}  # sizes that the rate counts in t_max
_SAID = (
    (r"#\s+MODE: (\S+)", "mode", ""),
    (r"\( (\d+) groups of", "groups", "1"),
    (r"threads: (\d+)", "threads", "1"),
    (r"# window_size = (\d+)", "window", ""),
)


def _titles(line: str, previous: str) -> Sequence[str] | None:
    return line.split() if re.match(r"\s*(?:Group\s+)?(?:#bytes\s+)?#repetitions\s", line) else None


def _read(table: OutputTable) -> list[Output]:
    match = _BENCHMARK.search(table.heading)
    if match is None:
        raise FormatError(f"line {table.line} has no line '# Benchmarking …' above it: save the whole output")
    name, titles = match[1].lower(), table.titles
    pattern, timed = _PATTERNS.get(name, (f"imb_{name}", ""))
    main = next((column for column in (_COLUMNS.get(timed), *_OTHER_COLUMNS) if column in titles), None)
    if main is None:
        raise FormatError(f"line {table.line} has no column {_COLUMNS['slowest']}")
    timed = next((whose for whose, column in _COLUMNS.items() if column == main), "slowest")
    version = _VERSION.search(table.head)
    base = Output(
        tool=f"Intel MPI Benchmarks {version[1] if version else ''}, {match[1]}".replace(" ,", ","),
        pattern=pattern,
        transport="mpi",
        rows=(),
        ranks=number_said(r"(?:#\s+#processes\s*=|groups of)\s*(\d+)", table.heading),
        timed=timed,
        options=({"algorithm": "native"} if pattern == "multicast" else {}) | said(table.heading, _SAID),
        is_sized="#bytes" in titles,
        rate=Fraction(_RATES[name]) if name in _RATES and pattern.startswith("imb_") else None,
    )
    rates = {"Mbytes/sec": Fraction(_RATES[name])} if pattern == "ring" and "Mbytes/sec" in titles else {}
    return curves(table, base, main, keys={"Group": ("group", ())}, rates=rates)


FORMAT = TextFormat("IMB text", _titles, _read, _BENCHMARK, "# All processes entering MPI_Finalize")
