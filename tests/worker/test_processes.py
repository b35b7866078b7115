"""The CPU time of jobs that have ended, whoever waited for their processes."""

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


def orphans_s() -> float:
    """The CPU time that counts although the kernel does not add it to ours."""
    return cpu_time_s() - sum(os.times()[:4])


def test_a_job_whose_launcher_waits_for_it_counts_once() -> None:
    before_s, orphans_before_s = cpu_time_s(), orphans_s()
    root, mark = begun('exec "$0" -c "$BUSY"')
    wait_until_busy(root, mark)
    assert end_job([root], mark)
    assert cpu_time_s() - before_s >= USED_S
    assert orphans_s() - orphans_before_s < USED_S


def test_orphans_count_too() -> None:
    """Who is left to init by a launcher that is killed would else look like another program."""
    before_s = cpu_time_s()
    root, mark = begun('trap "" TERM; setsid "$0" -c "$BUSY" & sleep 600 & wait')
    wait_until_busy(root, mark)
    assert end_job([root], mark, polite_s=0.1)
    assert cpu_time_s() - before_s >= USED_S


def test_what_an_orphan_does_until_it_is_killed_counts_too() -> None:
    before_s = cpu_time_s()
    root, mark = begun('trap "" TERM; setsid "$0" -c "$BUSY" & sleep 600 & wait')
    wait_until_busy(root, mark)
    assert end_job([root], mark, polite_s=2.0)
    assert cpu_time_s() - before_s >= USED_S + 0.2
