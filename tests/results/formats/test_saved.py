"""Outputs as people save them: with lines of other programs, prefixes, several measurements in a file, failed runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hockney.errors import UsageError
from hockney.results.formats import ReadOutputs, read_outputs
from hockney.results.formats.lines import decode

Figures = dict[tuple[str | None, str, int], float]


def figures(reading: ReadOutputs, *, columns: bool = False) -> Figures:
    """Time in us by pattern, options and size; `columns`: also those of other columns than the main one."""
    return {
        (output.pattern, " ".join(f"{k}={v}" for k, v in sorted(output.options.items())), row.bytes): time_ns / 1e3
        for output in reading.outputs
        for row in output.rows
        for time_ns in row.times_ns
        if columns or "column" not in output.options
    }


def read(text: str, *, columns: bool = False) -> dict[tuple[str | None, str, int], Any]:
    found = figures(read_outputs(text, "x"), columns=columns)
    return {key: pytest.approx(value) for key, value in found.items()}


def by_column(text: str) -> dict[str, Any]:
    """Time in us of a text's one row by the column; "": the main one."""
    return {options.removeprefix("column="): us for (_, options, _), us in read(text, columns=True).items()}


OSU = "# OSU MPI Latency Test v5.8\n# Size          Latency (us)\n"
ROWS = ["0        1.21", "1        1.23", "2        1.24", "16       1.32"]
LATENCY = OSU + "\n".join(ROWS) + "\n"
TIMES = {("pingpong", "", size): us for size, us in ((0, 1.21), (1, 1.23), (2, 1.24), (16, 1.32))}


# ---- lines between rows ----------------------------------------------------------------------------------------------

BETWEEN = [
    "[1700000000.123456] [n1:4242 :0]   sock.c:325  UCX  WARN  unable to read the value, as open() failed",
    "n1:1001:1055 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P",
    "WARNING: Linux kernel CMA support was requested but is not available",
    "# a comment: the link has 12000 MB/s, and 1.5 (us) at best",
    "--------------------------------------------------------------------------",
    "2 more processes have sent help messages",
    "[ 3420.098285] eth0: link is up",
    "",
]


@pytest.mark.parametrize("place", [0, 1, 3, 4])
@pytest.mark.parametrize("line", BETWEEN)
def test_a_line_between_rows_ends_nothing(line: str, place: int) -> None:
    reading = read_outputs(OSU + "\n".join([*ROWS[:place], line, *ROWS[place:]]) + "\n", "x")
    assert figures(reading) == pytest.approx(TIMES)
    assert (reading.rows, reading.rows_read, reading.notes) == (4, 4, [])
    assert reading.lines_left_out == (0 if line.startswith(("#", "-")) or not line else 1)


def test_blank_lines_between_all_lines() -> None:
    assert read(LATENCY.replace("\n", "\n\n")) == TIMES


@pytest.mark.parametrize(
    "prefix",
    [
        "[prterun-n1-12345@1,0]<stdout>: ",  # Open MPI 5
        "[prterun-n1-12345@1,0][n1:4242]<stdout>: ",
        "[1,0]<stdout>:",  # Open MPI 4
        "Wed Mar  6 10:11:12 2024<stdout>:",
        "[0] ",  # hydra
        "0: ",  # srun --label
        "  0: ",
        "[pod/osu-launcher-abc/osu] ",  # kubectl logs --prefix
        "osu-launcher-1  | ",  # docker compose
        "2024-03-06T10:11:12.123456789Z ",  # kubectl logs --timestamps
        "[2024-03-06 10:11:12,123] ",
        "Mar 06 10:11:12 ",  # ts
        "10:11:12.123 ",
        "2024-03-06T10:11:12Z [0] ",
        "\x1b[32m",
        "\x1b[0;1;36m\x1b[K",
        "progress 99 %\r",
    ],
)
def test_prefixes_of_launchers_and_logs(prefix: str) -> None:
    text = "".join(f"{prefix}{line}\n" for line in LATENCY.splitlines())
    assert read(text) == TIMES
    assert read(text.replace("\n", "\r\n")) == TIMES


