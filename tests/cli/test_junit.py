"""A JUnit file that cannot be written: refused before anything is measured, or after the verdict is printed."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest
from tests.analysis.compare.made import add_run, curve
from tests.cli.support import call_here

from hockney.cli import check, execute
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
        pytest.param("/dev/full", "write the output: no space left on device", marks=needs_full),
        ("/proc/none.xml", "use /proc/none.xml: (no such file or directory|permission denied)"),
    ],
)
def test_command_refuses_a_report_that_cannot_be_written_before_it_measures(
    folder: Path, arguments: tuple[str, ...], name: str, said: str
) -> None:
    done = call_here(folder, "check", *arguments, "--junit", name)
    assert (done.returncode, done.stdout) == (3, "")
    assert re.fullmatch(f"hockney: cannot {said}\n", done.stderr)
    with Store.open(folder / "results.db", readonly=True) as opened:
        assert len(opened.runs()) == 1


@pytest.mark.parametrize("is_json", [False, True])
def test_command_prints_its_verdict_before_the_report_fails(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, is_json: bool
) -> None:
    """The disk is full once the check has begun."""

    def no_space(path: Path, *_: object) -> None:
        if begun:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        begun.append(path)

    begun: list[Path] = []
    monkeypatch.setattr(check, "write_junit", no_space)
    monkeypatch.chdir(folder)
    arguments = ["check", "--expect", "missed.toml", "last", "--junit", "j.xml", "--store", "results.db"]
    assert execute([*arguments, *(["--json"] if is_json else [])]) == 3
    printed = capsys.readouterr()
    if is_json:
        assert json.loads(printed.out)["exit_code"] == 1  # one document
    else:
        assert printed.out.splitlines()[-1].startswith("1 missed, 0 met")
    assert printed.err == "hockney: cannot use j.xml: no space left on device\n"
