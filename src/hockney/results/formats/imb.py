"""Intel MPI Benchmarks (IMB-MPI1 and its like): text.

`t` of PingPong is half a round trip; `t_max` is the slowest rank's mean, `t_avg` the mean over ranks. Megabytes of
rates changed with versions, so they are read only where there are no times. (User Guide 2021, "MPI-1 Benchmarks";
IMB_output.c.)
"""

from __future__ import annotations

import re
from fractions import Fraction

from hockney.results.formats.output import DEFINED, WINDOWED, Format, Output, OutputTable, curves, number_said
from hockney.suites.tools import NamedSeries, tools

_VERSION = re.compile(r"Intel ?\(R\) MPI Benchmarks?,? (?:Suite )?(?:V(?:ersion )?)?([\w. ]+?)\s*(?:,|$)", re.MULTILINE)
_TIMED = {"t[usec]": "root", "t_avg[usec]": "mean"}  # in other columns the slowest rank
_PARTS = {"MPI-1": "MPI1", "MPI-2": "EXT", "MPI-4": "MPI4"}  # programs, as the head of an output calls them
_RATES = {"sendrecv": Fraction(2), "exchange": Fraction(4)}  # sizes that the rate counts in t_max


def _same(test: str, head: str) -> NamedSeries | None:
    """The benchmark, if hockney defines it alike; the rates of some are others. Two programs may have its name."""
    part = re.search(r"MPI Benchmarks.*?, ([\w-]+) part", head)
    program = f"imb-{_PARTS.get(part[1], part[1].rpartition('-')[2])}" if part else "imb"
    row = tools()["imb"].benchmark(f"{program}:{test}")
    is_alike = row and not row.differs and row.pattern in DEFINED and row.pattern not in WINDOWED
    return row if is_alike and test.lower() != "exchange" else None


def _read(table: OutputTable) -> list[Output]:
    test = table.test("# Benchmarking …")[1]
    name, version = test.lower(), _VERSION.search(table.head)
    same = _same(test, table.head)
    options = {**(same.options if same else {}), **table.heading_says}
    if same and "," in options.get("window", ""):
        options["window"] = "0" if options.pop("mode", "") == "AGGREGATE" else "1"
    pattern = same.pattern if same else f"imb_{name}"
    main = table.main(r"^t_avg\[" if pattern == "ring" else r"^t\[", r"^t\[|^t_max\[", r"^t_ovrl\[|Mbytes/sec")
    rate = _RATES.get(name)
    base = Output(
        tool=f"Intel MPI Benchmarks {version[1] if version else ''}, {test}".replace(" ,", ","),
        pattern=pattern,
        transport=same.transports[0] if same and same.transports else "mpi",
        ranks=number_said(r"(?:#\s+#processes\s*=|groups of)\s*(\d+)", table.heading),
        timed=_TIMED.get(main, "slowest"),
        options=options,
        is_sized="#bytes" in table.titles,
        rate=None if same else rate,
    )
    rates = {"Mbytes/sec": rate} if rate and same and "Mbytes/sec" in table.titles else {}
    return curves(table, base, main, keys={"Group": ("group", ())}, rates=rates)


FORMAT = Format(
    "IMB",
    _read,
    head=re.compile(r"\s*(?:Group\s+)?(?:#bytes\s+)?#repetitions\s"),
    start=re.compile(r"\s*#\s+Benchmarking\s+(?:Multi-)?(\S+)"),
    end="# All processes entering MPI_Finalize",
    said=(
        (r"#\s+MODE: (\S+)", "mode", ""),
        (r"\( (\d+) groups of", "groups", "1"),
        (r"threads: (\d+)", "threads", "1"),
        (r"# window_size = (\d+)", "window", ""),
    ),
)
