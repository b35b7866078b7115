"""The end of commands: exit codes, the output of each stream, and never a traceback."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import shlex
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from tests.builders import make_info, make_launch, make_measurement
from tests.cli.support import Cli, call_here, command_line, environment, let_sigint_in
from tests.shared import Fakes, finished, killed_at_the_end

from hockney.cli import commands, execute, explain_error
from hockney.cli.measuring import measuring
from hockney.errors import StoreError, UsageError
from hockney.measure.plan import Plan
from hockney.measure.recorder import Display, Lab, RunOutcome
from hockney.model import Point, RunStatus
from hockney.render.json import JSON_VERSION, print_json
from hockney.results.store import Store
from hockney.worker.catalogue import load


def test_unknown_command_suggests_a_known_one(cli: Cli) -> None:
    ended = cli("runz")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr == "hockney: unknown command 'runz': did you mean 'run'?\n"


def test_an_error_on_a_terminal_is_wrapped_between_words(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    missing = "no-such-file-with-a-long-name-that-takes-more-than-a-line.txt"
    words = command_line("import", missing)
    code = subprocess.call(words, env=environment(tmp_path), stderr=theirs, stdout=subprocess.DEVNULL, timeout=60)
    os.close(theirs)
    lines = os.read(ours, 4096).decode().splitlines()
    os.close(ours)
    assert code == 2
    assert [line.strip() for line in lines] == [
        "hockney: cannot read the output",
        f"{missing}:",
        "no such file or directory",
    ]


@pytest.mark.parametrize(("sizes", "has_plot"), [("8,64", False), ("8,64,512", True)])
def test_the_last_lines_of_a_run_are_short_and_their_commands_work(cli: Cli, sizes: str, has_plot: bool) -> None:
    ended = cli("run", "pingpong", "-t", "sim@t3d", "--bytes", sizes)
    assert ended.returncode == 0, ended.stderr
    last = ended.stderr[ended.stderr.index("Saved as run 1") :]
    assert ("`hockney show 1 --plot`" in last) is has_plot
    assert "`hockney explain 1`" in last
    assert all(len(line) <= 100 or " " not in line.strip() for line in last.splitlines())


@pytest.mark.parametrize("words", ["show nosuch", "show --nosuch", "run zzz"])
def test_a_hint_begins_as_hockney_was_started(cli: Cli, tmp_path: Path, words: str) -> None:
    with Store.open(tmp_path / "results.db") as store:
        for _ in range(8):
            store.create_run(make_info(), [])
    ended = cli(*words.split(), HOCKNEY_COMMAND="./hockney")
    assert ended.returncode == 2
    assert "`./hockney " in ended.stderr


@pytest.mark.parametrize("words", ["", "--help", "export --help"])
def test_examples_begin_as_hockney_was_started(cli: Cli, words: str) -> None:
    ended = cli(*words.split(), HOCKNEY_COMMAND="./hockney")
    assert ended.returncode == 0
    assert " ./hockney " in ended.stdout
    assert "  hockney " not in ended.stdout


@pytest.mark.parametrize("name", ["pingpong", "atlas"])
def test_a_pattern_or_suite_as_command_is_answered_with_the_command_that_measures_it(cli: Cli, name: str) -> None:
    ended = cli(name)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"hockney: unknown command '{name}'. To measure it: `hockney run {name}`\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("check --baseline last --patience long", "write for example 30s"),
        ("check --baseline last --max-slowdown 0", "write for example 1%"),
        ("check --baseline last --max-slowdown 5", "write 5%"),
        ("check --baseline last --junit none/j.xml", "there is no folder none; make it first"),
        ("check --expect none.toml --junit none/j.xml", "there is no folder none; make it first"),
        ("check --expect none.toml", "cannot read the file of expectations none.toml"),
        ("compare 1", "name two runs, BASE and NEW"),
        ("compare --interleave pingpong", "both variants are the same"),
        ("compare --interleave pingpong last --new-env A=1", "with --interleave one pattern or suite"),
        ("compare --interleave pingpong --new-env A=1 --launches 5", "give --launches 6 or more"),
        ("compare --interleave pingpong --base-env A=1 --new-env A=1", "both variants are the same"),
        ("compare --interleave pingpong --new-env A", "'A' is not a variable: write NAME=VALUE"),
        ("compare --interleave pingpong --base-transport 'tcp:*' --new-transport shm", "the same number of transports"),
        (
            "compare --interleave pingpong --base-transport mpi@/no/such --new-transport shm",
            "there is no mpicc in /no/such/bin",
        ),
        (
            "compare --interleave pingpong --base-transport mpi@opt/a --new-transport shm",
            "the whole path of its folder",
        ),
        ("completion tcsh", "unknown shell 'tcsh': "),
        ("completion", "Choose from: bash, zsh, fish (see: "),
        ("list patern", "unknown kind 'patern': did you mean 'patterns'?"),
        ("list patterns x.toml", "files can be given to 'list suites' only"),
        ("predict pingpong", "no results"),
        ("predict --validate --from 1 --time 1m", "leave out --time"),
        ("run zzz", " …; list all: `hockney list`"),
        ("run pingpong -t sim", "sim needs a model"),
        ("run pingpong -t sim@gpmim", "did you mean 'gpmimd'"),
        ("run pingpong -t sim@none.toml", "cannot read the model none.toml"),
        ("run atlas --machine gpmimd -t shm", "leave out --transport"),
        ("run atlas --machine gpmimd:pairs", "for one of them: -t sim@gpmimd:pairs"),
        ("run atlas --machine nowhere", "unknown model 'nowhere'"),
        ("run pushfarm -o rate=100 -t unix", "'100' is not a rate of events: write for example 100k/s"),
        ("run pushfarm -o rate=max -t unix", "rate=max and deadline belong together"),
        ("run pushfarm -o rate=1kHz -o deadline=1ms -t unix", "rate=max and deadline belong together"),
        ("run pushfarm -o rate=max -o deadline=soon -t unix", "'soon' is not a time"),
        ("run pingpong -o rate=1kHz -t unix", "pingpong has no option 'rate_hz'"),
        ("run pushfarm,pingpong -o rate=max -o deadline=1ms -t unix", "pingpong has no events on schedule"),
        ("run pushfarm -o rate=2GHz -t unix", "option rate_hz of pushfarm must be a whole number from 0 to 1000000000"),
        (
            "run neighbor_alltoall -o distances=none -t shm",
            "distances of neighbor_alltoall must be grid, up to 64 numb",
        ),
        ("run neighbor_alltoall -o distances=/etc/hosts -t shm", " in /etc/hosts is no distance"),
        ("run", "name what to run"),
        ("run pingpog", "unknown suite or pattern 'pingpog': did you mean 'pingpong'"),
        ("run pingpong -t shn", "did you mean 'shm'"),
        ("run pingpong --bytes 8:4", "runs backwards"),
        ("run pingpong --precision 0", "not a precision"),
        ("run pingpong --time soon", "not a duration"),
        ("run pingpong -n two", "not a number of ranks"),
        ("run pingpong -o window", "NAME=VALUE"),
        ("run funnel -t shm -o window=4", "funnel has no option 'window': it is of oneway, "),
        ("run pingpong -t shm -o window=4", "pingpong has no option 'window'"),
        (
            "run eventbuilder -t shm -o builders=8",
            "eventbuilder has no option 'builders': all ranks but the manager and the senders build",
        ),
        ("run pingpong -o windw=4", "known are source, target"),
        ("run pingpong -o source=1 -o target=1", "source and target must differ, but both are rank 1"),
        ("run pingpong -t ,", "--transport names nothing"),
        ("run pingpong --bytes 2000G", "too large a message"),
        ("run pingpong --limit 48h", "1s to 24h"),
        ("run pingpong --label last", "cannot be a label"),
        ("run pingpong --label 'two\nlines'", "a label is one line of 1 to 40 characters"),
        ("run pingpong --label=-x", "does not begin with '-'"),
        ("run /etc/hosts", "/etc/hosts is not a suite: the name of a suite's file ends in .toml"),
        ("run barrier --bytes 8", "barrier has no message sizes"),
        ("run nothing.toml", "cannot read the suite"),
        ("run shm", "shm is a transport: `hockney run pingpong -t shm`"),
        ("run tcp:spin", "tcp:spin is a transport: `hockney run pingpong -t tcp:spin`"),
        ("run udp", "udp is a transport: `hockney run pingpong -t udp`"),
        ("run mpi@nosuch", "unknown transport 'mpi@nosuch'"),
        ("run pingpong -t nosuch", "…; list all: `hockney list transports`"),
        ("runs --nonsense", "no such option '--nonsense' (see: `hockney runs --help`)"),
        ("runs more", "got unexpected extra argument (more) (see: `hockney runs --help`)"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    words: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOCKNEY_STORE", str(tmp_path / "results.db"))
    assert execute(shlex.split(words)) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("hockney: ")
    assert said in output.err
    assert output.err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("wrong word"), 2, "hockney: wrong word\n"),
        (StoreError("no store"), 3, "hockney: no store\n"),
        (KeyboardInterrupt(), 3, "hockney: stopped by Ctrl-C\n"),
        (KeyboardInterrupt("all is stored"), 3, "hockney: stopped by Ctrl-C; all is stored\n"),
        (click.Abort(), 3, "hockney: stopped by Ctrl-C\n"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 3, "cannot write the output: broken pipe"),  # not of our reader
        (OSError(errno.ENOSPC, "No space left on device"), 3, "cannot write the output: no space left on device"),
        (PermissionError(errno.EACCES, "Permission denied", "/some/file"), 3, "/some/file: permission denied"),
        (MemoryError(), 3, "not enough memory"),
    ],
)
def test_every_error_is_a_sentence(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain_error(error, ["runs"]) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert said in output.err
    assert "Traceback" not in output.err


def test_a_fault_shows_its_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(arguments: object) -> int:
        raise KeyError("lost")

    monkeypatch.setattr("hockney.cli._carry_out", fail)
    assert execute(["runs"]) == 3
    *traceback, sentence = capsys.readouterr().err.splitlines()
    assert traceback[0].startswith("Traceback")
    assert sentence == "hockney: a fault in hockney itself: KeyError: 'lost'; please report it with the lines above"


def test_debugging_shows_the_traceback(cli: Cli) -> None:
    assert "Traceback" not in cli("show", "9").stderr
    assert "Traceback" in cli("show", "9", HOCKNEY_DEBUG="1").stderr


@pytest.mark.parametrize("command", ["show", "export"])
def test_a_reader_that_stops_reading_is_no_error(tmp_path: Path, filled_store: Path, command: str) -> None:
    """As in `hockney show last | head -1`: no traceback, nothing on standard error, also not from the interpreter."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command_line(command, "last", "--json"),
        env=environment(tmp_path, HOCKNEY_STORE=str(filled_store)),
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("command", "redirected", "code", "said"),
    [
        ("list", "| head -1", 0, ""),
        ("runs", ">/dev/full", 3, "hockney: cannot write the output: no space left on device\n"),
        ("show", ">&-", 3, "hockney: cannot write the output: bad file descriptor\n"),
        ("export", ">&-", 3, "hockney: cannot write the output: bad file descriptor\n"),
    ],
)
def test_output_that_is_cut_or_cannot_be_written(
    command: str, redirected: str, code: int, said: str, tmp_path: Path, filled_store: Path
) -> None:
    done = finished(
        ["bash", "-o", "pipefail", "-c", f'"$@" {redirected}', "-", *command_line(command)],
        env=environment(tmp_path, HOCKNEY_STORE=str(filled_store)),
    )
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.parametrize("limit_kib", [200_000, 300_000])
@pytest.mark.parametrize("command", ["list transports", "show last", "run pingpong -t shm --time 0.1s"])
def test_too_little_memory_is_a_sentence(command: str, limit_kib: int, tmp_path: Path, filled_store: Path) -> None:
    """A library that does not load, a thread that does not start; with more it may just be enough."""
    done = finished(
        ["sh", "-c", f'ulimit -v {limit_kib}; exec "$@"', "-", *command_line(*command.split())],
        env=environment(tmp_path, HOCKNEY_STORE=str(shutil.copy(filled_store, tmp_path / "copy.db"))),
    )
    assert done.returncode in (0, 3)
    assert "Traceback" not in done.stderr
    assert "a fault in hockney" not in done.stderr


