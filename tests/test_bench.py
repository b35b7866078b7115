"""scripts/bench: its table and its ratios on made-up data; that it runs, but never how fast anything is."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from ctypes.util import find_library
from pathlib import Path

import pytest
from scripts.benchlib.command import run
from scripts.benchlib.commands import Sampled, repeat_rows
from scripts.benchlib.contests import Absent, Contest, Quadruple, Question, go_round
from scripts.benchlib.device import rates_of
from scripts.benchlib.osu import SideBySide, Together, tool_lines
from scripts.benchlib.place import Place, Shot, numbers
from scripts.benchlib.quick import share_rows, shares_of
from scripts.benchlib.reports import Case, Reports, Summary, reports
from scripts.benchlib.table import INCONCLUSIVE, NO, UNKNOWN, YES, Row, Target, markdown, markers, put_between, summary
from tests.measure.contended_machine import ContendedMachine
from tests.shared import finished, killed_at_the_end, script

from hockney import archive
from hockney.errors import HockneyError
from hockney.model import MachineProbe
from hockney.results.sheets import read_sheet
from hockney.stats import Interval
from hockney.worker.catalogue import load

ROOT = Path(__file__).parents[1]
BEGIN, END = markers("scripts/bench")
NEAR, FAR = 27.0, 184.0
WITHIN = Target("0.98–1.02 × bare C", low=0.98, high=1.02)


# ---- targets and the table ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "low", "high", "met"),
    [
        (Target("", high=1.5), 1.38, 1.45, YES),
        (Target("", high=1.5), 1.45, 1.55, INCONCLUSIVE),
        (Target("", high=1.5), 1.51, 1.55, NO),
        (Target("", low=3.0), 3.1, 3.4, YES),
        (Target("", low=3.0), 2.9, 3.4, INCONCLUSIVE),
        (Target("", low=3.0), 2.2, 2.4, NO),
        (WITHIN, 0.99, 1.01, YES),
        (WITHIN, 0.97, 1.01, INCONCLUSIVE),
        (WITHIN, 0.95, 1.05, INCONCLUSIVE),
        (WITHIN, 0.90, 0.97, NO),
        (WITHIN, 1.03, 1.05, NO),
        (Target("no limits"), 0.1, 9.0, UNKNOWN),
    ],
)
def test_a_target_is_judged_by_the_whole_interval(target: Target, low: float, high: float, met: str) -> None:
    assert target.judge(Interval((low + high) / 2, low, high, 20, 0.95)) == met


def test_without_an_interval_nothing_is_decided() -> None:
    assert WITHIN.judge(Interval(1.0, None, None, 3, None)) == INCONCLUSIVE
    assert WITHIN.judge_alone(1.0) == YES
    assert WITHIN.judge_alone(1.1) == NO
    assert Target("no limits").judge_alone(1.1) == UNKNOWN


def test_the_table_is_markdown() -> None:
    made = [Row("a|b", "≤ 2", "1.00", "near, 27.0 ns", YES), Row("c", "≥ 3", "2.00", "far, 184 ns", NO)]
    lines = markdown(made).splitlines()
    assert lines[0].startswith("| what | target | measured")
    assert lines[2] == "| a\\|b | ≤ 2 | 1.00 | near, 27.0 ns | yes |"
    assert all(line.replace("\\|", "").count("|") == 6 for line in lines)
    assert summary(made) == "1 of 2 met, 1 missed, 0 inconclusive"


def test_the_page_keeps_all_but_the_table() -> None:
    page = f"# Speed\n\n{BEGIN}\nold\n{END}\n\nNotes.\n"
    once = put_between(page, "new\n")
    assert once == f"# Speed\n\n{BEGIN}\nnew\n{END}\n\nNotes.\n"
    assert put_between(once, "new\n") == once


@pytest.mark.parametrize("page", ["", BEGIN, f"{END}\n{BEGIN}", f"{BEGIN}{END}{BEGIN}"])
def test_a_page_without_its_markers_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="the page must hold the line"):
        put_between(page, "new")


def test_the_real_page_has_its_markers() -> None:
    page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    for command in ("scripts/bench", "scripts/bench models", "scripts/bench layers", "scripts/bench device"):
        assert "new table" in put_between(page, "new table", command)


# ---- quadruples -----------------------------------------------------------------------------------------------------


def test_changes_within_and_between_quadruples_are_no_scatter_of_the_ratio() -> None:
    drifting = [
        Quadruple((130 * now, 130 * now**4), (128 * now**2, 128 * now**3)) for now in (0.9, 1.0, 1.1, 3.0, 0.5, 2)
    ]
    assert [one.ratio for one in drifting] == pytest.approx([130 / 128] * 6)


def test_a_ratio_is_found_on_a_contended_machine() -> None:
    """Where demanding one state of the machine on both sides left nearly everything inconclusive."""
    question = Question("mpi: 8 B", Target("≤ 1.05 × bare C", high=1.05), "hockney", "bare C")
    met = {1.0: [], 1.1: []}  # type: dict[float, list[str]]
    for seed in range(25):
        for ratio, verdicts in met.items():
            (launches,) = ContendedMachine(seed, layout=0.005).quadruples([ratio], launches=30, step_s=0.05)
            first = [next(iter(rounds.values())) for rounds in launches.values()]
            verdicts.append(question.row([Quadruple((*new,), (*base,)) for base, new in first]).met)
    assert NO not in met[1.0]
    assert met[1.0].count(YES) >= 22
    assert YES not in met[1.1]
    assert met[1.1].count(NO) >= 22


def test_rows_show_ratio_interval_values_and_number() -> None:
    question = Question("mpi: 8 B", WITHIN, "hockney", "bare C", fractional=True)
    shown = question.row([Quadruple((131, 131), (130, 130))] * 8)
    assert shown.measured == "1.008 (1.008–1.008): hockney 131 ns, bare C 130 ns"
    assert (shown.state, shown.met) == ("8 quadruples", YES)
    rate = Question("shm: 64 KiB", Target("≥ 3 ×", low=3.0), "shm", "memcpy", rate_bytes=65536)
    shown = rate.row([Quadruple((1170, 1170), (1140, 1140))] * 8)
    assert shown.measured == "0.97 (0.97–0.97): shm 56.0 GB/s, memcpy 57.5 GB/s"
    assert shown.met == NO


def test_few_quadruples_decide_nothing() -> None:
    question = Question("mpi: 8 B", WITHIN, "hockney", "bare C")
    shown = question.row([Quadruple((370, 370), (368, 368))] * 2)
    assert (shown.met, shown.state) == (INCONCLUSIVE, "2 quadruples")
    assert "no interval" in shown.measured
    assert question.row([]).met == INCONCLUSIVE


# ---- rounds ---------------------------------------------------------------------------------------------------------


def contest(name: str, log: list[str], repeats: int = 1) -> Contest:
    def run(who: str, value_ns: float) -> dict[int, float]:
        log.append(who)
        return {8: value_ns + len(log)}

    question = Question(name, WITHIN, "ours", "theirs")
    return Contest(name, {8: question}, lambda: run("ours", 10_000.0), lambda: run("theirs", 20_000.0), repeats)


def test_who_begins_changes() -> None:
    log: list[str] = []
    pair = contest("mpi", log)
    go_round([pair], 2, seed=1, say=lambda text: None)
    assert log == ["ours", "theirs", "theirs", "ours", "theirs", "ours", "ours", "theirs"]
    assert pair.quadruples[8] == [
        Quadruple((10_001, 10_004), (20_002, 20_003)),
        Quadruple((10_006, 10_007), (20_005, 20_008)),
    ]


def test_several_quadruples_a_measurement_take_turns_too() -> None:
    log: list[str] = []
    pair = contest("pipe", log, repeats=3)
    pair.measure(0)
    assert [log[start] for start in (0, 4, 8)] == ["ours", "theirs", "ours"]
    assert len(pair.quadruples[8]) == 3


def test_repeated_failures_are_given_up_and_the_rest_continues() -> None:
    said: list[str] = []
    calls = []

    class Failing(Absent):
        def measure(self, number: int) -> None:
            calls.append(number)
            raise HockneyError("rank 1 died")

    log: list[str] = []
    works = contest("works", log)
    go_round([Failing("fails", "", WITHIN, ""), works], 8, seed=1, say=said.append)
    assert calls == [0, 1, 2]
    assert len(works.quadruples[8]) == 8
    assert said.count("fails: rank 1 died") == 3
    assert said.count("fails: given up") == 1
    (shown,) = works.rows()
    assert shown.met == NO


def test_missing_libraries_have_a_row_with_the_reason() -> None:
    (shown,) = Absent("mpi", "mpi: half round trip", WITHIN, "no MPI is here").rows()
    assert (shown.measured, shown.met) == ("not measured: no MPI is here", UNKNOWN)


# ---- scatter between runs -------------------------------------------------------------------------------------------


def test_scatter_is_given_within_each_state() -> None:
    def run(value_ns: float, floor_ns: float, measurements: int = 8, launch: int = 1) -> list[Sampled]:
        return [Sampled(value_ns, MachineProbe((floor_ns, floor_ns)), launch)] * measurements

    near = [run(value_ns, NEAR) for value_ns in (129.0, 130.0, 131.0)]
    far = [run(value_ns, FAR) for value_ns in (350.0, 370.0, 390.0)]
    both = run(130.0, NEAR) + run(370.0, FAR, measurements=2)  # two measurements are no figure
    rows = repeat_rows("10 runs", [*near, *far, both])
    assert [(one.state, one.met) for one in rows] == [("near, 27.0 ns; 4 runs", YES), ("far, 184 ns; 3 runs", NO)]
    assert rows[1].measured == "CV 5.4%: median 370.0 ns, from 350.0 to 390.0 ns"
    (shown,) = repeat_rows("2 runs", near[:2])
    assert shown.met == INCONCLUSIVE
    launches = [
        one for launch, value_ns in enumerate((129.0,) * 5 + (143.0,)) for one in run(value_ns, NEAR, 10, launch)
    ]
    (shown,) = repeat_rows("3 runs", [near[0], near[0], launches])
    assert (
        shown.measured == "CV 1.0%: median 129.0 ns, from 129.0 to 131.2 ns"
    )  # a run is the geometric mean of launches
    (shown,) = repeat_rows("no runs", [])
    assert shown.met == INCONCLUSIVE


def test_output_of_a_library_between_the_numbers_is_ignored() -> None:
    lines = ["Warning: no InfiniBand 2 3", "8 130.50 128.00", "", "1024 240.0 238.1", "1 2"]
    assert numbers(lines, 3) == [[8.0, 130.5, 128.0], [1024.0, 240.0, 238.1]]


# ---- the script -----------------------------------------------------------------------------------------------------


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return finished([ROOT / "scripts/bench", *arguments], timeout_s=400)


def test_a_part_prints_its_row() -> None:
    done = bench("--short", "null")
    assert done.returncode == 0, done.stderr
    table, _, machine = done.stdout.partition("\n\n")
    (shown,) = table.splitlines()[2:]
    assert shown.startswith("| null: cost of the harness, a send and a receive | ≤ 5 ns per repetition | ")
    assert "; 3 starts |" in shown
    assert "| CPU | " in machine
    assert str(ROOT) not in done.stdout


def test_the_part_device_needs_a_device() -> None:
    if find_library("cuda"):
        pytest.skip("an NVIDIA driver is installed")
    done = bench("--short", "device")
    assert (done.returncode, done.stdout) == (3, "")
    assert (
        done.stderr
        == "bench: the part device needs a device: no NVIDIA driver; use a machine with an NVIDIA GPU and its driver\n"
    )


def test_the_part_device_prints_its_rows_and_writes_a_sheet(
    tmp_path: Path, standin: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a stand-in of the driver, next to a made-up nvbandwidth: a ratio of each pair, and a value of the rest."""
    for name, text in standin().items():
        monkeypatch.setenv(name, text)
    rates = ("SUM host_to_device_memcpy_ce 55.63", "SUM device_to_host_memcpy_ce 54.10")
    script(tmp_path / "nvbandwidth", "\n".join(f"echo '{line}'" for line in rates))
    sheet = tmp_path / "sheet.toml"
    done = bench("--short", "device", "--nvbandwidth", str(tmp_path / "nvbandwidth"), "--sheet", str(sheet))
    assert done.returncode == 0, done.stderr
    table, _, machine = done.stdout.partition("\n\n")
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert [row[0] for row in rows if not re.match(r"[\d.]+ \(no interval\)", row[2])] == []
    peers = Counter(re.sub(r".*, (bare|nvbandwidth) .*", r"\1", row[2]) for row in rows)
    assert (peers["bare"], peers["nvbandwidth"]) == (12, 2)
    assert "| Device | Stand-in 0, CUDA 13.0" in machine
    assert {figure.pattern for figure in read_sheet(sheet).figure} >= {"devcopy", "devlaunch"}


