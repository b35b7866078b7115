"""What holds for every command: help with an example, --json, --store; and what each shows of a filled store."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from tests.builders import make_info, make_launch
from tests.cli.support import LARGE, PINGPONG, Cli, environment, make_visit

from hockney.cli import run
from hockney.cli.commands import COMMANDS, hockney
from hockney.model import Point, PointStatus, RunStatus
from hockney.store import Store

FILLED = ("runs", "show", "export")


def command(name: str) -> click.Command:
    found = hockney.get_command(click.Context(hockney), name)
    assert found is not None
    return found


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(arguments) == 0
    output = capsys.readouterr()
    assert output.err == ""
    read: dict[str, Any] = json.loads(output.out)
    assert read["version"] == 1
    return read


@pytest.mark.parametrize("name", COMMANDS)
def test_command_has_help_with_an_example(name: str) -> None:
    result = CliRunner().invoke(hockney, [name, "--help"], prog_name="hockney")
    assert result.exit_code == 0
    assert f"Usage: hockney {name}" in result.output
    examples = result.output.partition("Example")[2].splitlines()[1:]
    assert examples
    assert all(line.startswith(f"  hockney {name}") for line in examples)


def test_the_examples_of_completion_work_in_a_new_home(tmp_path: Path) -> None:
    help_text = CliRunner().invoke(hockney, ["completion", "--help"], prog_name="hockney").output
    examples = [line.strip() for line in help_text.splitlines() if re.match(r"  hockney completion (bash|fish) ", line)]
    assert len(examples) == 2
    program = tmp_path / "hockney"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m hockney "$@"\n')
    program.chmod(0o755)
    there = environment(tmp_path, HOME=str(tmp_path), PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for example in examples:
        subprocess.run(["sh", "-c", example], env=there, check=True)
        written = tmp_path / example.partition("~/")[2]
        assert "_HOCKNEY_COMPLETE" in written.read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_command_takes_json_and_a_store(name: str) -> None:
    options = {option for parameter in command(name).params for option in parameter.opts}
    assert {"--json", "--store"} <= options


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_says_what_the_commands_say(name: str) -> None:
    assert (command(name).help or "").partition("\n")[0] == COMMANDS[name].summary
    assert command(name).name == name
    assert COMMANDS[name].example.split()[0] == name


@pytest.mark.parametrize("name", COMMANDS)
def test_example_in_the_table_can_be_parsed(name: str) -> None:
    words = COMMANDS[name].example.partition(" >")[0].split()
    command(name).make_context(name, words[1:])


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    """A start costs what is imported; a test with a stop-watch would depend on the machine."""
    heavy = ("rich", "numpy", "scipy", "pydantic", "psutil", "cpuinfo", "hockney.worker", "hockney.suites")
    code = (
        "import sys; from hockney.cli import run; "
        f"assert run(sys.argv[1:]) == 0; loaded = [name for name in {heavy} if name in sys.modules]; "
        "assert not loaded, loaded"
    )
    for arguments in ([], ["--help"], ["--version"], *([name, "--help"] for name in COMMANDS), ["runs"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=environment(tmp_path, HOCKNEY_STORE=str(tmp_path / "none.db"))
            if arguments != ["runs"]
            else environment(tmp_path, HOCKNEY_STORE=str(_empty_store(tmp_path))),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stderr)


def _empty_store(folder: Path) -> Path:
    from hockney.store import Store

    path = folder / "empty.db"
    Store.open(path).close()
    return path


# ---- the bare command -----------------------------------------------------------------------------------------------


def test_bare_command_is_a_screen_and_no_error(cli: Cli) -> None:
    ended = cli()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "hockney quick" in ended.stdout
    assert "Nothing is stored here yet" in ended.stdout


def test_bare_command_names_the_last_run(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--store", str(filled_store)]) == 0
    assert "Last run: 2, mine, " in capsys.readouterr().out
    read = document(capsys, "--json", "--store", str(filled_store))
    assert read["format"] == "hockney-welcome"
    assert read["last_run"]["number"] == 2
    assert [entry["name"] for entry in read["commands"]] == list(COMMANDS)


def test_bare_command_works_beside_a_broken_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.db"
    broken.write_text("this is no database, whatever its name says\n" * 40)
    assert run(["--store", str(broken)]) == 0
    output = capsys.readouterr().out
    assert "hockney quick" in output
    assert "The results can't be read: " in output


def test_version(cli: Cli) -> None:
    from hockney import __version__

    assert cli("--version").stdout == f"hockney {__version__}\n"


# ---- what is stored -------------------------------------------------------------------------------------------------


def test_runs(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "--store", str(filled_store)]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["run", "label", "suite", "started", "status", "points", "measured", "transports"]
    assert first.split()[:3] == ["1", "base", "quick"]
    assert "partial" in second
    assert " 4/5 " in second


def test_no_runs_are_no_error_but_a_wrong_file_is(cli: Cli) -> None:
    ended = cli("runs")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "There are no runs yet: `hockney quick` makes one." in ended.stdout
    assert json.loads(cli("runs", "--json").stdout)["runs"] == []
    wrong = cli("runs", "--store", "missing.db")
    assert wrong.returncode == 3
    assert "missing.db" in wrong.stderr


def test_a_store_that_was_mistyped_is_wrong_usage_and_makes_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database\n" * 100)
    for name, said in (("notes.txt", "not a results file of hockney"), ("resutls/r.db", "there is no folder resutls")):
        ended = cli("run", "barrier", "-t", "shm", "--time", "1s", "--store", name)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.startswith(f"hockney: results file {name}: {said}")
        assert "name another file with --store" in ended.stderr
    assert cli("show", "last", "--store", "notes.txt").returncode == 2
    for ended in (cli("runs", "--store", "resutls/r.db"), cli("runs", HOCKNEY_STORE="resutls/r.db")):
        assert (ended.returncode, ended.stdout) == (2, "")
        assert "there is no folder resutls" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_store_that_can_be_nowhere_is_said_where_nothing_is_made(cli: Cli) -> None:
    for ended in (cli("runs", "--store", ""), cli("--store", "", "runs"), cli("run", "barrier", "--store", "")):
        assert (ended.returncode, ended.stdout) == (2, "")
        assert "--store names no file" in ended.stderr
    for ended in (cli("runs", HOCKNEY_STORE="/proc/x"), cli("runs", "--store", "/proc/x")):
        assert (ended.returncode, ended.stdout) == (2, "")
        assert "/proc/x: there is none, and its folder can't hold one" in ended.stderr
    assert "/proc/x: there is none" in cli(HOCKNEY_STORE="/proc/x").stdout


def test_runs_as_json(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read = document(capsys, "runs", "--json", "--store", str(filled_store))
    assert [entry["number"] for entry in read["runs"]] == [1, 2]
    assert read["runs"][1]["points"] == {"precise": 4, "skipped": 1, "failed": 1}


def test_common_options_may_stand_before_the_command(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read = document(capsys, "--json", "--store", str(filled_store), "runs")
    assert read["store"] == str(filled_store)


def test_show_gives_figures_per_state_with_definition(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "last", "--store", str(filled_store)]) == 0
    output = capsys.readouterr().out
    assert "pingpong on shm, 2 ranks" in output
    near = next(line for line in output.splitlines() if " near " in line)
    assert near.split()[:4] == ["8", "B", "41.0", "ns"]
    assert "40.0 - 42.0 ns" in near
    assert any(" far " in line for line in output.splitlines())
    assert "Time: rank 0's time for one repetition, divided by 2; median over visits." in output
    assert "shm: shared memory" in output


def test_show_gives_reasons_warnings_and_scheduling_times(
    filled_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", "2", "--store", str(filled_store)]) == 0
    output = capsys.readouterr().out
    assert "rank 1 was killed by SIGKILL" in output
    assert "null has no native alltoall" in output
    assert "What limits precision\n! The governor is powersave. Change it." in output  # as on the data sheet
    assert output.count("these are scheduling times") == 1


def test_show_says_that_a_run_was_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.db"
    with Store.open(path) as store:
        number = store.create_run(make_info(), [PINGPONG, LARGE])
        store.write_round(number, [make_visit(PINGPONG, store.add_launch(number, make_launch()), 0, 40.0, 27.0)])
        store.set_status(number, PINGPONG, PointStatus.STOPPED, "the run was stopped: no interval yet, 1 visits")
        store.finish_run(number, RunStatus.INTERRUPTED)
    assert run(["--store", str(path), "show", "last"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"^ +8 B .* stopped$", output, re.MULTILINE)
    assert re.search(r"64 KiB +pending +the run was stopped before it was reached$", output, re.MULTILINE)
    assert run(["--store", str(path), "runs"]) == 0
    assert "1/2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("launches", "visits", "over", "note"),
    [
        ((1, 0), ["3"], "visits", ""),
        ((5, 0), ["15 in 5"], "visits", "the median and its interval are over visits, because over launches"),
        ((6, 0), ["18 in 6"], "launches", "the median and its interval are over the launches'."),
        ((6, 2), ["18 in 6", "6 in 2"], "launches or visits", "from six on the median and its interval are over"),
    ],
)
def test_show_says_over_how_many_launches_a_figure_is(
    launches: tuple[int, int],
    visits: list[str],
    over: str,
    note: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`launches`: so many near, and so many far."""
    path = tmp_path / "r.db"
    with Store.open(path) as store:
        number = store.create_run(make_info(), [PINGPONG])
        for index, floor_ns in enumerate([27.0] * launches[0] + [184.0] * launches[1]):
            launch = store.add_launch(number, make_launch(index=index))
            for _ in range(3):
                store.write_round(number, [make_visit(PINGPONG, launch, index, 40.0, floor_ns)])
        store.finish_run(number, RunStatus.DONE)
    assert run(["--store", str(path), "show", "last", "--states"]) == 0
    output = capsys.readouterr().out
    assert re.findall(r"^ *8 B .* ns +(\d+(?: in \d+)?)  ", output, re.MULTILINE) == visits
    assert f"median over {over}." in output
    assert "started once" not in output or launches == (1, 0)
    assert ("Visits in so many launches:" in output) is bool(note)
    assert note in output