def test_tagged_standard_error_holds_no_rows() -> None:
    error = "[1,0]<stderr>:4   9.99\n[1,0]<stderr>:n1 is slow\n"
    text = "".join(f"[1,0]<stdout>:{line}\n" for line in LATENCY.splitlines())
    reading = read_outputs(text.replace("[1,0]<stdout>:2 ", f"{error}[1,0]<stdout>:2 "), "x")
    assert figures(reading) == pytest.approx(TIMES)
    assert reading.lines_left_out == 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_files_of_windows(encoding: str) -> None:
    mark = b"\xff\xfe" if encoding == "utf-16-le" else b""
    assert read(decode(mark + LATENCY.replace("\n", "\r\n").encode(encoding))) == TIMES


def test_colours_of_a_terminal() -> None:
    assert read(LATENCY.replace(OSU, f"\x1b[32m{OSU[:-1]}\x1b[0m\n")) == TIMES


def test_a_damaged_row_is_no_other_line() -> None:
    for row in ("16", "16 x", "16 1,32"):
        with pytest.raises(UsageError, match="line 6"):
            read_outputs(OSU + "\n".join([*ROWS[:3], row]) + "\n", "x")
    with pytest.raises(UsageError, match="line 6, its last, does not end"):
        read_outputs(LATENCY[:-1], "x")
    assert read(LATENCY + "the end, without a newline") == TIMES


# ---- what a heading says ---------------------------------------------------------------------------------------------


def osu(title: str, *headings: str, column: str = "Latency (us)", time: float = 1.0) -> str:
    lines = [f"# OSU {title} Test v7.2", *headings, f"# Size      {column}", f"8         {time:.2f}"]
    return "\n".join([*lines, ""])


def test_buffers_of_host_and_device_are_two_curves() -> None:
    said = "# Send Buffer on {} and Receive Buffer on {}"
    host, device = "HOST (H)", "DEVICE (D)"
    text = "".join(
        osu("MPI-CUDA Latency", said.format(*buffers), time=time)
        for time, buffers in enumerate([(host, host), (device, device), (device, host)], 1)
    )
    assert read(text) == {
        ("pingpong", "", 8): 1.0,
        ("pingpong", "buffers=DD", 8): 2.0,
        ("pingpong", "buffers=DH", 8): 3.0,
    }


def test_a_collective_of_an_accelerator_is_another_curve() -> None:
    text = osu("MPI Gather Latency", time=1) + osu("MPI-CUDA Gather Latency", time=2)
    of_osu = "start=barrier time=mean"
    assert list(read(text)) == [("gather", of_osu, 8), ("gather", f"accelerator=cuda {of_osu}", 8)]


def test_titles_of_all_versions_are_known() -> None:
    titles = ("Blocking Broadcast", "blocking All-to-All", "blocking All-to-Allv Personalized Exchange")
    text = "".join(osu(f"MPI Non-{title} Latency") for title in (*titles, "blocking Neighborhood Alltoallw"))
    assert [pattern for pattern, _, _ in read(text)] == ["bcast", "alltoall", "alltoallv", "neighbor_alltoallw"]


def test_windows_and_synchronisations_are_curves() -> None:
    memories = ("# Window creation: MPI_Win_allocate", "# Window creation: MPI_Win_create")
    syncs = ("# Synchronization: MPI_Win_flush", "# Synchronization: MPI_Win_fence")
    text = "".join(
        osu("MPI_Put Latency", *said, time=time)
        for time, said in enumerate([(m, s) for m in memories for s in syncs], 1)
    )
    assert {options: us for (_, options, _), us in read(text).items()} == {
        "memory=allocate sync=flush window=1": 1.0,
        "memory=allocate sync=fence window=1": 2.0,
        "memory=create sync=flush window=1": 3.0,
        "memory=create sync=fence window=1": 4.0,
    }
    assert {output.transport for output in read_outputs(text, "x").outputs} == {"mpi:rma"}


