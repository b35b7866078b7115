"""Rules for every command: help with an example, --json, --store; and the output for a filled store."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.builders import make_info
from tests.cli.support import PINGPONG, Cli, document, environment
from tests.shared import Fakes, finished

from hockney.cli import execute
from hockney.cli.commands import COMMANDS, hockney
from hockney.render.json import JSON_VERSION
from hockney.results.store import Store


def command(name: str) -> click.Command:
    of_group = hockney.get_command(click.Context(hockney), name)
    assert of_group is not None
    return of_group


@pytest.mark.parametrize("name", COMMANDS)
def test_command_has_help_with_examples_and_exit_codes_on_one_screen(name: str) -> None:
    result = CliRunner().invoke(hockney, [name, "--help"], prog_name="hockney", terminal_width=100)
    assert result.exit_code == 0
    assert f"Usage: hockney {name}" in result.output
    examples, _, codes = (
        result.output.replace(" \\\n      ", " ").partition("Examples:\n")[2].partition("\n\nExit codes:\n")
    )
    assert all(line.startswith(f"  hockney {name}") for line in examples.splitlines())
    assert codes.startswith("  0  done\n")
    assert 24 <= len(result.output.splitlines()) <= 40


def test_the_examples_of_completion_work_in_a_new_home(tmp_path: Path, fake: Fakes) -> None:
    help_text = CliRunner().invoke(hockney, ["completion", "--help"], prog_name="hockney").output
    help_lines = help_text.partition("Examples:\n")[2].replace("\\\n", "").splitlines()
    examples = [line.strip() for line in help_lines if re.match(r"  hockney completion (bash|fish) ", line)]
    assert len(examples) == 2
    fake(tmp_path / "hockney", f'exec {shlex.quote(sys.executable)} -m hockney "$@"')
    there = environment(tmp_path, HOME=str(tmp_path), PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for example in examples:
        subprocess.run(["sh", "-c", example], env=there, check=True)
        written = tmp_path / example.partition("~/")[2]
        assert "_HOCKNEY_COMPLETE" in written.read_text()
        if "bash" in example:  # which breaks mpi@openmpi:r into five words, and gives the last to replace
            line = "hockney run pingpong -t mpi@openmpi:r"
            answer = "env() { [[ $1 = *$'\\nmpi@openmpi:r' ]] && printf 'plain,mpi@openmpi:%s\\n' rma ready; }"
            asked = "_hockney_whole_words hockney; printf '%s ' \"${COMPREPLY[@]}\""
            script = f". {written}; {answer}; COMP_LINE='{line}' COMP_POINT={len(line)}; {asked}"
            done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
            assert done.stdout == b"rma ready "


@pytest.mark.parametrize("width", [60, 80, 100])
def test_help_fits_the_width(width: int) -> None:
    for name in COMMANDS:
        output = CliRunner().invoke(hockney, [name, "--help"], prog_name="hockney", terminal_width=width).output
        assert [line for line in output.splitlines() if len(line) > width] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_has_their_summaries(name: str) -> None:
    assert (command(name).help or "").partition("\n")[0] == COMMANDS[name]
    assert {"--json", "--store"} <= {option for parameter in command(name).params for option in parameter.opts}
    assert command(name).name == name


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    """Imports take most of a start; a test with a stop-watch would depend on the machine."""
    libraries = ("numpy", "scipy", "pydantic", "psutil", "cpuinfo")
    own = ("suites", "worker.build", "worker.catalogue", "worker.session", "analysis.explain")
    heavy = (*libraries, *(f"hockney.{name}" for name in own))
    calls = [[], ["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]
    calls.append(["runs", "--store", str(_empty_store(tmp_path))])
    code = (
        "import sys; from hockney.cli import execute\n"
        f"for arguments in {calls}:\n"
        "    assert execute(arguments) == 0, arguments\n"
        f"    loaded = [name for name in {heavy} if name in sys.modules]\n"
        "    assert not loaded, (arguments, loaded)\n"
    )
    done = finished([sys.executable, "-c", code], env=environment(tmp_path, HOCKNEY_STORE=str(tmp_path / "none.db")))
    assert done.returncode == 0, done.stderr


def _empty_store(folder: Path) -> Path:
    from hockney.results.store import Store

    path = folder / "empty.db"
    Store.open(path).close()
    return path


# ---- the bare command -----------------------------------------------------------------------------------------------


def test_bare_command_is_a_screen_and_no_error(cli: Cli) -> None:
    ended = cli()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "hockney quick" in ended.stdout
    assert "No runs are stored yet" in ended.stdout


def test_bare_command_names_the_last_run(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["--store", str(filled_store)]) == 0
    assert "Last run: 2, mine, " in capsys.readouterr().out
    read = document(capsys, "--json", "--store", str(filled_store))
    assert read["format"] == "hockney-welcome"
    assert read["last_run"]["number"] == 2
    assert [entry["name"] for entry in read["commands"]] == list(COMMANDS)


def test_bare_command_works_with_a_broken_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.db"
    broken.write_text("this is no database\n" * 40)
    assert execute(["--store", str(broken)]) == 0
    output = capsys.readouterr().out
    assert "hockney quick" in output
    assert "The results cannot be read: " in output


def test_version(cli: Cli) -> None:
    from hockney import __version__

    assert cli("--version").stdout == f"hockney {__version__}\n"


# ---- stored runs ----------------------------------------------------------------------------------------------------


def test_runs(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["runs", "--store", str(filled_store)]) == 0
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
    assert wrong.returncode == 2
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


def test_an_impossible_path_of_a_store_is_reported_and_nothing_is_created(cli: Cli) -> None:
    assert cli("runs", "--store", "").returncode == 2
    for ended in (cli("runs", HOCKNEY_STORE="/no/where"), cli("runs", "--store", "/no/where")):
        assert (ended.returncode, ended.stdout) == (2, "")
        assert "there is no folder /no: make it first" in ended.stderr
    assert "there is no folder /no: make it first" in cli(HOCKNEY_STORE="/no/where").stdout


def test_runs_as_json(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read = document(capsys, "runs", "--json", "--store", str(filled_store))
    assert [entry["number"] for entry in read["runs"]] == [1, 2]
    assert read["runs"][1]["points"] == {"precise": 4, "skipped": 1, "failed": 1}


def test_common_options_may_stand_before_the_command(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read = document(capsys, "--json", "--store", str(filled_store), "runs")
    assert read["store"] == str(filled_store)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "last", "-t", "shm,tpc"], "unknown transport in this run 'tpc': did you mean 'tcp'?"),
        (["show", "last", "-t", "tcp", "--pattern", "barrier"], "run 2 has no barrier on tcp"),
        (["show", "last", "-t", ","], "--transport names nothing: name something, or leave it out"),
        (["show", "~1"], "unknown run '~1': did you mean"),
        (["runs", "--label", "1"], "option '--label' requires 2 arguments"),
        (["export", "-o"], "option '-o' requires an argument"),
        (["runs", "--help=x"], "--help"),
        (["help"], "unknown command 'help'. For help: `hockney --help"),
        (["run", "pingpong", "--precision", "0.5"], "'0.5' has no unit: write 0.5%"),
        (["run", "pingpong", "--launches", "abc"], "'abc' is not a number of launches: write 1 to 1000, for example "),
        (["run", "pingpong", "--bytes", "8x", "--bytes", "8"], "'8x' is not a size"),
        (["show", "last", "--pattern", "pong"], "did you mean 'pingpong'?"),
        (["show", "last", "--state", "near,one"], "unknown state in this run 'near, one': did you mean 'near'?"),
        (["run", "pingpong", __file__], "test_commands.py is not a suite: the name of a suite's file ends in .toml"),
        (["show", "basse"], "did you mean 'base'?"),
        (["show", "nosuch"], "unknown run 'nosuch': known are last, base, 2"),
    ],
)
def test_words_that_mean_nothing(
    arguments: list[str], said: str, filled_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["--store", str(filled_store), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_run_without_points_can_be_shown(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["show", "base", "--store", str(filled_store)]) == 0
    assert capsys.readouterr().out.startswith("Run 1 (base): quick, ")


def test_errors_of_a_suites_file_have_a_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.toml"
    path.write_text('name = "bad"\ntitle = "Bad"\ntransports = "tpc"\nseries = [{ pattern = "pingpog" }]\n')
    assert execute(["list", "suites", str(path)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert not any(line.startswith("quick ") for line in lines)  # of a file that is named nothing else is listed
    assert f"{path} has 2 errors; correct the file" in next(line for line in lines if re.match(r"bad +wrong ", line))
    assert lines[lines.index("Errors in bad") + 1 :] == [
        "  transports: unknown transport 'tpc': did you mean 'tcp'?",
        "  pattern of the 1st [[series]]: unknown pattern 'pingpog': did you mean 'pingpong'?",
    ]


@pytest.mark.parametrize("words", [("runs",), ("list", "machines")])
def test_lists_fit_a_screen_in_a_pipe_too(words: tuple[str, ...], cli: Cli, tmp_path: Path) -> None:
    transports = [f"mpi@openmpi-4.1.{number}:persistent" for number in range(9)]
    with Store.open(tmp_path / "results.db") as store:
        store.create_run(make_info("a label"), [replace(PINGPONG, transport=name) for name in transports])
    for more, width in (({}, 100), ({"COLUMNS": "60"}, 60)):
        ended = cli(*words, **more)
        assert ended.returncode == 0
        assert max(map(len, ended.stdout.splitlines())) <= width, ended.stdout


def test_the_list_of_everything_fits_one_screen(cli: Cli) -> None:
    lines = cli("list", COLUMNS="100").stdout.splitlines()
    assert len(lines) <= 40
    for title in ("Suites", "Patterns", "Transports", "Launchers", "Machines of the archive"):
        assert title in lines
    assert any(line.startswith("pingpong, ") for line in lines)
    assert any(line.startswith("shm, ") and "tcp" in line and ":" not in line for line in lines)


def test_a_file_that_is_there_is_wrong_and_not_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / name for name in ("bad.toml", "nosuch.toml")]
    files[0].write_text("name =\n")
    assert execute(["list", "suites", *map(str, files)]) == 2
    states = [line.split()[:2] for line in capsys.readouterr().out.splitlines() if line.startswith(("bad ", "nosuch "))]
    assert states == [["bad", "wrong"], ["nosuch", "missing"]]


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


def test_export_json_into_a_file(filled_store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.json"
    assert execute(["export", "2", "--json", "--samples", "-o", str(path), "--store", str(filled_store)]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(path.read_text())["format"] == "hockney-export"
    assert list(tmp_path.iterdir()) == [path]


def test_export_into_a_folder_that_is_not_there(
    filled_store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none" / "run.csv"
    assert execute(["export", "2", "-o", str(path), "--store", str(filled_store)]) == 2
    said = f"cannot write {path}: there is no folder {path.parent}; make it first"
    assert capsys.readouterr().err == f"hockney: {said}\n"
    assert execute(["export", "2", "--json", "-o", str(path), "--store", str(filled_store)]) == 2
    assert json.loads(capsys.readouterr().out) == {
        "format": "hockney-error", "version": JSON_VERSION, "error": said, "exit_code": 2,
    }  # fmt: skip
    assert execute(["export", "2", "-o", str(tmp_path), "--store", str(filled_store)]) == 2
    assert capsys.readouterr().err == f"hockney: cannot write {tmp_path}: it is a folder; name a file\n"


@pytest.mark.parametrize("name", ["results.db", "sub/../results.db", "linked.db", "hard.db", "other.db"])
def test_no_file_is_written_over_results(filled_store: Path, tmp_path: Path, cli: Cli, name: str) -> None:
    (tmp_path / "sub").mkdir()
    kept = filled_store.read_bytes()
    for file in ("results.db", "other.db"):
        (tmp_path / file).write_bytes(kept)
    (tmp_path / "linked.db").symlink_to("results.db")
    (tmp_path / "hard.db").hardlink_to(tmp_path / "results.db")
    for command in (["export", "1", "--csv", "-o", name], ["check", "--baseline", "1", "--junit", name]):
        done = cli(*command)
        assert done.returncode == 2
        assert f" would write over {name}, which is input or results of hockney: name another file\n" in done.stderr
    assert (tmp_path / "results.db").read_bytes() == (tmp_path / "other.db").read_bytes() == kept
    assert cli("export", "1", "-o", "new.csv").returncode == 0


def test_a_failed_export_leaves_the_old_file(filled_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("old")
    assert execute(["export", "99", "-o", str(path), "--store", str(filled_store)]) == 2
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# ---- the rest -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["completion", shell]) == 0
    assert "_HOCKNEY_COMPLETE" in capsys.readouterr().out
    assert document(capsys, "completion", shell, "--json")["shell"] == shell


def test_completion_answers_with_commands_and_runs(cli: Cli, filled_store: Path) -> None:
    asked = {"_HOCKNEY_COMPLETE": "bash_complete", "HOCKNEY_STORE": str(filled_store)}
    commands = cli(**asked, COMP_WORDS="hockney ex", COMP_CWORD="1")
    assert (commands.returncode, commands.stdout) == (0, "plain,explain\nplain,export\n")
    runs = cli(**asked, COMP_WORDS="hockney show b", COMP_CWORD="2")
    assert runs.stdout == "plain,base\n"
    unknown = cli(**asked, COMP_WORDS="hockney shwo b", COMP_CWORD="2")
    assert unknown.stderr == ""


@pytest.mark.parametrize(
    "variables",
    [
        {"_HOCKNEY_COMPLETE": "bash_complete"},
        {"_HOCKNEY_COMPLETE": "zsh_complete", "COMP_WORDS": "hockney"},
        {"_HOCKNEY_COMPLETE": "bash_complete", "COMP_WORDS": "hockney", "COMP_CWORD": "x"},
        {"_HOCKNEY_COMPLETE": "fish_complete", "COMP_WORDS": "hockney", "COMP_CWORD": " "},
        {"_HOCKNEY_COMPLETE": "no such shell"},
    ],
    ids=str,
)
def test_completion_without_its_variables_is_a_sentence(variables: dict[str, str], cli: Cli) -> None:
    ended = cli("list", **variables)
    said = "hockney: _HOCKNEY_COMPLETE is set without COMP_WORDS and COMP_CWORD of a shell: unset it\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", said)


@pytest.mark.parametrize("arguments", [(), ("--help",), ("runs",), ("show", "last"), ("list",)])
def test_a_pipe_gets_plain_text(arguments: tuple[str, ...], cli: Cli, filled_store: Path) -> None:
    """Also if a variable asks for colours, and on a file that claims to be a terminal."""
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
    assert "±".encode() in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["run", "ping"], "pingpong"),
        (["run", "qu"], "quick"),
        (["run", "mi"], "mine.toml"),
        (["run", "osu_allr"], "osu_allreduce"),
        (["run", "IMB:Ping"], "IMB:PingPong"),
        (["run", "IMB-N"], "IMB-NBC"),
        (["run", "osu_bw,osu_bi"], "osu_bw,osu_bibw"),
        (["run", "pingpong", "-t", "sh"], "shm"),
        (["run", "pingpong", "-t", "shm,tcp:s"], "shm,tcp:spin"),
        (["run", "--resume", "la"], "last"),
        (["show", "la"], "last"),
        (["show", "last", "--pattern", "bar"], "barrier"),
        (["export", "last", "--cs"], "--csv"),
        (["predict", "ping"], "pingpong"),
        (["predict", "barrier", "--machine", "gpm"], "gpmimd-calibrated"),
        (["predict", "barrier", "--set", "link"], "link.bandwidth="),
    ],
    ids=" ".join,
)
def test_a_shell_gets_the_rest_of_a_word(
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


def test_without_a_compiler_nothing_is_measured_and_a_sentence_says_why(cli: Cli) -> None:
    ended = cli("quick", "--time", "1s", PATH="/nowhere", CC="")
    assert (ended.returncode, ended.stdout) == (3, "")
    assert re.fullmatch(r"hockney: no C compiler found: [^\n]*; install one with: [^\n]*\n", ended.stderr)


def test_messages_of_a_failing_compiler_are_passed_on(cli: Cli, tmp_path: Path, fake: Fakes) -> None:
    compiler = fake(
        tmp_path / "badcc", '[ "$1" = --version ] && echo badcc 1.0 && exit', 'echo "a.c:1: error: no" >&2', "exit 1"
    )
    for words, first in (((), r"hockney: compiling the workers, .* \.\.\.\n"), (("-q",), "")):
        ended = cli("run", "pingpong", "--time", "1s", *words, CC=str(compiler))
        assert (ended.returncode, ended.stdout) == (3, "")
        assert re.fullmatch(first + r"hockney: badcc cannot compile \w+: a\.c:1: error: no\n", ended.stderr)
