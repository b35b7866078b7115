"""`hockney import`: outputs of other benchmarks are shown, explained, compared and exported like runs."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.support import Cli
from tests.report.runs import Made, store_quick, store_run

from hockney.cli import execute
from hockney.model import Point

SAMPLES = Path(__file__).parents[1] / "results/formats/samples"
OSU = "# OSU MPI Latency Test v7.2\n# Size       Avg Latency(us)\n"


def output(folder: Path, name: str, factor: float = 1.0) -> str:
    """A file of osu_latency."""
    rows = "".join(f"{2**n:<10}{factor * (1.5 + 2**n / 5000):12.2f}\n" for n in range(17))
    (folder / name).write_text(OSU + rows)
    return name


def read(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    capsys.readouterr()
    assert execute([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOCKNEY_STORE", str(tmp_path / "results.db"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results.db"


def test_missing_properties_are_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    document = read(capsys, "import", SAMPLES / "osu_latency.txt", "-t", "mpi@openmpi-4.1.4", "-l", "old")
    tool, curve = "OSU MPI Latency Test (Version 2.0)", "pingpong on mpi@openmpi-4.1.4, 2 ranks"
    output = {"file": "osu_latency.txt", "tool": tool, "curve": curve, "launch": 0, "points": 24}
    count = {"file": "osu_latency.txt", "rows": 24, "rows_read": 24, "lines_left_out": 0}
    assert (document["outputs"], document["files"], document["notes"]) == ([output], [count], [])
    run = read(capsys, "show", "old")
    assert (run["facts"].keys(), run["status"]) == ({"traits"}, "done")
    (launch,) = run["launches"]
    assert [launch[name] for name in ("started_unix_s", "clock_ns", "oversubscribed")] == [None] * 3
    assert (launch["cpus"], launch["hosts"], launch["library"]) == ([], [], "")
    figure = run["series"][-1]["figures"][0]
    assert figure["value_ns"] == 2178660.0
    assert figure["rate_bytes_per_s"] == pytest.approx(4194304 / 2178.66e-6)
    unknown = ("coverage", "n_samples", "minimum_ns", "batch", "p99_ns", "floor_ns", "verified")
    assert [figure[name] for name in unknown] == [None] * 7
    assert (figure["low_ns"], figure["high_ns"]) == (2178655.0, 2178665.0)  # its digits
    assert (figure["n_launches"], figure["n_measurements"], figure["state"]) == (1, 1, "unknown")
    capsys.readouterr()
    assert execute(["export", "old", "--json", "--samples"]) == 0
    (measurement,) = json.loads(capsys.readouterr().out)["series"][-1]["measurements"]
    assert (measurement["batch"], measurement["verified"], measurement["cpu_user_ns"]) == (None, None, [])
    assert measurement["elapsed_ns"] == [[2 * 2178660.0]]  # a round trip


def test_outputs_given_together_are_launches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [output(tmp_path, f"{number}.txt", 1 + number / 200) for number in range(6)]
    read(capsys, "import", *names)
    figure = read(capsys, "show")["series"][10]["figures"][0]
    assert (figure["n_launches"], figure["interval_over"]) == (6, "launches")
    # 1 KiB: the launches differ by 0.5 %; the interval includes the rounding error of the two printed digits, too.
    assert figure["low_ns"] < figure["value_ns"] - 5 < figure["value_ns"] + 5 < figure["high_ns"]


def test_two_tables_of_one_run_are_no_two_launches_of_a_curve(capsys: pytest.CaptureFixture[str]) -> None:
    """Out of place and in place are measured in one launch."""
    read(capsys, "import", SAMPLES / "nccl-tagged.txt")
    run = read(capsys, "show")
    assert {launch["index"] for launch in run["launches"]} == {0}
    options = {tuple(series["options"].items()) for series in run["series"]}
    columns = [(), (("column", "algbw"),), (("column", "busbw"),)]
    assert options == {*columns, *((*column, ("place", "in")) for column in columns)}
    assert {series["figures"][0]["verified"] for series in run["series"]} == {True}


def test_limits_are_judged_on_an_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the interval over launches, with the printed digits in it."""
    table = '[[expect]]\npattern = "pingpong"\ntransports = "shm"\nbytes = 1024\n'
    limits = ('latency = "<= 2 us"', 'latency = "<= 1.7 us"', 'latency = "<= 1.5 us"')
    (tmp_path / "expect.toml").write_text("\n".join(table + limit for limit in limits))
    read(capsys, "import", *(output(tmp_path, str(number), 1 + number / 1e3) for number in range(6)), "-t", "shm")
    capsys.readouterr()
    assert execute(["check", "--expect", "expect.toml", "last", "--json"]) == 1
    outcomes = [limit["outcome"] for limit in json.loads(capsys.readouterr().out)["limits"]]
    assert outcomes == ["met", "inconclusive", "missed"]  # 1.70 us may be 1.705 us


