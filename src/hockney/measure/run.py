"""Runs from their plans to the store: starts the jobs, lets the sampler measure, writes every round, notes warnings.

When Ctrl-C, a full disk or a kill ends a run early, every finished round is in the store, and the run can be resumed.
A run has one side; variants that are measured in alternation (interleave.py) are several, each its own run.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hockney.analysis import repeat
from hockney.analysis.repeat import INTERLEAVED
from hockney.errors import HockneyError, UsageError
from hockney.machine.activity import Watch
from hockney.machine.facts import another_machine, facts
from hockney.machine.files import parse_cpus
from hockney.machine.placement import refuse_unusable, usable_cpus
from hockney.measure.host_clocks import clocks_compared
from hockney.measure.load import LoadSampler
from hockney.measure.plan import Plan, refuse_empty
from hockney.measure.pool import WorkerPool
from hockney.measure.rates import RateSampler
from hockney.measure.recorder import Lab, Recorder, RunOutcome, interrupts_wait, judge_over_launches
from hockney.measure.sampler import Sampler
from hockney.measure.warnings import device_load_warnings, host_warnings, interface_warnings, warnings_before
from hockney.model import NOT_MEASURED, Measurement, Point, PointStatus, RunInfo, RunStatus
from hockney.results.store import Store, StoredPoint, StoredRun
from hockney.results.store.lock import alone
from hockney.results.traits import traits_json
from hockney.stats.shift import LAUNCHES_MIN
from hockney.units import LAUNCHES_MAX
from hockney.version import __version__
from hockney.worker.build import build_worker, compiler_facts
from hockney.worker.catalogue import Catalogue
from hockney.worker.placement import listed_hosts
from hockney.worker.points import Skipped
from hockney.worker.preflight import HostsUnusable, preflight
from hockney.worker.processes import cpu_time_s
from hockney.worker.starters import find_starter


@dataclass(frozen=True)
class Variant:
    """The contents of a run; `seed` sets the order of its points and the noise of models (None: a new one).

    `environment`: variables that it adds to its jobs'; `link`: data stored with the plan. `having`: of one that is
    measured in alternation, the option and its value that its points have and base's have not.
    """

    plan: Plan
    environment: Mapping[str, str] = field(default_factory=dict)
    label: str | None = None
    link: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    having: tuple[str, str] | None = None


@dataclass
class Side:
    """A stored run while it is measured, with its jobs and the facts of now."""

    plan: Plan
    recorder: Recorder
    pool: WorkerPool
    facts: dict[str, Any]


@dataclass(frozen=True)
class Start:
    """The beginning of a new or resumed run: its next round and launch, and the earlier measurements that count.

    `alike`: a measurement of each point that has any, whose batch is used again.
    `several`: points are judged over all launches. `precise`: how many points are so already, and not measured again.
    """

    several: bool
    seed: int = 0
    round: int = 0
    launch: int = 0
    earlier: Sequence[Measurement] = ()
    alike: Mapping[Point, Measurement] = field(default_factory=dict)
    precise: int = 0


MakeSampler = Callable[..., Sampler]
"""(plan, sides, **rest of Sampler's arguments) -> the sampler of one launch."""

Rest = Callable[[], Collection[Point]]
"""Called after each launch: the points that need another one."""


def one_side(plan: Plan, sides: Sequence[Side], *, kind: type[Sampler] = Sampler, **launch: Any) -> Sampler:
    """The sampler of a run by itself; `kind`: that of a plan without a search or a background."""
    # The first launch searches; later ones have its rates. A resumed run continues with the stored rates.
    is_search = plan.deadline_ns is not None
    is_search &= bool(launch.get("earlier")) or not any(point.rate_hz for point in plan.points)
    kind = RateSampler if is_search else LoadSampler if plan.background else kind
    return kind(plan, sides[0].pool, sides[0].recorder, **launch)


def measure(plan: Plan, lab: Lab, *, label: str | None = None, seed: int | None = None) -> RunOutcome:
    """Measure a new run. Raises UsageError if the plan has no point, StoreError.

    `seed`: of the order of its points and of the noise of models; None: a new one. KeyboardInterrupt stops it: all
    measurements made are stored, and the outcome is STOPPED.
    """
    return measure_variants([Variant(plan, label=label, seed=seed)], lab)[0]


def measure_variants(
    variants: Sequence[Variant], lab: Lab, *, make_sampler: MakeSampler = one_side, rest: Rest | None = None
) -> list[RunOutcome]:
    """Measure a new run of each variant concurrently; their plans have the same time and launches. See measure.

    With `rest` the run ends before its last launch if no point needs it; None: launches are as planned.
    """
    infos, store = [_describe(variant, lab) for variant in variants], lab.store
    start = Start(several=variants[0].plan.limits.launches > 1, seed=infos[0].seed)
    with contextlib.ExitStack() as held:

        def begin() -> Iterator[Side]:
            for variant, info in zip(variants, infos, strict=True):
                skipped = {row.point: row.reason for row in variant.plan.skipped}
                run_id = store.create_run(
                    info,
                    variant.plan.points,
                    skipped,
                    lock=lambda number: held.enter_context(alone(store.path, number)),
                )
                yield _side(variant.plan, lab, run_id, info.facts, variant.environment)

        return _carry_out(begin, lab, start, make_sampler, rest, when="when the run began")


def _side(plan: Plan, lab: Lab, run_id: int, known: dict[str, Any], environment: Mapping[str, str]) -> Side:
    recorder, asks_hosts = Recorder(lab.store, run_id, lab.display), known.get("hosts") != []
    hosts = known.get("hosts") or ()
    cpus = {host["name"]: count for host in hosts if (count := len(parse_cpus(host.get("cpus"))))}
    pool = WorkerPool(plan, lab.catalogue, recorder, environment, asks_hosts=asks_hosts, cpus=cpus)
    return Side(plan, recorder, pool, known)


def _describe(variant: Variant, lab: Lab) -> RunInfo:
    """All that is stored of a run that begins now. Raises UsageError without any point, or for unusable CPUs."""
    plan, catalogue = variant.plan, lab.catalogue
    refuse_empty(plan)
    refuse_unusable(plan.placement.cpus)
    points = (*plan.points, *(skipped.point for skipped in plan.skipped))
    patterns, transports = {point.pattern for point in points}, {point.transport for point in points}
    known = facts(environment={**os.environ, **variant.environment}, compiler=compiler_facts())
    return RunInfo(
        command=lab.command,
        suite=plan.suite,
        label=variant.label,
        started_unix_s=time.time(),
        seed=random.SystemRandom().randrange(1 << 32) if variant.seed is None else variant.seed,
        version=__version__,
        facts={
            **known,
            **({"hosts": _ask_hosts(plan, catalogue)} if plan.placement.hosts else {}),
            "environment": {**known["environment"], **variant.environment},
            "transports": list(catalogue.transports),
            "models": {
                name: info.model.record for name, info in catalogue.transports.items() if info.model is not None
            },
            "sleeping": [name for name, info in catalogue.transports.items() if info.sleeps],
            "traits": traits_json(
                (info for name, info in catalogue.patterns.items() if name in patterns),
                (info for name, info in catalogue.transports.items() if name in transports),
            ),
        },
        plan={**plan.as_json(), **variant.link},
    )


def _ask_hosts(plan: Plan, catalogue: Catalogue) -> list[dict[str, Any]]:
    """The facts of each host of a plan. Raises HostsUnusable, UsageError."""
    used = [catalogue.transports[point.transport] for point in plan.points]
    native = build_worker()  # it compares clocks
    workers = sorted({native, *(transport.executable for transport in used)})
    jobs = {(point.ranks, point.per_host): point for point in plan.points}
    names = {host.name for point in jobs.values() for host in plan.hosts_of(point)}
    used_hosts = [host for host in plan.placement.hosts if host.name in names]
    if plan.background is not None:
        used_hosts += listed_hosts(plan.background.hosts)
    libraries = {transport.library.id: transport.library for transport in used if transport.library}
    try:
        starter = find_starter(plan.placement.launcher, used_hosts, os.environ)
        known = preflight(used_hosts, workers, starter, libraries.values(), native=native)
        if plan.placement.interface is not None:
            _refuse_without_interface(known, plan.placement.interface)
        return known
    except HostsUnusable as error:
        if error.every and all(transport.library and transport.library.has_launcher for transport in used):
            return []  # their launchers may have another way to these hosts
        raise


class InterfaceMissing(UsageError):
    """Some hosts do not have the interface of --interface; `causes`, `demand` and `remedies` as of HostsUnusable."""

    def __init__(self, causes: Mapping[str, str], name: str) -> None:
        self.causes, self.demand, self.remedies = causes, f"reachable on {name}", dict[str, str]()
        host, cause = next(iter(causes.items()))
        super().__init__(f"{host} has {cause}: name one with --interface that all hosts have")


def _refuse_without_interface(hosts: Sequence[Mapping[str, Any]], name: str) -> None:
    """Raises InterfaceMissing for hosts that have no interface of this name with an address."""
    causes = {}
    for host in hosts:
        known = [interface["name"] for interface in host["interfaces"] if interface["address"]]
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            causes[host["name"]] = f"no network interface {name} with an address ({has})"
    if causes:
        raise InterfaceMissing(causes, name)


def _carry_out(
    begin: Callable[[], Iterator[Side]],
    lab: Lab,
    start: Start,
    make_sampler: MakeSampler = one_side,
    rest: Rest | None = None,
    *,
    when: str | None = None,
) -> list[RunOutcome]:
    """Measure all sides and store how each ended; `when` is part of the warnings of load now; None: no check."""
    sides: list[Side] = []
    status = RunStatus.DONE
    with contextlib.ExitStack() as undo:
        undo.callback(_store_interrupted, sides)
        try:
            with interrupts_wait():  # a stored run must have its number here
                for side in begin():
                    sides.append(side)  # noqa: PERF402 - the first one counts where the second cannot be stored
            if when is not None:
                _warn_before(sides[-1], lab.catalogue, when)
            first = sides[0].recorder.run_id
            lab.display.begun(first, sides[0].plan, goes_on=start.round > 0, precise=start.precise)
            names = [host["name"] for host in sides[0].facts.get("hosts") or ()]
            with clocks_compared(sides[0].plan, [side.recorder for side in sides], names):
                _make_launches(sides, start, make_sampler, rest)
                if start.several:
                    for side in sides:
                        judge_over_launches(lab.store, side.recorder.run_id)
        except KeyboardInterrupt:
            if not sides:
                raise  # nothing is stored yet
            status = RunStatus.STOPPED
        undo.pop_all()
    lab.display.close()
    return [side.recorder.finish(side.plan, status, lab.catalogue, goes_on=start.launch > 0) for side in sides]


def _store_interrupted(sides: Sequence[Side]) -> None:
    for side in sides:
        with contextlib.suppress(HockneyError):  # a second error of the store would hide the first
            side.recorder.store.finish_run(side.recorder.run_id, RunStatus.STOPPED)


def _warn_before(side: Side, catalogue: Catalogue, when: str) -> None:
    """Store the warnings of contention for this plan, which observes other programs for a moment."""
    plan, recorder, where = side.plan, side.recorder, side.plan.placement
    real = [point for point in plan.points if point.transport not in plan.virtual]
    if not real:
        return
    ranks_here = max(point.ranks for point in real) if not where.hosts else 1
    over_loopback = not where.hosts and any(catalogue.transports[point.transport].is_paced for point in plan.points)
    recorder.warn(host_warnings(side.facts.get("hosts", ()), catalogue))
    recorder.warn(interface_warnings(plan, catalogue))
    recorder.warn(device_load_warnings(plan, when))
    # At least: send, receive and shared buffers, code and heap of each rank, and this program.
    needed_bytes = max(point.ranks * (3 * point.bytes + (32 << 20)) for point in real) + (96 << 20)
    warnings = warnings_before(
        side.facts,
        ranks=ranks_here,
        when=when,
        cpus=where.cpus,
        mapped=where.map_by != "core",
        uses={point.transport for point in real},
        needed_bytes=0 if where.hosts else needed_bytes,
    )
    recorder.tally.known |= {warning.kind for warning in warnings}
    recorder.warn(warning for warning in warnings if warning.kind != "congestion" or over_loopback)


def _make_launches(sides: Sequence[Side], start: Start, make_sampler: MakeSampler, rest: Rest | None) -> None:
    """Each launch starts every job again, with its part of the time. The first adds sizes for all later ones.

    More launches are for points that are not precise. But after each part of the time one is for all points: launches
    of the first seconds alone are no sample of the machine. With `rest` each is for the points that need it.

    The load of other programs during each is noted, except for jobs of several hosts: daemons may start their ranks
    here, and their CPU time would count as another program's.
    """
    plan, recorder, limits = sides[0].plan, sides[0].recorder, sides[0].plan.limits
    is_virtual = all(point.transport in plan.virtual for point in plan.points)
    watch = None if plan.placement.hosts or is_virtual else Watch(cpu_time_s, usable_cpus())
    round_, alike = start.round, start.alike
    whole_s = time.monotonic()  # when all points were last measured
    end_s = whole_s + limits.time_s
    for index in range(LAUNCHES_MAX if limits.more_launches else limits.launches):
        left, part = max(0, limits.launches - 1 - index), plan
        if index >= limits.launches or (index and rest):
            unknown = judge_over_launches(recorder.store, recorder.run_id) if rest is None else rest()
            now_s = time.monotonic()
            if not unknown or (index >= limits.launches and now_s >= end_s):
                return
            if rest or now_s < whole_s + limits.time_s / limits.launches:
                part = replace(plan, points=tuple(point for point in plan.points if point in unknown))
        with contextlib.ExitStack() as up:
            if watch is not None:
                up.callback(_note_others, sides, watch)
            for side in sides:
                side.recorder.launches_left = left
                side.recorder.end_s = end_s if limits.more_launches else -math.inf
                up.enter_context(side.pool.launch(start.launch + index, start.seed + index))
            sampler = make_sampler(
                part,
                sides,
                seed=start.seed + index,
                clock=time.monotonic,
                earlier=start.earlier,
                alike=alike,
                start_round=round_,
                measurements=8 if limits.more_launches and start.launch + index > 0 else None,
            )
            sampler.run(max(0.0, end_s - time.monotonic()) / (left + 1))
        round_, alike = sampler.round, sampler.alike
        if part is plan:
            plan, whole_s = replace(plan, points=sampler.points, refine=frozenset()), time.monotonic()


def _note_others(sides: Sequence[Side], watch: Watch) -> None:
    moment = watch.read()
    for side in sides:
        side.recorder.others.append(moment)


# ---- stored runs that go on ------------------------------------------------------------------------------------------


def resume(reference: str, lab: Lab) -> RunOutcome:
    """Continue a run that was killed, was interrupted or ran out of time; without a reference the last such run.

    Points that are not precise, failed or skipped get the plan's time again, and missing launches are made: of a
    finished run of one launch two or more. Failures stay failures, and the run PARTIAL. Raises UsageError for a run
    that cannot be resumed, with the reason.
    """
    catalogue, store = lab.catalogue, lab.store
    run_id = store.find_run(reference or _last_unfinished(store))
    with alone(store.path, run_id):
        stored, points, known = store.run(run_id), store.points(run_id), facts()
        _refuse_unfit(stored, points, known)
        plan, launches_left = _rest_of(stored, points)
        measurable = [row for row in points if row.status not in NOT_MEASURED]
        for row in measurable:
            catalogue.add(row.point.transport)
        gone = sorted({row.point.transport for row in measurable} - set(catalogue.transports))
        if gone:
            raise UsageError(f"run {run_id} cannot be resumed: {', '.join(gone)} is no longer here; begin a new run")
        several = plan.limits.launches > 1  # else a launch is judged by its own measurements, and earlier ones count
        plan = plan.within(launches=max(1, launches_left))
        if plan.placement.hosts:
            known["hosts"] = _ask_hosts(plan, catalogue)
        return _go_on([stored], [Variant(plan)], lab, several=several, known=known)[0]


def resume_variants(
    runs: Sequence[int],
    variants: Sequence[Variant],
    lab: Lab,
    known: dict[str, Any],
    *,
    make_sampler: MakeSampler,
    rest: Rest | None,
) -> list[RunOutcome]:
    """Continue the run of each variant, as measure_variants began it; `known`: the facts of now."""
    with contextlib.ExitStack() as held:
        for run_id in runs:
            held.enter_context(alone(lab.store.path, run_id))
        stored = [lab.store.run(run_id) for run_id in runs]
        return _go_on(stored, variants, lab, make_sampler, rest, several=True, known=known)


def _last_unfinished(store: Store) -> str:
    """The last run that can go on and has something left to measure; the last of all if there is none, to say so."""
    left = {PointStatus.PENDING, PointStatus.TIME_UP, PointStatus.STOPPED}
    ended_early = (RunStatus.KILLED, RunStatus.STOPPED)
    runs = [run for run in store.runs() if run.status is not RunStatus.RUNNING]
    unfinished = [run.id for run in runs if run.status in ended_early or left & {*run.points}]
    return str(next((run for run in reversed(unfinished) if _why_never(store.run(run)) is None), "last"))


def _why_never(stored: StoredRun) -> UsageError | None:
    """Why no run of this kind can be continued; None if some can."""
    if stored.info.is_imported:
        return UsageError(f"run {stored.id} was imported and cannot be continued; measure", argv=("hockney", "quick"))
    if stored.info.plan.get(INTERLEAVED):
        fix = repeat.resume(stored.id, stored.info)
        return UsageError(
            f"run {stored.id} was measured in alternation with another and cannot be continued alone", fix=fix
        )
    if stored.info.suite == "health":
        fix = repeat.resume(stored.id, stored.info)
        return UsageError(f"run {stored.id} is a health run, which cannot be resumed", fix=fix)
    return None


def _refuse_unfit(stored: StoredRun, points: Sequence[StoredPoint], known: Mapping[str, Any]) -> None:
    """Raises UsageError for a run of another benchmark, of a pair, of another machine, or without points."""
    never = _why_never(stored)
    if never is not None:
        raise never
    refuse_elsewhere(stored, known)
    if not points:
        raise UsageError(
            f"run {stored.id} was stopped before its points were stored and cannot be resumed: begin a new one"
        )


def refuse_elsewhere(stored: StoredRun, known: Mapping[str, Any]) -> None:
    """Raises UsageError if a run was measured on another machine than this, whose facts are known."""
    changed = another_machine(stored.info.facts, known)
    if changed is not None:
        raise UsageError(f"run {stored.id} cannot be resumed here, because {changed}: begin a new one")


def _rest_of(stored: StoredRun, points: Sequence[StoredPoint]) -> tuple[Plan, int]:
    """The plan of a resumed run, and the number of launches left. Raises UsageError if nothing is left."""
    measurable = [row for row in points if row.status not in NOT_MEASURED]
    plan = Plan.of_run(stored, (row.point for row in measurable))
    # With its skipped points, so that a run whose points were all refused does not end as done.
    skipped = (Skipped(row.point, row.reason or "") for row in points if row.status is PointStatus.SKIPPED)
    plan = replace(plan, skipped=tuple(skipped))
    made = repeat.launches_made(stored.launches.values(), stored.status)
    is_precise = all(row.status is PointStatus.PRECISE for row in measurable)
    if made and (plan.limits.launches > 1 or is_precise):
        plan = replace(plan, refine=frozenset())  # the first launch has added the sizes
    if repeat.is_of_one(stored.info.plan, plan.points, made):  # an interval over two launches would be wider
        plan = plan.within(launches=max(LAUNCHES_MIN, made), more_launches=True)
    left = plan.limits.launches - made
    if not measurable or (is_precise and (left <= 0 or plan.limits.launches == 1)):
        raise UsageError(
            f"run {stored.id} has nothing left to measure: what is not precise failed or was skipped; begin a new run"
            if len(measurable) < len(points)
            else f"run {stored.id} is complete: there is nothing to resume"
        )
    return plan, left


def add_launches(
    run_id: int,
    points: Sequence[Point],
    launches: int,
    time_s: float,
    lab: Lab,
    *,
    make_sampler: MakeSampler = one_side,
    rest: Rest | None = None,
) -> RunOutcome:
    """Measure some points of a run in more launches, after all its launches so far; `rest`: as in measure_variants."""
    with alone(lab.store.path, run_id):
        stored = lab.store.run(run_id)
        plan = Plan.of_run(stored, points).within(launches=launches, time_s=time_s)
        plan = replace(plan, refine=frozenset())
        return _go_on([stored], [Variant(plan)], lab, make_sampler, rest, several=True)[0]


def _go_on(
    runs: Sequence[StoredRun],
    variants: Sequence[Variant],
    lab: Lab,
    make_sampler: MakeSampler = one_side,
    rest: Rest | None = None,
    *,
    several: bool,
    known: dict[str, Any] | None = None,
) -> list[RunOutcome]:
    """Measure each variant into its stored run, after its launches and rounds so far; `known`: the facts to warn of."""
    base, plan, store = runs[0], variants[0].plan, lab.store
    refuse_unusable(plan.placement.cpus)
    points = set(plan.points)
    rows = [row for row in store.points(base.id) if row.point in points]
    before = {row.point: [*store.measurements(row).values()] for row in rows}
    start = Start(
        several,
        seed=base.info.seed + base.rounds,
        round=base.rounds,
        launch=1 + max((launch.index for run in runs for launch in run.launches.values()), default=-1),
        earlier=() if several else [each for measurements in before.values() for each in measurements],
        alike={point: measurements[-1] for point, measurements in before.items() if measurements},
        precise=0 if several else sum(row.status is PointStatus.PRECISE for row in rows),
    )

    def begin() -> Iterator[Side]:
        for run, variant in zip(runs, variants, strict=True):
            store.resume_run(run.id)
            yield _side(variant.plan, lab, run.id, known or {}, variant.environment)

    return _carry_out(begin, lab, start, make_sampler, rest, when="when the run went on" if known else None)
