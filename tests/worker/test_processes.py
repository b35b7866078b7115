"""How jobs are ended, and the CPU time that they took."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from hockney.worker.processes import MARK, cpu_time_s, end_job, find_members

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
