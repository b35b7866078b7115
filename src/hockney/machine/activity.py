"""What others take of this machine: CPU time stolen by a hypervisor, and CPU time that other programs use."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from hockney.machine.files import ROOT, read_text

# Columns of a `cpu` line in /proc/stat. Guests are counted in user and nice already.
_USER, _NICE, _SYSTEM, _IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL = range(8)
_BUSY = (_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ)
# A clock tick is 10 ms: one of them may have been due before we looked.
_STEAL_TICKS_MIN = 2
_PROGRAM_CPUS_MIN = 0.1


@dataclass(frozen=True)
class _Ticks:
    total: int
    busy: int
    steal: int


def _read_ticks(root: Path, cpus: frozenset[int] | None) -> _Ticks | None:
    """CPU time in clock ticks since the start, over `cpus` (None: all); None where nobody counts it."""
    names = {"cpu"} if cpus is None else {f"cpu{cpu}" for cpu in cpus}
    found = total = busy = steal = 0
    for line in (read_text(root / "proc/stat") or "").splitlines():
        name, *words = line.split()
        if name in names and len(words) > _STEAL and all(word.isdigit() for word in words[: _STEAL + 1]):
            columns = [int(word) for word in words[: _STEAL + 1]]
            found += 1
            total += sum(columns)
            busy += sum(columns[column] for column in _BUSY)
            steal += columns[_STEAL]
    return _Ticks(total, busy, steal) if found else None


class StealMeter:
    """Which part of the CPU time a hypervisor took between two looks."""

    def __init__(self, cpus: Iterable[int] | None = None, *, root: Path = ROOT) -> None:
        """`cpus` are those to watch: where others stand idle, steal would seem small. None watches all."""
        self._cpus = frozenset(cpus) if cpus is not None else None
        self._root = root
        self._last = _read_ticks(root, self._cpus)

    def read(self) -> float | None:
        """The fraction stolen since the last read (or since the start): 0 to 1; None where unknown.

        Ticks last 10 ms. Before the first of them has passed the answer is None too, and the time counts next time.
        """
        now = _read_ticks(self._root, self._cpus)
        last = self._last
        if now is None or last is None or now.total <= last.total:
            return None
        self._last = now
        return max(0, now.steal - last.steal) / (now.total - last.total)


@dataclass(frozen=True)
class Program:
    """A running program that isn't ours, and how many CPUs it used."""

    name: str
    pid: int
    cpus: float


@dataclass(frozen=True)
class Moment:
    """What others took of the usable CPUs while we slept.

    `steal` is the fraction of CPU time stolen, None where unknown or too little to tell from none in so short a time.
    `busy_cpus` is how many CPUs' worth of time programs used; `programs` are the busiest, as far as they can be seen.
    """

    duration_s: float
    steal: float | None = None
    busy_cpus: float | None = None
    programs: tuple[Program, ...] = ()


def observe(
    duration_s: float = 0.3,
    cpus: Iterable[int] | None = None,
    *,
    root: Path = ROOT,
    sleep: Callable[[float], None] = time.sleep,
) -> Moment:
    """Do nothing for a moment and see who else uses the CPUs (None: all)."""
    watched = frozenset(cpus) if cpus is not None else None
    programs_before = _read_programs(root)  # outside of the ticks, for this takes its time where many programs are
    before = _read_ticks(root, watched)
    sleep(duration_s)
    after = _read_ticks(root, watched)
    programs_after = _read_programs(root)
    if before is None or after is None or after.total <= before.total:
        return Moment(duration_s)
    passed = after.total - before.total
    stolen = max(0, after.steal - before.steal)
    count = len(watched) if watched is not None else _count_cpus(root)
    ticks_per_cpu = passed / max(1, count)
    used = [
        Program(name, pid, (ticks - programs_before.get((pid, name), ticks)) / ticks_per_cpu)
        for (pid, name), ticks in programs_after.items()
    ]
    return Moment(
        duration_s,
        steal=stolen / passed if stolen >= _STEAL_TICKS_MIN else 0.0,
        busy_cpus=max(0, after.busy - before.busy) / ticks_per_cpu,
        programs=tuple(sorted((p for p in used if p.cpus >= _PROGRAM_CPUS_MIN), key=lambda p: -p.cpus)[:3]),
    )


def _count_cpus(root: Path) -> int:
    lines = (read_text(root / "proc/stat") or "").splitlines()
    return sum(1 for line in lines if line.startswith("cpu") and line[3:4].isdigit())


def _read_programs(root: Path) -> dict[tuple[int, str], int]:
    """(process, name) -> clock ticks of CPU time so far, without this process."""
    ticks: dict[tuple[int, str], int] = {}
    own = str(os.getpid())
    try:
        entries = os.listdir(root / "proc")  # noqa: PTH208 - a thousand Paths cost more than what is read
    except OSError:
        return ticks
    for entry in entries:
        if not entry.isdigit() or entry == own:
            continue
        # `123 (a name) S …`: the name may hold blanks and brackets, so look for the last one.
        head, _, tail = (read_text(root / "proc" / entry / "stat") or "").rpartition(")")
        columns = tail.split()
        if len(columns) > 12 and columns[11].isdigit() and columns[12].isdigit():
            ticks[int(entry), head.partition("(")[2]] = int(columns[11]) + int(columns[12])
    return ticks
