"""The formats that are text: what the titles of their columns and the lines above them mean.

A `TextFormat` for each, at its section's end. Those that are JSON, too, are made into tables of it by documents.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from hockney.results.formats.lines import CleanLine
from hockney.results.formats.output import FormatError, Output, OutputRow, number_of, read_number, read_size
from hockney.results.formats.tables import OutputTable, TextFormat, curves, number_said, said

# ---- OSU micro-benchmarks, versions 3 to 7 ---------------------------------------------------------------------------
# `osu_latency` is half a round trip. Rates of `osu_bibw` and `osu_mbw_mr` are those of both directions, of all pairs;
# MB are 10^6 bytes. A collective's latency is the mean over its ranks; their number is not printed. Only `osu_mbw_mr`
# prints the number of messages in flight; of others, a line of `set -x` above may. (README of version 7.4.)

_OSU_TEST = re.compile(r"\s*# (OSU (.+?) Test(?: v\S+| \(Version \S+\))?)\s*$", re.MULTILINE)
# The title without "OSU", "MPI" and "Test" -> the pattern with the same definition, and whose time.
OSU_PATTERNS = {
    "Latency": ("pingpong", "root"),
    "Bandwidth": ("oneway", "root"),
    "Bi-Directional Bandwidth": ("twoway", "root"),
    "Multiple Bandwidth / Message Rate": ("pairs", "sources"),
    "Allreduce Latency": ("allreduce", "mean"),
    "All-to-All Personalized Exchange Latency": ("alltoall", "mean"),
    "Broadcast Latency": ("multicast", "mean"),
    "Barrier Latency": ("barrier", "mean"),
}
_OSU_SAID = (
    (r"Send Buffer on \w+ \((\w)\) and Receive Buffer on \w+ \((\w)\)", "buffers", "HH"),
    (r"# Window creation: (?:MPI_Win_)?(\w+)", "memory", ""),
    (r"# Synchronization: (?:MPI_Win_)?(\w+)", "sync", ""),
    (r"# Datatype: (\w+)", "datatype", "MPI_CHAR"),
)
_OSU_OF_TWO = "pingpong|oneway|twoway|osu_(put|get|acc)"
# What hockney itself wrote (results/osu_text.py).
_OSU_MADE = re.compile(r"^# Made by hockney \S+: .* on (\S+), (\d+) ranks?, .*?(of the slowest rank)?$", re.MULTILINE)


def _osu_titles(line: str, _: str) -> Sequence[str] | None:
    """Two blanks part the titles, or the unit in brackets ends them; some tables have no '#'."""
    if not re.search(r"\w\.? ?\(us\)|\bMB/s\)?(?:\s|$)", line):
        return None
    titles = [part.strip() for part in re.split(r"\s{2,}", re.sub(r"\)\s+", ")  ", line.lstrip("# ").rstrip()))]
    is_comment = re.match(r"\s*#\s*(?:Size|Overall|Avg|Latency|Bandwidth|MB/s)", line)
    return titles if is_comment or all(re.search(r"\((?:us|%|MB/s)\)$|^Validation$", part) for part in titles) else None


def _osu(table: OutputTable) -> list[Output]:
    test = table.test("# OSU … Test")
    first, _, rest = test[2].partition(" ")
    api, *accelerator = re.split(r"[-_]", first.lower())  # MPI, MPI-CUDA, MPI_Put
    name = test[2] if "_" in first else rest
    as_named = "osu_" + re.sub(r"\W+", "_", name.removeprefix("MPI_")).strip("_").lower()
    pattern, timed = (OSU_PATTERNS if api == "mpi" else {}).get(name, (as_named, "mean"))
    options = said(table.heading, _OSU_SAID)
    if "-" in first and "Send Buffer" not in table.heading:
        options["accelerator"] = accelerator[0]
    pairs = number_said(r"# (?:\[ p|P)airs: (\d+)", table.heading) or 0
    own = _OSU_MADE.search(table.heading)
    window = number_said(r"\[ window size: (\d+) \]", table.heading)
    base = Output(
        tool=test[1],
        pattern=pattern,
        transport=own[1] if own else {"openshmem": "shmem"}.get(api, api),
        rows=(),
        ranks=int(own[2]) if own else 2 * pairs or (2 if re.match(_OSU_OF_TWO, pattern) else None),
        timed="slowest" if own and own[3] else timed,
        options=options,
        window=window or number_said(r"\bosu_\w+\b.*?\s(?:-W|--window-size)[ =]?(\d+)", table.above),
        is_sized="Size" in table.titles,
    )
    return curves(table, base, table.main("MB/s|Latency|Overall"), flows=pairs or 1)


OSU = TextFormat("OSU micro-benchmarks text", _osu_titles, _osu, _OSU_TEST)

# ---- Intel MPI Benchmarks (IMB-MPI1 and its like) --------------------------------------------------------------------
# `t` of PingPong is half a round trip; `t_max` is the slowest rank's mean, `t_avg` the mean over ranks. Megabytes of
# rates changed with versions, so they are read only where there are no times. (User Guide 2021, "MPI-1 Benchmarks";
# IMB_output.c.)

_IMB_VERSION = re.compile(
    r"Intel ?\(R\) MPI Benchmarks?,? (?:Suite )?(?:V(?:ersion )?)?([\w. ]+?)\s*(?:,|$)", re.MULTILINE
)
_IMB_TEST = re.compile(r"\s*#\s+Benchmarking\s+(?:Multi-)?(\S+)")
_IMB_TITLES = re.compile(r"\s*(?:Group\s+)?(?:#bytes\s+)?#repetitions\s")
_IMB_PATTERNS = {"sendrecv": "ring", "bcast": "multicast"} | {
    name: name for name in ("pingpong", "allreduce", "alltoall", "barrier")
}  # with the same definition
_IMB_TIMED = {"t[usec]": "root", "t_avg[usec]": "mean"}  # in other columns the slowest rank
_IMB_RATES = {"sendrecv": Fraction(2), "exchange": Fraction(4)}  # sizes that the rate counts in t_max
_IMB_SAID = (
    (r"#\s+MODE: (\S+)", "mode", ""),
    (r"\( (\d+) groups of", "groups", "1"),
    (r"threads: (\d+)", "threads", "1"),
    (r"# window_size = (\d+)", "window", ""),
)


def _imb(table: OutputTable) -> list[Output]:
    test = table.test("# Benchmarking …")[1]
    name, version = test.lower(), _IMB_VERSION.search(table.head)
    pattern = _IMB_PATTERNS.get(name, f"imb_{name}")
    main = table.main(r"^t_avg\[" if pattern == "ring" else r"^t\[", r"^t\[|^t_max\[", r"^t_ovrl\[|Mbytes/sec")
    rate = _IMB_RATES.get(name)
    base = Output(
        tool=f"Intel MPI Benchmarks {version[1] if version else ''}, {test}".replace(" ,", ","),
        pattern=pattern,
        transport="mpi",
        rows=(),
        ranks=number_said(r"(?:#\s+#processes\s*=|groups of)\s*(\d+)", table.heading),
        timed=_IMB_TIMED.get(main, "slowest"),
        options=said(table.heading, _IMB_SAID),
        is_sized="#bytes" in table.titles,
        rate=None if pattern == "ring" else rate,
    )
    rates = {"Mbytes/sec": rate} if rate and pattern == "ring" and "Mbytes/sec" in table.titles else {}
    return curves(table, base, main, keys={"Group": ("group", ())}, rates=rates)


IMB = TextFormat(
    "IMB text",
    lambda line, _: line.split() if _IMB_TITLES.match(line) else None,
    _imb,
    _IMB_TEST,
    "# All processes entering MPI_Finalize",
)

# ---- nccl-tests and rccl-tests ---------------------------------------------------------------------------------------
# Means over iterations and, unless -a says otherwise, ranks. Only later versions name the collective. Times out of
# place are those of the pattern; in-place times are separate curves, as are algbw and busbw where they differ. Sizes
# and rates are defined in doc/PERFORMANCE.md. A size that is rounded down may come again, as does every size with -N.
# (src/util.cu, common.cu.)

NCCL_UNITS = {"time": "(us)", "cputime": "(us)", "algbw": "(GB/s)", "busbw": "(GB/s)", "i_cv%": ""}
_NCCL_KEYS = {"type": ("datatype", ("float",)), "redop": ("redop", ("sum", "none", "")), "root": ("root", ("-1", "0"))}
_NCCL_RATES: dict[str, Fraction | str] = {"algbw(GB/s)": Fraction(1), "busbw(GB/s)": "busbw"}
_NCCL_SAID = (
    (r"graph: (\d+)", "graph", "0"),
    (r"agg iters: (\d+)", "aggregated", "1"),
    (r"# (Blocking) En", "blocking", ""),
)


def _nccl_titles(line: str, _: str) -> Sequence[str] | None:
    if not re.match(r"\s*#\s+size\s.*\bbusbw\b", line):
        return None
    return [
        title + NCCL_UNITS.get(title, "(us)" if title.startswith("i_") else "") for title in line.lstrip("# ").split()
    ]


def _nccl(table: OutputTable) -> list[Output]:
    above, titles = f"{table.above}\n{table.heading}", list(table.titles)
    named = re.search(r"^\s*# Collective test starting: (\w+?)_perf", above, re.MULTILINE)
    version = re.search(r"^\s*# (nccl-tests version \S+)", above, re.MULTILINE)
    ranks = len(set(re.findall(r"^\s*#\s+Rank\s+(\d+) ", above, re.MULTILINE)))
    pattern = None if named is None else "allreduce" if named[1] == "all_reduce" else f"nccl_{named[1]}"
    tool, options = version[1] if version else "nccl-tests", said(above, _NCCL_SAID)
    times = [at for at, title in enumerate(titles) if re.match("(cpu)?time", title)]
    outputs = []
    for place, start, end in zip(({}, {"place": "in"}), times, [*times[1:], None], strict=False):
        rows = [(line, cells[: times[0]] + cells[start:end]) for line, cells in table.rows]
        half = replace(table, titles=titles[: times[0]] + titles[start:end], rows=rows)
        base = Output(tool, pattern, "nccl", (), ranks or None, "mean", options | place)
        outputs += curves(half, base, titles[start], keys=_NCCL_KEYS, rates=_NCCL_RATES, repeats=True)
    return outputs


NCCL = TextFormat(
    "nccl-tests text",
    _nccl_titles,
    _nccl,
    re.compile(r"\s*# nThread \d+ nGpus \d+"),
    "# Avg bus bandwidth",
    ends_each=True,
)

# ---- perftest (`ib_send_lat`, `ib_write_bw` and their like) ----------------------------------------------------------
# Averages; MB are 2^20 bytes, Gb 10^9 bits. A latency is half a round trip, except of reads and atomics. The rate of
# `-b` counts both directions. (src/perftest_parameters.c.)

_PERFTEST_TEST = re.compile(r"\s*((?:Send|Send_imm|RDMA_\w+|Atomic)(?: \w+)*) Test\s*$", re.MULTILINE)
_PERFTEST_SAID = (
    (r"Connection type\s*: (\w+)", "connection", "RC"),
    (r"Number of qps\s*: (\d+)", "qps", "1"),
    (r"Dual-port\s*: (\w+)", "dual_port", "OFF"),
    (r"TX depth\s*: (\d+)", "depth", "128"),
    (r"Post List\s*: (\d+)", "post_list", "1"),
)


def _perftest_titles(line: str, _: str) -> Sequence[str] | None:
    if not re.match(r"\s*#bytes\s.*#iterations\s.*\[", line):
        return None
    return re.findall(r"#\w+|\S+(?: \S+)*?\[[^\]]*\]|\S+(?: \S+)*", line.replace("[MB/", "[MiB/"))


def _perftest(table: OutputTable) -> list[Output]:
    test = table.test("… Test")[1]
    name = "_".join(test.lower().split())
    pattern = "pingpong" if name == "send_latency" else f"perftest_{name}"
    base = Output(f"perftest {test}", pattern, "verbs", (), 2, options=said(table.heading, _PERFTEST_SAID))
    return curves(table, base, table.main("^(?:BW average|t_avg)"), keys={"#sl": ("service_level", ("0",))})


PERFTEST = TextFormat("perftest text", _perftest_titles, _perftest, _PERFTEST_TEST)

# ---- ucx_perftest ----------------------------------------------------------------------------------------------------
# The line `Final:`, with the average over the whole test; MB are 2^20 bytes. A latency is half a round trip. The size
# stands in the heading that a server prints, or in the options of the command. (src/tools/perf/perftest_run.c.)

_UCX_LINE = re.compile(r"\s*\|\s+Stage\s+\| # iterations \|(.*\|){7}")
_UCX_TITLES = (
    *("Stage", "iterations", "p50 (us)", "average (us)", "overall (us)"),
    *("average rate (MiB/s)", "overall rate (MiB/s)", "average (msg/s)", "overall (msg/s)"),
)
_UCX_TESTS = {"tag_lat": "tag match latency", "tag_bw": "tag match bandwidth"}
_UCX_SAID = (
    (r"\| Data layout:\s+(\w+)", "layout", ""),
    (r"\| Send memory:\s+(\S+)", "send_memory", "host"),
    (r"\| Recv memory:\s+(\S+)", "receive_memory", "host"),
    (r"\| Window size:\s+(\d+)", "window", "32"),
)


def _ucx(table: OutputTable) -> list[Output]:
    command = re.search(r"ucx_perftest\b.*", table.heading)
    words = command[0] if command else ""
    test = re.search(r"\| Test:\s+(.+?)\s*\|", table.heading) or re.search(r"\s-t ?(\w+)", words)
    size = number_said(r"\| Message size:\s+(\d+)", table.heading) or number_said(r"\s-s ?(\d+)\b", words)
    if test is None or size is None:
        raise FormatError(
            f"line {table.line} has neither its test nor its message size above it: put the command above it, "
            "for example 'ucx_perftest -t tag_lat -s 8', or save the output of the server"
        )
    name = re.sub(r"\W+", "_", _UCX_TESTS.get(test[1], test[1])).lower()
    pattern = "pingpong" if name == "tag_match_latency" else f"ucx_{name}"
    base = Output(f"ucx_perftest {test[1]}", pattern, "ucx", (), 2, options=said(table.heading, _UCX_SAID))
    main = "overall (us)" if name.endswith(("latency", "_lat")) else "overall rate (MiB/s)"
    return curves(table, base, main, size=size)


UCX = TextFormat(
    "ucx_perftest text",
    lambda line, _: _UCX_TITLES if _UCX_LINE.match(line) else None,
    _ucx,
    row=re.compile(r"\s*Final:"),
)

# ---- fabtests and fi_pingpong of libfabric ---------------------------------------------------------------------------
# us per transfer, which is half a round trip of its ping-pongs. Only fi_pingpong says by its columns what it measures.
# Sizes are rounded to a tenth of k, m or g. (common/shared.c.)

_FABTESTS_LINE = re.compile(r"\s*(?:name|bytes)\s.*\sMB/sec\s+usec/xfer\s+\S+\s*$")


def _fabtests(table: OutputTable) -> list[Output]:
    pattern = "pingpong" if "#ack" in table.titles else None
    base = Output("fi_pingpong" if pattern else "fabtests", pattern, "libfabric", (), 2)
    return curves(table, base, "usec/xfer", keys={"name": ("test", ())})


FABTESTS = TextFormat(
    "fabtests text",
    lambda line, _: line.split() if _FABTESTS_LINE.match(line) else None,
    _fabtests,
    row=re.compile(r"\s*(?:[A-Za-z]\S*\s+)?\d+(?:\.\d)?[kmg]?\s+\d\S*\s.*s\s+[\d.]+\s"),
)

# ---- nvbandwidth -----------------------------------------------------------------------------------------------------
# A matrix of GB/s (10^9), or of ns, for each test. It does not say the size of its copies (512 MiB, unless --bufferSize
# says otherwise), so a time is that of 10^9 bytes. The diagonal, and cells of pairs that were not measured, hold
# nothing. (output.cpp.)

_NVBANDWIDTH_TEST = re.compile(r"\s*Running (\w+)\.\s*$", re.MULTILINE)
NVBANDWIDTH_UNIT = re.compile(r"\((GB/s|ns)\)\s*$")


def _nvbandwidth_titles(line: str, previous: str) -> Sequence[str] | None:
    unit = NVBANDWIDTH_UNIT.search(previous) if re.fullmatch(r"(?:\s+\d+)+\s*", line) else None
    return ["row", *(f"{name} ({unit[1]})" for name in line.split())] if unit else None


def _nvbandwidth(table: OutputTable) -> list[Output]:
    test = _NVBANDWIDTH_TEST.match(table.heading)
    name = f"nvbandwidth_{test[1]}" if test else None
    outputs = []
    for at, title in enumerate(table.titles[1:], 1):
        rows = [(line, [cells[0], cells[at]]) for line, cells in table.rows if number_of(cells[at])]
        base = Output("nvbandwidth", name, "cuda", (), 2, options={"to": title.split()[0]}, is_sized=False)
        column = replace(table, titles=["row", title], rows=rows)
        outputs += curves(column, base, title, size=10**9, keys={"row": ("from", ())})
    return outputs


NVBANDWIDTH = TextFormat(
    "nvbandwidth text",
    _nvbandwidth_titles,
    _nvbandwidth,
    _NVBANDWIDTH_TEST,
    row=re.compile(r"\s*\S+(?:\s+(?:[\d.]+|N/A))+\s*$"),
)

TEXT_FORMATS = (OSU, IMB, NCCL, PERFTEST, UCX, FABTESTS, NVBANDWIDTH)

# ---- NetPIPE 3 (np.out) ----------------------------------------------------------------------------------------------
# Per size its bytes, Mbit/s (of 2^20) and the time in s, half a round trip: the smallest of several trials. The file
# names neither the transport nor the number of trials, nor the mode: streams (-s) or both directions (-2). It is read
# as round trips. Of rate and time the one with more digits counts. (NetPIPE 3.7.2, netpipe.c.)


def read_netpipe(lines: Sequence[CleanLine]) -> tuple[list[OutputTable], int]:
    """The table of an np.out, and the number of other lines; none where a line stands before one of three numbers.

    It has no titles, so it is looked for last. Raises FormatError.
    """
    rows: dict[int, OutputRow] = {}
    others = 0
    for line, (text, is_error) in enumerate(lines, 1):
        cells = text.split()
        if is_error or not cells or (rows and not cells[0][0].isdecimal()):
            others += bool(cells)
            continue
        if not rows and (len(cells) != 3 or None in map(number_of, cells)):
            return [], 0
        if len(cells) != 3:
            raise FormatError(f"line {line} is not a size, a rate and a time: '{text.strip()[:80]}'")
        if line == len(lines):
            raise FormatError(f"line {line}, its last, does not end: a part is missing; save the whole output")
        row = _netpipe_row(line, cells)
        if row.bytes in rows:
            raise FormatError(f"line {line} has the size of line {rows[row.bytes].line} again: {row.bytes} B")
        rows[row.bytes] = row
    output = Output("NetPIPE 3", "pingpong", "netpipe", list(rows.values()), 2)
    found = TextFormat("NetPIPE np.out", lambda *_: None, lambda _: [output])
    return ([OutputTable(found, 1, (), "", [(row.line, []) for row in rows.values()])] if rows else []), others


def _netpipe_row(line: int, cells: Sequence[str]) -> OutputRow:
    size = read_size(cells[0], line)
    rate, half = read_number(cells[1], line, "a rate")
    time_s, time_half_s = read_number(cells[2], line, "a time")
    by_rate_s = size / (rate * (1 << 20) / 8)
    digits = half / rate, time_half_s / time_s
    if abs(by_rate_s / time_s - 1) > 2 * sum(digits):
        raise FormatError(f"line {line}: {cells[1]} Mbit/s and {cells[2]} s contradict each other at {size} B")
    value_ns = 1e9 * (by_rate_s if digits[0] < digits[1] else time_s)
    return OutputRow(line, size, (value_ns,), value_ns * min(digits))
