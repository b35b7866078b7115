"""Text on a terminal or in a report: nothing in it controls the terminal, and no width hangs it."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_info
from tests.cli.support import FACTS, make_measurement
from tests.matrix import matrix
from tests.report.runs import store_quick

from hockney.cli import execute
from hockney.model import Launch, Point, PointStatus, RunStatus, Warning_
from hockney.render import streams
from hockney.render import terminal as tty
from hockney.results.store import Store

EVIL = "a\x1b[2Jb\x9b31mc\x07d\re\u202ef\u2066g\u2028h\x00i"
STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def evil(value: Any) -> Any:
    """With EVIL in every text."""
    if isinstance(value, str):
        return value + EVIL
    if isinstance(value, dict):
        return {evil(key) if key not in ("cpu", "hostname", "model") else key: evil(v) for key, v in value.items()}
    return tuple(map(evil, value)) if isinstance(value, tuple) else value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two runs in which every text that a library, a host or a file may have given holds EVIL."""
    where = tmp_path / "r.db"
    shm = f"shm@{EVIL}"
    with Store.open(where) as store:
        for _ in range(2):
            points = [Point(shm, "pingpong", 2, size, (("algorithm", EVIL),)) for size in (8, 64, 512, 4096)]
            failed, skipped = (Point(name, f"pattern{EVIL}", 2, 8) for name in ("tcp", shm))
            info = replace(make_info(EVIL), command=f"hockney run {EVIL}", suite=f"mine{EVIL}", facts=evil(FACTS))
            number = store.create_run(replace(info, version=EVIL), [*points, failed], {skipped: f"why{EVIL}"})
            argv, hosts = (evil(("mpiexec", "-n")), evil(("h1", "h2")))
            launch = Launch(shm, f"library{EVIL}", 2, 1.0, argv, (0, 1), hosts, oversubscribed=True, clock_ns=20.0)
            launch_id = store.add_launch(number, launch)
            for round_ in range(8):
                measurements = [
                    make_measurement(point, launch_id, round_, 40.0 + point.bytes / 10, 27.0) for point in points
                ]
                definitions = [replace(measurement.definition, algorithm=EVIL) for measurement in measurements]
                store.write_round(
                    number, [replace(v, definition=d) for v, d in zip(measurements, definitions, strict=True)]
                )
            store.set_status(number, failed, PointStatus.FAILED, f"rank 1 said {EVIL}")
            store.add_warning(number, Warning_("load", EVIL, f"cause{EVIL}", f"remedy `hockney show {EVIL}`"))
            store.finish_run(number, RunStatus.PARTIAL)
    return where


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
@pytest.mark.parametrize(
    "words",
    [
        (), ("runs",), ("show", "1"), ("show", "--by-size"), ("show", "1", "--json"), ("show", "1", "--pattern", EVIL),
        ("explain", "1"), ("explain", "1", "--all"), ("compare", "1", "2"), ("compare", "1", "2", "--json"),
        ("export", "1", "--csv"), ("export", "1", "--json", "--samples"), ("runs", "--label", "1", EVIL),
        ("show", EVIL), ("run", EVIL), ("run", "pingpong", "-t", EVIL), (EVIL,), ("run", f"{EVIL}.toml"),
        ("check", "--baseline", EVIL), ("export", "1", "-o", f"no/{EVIL}"), ("delete", "1"),
    ],
    ids=lambda words: " ".join(words).replace(EVIL, "EVIL"),
)  # fmt: skip
def test_texts_of_a_store_or_a_command_line_cannot_control_a_terminal(
    words: tuple[str, ...],
    terminal: bool,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(tty, "is_terminal", lambda: terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("XDG_STATE_HOME", str(path.parent))
    words = tuple(word.replace("\x00", "") for word in words)  # which no argument of a program holds
    execute([*words, "--store", str(path)] if words else ["--store", str(path)])
    output = capsys.readouterr()
    for text in (output.out, output.err):
        assert not STEERS.search(text), repr(text)
    assert "a fault in hockney" not in output.err
    assert "\\x1b" in output.out + output.err or "\\u001b" in output.out or "a label is" in output.err


def test_texts_of_a_suite_or_the_report_of_a_check_cannot_control_a_terminal(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite, expected, report = tmp_path / "mine.toml", tmp_path / "expect.toml", tmp_path / "junit.xml"
    title = json.dumps(EVIL)  # an escape of TOML, too
    suite.write_text(f'name = "mine"\ntitle = {title}\n[[series]]\npattern = "pingpong"\noptions = {{ {title} = 1 }}\n')
    expected.write_text('[[expect]]\npattern = "pingpong"\ntransports = "shm@*"\nlatency = "<= 1 ns"\n')
    execute(["list", "suites", str(suite), "--store", str(path)])
    execute(["check", "--expect", str(expected), "1", "--junit", str(report), "--store", str(path)])
    output = capsys.readouterr()
    assert not STEERS.search(output.out + output.err)
    assert not STEERS.search(report.read_text(encoding="utf-8"))


WIDTHS = ["999999999", "0", "1", "-5", "abc", "", "9" * 5000, "1e3", " 80", "\u0664"]


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_line_has_a_width_whatever_is_asked_for(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for terminal in (False, True):
        monkeypatch.setattr(tty, "is_terminal", lambda terminal=terminal: terminal)
        assert 20 <= tty.line_width() <= 1000


@pytest.mark.parametrize("columns", matrix(["999999999", "1", "abc"], short=["999999999"]))  # all others are as one
def test_an_impossible_width_of_a_terminal_is_replaced_by_a_possible_one(
    columns: str, filled_store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for terminal in (False, True):
        monkeypatch.setattr(tty, "is_terminal", lambda terminal=terminal: terminal)
        for words in (("show", "2"), ("show", "--by-size"), ("runs",), ("explain",), ("list",)):
            assert execute([*words, "--store", str(filled_store)]) in (0, 3)
            output = capsys.readouterr().out
            assert output
            assert max(map(len, output.splitlines())) <= 1000


SCREENS = (
    ("show",),
    ("show", "--states"),
    ("show", "--by-size"),
    ("show", "--tables"),
    ("show", "--tables", "-v"),
    ("show", "--plot"),
    ("explain",),
    ("explain", "--all"),
    ("explain", "1"),
    ("compare", "1", "last"),
    ("compare", "last~1", "last"),
    ("compare", "last~1", "last", "--all"),
    ("runs",),
    ("explain", "--machine", "t3d"),
)


LAUNCHES = tuple({"index": number} for number in range(3))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three recorded runs of quick, with the longest names: one of one launch, two of three."""
    path = tmp_path_factory.mktemp("recorded") / "r.db"
    for launches in (LAUNCHES[:1], LAUNCHES, LAUNCHES):
        store_quick(path, "shm", "tcp:spin", "mpi@openmpi-4.1.4", "mpi@mpich-5.0.2", launches=launches)
    return path


@pytest.mark.parametrize("width", matrix([60, 80, 100], short=[60]))
def test_screens_of_recorded_runs_fit_the_width(
    width: int, recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only a command or an address may be longer, on a separate line."""
    monkeypatch.setattr(tty, "is_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("HOCKNEY_STORE", str(recorded))
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in SCREENS:
        assert execute(arguments) in (0, 3)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) > 1
        long = [line for line in lines if len(line) > width]
        assert [line for line in long if not re.fullmatch(r" *(`[^`]*`[.;]?|https://\S+)", line)] == [], arguments


def test_compare_shows_both_times_on_80_columns(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert execute(["compare", "last~1", "last", "--all", "--store", str(recorded)]) in (0, 3)
    titles = capsys.readouterr().out.split("verdict")[0].split()
    assert {"series", "base", "new"} <= {*titles}


def test_a_passing_line_is_removed_from_a_terminal_and_not_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with streams.passing("compiling native"):
        assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with streams.passing("compiling native"):
        assert capsys.readouterr().err == "compiling native ..."
    assert capsys.readouterr().err == f"\r{' ' * 20}\r"
