"""Real outputs of other benchmarks (samples/SOURCES.md), and errors in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.matrix import matrix

from hockney.errors import UsageError
from hockney.results.formats import Output, read_outputs
from hockney.results.formats.output import definition

SAMPLES = Path(__file__).parent / "samples"


def text_of(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def outputs_of(name: str) -> list[Output]:
    """The curves of the main columns."""
    return [output for output in read_outputs(text_of(name), name).outputs if "column" not in output.options]


def said(output: Output) -> tuple[str | None, str, int | None, str, dict[str, str], int | None]:
    return output.pattern, output.transport, output.ranks, output.timed, dict(output.options), output.window


OSU = {"start": "barrier", "time": "mean"}
# The properties of each output, its number of sizes, and the time of one of them in ns.
SAID = {
    "np-tcp.out": [("pingpong", "netpipe", 2, "root", {}, None)],
    "np-openmpi.out": [("pingpong", "netpipe", 2, "root", {}, None)],
    "np-mpich.out": [("pingpong", "netpipe", 2, "root", {}, None)],
    "iperf3-tcp.json": [("stream", "tcp", 2, "slowest", {}, None)],
    "iperf3-udp.json": [("iperf3", "udp", 2, "slowest", {}, None)],
    "iperf3-streams.json": [("iperf3", "tcp", 2, "slowest", {"streams": "2"}, None)],
    "osu_latency.txt": [("pingpong", "mpi", 2, "root", {}, None)],
    "osu_bw-cuda.txt": [("oneway", "mpi", 2, "root", {"answer": "window", "buffers": "DD"}, None)],
    "osu_mbw_mr.txt": [("pairs", "mpi", 96, "sources", {"answer": "window", "start": "barrier"}, 64)],
    "osu_reduce-full.txt": [("reduce", "mpi", None, "mean", OSU | {"dtype": "int8", "accelerator": "cuda"}, None)],
    "osu_barrier-allreduce.txt": [  # of version 5
        ("barrier", "mpi", None, "mean", {"time": "mean"}, None),
        ("allreduce", "mpi", None, "mean", OSU | {"dtype": "float32"}, None),
    ],
    "imb-pingpong.txt": [("pingpong", "mpi", 2, "root", {"receive": "any-tag"}, None)],
    "imb-reduce.txt": [("reduce", "mpi", 2, "slowest", {"dtype": "float32", "start": "barrier"}, None)],
    "nccl-gb200.txt": [(None, "nccl", None, "mean", {}, None), (None, "nccl", None, "mean", {"place": "in"}, None)],
    "nccl-tagged.txt": [
        ("allreduce", "nccl", 2, "mean", {}, None),
        ("allreduce", "nccl", 2, "mean", {"place": "in"}, None),
    ],
}
FIGURES = [
    ("np-tcp.out", 0, 82, 1, 9454.1),
    ("np-mpich.out", 0, 82, 1, 141.9),
    ("iperf3-udp.json", 0, 1, 32768, 1.31232e6),  # the received bytes
    ("osu_latency.txt", 0, 24, 65536, 58280.0),
    ("osu_bw-cuda.txt", 0, 17, 1024, 3417.7),  # 1024 B / 299.62 MB/s
    ("osu_mbw_mr.txt", 0, 12, 1024, 948.1),  # 48 pairs x 1024 B / 51844.46 MB/s
    ("osu_reduce-full.txt", 0, 11, 1, 53340.0),
    ("osu_barrier-allreduce.txt", 0, 1, 0, 8320.0),
    ("osu_barrier-allreduce.txt", 1, 12, 8192, 326910.0),
    ("imb-pingpong.txt", 0, 26, 16777216, 1366010.0),
    ("imb-reduce.txt", 0, 12, 4096, 2930.0),  # the slowest rank
    ("nccl-gb200.txt", 0, 5, 4294967296, 1.0094e7),
    ("nccl-tagged.txt", 1, 8, 134217728, 5.80554e7),
]


@pytest.mark.parametrize("name", SAID)
def test_properties_of_an_output(name: str) -> None:
    assert list(map(said, outputs_of(name))) == SAID[name]


def test_every_sample_is_tested_and_has_a_source() -> None:
    sources = text_of("SOURCES.md")
    for path in SAMPLES.iterdir():
        if path.name == "SOURCES.md":
            continue
        assert path.name in SAID or "failed" in path.name
        assert path.name.partition("-")[0] in sources


@pytest.mark.parametrize(("name", "number", "sizes", "size", "time_ns"), FIGURES)
def test_times_are_those_of_the_pattern(name: str, number: int, sizes: int, size: int, time_ns: float) -> None:
    output = outputs_of(name)[number]
    assert len(output.rows) == sizes
    (row,) = (row for row in output.rows if row.bytes == size)
    assert row.times_ns[0] == pytest.approx(time_ns, rel=1e-3)
    if not name.startswith("iperf3"):
        assert text_of(name).splitlines()[row.line - 1].split("<stdout>:")[-1].split()[0] in (str(size), "8.32")


def test_rates_come_back_from_times() -> None:
    """By the pattern's own definition the printed MB/s come out again."""
    (output,) = outputs_of("osu_mbw_mr.txt")
    row = output.rows[10]
    of = definition("pairs", 96, row.bytes, 64, "sources")
    assert of.bytes_per_rep / (row.times_ns[0] * of.divisor) * 1e3 == pytest.approx(51844.46)


