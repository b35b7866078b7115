"""What others take of this machine: CPU time stolen by a hypervisor, and CPU time that other programs use."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from hockney.machine.files import ROOT, read_text

# Columns of a `cpu` line in /proc/stat. Guests are counted in user and nice already.
_USER, _NICE, _SYSTEM, _IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL = range(8)
_OF_PROGRAMS = (_USER, _NICE, _SYSTEM)
_BUSY = (*_OF_PROGRAMS, _IRQ, _SOFTIRQ)
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# A clock tick is 10 ms: one of them may have been due before we looked.
_STEAL_TICKS_MIN = 2
_PROGRAM_CPUS_MIN = 0.1
_WATCH_MIN_S = 0.3  # in less, the ticks that are due on each CPU would look like a program
_NAMED_MAX = 3
# Columns of /proc/PID/stat after the name.
_FLAGS, _UTIME, _STIME, _BEGAN = 6, 11, 12, 19
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD, of the flags

_Programs = dict[tuple[int, int], tuple[str, int]]
"""(process, when it began) -> name, and clock ticks of CPU time so far."""


@dataclass(frozen=True)
class _Ticks:
    total: int
    programs: int
    busy: int  # programs and interrupts
    steal: int


def _read_ticks(root: Path, cpus: frozenset[int] | None) -> _Ticks | None:
    """CPU time in clock ticks since the start, over `cpus` (None: all); None where nobody counts it."""
    names = {"cpu"} if cpus is None else {f"cpu{cpu}" for cpu in cpus}
    found = total = programs = busy = steal = 0
    for line in (read_text(root / "proc/stat") or "").splitlines():
        name, *words = line.split()
        if name in names and len(words) > _STEAL and all(word.isdigit() for word in words[: _STEAL + 1]):
            columns = [int(word) for word in words[: _STEAL + 1]]
            found += 1
            total += sum(columns)
            programs += sum(columns[column] for column in _OF_PROGRAMS)
            busy += sum(columns[column] for column in _BUSY)
            steal += columns[_STEAL]
    return _Ticks(total, programs, busy, steal) if found else None


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
class _Look:
    at_s: float
    ticks: _Ticks | None
    own_s: float
    programs: _Programs


@dataclass(frozen=True)
class Program:
    """A running program that isn't ours, and how many CPUs it used."""

    name: str
    pid: int
    cpus: float


@dataclass(frozen=True)
class Moment:
    """What others took of the usable CPUs while we slept, or while we measured (Watch).

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
    return Moment(
        duration_s,
        steal=stolen / passed if stolen >= _STEAL_TICKS_MIN else 0.0,
        busy_cpus=max(0, after.busy - before.busy) / ticks_per_cpu,
        programs=_busiest(programs_before, programs_after, ticks_per_cpu)[:_NAMED_MAX],
    )


class Watch:
    """What other programs take from one look to the next, while jobs of ours begin and end between them.

    Two counts say it, and the larger is told. The first is what all programs used but for what we
    did. Interrupts are left out: where the kernel counts them apart, nobody can say whose they were, and where it does
    not, ours are among what we used. The second is what those programs used that are there at the later look: where
    ranks sleep and wake, clock ticks miss some of the first.
    """

    def __init__(
        self,
        own_cpu_s: Callable[[], float],
        cpus: Iterable[int] | None = None,
        *,
        root: Path = ROOT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`own_cpu_s` tells the CPU time in s that this process and its jobs have used, `cpus` (None: all) where."""
        self._own_cpu_s = own_cpu_s
        self._cpus = frozenset(cpus) if cpus is not None else None
        self._root = root
        self._clock = clock
        self._last = self._look()

    def read(self) -> Moment | None:
        """What others took since the last read (or since the start); None where unknown, or after less than 0.3 s.

        All jobs of ours must have ended. Steal is a StealMeter's to tell.
        """
        last, now = self._last, self._look()
        self._last = now
        duration_s = now.at_s - last.at_s
        if last.ticks is None or now.ticks is None or duration_s < _WATCH_MIN_S:
            return None
        all_s = (now.ticks.programs - last.ticks.programs) / _TICKS_PER_S
        found = _busiest(last.programs, now.programs, _TICKS_PER_S * duration_s)
        seen_cpus = math.fsum(program.cpus for program in found) if self._are_all() else 0.0
        rest_cpus = (all_s - (now.own_s - last.own_s)) / duration_s
        return Moment(duration_s, busy_cpus=max(rest_cpus, seen_cpus), programs=found[:_NAMED_MAX])

    def _are_all(self) -> bool:
        """Whether all CPUs are watched: which of them a program used is not told."""
        return self._cpus is None or len(self._cpus) >= _count_cpus(self._root)

    def _look(self) -> _Look:
        return _Look(self._clock(), _read_ticks(self._root, self._cpus), self._own_cpu_s(), _read_programs(self._root))


def _count_cpus(root: Path) -> int:
    lines = (read_text(root / "proc/stat") or "").splitlines()
    return sum(1 for line in lines if line.startswith("cpu") and line[3:4].isdigit())


def _read_programs(root: Path) -> _Programs:
    """All programs but this process, with the CPU time of each so far."""
    found: _Programs = {}
    own = str(os.getpid())
    try:
        entries = os.listdir(root / "proc")  # noqa: PTH208 - a thousand Paths cost more than what is read
    except OSError:
        return found
    for entry in entries:
        if not entry.isdigit() or entry == own:
            continue
        # `123 (a name) S …`: the name may hold blanks and brackets, so look for the last one.
        head, _, tail = (read_text(root / "proc" / entry / "stat") or "").rpartition(")")
        columns = tail.split()
        if len(columns) <= _BEGAN or not all(columns[place].isdigit() for place in (_FLAGS, _UTIME, _STIME, _BEGAN)):
            continue
        # A rank that was killed may stay a zombie: its time is ours.
        if not int(columns[_FLAGS]) & _KERNEL_THREAD and columns[0] != "Z":
            ticks = int(columns[_UTIME]) + int(columns[_STIME])
            found[int(entry), int(columns[_BEGAN])] = (head.partition("(")[2], ticks)
    return found


def _busiest(before: _Programs, after: _Programs, ticks_per_cpu: float) -> tuple[Program, ...]:
    """The programs that used CPUs between two looks, the busiest first; who began meanwhile did all its work then."""
    used = (
        Program(name, pid, (ticks - before.get((pid, began), (name, 0))[1]) / ticks_per_cpu)
        for (pid, began), (name, ticks) in after.items()
    )
    return tuple(sorted((one for one in used if one.cpus >= _PROGRAM_CPUS_MIN), key=lambda one: -one.cpus))