def test_nvbandwidth_without_its_sums_is_refused() -> None:
    assert rates_of(["  SUM a_ce 55.63 ", "SUM b 1"], ["a_ce"]) == [55.63]
    for line in ("SUM a_ce 0.00", "WAIVED", "a_ce 55.63"):
        with pytest.raises(HockneyError, match="nvbandwidth has no line 'SUM a_ce"):
            rates_of([line], ["a_ce"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_part_prints_its_rounds(number: signal.Signals) -> None:
    argv = [str(ROOT / "scripts/bench"), "--rounds", "1000000", "null"]
    with killed_at_the_end(subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)) as bench:
        assert bench.stderr is not None
        next(line for line in bench.stderr if line.startswith("round 3 "))
        bench.send_signal(number)
        out, err = bench.communicate(timeout=60)
    assert (bench.returncode, err.splitlines()[-1]) == (3, "interrupted: the table has the rounds until then")
    assert re.search(r"^\| null: cost of the harness.*; \d+ starts \|", out, re.MULTILINE)


def value(middle: float, low: float | None, high: float | None) -> dict[str, float | None]:
    return {"value": middle, "low": low, "high": high}


def test_the_shares_of_a_sheet_count_what_is_missing() -> None:
    """Of eight figures one is not there and one has no interval; four are known to 5 %, one only to 31 %."""
    good, rough, no_interval = value(100, 96, 104), value(100, 69, 110), value(100, None, None)
    times = ("latency_ns", "bandwidth_bytes_per_s", "bidirectional_bytes_per_s", "barrier_ns")
    keys = (*times, "r_inf_bytes_per_s", "n_half_bytes")
    figures = {
        "shm": (good, good, value(100, 95, 105), rough, good, rough),
        "tcp": (good, value(100, 80, 130), no_interval, None, good, None),
    }
    rows = [{"transport": name, **dict(zip(keys, row, strict=True))} for name, row in figures.items()]
    series = [{"transport": name, "bytes": 8, "status": "time up"} for name in ("shm", "tcp", "null")]
    skipped = {"transport": "unix", "bytes": 8, "status": "skipped"}
    shares = shares_of({"rows": rows, "series": [*series, skipped]})
    assert (shares.missing, len(shares.widths), shares.fitted, shares.fits) == (2, 6, 3, 4)
    assert (shares.within(0.05), shares.within(0.30)) == (4 / 8, 5 / 8)
    quiet, busy = (share_rows("quick", shares, is_busy=is_busy) for is_busy in (False, True))
    assert [row.measured for row in quiet] == ["2 of 8", "62%", "50%", "75%"]
    assert [row.met for row in quiet] == [NO, UNKNOWN, NO, NO]
    assert [row.met for row in busy] == [NO, NO, UNKNOWN, UNKNOWN]
    assert shares_of({"rows": [], "series": series}).missing == 8, "no row is there"


@pytest.mark.full
@pytest.mark.timeout(500)
def test_large_runs_are_explained_and_compared() -> None:
    done = bench("--short", "large")
    assert done.returncode == 0, done.stderr
    rows = done.stdout.partition("\n\n")[0].splitlines()[2:]
    assert [line.strip("| ").split(" | ")[0] for line in rows] == [
        "`hockney explain`, 500 series, 1 million samples",
        "`hockney report`, 500 series, 1 million samples",
        "`hockney compare`, twice 500 series, 1 million samples",
        "`hockney explain`, 500 series, 1 million samples: memory",
        "`hockney report`, 500 series, 1 million samples: memory",
        "`hockney compare`, twice 500 series, 1 million samples: memory",
        "`hockney report --format svg`, 500 series, 1 million samples",
        "page of 100 curves and a 512 × 512 matrix: first paint",
    ]
    assert not any("not measured" in line for line in rows[:6])


@pytest.mark.full
def test_loads_have_a_row_for_each_level_of_the_load_table() -> None:
    done = bench("--rounds", "1", "loads")
    assert done.returncode == 0, done.stderr
    table, _, _ = done.stdout.partition("\n\n")
    levels = []
    for line in table.splitlines()[2:]:
        what, target, measured = line.strip("| ").split(" | ")[:3]
        assert target == "within 10 % of bare C"
        if not measured.startswith("not measured: the size of the level "):  # which is not known here
            assert ": memload " in measured
            assert ", bare C " in measured
        levels.append(what.removeprefix("memload: chase in ").partition(",")[0])
    assert levels == ["L1/2", "L2/2", "L3/2", "4*L3"]


# ---- reports --------------------------------------------------------------------------------------------------------


def test_plain_loops_give_a_time_for_each_point_of_the_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Case, "shot", lambda _, size: Shot(size, 2, 2))
    with tempfile.TemporaryDirectory() as folder:  # a short name, for PVM's sockets
        contests = [one for one in reports(Place(load(), Path(folder), short=True, say=print)) if type(one) is Reports]
        assert {case.suite for one in contests for case, _ in one.cases} == set(archive.reports())
        without_pvm = [one for one in contests if "pvm" not in one.name]
        for one in [*without_pvm, *contests[len(without_pvm) :: 5]]:
            times_ns = one.theirs()
            assert times_ns.keys() == one.questions.keys()
            for case, keys in one.cases:
                delay_ns = 1e3 * case.extra if case.pattern.startswith("rob") else 0
                assert all(times_ns[key] > delay_ns for key in keys), case.name


