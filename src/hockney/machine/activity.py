"""Load of others on this machine: CPU time stolen by a hypervisor, and CPU time of other programs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hockney.machine.files import ROOT, read_text

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

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
    """The load of others on the usable CPUs for a while; None: unknown.

    `steal`: the fraction of CPU time stolen. `busy_cpus`: the CPU time of other programs per wall time. `programs`: the
    busiest, as far as they can be seen.
    """

    duration_s: float
    steal: float | None = None
    busy_cpus: float | None = None
    programs: tuple[Program, ...] = ()


class _Ticks(NamedTuple):
    """CPU time in clock ticks since boot: in all, of programs without interrupts, and stolen."""

    total: int
    programs: int
    steal: int


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


class Watch:
    """The load of other programs between two reads, while hockney sleeps or its jobs begin and end.

    It is the larger of two counts. The first is the CPU time of all programs minus hockney's, without interrupts, which
    may be hockney's. The second is the CPU time of the programs seen at the second read, since clock ticks miss some
    programs that sleep and wake.
    """

    def __init__(
        self,
        own_cpu_s: Callable[[], float] = time.process_time,
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

    def read(self) -> Moment:
        """The load since the last read (or the start), unknown below 0.3 s; all jobs of hockney must have ended."""
        (was_s, was, was_own_s, programs_before), self._last = self._last, self._look()
        now_s, now, own_s, programs_now = self._last
        duration_s = now_s - was_s
        # In less time, one tick on each CPU would count as a program.
        if was is None or now is None or duration_s < 0.3 or now.total <= was.total:
            return Moment(duration_s)
        stolen = now.steal - was.steal
        programs = _busiest(programs_before, programs_now, _TICKS_PER_S * duration_s)
        # Which CPUs a program used is unknown, so programs count only where all CPUs are watched.
        are_all = self._cpus is None or len(self._cpus) >= (os.cpu_count() or 1)
        return Moment(
            duration_s,
            # A single tick, of 10 ms, may have been due before the first read.
            steal=stolen / (now.total - was.total) if stolen > 1 else 0.0,
            busy_cpus=max(
                ((now.programs - was.programs) / _TICKS_PER_S - (own_s - was_own_s)) / duration_s,
                sum(program.cpus for program in programs) if are_all else 0.0,
            ),
            programs=tuple(programs[:3]),
        )

    def _look(self) -> tuple[float, _Ticks | None, float, _Programs]:
        return self._clock(), _read_ticks(self._root, self._cpus), self._own_cpu_s(), _read_programs(self._root)


def observe(duration_s: float = 0.3, cpus: Iterable[int] | None = None) -> Moment:
    """Sleep for a moment and return the load of other programs on the CPUs (None: all)."""
    watch = Watch(cpus=cpus)
    time.sleep(duration_s)
    return watch.read()


def _read_ticks(root: Path, cpus: frozenset[int] | None) -> _Ticks | None:
    """The ticks of `cpus` (None: all) together; None where the system does not count them."""
    names = {"cpu"} if cpus is None else {f"cpu{cpu}" for cpu in cpus}
    lines = [line.split() for line in (read_text(root / "proc/stat") or "").splitlines()]
    try:
        # user, nice, system, idle, iowait, irq, softirq, steal; guests are counted in user and nice already
        rows = [[int(word) for word in words[1:9]] for words in lines if words[0] in names]
        user, nice, system, _, _, _, _, steal = columns = [sum(column) for column in zip(*rows, strict=True)]
    except ValueError:
        return None
    return _Ticks(sum(columns), user + nice + system, steal)


def _read_programs(root: Path) -> _Programs:
    """All programs but this process, with the CPU time of each so far."""
    programs: _Programs = {}
    try:
        entries = os.listdir(root / "proc")  # noqa: PTH208 - creating a thousand Paths takes longer than reading
    except OSError:
        return programs
    for entry in entries:
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        # `123 (a name) S …`: the name may hold blanks and brackets, so find the last one.
        head, _, tail = (read_text(root / "proc" / entry / "stat") or "").rpartition(")")
        if not tail:
            continue
        columns = tail.split()
        state, flags, user, system, began = (columns[index] for index in (0, 6, 11, 12, 19))  # proc(5)
        # Not those of the kernel (PF_KTHREAD); a rank that was killed may stay a zombie: its time is ours.
        if not int(flags) & 0x00200000 and state != "Z":
            programs[int(entry), int(began)] = (head.partition("(")[2], int(user) + int(system))
    return programs


def _busiest(before: _Programs, after: _Programs, ticks_per_cpu: float) -> list[Program]:
    """The programs that used a tenth of a CPU or more between two reads, the busiest first."""
    used = (
        Program(name, pid, (ticks - before.get((pid, began), (name, 0))[1]) / ticks_per_cpu)
        for (pid, began), (name, ticks) in after.items()
    )
    return sorted((program for program in used if program.cpus >= 0.1), key=lambda program: -program.cpus)
