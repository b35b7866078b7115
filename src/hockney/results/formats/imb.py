"""Intel MPI Benchmarks (IMB-MPI1 and its like): text.

`t` of PingPong is half a round trip; `t_max` is the slowest rank's mean, `t_avg` the mean over ranks. Megabytes of
rates changed with versions, so they are read only where there are no times. (User Guide 2021, "MPI-1 Benchmarks";
IMB_output.c.)
"""

from __future__ import annotations

import re
from fractions import Fraction

from hockney.results.formats.output import Format, Output, OutputTable, curves, number_said
from hockney.suites.tools import tools

_VERSION = re.compile(r"Intel ?\(R\) MPI Benchmarks?,? (?:Suite )?(?:V(?:ersion )?)?([\w. ]+?)\s*(?:,|$)", re.MULTILINE)
_TIMED = {"t[usec]": "root", "t_avg[usec]": "mean"}  # in other columns the slowest rank
_RATES = {"sendrecv": Fraction(2), "exchange": Fraction(4)}  # sizes that the rate counts in t_max


def _read(table: OutputTable) -> list[Output]:
    test = table.test("# Benchmarking …")[1]
    name, version = test.lower(), _VERSION.search(table.head)
    known = tools()["imb"]
    same = known.benchmarks.get(known.whole_name(f"imb:{test}") or "")
    same = None if same and same.differs else same
    pattern = same.pattern if same else f"imb_{name}"
    main = table.main(r"^t_avg\[" if pattern == "ring" else r"^t\[", r"^t\[|^t_max\[", r"^t_ovrl\[|Mbytes/sec")
    rate = _RATES.get(name)
    base = Output(
        tool=f"Intel MPI Benchmarks {version[1] if version else ''}, {test}".replace(" ,", ","),
        pattern=pattern,
        transport="mpi",
        ranks=number_said(r"(?:#\s+#processes\s*=|groups of)\s*(\d+)", table.heading),
        timed=_TIMED.get(main, "slowest"),
        options={**(same.options if same else {}), **table.heading_says},
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