def test_a_benchmark_of_a_report_is_judged_over_its_sizes() -> None:
    case = Case("t3d", "ping_pong", "shm", "putpong", (8, 64), "putpong")
    question = Question("", WITHIN, "hockney", "plain C", fractional=True)
    compared = Reports("t3d", {0: question, 1: question}, dict, dict, cases=[(case, (0, 1))])
    compared.quadruples = {0: [Quadruple((31, 31), (31, 31))] * 8, 1: [Quadruple((44, 44), (40, 40))] * 8}
    (shown,) = compared.rows()
    assert (shown.what, shown.met) == ("t3d: ping_pong, 8 B to 64 B, 2 ranks on shm", NO)
    assert shown.measured == "1.050; beyond it: 64 B 1.10"
    within, *counted = Summary([compared], has_pvm=False).rows()
    assert (within.measured, within.met) == ("1 of 2", NO)
    assert [row.what.partition(":")[0] for row in counted] == list(archive.reports())
    for name, row in zip(archive.reports(), counted, strict=True):
        assert sum(map(int, re.findall(r"(?:^|: |, )(\d+) ", row.measured))) == len(archive.published(name))
    compared.quadruples[1] = [Quadruple((40, 40), (40, 40))] * 8
    assert [row.met for row in compared.rows()] == [YES]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["nul"],
            "no part is called nul; there are null, shm, pipe, unix, tcp, events, mpi, layers, loads, reports, osu",
        ),
        (["--write", "null"], "--write takes no --short and no part but models"),
        (["--write", "--short"], "--write takes no --short and no part but models"),
        (["--rounds", "0", "null"], "--rounds must be at least 1"),
    ],
)
def test_wrong_words_are_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(arguments)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


