"""Other programs: their output, and nothing of them that stays when their time is up."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import psutil
import pytest

from hockney.worker.programs import run_program


def test_a_program_reads_and_says() -> None:
    done = run_program(["sh", "-c", "cat; echo no >&2; exit 3"], 60, data=b"\xff1", environment={"PATH": "/bin"})
    assert (done.stdout, done.stderr, done.returncode) == (b"\xff1", b"no\n", 3)


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        run_program(["/nowhere"], 60)


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_processes_of_a_program_end_with_it_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number = tmp_path / "number"

    def time_is_up_once_it_has_started(program: subprocess.Popen[bytes], data: bytes, timeout: float) -> None:
        while not number.exists() or not number.read_text().endswith("\n"):
            time.sleep(0.01)
        raise subprocess.TimeoutExpired(program.args, timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", time_is_up_once_it_has_started)
    with pytest.raises(subprocess.TimeoutExpired):
        run_program(["sh", "-c", f"sleep 600 & echo $! >{number}; wait"], 2)
    deadline_s = time.monotonic() + 60
    while is_alive(int(number.read_text())):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_ctrl_c_is_not_lost_where_the_program_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Popen waits a moment after Ctrl-C, and reaps what ends in it."""

    def interrupted(process: subprocess.Popen[bytes], *_: object, **__: object) -> None:
        process.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        run_program(["true"], 10)
    assert caught.value.__context__ is None