def test_two_imports_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side, factor in (("a", 1.0), ("b", 1.0), ("c", 1.5)):
        files = [output(tmp_path, f"{side}{number}.txt", factor * (1 + number / 1000)) for number in range(6)]
        read(capsys, "import", *files, "-l", side)
    assert read(capsys, "compare", "a", "b")["counts"] == {"no difference seen": 17}
    document = read(capsys, "compare", "a", "c")
    assert document["counts"] == {"slower": 17}
    assert document["differences"] == []


def test_the_last_digit_is_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0.14 us and 0.15 us may be 0.1449 us and 0.1451 us: six launches of each prove nothing."""
    for side, time_us in (("a", "0.14"), ("b", "0.15")):
        for number in range(6):
            (tmp_path / f"{side}{number}").write_text(f"{OSU}{2**number}  {number + 1}.00\n4096  {time_us}\n")
        read(capsys, "import", *(f"{side}{number}" for number in range(6)), "-l", side)
    capsys.readouterr()
    execute(["compare", "a", "b", "--json"])
    series = json.loads(capsys.readouterr().out)["series"]
    (change,) = (member for member in series if member["point"]["bytes"] == 4096)
    assert change["shift"]["low"] < 1 < change["shift"]["high"]
    assert change["verdict"] in ("no difference seen", "inconclusive")


def test_an_import_is_compared_with_a_run(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both times are shown; the machine state of one is not known, so there is no verdict."""
    store_quick(store)
    read(capsys, "import", output(tmp_path, "osu.txt"), "-t", "shm")
    capsys.readouterr()
    assert execute(["compare", "1", "2", "--json"]) == 3
    series = json.loads(capsys.readouterr().out)["series"]
    (short,) = (each for each in series if each["point"]["bytes"] == 8)
    assert (short["reason_codes"], short["new_ns"]) == (["state unknown"], 1500.0)
    assert short["base_ns"] > 0
    assert execute(["compare", "1", "2"]) == 3
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["series", "base", "new", "change", "verdict"]
    (row,) = (line for line in lines if line.startswith("pingpong on shm, 8 B "))
    assert re.search(r"\d ns +1\.50 us +x\d+\.\d+ +inconclusive$", row)
    assert sum(line.startswith("pingpong on shm, ") for line in lines) > 5  # no joint row of sizes that differ
    why = "Inconclusive: another benchmark measured one of the runs, in an unknown machine state."
    assert lines.count(why) == 1