def test_a_traced_command_says_the_window() -> None:
    bandwidth = osu("MPI Bandwidth", column="Bandwidth (MB/s)")
    reading = read_outputs(
        f"+ osu_bw -W 1\n{bandwidth}+ mpirun -n 2 ./osu_bw --window-size=32 -m 8\n{bandwidth}+ osu_bw\n{bandwidth}", "x"
    )
    assert [output.window for output in reading.outputs] == [1, 32, None]


IMB_END = "\n# All processes entering MPI_Finalize\n"


def imb(name: str, titles: str, *rows: str, processes: str = "# #processes = 2", mode: str = "") -> str:
    return "\n".join([f"# Benchmarking {name} ", processes, mode, titles, *rows, ""])


TIMED = "#bytes #repetitions t[usec] Mbytes/sec"
RANGE = "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]"


def test_modes_of_imb_are_curves() -> None:
    text = imb("Unidir_Put", TIMED, "8 100 0.11 72.70", mode="#    MODE: AGGREGATE ")
    text += imb("Unidir_Put", TIMED, "8 100 3.11 2.57", mode="#    MODE: NON-AGGREGATE ")
    assert read(text + IMB_END) == {("put", "sync=fence window=0", 8): 0.11, ("put", "sync=fence window=1", 8): 3.11}


def test_the_head_of_an_output_of_imb_tells_programs_apart() -> None:
    def found(part: str, name: str) -> tuple[str | None, str]:
        text = f"#    Intel(R) MPI Benchmarks 2021.11, {part} part\n" + imb(name, TIMED, "8 100 3.11 2.57") + IMB_END
        ((pattern, options, _),) = read(text)
        return pattern, options

    assert found("MPI-2", "Accumulate") == (
        "accumulate", "dtype=float32 origins=all sync=fences target=0 window=1"
    )  # fmt: skip
    assert found("MPI-RMA", "Accumulate") == ("accumulate", "dtype=float32 sync=flush window=1")
    assert found("MPI-1", "PingPong") == ("pingpong", "receive=any-tag")
    assert found("IMB-P2P", "PingPong") == ("bisection", "time=mean")
    assert found("MPI-IO", "S_Write_Indv") == ("imb_s_write_indv", "")


def test_groups_of_imb_are_curves_of_their_ranks() -> None:
    groups = "# ( 2 groups of 2 processes each running simultaneous ) \n# Group  0:     0    1"
    titles = "#repetitions t_min[usec] t_max[usec] t_avg[usec]"
    text = imb("Multi-Barrier", titles, "1000 21.10 22.30 21.70", processes=groups)
    text += imb("Barrier", titles, "1000 41.10 42.30 41.70", processes="# #processes = 4")
    text += imb("Multi-PingPong", f"Group {TIMED}", "0 8 9 1.5 5.3", "1 8 9 1.6 5.0", processes=groups)
    reading = read_outputs(text + IMB_END, "x")
    assert [output.ranks for output in reading.outputs if "column" not in output.options] == [2, 4, 2, 2]
    assert figures(reading) == pytest.approx(
        {
            ("barrier", "groups=2", 0): 22.3,
            ("barrier", "", 0): 42.3,
            ("pingpong", "group=0 groups=2 receive=any-tag", 8): 1.5,
            ("pingpong", "group=1 groups=2 receive=any-tag", 8): 1.6,
        }
    )


# ---- all columns -----------------------------------------------------------------------------------------------------


def test_a_table_without_a_sign_before_its_titles() -> None:
    text = (
        "\n# OSU MPI Non-blocking Barrier Latency Test v5.6.3\n"
        "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n"
        "       Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)\n"
        "              8.85              4.02              5.04             24.91\n"
    )
    said = "form=nonblocking overlap=yes start=barrier time=mean"
    assert read(text, columns=True) == {
        ("barrier", said, 0): 8.85,
        ("barrier", f"column=compute {said}", 0): 4.02,
        ("barrier", f"column=pure {said}", 0): 5.04,
    }
    (row,) = read_outputs(text, "x").outputs[0].rows
    assert row.others == {"Overlap(%)": 24.91}