# ---- OSU and IMB beside hockney -------------------------------------------------------------------------------------

OSU_LATENCY = """
# OSU MPI Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
512                     2.24
1024                    1.67
"""
OSU_MESSAGE_RATE = """
# OSU MPI Multiple Bandwidth / Message Rate Test v7.4
# [ pairs: 1 ] [ window size: 64 ]
# Datatype: MPI_CHAR.
# Size                  MB/s        Messages/s
512                   192.32         375622.99
1024                  544.31         531548.81
"""
OSU_BARRIER = """
# OSU MPI Barrier Latency Test v7.4
# Avg Latency(us)
             1.75
"""
OSU_NONBLOCKING = """
# OSU MPI Non-Blocking Broadcast Latency Test v7.4
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Datatype: MPI_CHAR.
# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
512                     4.31              2.85              2.19             33.66
"""
IMB_PINGPONG = """
# #processes = 2
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
         1024          200         0.31      3276.92
        65536          200         2.20     29846.66
"""
IMB_SENDRECV = """
# #processes = 2
#-----------------------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
        65536          200         3.48         3.49         3.49     37536.78
"""
IMB_UNIBAND = """
       #bytes #repetitions   Mbytes/sec      Msg/sec
            8          200        18.33      2290743
"""
IMB_BCAST = """
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
        65536          200        46.94        89.35        68.14
"""
IMB_PUT = """
# Benchmarking Unidir_put
#    MODE: NON-AGGREGATE
#
       #bytes #repetitions      t[usec]   Mbytes/sec
         1024          200         1.71       599.26

#---------------------------------------------------
# Benchmarking Unidir_put
#    MODE: AGGREGATE
#
       #bytes #repetitions      t[usec]   Mbytes/sec
         1024          200         0.61      1689.35
"""