def test_an_own_export_has_its_transport_and_ranks(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also whose time it is: a barrier of hockney is of the slowest rank, one of OSU a mean."""
    patterns = ("pingpong", 2, "root"), ("barrier", 4, "slowest")
    made = [Made(Point("mpi@openmpi-4.1.4", name, ranks, 8), 500.0, timed=timed) for name, ranks, timed in patterns]
    store_run(store, "mine", made, libraries={"mpi@openmpi-4.1.4": "Open MPI 4.1.4"})
    assert execute(["export", "--osu", "-o", "back.txt"]) == 0
    read(capsys, "import", "back.txt")
    series = read(capsys, "show")["series"]
    assert {(each["transport"], each["pattern"], each["ranks"]) for each in series} == {
        ("mpi@openmpi-4.1.4", name, ranks) for name, ranks, _ in patterns
    }
    assert [each["figures"][0]["definition"]["timed"] for each in series] == ["root", "slowest"]
    read(capsys, "import", "back.txt", "-t", "mpi@other")
    assert execute(["compare", "1", "3"]) == 2
    error = capsys.readouterr().err
    assert "mpi@openmpi-4.1.4 and mpi@other are other transports; `import -t` names that of a file" in error
    assert execute(["compare", "1", "2"]) == 3
    assert "pingpong on Open MPI 4.1.4, 8 B " in capsys.readouterr().out  # the import knows no library


def test_a_switch_is_found_in_an_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{2**n}  {1.5 + 2**n / 5000 + (4 if n > 11 else 0):.2f}\n" for n in range(21))
    (tmp_path / "osu.txt").write_text(OSU + rows)
    read(capsys, "import", "osu.txt", "-t", "mpi@openmpi-4.1.4")
    document = read(capsys, "explain")
    (switch,) = (each for each in document["findings"] if each["code"] == "protocol switch")
    assert switch["facts"]["jump_ns"]["value"] == pytest.approx(4000, rel=0.1)
    assert switch["facts"]["below_bytes"] == 2048
    assert switch["facts"]["threshold"] == "btl_vader_eager_limit"
    assert switch["fix"] is None  # a documented limit lies there
    assert [note["code"] for note in document["notes"]] == ["imported"]
    read(capsys, "import", "osu.txt")  # of an unnamed library
    (suspected,) = (each for each in read(capsys, "explain")["findings"] if each["code"] == "protocol switch")
    assert (suspected["fix"]["code"], suspected["fix"]["command"]) == ("smaller steps", None)
    assert suspected["fix"]["text"] == "Measure 2 KiB to 4 KiB in smaller steps with the other benchmark"


def test_an_import_is_as_old_as_its_file_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a date in it, as old as the import."""
    now = time.time()
    began = int(now) - 100 * 86400
    sample = (SAMPLES / "iperf3-tcp.json").read_text()
    (tmp_path / "tcp.json").write_text(sample.replace("1795446113", str(began)))
    read(capsys, "import", "tcp.json")
    read(capsys, "import", output(tmp_path, "osu.txt"))
    dated, undated = (run["started_unix_s"] for run in read(capsys, "runs")["runs"])
    assert (dated, undated >= now) == (began, True)
    assert read(capsys, "delete", "--older", "90d")["deleted"] == [1]


def test_an_advice_to_measure_again_is_only_for_runs_of_hockney(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side, factor in (("a", 1.0), ("b", 1.5)):
        files = [output(tmp_path, f"{side}{number}.txt", factor * (1 + number / 1000)) for number in range(6)]
        read(capsys, "import", *files, "-l", side)
    assert execute(["compare", "a", "b"]) == 0
    assert "--interleave" not in capsys.readouterr().out


def test_one_slow_size_of_six_imported_outputs_is_an_outlier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for times in (2, 10, 100, 1400):
        names = []
        for launch in range(6):
            times_us = ((1.0 + 2**n / 5000) * (1 + 0.002 * launch) * (times if n == 16 else 1) for n in range(20))
            names.append(f"x{times}-{launch}.txt")
            rows = "".join(f"{2**n} {time_us:.3f}\n" for n, time_us in enumerate(times_us))
            (tmp_path / names[-1]).write_text(OSU + rows)
        read(capsys, "import", *names)
        assert execute(["explain"]) == 0
        assert "mpi: 64 KiB is an outlier. pingpong takes" in capsys.readouterr().out


def test_two_groups_of_imported_outputs_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [output(tmp_path, f"{n}.txt", (1.6 if n % 2 else 1.0) + n / 100) for n in range(6)]
    read(capsys, "import", *names)
    (groups,) = (each for each in read(capsys, "explain")["findings"] if each["code"] == "bimodal")
    assert (groups["facts"]["slow_launches"], groups["facts"]["launches"]) == (3, 6)
    read(capsys, "import", *names[:3])
    gaps = {gap["what"]: gap["detail"] for gap in read(capsys, "explain")["not_checked"]}
    assert gaps["groups of launches"] == "needs four launches or more"


def test_the_range_of_two_imported_outputs_is_of_what_they_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("a.txt", "8 1.0\n"), ("b.txt", "8 1.4\n")):
        (tmp_path / name).write_text(OSU + text)
    read(capsys, "import", "a.txt", "b.txt")
    assert execute(["show", "--all"]) == 0
    assert "(1.00–1.40)‡" in "".join(capsys.readouterr().out.split("\n"))


def test_every_view_takes_an_import(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    samples = [path for path in SAMPLES.iterdir() if path.name.startswith(("np-", "imb-", "iperf3-tcp"))]
    for path in samples:
        assert cli("import", str(path)).returncode == 0
    for number in range(1, len(samples) + 1):
        for words in (
            ["show"],
            ["show", "--plot"],
            ["show", "--by-size"],
            ["show", "--states"],
            ["export"],
            ["explain"],
        ):
            done = cli(words[0], str(number), *words[1:])
            assert done.returncode == 0, done.stderr
            assert "Resume" not in done.stdout
            assert "Measure run" not in done.stdout
    assert cli("runs").stdout.count("done") == len(samples)
    done = cli("run", "--resume", "1")
    assert (done.returncode, done.stderr) == (
        2,
        "hockney: run 1 was imported and cannot be continued; measure: `hockney quick`\n",
    )
    done = cli("check", "--baseline", "1")
    assert done.returncode == 2
    assert "it was imported, so it cannot be measured again" in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["osu_bw-cuda.txt"], "does not say how many messages were in flight: add -o window=N (usually 64)"),
        (
            ["osu_bw-cuda.txt", "-o", "window=many"],
            "'many' is not a number of messages: write for example -o window=64",
        ),
        (["osu_mbw_mr.txt", "-o", "window=16"], "says -o window=64: leave out -o window=16"),
        (["osu_reduce-full.txt"], "does not say how many ranks there were: add --ranks"),
        (
            ["nccl-gb200.txt", "-n", "72"],
            "does not say what was measured: name it, for example with --pattern allreduce",
        ),
        (["nccl-tagged.txt", "-n", "3"], "says --ranks 2: leave out --ranks 3"),
        (
            ["np-tcp.out", "--pattern", "ring"],
            "np-tcp.out (NetPIPE 3) says --pattern pingpong: leave out --pattern ring",
        ),
        (["np-tcp.out", "-t", "a b"], "--transport 'a b' is not a name"),
        (["np-tcp.out", "-n", "0"], "'0' is not a number of ranks"),
        (["np-tcp.out", "np-tcp.out"], "two of the files hold the same output"),
        (["none.txt"], "none.txt: no such file or directory"),
        (["SOURCES.md"], "its format is unknown; known are OSU micro-benchmarks text, IMB text, nccl-tests text"),
    ],
)
def test_files_that_cannot_be_imported(
    words: list[str], sentence: str, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(SAMPLES / word) if "." in word else word for word in words]
    assert execute(["import", *files]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not store.exists() or read(capsys, "runs")["runs"] == []


def test_two_definitions_of_one_time_are_two_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "# OSU MPI Allreduce Latency Test\n# Made by hockney 0.1: allreduce on mpi, 4 ranks, state near{}\n"
        "# Size       Avg Latency(us)\n8    1.50\n"
    )
    (tmp_path / "mean.txt").write_text(text.format(""))
    (tmp_path / "slowest.txt").write_text(text.format(", of the slowest rank"))
    assert execute(["import", "mean.txt", "slowest.txt"]) == 2
    assert "define the time of allreduce differently: import them as two runs\n" in capsys.readouterr().err
    assert read(capsys, "runs")["runs"] == []
    assert execute(["import", "mean.txt"]) == 0
    assert execute(["import", "slowest.txt"]) == 0