@pytest.mark.parametrize(
    ("pattern", "divisor", "messages", "algorithm"),
    [
        ("pingpong", 2, 2, None),
        ("oneway", 16, 16, None),
        ("twoway", 32, 32, None),
        ("pairs", 16, 3 * 16, None),
        ("ring", 1, 6, None),
        ("alltoall", 1, 6 * 5, "native"),
        ("allreduce", 1, 2 * 5, "native"),
        ("allgather", 1, 6 * 5, "native"),
        ("bcast", 1, 5, "native"),
        ("neighbor_alltoall", 1, 6 * 2, "native"),
        ("put", 1, 1, None),
        ("barrier", 1, 0, "native"),
        ("osu_reduce_latency", 1, 1, None),
    ],
)
def test_the_definition_of_a_pattern_on_six_ranks(
    pattern: str, divisor: int, messages: int, algorithm: str | None
) -> None:
    """With 16 messages of 100 B in flight, where it has a window."""
    of = definition(pattern, 6, 100, 16, "mean")
    assert (of.timed, of.divisor, of.messages_per_rep, of.bytes_per_rep) == ("mean", divisor, messages, 100 * messages)
    assert of.algorithm == algorithm


def test_a_reduce_scatter_of_osu_is_the_pattern_of_a_vector() -> None:
    """With the definition that a worker describes: OSU's size is that of all blocks."""
    from tests.worker.test_native import measure, measured, shared

    text = "# OSU MPI Reduce_scatter Latency Test v7.4\n# Size       Avg Latency(us)\n48                     2.00\n"
    (output,) = read_outputs(text, "x").outputs
    assert (output.pattern, output.options["bytes_of"], output.timed) == ("reduce_scatter", "vector", "mean")
    of = definition("reduce_scatter", 3, 48, 1, "mean", is_vector=True)
    (answer,) = measured([measure("reduce_scatter", 48, **output.options)], "-t", "shm", *shared(3))
    assert {name: answer[name] for name in ("timed", "divisor", "bytes_per_rep", "messages_per_rep")} == {
        "timed": of.timed,
        "divisor": of.divisor,
        "bytes_per_rep": of.bytes_per_rep,
        "messages_per_rep": of.messages_per_rep,
    }


def test_printed_digits_are_known() -> None:
    (output,) = outputs_of("osu_latency.txt")
    assert output.rows[0].digits_ns == pytest.approx(5.0)  # 1.06 us
    (output,) = outputs_of("np-mpich.out")
    assert output.rows[0].digits_ns < 1e-5  # the rate has more digits than the time
    (output,) = outputs_of("osu_mbw_mr.txt")
    row = output.rows[10]
    assert row.digits_ns == pytest.approx(row.times_ns[0] * 0.005 / 51844.46)


def test_a_verified_output_says_so() -> None:
    assert all(row.verified for row in outputs_of("nccl-tagged.txt")[0].rows)
    assert not any(row.verified for row in outputs_of("osu_latency.txt")[0].rows)
    text = "# OSU MPI Latency Test v7.2\n# Size       Avg Latency(us)        Validation\n8      1.50      Pass\n"
    assert read_outputs(text, "x").outputs[0].rows[0].verified


def test_each_interval_of_iperf3_is_a_measurement() -> None:
    (output,) = outputs_of("iperf3-tcp.json")
    intervals = json.loads(text_of("iperf3-tcp.json"))["intervals"]
    expected = [131072 * interval["sum"]["seconds"] * 1e9 / interval["sum"]["bytes"] for interval in intervals]
    assert output.rows[0].times_ns == pytest.approx(expected)


def test_datagrams_without_received_bytes_are_refused() -> None:
    document = json.loads(text_of("iperf3-udp.json"))
    del document["end"]["sum_received"]
    with pytest.raises(UsageError, match="it is JSON of iperf3, but a part is missing or damaged"):
        read_outputs(json.dumps(document), "x")


