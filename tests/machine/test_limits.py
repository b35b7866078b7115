"""Limits of the system, from the files of fake machines; tests/measure/test_surroundings.py makes real ones."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest
from tests.machine.trees import grow

from hockney.machine import limits
from hockney.machine.limits import count_oom_kills, read_limits, read_memory_limit, why_killed

_TWO = {"proc/self/cgroup": "0::/job/step\n"}  # cgroup 2
_ONE = {"proc/self/cgroup": "9:pids:/\n4:memory:/job\n0::/\n"}  # cgroup 1
_JOB, _MEMORY = "sys/fs/cgroup/job", "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("files", "limit_bytes"),
    [
        ({}, None),
        ({**_TWO, f"{_JOB}/step/memory.max": "max\n"}, None),
        ({**_TWO, f"{_JOB}/step/memory.max": "max\n", f"{_JOB}/memory.max": "1048576\n"}, 1 << 20),
        ({**_TWO, "sys/fs/cgroup/memory.max": "1048576\n"}, 1 << 20),  # a container sees the mount point only
        ({**_ONE, f"{_MEMORY}/job/memory.limit_in_bytes": "9223372036854771712\n"}, None),
        ({**_ONE, f"{_MEMORY}/job/memory.limit_in_bytes": "1048576\n"}, 1 << 20),
    ],
)
def test_the_tightest_memory_limit_counts(files: dict[str, str], limit_bytes: int | None, tmp_path: Path) -> None:
    assert read_memory_limit(grow(tmp_path, files)) == limit_bytes
    assert read_limits(tmp_path)["memory_bytes"] == limit_bytes


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({}, 0),
        ({**_TWO, f"{_JOB}/step/memory.events": "low 0\noom 3\noom_kill 2\noom_group_kill 0\n"}, 2),
        ({**_ONE, f"{_MEMORY}/job/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"}, 5),
    ],
)
def test_processes_that_a_memory_limit_killed_are_counted(files: dict[str, str], count: int, tmp_path: Path) -> None:
    assert count_oom_kills(grow(tmp_path, files)) == count


@pytest.mark.parametrize(
    ("number", "kills", "why"),
    [
        (signal.SIGKILL, 3, "its cgroup's memory limit of 200 MiB was reached"),
        (signal.SIGKILL, 2, ""),
        (signal.SIGSEGV, 3, ""),
    ],
)
def test_only_a_kill_that_was_counted_is_of_the_memory_limit(
    number: int, kills: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "count_oom_kills", lambda: kills)
    monkeypatch.setattr(limits, "read_memory_limit", lambda: 200 << 20)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert why_killed(number, 2) == why
