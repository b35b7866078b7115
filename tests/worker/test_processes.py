"""The CPU time of jobs that have ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil

from hockney.worker.processes import MARK, cpu_time_s, end_job, find_members, new_mark

BUSY = "while True: pass"
USED_S = 0.3


def begun(program: str) -> tuple[subprocess.Popen[bytes], str]:
    """A job that runs a program of the shell, and its mark."""
    mark = new_mark()
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