def test_numpy_starts_no_threads(filled_store: Path) -> None:
    """Each has a buffer: where it does not fit, BLAS ends the process with code 1, as if something were slower."""
    count = "print(len(os.listdir('/proc/self/task')), file=sys.stderr)"
    code = f"import atexit, os, sys; from hockney.cli import main; atexit.register(lambda: {count}); main()"
    done = finished([sys.executable, "-c", code, "explain", "last", "--json", "--store", str(filled_store)])
    assert done.stderr.splitlines()[-1] == "1"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("cpu", 7), ("cpu", None), ("environment", "x"), ("hostname", []), ("network", {"interfaces": 7}), ("os", "x")],
)
@pytest.mark.parametrize("command", ["show 2", "explain 2", "compare 1 2", "runs"])
def test_facts_of_wrong_types_are_no_traceback(
    command: str, name: str, wrong: object, tmp_path: Path, filled_store: Path
) -> None:
    copy = shutil.copy(filled_store, tmp_path / "copy.db")
    with sqlite3.connect(copy) as database:
        facts = json.loads(database.execute("SELECT facts FROM run WHERE id = 2").fetchone()[0])
        database.execute("UPDATE run SET facts = ? WHERE id = 2", [json.dumps({**facts, name: wrong})])
    database.close()
    ended = call_here(tmp_path, *command.split(), HOCKNEY_STORE=str(copy))
    assert "Traceback" not in ended.stderr
    assert "a fault in hockney" not in ended.stderr
    assert ended.returncode in (2, 3)


