"""What others use of this machine: CPU time stolen by a hypervisor, and CPU time of other programs."""

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
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_STEAL_TICKS_MIN = 2  # a tick lasts 10 ms, and a single one may have been due before the first look
_PROGRAM_CPUS_MIN = 0.1
_WATCH_MIN_S = 0.3  # in less time, one tick on each CPU would look like a program
_NAMED_MAX = 3
# Columns of /proc/PID/stat after the name.
_FLAGS, _UTIME, _STIME, _BEGAN = 6, 11, 12, 19
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD, of the flags

_Programs = dict[tuple[int, int], tuple[str, int]]
"""(process, when it began) -> name, and clock ticks of CPU time so far."""


@dataclass(frozen=True)
class Program:
    """A running program that is not ours, and how many CPUs it used."""

    name: str
    pid: int
    cpus: float


@dataclass(frozen=True)
class Moment:
    """What others used of the usable CPUs while we slept (observe) or measured (Watch).

    `steal`: the fraction of CPU time stolen; None where unknown. `busy_cpus`: how many CPUs' worth of time programs
    used. `programs`: the busiest, as far as they can be seen.
    """

    duration_s: float
    steal: float | None = None
    busy_cpus: float | None = None
    programs: tuple[Program, ...] = ()


class StealMeter:
    """The part of the CPU time that a hypervisor took between two reads."""

    def __init__(self, cpus: Iterable[int] | None = None, *, root: Path = ROOT) -> None:
        """`cpus` are those to watch, None all: next to many idle CPUs, steal would seem small."""
        self._cpus = frozenset(cpus) if cpus is not None else None
        self._root = root
        self._last = _read_ticks(root, self._cpus)

    def read(self) -> float | None:
        """The fraction stolen since the last read (or the start), 0 to 1; None where unknown.

        Before the first clock tick has passed it is None too, and the time counts in the next read.
        """
        now, last = _read_ticks(self._root, self._cpus), self._last
        if now is None or last is None or now.total <= last.total:
            return None
        self._last = now
        return max(0, now.steal - last.steal) / (now.total - last.total)


def observe(
    duration_s: float = 0.3,
    cpus: Iterable[int] | None = None,
    *,
    root: Path = ROOT,
    sleep: Callable[[float], None] = time.sleep,
) -> Moment:
    """Sleep for a moment and return what others used of the CPUs (None: all)."""
    watched = frozenset(cpus) if cpus is not None else None
    programs_before = _read_programs(root)  # outside of the ticks: it takes long where there are many programs
    before = _read_ticks(root, watched)
    sleep(duration_s)
    after = _read_ticks(root, watched)
    programs_after = _read_programs(root)
    if before is None or after is None or after.total <= before.total:
        return Moment(duration_s)
    passed = after.total - before.total
    stolen = max(0, after.steal - before.steal)
    ticks_per_cpu = passed / max(1, len(watched) if watched is not None else _count_cpus(root))
    return Moment(
        duration_s,
        steal=stolen / passed if stolen >= _STEAL_TICKS_MIN else 0.0,
        busy_cpus=max(0, after.busy - before.busy) / ticks_per_cpu,
        programs=_busiest(programs_before, programs_after, ticks_per_cpu)[:_NAMED_MAX],
    )


class Watch:
    """What other programs use between two reads, while jobs of ours begin and end.

    The larger of two counts: the CPU time of all programs minus ours, without interrupts, which may be ours; and the
    CPU time of the programs that are seen at the second read, since clock ticks miss some of what sleeps and wakes.
    """

    def __init__(
        self,
        own_cpu_s: Callable[[], float],
        cpus: Iterable[int] | None = None,
        *,
        root: Path = ROOT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`own_cpu_s` returns the CPU time in s of this process and its jobs so far; `cpus` are watched, None all."""
        self._own_cpu_s = own_cpu_s
        self._cpus = frozenset(cpus) if cpus is not None else None
        self._root = root
        self._clock = clock
        self._last = self._look()

    def read(self) -> Moment | None:
        """What others used since the last read (or the start); None where unknown, or after less than 0.3 s.

        All jobs of ours must have ended. `steal` stays unknown.
        """
        last, now = self._last, self._look()
        self._last = now
        duration_s = now.at_s - last.at_s
        if last.ticks is None or now.ticks is None or duration_s < _WATCH_MIN_S:
            return None
        all_s = (now.ticks.programs - last.ticks.programs) / _TICKS_PER_S
        seen = _busiest(last.programs, now.programs, _TICKS_PER_S * duration_s)
        # Which CPUs a program used is unknown, so programs count only where all CPUs are watched.
        are_all = self._cpus is None or len(self._cpus) >= _count_cpus(self._root)
        seen_cpus = math.fsum(program.cpus for program in seen) if are_all else 0.0
        rest_cpus = (all_s - (now.own_s - last.own_s)) / duration_s
        return Moment(duration_s, busy_cpus=max(rest_cpus, seen_cpus), programs=seen[:_NAMED_MAX])

    def _look(self) -> _Look:
        return _Look(self._clock(), _read_ticks(self._root, self._cpus), self._own_cpu_s(), _read_programs(self._root))


@dataclass(frozen=True)
class _Ticks:
    total: int
    programs: int
    busy: int  # programs and interrupts
    steal: int


@dataclass(frozen=True)
class _Look:
    at_s: float
    ticks: _Ticks | None
    own_s: float
    programs: _Programs


def _read_ticks(root: Path, cpus: frozenset[int] | None) -> _Ticks | None:
    """CPU time in clock ticks since boot, over `cpus` (None: all); None where the system does not count it."""
    names = {"cpu"} if cpus is None else {f"cpu{cpu}" for cpu in cpus}
    columns = [0] * (_STEAL + 1)
    is_known = False
    for line in (read_text(root / "proc/stat") or "").splitlines():
        name, *words = line.split()
        if name in names and len(words) > _STEAL and all(word.isdigit() for word in words[: _STEAL + 1]):
            is_known = True
            columns = [column + int(word) for column, word in zip(columns, words, strict=False)]
    programs = columns[_USER] + columns[_NICE] + columns[_SYSTEM]
    busy = programs + columns[_IRQ] + columns[_SOFTIRQ]
    return _Ticks(sum(columns), programs, busy, columns[_STEAL]) if is_known else None


def _count_cpus(root: Path) -> int:
    lines = (read_text(root / "proc/stat") or "").splitlines()
    return sum(1 for line in lines if line.startswith("cpu") and line[3:4].isdigit())


def _read_programs(root: Path) -> _Programs:
    """All programs but this process, with the CPU time of each so far."""
    programs: _Programs = {}
    own = str(os.getpid())
    try:
        entries = os.listdir(root / "proc")  # noqa: PTH208 - a thousand Paths cost more than what is read
    except OSError:
        return programs
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
            programs[int(entry), int(columns[_BEGAN])] = (head.partition("(")[2], ticks)
    return programs


def _busiest(before: _Programs, after: _Programs, ticks_per_cpu: float) -> tuple[Program, ...]:
    """The programs that used CPUs between two looks, the busiest first."""
    used = (
        Program(name, pid, (ticks - before.get((pid, began), (name, 0))[1]) / ticks_per_cpu)
        for (pid, began), (name, ticks) in after.items()
    )
    return tuple(sorted((each for each in used if each.cpus >= _PROGRAM_CPUS_MIN), key=lambda each: -each.cpus))
