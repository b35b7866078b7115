"""What limits precision on this machine: what is known of it, and what two seconds of measuring show."""

from __future__ import annotations

import itertools
import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.machine import Moment, choose_cpus, facts, observe, usable_cpus, warnings_before
from hockney.model import Warning_
from hockney.stats.states import MachineProbe, State, classify
from hockney.worker.build import compiler_facts
from hockney.worker.catalogue import Catalogue, Missing, TransportInfo, load
from hockney.worker.errors import WorkerError
from hockney.worker.launch import Job, launch
from hockney.worker.session import WorkerSession

_FLOOR_BATCH = 100
_FLOOR_SAMPLES = 15
_PAUSE_S = 0.01  # between looks at the floor: states last for seconds, and the CPUs shall not be hot for nothing
_HARNESS_BATCH = 100_000
_LIMIT_S = 20


@dataclass(frozen=True)
class FloorSeen:
    """One state that the floor was seen in: its median in ns, and in which part of the looks."""

    state: str
    median_ns: float | None
    share: float


@dataclass(frozen=True)
class PairFigures:
    """What two ranks over shared memory showed. None: not measured, and `why` says why.

    `floor` lists states by their share. `pinned`: every rank was found on the CPU it was pinned to, and may use no
    other; None where no pinning was asked for. `clock_ns` is the cost of reading the clock, `harness_ns` that of one
    repetition over the transport `null`.
    """

    floor: tuple[FloorSeen, ...] = ()
    floor_low_ns: float | None = None
    floor_high_ns: float | None = None
    clock_ns: float | None = None
    pinned: bool | None = None
    cpus: tuple[int, ...] = ()
    harness_ns: float | None = None
    why: str | None = None


@dataclass(frozen=True)
class Checkup:
    """All that `hockney doctor` tells."""

    facts: dict[str, Any]
    moment: Moment
    measured: PairFigures
    warnings: tuple[Warning_, ...]
    missing: tuple[Missing, ...]


def check_up(duration_s: float = 1.5, *, clock: Callable[[], float] = time.monotonic) -> Checkup:
    """Look at this machine and measure for `duration_s` what its floor does. Raises nothing that it can report."""
    known = facts(compiler=compiler_facts())
    moment = observe(0.5, usable_cpus())
    missing: list[Missing] = []
    catalogue: Catalogue | None = None
    try:
        catalogue = load()
        missing += catalogue.missing
        measured = _measure(catalogue, duration_s, clock)
    except WorkerError as error:
        missing.append(Missing("worker", error.reason, error.remedy or "mend that, or let CC name another compiler"))
        measured = PairFigures(why=str(error))
    if shutil.which("lstopo-no-graphics") is None:
        how = "install it, for example: apt-get install hwloc-nox"
        missing.append(Missing("lstopo", "hwloc is not here, so the topology is the kernel's word alone", how))
    found = (*warnings_before(known, moment=moment, when="A moment ago"), *_warnings_after(measured))
    return Checkup(known, moment, measured, found, tuple(missing))


# ---- measuring ------------------------------------------------------------------------------------------------------


def _measure(catalogue: Catalogue, duration_s: float, clock: Callable[[], float]) -> PairFigures:
    cpus = choose_cpus(2)
    crowded = len(usable_cpus()) < 2
    try:
        harness_ns = _harness_ns(catalogue.transports["null"], cpus, crowded)
        with WorkerSession(launch(_job(catalogue.transports["shm"], cpus, crowded))) as session:
            hello = session.hello()
            pinned = None
            if cpus:
                pinned = all(
                    rank.cpu == cpu and rank.cpus_usable == 1 for rank, cpu in zip(hello.ranks, cpus, strict=True)
                )
            if hello.floor_why is not None:
                return PairFigures((), None, None, hello.clock_ns, pinned, cpus, harness_ns, hello.floor_why)
            floors_ns = _watch_floor(session, duration_s, clock)
    except WorkerError as error:
        return PairFigures(why=str(error))
    return PairFigures(
        floor=summarize_floor(floors_ns),
        floor_low_ns=min(floors_ns),
        floor_high_ns=max(floors_ns),
        clock_ns=hello.clock_ns,
        pinned=pinned,
        cpus=cpus,
        harness_ns=harness_ns,
    )


def _job(transport: TransportInfo, cpus: tuple[int, ...], crowded: bool) -> Job:
    return Job(transport.executable, transport.worker_name, ranks=2, cpus=cpus, oversubscribed=crowded)


def _harness_ns(transport: TransportInfo, cpus: tuple[int, ...], crowded: bool) -> float:
    """One repetition of the ping-pong loop that sends nothing."""
    with WorkerSession(launch(_job(transport, cpus, crowded))) as session:
        session.hello()
        answer = session.measure("pingpong", bytes=8, batch=_HARNESS_BATCH, samples=7, timeout_s=_LIMIT_S)
    return statistics.median(answer.elapsed_ns[0]) / _HARNESS_BATCH


def _watch_floor(session: WorkerSession, duration_s: float, clock: Callable[[], float]) -> list[float]:
    """The median of a few samples at a time: a single one that was interrupted says nothing about the machine."""
    end_s = clock() + duration_s
    floors_ns: list[float] = []
    while len(floors_ns) < 2 or clock() < end_s:
        answer = session.floor(batch=_FLOOR_BATCH, samples=_FLOOR_SAMPLES, timeout_s=_LIMIT_S)
        floors_ns.append(statistics.median(answer.half_round_trip_ns))
        time.sleep(_PAUSE_S)
    return floors_ns


def summarize_floor(floors_ns: Sequence[float]) -> tuple[FloorSeen, ...]:
    """The states that floors in ns, in the order of looking, were in. Two looks in a row stand for a measurement."""
    states = classify([MachineProbe(pair) for pair in itertools.pairwise(floors_ns)])
    counts: dict[State, int] = {}
    for state in states:
        counts[state] = counts.get(state, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return tuple(FloorSeen(state.name, state.floor_ns, count / len(states)) for state, count in ordered)


# ---- what it means --------------------------------------------------------------------------------------------------


def _warnings_after(measured: PairFigures) -> list[Warning_]:
    found = []
    if measured.pinned is False:
        found.append(
            Warning_(
                "pinning",
                "machine",
                "Ranks were pinned, but were not found on their CPUs.",
                "Look whether something else binds processes here (a batch system, cpuset, numad).",
            )
        )
    named = [seen for seen in measured.floor if seen.median_ns is not None]
    if len(named) > 1:
        levels = " and ".join(f"{seen.median_ns:.0f} ns for {seen.share:.0%} of the time" for seen in named[:3])
        found.append(
            Warning_(
                "floor",
                "machine",
                f"The distance between the two CPUs changed while we looked: {levels}.",
                "Figures are given per state; compare them within one state only, and measure longer to see each.",
            )
        )
    if named and named[0].state.startswith("time-sliced"):
        found.append(
            Warning_(
                "floor",
                "machine",
                "The two ranks take turns on a CPU instead of running at once.",
                "Stop what else runs here, or allow this process a second CPU.",
            )
        )
    return found
