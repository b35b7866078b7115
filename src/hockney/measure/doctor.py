"""The limits to precision on this machine: its facts, and the results of two seconds of measuring."""

from __future__ import annotations

import itertools
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.machine.activity import Moment, observe
from hockney.machine.facts import facts
from hockney.machine.placement import choose_cpus, usable_cpus
from hockney.measure.warnings import warn_of, warnings_before
from hockney.model import MachineProbe, Warning_
from hockney.stats.states import State, classify
from hockney.units import format_share
from hockney.worker.build import compiler_facts
from hockney.worker.catalogue import Catalogue, load
from hockney.worker.errors import WorkerError
from hockney.worker.launch import Job, launch
from hockney.worker.libraries import Missing
from hockney.worker.session import WorkerSession


@dataclass(frozen=True)
class FloorSeen:
    """One machine state: the median of its floor in ns, and its share of the measurements."""

    state: str
    median_ns: float | None
    share: float


@dataclass(frozen=True)
class PairFigures:
    """The figures of two ranks over shared memory. None: not measured, and `why` has the reason.

    `floor` lists states by their share. `pinned`: whether every rank was on its CPU, and may use no other; None without
    pinning. `clock_ns` is the cost of reading the clock, `harness_ns` of one repetition over the transport `null`.
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
    """All that `hockney doctor` shows."""

    facts: dict[str, Any]
    moment: Moment
    measured: PairFigures
    warnings: tuple[Warning_, ...]
    missing: tuple[Missing, ...]


def check_up(duration_s: float = 1.5) -> Checkup:
    """The facts of this machine, and the states of its floor during `duration_s`. Worker errors are reported in it."""
    known = facts(compiler=compiler_facts())
    moment = observe(0.5, usable_cpus())
    missing: list[Missing] = []
    try:
        catalogue = load()
        missing += catalogue.missing
        measured = _measure(catalogue, duration_s)
    except WorkerError as error:
        missing.append(Missing("worker", error.reason, error.remedy or "repair that, or name another compiler with CC"))
        measured = PairFigures(why=str(error))
    warnings = (*warnings_before(known, moment=moment, when="A moment ago"), *warnings_after(measured))
    return Checkup(known, moment, measured, warnings, tuple(missing))


# ---- measuring ------------------------------------------------------------------------------------------------------


def _measure(catalogue: Catalogue, duration_s: float) -> PairFigures:
    cpus = choose_cpus(2)

    def job(name: str) -> WorkerSession:
        transport, oversubscribed = catalogue.transports[name], len(usable_cpus()) < 2
        return WorkerSession(
            launch(Job(transport.executable, transport.worker_name, 2, cpus=cpus, oversubscribed=oversubscribed))
        )

    try:
        with job("null") as session:  # the ping-pong loop that sends nothing
            session.hello()
            answer = session.measure("pingpong", bytes=8, batch=100_000, samples=7, timeout_s=20)
        with job("shm") as session:
            hello = session.hello()
            floors_ns = [] if hello.floor_why else _watch_floor(session, duration_s)
    except WorkerError as error:
        return PairFigures(why=str(error))
    held = [rank.cpu == cpu and rank.cpus_usable == 1 for rank, cpu in zip(hello.ranks, cpus, strict=False)]
    return PairFigures(
        floor=summarize_floor(floors_ns),
        floor_low_ns=min(floors_ns, default=None),
        floor_high_ns=max(floors_ns, default=None),
        clock_ns=hello.clock_ns,
        pinned=all(held) if cpus else None,
        cpus=cpus,
        harness_ns=statistics.median(answer.elapsed_ns[0]) / answer.batch,
        why=hello.floor_why,
    )


def _watch_floor(session: WorkerSession, duration_s: float) -> list[float]:
    """Floors in ns, each the median of a few samples, since a single one may be interrupted."""
    end_s = time.monotonic() + duration_s
    floors_ns: list[float] = []
    while len(floors_ns) < 2 or time.monotonic() < end_s:
        answer = session.floor(batch=100, samples=15, timeout_s=20)
        floors_ns.append(statistics.median(answer.half_round_trip_ns))
        time.sleep(0.01)  # states last for seconds
    return floors_ns


def summarize_floor(floors_ns: Sequence[float]) -> tuple[FloorSeen, ...]:
    """The machine states of floors in ns, in the order of measuring; two in a row are a measurement."""
    states = classify([MachineProbe(pair) for pair in itertools.pairwise(floors_ns)])
    counts = Counter(states).most_common()
    return tuple(FloorSeen(state.name, state.floor_ns, count / len(states)) for state, count in counts)


# ---- conclusions ----------------------------------------------------------------------------------------------------


def warnings_after(measured: PairFigures) -> Iterator[Warning_]:
    """Warnings about a measured pair: ranks off their CPUs, a floor that changed."""
    if measured.pinned is False:
        yield warn_of("pinning-lost")
    known = [seen for seen in measured.floor if seen.median_ns is not None]
    if len(known) > 1:
        levels = [f"{seen.median_ns:.0f} ns for {format_share(seen.share)} of the time" for seen in known[:3]]
        yield warn_of("floor", levels=" and ".join(levels))
    if known and State(known[0].state, None).level == "time-sliced":
        yield warn_of("floor-sliced")