def test_ctrl_c_is_a_sentence(tmp_path: Path, fake: Fakes) -> None:
    """Doctor is stopped while it waits for a program without output, so that its process reads the signal in time."""
    fake(tmp_path / "git", "exec sleep 600")
    process = subprocess.Popen(
        command_line("doctor"),
        env=environment(tmp_path, PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=let_sigint_in,  # a background job of a shell ignores it
    )
    with killed_at_the_end(process):
        while fake.never_started():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "Traceback" not in said
    assert said.splitlines()[-1] == "hockney: stopped by Ctrl-C"  # it stores nothing
    assert out == ""


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_stopped_measurement_says_how_much_is_kept(has_begun: bool, tmp_path: Path) -> None:
    def stop(display: Display) -> None:
        if has_begun:
            display.begun(1, Plan("test", (Point("shm", "pingpong", 2, 8),)), goes_on=False, precise=0)
        raise KeyboardInterrupt

    said = "everything measured so far is stored" if has_begun else "nothing new was measured yet"
    with (
        pytest.raises(KeyboardInterrupt, match=said),
        measuring("run", tmp_path / "results.db", load()) as lab,
    ):
        stop(lab.display)


def test_results_and_errors_have_separate_streams(cli: Cli, filled_store: Path) -> None:
    good = cli("runs", "--store", str(filled_store))
    assert good.returncode == 0
    assert good.stderr == ""
    bad = cli("show", "last")
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert bad.stderr.startswith("hockney: there are no results in ")


def test_after_a_document_an_error_is_no_second_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    @click.option("--json", "as_json", is_flag=True)
    def shows(as_json: bool) -> None:
        print_json("runs", {"asked": as_json})
        raise StoreError("no store")

    assert execute(["compare", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["format"] == "hockney-error"
    monkeypatch.setattr(commands.Commands, "get_command", lambda *_: shows)
    assert execute(["runs", "--json"]) == 3
    output = capsys.readouterr()
    assert json.loads(output.out) == {"format": "hockney-runs", "version": JSON_VERSION, "asked": True}
    assert output.err == "hockney: no store\n"


def test_exit_codes_of_commands_are_their_return_values(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def worse() -> int:
        return 1

    monkeypatch.setattr(commands.Commands, "get_command", lambda *_: worse)
    assert execute(["runs"]) == 1


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can be another user")
@pytest.mark.parametrize("command", [("runs",), ("list", "transports"), ("run", "pingpong", "-t", "shm")])
def test_a_user_without_a_home_gets_a_sentence(command: tuple[str, ...]) -> None:
    """As in a container that runs under any number: without it the exit code was 1, "worse"."""
    user = ("setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups")
    environment = {name: value for name, value in os.environ.items() if name != "HOME" and not name.startswith("XDG_")}
    environment.pop("HOCKNEY_STORE", None)
    words = [*user, sys.executable, "-I", "-m", "hockney", *command]
    done = finished(words, env=environment, cwd="/")
    assert "this user has no home folder; let HOME name a folder that can be written" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 3


def test_a_store_in_a_home_that_nobody_knows_is_named(cli: Cli) -> None:
    ended = cli("runs", HOCKNEY_STORE="~nobody-of-that-name/r.db")
    assert ended.returncode == 2
    assert "there is no folder ~nobody-of-that-name: make it first" in ended.stderr


def _measured(
    status: RunStatus, *, measurements: int = 9, failed: int = 0, moved: bool = False, damaged: bool = False
) -> Callable[..., RunOutcome]:
    """Stands for hockney.measure.run.measure: a run of one point that ends so."""

    def measure(plan: Plan, lab: Lab, **_: object) -> RunOutcome:
        store = lab.store
        number = store.create_run(make_info(suite=plan.suite), plan.points)
        launch = store.add_launch(number, make_launch())
        for round_ in range(measurements):
            of_round = [make_measurement(point, launch_id=launch, round_=round_) for point in plan.points]
            store.write_round(number, of_round)
        store.finish_run(number, status)
        if damaged:
            store.db.execute("UPDATE measurement SET batch = 0")
        if moved:
            store.path.rename(store.path.with_name("moved.db"))
        return RunOutcome(number, status, failed)

    return measure


@pytest.mark.parametrize(
    ("what", "outcome", "code"),
    [
        ("pingpong", _measured(RunStatus.DONE), 0),
        ("pingpong", _measured(RunStatus.DONE, measurements=5), 3),  # no figure has an interval
        ("pingpong", _measured(RunStatus.PARTIAL, failed=1), 3),
        ("pingpong", _measured(RunStatus.PARTIAL), 3),
        ("pingpong", _measured(RunStatus.STOPPED), 3),
        ("pingpong", _measured(RunStatus.DONE, moved=True), 3),
        ("pingpong", _measured(RunStatus.DONE, damaged=True), 3),
        ("quick", _measured(RunStatus.DONE, measurements=5), 3),  # no figure has an interval, so the sheet is empty
    ],
    ids=["done", "no interval", "failed", "nothing", "stopped", "moved", "damaged", "empty sheet"],
)
def test_each_cause_alone_decides_how_a_run_ends(
    what: str, outcome: Callable[..., RunOutcome], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hockney.cli.measuring.running.measure", outcome)
    arguments = ["run", what, "-t", "shm", *(["--bytes", "8"] if what != "quick" else []), "--store"]
    assert execute([*arguments, str(tmp_path / "r.db")]) == code


@pytest.mark.parametrize(
    "words",
    [
        ("run", "pingpong", "-t", "shm", "--bytes", "8", "--time", "300ms"),
        (
            "compare",
            "--interleave",
            "pingpong",
            "--base-transport",
            "shm",
            "--new-transport",
            "threads",
            "--bytes",
            "8",
        ),
    ],
    ids=["run", "compare"],
)
def test_a_results_file_removed_while_it_is_written_is_noticed(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def removes(store: Store, run_id: int, status: RunStatus) -> None:
        finish(store, run_id, status)
        store.path.unlink(missing_ok=True)

    finish = Store.finish_run
    monkeypatch.setattr(Store, "finish_run", removes)
    path = tmp_path / "r.db"
    time = () if "--time" in words else ("--time", "2s")
    assert execute([*words, *time, "--store", str(path)]) == 3
    ended = capsys.readouterr()
    assert f"the results file {path} was removed, moved or replaced during this run" in ended.err
    assert "hockney show" not in ended.out  # it could not read them