def test_minimum_maximum_and_percentiles() -> None:
    titles = "# Size  Avg Latency(us)  Min Latency(us)  Max Latency(us)  Iterations  P50 Tail Lat(us)  P99 Tail Lat(us)"
    text = f"# OSU MPI Latency Test v7.4\n{titles}\n8    1.50    1.10   9.00   1000   1.40   0.00\n"
    assert by_column(text) == {"": 1.5, "min": 1.1, "max": 9.0, "p50": 1.4}
    (row,) = read_outputs(text, "x").outputs[0].rows
    assert row.others == {"Iterations": 1000.0, "P99 Tail Lat(us)": 0.0}


def test_columns_of_imb() -> None:
    text = imb("Allreduce", RANGE, "8 1000 1.10 1.60 1.50")
    text += imb(
        "Ibcast", "#bytes #repetitions t_ovrl[usec] t_pure[usec] t_CPU[usec] overlap[%]", "8 10 5.0 3.0 2.5 20.0"
    )
    found = read(text + IMB_END, columns=True)
    assert found["allreduce", "dtype=float32 start=barrier", 8] == 1.6
    assert found["allreduce", "column=t_min dtype=float32 start=barrier", 8] == 1.1
    said = "form=nonblocking overlap=yes start=barrier"
    assert found["bcast", said, 8] == 5.0
    assert found["bcast", f"column=t_pure {said}", 8] == 3.0
    assert found["bcast", f"column=t_cpu {said}", 8] == 2.5


def test_a_table_of_rates_alone() -> None:
    """At 0 B the messages per second say the time."""
    text = imb("PingPong", TIMED, "0 1000 1.66 0.00", "8 1000 1.70 4.71")
    text += imb("Uniband", "#bytes #repetitions Mbytes/sec Msg/sec", "0 1000 0.00 4000000", "8 1000 24.00 3000000")
    found = read(text + IMB_END)
    assert found["pingpong", "receive=any-tag", 8] == 1.7
    assert found["imb_uniband", "", 8] == pytest.approx(8 / 24)
    assert found["imb_uniband", "", 0] == 0.25


NCCL_HEAD = (
    "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1 minBytes 8 agg iters: 1 validation: 1 graph: 0\n"
    "#  Rank  0 Group  0 Pid 1 on n1 device  0\n#  Rank  1 Group  0 Pid 2 on n1 device  1\n"
)
NCCL_TITLES = (
    "#   size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
    "#   (B)  (elements)  (us)  (GB/s)  (GB/s)    (us)  (GB/s)  (GB/s)   \n"
)
NCCL_END = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 6.3569\n#\n"


def test_nccl_tests_with_its_log_between_rows() -> None:
    text = (
        f"{NCCL_HEAD}{NCCL_TITLES}  8 2 float sum -1 12.90 0.00 0.00 0 12.87 0.00 0.00 0\n"
        "n1:1001:1055 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
        f"  1048576 262144 float sum -1 55.10 19.03 19.03 0 54.90 19.10 19.10 0\n{NCCL_END}"
    )
    assert read(text) == {
        ("allreduce", "", 8): 12.9,
        ("allreduce", "", 1048576): 55.1,
        ("allreduce", "place=in", 8): 12.87,
        ("allreduce", "place=in", 1048576): 54.9,
    }
    assert {output.ranks for output in read_outputs(text, "x").outputs} == {2}


def test_a_size_that_is_rounded_down_comes_again() -> None:
    head = NCCL_HEAD.replace("all_reduce", "all_gather")
    rows = ("0 0 float none -1 7.50 0 0 0 7.40 0 0 0", "0 0 float none -1 7.60 0 0 0 7.50 0 0 0")
    text = "\n".join([head + NCCL_TITLES, *rows, "128 4 float none -1 59.10 0 0 0 54.40 0 0 0", NCCL_END])
    first, second = read_outputs(text, "x").outputs[0].rows
    assert (first.bytes, second.bytes) == (0, 128)
    assert [*first.times_ns, *second.times_ns] == pytest.approx([7500, 7600, 59100])