def narrow(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int, *arguments: str) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run(list(arguments)) == 0
    return capsys.readouterr().out


def test_a_narrow_table_says_what_it_leaves_out_or_is_divided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What tells the rows of a part apart stands in each; nothing is said of visits where they are not shown."""
    path = tmp_path / "r.db"
    with Store.open(path) as store:
        number = store.create_run(make_info(), [PINGPONG])
        for index in range(12):
            launch = store.add_launch(number, make_launch(index=index))
            store.write_round(number, [make_visit(PINGPONG, launch, index, 40.0, 27.0 if index < 6 else 184.0)])
        store.finish_run(number, RunStatus.DONE)
    arguments = ("--store", str(path), "show", "last")
    whole = narrow(capsys, monkeypatch, 200, *arguments)
    assert "minimum" in whole
    assert "Left out" not in whole
    few = narrow(capsys, monkeypatch, 65, *arguments)
    assert "Left out for want of width: minimum, visits; a larger COLUMNS or\n  --json shows them." in few
    assert "Visits in so many" not in few
    divided = narrow(capsys, monkeypatch, 50, *arguments)
    assert "Left out" not in divided
    assert "Visits in so many" in divided
    assert re.findall(r"^ *8 B +(\w+)", divided, re.MULTILINE) == ["near", "far"] * 2


def test_show_calls_nothing_precise_that_is_of_no_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.db"
    with Store.open(path) as store:
        number = store.create_run(make_info(), [PINGPONG])
        launch = store.add_launch(number, make_launch())
        for round_ in range(30):
            visit = make_visit(PINGPONG, launch, round_, 40.0, 27.0 if round_ % 3 else 184.0)
            mixed = dataclasses.replace(visit, floor_ns=(27.0, 184.0)) if round_ % 3 == 1 else visit
            store.write_round(number, [mixed])
        store.set_status(number, PINGPONG, PointStatus.PRECISE)
        store.finish_run(number, RunStatus.DONE)
    assert run(["--store", str(path), "show", "last"]) == 0
    rows = re.findall(r"^ *8 B .*(near|far|mixed) .* (\S+)$", capsys.readouterr().out, re.MULTILINE)
    assert rows == [("near", "precise"), ("far", "precise"), ("mixed", "-")]


def test_show_says_nothing_of_intervals_where_there_is_no_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.db"
    with Store.open(path) as store:
        number = store.create_run(make_info(), [PINGPONG])
        store.add_launch(number, make_launch())
        store.set_status(number, PINGPONG, PointStatus.FAILED, "rank 1 was killed by SIGKILL")
        store.finish_run(number, RunStatus.PARTIAL)
    assert run(["--store", str(path), "show", "last"]) == 0
    output = capsys.readouterr().out
    assert "killed by SIGKILL" in output
    assert "interval" not in output


def test_show_says_that_what_changes_from_start_to_start_is_in_no_interval(
    filled_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--store", str(filled_store), "show", "last"]) == 0
    assert "Every job was started once: what changes from start to start" in capsys.readouterr().out


def test_show_names_the_class_of_ft_and_no_state_of_a_single_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.db"
    alone, both = Point("shm", "ft", 1, 0), Point("shm", "ft", 2, 0, (("class", "W"),))
    with Store.open(path) as store:
        number = store.create_run(make_info(), [alone, both, Point("shm", "ft", 4, 0)])
        launch = store.add_launch(number, make_launch())
        store.write_round(number, [make_visit(point, launch, 0, 1e6, None) for point in (alone, both)])
        store.set_status(number, Point("shm", "ft", 4, 0), PointStatus.SKIPPED, "there are two CPUs")
        store.finish_run(number, RunStatus.DONE)
    assert run(["--store", str(path), "show", "last"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"^ft on shm, 1 rank\n.*\nclass S .* -  ", output, re.MULTILINE)
    assert re.search(r"^ft class=W on shm, 2 ranks\n.*\nclass W .* unknown  ", output, re.MULTILINE)
    assert re.search(r"ft on shm, 4 ranks: class S +skipped", output)
    assert "0 B" not in output


def test_show_says_how_precise_a_figure_is_that_is_not_what_was_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where it is the only one of a point that was called precise."""
    path = tmp_path / "r.db"
    with Store.open(path) as store:
        number = store.create_run(make_info(), [PINGPONG])
        launch = store.add_launch(number, make_launch())
        for round_ in range(16):
            store.write_round(number, [make_visit(PINGPONG, launch, round_, 40.0 + round_ % 3, 27.0)])
        store.set_status(number, PINGPONG, PointStatus.PRECISE)
        store.finish_run(number, RunStatus.DONE)
    assert run(["--store", str(path), "show", "last"]) == 0
    assert re.search(r"^ *8 B .* near .* 16  ±2\.5%$", capsys.readouterr().out, re.MULTILINE)


