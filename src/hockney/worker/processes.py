"""Ends a job completely: the launcher, its helpers and every rank on this host, including those adopted by init.

Launchers put ranks into new process groups and sessions, and a launcher that dies leaves them to init. So every process
of a job carries a mark in its environment, and every process with the mark is ended.

A library removes its shared memory only when it ends normally. A file counts as a job's if one of its processes had it
mapped, and its name is one that libraries give to the memory of a single job.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil

MARK = "HOCKNEY_JOB"
"""The environment variable that says which job a process belongs to."""

# MPICH; Open MPI 4 and 5; libfabric.
_SHARED_MEMORY = re.compile(r"/dev/shm/(?:mpich_shm_|vader_segment\.|sm_segment\.|\d+:\d+:)[^/ ]+$", re.MULTILINE)


def cpu_time_s() -> float:
    """The CPU time in s that this process has used so far, with all of its jobs that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def allow_files(count: int) -> None:
    """Raise the soft limit of open files so that this process may keep `count` more. Raises OSError if it cannot."""
    wanted = sum(1 for _ in Path("/dev/fd").iterdir()) + count + 64  # some are open for a moment only
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise OSError(f"it needs {wanted:,} open files, and this system allows {hard:,} (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def end_job(roots: Sequence[subprocess.Popen[bytes]], mark: str) -> bool:
    """End every process of a job: SIGTERM to its launchers, so that they clear up, then SIGKILL to all that is left.

    Returns within about 5 s whether nothing is left on this host; only a process that the kernel holds in an
    uninterruptible wait can stay. May be called again. Ranks on other hosts are their launcher's to end, and end by
    themselves when it is gone.
    """
    members = {process.pid: process for process in find_members(roots, mark)}
    for root in roots:
        _signal_group(root, signal.SIGTERM)
        _signal_group(root, signal.SIGCONT)  # a stopped process can't clear up
    _wait_until_gone(roots, members.values(), 2.0)
    deadline_s = time.monotonic() + 3.0
    while True:
        # Again and again: a launcher may start another process while its first ones are being ended.
        members |= {process.pid: process for process in find_members(roots, mark)}
        for root in roots:
            _signal_group(root, signal.SIGKILL)
        for process in members.values():
            with contextlib.suppress(psutil.Error):
                process.kill()  # checks first that the number still belongs to the same process
        if _wait_until_gone(roots, members.values(), 0.2) and not find_members(roots, mark):
            return True
        if time.monotonic() >= deadline_s:
            return False


def find_members(roots: Iterable[subprocess.Popen[bytes]], mark: str) -> list[psutil.Process]:
    """The living processes of a job on this host except the roots: descendants, and all that bear the mark."""
    roots = list(roots)
    members, children = {}, defaultdict[int, list[psutil.Process]](list)
    for process in psutil.process_iter(["environ", "ppid"]):  # once: a job may have a thousand roots
        children[process.info["ppid"]].append(process)
        if (process.info["environ"] or {}).get(MARK) == mark:  # None without permission
            members[process.pid] = process
    parents = [root.pid for root in roots if root.returncode is None]
    while parents:
        for child in children.pop(parents.pop(), ()):
            members[child.pid] = child
            parents.append(child.pid)
    known = {root.pid for root in roots}
    return [process for pid, process in members.items() if pid not in known and _is_alive(process)]


def _is_alive(process: psutil.Process) -> bool:
    """Whether a process runs. A zombie does not: a container may have no process that reaps it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _signal_group(root: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """The group lives as long as one of its processes: its number is not reused while root is not reaped."""
    if root.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(root.pid, number)


def _wait_until_gone(
    roots: Sequence[subprocess.Popen[bytes]], members: Iterable[psutil.Process], limit_s: float
) -> bool:
    left = list(members)
    deadline_s = time.monotonic() + limit_s
    while True:
        left = [process for process in left if _is_alive(process)]
        if not left and all(root.poll() is not None for root in roots):
            return True
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(0.01)


def shared_memory_of(pids: Iterable[int]) -> frozenset[Path]:
    """The files in shared memory that processes of this host use now; those that can't be asked have none."""
    names: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            names.update(_SHARED_MEMORY.findall(Path(f"/proc/{pid}/maps").read_text(errors="replace")))
    return frozenset(map(Path, names))


def remove_unused(files: Iterable[Path]) -> None:
    """Remove the files that exist, are this user's, and are unused. Files that can't be removed stay."""
    left = {path for path in files if path.exists()}
    if left:
        left -= shared_memory_of(int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
    for path in left:
        with contextlib.suppress(OSError):  # its library may be quicker
            if path.lstat().st_uid == os.geteuid():
                path.unlink()
