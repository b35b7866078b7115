"""The sampler's instrument: running jobs, one for each transport and number of ranks.

All jobs stay up for the whole launch, so that a round can go from transport to transport; an idle job sleeps. A job
that dies or hangs fails one point, and is started again for the next.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, replace

from hockney.analysis.health.stalls import Stall, to_leave_out
from hockney.machine.activity import StealMeter
from hockney.machine.placement import choose_cpus, usable_cpus
from hockney.measure.estimate import LearnedLimits
from hockney.measure.load import Load, LoadFailed
from hockney.measure.plan import Plan
from hockney.measure.point_work import PointFailed
from hockney.measure.recorder import Recorder
from hockney.model import Definition, Launch, Measurement, Point, split_placed
from hockney.units import counted
from hockney.worker import diagnose
from hockney.worker.answers import MeasureAnswer, Rank
from hockney.worker.catalogue import Catalogue
from hockney.worker.errors import (
    LaunchFailed,
    ProtocolError,
    WorkerDied,
    WorkerError,
    WorkerRefused,
    WorkerTimedOut,
    how_to_wait_longer,
)
from hockney.worker.hosts import Host
from hockney.worker.launch import Job, launch
from hockney.worker.placement import Placement, listed_hosts
from hockney.worker.preflight import lost_hosts
from hockney.worker.session import WorkerSession
from hockney.worker.starters import find_starter

_STARTS_MAX = 4  # a job that has died this often is given up


@dataclass
class _Live:
    session: WorkerSession
    launch_id: int
    launched: Launch
    hosts: tuple[Host, ...]


class WorkerPool:
    """The sampler's Instrument over real workers, for all launches of a run."""

    def __init__(
        self,
        plan: Plan,
        catalogue: Catalogue,
        recorder: Recorder,
        environment: Mapping[str, str],
        *,
        asks_hosts: bool = True,
        cpus: Mapping[str, int] | None = None,
    ) -> None:
        """`environment` is added to ours for the jobs; `cpus`: how many of each host ranks may use, as far as known.

        `asks_hosts`: whether hosts are asked after a failure; not if none answered before the run, because then only a
        library's launcher reaches them.
        """
        self._plan = plan
        self._catalogue = catalogue
        self._recorder = recorder
        self._steal = StealMeter(usable_cpus())
        self._environment = environment
        self._asks_hosts = asks_hosts
        self._cpus = cpus or {}
        self._limits = LearnedLimits()
        self._reasons: dict[tuple[str, int] | str, str] = {}  # why jobs and launchers are not started again
        self._load_reasons: dict[str, str] = {}  # likewise of backgrounds, by transport
        self._proven: set[str] = set()  # launchers that have started a job; if one is late, only that job fails
        self._asked: Future[dict[str, str]] | None = None  # the hosts of a late job
        self._index = self._seed = 0  # of the launch
        self._live: dict[tuple[str, int], _Live] = {}
        self._loads: dict[str, Load] = {}  # by transport
        self._starts: Counter[tuple[str, int]] = Counter()
        self._oversubscribed: set[tuple[str, int]] = set()  # jobs whose ranks share CPUs, as their hosts have shown

    @contextlib.contextmanager
    def launch(self, index: int, seed: int) -> Iterator[None]:
        """A launch: each job is started in the body when a point needs it, and ends with it. `seed`: of models."""
        self._index, self._seed = index, seed
        self._starts.clear()
        is_over = False
        try:
            yield
            is_over = True
        finally:
            of_background = self._background_hosts
            jobs = [(name, load.session, of_background) for name, load in self._loads.items()]
            jobs += [(name, live.session, live.hosts) for (name, _), live in self._live.items()]
            self._loads.clear()
            self._live.clear()
            for transport, session, hosts in jobs:
                if is_over and not self._lost_of(hosts):  # on a lost host it would not quit
                    session.close()
                else:
                    session.kill()
                for kind in diagnose.limits_met(session.words()):
                    self._recorder.tally.limits[kind].add(transport)

    # ---- sampler.Instrument ------------------------------------------------------------------------------------------

    def clock_ns(self, point: Point) -> float:
        return self._job(point).launched.clock_ns

    def measure(self, point: Point, *, round_: int, batch: int, samples: int, warmup: int, verify: bool) -> Measurement:
        live = self._job(point)
        self._asked = None
        started_unix_s = time.time()
        limits, limit_s = self._limits, self._plan.limits.timeout_s
        if self._plan.limits.limit_adapts:
            limit_s = limits.limit_s(point, batch * samples + warmup, limit_s)

        def ask() -> MeasureAnswer:
            begun_s = time.monotonic()
            answer = live.session.measure(
                point.pattern,
                bytes=point.bytes,
                batch=batch,
                samples=samples,
                warmup=warmup,
                timeout_s=limit_s,
                verify=verify,
                options=point.idle.options,
            )
            limits.note(point, time.monotonic() - begun_s, max(answer.wall_ns) / 1e9 / (batch * samples))
            return answer

        try:
            answer = ask() if point.background is None else self._under_load(point, ask, (point, batch * samples))
        except WorkerRefused as refusal:
            raise PointFailed(str(refusal), skipped=refusal.unsupported) from refusal
        except (WorkerDied, WorkerTimedOut, ProtocolError) as end:
            self._bury(point, end)
            reason = str(end)
            if isinstance(end, WorkerTimedOut) and not end.silent:
                reason += f" ({how_to_wait_longer(end.limit_s)})"
            lost = self._lose_hosts(point)
            if isinstance(end, WorkerTimedOut) and not lost:
                self._note_stall(point, end)
            raise PointFailed("; ".join(filter(None, (reason, lost)))) from end
        measurement = replace(
            measurement_of(point, answer),
            launch_id=live.launch_id,
            round=round_,
            started_unix_s=started_unix_s,
            steal=self._steal.read(),
            places=live.launched.places,
        )
        caps = self._catalogue.transports[point.transport].caps
        # Only where messages may be lost is a payload that did not arrive no fault.
        has_payload = measurement.has_payload and "payload" in caps and "lossy" not in caps
        if verify and has_payload and not measurement.verified:
            raise PointFailed(f"the payload was not verified: the worker of {point.transport} says so")
        return measurement

    def _under_load(self, point: Point, ask: Callable[[], MeasureAnswer], what: object) -> MeasureAnswer:
        """The result of `ask`, called while the background runs; a background that fails is not started again."""
        load = self._loads.get(point.transport) or self._start_load(point.transport)
        try:
            return load.during(ask, what)
        except LoadFailed as failure:
            self._load_reasons[point.transport] = str(failure)
            raise
        finally:
            if not load.is_at_rest:
                self._loads.pop(point.transport).session.kill()

    def _start_load(self, transport: str) -> Load:
        background = self._plan.background
        known = self._load_reasons.get(transport) or self._lost_of(self._background_hosts)
        if known or background is None:
            raise PointFailed(known or "this run has no background")
        where = replace(self._plan.placement, hosts=self._background_hosts, cpus=background.cpus)
        job = self._job_of(transport, background.ranks, where)
        try:
            session = self._bring_up(transport, job, stored=False).session
        except WorkerError as error:
            self._load_reasons[transport] = reason = f"the background failed: {error}"
            raise PointFailed(reason) from error
        is_lossy = "lossy" in self._catalogue.transports[transport].caps
        load = Load(session, background, self._plan.limits, is_lossy=is_lossy)
        self._loads[transport] = load
        return load

    # ---- jobs --------------------------------------------------------------------------------------------------------

    def _job(self, point: Point) -> _Live:
        key = (point.transport, point.ranks)
        has_left_out = self._recorder.lost_hosts or self._recorder.stalls
        lost = self._lost_of(self._plan.hosts_of(point)) if has_left_out else ""
        if key in self._live and not lost:
            return self._live[key]
        launcher = split_placed(point.transport)[0].partition(":")[0]
        known = self._reasons.get(key) or self._reasons.get(launcher) or lost
        if known:
            raise PointFailed(known)
        self._asked = None
        try:
            self._live[key] = self._start(point)
        except WorkerError as error:
            lost = self._lose_hosts(point)
            library = self._catalogue.transports[point.transport].library
            is_of_launcher = library is not None and library.has_launcher  # a session tries its own logins again
            is_missed = isinstance(error, LaunchFailed) and error.missed
            if is_missed and is_of_launcher and not lost and self._starts[key] < _STARTS_MAX:
                return self._job(point)  # all hosts answer now
            if not lost:
                is_silent = isinstance(error, LaunchFailed) and error.timed_out and launcher not in self._proven
                self._reasons[launcher if is_silent else key] = str(error)
            raise PointFailed(lost or str(error)) from error
        if self._asked is not None:
            self._asked.result()  # nothing else may run while it measures
        self._proven.add(launcher)
        return self._live[key]

    def _lose_hosts(self, point: Point) -> str:
        """Ask the hosts of a job that has failed whether they answer, and drop those that do not; returns them."""
        hosts = self._plan.hosts_of(point)
        if not hosts or not self._asks_hosts:
            return ""
        self._recorder.lost_hosts |= self._ask(hosts).result()
        return self._lost_of(hosts)

    def _ask(self, hosts: Sequence[Host]) -> Future[dict[str, str]]:
        """Begin to ask these hosts and the background's whether they answer, once for a job; see lost_hosts.

        A late job's hosts are asked while it is ended, as either takes seconds.
        """
        if self._asked is None:
            names = [host.name for host in (*hosts, *self._background_hosts)]
            thread = ThreadPoolExecutor(1)
            self._asked = thread.submit(
                lost_hosts, names, find_starter(self._plan.placement.launcher, hosts, os.environ)
            )
            thread.shutdown(wait=False)
        return self._asked

    def _misses(self, hosts: Sequence[Host]) -> bool:
        """Whether ssh has said that it cannot reach a host; that one is slow does not end a start."""
        if not hosts or not self._asks_hosts or not self._ask(hosts).done():
            return False
        silent = self._ask(hosts).result()
        return any(diagnose.unreachable(silent.get(host.name, "")) for host in hosts)

    def _lost_of(self, hosts: Sequence[Host]) -> str:
        """Why hosts can no longer be used, or an empty string."""
        lost, stuck = self._recorder.lost_hosts, to_leave_out(self._recorder.stalls)
        reasons = {host: f"{host} does not answer ({cause})" for host, cause in lost.items()}
        reasons |= {host: f"{host} is left out: it kept the others waiting" for host in stuck}
        return "; ".join(reasons[host.name] for host in hosts if host.name in reasons)

    def _note_stall(self, point: Point, end: WorkerTimedOut) -> None:
        """Note whose ranks kept those of other hosts waiting. While these are others, who it is will show."""
        names = [host.name for host in self._plan.hosts_of(point) for _ in range(host.slots or 0)]
        hosts = tuple(dict.fromkeys(names[rank] for rank in end.ranks if rank < len(names)))
        if hosts and len(hosts) < len({*names}):
            if all(stall.hosts != hosts for stall in self._recorder.stalls):
                self._starts[point.transport, point.ranks] = 0
            self._recorder.stalls.append(Stall(hosts, point.pattern, point.bytes, end.limit_s, bool(end.silent)))

    def _start(self, point: Point) -> _Live:
        transport, ranks = point.transport, point.ranks
        self._starts[transport, ranks] += 1
        info = self._catalogue.transports[transport]
        if info.model is not None:
            from hockney.worker.machine_model import compiled_file

            with compiled_file(info.model, ranks) as path:
                job = Job(info.executable, info.worker_name, ranks, model=path, seed=self._seed & 0x7FFFFFFF)
                return self._bring_up(transport, job)
        where = replace(self._plan.placement, hosts=self._plan.hosts_of(point))
        has_threads = "thread_multiple" in info.caps
        busy = ranks * (self._catalogue.patterns[point.pattern].threads(point.options) if has_threads else 1)
        too_many = not where.hosts and busy > where.cpus_for(busy, len(usable_cpus()))
        too_many |= any((host.slots or 1) > self._cpus.get(host.name, math.inf) for host in where.hosts)
        too_many |= (transport, ranks) in self._oversubscribed
        return self._bring_up(transport, self._job_of(transport, ranks, where, oversubscribed=too_many))

    def _job_of(self, transport: str, ranks: int, where: Placement, *, oversubscribed: bool = False) -> Job:
        """A job of real ranks; it is oversubscribed too where the background has CPUs of those that are measured."""
        info, background = self._catalogue.transports[transport], self._plan.background
        limits = self._plan.limits
        shared = background is not None and not set(background.cpus).isdisjoint(self._plan.placement.cpus)
        return Job(
            executable=info.executable,
            transport=info.worker_name,
            ranks=ranks,
            placement=where if where.bind else replace(where, cpus=choose_cpus(ranks)),
            oversubscribed=oversubscribed or shared,
            start_limit_s=limits.start_limit_s + (ranks if where.hosts and limits.limit_adapts else 0),
        )

    def _bring_up(self, transport: str, job: Job, *, stored: bool = True) -> _Live:
        started_unix_s = time.time()
        library, environment = self._catalogue.transports[transport].library, {**os.environ, **self._environment}
        command = launch(job, library, environment)
        command = replace(command, environment={**self._environment, **command.environment})
        misses = functools.partial(
            self._misses, job.placement.hosts if stored else ()
        )  # a background's hosts are others
        session = WorkerSession(command, start_limit_s=job.start_limit_s, misses_host=misses)
        with contextlib.ExitStack() as undo:
            undo.callback(session.kill)
            session.start()
            hello = session.hello()
            came = len(hello.ranks) or hello.size  # thousands of ranks on a model are not listed
            if came != job.ranks:
                asked = counted(job.ranks, "rank")
                raise LaunchFailed(command.launcher, f"asked for {asked}, {came} came up")
            _refuse_misplaced(command.launcher, job, hello.ranks)
            if _share_cpus(hello.ranks) and not job.oversubscribed:
                session.close()
                undo.pop_all()
                self._oversubscribed |= {(transport, job.ranks)} if stored else set()
                return self._bring_up(transport, replace(job, oversubscribed=True), stored=stored)
            launched = Launch(
                transport=transport,
                library=hello.library,
                ranks=job.ranks,
                started_unix_s=started_unix_s,
                argv=tuple(transport if word == str(job.model) else word for word in command.argv),
                cpus=tuple(rank.cpu for rank in hello.ranks),
                hosts=self._hosts(transport, job, hello.ranks),
                bound=_bound(hello.ranks),
                oversubscribed=job.oversubscribed,
                clock_ns=hello.clock_ns,
                index=self._index,
            )
            # Still inside: if the store fails, or Ctrl-C comes just now, the job must end too.
            self._recorder.tally.strangers[transport] += sum(rank.strangers for rank in hello.ranks)
            live = _Live(session, self._recorder.started(launched) if stored else 0, launched, job.placement.hosts)
            undo.pop_all()
            return live

    @property
    def _background_hosts(self) -> tuple[Host, ...]:
        return listed_hosts(self._plan.background.hosts) if self._plan.background is not None else ()

    def _hosts(self, transport: str, job: Job, ranks: Sequence[Rank]) -> tuple[str, ...]:
        """The host of each rank; of a model its node."""
        model = self._catalogue.transports[transport].model
        if model is None:
            return _host_names(job, ranks)
        from hockney.worker.machine_model import nodes_of_ranks

        return tuple(f"node {node}" for node in nodes_of_ranks(model.machine, len(ranks)))

    def _bury(self, point: Point, end: WorkerError) -> None:
        key = (point.transport, point.ranks)
        self._live.pop(key).session.kill()
        if self._starts[key] >= _STARTS_MAX:
            self._reasons[key] = f"given up after {_STARTS_MAX} starts of {point.transport}, the last ended so: {end}"


