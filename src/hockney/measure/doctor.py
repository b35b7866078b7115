"""The limits to precision on this machine: its facts, and the results of two seconds of measuring."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.analysis.finding import Finding
from hockney.analysis.hardware import faults
from hockney.machine.activity import Moment, observe
from hockney.machine.facts import facts
from hockney.machine.placement import choose_cpus, usable_cpus
from hockney.measure.warnings import warn_of, warnings_before
from hockney.model import MachineProbe, Warning_
from hockney.stats.states import CONTENTION, State, classify
from hockney.units import format_share
from hockney.worker.build import compiler_facts
from hockney.worker.catalogue import Catalogue, load
from hockney.worker.errors import WorkerError
from hockney.worker.launch import Job, launch
from hockney.worker.libraries import Missing
from hockney.worker.placement import Placement
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
    findings: tuple[Finding, ...] = ()


def check_up(duration_s: float = 1.5) -> Checkup:
    """The facts of this machine, and the states of its floor during `duration_s`. Worker errors are reported in it."""
    known = facts(compiler=compiler_facts())
    moment = observe(0.5, usable_cpus())
    missing: list[Missing] = []
    try:
        catalogue = load()
        missing += catalogue.to_get()
        measured = _measure(catalogue, duration_s)
    except WorkerError as error:
        missing.append(Missing("worker", error.reason, error.remedy or "repair that, or name another compiler with CC"))
        measured = PairFigures(why=str(error))
    warnings = (*warnings_before(known, moment=moment, when="a moment ago"), *warnings_after(measured))
    return Checkup(known, moment, measured, warnings, tuple(missing), tuple(faults(known)))


# ---- measuring ------------------------------------------------------------------------------------------------------


def _measure(catalogue: Catalogue, duration_s: float) -> PairFigures:
    cpus = choose_cpus(2)

    def job(name: str) -> WorkerSession:
        transport, oversubscribed = catalogue.transports[name], len(usable_cpus()) < 2
        return WorkerSession(
            launch(Job(transport.executable, transport.worker_name, 2, Placement(cpus=cpus), oversubscribed))
        )

    try:
        with job("null") as session:  # the ping-pong loop that sends nothing
            session.hello()
            answer = session.measure("pingpong", bytes=8, batch=100_000, samples=7, timeout_s=20)
        with job("shm") as session:
            hello = session.hello()
            probes = [] if hello.floor_why else _watch(session, duration_s)
    except WorkerError as error:
        return PairFigures(why=str(error))
    floors_ns = [floor_ns for probe in probes for floor_ns in probe.floor_ns or ()]
    held = [rank.cpu == cpu and rank.cpus_usable == 1 for rank, cpu in zip(hello.ranks, cpus, strict=False)]
    return PairFigures(
        floor=summarize_floor(probes),
        floor_low_ns=min(floors_ns, default=None),
        floor_high_ns=max(floors_ns, default=None),
        clock_ns=hello.clock_ns,
        pinned=all(held) if cpus else None,
        cpus=cpus,
        harness_ns=statistics.median(answer.elapsed_ns[0]) / answer.batch,
        why=hello.floor_why,
    )


def _watch(session: WorkerSession, duration_s: float) -> list[MachineProbe]:
    """What measurements of a few samples, made for this long, tell of the machine's state."""
    end_s = time.monotonic() + duration_s
    probes: list[MachineProbe] = []
    while not probes or time.monotonic() < end_s:
        answer = session.measure("pingpong", bytes=8, batch=100, timeout_s=20)
        probes.append(MachineProbe(answer.floor_ns, answer.pace_ns, answer.solo_ns))
        time.sleep(0.01)  # states last for seconds
    return probes


def summarize_floor(probes: Sequence[MachineProbe]) -> tuple[FloorSeen, ...]:
    """The machine states of measurements, the most frequent first."""
    counts = Counter(classify(probes)).most_common()
    return tuple(FloorSeen(state.name, state.floor_ns, count / len(probes)) for state, count in counts)


# ---- conclusions ----------------------------------------------------------------------------------------------------


def warnings_after(measured: PairFigures) -> Iterator[Warning_]:
    """Warnings about a measured pair: ranks off their CPUs, a floor that changed, contention."""
    if measured.pinned is False:
        yield warn_of("pinning-lost")
    known = [seen for seen in measured.floor if seen.median_ns is not None]
    if len({State(seen.state, None).level for seen in known}) > 1:
        levels = [f"{seen.median_ns:.0f} ns for {format_share(seen.share)} of the time" for seen in known[:3]]
        yield warn_of("floor", levels=" and ".join(levels))
    if contended := sum(seen.share for seen in known if State(seen.state, None).is_contended):
        yield warn_of("contention", share=format_share(contended), meaning=CONTENTION)
    if known and State(known[0].state, None).level == "time-sliced":
        yield warn_of("floor-sliced")