def test_types_and_operations_of_nccl_tests_are_curves() -> None:
    rows = ("8 2 float sum -1 1.0 0 0 0 1.1 0 0 0", "8 4 half max -1 2.0 0 0 0 2.1 0 0 0")
    found = read("\n".join([NCCL_HEAD.replace("graph: 0", "graph: 1") + NCCL_TITLES, *rows, NCCL_END]))
    assert found["allreduce", "graph=1", 8] == 1.0
    assert found["allreduce", "datatype=half graph=1 redop=max", 8] == 2.0


# ---- runs that failed ------------------------------------------------------------------------------------------------

ABORTED = (
    "-----------------------------------\n"
    "Primary job  terminated normally, but 1 process returned\na non-zero exit code.\n"
    "mpirun noticed that process rank 1 with PID 0 on node n2 exited on signal 9 (Killed).\n"
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (LATENCY + ABORTED, "line 8 says that the run failed: 'Primary job  terminated"),
        (
            LATENCY + "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2024-03-06 ***\n",
            "line 7 says that the run failed",
        ),
        (LATENCY + "[n1:0] Caught signal 11 (Segmentation fault)\n" + LATENCY, "line 7 says that the run failed"),
        (LATENCY + "mpirun: error: lost a daemon\n", "line 7 says that the run failed"),
        (OSU + "mpirun: could not start, it failed\n", "line 3 says that the run failed"),
        (
            imb("PingPong", f"{TIMED} defects", "8 9 1.7 4.7 0.00", "9 9 1.8 5.2 1.00") + IMB_END,
            "wrong data: defects 1.00",
        ),
        (
            f"{NCCL_HEAD}{NCCL_TITLES}8 2 float sum -1 1 0 0 N/A 1 0 0 N/A\n" + NCCL_END.replace("0 OK", "1 FAILED"),
            "line 8 says that the run failed: '# Out of bounds values : 1 FAILED'",
        ),
    ],
)
def test_a_failed_run_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_outputs(text, "x")
    assert sentence in str(caught.value)


def test_a_failure_of_something_else_is_named() -> None:
    """The output goes on, so that its run did not fail."""
    reading = read_outputs(f"{LATENCY}[ 3420.1] mlx5_1: Create QP type 2 failed\n{LATENCY}", "x")
    assert [len(output.rows) for output in reading.outputs] == [4, 4]
    (note,) = reading.notes
    assert (
        note == "line 7 says that the run failed: '[ 3420.1] mlx5_1: Create QP type 2 failed', but its output continues"
    )
    assert (reading.rows, reading.rows_read) == (8, 8)


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over", "the time was up"),
        ("out-of-mem.; needed X=  1.024 GB; use flag -mem", "out of memory"),
        ("int-overflow; The production rank*size caused int overflow;", "an integer overflow"),
    ],
)
def test_rows_without_a_figure_are_named(cell: str, reason: str) -> None:
    text = imb("Alltoall", RANGE, "0 1000 0.03 0.05 0.04", "8 1000 5.1 5.3 5.2", f"65536 {cell}") + IMB_END
    reading = read_outputs(text, "x")
    assert figures(reading) == pytest.approx(
        {("alltoall", "start=barrier", 0): 0.05, ("alltoall", "start=barrier", 8): 5.3}
    )
    assert reading.notes == [f"line 7: no figure of 65536 B, as {reason}"]
    assert (reading.rows, reading.rows_read) == (3, 2)


def test_a_time_of_0_bytes_below_its_digits_is_named() -> None:
    reading = read_outputs(imb("Reduce", RANGE, "0 1000 0.00 0.00 0.00", "8 1000 1.0 2.0 1.5") + IMB_END, "x")
    assert figures(reading) == {("reduce", "dtype=float32 start=barrier", 8): 2.0}
    assert reading.notes == ["line 5: no figure, because it shows 0.00 at 0 B"]


