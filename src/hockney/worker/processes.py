"""Ends a job for good: the launcher, its helpers and every rank on this host, whoever their parent is by now.

Launchers put ranks into process groups and sessions of their own, and a launcher that dies leaves them to init. So
every process of a job carries a mark in its environment, and what bears the mark is ended.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

MARK = "HOCKNEY_JOB"
"""The environment variable that tells which job a process belongs to."""

_STEP_S = 0.01


@dataclass
class _Orphans:
    """The CPU time in s of processes that init, not their job, has waited for: the kernel does not add it to ours."""

    cpu_s: float = 0.0


_orphans = _Orphans()


def cpu_time_s() -> float:
    """The CPU time in s that this process has used so far, with all of its jobs that have ended."""
    return _cpu_s(resource.RUSAGE_SELF) + _cpu_s(resource.RUSAGE_CHILDREN) + _orphans.cpu_s


def _cpu_s(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def new_mark() -> str:
    """A value for MARK that no other job has."""
    return secrets.token_hex(16)


def end_job(roots: Sequence[subprocess.Popen[bytes]], mark: str, *, polite_s: float = 2.0, hard_s: float = 3.0) -> bool:
    """End every process of a job: SIGTERM to its launchers, so that they clear up, then SIGKILL to all that is left.

    Returns within about polite_s + hard_s whether nothing is left on this host; only a process that the kernel holds
    in an uninterruptible wait can stay. May be called again. Ranks on other hosts are their launcher's to end, and
    end by themselves when it is gone.
    """
    spent = _Spent(roots)
    gone = _end_all(roots, mark, spent, polite_s, hard_s)
    _orphans.cpu_s += max(0.0, spent.most_s - spent.waited_for_s)
    return gone


class _Spent:
    """The CPU time in s of a job that is being ended, the most that was seen of it.

    Who ends meanwhile is waited for by us, which the kernel then counts, or by init.
    """

    def __init__(self, roots: Sequence[subprocess.Popen[bytes]]) -> None:
        self.most_s = 0.0
        self._roots = roots
        self._begin_s = _cpu_s(resource.RUSAGE_CHILDREN)

    @property
    def waited_for_s(self) -> float:
        """That of all for whom we have waited since."""
        return _cpu_s(resource.RUSAGE_CHILDREN) - self._begin_s

    def look(self, members: Iterable[psutil.Process]) -> None:
        """Before any of them is ended, and again before it is ended by force."""
        self.most_s = max(self.most_s, _used_s(self._roots, members) + self.waited_for_s)


def _end_all(
    roots: Sequence[subprocess.Popen[bytes]], mark: str, spent: _Spent, polite_s: float, hard_s: float
) -> bool:
    members = {process.pid: process for process in find_members(roots, mark)}
    spent.look(members.values())
    for root in roots:
        _signal_group(root, signal.SIGTERM)
        _signal_group(root, signal.SIGCONT)  # who is stopped can't clear up
    _wait_until_gone(roots, members.values(), polite_s)
    deadline_s = time.monotonic() + hard_s
    while True:
        # Again and again: a launcher may start another process while its first ones are being ended.
        members |= {process.pid: process for process in find_members(roots, mark)}
        spent.look(members.values())
        for root in roots:
            _signal_group(root, signal.SIGKILL)
        for process in members.values():
            _kill(process)
        if _wait_until_gone(roots, members.values(), 0.2) and not find_members(roots, mark):
            return True
        if time.monotonic() >= deadline_s:
            return False


def find_members(roots: Iterable[subprocess.Popen[bytes]], mark: str) -> list[psutil.Process]:
    """The living processes of a job on this host, but for the roots themselves: descendants, and who bears the mark."""
    import psutil  # 15 ms, and a job that ends by itself needs none of it

    known = {root.pid for root in roots}
    found = {child.pid: child for root in roots for child in _descendants(root)}
    found |= {process.pid: process for process in psutil.process_iter() if _mark_of(process) == mark}
    return [process for pid, process in found.items() if pid not in known and _is_alive(process)]


def living_marks() -> frozenset[str]:
    """The marks of all jobs of which a process runs that can be seen from here."""
    import psutil

    found = (_mark_of(process) for process in psutil.process_iter())
    return frozenset(mark for mark in found if mark is not None)


def _used_s(roots: Iterable[subprocess.Popen[bytes]], members: Iterable[psutil.Process]) -> float:
    """The CPU time in s of those processes that are there, also as zombies, and of all for which they have waited."""
    import psutil

    alive = [root for root in roots if root.returncode is None]
    found = {process.pid: process for root in alive for process in _descendants(root)}
    found |= {process.pid: process for process in members}
    used_s = 0.0
    for process in (*map(_process_of, alive), *found.values()):
        with contextlib.suppress(psutil.Error):
            if process is not None and process.is_running():  # the number still belongs to the same one
                times = process.cpu_times()
                used_s += times.user + times.system + times.children_user + times.children_system
    return used_s


def _process_of(root: subprocess.Popen[bytes]) -> psutil.Process | None:
    import psutil

    with contextlib.suppress(psutil.Error):
        return psutil.Process(root.pid)
    return None


def _descendants(root: subprocess.Popen[bytes]) -> list[psutil.Process]:
    import psutil

    try:
        return psutil.Process(root.pid).children(recursive=True) if root.returncode is None else []
    except psutil.Error:
        return []


def _mark_of(process: psutil.Process) -> str | None:
    import psutil

    try:
        return process.environ().get(MARK)
    except (psutil.Error, OSError):
        return None


def _is_alive(process: psutil.Process) -> bool:
    """A zombie is gone: in a container there may be nobody who reaps it."""
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _kill(process: psutil.Process) -> None:
    import psutil

    try:
        process.kill()  # checks first that the number still belongs to the same process
    except psutil.Error:
        return


def _signal_group(root: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """The group lives as long as one process in it, so its number can't belong to another while root is not reaped."""
    if root.poll() is None:
        try:
            os.killpg(root.pid, number)
        except (ProcessLookupError, PermissionError):
            root.send_signal(number)


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
        time.sleep(_STEP_S)
