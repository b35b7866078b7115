"""`hockney show`: the figures of a run, series without figures, and the form of both."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from syrupy.assertion import SnapshotAssertion
from tests import builders
from tests.builders import make_info, make_launch
from tests.cli.support import LARGE, PINGPONG, Cli, document, make_measurement
from tests.report.runs import Made, options, store_quick, store_run

from hockney.analysis.explain import explain_run
from hockney.cli import execute
from hockney.model import Definition, Point, PointStatus, RunStatus, Warning_
from hockney.render.text import show
from hockney.report.document import Table, Title
from hockney.report.documents.figures import by_size_document, run_document
from hockney.report.notes import caveats_of, precision_text, state_text
from hockney.report.words import placement_text
from hockney.results.figures import Figure
from hockney.results.runs import Run
from hockney.results.store import Store


@pytest.mark.parametrize("width", [100, 60])
def test_screen(
    width: int,
    filled_store: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    """With a failed and a skipped point, a job with more ranks than CPUs, and a warning."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("hockney.report.documents.figures.local_time", lambda unix_s: "2025-10-09 08:53")
    monkeypatch.setenv("HOCKNEY_STORE", str(filled_store))
    assert execute(["show", "2"]) == 0
    assert capsys.readouterr().out == snapshot


def test_figures_are_of_one_state_and_with_states_of_every_one(
    filled_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["show", "last", "-t", "shm", "--pattern", "pingpong", "--store", str(filled_store)]
    assert execute(arguments) == 0
    output = capsys.readouterr().out
    assert re.search(r"^ *8 B +41.0 ns ±3% ", output, re.MULTILINE)
    assert output.count(" 8 B ") == 1
    assert execute([*arguments, "--states"]) == 0
    states = re.findall(r"^ *8 B .*(near|far) ", capsys.readouterr().out, re.MULTILINE)
    assert states == ["near", "far"]


def test_a_run_of_quick_shows_its_sheet_and_with_all_or_a_selection_its_curves(cli: Cli, tmp_path: Path) -> None:
    store_quick(tmp_path / "results.db", "shm", "tcp")
    sheet = shown(cli)
    assert sheet == shown(cli, "--tables")
    assert len(sheet.splitlines()) <= 40
    for words in (("--all",), ("--states",), ("--transport", "shm")):
        curves = shown(cli, *words)
        assert "pingpong on shm, 2 ranks" in curves
        assert "docs/metrics.md defines the time" in curves
    assert shown(cli, "--all", "--json") == shown(cli, "--json")
    assert cli("show", "--all", "--by-size").returncode == 2


def test_plot(cli: Cli, tmp_path: Path) -> None:
    store_quick(tmp_path / "results.db")
    output = shown(cli, "--plot", "--pattern", "pingpong")
    assert "Time of pingpong, 2 ranks" in output
    assert "Rate of pingpong, 2 ranks" in output
    assert re.search(r"^CPU time of pingpong, 2 ranks: the busiest rank\n(.*\n)*? *100 %", output, re.MULTILINE)
    assert "* Open MPI 4.1.4" not in output.splitlines()[0]
    assert re.search(r"o shm +x threads +", output)
    assert "shm under threads" in output
    assert max(map(len, output.splitlines())) <= 100
    assert "\x1b" not in output


def test_a_plot_of_too_few_sizes_says_why_it_is_missing(cli: Cli, tmp_path: Path) -> None:
    store_run(tmp_path / "results.db", "mine", [Made(replace(PINGPONG, bytes=size), 50.0, 2) for size in (0, 8, 64)])
    output = shown(cli, "--plot")
    assert output.splitlines()[-1].startswith("Nothing to plot: no curve has three sizes or more in state ")
    assert "Time of" not in output


@pytest.mark.parametrize(
    ("counts", "others"),
    [
        ({"near": 95, "far": 5}, "; --states lists the others (5% far)."),
        ({"near": 950, "far": 46, "mixed": 4}, "; --states lists the others (5% far)."),
        ({"near": 997, "mixed": 3}, "."),
        ({"near": 4, "far": 996}, "; --states lists the others (100% far)."),
    ],
)
def test_states_below_one_per_cent_are_not_named(counts: dict[str, int], others: str) -> None:
    text = state_text(counts, "near")
    assert text.endswith(f" of measurements){others}")
    assert "(0%" not in text


def shown(cli: Cli, *words: str, **variables: str) -> str:
    """The output of `hockney show` for the newest run in the test's folder."""
    ended = cli("show", "last", *words, **variables)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@contextlib.contextmanager
def stored(folder: Path, *points: Point, status: RunStatus = RunStatus.DONE) -> Iterator[tuple[Store, int]]:
    """A run of these points (of PINGPONG without any) that ends so; its number."""
    with Store.open(folder / "results.db") as store:
        number = store.create_run(make_info(), points or [PINGPONG])
        yield store, number
        store.finish_run(number, status)


@pytest.mark.parametrize("words", ["", "runs", "show 1"])
def test_every_screen_says_stopped_of_a_stopped_run(cli: Cli, tmp_path: Path, words: str) -> None:
    with stored(tmp_path, PINGPONG, status=RunStatus.STOPPED):
        pass
    output = cli(*words.split()).stdout
    assert "stopped" in output
    assert "interrupted" not in output


def test_a_stopped_run(cli: Cli, tmp_path: Path) -> None:
    with stored(tmp_path, PINGPONG, LARGE, status=RunStatus.STOPPED) as (store, number):
        store.write_round(number, [make_measurement(PINGPONG, store.add_launch(number, make_launch()), 0, 40.0, 27.0)])
        store.set_status(number, PINGPONG, PointStatus.STOPPED, "the run was stopped: no interval yet, 1 measurements")
    output = shown(cli, "--all")
    assert re.search(r"^ +8 B .* stopped$", output, re.MULTILINE)
    assert re.search(r"^not reached\n  .* 64 KiB$", output, re.MULTILINE)
    assert re.search(r" stopped +1/2", cli("runs").stdout)


def test_a_point_that_got_no_measurement_in_its_time_was_not_reached(cli: Cli, tmp_path: Path) -> None:
    with stored(tmp_path, PINGPONG, LARGE) as (store, number):
        store.write_round(number, [make_measurement(PINGPONG, store.add_launch(number, make_launch()), 0, 40.0, 27.0)])
        for point in (PINGPONG, LARGE):
            store.set_status(
                number, point, PointStatus.TIME_UP, "all launches were made: some measurements in 1 launch"
            )
    assert re.search(r"^not reached\n  .* 64 KiB$", shown(cli, "--all"), re.MULTILINE)


def test_by_size(cli: Cli, tmp_path: Path) -> None:
    """All in one state: far. Another one is marked; sizes that were added are left out."""
    window = (("window", "4"),)
    plain = [Point(transport, "pingpong", 2, size) for transport in ("shm", "tcp") for size in (8, 64)]
    plain.append(Point("shm", "pingpong", 2, 128))
    added = Point("tcp", "pingpong", 2, 32, role="refined")
    stream = [Point(transport, "oneway", 2, 64, window) for transport in ("shm", "tcp")]
    with Store.open(tmp_path / "results.db") as store:
        number = store.create_run(make_info(), [*plain, added, *stream])
        launch = store.add_launch(number, make_launch())
        for point in (*plain, added, *stream):
            is_near = point.transport == "shm" and point.bytes != 128
            for round_, floor_ns in enumerate([27.0 if is_near else 184.0] * 3):
                measurement = make_measurement(point, launch, round_, 1000.0 if floor_ns > 100 else 50.0, floor_ns)
                store.write_round(number, [measurement])
    lines = [" ".join(line.split()) for line in shown(cli, "--by-size").splitlines()]
    first = lines.index("pingpong, 2 ranks: time")
    assert lines[first + 1 : first + 6] == [
        "size shm tcp",
        "8 B 50.0 ns ‡° 1.00 us ‡",
        "64 B 50.0 ns ‡° 1.00 us ‡",
        "128 B 1.00 us ‡",
        "1 added size not shown.",
    ]
    second = lines.index("oneway window=4, 2 ranks: time")
    assert lines[second + 2 : second + 11] == [
        "64 B 50.0 ns ‡° 1.00 us ‡",
        "",
        "oneway window=4, 2 ranks: rate",
        "size shm tcp",
        "64 B 1.28 GB/s ‡° 64.0 MB/s ‡",
        "",
        "oneway window=4, 2 ranks: messages",
        "size shm tcp",
        "64 B 20.0 M/s ‡° 1.00 M/s ‡",
    ]
    legend = " ".join(lines[second + 11 :])
    assert "°: in another machine state (near). ‡: a range, as one machine state " in legend
    assert "7 of 7 figures have too few measurements" in " ".join(lines), "without the added size"
    said = " ".join(shown(cli, "--by-size", "--state", "near", "-t", "shm").split())
    assert "8 B 50.0 ns" in said
    assert "°" not in said


def test_farms_have_events_and_payload_per_second(cli: Cli, tmp_path: Path) -> None:
    """With one transport and with two."""
    points = [Point(transport, "pushfarm", 3, 1000) for transport in ("unix", "tcp")]
    facts = {"traits": {"patterns": {"pushfarm": {"stream": True, "events": True}}, "transports": {}}}
    definition = Definition("root", 16, 16 * 1000, 16)
    with Store.open(tmp_path / "results.db") as store:
        number = store.create_run(make_info(facts=facts), points)
        launch = store.add_launch(number, make_launch())
        for point in points:
            rows = [builders.make_measurement(point, [[1600_000]] * 3, launch_id=launch, definition=definition)]
            store.write_round(number, rows)
    lines = [" ".join(line.split()) for line in shown(cli, "--all", "-t", "tcp").splitlines()]
    title = next(line for line in lines if line.startswith("size"))
    assert "events rate" in title
    assert "100 us ‡ 10.0 k/s ‡ 10.0 MB/s ‡" in lines[lines.index(title) + 1]
    lines = [" ".join(line.split()) for line in shown(cli, "--by-size").splitlines()]
    cells = [line for line in lines if line.startswith("1,000 B")]
    assert cells == [f"1,000 B {cell} ‡ {cell} ‡" for cell in ("100 us", "10.0 k/s", "10.0 MB/s")]


@pytest.mark.parametrize(
    ("launches", "measurements"), [((1, 0), ["3"]), ((5, 0), ["15 in 5"]), ((6, 1), ["18 in 6", "3 in 1"])]
)
def test_launches_of_a_figure(launches: tuple[int, int], measurements: list[str], cli: Cli, tmp_path: Path) -> None:
    with stored(tmp_path) as (store, number):
        for index, floor_ns in enumerate([27.0] * launches[0] + [184.0] * launches[1]):
            launch = store.add_launch(number, make_launch(index=index))
            for _ in range(3):
                store.write_round(number, [make_measurement(PINGPONG, launch, index, 40.0, floor_ns)])
    output = shown(cli, "--states")
    assert re.findall(r"^ *8 B .* ns +(\d+(?: in \d+)?)  ", output, re.MULTILINE) == measurements
    assert "one launch only" not in output


@pytest.mark.parametrize(("measurements", "has_interval"), [(5, False), (6, True)])
def test_what_one_launch_covers_is_said_of_intervals_only(
    measurements: int, has_interval: bool, cli: Cli, tmp_path: Path
) -> None:
    with stored(tmp_path) as (store, number):
        launch = store.add_launch(number, make_launch())
        for index in range(measurements):
            store.write_round(number, [make_measurement(PINGPONG, launch, index, 40.0, 27.0)])
    output = " ".join(shown(cli, "--all").split())
    assert ("too few measurements in one machine state for an interval (‡)" in output) is not has_interval
    assert ("Intervals cover one launch only" in output) is has_interval


@pytest.mark.parametrize(
    ("least", "made", "text"),
    [
        (1, 1, ""),
        (6, 6, "6 launches."),
        (2, 38, "2 to 38 launches."),
    ],
)
def test_launches_are_those_of_the_figures(least: int, made: int, text: str, cli: Cli, tmp_path: Path) -> None:
    """Points that were not precise got more."""
    with Store.open(tmp_path / "results.db") as store:
        number = store.create_run(make_info(), [PINGPONG, LARGE])
        for index in range(made):
            launch = store.add_launch(number, make_launch(index=index, cpus=(0, 1)))
            points = [PINGPONG, LARGE] if index < least else [LARGE]
            store.write_round(number, [make_measurement(point, launch, index, 40.0, 27.0) for point in points])
    line = next(line for line in shown(cli, "--all").splitlines() if line.startswith("2 ranks on"))
    assert line.partition(". ")[2] == text


def test_launches_in_different_machine_states_are_not_said_to_be_combined(cli: Cli, tmp_path: Path) -> None:
    """As after a stop on a busy machine: no figure covers both; a resume makes a third, and more."""
    with stored(tmp_path) as (store, number):
        for index, floor_ns in enumerate([27.0, 184.0]):
            launch = store.add_launch(number, make_launch(index=index, cpus=(0, 1)))
            for round_ in range(8 - index):
                store.write_round(number, [make_measurement(PINGPONG, launch, round_, 40.0 + round_, floor_ns)])
        store.set_status(number, PINGPONG, PointStatus.TIME_UP)
    output = " ".join(shown(cli, "--all").split())
    assert "1 launch (of 2)." in output
    assert "Intervals cover one launch only" in output
    assert "Continue: `hockney run --resume 1`" in output
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        assert [note.code for note in explain_run(Run(store, number)).notes] == ["one launch"]


def test_a_narrow_table_hides_columns_or_is_split(cli: Cli, tmp_path: Path) -> None:
    """Each part repeats the columns that distinguish its rows."""
    with stored(tmp_path) as (store, number):
        for index in range(12):
            launch = store.add_launch(number, make_launch(index=index))
            store.write_round(number, [make_measurement(PINGPONG, launch, index, 40.0, 27.0 if index < 6 else 184.0)])
    whole, few, divided = (shown(cli, "--states", COLUMNS=columns) for columns in ("200", "60", "46"))
    assert "minimum" in whole
    assert "hidden" not in whole
    assert "(columns hidden, screen too narrow: minimum, measurements)" in few
    assert "hidden" not in divided
    assert re.findall(r"^ *8 B +(\w+)", divided, re.MULTILINE) == ["near", "far"] * 2


def test_mixed_states_are_not_precise(cli: Cli, tmp_path: Path) -> None:
    with stored(tmp_path) as (store, number):
        launch = store.add_launch(number, make_launch())
        for round_ in range(30):
            measurement = make_measurement(PINGPONG, launch, round_, 40.0, 27.0 if round_ % 3 else 184.0)
            mixed = dataclasses.replace(measurement, floor_ns=(27.0, 184.0)) if round_ % 3 == 1 else measurement
            store.write_round(number, [mixed])
        store.set_status(number, PINGPONG, PointStatus.PRECISE)
    rows = re.findall(r"^ *8 B .*(near|far|mixed) .* (\S+)$", shown(cli, "--states"), re.MULTILINE)
    assert rows == [("near", "precise"), ("far", "precise"), ("mixed", "-")]
    assert "time up" not in cli("runs").stdout


def test_a_run_whose_time_was_up_is_not_done(cli: Cli, tmp_path: Path) -> None:
    """So that `done` is never told to resume."""
    with stored(tmp_path) as (store, number):
        store.write_round(number, [make_measurement(PINGPONG, store.add_launch(number, make_launch()), 0, 40.0, 27.0)])
        store.set_status(number, PINGPONG, PointStatus.TIME_UP)
    for words in ((), ("runs",), ("show", "1", "--all"), ("runs", "--json"), ("show", "1", "--json")):
        assert "time up" in (output := cli(*words).stdout)
        assert "done" not in output


def test_no_word_of_intervals_without_figures(cli: Cli, tmp_path: Path) -> None:
    with stored(tmp_path, status=RunStatus.PARTIAL) as (store, number):
        store.add_launch(number, make_launch())
        store.set_status(number, PINGPONG, PointStatus.FAILED, "rank 1 was killed by SIGKILL")
    output = shown(cli)
    assert "killed by SIGKILL" in output
    assert "interval" not in output


def test_class_of_ft(cli: Cli, tmp_path: Path) -> None:
    alone, both = Point("shm", "ft", 1, 0), Point("shm", "ft", 2, 0, (("class", "W"),))
    with stored(tmp_path, alone, both, Point("shm", "ft", 4, 0)) as (store, number):
        launch = store.add_launch(number, make_launch())
        store.write_round(number, [make_measurement(point, launch, 0, 1e6, None) for point in (alone, both)])
        store.set_status(number, Point("shm", "ft", 4, 0), PointStatus.SKIPPED, "there are two CPUs")
    output = shown(cli)
    assert re.search(r"^ft on shm, 1 rank\n.*\nclass S ", output, re.MULTILINE)
    assert re.search(r"^ft class=W on shm, 2 ranks\n.*\nclass W ", output, re.MULTILINE)
    assert "skipped: there are two CPUs\n  ft on shm, 4 ranks: class S\n" in output
    assert "0 B" not in output


def test_precision_that_was_not_reached(cli: Cli, tmp_path: Path) -> None:
    """Also where it is the only one of a point that was called precise."""
    with stored(tmp_path) as (store, number):
        launch = store.add_launch(number, make_launch())
        for round_ in range(16):
            store.write_round(number, [make_measurement(PINGPONG, launch, round_, 40.0 + round_ % 3, 27.0)])
        store.set_status(number, PINGPONG, PointStatus.PRECISE)
    assert re.search(r"^ *8 B +41\.0 ns ±3% .* 16  -$", shown(cli, "--all"), re.MULTILINE)


def test_one_state(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["show", "last", "--store", str(filled_store), "--state"]
    assert execute([*arguments, "far"]) == 0
    assert re.findall(r"^ *8 B +(\S+ ns)", capsys.readouterr().out, re.MULTILINE) == ["164 ns", "604 ns"]
    series = document(capsys, *arguments, "far", "--json")["series"]
    assert {figure["state"] for member in series for figure in member["figures"]} == {"far"}
    assert execute([*arguments, "faar"]) == 2
    assert "unknown state in this run 'faar': did you mean 'far'?" in capsys.readouterr().err
    assert execute([*arguments, "far", "--tables"]) == 2
    assert "leave out --pattern, --transport and --state" in capsys.readouterr().err


def test_states_are_completed(cli: Cli, filled_store: Path) -> None:
    asked = {"_HOCKNEY_COMPLETE": "bash_complete", "HOCKNEY_STORE": str(filled_store)}
    done = cli(**asked, COMP_WORDS="hockney show 2 --state f", COMP_CWORD="4")
    assert done.stdout == "plain,far\n"


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["-t", "mpi@openmpi", "--pattern", "pingpong"], {"mpi@openmpi-4.1.4"}),
        (["-t", "mpi,tcp"], {"mpi@openmpi-4.1.4", "tcp"}),
        (["-t", "shm", "-t", "tcp"], {"shm", "tcp"}),
        (["-t", "t*", "--pattern", "pingpong,barrier"], {"tcp"}),
        (["--pattern", "alltoall", "--pattern", "barrier"], {"null", "shm"}),
    ],
)
def test_transports_are_named_as_for_run(
    arguments: list[str], found: set[str], filled_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    read = document(capsys, "show", "last", "--json", "--store", str(filled_store), *arguments)
    assert {series["transport"] for series in read["series"]} == found


@pytest.mark.parametrize("other", ["--tables", "--json"])
def test_by_size_takes_no_other_form_of_output(cli: Cli, filled_store: Path, other: str) -> None:
    ended = cli("show", "last", "--by-size", other, "--store", str(filled_store))
    assert ended.returncode == 2
    assert f"--by-size and {other} are two forms of output" in ended.stderr


@pytest.mark.parametrize(("needed", "advice"), [((40, None, 12), "about 40"), ((51, 12), "more than 50")])
def test_precision_text_names_the_most_launches_that_are_needed(needed: tuple[int | None, ...], advice: str) -> None:
    figures = [SimpleNamespace(is_mixed=False, precision=0.1, launches_needed=number) for number in needed]
    assert precision_text(cast(list[Figure], figures), 0.01) == f"Not all reached ±1.0%: that takes {advice} launches."


@pytest.mark.parametrize(("warnings", "most"), [(4, 4), (5, 5), (7, 5)])
def test_a_sheet_has_at_most_five_caveats_and_in_full_all(warnings: int, most: int, cli: Cli, tmp_path: Path) -> None:
    caveats = [Warning_(f"kind {n}", "machine", f"Cause {n}.", f"Fix {n}.") for n in range(warnings)]
    store_run(tmp_path / "results.db", "quick", [Made(PINGPONG, 50.0, divisor=2)], warnings=caveats)
    for option, count in (((), most), (("-v",), warnings)):
        output = shown(cli, "--tables", *option)
        assert [f"Cause {n}." in output for n in range(warnings)] == [n < count for n in range(warnings)]


@pytest.mark.parametrize(("plan", "spreads"), [({}, 2), ({"virtual": {"shm": True}}, 0)])
def test_times_of_a_model_have_no_interval_by_size(
    plan: dict[str, object], spreads: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [Made(Point("shm", "pingpong", 2, size), 50.0 + size, divisor=2, measurements=9) for size in (8, 64)]
    store_run(tmp_path / "results.db", "mine", made, plan=plan)
    with Store.open(tmp_path / "results.db") as store:
        run = Run(store, 1)
        show(by_size_document(run, run.series))
    rows = [line for line in capsys.readouterr().out.splitlines() if re.match(" *(8|64) B ", line)]
    assert len(rows) == 2
    assert "".join(rows).count("±") == spreads


def test_algorithms_are_columns_of_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [(("algorithm", name), ("root", "1")) for name in ("native", "ring")]
    made = [Made(Point("shm", "bcast", 2, size, each), 50.0, measurements=9) for size in (8, 64) for each in options]
    store_run(tmp_path / "results.db", "mine", made)
    with Store.open(tmp_path / "results.db") as store:
        show(by_size_document(Run(store, 1), Run(store, 1).series))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[lines.index("bcast root=1, 2 ranks: time") + 1] == "size shm native shm ring"


@pytest.mark.parametrize(
    ("causes", "fix", "verbose", "has_command"),
    [
        (0, "", False, False),
        (1, "", False, False),
        (1, "Do it.", False, True),
        (1, "Do it.", True, False),
        (5, "", False, False),
        (6, "", False, True),
    ],
)
def test_the_command_that_prints_every_caveat_is_there_where_one_has_more(
    causes: int, fix: str, verbose: bool, has_command: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stored(tmp_path) as (store, number):
        for place in range(causes):
            store.add_warning(number, Warning_(f"kind {place}", "machine", f"Cause {place}.", fix))
        show(caveats_of(Run(store, number), verbose=verbose))
    printed = capsys.readouterr().out
    assert printed.count("Cause ") == min(causes, 5)
    assert ("hockney show 1 -v" in printed) == has_command


def test_ranks_of_several_launches_on_the_same_cpus_are_a_range(tmp_path: Path) -> None:
    with stored(tmp_path) as (store, number):
        for ranks in (2, 4, 6):
            store.add_launch(number, make_launch(ranks=ranks, cpus=(0, 1) * (ranks // 2), hosts=("h",) * ranks))
        assert placement_text(Run(store, number)) == "2 to 6 ranks on CPUs 0 and 1."


@pytest.mark.parametrize(
    ("suite", "name"),
    [("osu_put_latency,pingpong", " (osu_put_latency without window=1)"), ("OSU_GET_LATENCY", ""), ("mine", "")],
)
def test_titles_have_the_benchmark_that_a_run_was_made_by(suite: str, name: str, tmp_path: Path) -> None:
    made = [Made(Point("mpi:rma", "put", 2, size, options(sync="flush")), 700, 1, size) for size in (8, 64)]
    store_run(tmp_path / "r.db", suite, made)
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        run = Run(store, 1)
        of_curve = [block.text for block in run_document(run, run.series) if isinstance(block, Title)]
        by_size = [block.heading for block in by_size_document(run, run.series) if isinstance(block, Table)]
    assert of_curve[1] == f"put sync=flush on mpi:rma, 2 ranks{name}"
    assert {heading.partition(":")[0] for heading in by_size} == {f"put sync=flush, 2 ranks{name}"}