def test_warm_up_and_a_short_last_interval_of_iperf3_do_not_count() -> None:
    document = json.loads(text_of("iperf3-tcp.json"))
    first = document["intervals"][0]["sum"]
    document["intervals"].insert(0, {"sum": {**first, "omitted": True, "bytes": 1}})
    document["intervals"].append({"sum": {**first, "seconds": 0.001, "bytes": 131072}})
    (output,) = read_outputs(json.dumps(document), "x").outputs
    assert output.rows == outputs_of("iperf3-tcp.json")[0].rows


LATENCY = "# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n"
IMB = "# Benchmarking PingPong\n# #processes = 2\n  #bytes #repetitions  t[usec]  Mbytes/sec\n"
NCCL = "#  size  count  type  redop  root  time  algbw  busbw #wrong\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "its format is unknown; known are OSU micro-benchmarks text"),
        ("size,time\n8,1.5\n", "its format is unknown"),
        (LATENCY + "8  1.5\n16 1.6", "line 4, its last, does not end"),
        (LATENCY + "8  1.5\n16\n", "line 4 has 1 numbers, not 2: '16'"),
        (LATENCY + "8  1.5\n16  x\n", "line 4: 'x' is not a time above 0"),
        (LATENCY + "8  1.5\n16  -2\n", "line 4: '-2' is not a time above 0"),
        (LATENCY + "8  0.00\n", "line 3: '0.00' is not a time above 0"),
        (LATENCY + "8  nan\n", "line 3: 'nan' is not a time above 0"),
        (LATENCY + "8x  1.5\n", "line 3: '8x' is not a message size in bytes"),
        (LATENCY + "8  1.5\n8  1.6\n", "line 4 repeats the size of line 3: 8 B"),
        (LATENCY + "8  1.5\nmpirun noticed that rank 1 exited on signal 9\n", "line 4 says that the run failed"),
        (LATENCY, "line 2 is the head of a table without figures: its run failed"),
        ("# OSU MPI Latency Test v5.9\n", "line 1 has no table below it: its run failed"),
        (LATENCY.replace("Latency (us)", "Latency (us)  Validation") + "8  1.5  Fail\n", "line 3 reports wrong data"),
        (IMB + "8 1000 1.5 5.3\n", "the line '# All processes entering MPI_Finalize' is missing below line 3"),
        (IMB + "8 1000 1.5\n# All processes entering MPI_Finalize\n", "line 4 has 3 numbers, not 4"),
        (NCCL + "8 2 float sum -1 5.0 0 0 0\n", "the line '# Avg bus bandwidth' is missing below line 1"),
        (
            NCCL + "8 2 float sum -1 5.0 0 0 3\n# Avg bus bandwidth : 1\n",
            "line 2 reports wrong data: #wrong 3",
        ),
        ("# nThread 1 nGpus 1 minBytes 8\n", "line 1 has no table below it: its run failed"),
        ("1 0.8 0.00000945\n2 1.4\n", "line 2 has 2 numbers, not 3: '2 1.4'"),
        ("1 0.806995 0.00000945\nmpirun: rank 1 exited on signal 9\n", "line 2 says that the run failed"),
        ("1 0.806995 0.00000945\n2 1.457114 0.5\n", "line 2: 1.457114 Mbit/s and 0.5 s contradict each other at 2 B"),
        ('{"start": {"test_start"', "it is no whole JSON (line 1)"),
        ('{"figures": 3}', "its format is unknown"),
    ],
)
def test_errors_name_their_line(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=r"cannot import out\.txt") as caught:
        read_outputs(text, "out.txt")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("osu_ireduce-failed.txt", "line 7 says that the run failed: 'Primary job  terminated"),
        ("iperf3-failed.json", "its run failed: unable to connect to server: Connection refused"),
    ],
)
def test_a_run_that_failed(name: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        outputs_of(name)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", [name for name in SAID if not name.startswith(("np-", "osu"))])
def test_no_half_of_a_file_is_read(name: str) -> None:
    """NetPIPE and OSU have no end mark: any whole line may be the last one."""
    text = text_of(name)
    for part in range(1, 20):
        with pytest.raises(UsageError):
            read_outputs(text[: len(text) * part // 20], name)


@pytest.mark.parametrize("places", matrix([40, 200], short=[40]))
@pytest.mark.parametrize("name", SAID)
def test_a_damaged_text_is_an_error_or_output(name: str, places: int) -> None:
    """For any content the answer is a sentence or figures above 0."""
    text = text_of(name)
    for at in range(0, len(text), max(1, len(text) // places)):
        for what in ("", "-", "9" * 50, "\x00", "\n", "e400"):
            try:
                outputs = read_outputs(text[:at] + what + text[at + 1 :], name).outputs
            except UsageError:
                continue
            assert all(time_ns > 0 for output in outputs for row in output.rows for time_ns in row.times_ns)
