"""perftest, ucx_perftest, fabtests, nvbandwidth, and the JSON of nccl-tests: made-up figures in the tools' forms."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.results.formats.test_saved import NCCL_END, NCCL_HEAD, NCCL_TITLES, by_column, figures, rates, read

from hockney.errors import UsageError
from hockney.results.formats import read_outputs

# ---- perftest --------------------------------------------------------------------------------------------------------

RULER = "-" * 87
BW_TITLES = " #bytes     #iterations    BW peak[{0}/sec]    BW average[{0}/sec]   MsgRate[Mpps]"
LAT_TITLES = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% percentile[usec]   99.9% percentile[usec] "
)


def perftest(test: str, titles: str, *rows: str, qps: int = 1, connection: str = "RC") -> str:
    head = (
        f"{RULER}\n                    {test} Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n"
        f" Number of qps   : {qps}\t\tTransport type : IB\n Connection type : {connection}\t\tUsing SRQ      : OFF\n"
        f" local address: LID 0x01 QPN 0x012b PSN 0x5 RKey 0x1 VAddr 0x007\n{RULER}\n"
    )
    return "\n".join([head + titles, *rows, RULER, ""])


@pytest.mark.parametrize(("unit", "size"), [("MB", 2**20), ("MiB", 2**20), ("Gb", 1e9 / 8)])
def test_bandwidths_of_perftest(unit: str, size: float) -> None:
    text = perftest(
        "RDMA_Write BW",
        BW_TITLES.format(unit),
        " 2          5000             10.20              10.10              5.295000",
        " 65536      5000             11600.10           11590.20           0.185443",
    )
    pattern = "perftest_rdma_write_bw"
    us = 1e6 / size
    assert read(text, columns=True) == {
        (pattern, "", 2): 2 / 10.1 * us,
        (pattern, "", 65536): 65536 / 11590.2 * us,
        (pattern, "column=peak", 2): 2 / 10.2 * us,
        (pattern, "column=peak", 65536): 65536 / 11600.1 * us,
    }
    reading = read_outputs(text, "x")
    assert (reading.outputs[0].ranks, reading.outputs[0].transport, reading.lines_left_out) == (2, "verbs", 0)


def test_latencies_of_perftest() -> None:
    rows = " 2       1000          1.01           9.05         1.07     1.10             0.00      1.30    5.02"
    text = perftest("Send Latency", LAT_TITLES, rows)
    assert by_column(text) == {
        "": 1.1,
        "t_min": 1.01,
        "t_max": 9.05,
        "t_typical": 1.07,
        "99_percentile": 1.3,
        "99.9_percentile": 5.02,
    }
    assert list(read(text)) == [("pingpong", "", 2)]


def test_settings_of_perftest_are_curves() -> None:
    row = " 8   5000   10.20   10.10   1.323827"
    text = perftest("RDMA_Read BW", BW_TITLES.format("MB"), row)
    text += perftest("RDMA_Read BW", BW_TITLES.format("MB"), row, qps=4, connection="UC")
    text += perftest("Send Bidirectional BW", BW_TITLES.format("MB"), row)
    assert list(read(text)) == [
        ("perftest_rdma_read_bw", "", 8),
        ("perftest_rdma_read_bw", "connection=UC qps=4", 8),
        ("perftest_send_bidirectional_bw", "", 8),
    ]


@pytest.mark.parametrize(("average", "unit"), [(11590.2, 2**20), (97.2256, 1e9 / 8)])
def test_json_of_perftest(average: float, unit: float) -> None:
    """It does not say the unit of its rates: the message rate tells."""
    info = {"test": "RDMA_Write_BW_Test", "Number_of_qps": 2, "Connection_type": "RC"}
    results = {
        "MsgSize": 65536,
        "n_iterations": 5000,
        "BW_peak": average + 1,
        "BW_average": average,
        "MsgRate": round(average * unit / 65536 / 1e6, 6),
    }
    found = read(json.dumps({"test_info": info, "results": results}))
    assert found == {("perftest_rdma_write_bw", "qps=2", 65536): 65536 / average / unit * 1e6}


def test_a_latency_in_json_of_perftest() -> None:
    times = {"t_min": 1.01, "t_max": 9.05, "t_typical": 1.07, "t_avg": 1.1, "t_stdev": 0.2, "percentile_99": 1.3}
    document = {"test_info": {"test": "Send_Latency_Test"}, "results": {"MsgSize": 2, "n_iterations": 1000, **times}}
    found = by_column(json.dumps(document, indent=1))
    assert (found[""], found["percentile_99"]) == (1.1, 1.3)


# ---- ucx_perftest ----------------------------------------------------------------------------------------------------

UCX_TITLES = (
    "+--------------+--------------+------------------------------+---------------------+-----------------------+\n"
    "|              |              |       overhead (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |\n"
    "+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+\n"
    "|    Stage     | # iterations | {} | average | overall |  average |  overall |  average  |  overall  |\n"
    "+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+\n"
)
UCX_ROWS = (
    "[thread 0]            400000      1.100     1.200     1.300        2.00       3.00      100000      100000\n"
    "[1751618583.08] [n1:1:0]  ucp_context.c:1 UCX  WARN  transport 'x' is not available\n"
    "Final:               1000000      1.110     1.210     1.310     1000.00    1500.00      830000      810000\n"
)


def ucx_head(test: str, size: int = 4096, memory: str = "host") -> str:
    rows = {"API": "protocol layer", "Test": test, "Data layout": "(automatic)", "Send memory": memory}
    rows |= {"Recv memory": memory, "Message size": str(size), "Window size": "32"}
    return "".join(f"| {name + ':':<14}{value:<60}                               |\n" for name, value in rows.items())


def test_latency_of_ucx_perftest() -> None:
    reading = read_outputs(ucx_head("tag match latency", 8) + UCX_TITLES.format("50.0%ile") + UCX_ROWS, "x")
    assert figures(reading, columns=True) == pytest.approx(
        {
            ("pingpong", "", 8): 1.31,
            ("pingpong", "column=p50", 8): 1.11,
            ("pingpong", "column=average", 8): 1.21,
        }
    )
    assert (reading.rows, reading.lines_left_out) == (1, 2)


def test_bandwidth_of_ucx_perftest() -> None:
    text = ucx_head("tag match bandwidth", memory="cuda") + UCX_TITLES.format("typical ") + UCX_ROWS
    name = "ucx_tag_match_bandwidth receive_memory=cuda send_memory=cuda"
    assert rates(text)[name] == pytest.approx(1500 * 2**20 / 1e6)


def test_the_command_of_ucx_perftest_says_what_a_client_does_not() -> None:
    table = UCX_TITLES.format("50.0%ile") + UCX_ROWS
    assert read(f"$ ucx_perftest n1 -t tag_lat -s 64\n{table}") == {("pingpong", "", 64): 1.31}
    with pytest.raises(
        UsageError, match="has neither its test nor its message size above it: put the command above it"
    ):
        read_outputs(table, "x")


# ---- fabtests --------------------------------------------------------------------------------------------------------


def test_fi_pingpong() -> None:
    text = (
        "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
        "64      10      =10      1.2k        0.02s      0.08     803.40       0.00\n"
        "1k      10      =10      20k         0.00s    128.00       8.00       0.12\n"
        "1m      10      =10      20m         0.00s  15397.59      68.10       0.01\n"
    )
    assert read(text) == {("pingpong", "", 64): 803.4, ("pingpong", "", 1024): 8.0, ("pingpong", "", 2**20): 68.1}


def test_fabtests_with_names() -> None:
    text = (
        "name            bytes   iters   total       time     MB/sec    usec/xfer   Mxfers/sec\n"
        "rdm_pingpong    64      10k     1.2m        0.02s      0.08      1.50       0.67\n"
        "rdm_tagged_bw   1.5k    10k     1.2m        0.02s      0.08      2.50       0.40\n"
    )
    assert read(text) == {(None, "test=rdm_pingpong", 64): 1.5, (None, "test=rdm_tagged_bw", 1536): 2.5}


# ---- nvbandwidth -----------------------------------------------------------------------------------------------------

NVBANDWIDTH = (
    "nvbandwidth Version: v0.8\nDevice 0: NVIDIA H100 (00000000:1b:00)\n\n"
    "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
    "           0         1\n 0     55.00     54.00\n\nSUM host_to_device_memcpy_ce 109.00\n\n"
    "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
    "           0         1\n 0       N/A    276.00\n 1    277.00       N/A\n\n"
    "SUM device_to_device_memcpy_read_ce 553.00\n\n"
    "Running host_device_latency_sm.\nmemory latency SM CPU(row) <-> GPU(column) (ns)\n"
    "           0\n 0    772.00\n\nSUM host_device_latency_sm 772.00\n"
)
COPIES = {
    "nvbandwidth_host_to_device_memcpy_ce from=0 to=0": 55e3,
    "nvbandwidth_host_to_device_memcpy_ce from=0 to=1": 54e3,
    "nvbandwidth_device_to_device_memcpy_read_ce from=0 to=1": 276e3,
    "nvbandwidth_device_to_device_memcpy_read_ce from=1 to=0": 277e3,
}


def test_nvbandwidth() -> None:
    found = rates(NVBANDWIDTH)
    assert {name: found[name] for name in COPIES} == {name: pytest.approx(rate) for name, rate in COPIES.items()}
    assert figures(read_outputs(NVBANDWIDTH, "x"))["nvbandwidth_host_device_latency_sm", "from=0 to=0", 10**9] == 0.772
    assert not any(output.is_sized for output in read_outputs(NVBANDWIDTH, "x").outputs)


def case(name: str, matrix: list[list[str]], status: str = "Passed") -> dict[str, Any]:
    description = "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)"
    return {"name": name, "status": status, "bandwidth_description": description, "bandwidth_matrix": matrix}


def test_json_of_nvbandwidth() -> None:
    cases = [
        case("host_to_device_memcpy_ce", [["55", "54"]]),
        case("device_to_device_memcpy_read_ce", [["N/A", "276"], ["277", "N/A"]]),
        {"name": "multinode_device_to_device_memcpy_read_ce", "status": "Waived"},
    ]
    document = {"nvbandwidth": {"version": "v0.8", "testcases": cases}}
    assert rates(json.dumps(document)) == {name: pytest.approx(rate) for name, rate in COPIES.items()}
    cases[2]["status"] = "Error"
    with pytest.raises(UsageError, match="its run failed: multinode_device_to_device_memcpy_read_ce: Error"):
        read_outputs(json.dumps(document), "x")
    with pytest.raises(UsageError, match="its run failed: no device"):
        read_outputs(json.dumps({"nvbandwidth": {"error": "no device"}}), "x")


# ---- nccl-tests ------------------------------------------------------------------------------------------------------


def nccl_json(program: str = "./build/all_reduce_perf", *, is_right: bool = True) -> dict[str, Any]:
    def half(time: float) -> dict[str, float]:
        return {"time": time, "alg_bw": 19.0, "bus_bw": 19.0, "nwrong": 0.0}

    front = {"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": "    -1"}
    return {
        "version": 1,
        "args": [program, "-b", "1M"],
        "nccl_version": 22907,
        "config": {"graph": 0, "aggregated_iterations": 1, "devices": [{"rank": rank} for rank in range(4)]},
        "results": [{**front, "out_of_place": half(55.1), "in_place": half(54.9)}],
        "out_of_bounds": {"count": 0 if is_right else 3, "okay": "true" if is_right else "false"},
        "end_time": "2026-11-27",
    }


def test_json_of_nccl_tests() -> None:
    text = json.dumps(nccl_json())
    assert read(text) == {("allreduce", "", 1048576): 55.1, ("allreduce", "place=in", 1048576): 54.9}
    output = read_outputs(text, "x").outputs[0]
    assert (output.ranks, output.transport, output.rows[0].verified) == (4, "nccl", True)
    with pytest.raises(UsageError, match="its data were wrong: out_of_bounds 3"):
        read_outputs(json.dumps(nccl_json(is_right=False)), "x")
    cut = {name: value for name, value in nccl_json().items() if name != "end_time"}
    with pytest.raises(UsageError, match="'end_time', is missing"):
        read_outputs(json.dumps(cut), "x")
    with pytest.raises(UsageError, match="a part is missing or damaged"):
        read_outputs(json.dumps({**nccl_json(), "results": [{}]}), "x")


def test_rates_by_the_definitions_of_nccl_tests() -> None:
    """busbw / algbw is 2 (n - 1) / n for all_reduce."""
    devices = "".join(f"#  Rank {rank:2} Group  0 Pid 1 on n1 device 0\n" for rank in range(4))
    head = NCCL_HEAD.partition("#  Rank")[0] + devices
    text = f"{head}{NCCL_TITLES}1048576 262144 float sum -1 55.10 19.03 28.55 0 54.90 19.10 28.65 0\n{NCCL_END}"
    found = {output.options.get("column"): output for output in read_outputs(text, "x").outputs}
    assert set(found) == {None, "algbw", "busbw"}

    from hockney.results.formats.output import definition

    for column, expected in (("algbw", 19.03), ("busbw", 28.55)):
        output = found[column]
        of = definition("allreduce", 4, 1048576, 1, "mean", output.rate)
        assert of.bytes_per_rep / (55100 * of.divisor) == pytest.approx(expected, abs=0.01)


# ---- damage ----------------------------------------------------------------------------------------------------------

WHOLE = {
    "perftest": perftest("Send BW", BW_TITLES.format("Gb"), " 2   5000   10.20   10.10   5.295000"),
    "perftest latency": perftest("Send Latency", LAT_TITLES, " 2  1000  1.01  9.05  1.07  1.10  0.10  1.30  5.02"),
    "ucx": ucx_head("tag match latency", 8) + UCX_TITLES.format("50.0%ile") + UCX_ROWS,
    "nvbandwidth": NVBANDWIDTH,
    "json of nccl-tests": json.dumps(nccl_json(), indent=1),
    "json of nvbandwidth": json.dumps({"nvbandwidth": {"testcases": [case("a_ce", [["N/A", "2"], ["3", "N/A"]])]}}),
    "json of perftest": json.dumps(
        {
            "test_info": {"test": "Send_BW_Test"},
            "results": {"MsgSize": 1000, "BW_peak": 101.0, "BW_average": 100.0, "MsgRate": 0.1048576},
        }
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_damaged_text_is_an_error_or_figures(name: str) -> None:
    text = WHOLE[name]
    assert read_outputs(text, "x").outputs
    for at in range(0, len(text), max(1, len(text) // 60)):
        for what in ("", "-", "9" * 50, "\x00", "\n", "e400", "null"):
            try:
                outputs = read_outputs(text[:at] + what + text[at + 1 :], name).outputs
            except UsageError:
                continue
            assert all(time_ns > 0 for output in outputs for row in output.rows for time_ns in row.times_ns)
