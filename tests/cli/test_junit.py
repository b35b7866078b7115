"""A JUnit file that can't be written: refused before anything is measured, and later no verdict is kept back."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest
from tests.analysis.compare.made import add_run, curve
from tests.cli.support import call

from hockney.cli import execute, junit
from hockney.results.store import Store

LIMIT = '[[expect]]\ntransports = "shm"\npattern = "pingpong"\nbytes = 8\nlatency = "<= {}"\n'

needs_full = pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a run that takes 1 us, and expectations that it keeps and misses."""
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve())
    for name, limit in (("kept", "1 s"), ("missed", "1 ns")):
        (tmp_path / f"{name}.toml").write_text(LIMIT.format(limit))
    return tmp_path


@pytest.mark.parametrize(
    "arguments", [("--expect", "kept.toml"), ("--expect", "kept.toml", "last"), ("--baseline", "last")]
)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("/dev/full", "no space left on device", marks=needs_full),
        ("/proc/none.xml", "(no such file or directory|permission denied)"),
    ],
)
def test_command_refuses_a_report_that_cannot_be_written_before_it_measures(
    folder: Path, arguments: tuple[str, ...], name: str, said: str
) -> None:
    done = call(folder, "check", *arguments, "--junit", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(f"hockney: cannot write {name}: {said}; name another file\n", done.stderr)
    with Store.open(folder / "results.db", readonly=True) as opened:
        assert len(opened.runs()) == 1


@needs_full
@pytest.mark.parametrize(("code", "ends_with"), [(0, 3), (1, 1), (3, 3)])
def test_a_report_that_cannot_be_written_in_the_end_takes_no_verdict_back(
    capsys: pytest.CaptureFixture[str], code: int, ends_with: int
) -> None:
    assert junit.write_junit(Path("/dev/full"), "title", [], code) == ends_with
    assert capsys.readouterr() == ("", "hockney: cannot write /dev/full: no space left on device\n")


@pytest.mark.parametrize(("limit", "code", "verdict"), [("kept", 3, 0), ("missed", 1, 1)])
@pytest.mark.parametrize("is_json", [False, True])
def test_command_tells_its_verdict_before_the_report_fails(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    limit: str,
    code: int,
    verdict: int,
    is_json: bool,
) -> None:
    """The disk is full once the check has begun."""

    def no_space(path: Path, *_: object) -> None:
        if not begun:
            begun.append(path)
            return
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    begun: list[Path] = []
    monkeypatch.setattr(junit, "_write", no_space)
    monkeypatch.chdir(folder)
    arguments = ["check", "--expect", f"{limit}.toml", "last", "--junit", "j.xml", "--store", "results.db"]
    assert execute([*arguments, *(["--json"] if is_json else [])]) == code
    told = capsys.readouterr()
    if is_json:
        assert json.loads(told.out)["exit_code"] == verdict  # one document
    else:
        assert told.out.splitlines()[-1].startswith(f"{verdict} missed, {1 - verdict} met")
    assert told.err == "hockney: cannot write j.xml: no space left on device\n"