def _refuse_misplaced(launcher: str, job: Job, ranks: Sequence[Rank]) -> None:
    """Raises LaunchFailed where hosts have other numbers of ranks: a launcher may know fewer hosts than it is given."""
    if not job.placement.hosts:
        return
    wanted = sorted(host.slots or 0 for host in job.placement.hosts_of(job.ranks))
    if sorted(Counter(rank.host_key for rank in ranks).values()) != wanted:
        hosts, came = ", ".join(map(str, job.placement.hosts)), ", ".join(rank.host for rank in ranks)
        raise LaunchFailed(launcher, f"ranks that belong on {hosts} came up on {came}")


def _host_names(job: Job, ranks: Sequence[Rank]) -> tuple[str, ...]:
    """The hostname of each rank; the name that --hosts has for it where hosts have the same hostname."""
    hosts, places = tuple(rank.host for rank in ranks), [rank.host_key for rank in ranks]
    if len({*hosts}) >= len({*places}):
        return hosts
    listed = tuple(host.name for host in job.placement.hosts for _ in range(host.slots or 0))
    is_in_blocks = len({*zip(places, listed, strict=False)}) == len({*listed}) == len({*places})
    return listed if is_in_blocks else hosts


def _bound(ranks: Sequence[Rank]) -> tuple[str, ...]:
    """The CPUs that each rank may run on; () where no rank has any, as on a model."""
    is_known = any(rank.cpus_usable for rank in ranks)
    return tuple(rank.bound or f"{rank.cpus_usable} CPUs" for rank in ranks) if is_known else ()


def _share_cpus(ranks: Sequence[Rank]) -> bool:
    """Whether ranks of one machine share a CPU; only running ranks know which hosts are one machine."""
    pinned = [(rank.machine, rank.cpu) for rank in ranks if rank.cpus_usable == 1]
    free = [(rank.machine, rank.cpus_usable) for rank in ranks if rank.cpus_usable > 1]
    return len(set(pinned)) < len(pinned) or any(count > usable for (_, usable), count in Counter(free).items())


def measurement_of(point: Point, answer: MeasureAnswer) -> Measurement:
    """An answer as the measurement of a point, of no launch."""
    import numpy as np

    shared = {field.name for field in fields(Measurement)} & type(answer).model_fields.keys()
    known = {name: getattr(answer, name) for name in shared}
    return Measurement(
        **known | {"elapsed_ns": np.array(answer.elapsed_ns, dtype=np.int64)},
        point=point,
        launch_id=0,
        round=0,
        started_unix_s=0.0,
        definition=Definition(**{field.name: getattr(answer, field.name) for field in fields(Definition)}),
    )