@pytest.mark.parametrize(
    ("text", "figures_ns"),
    [
        (OSU_LATENCY, {512: 2240.0, 1024: 1670.0}),
        (OSU_MESSAGE_RATE, {512: 512 / 0.19232, 1024: 1024 / 0.54431}),
        (OSU_BARRIER, {0: 1750.0}),
        (OSU_NONBLOCKING, {512: 2190.0}),
        (IMB_PINGPONG, {1024: 1024 / 3.27692, 65536: 65536 / 29.84666}),
        (IMB_SENDRECV, {65536: 2 * 65536 / 37.53678}),
        (IMB_UNIBAND, {8: 8 / 0.01833}),
        (IMB_BCAST, {65536: 68140.0}),
        (IMB_PUT, {1024: 1024 / 0.59926}),
    ],
)
def test_figures_are_read_from_the_output_of_osu_and_imb(text: str, figures_ns: dict[int, float]) -> None:
    found = tool_lines(text.splitlines())
    assert {size: line.ns for size, line in found.items()} == pytest.approx(figures_ns)


def test_a_time_that_the_tool_has_rounded_decides_nothing() -> None:
    (line,) = tool_lines(["# Size       Avg Latency(us)", "8                       0.19"]).values()
    assert [line.ns, line.rounding_ns] == pytest.approx([190.0, 5.0])
    question = Question("mpi: osu_latency, 8 B", WITHIN, "hockney", "OSU", fractional=True)
    quadruples = {8: [Quadruple((190, 190), (190, 190))] * 8}
    met = {}
    for rounding in (0.0, line.rounding_ns / line.ns):
        pair = SideBySide("", {8: question}, dict, dict, quadruples=quadruples, rounding={8: rounding})
        met[rounding] = (pair.rows()[0].met, pair.rows()[0].state)
    assert list(met.values()) == [(YES, "8 quadruples"), (INCONCLUSIVE, "8 quadruples; OSU rounds by 2.6%")]


@pytest.mark.parametrize(("added", "met"), [(1.0, YES), (1.05, NO)])
def test_what_hockney_adds_to_all_figures_shows_in_all_together(added: float, met: str) -> None:
    """Each launch is off by up to 15 %, so no figure alone can be judged."""
    scatter = random.Random(1)
    contests = []
    for _ in range(40):
        ratios = [added * scatter.uniform(0.85, 1.15) for _ in range(30)]
        question = Question("mpi: osu_latency, 8 B", WITHIN, "hockney", "OSU", fractional=True)
        pairs = [Quadruple((100 * ratio, 100 * ratio), (100, 100)) for ratio in ratios]
        contests.append(SideBySide("", {8: question}, dict, dict, quadruples={8: pairs}))
    assert [row.met for one in contests for row in one.rows()].count(met) <= len(contests) // 2
    (row,) = Together("mpi: OSU", "OSU", contests).rows()
    assert (row.what, row.met) == ("mpi: OSU: the median of 40 figures of each round", met)
