"""How jobs and other programs are ended, and the CPU time that jobs took."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hockney.worker.processes import MARK, cpu_time_s, end_job, find_members
from hockney.worker.programs import run_program

BUSY = "while True: pass"
USED_S = 0.3


def begun(program: str) -> tuple[subprocess.Popen[bytes], str]:
    """A job that runs a program of the shell, and its mark."""
    mark = secrets.token_hex(16)
    environment = {**os.environ, MARK: mark, "BUSY": BUSY}
    return subprocess.Popen([*("sh", "-c", program), sys.executable], env=environment, start_new_session=True), mark


def wait_until_busy(root: subprocess.Popen[bytes], mark: str) -> None:
    """Until a process of the job has used USED_S of CPU time."""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        for process in (psutil.Process(root.pid), *find_members([root], mark)):
            times = process.cpu_times()
            if times.user + times.system >= USED_S:
                return
        time.sleep(0.01)
    raise AssertionError("the job never became busy")


def test_a_job_that_has_ended_counts() -> None:
    before_s = cpu_time_s()
    root, mark = begun('exec "$0" -c "$BUSY"')
    wait_until_busy(root, mark)
    assert end_job([root], mark)
    assert cpu_time_s() - before_s >= USED_S


def test_a_process_that_outlives_its_launcher_may_clear_up(tmp_path: Path) -> None:
    """The launcher ends at once; its rank takes a moment."""
    ready, done = tmp_path / "ready", tmp_path / "done"
    rank = f"trap 'sleep 0.2; touch {done}; exit' TERM; touch {ready}; while :; do sleep 0.01; done"
    root, mark = begun(f"({rank}) & exec sleep 60")
    deadline_s = time.monotonic() + 60
    while not ready.exists():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    assert end_job([root], mark)
    assert done.exists()


def test_processes_that_ignore_sigterm_are_killed(tmp_path: Path) -> None:
    """Also one of a session of its own, as those that launchers start."""
    ready = tmp_path / "ready"
    deaf = "trap '' TERM; echo >>$READY; while :; do sleep 0.1; done"
    mark = secrets.token_hex(16)
    environment = {**os.environ, MARK: mark, "READY": str(ready), "DEAF": deaf}
    program = 'setsid sh -c "$DEAF" & sh -c "$DEAF" & eval "$DEAF"'
    root = subprocess.Popen(["sh", "-c", program], env=environment, start_new_session=True)
    deadline_s = time.monotonic() + 60
    while not ready.exists() or len(ready.read_text().splitlines()) < 3:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    assert len(find_members([root], mark)) >= 2
    assert end_job([root], mark)
    assert root.returncode == -signal.SIGKILL
    assert find_members([root], mark) == []


# ---- programs -------------------------------------------------------------------------------------------------------


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
