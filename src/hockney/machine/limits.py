"""What the system allows programs here: CPU time, memory, /dev/shm, copies between processes, the loopback."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import resource
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hockney.machine.files import ROOT, read_int, read_text
from hockney.units import format_mebibytes

SHARED_BYTES_OF_RANK = 8 << 20
"""The part of /dev/shm that a rank of an MPI may use; Open MPI 4 and 5 and MPICH 4 and 5 take 0.1 to 5.2 MiB."""

_NO_LIMIT = 1 << 60  # cgroup 1 writes a number above all memory


def read_limits(root: Path = ROOT) -> dict[str, Any]:
    """The limits of this process in bytes and CPUs; None: no limit, or unknown, as with another root, for tests.

    `cma`: whether processes may read each other's memory, of which ptrace_scope forbids a part.
    """
    locked_bytes, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return {
        "quota_cpus": read_quota_cpus(root),
        "memory_bytes": read_memory_limit(root),
        "locked_memory_bytes": None if locked_bytes == resource.RLIM_INFINITY else locked_bytes,
        "shared_memory_bytes": free_shared_memory(root),
        "ptrace_scope": read_int(root / "proc/sys/kernel/yama/ptrace_scope"),
        "cma": _may_copy() if root == ROOT else None,
        "loopback": is_loopback_up() if root == ROOT else None,
    }


def free_shared_memory(root: Path = ROOT) -> int | None:
    """The bytes that are free in /dev/shm; None: there is none."""
    try:
        known = os.statvfs(root / "dev/shm")
    except OSError:
        return None
    return known.f_bavail * known.f_frsize


def is_loopback_up() -> bool:
    """Whether packets may go to this host's own address, of IPv4 or IPv6; none is sent."""
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return True
    return False


def _may_copy() -> bool | None:
    """Whether process_vm_readv works from a process of ours, as libraries copy long messages; None: not Linux."""
    try:
        read = ctypes.CDLL(None, use_errno=True).process_vm_readv
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as other:
            start = int((read_text(Path(f"/proc/{other.pid}/maps")) or "0").partition("-")[0], 16)
            to, one, none = ctypes.create_string_buffer(4), ctypes.c_ulong(1), ctypes.c_ulong(0)
            here, there = ((ctypes.c_size_t * 2)(at, 4) for at in (ctypes.addressof(to), start))  # struct iovec
            count = read(other.pid, here, one, there, one, none)
            return count == 4 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS)
    except (OSError, AttributeError):  # cat or the call is not there
        return None


# ---- control groups --------------------------------------------------------------------------------------------------


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's groups, the innermost first: limits hold for all below."""
    for line in (read_text(root / "proc/self/cgroup") or "").splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / controllers
        group = top / path.strip("/")
        # A container may see the path on the host without its folders; the mount point is then its own group.
        yield from (parent for parent in (group, *group.parents) if parent.is_relative_to(top))


def read_quota_cpus(root: Path = ROOT) -> float | None:
    """How many CPUs' worth of time the cgroups of this process may use; None: no limit."""
    quotas = []
    for folder in _groups(root, "cpu"):
        quota, _, period = (read_text(folder / "cpu.max") or "").partition(" ")
        if not quota:  # cgroup 1
            quota, period = (str(read_int(folder / f"cpu.cfs_{name}_us")) for name in ("quota", "period"))
        if quota.isdigit() and period.isdigit():
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def read_memory_limit(root: Path = ROOT) -> int | None:
    """The bytes of memory that the cgroups of this process may use; None: no limit."""
    names = ("memory.max", "memory.limit_in_bytes")
    limits = [read_int(folder / name) for folder in _groups(root, "memory") for name in names]
    return min((limit for limit in limits if limit is not None and limit < _NO_LIMIT), default=None)


def count_oom_kills(root: Path = ROOT) -> int:
    """How many processes the kernel has killed so far because these cgroups were full."""
    names = ("memory.events", "memory.oom_control")  # of cgroup 2 and 1
    texts = [read_text(folder / name) for folder in _groups(root, "memory") for name in names]
    return sum(int(count) for text in texts for count in re.findall(r"^oom_kill (\d+)$", text or "", re.MULTILINE))


def why_killed(number: int, oom_kills_before: int) -> str:
    """The limit for which a process of ours got a signal; empty where none is known."""
    if number == signal.SIGKILL and count_oom_kills() > oom_kills_before:
        return f"its cgroup's memory limit of {format_mebibytes(read_memory_limit())} was reached"
    cpu_s, _ = resource.getrlimit(resource.RLIMIT_CPU)
    if number in (signal.SIGXCPU, signal.SIGKILL) and cpu_s != resource.RLIM_INFINITY:
        return f"processes here may use {cpu_s} s of CPU time each (ulimit -t)"
    return ""