def test_tools_with_other_definitions_are_other_curves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """OSU's allreduce is the mean over ranks, IMB's the time of the slowest."""
    osu = "# OSU MPI Allreduce Latency Test v7.2\n# Size       Avg Latency(us)\n8    1.50\n"
    imb = (
        "# Benchmarking Allreduce\n# #processes = 4\n#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n"
        "8 1000 1.40 1.60 1.50\n# All processes entering MPI_Finalize\n"
    )
    (tmp_path / "osu.txt").write_text(osu)
    (tmp_path / "imb.txt").write_text(imb)
    read(capsys, "import", "osu.txt", "imb.txt", "-n", "4")
    series = {tuple(each["options"].items()): each for each in read(capsys, "show")["series"]}
    of_imb = ("dtype", "float32"), ("start", "barrier")
    of_osu = (*of_imb, ("time", "mean"))
    assert series[of_imb]["figures"][0]["value_ns"] == 1600
    assert series[of_osu]["figures"][0]["value_ns"] == 1500


def test_rows_are_counted_and_what_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "osu.txt").write_text(f"job 7 starts\n{OSU}8  1.50\nn1: WARN the link flaps\n16  1.60\n")
    (tmp_path / "imb.txt").write_text(
        "# Benchmarking Barrier\n# #processes = 4\n#repetitions t_min[usec] t_max[usec] t_avg[usec]\n1000 1.0 3.0 2.0\n"
        "# Benchmarking Alltoall\n# #processes = 4\n#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n"
        "8 1000 1.4 1.6 1.5\n65536 time-out.; Time limit is over\n# All processes entering MPI_Finalize\n"
    )
    assert execute(["import", "osu.txt", "imb.txt"]) == 0
    assert capsys.readouterr().out.split("\n")[:2] == [
        "imb.txt: line 9: no figure of 65536 B, as the time was up",
        (
            "Saved as run 1: 4 of 5 rows read; 2 other lines left out (OSU MPI Latency Test v7.2, "
            "Intel MPI Benchmarks, Barrier, Intel MPI Benchmarks, Alltoall). Next: `hockney show 1`"
        ),
    ]