def test_show_of_one_state(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["show", "last", "--store", str(filled_store), "--state"]
    assert run([*arguments, "far"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"^ *8 B .* far ", output, re.MULTILINE)
    assert not re.search(r"^ *8 B .* near ", output, re.MULTILINE)
    series = document(capsys, *arguments, "far", "--json")["series"]
    assert {figure["state"] for one in series for figure in one["figures"]} == {"far"}
    assert run([*arguments, "faar"]) == 2
    assert capsys.readouterr().err == "hockney: no figure of state 'faar': there are far; near; unknown\n"
    assert run([*arguments, "far", "--tables"]) == 2
    assert "leave out --pattern, --transport and --state" in capsys.readouterr().err


def test_states_are_completed(cli: Cli, filled_store: Path) -> None:
    asked = {"_HOCKNEY_COMPLETE": "bash_complete", "HOCKNEY_STORE": str(filled_store)}
    done = cli(**asked, COMP_WORDS="hockney show 2 --state f", COMP_CWORD="4")
    assert done.stdout == "plain,far\n"


def test_show_filters(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["show", "last", "--json", "--store", str(filled_store), "--transport", "mpi", "--pattern", "pingpong"]
    (series,) = document(capsys, *arguments)["series"]
    assert series["transport"] == "mpi@openmpi-4.1.4"
    assert [figure["state"] for figure in series["figures"]] == ["near", "far"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["-t", "mpi@openmpi"], {"mpi@openmpi-4.1.4"}),
        (["-t", "mpi,tcp"], {"mpi@openmpi-4.1.4", "tcp"}),
        (["-t", "shm", "-t", "tcp"], {"shm", "tcp"}),
        (["-t", "t*", "--pattern", "pingpong,barrier"], {"tcp"}),
        (["--pattern", "alltoall", "--pattern", "barrier"], {"null", "shm"}),
    ],
)
def test_show_names_transports_as_run_does(
    arguments: list[str], found: set[str], filled_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = document(capsys, "show", "last", "--json", "--store", str(filled_store), *arguments)
    assert {series["transport"] for series in shown["series"]} == found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "last", "-t", "shm,tpc"], "unknown transport in this run 'tpc': did you mean 'tcp'?"),
        (["show", "last", "-t", "tcp", "--pattern", "barrier"], "run 2 has no barrier on tcp"),
        (["show", "last", "-t", ","], "--transport names nothing: leave it out, or say what"),
        (["show", "~1"], "unknown run '~1': did you mean 'last~1'?"),
        (
            ["runs", "--label", "1"],
            "--label takes RUN NAME, which is not all given: for example `hockney runs --label ",
        ),
        (["export", "-o"], "-o takes FILE, which is not given: for example `hockney export last --csv -o figures.csv"),
        (["run", "pingpong", "--precision", "0.5"], "'0.5' could mean two things: write 0.5%, or 50%"),
        (["run", "pingpong", "--launches", "abc"], "'abc' is not a number of launches: write 1 to 1000, for example "),
        (["run", "pingpong", "--launches", "0"], "'0' is not a number of launches: write 1 to 1000, for example "),
        (["run", "pingpong", "-t", "tpc", "-t", "shm"], "unknown transport 'tpc'"),
        (["run", "pingpong", "--bytes", "8x", "--bytes", "8"], "'8x' is not a size"),
        (
            ["quick", "--label", ""],
            "the label is empty: leave --label out, or give a name, for example --label before-",
        ),
        (["show", "last", "--pattern", "pong"], "did you mean 'pingpong'?"),
        (["show", "last", "-t", "tpc"], "did you mean 'tcp'?"),
        (["show", "basse"], "did you mean 'base'?"),
        (["show", "nosuch"], "unknown run 'nosuch': known are last, base, 2"),
        (["export", "77"], "no run 77"),
    ],
)
def test_words_that_mean_nothing(
    arguments: list[str], said: str, filled_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--store", str(filled_store), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_run_without_points_can_be_shown(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "base", "--store", str(filled_store)]) == 0
    assert capsys.readouterr().out.startswith("Run 1 (base): quick, ")


def test_errors_of_a_suites_file_have_a_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.toml"
    path.write_text('name = "bad"\ntitle = "Bad"\ntime = 0\nseries = [{ pattern = "pingpog" }]\n')
    assert run(["list", "suites", str(path)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert not any(line.startswith("quick ") for line in lines)  # of a file that is named nothing else is listed
    assert f"{path} has 2 errors; mend the file" in next(line for line in lines if re.match(r"bad +wrong ", line))
    assert lines[lines.index("What is wrong in bad") + 1 :] == [
        '  time: 0 is too small, it must be above 0: write for example time = "30s"',
        "  pattern of the 1st [[series]]: unknown pattern 'pingpog': did you mean 'pingpong'?",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"], ["list", "matrix"], ["runs"], ["show", "last"], ["explain", "last"], ["explain", "--machine", "t3d"],
        ["compare", "1", "2"], ["export", "last"], ["doctor"], ["completion", "zsh"], [],
        ["show", "nosuch"], ["show", "last", "--tables"], ["export", "nosuch"], ["run", "nosuch"], ["nosuch"],
        ["check", "--baseline", "nosuch"], ["check"], ["explain"], ["run", "--resume", "2"], ["list", "nosuch"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_json_is_all_that_standard_output_gets(arguments: list[str], cli: Cli, filled_store: Path) -> None:
    ended = cli(*arguments, "--json", HOCKNEY_STORE=str(filled_store))
    document = json.loads(ended.stdout)
    assert document["format"].startswith("hockney-")
    assert ("error" in document) == ended.stderr.startswith("hockney: ")
    if "error" in document:
        assert document["exit_code"] == ended.returncode


@pytest.mark.parametrize("command", [["show"], ["show", "--json"], ["export"], ["export", "--json"], ["explain"]])
def test_without_a_run_it_is_the_last_one(command: list[str], cli: Cli, filled_store: Path) -> None:
    unnamed, named = (cli(*command, *more, HOCKNEY_STORE=str(filled_store)) for more in ([], ["2"]))
    assert unnamed.returncode == 0, unnamed.stderr
    assert unnamed.stdout == named.stdout


# ---- export ---------------------------------------------------------------------------------------------------------


def test_export_csv(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "last", "--csv", "--store", str(filled_store)]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["transport"] for row in rows} == {"shm", "tcp", "null", "mpi@openmpi-4.1.4"}


def test_export_json_into_a_file(filled_store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.json"
    assert run(["export", "2", "--json", "--samples", "-o", str(path), "--store", str(filled_store)]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(path.read_text())["format"] == "hockney-export"
    assert list(tmp_path.iterdir()) == [path]


def test_export_into_a_folder_that_is_not_there(
    filled_store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none" / "run.csv"
    assert run(["export", "2", "-o", str(path), "--store", str(filled_store)]) == 2
    said = f"cannot write {path}: there is no folder {path.parent}; make it first"
    assert capsys.readouterr().err == f"hockney: {said}\n"
    assert run(["export", "2", "--json", "-o", str(path), "--store", str(filled_store)]) == 2
    assert json.loads(capsys.readouterr().out) == {
        "format": "hockney-error", "version": 1, "error": said, "exit_code": 2,
    }  # fmt: skip
    assert run(["export", "2", "-o", str(tmp_path), "--store", str(filled_store)]) == 2
    assert capsys.readouterr().err == f"hockney: cannot write {tmp_path}: it is a folder; name a file\n"


def test_export_is_of_one_kind(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "2", "--csv", "--json", "--store", str(filled_store)]) == 2
    output = capsys.readouterr()
    assert "not as both at once" in output.err
    assert json.loads(output.out)["exit_code"] == 2


def test_a_failed_export_leaves_the_old_file(filled_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("old")
    assert run(["export", "99", "-o", str(path), "--store", str(filled_store)]) == 2
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# ---- the rest -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert "_HOCKNEY_COMPLETE" in capsys.readouterr().out
    assert document(capsys, "completion", shell, "--json")["shell"] == shell


def test_completion_answers_with_commands_and_runs(cli: Cli, filled_store: Path) -> None:
    asked = {"_HOCKNEY_COMPLETE": "bash_complete", "HOCKNEY_STORE": str(filled_store)}
    commands = cli(**asked, COMP_WORDS="hockney ex", COMP_CWORD="1")
    assert (commands.returncode, commands.stdout) == (0, "plain,explain\nplain,export\n")
    runs = cli(**asked, COMP_WORDS="hockney show b", COMP_CWORD="2")
    assert runs.stdout == "plain,base\n"


@pytest.mark.parametrize("arguments", [(), ("--help",), ("runs",), ("show", "last"), ("list",)])
def test_a_pipe_gets_plain_text(arguments: tuple[str, ...], cli: Cli, filled_store: Path) -> None:
    """Also where a variable asks for colours, and on what calls itself a terminal."""
    ended = cli(*arguments, HOCKNEY_STORE=str(filled_store), TERM="xterm-256color")
    assert ended.returncode == 0
    assert ended.stderr == ""
    assert "\x1b" not in ended.stdout
    assert not set(ended.stdout) & set("─━│┃┌┐└┘├┤┬┴┼╭╮╰╯")
    assert all(line == line.rstrip() for line in ended.stdout.splitlines())


@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_terminal_gets_a_table(tmp_path: Path, filled_store: Path, no_color: str) -> None:
    """With colours and bold type unless NO_COLOR is set, and with lines that fit it."""
    code = (
        "import pty, sys; status = pty.spawn([sys.executable, '-m', 'hockney', 'show', 'last']); sys.exit(status >> 8)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(tmp_path, HOCKNEY_STORE=str(filled_store), TERM="xterm", COLUMNS="120", NO_COLOR=no_color),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert (b"\x1b" in done.stdout) == (not no_color)
    assert "─".encode() in done.stdout
    assert b"95 % interval" in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["run", "ping"], "pingpong"),
        (["run", "qu"], "quick"),
        (["run", "mi"], "mine.toml"),
        (["run", "pingpong", "-t", "sh"], "shm"),
        (["run", "pingpong", "-t", "shm,tcp:s"], "shm,tcp:spin"),
        (["run", "--resume", "la"], "last"),
        (["show", "la"], "last"),
        (["show", "last", "--pattern", "bar"], "barrier"),
        (["export", "last", "--cs"], "--csv"),
    ],
    ids=" ".join,
)
def test_a_shell_is_told_the_rest_of_a_word(
    typed: list[str], offered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.shell_completion import ShellComplete

    from hockney.cli.commands import hockney

    (tmp_path / "mine.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOCKNEY_STORE", str(tmp_path / "none.db"))
    *before, word = typed
    items = ShellComplete(hockney, {}, "hockney", "_HOCKNEY_COMPLETE").get_completions(before, word)
    assert offered in [item.value for item in items]