def test_several_formats_in_one_log() -> None:
    text = f"starting\n{LATENCY}done\n{imb('PingPong', TIMED, '8 9 1.7 4.7')}{IMB_END}done\n"
    reading = read_outputs(text, "x")
    assert [output.tool.split()[0] for output in reading.outputs] == ["OSU", "Intel"]
    assert reading.lines_left_out == 3


# ---- iperf3 ----------------------------------------------------------------------------------------------------------


def iperf3(streams: int = 1, reverse: int = 0, **sums: float) -> dict[str, Any]:
    """A document whose intervals last 1 s; `sums`: MB of an interval by key."""
    of_interval = {
        name: {"seconds": 1.0, "bytes": megabytes * 1e6, "omitted": False} for name, megabytes in sums.items()
    }
    asked = {"protocol": "TCP", "num_streams": streams, "blksize": 131072, "reverse": reverse}
    start = {"version": "iperf 3.17", "test_start": asked}
    return {"start": start, "intervals": [{"streams": [], **of_interval}] * 3, "end": {}}


def rates(text: str) -> dict[str, float]:
    """MB/s by the options, with the definition that is stored."""
    from hockney.results.formats.output import definition

    found = {}
    for output in read_outputs(text, "x").outputs:
        (row,) = output.rows
        of = definition(str(output.pattern), 2, row.bytes, 1, output.timed, output.rate)
        options = " ".join(f"{k}={v}" for k, v in sorted(output.options.items()))
        found[f"{output.pattern} {options}".strip()] = of.bytes_per_rep / (row.times_ns[0] * of.divisor) * 1e3
    return found


def test_parallel_streams_have_the_rate_of_all() -> None:
    assert rates(json.dumps(iperf3(4, sum=1918))) == {"iperf3 streams=4": pytest.approx(1918)}


def test_both_directions_are_two_curves() -> None:
    expected = {"iperf3 direction=forward": pytest.approx(900), "iperf3 direction=reverse": pytest.approx(500)}
    text = json.dumps(iperf3(sum=900, sum_bidir_reverse=500))
    assert rates(text) == expected
    assert rates(text.replace("sum_bidir_reverse", "sum")) == expected  # 3.7 to 3.10
    assert rates(json.dumps(iperf3(reverse=1, sum=700))) == {"stream direction=reverse": pytest.approx(700)}


def test_text_around_a_document() -> None:
    text = f"warning: no IPv6\n\n{json.dumps(iperf3(sum=900), indent=1)}\niperf Done.\n{json.dumps(iperf3(sum=800))}\n"
    reading = read_outputs(text, "x")
    assert len(reading.outputs) == 2
    assert reading.lines_left_out == 2


def test_a_stream_of_events() -> None:
    document = iperf3(sum=900)
    events = [{"event": "start", "data": document["start"]}]
    events += [{"event": "interval", "data": interval} for interval in document["intervals"]]
    text = "".join(json.dumps(event) + "\n" for event in [*events, {"event": "end", "data": {}}])
    assert rates(text) == {"stream": pytest.approx(900)}
    with pytest.raises(UsageError, match="its 'end' is missing: the run was cut short"):
        read_outputs("".join(json.dumps(event) + "\n" for event in events), "x")
    failed = [*events, {"event": "error", "data": "the server has terminated"}]
    with pytest.raises(UsageError, match="its run failed: the server has terminated"):
        read_outputs("".join(json.dumps(event) + "\n" for event in failed), "x")


@pytest.mark.parametrize(
    "text",
    [
        *('{"start": 1}', '{"results": []}', "{}", '[{"start": {}}]', '{"event": 1, "data": 2}'),
        '{"x": 1}\n{"event": "interval", "data": 2}',  # an event of a stream without its start
    ],
)
def test_unknown_json_is_not_called_that_of_iperf3(text: str) -> None:
    with pytest.raises(UsageError, match="its format is unknown"):
        read_outputs(text + "\n", "x")