def test_outputs_of_one_curve_in_one_file_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The window of osu_bw is not printed: both may have had another one."""
    table = "# OSU MPI Bandwidth Test v5.8\n# Size      Bandwidth (MB/s)\n1024   {}\n"
    (tmp_path / "bw.txt").write_text(table.format("900.00") + table.format("2900.00"))
    document = read(capsys, "import", "bw.txt", "-o", "window=64")
    assert [output["launch"] for output in document["outputs"]] == [0, 1]
    (note,) = document["notes"]
    assert note.startswith("bw.txt: 2 outputs of oneway answer=window window=64 on mpi, 2 ranks count as its launches")
    (tmp_path / "two").mkdir()
    (tmp_path / "two/bw.txt").write_text(table.format("900.00"))
    (tmp_path / "bw.txt").write_text(table.format("905.00"))
    assert read(capsys, "import", "bw.txt", "two/bw.txt", "-o", "window=64")["notes"] == []


def test_a_given_property_is_for_outputs_that_do_not_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    collective = "# OSU MPI Allreduce Latency Test v7.2\n# Size       Avg Latency(us)\n8    1.50\n"
    (tmp_path / "log.txt").write_text(f"{OSU}8  1.50\n{collective}")
    read(capsys, "import", "log.txt", "-n", "16")
    ranks = {series["pattern"]: series["ranks"] for series in read(capsys, "show")["series"]}
    assert ranks == {"pingpong": 2, "allreduce": 16}


def test_a_column_that_is_no_time_is_a_counter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = "# OSU MPI Non-blocking Broadcast Latency Test v5.6\n# Size  Overall(us)  Compute(us)  Overlap(%)\n"
    (tmp_path / "osu.txt").write_text(head + "8  8.85  4.02  24.91\n")
    read(capsys, "import", "osu.txt", "-n", "2")
    capsys.readouterr()
    assert execute(["export", "--json"]) == 0
    series = json.loads(capsys.readouterr().out)["series"]
    assert [member["options"].get("column") for member in series] == [None, "compute"]
    assert series[0]["measurements"][0]["counters"]["Overlap(%)"] == [24.91]


def test_a_time_beyond_any_clock_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "osu.txt").write_text(f"{OSU}8  99999999999999.00\n")
    assert execute(["import", "osu.txt"]) == 2
    assert "has a time of 1e+17 ns" in capsys.readouterr().err


def test_thousands_of_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of them arrives."""
    rows = "".join(f"{8 * number:<10}  {1.5 + number / 5000:.4f}\n" for number in range(5000))
    (tmp_path / "osu.txt").write_text(OSU + rows)
    assert read(capsys, "import", "osu.txt")["files"][0]["rows_read"] == 5000


def test_nothing_is_half_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = output(tmp_path, "good.txt"), "bad.txt"
    (tmp_path / bad).write_text(OSU + "8  1.50\n16  oops\n")
    assert execute(["import", good, bad]) == 2
    assert "cannot import bad.txt: line 4: 'oops' is not a time above 0" in capsys.readouterr().err
    (tmp_path / "image").write_bytes(b"\x89PNG\xff")
    assert execute(["import", good, "image"]) == 2
    assert capsys.readouterr().err == "hockney: cannot import image: it is not text\n"
    assert read(capsys, "runs")["runs"] == []


# ---- the tools themselves -------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts a server, returns the port on which it listens, and ends it."""
    started: list[subprocess.Popen[bytes]] = []

    def serve(program: str, option: str, *words: str) -> str:
        while True:
            port = free_port()
            argv = [program, option, str(port), *words]
            server = subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            started.append(server)
            while server.poll() is None:  # another program may have taken the port since
                table = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
                if re.search(rf":{port:04X} [0:]+0000 0A", table):
                    return str(port)
                time.sleep(0.05)

    yield serve
    for process in started:
        process.kill()
        process.wait()


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not here")


def test_iperf3(tmp_path: Path, served: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    needs("iperf3")
    port = served("iperf3", "-p", "-s")
    words = ["iperf3", "-c", "127.0.0.1", "-p", port, "-J", "-t", "1", "-i", "0.1"]
    for _ in range(5):
        (tmp_path / "tcp.json").write_bytes(subprocess.run(words, capture_output=True, check=True, timeout=60).stdout)
        read(capsys, "import", "tcp.json")
        (series,) = read(capsys, "show")["series"]
        if series["figures"][0]["n_measurements"] >= 6:  # on a busy machine it may have sent in one tenth only
            break
    said = json.loads((tmp_path / "tcp.json").read_text())["end"]["sum_sent"]["bits_per_second"] / 8
    figure = series["figures"][0]
    assert (series["transport"], series["pattern"], series["bytes"]) == ("tcp", "stream", 131072)
    assert figure["n_measurements"] >= 6
    assert figure["low_ns"] < figure["high_ns"]
    assert 0.2 < figure["rate_bytes_per_s"] / said < 5  # its median and the mean of all


def test_netpipe_over_tcp(tmp_path: Path, served: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    needs("NPtcp")
    port = served("NPtcp", "-P", "-u", "64", "-n", "20")
    subprocess.run(
        ["NPtcp", "-h", "127.0.0.1", "-P", port, "-u", "64", "-n", "20", "-o", "np.out"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
        timeout=60,
    )
    read(capsys, "import", "np.out", "-t", "tcp")
    series = read(capsys, "show")["series"]
    assert {member["bytes"] for member in series} >= {1, 8, 61, 64, 67}
    assert all(1e3 < member["figures"][0]["value_ns"] < 1e8 for member in series)


@pytest.mark.parametrize(
    ("launcher", "program"),
    [
        (["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"], "NPopenmpi"),
        pytest.param(["mpirun.mpich"], "NPmpich2", marks=pytest.mark.full),
    ],
)
def test_netpipe_over_mpi(
    launcher: list[str], program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs(launcher[0], program)
    words = [*launcher, "-n", "2", program, "-u", "16", "-n", "20", "-o", "np.out"]
    subprocess.run(words, cwd=tmp_path, capture_output=True, check=True, timeout=120, stdin=subprocess.DEVNULL)
    read(capsys, "import", "np.out", "-t", "mpi@here")
    rows = [line.split() for line in (tmp_path / "np.out").read_text().splitlines()]
    series = read(capsys, "show")["series"]
    assert [member["bytes"] for member in series] == [int(row[0]) for row in rows]
    for one, row in zip(series, rows, strict=True):
        assert one["figures"][0]["value_ns"] == pytest.approx(1e9 * float(row[2]), rel=1e-3, abs=11)
