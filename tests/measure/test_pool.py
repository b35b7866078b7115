"""From the answer of a worker to a measurement that is stored: nothing is lost or swapped."""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.builders import make_placement

from hockney.machine.activity import StealMeter
from hockney.measure.load import Load
from hockney.measure.plan import Plan, make_plan
from hockney.measure.point_work import PointFailed
from hockney.measure.pool import WorkerPool, _host_names
from hockney.measure.recorder import Recorder
from hockney.measure.warnings import Tally
from hockney.model import Launch, Measurement, Point
from hockney.suites import Limits, pattern_suite
from hockney.units import START_LIMIT_S
from hockney.worker.answers import HelloAnswer, MeasureAnswer, Rank
from hockney.worker.background import Background
from hockney.worker.catalogue import Catalogue, load
from hockney.worker.errors import LaunchFailed, WorkerDied
from hockney.worker.hosts import Host, parse_hosts
from hockney.worker.launch import Job, StartCommand
from hockney.worker.placement import Placement
from hockney.worker.points import RunOptions
from hockney.worker.session import WorkerSession


class Noted(Recorder):
    """Keeps the launches of jobs that came up, without a store."""

    def __init__(self) -> None:
        self.tally, self.lost_hosts, self.stalls = Tally(), {}, []
        self.launches: list[Launch] = []

    def started(self, launched: Launch) -> int:
        self.launches.append(launched)
        return 6 + len(self.launches)


def pool_of(plan: Plan, catalogue: Catalogue, noted: Noted | None = None, *, asks_hosts: bool = True) -> WorkerPool:
    return WorkerPool(plan, catalogue, noted or Noted(), {}, asks_hosts=asks_hosts, cpus={"small": 1})


def broken(monkeypatch: pytest.MonkeyPatch, *, timed_out: bool = False) -> list[Job]:
    """The jobs that a pool tries to start; none comes up."""
    jobs: list[Job] = []

    def breaks(job: Job, *_: object) -> StartCommand:
        jobs.append(job)
        raise LaunchFailed("agent", "it broke", timed_out=timed_out)

    monkeypatch.setattr("hockney.measure.pool.launch", breaks)
    return jobs


@pytest.mark.parametrize("pattern", ["oneway", "allreduce"])
def test_a_measurement_holds_the_workers_answer(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[MeasureAnswer] = []
    noted = Noted()
    measure = WorkerSession.measure

    def noting(*words: Any, **how: Any) -> MeasureAnswer:
        changed = {
            "cpu_user_ns": (10, 11),
            "cpu_system_ns": (20, 21),
            "wall_ns": (30, 31),
            "counters": {"turns": (1.0, 2.0)},
        }
        answers.append(measure(*words, **how).model_copy(update=changed))
        return answers[-1]

    monkeypatch.setattr(WorkerSession, "measure", noting)
    monkeypatch.setattr(StealMeter, "read", lambda _: 0.25)
    catalogue = load()
    asked = RunOptions(transports=("shm",), sizes=(64,), oversubscribe=True)
    plan = make_plan(pattern_suite(pattern), asked, catalogue, cpus=2)
    pool = pool_of(plan, catalogue, noted)
    with pool.launch(3, seed=1):
        measurement = pool.measure(plan.points[0], round_=5, batch=4, samples=3, warmup=1, verify=True)
    (answer,), (launch,) = answers, noted.launches
    assert not +noted.tally.strangers
    assert (measurement.launch_id, measurement.round, measurement.steal, launch.index) == (7, 5, 0.25, 3)
    assert (measurement.point, measurement.places) == (plan.points[0], launch.places)
    assert measurement.elapsed_ns.tolist() == np.array(answer.elapsed_ns).tolist()
    assert measurement.verified
    for name in ("timed", "divisor", "bytes_per_rep", "messages_per_rep", "algorithm"):
        assert getattr(measurement.definition, name) == getattr(answer, name)
    kept = Measurement.__dataclass_fields__.keys() & MeasureAnswer.model_fields.keys() - {"elapsed_ns"}
    assert kept >= {"floor_ns", "pace_ns", "solo_ns", "wake_ns", "started_ns", "counters"}
    for name in kept:
        assert getattr(measurement, name) == getattr(answer, name), name


@pytest.mark.parametrize("transport", ["shm", "udp"])
def test_an_unverified_payload_fails_unless_it_may_be_lost(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = WorkerSession.measure

    def unverified(*words: Any, **how: Any) -> MeasureAnswer:
        return measure(*words, **how).model_copy(update={"verified": False})

    monkeypatch.setattr(WorkerSession, "measure", unverified)
    catalogue = load()
    asked = RunOptions(transports=(transport,), sizes=(64,), oversubscribe=True)
    plan = make_plan(pattern_suite("pingpong"), asked, catalogue, cpus=2)
    pool = pool_of(plan, catalogue)
    with pool.launch(0, seed=1):
        how: dict[str, Any] = {"round_": 0, "batch": 4, "samples": 3, "warmup": 1}
        assert not pool.measure(plan.points[0], **how, verify=False).verified
        if transport == "shm":
            with pytest.raises(PointFailed, match="not verified"):
                pool.measure(plan.points[0], **how, verify=True)
        else:
            assert not pool.measure(plan.points[0], **how, verify=True).verified


def test_a_job_that_always_dies_is_started_four_times(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = Noted()

    def dying(*words: Any, **how: Any) -> MeasureAnswer:
        raise WorkerDied("rank 1 was killed by SIGKILL")

    monkeypatch.setattr(WorkerSession, "measure", dying)
    catalogue = load()
    asked = RunOptions(transports=("shm",), sizes=(64,), oversubscribe=True)
    plan = make_plan(pattern_suite("pingpong"), asked, catalogue, cpus=2)
    pool = pool_of(plan, catalogue, noted)
    with pool.launch(0, seed=1):
        for reason in ["^rank 1 was killed"] * 4 + ["^given up after 4 starts of shm, .* killed by SIGKILL"]:
            with pytest.raises(PointFailed, match=reason):
                pool.measure(plan.points[0], round_=0, batch=4, samples=3, warmup=1, verify=True)
    assert len(noted.launches) == 4


@pytest.mark.parametrize(("silent", "is_missed"), [(("n2",), True), (("n1", "n2"), False), ((), False)])
def test_a_start_ends_early_only_for_a_host_that_is_then_dropped(
    silent: tuple[str, ...], is_missed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no host answers, another way may lead to them, and nothing is known."""
    cause = "ssh: connect to host n2 port 22: No route to host"
    monkeypatch.setattr("hockney.worker.preflight._of_each", lambda *_: ({}, dict.fromkeys(silent, cause)))
    point = Point("tcp", "pingpong", 2, 8)
    plan = Plan("test", (point,), placement=Placement(hosts=parse_hosts("n1,n2")))
    pool = pool_of(plan, load())
    hosts = (Host("n1"), Host("n2"))
    pool._ask(hosts).result()
    assert pool._misses(hosts) == is_missed
    assert bool(pool._lose_hosts(point)) == is_missed


@pytest.mark.parametrize(
    ("lost", "asks_hosts", "reason"),
    [
        ({"n2": "no route"}, True, "^n2 does not answer \\(no route\\)$"),
        ({"n1": "no route", "n2": "no route"}, True, "^agent did not start the ranks: it broke$"),
        ({}, True, "^agent did not start the ranks: it broke$"),
        ({"n2": "no route"}, False, "^agent did not start the ranks: it broke$"),
    ],
)
def test_after_a_failed_start_its_hosts_are_asked_and_those_that_do_not_answer_are_named(
    lost: dict[str, str], *, asks_hosts: bool, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where none answers, only a library's launcher reaches them, so nothing is known. Nothing is tried twice."""
    jobs = broken(monkeypatch)

    def lose(names: Sequence[str], _: object) -> tuple[dict[str, str], dict[str, str]]:
        asked.append(names)
        return {}, lost

    asked: list[Sequence[str]] = []
    monkeypatch.setattr("hockney.worker.preflight._of_each", lose)
    catalogue = load()
    options = RunOptions(
        placement=Placement(hosts=parse_hosts("n1:1,n2:1,n3:1")), transports=("tcp",), sizes=(8, 64), ranks=(2,)
    )
    plan = make_plan(pattern_suite("pingpong"), options, catalogue)
    noted = Noted()
    pool = pool_of(plan, catalogue, noted, asks_hosts=asks_hosts)
    with pool.launch(0, seed=1):
        for point in plan.points:
            with pytest.raises(PointFailed, match=reason):
                pool.clock_ns(point)
    assert len(jobs) == 1
    assert asked == [["n1", "n2"]] * asks_hosts
    assert noted.lost_hosts == (lost if "n2 does" in reason else {})


@pytest.mark.parametrize(("lost", "end"), [({}, "close"), ({"n1": "no route"}, "close"), ({"n3": "no route"}, "kill")])
def test_a_background_on_a_lost_host_is_killed_and_not_started_again(
    lost: dict[str, str], end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would not quit; the hosts of a failed job are asked together with those of the background."""
    monkeypatch.setattr("hockney.measure.pool.lost_hosts", lambda *_: lost)
    point = Point("tcp", "pingpong", 2, 8)
    pool = pool_of(
        Plan(
            "test",
            (point,),
            placement=Placement(hosts=parse_hosts("n1,n2")),
            background=Background("incast", 2, ("n3", "n4")),
        ),
        load(),
    )
    ended: list[str] = []
    ends = {name: functools.partial(ended.append, name) for name in ("close", "kill")}
    session: Any = SimpleNamespace(**ends, words=lambda: "")
    with pool.launch(0, seed=1):
        pool._loads["tcp"] = Load(session, Background("incast", 2), Limits(), is_lossy=False)
        pool._lose_hosts(point)
    assert ended == [end]
    if end == "kill":
        with pool.launch(1, seed=2), pytest.raises(PointFailed, match=r"^n3 does not answer \(no route\)$"):
            pool._start_load("tcp")


@pytest.mark.parametrize(
    ("cause", "hosts", "asks_hosts", "is_missed"),
    [
        ("ssh: connect to host n2 port 22: No route to host", ("n1:1", "n2:1"), True, True),
        ("no answer within 6 s", ("n1:1", "n2:1"), True, False),  # it may be slow
        ("ssh: connect to host n2 port 22: No route to host", ("n1:1", "n2:1"), False, False),
        ("ssh: connect to host n2 port 22: No route to host", (), True, False),
    ],
)
def test_a_start_ends_early_where_ssh_cannot_reach_a_host(
    cause: str, hosts: tuple[str, ...], *, asks_hosts: bool, is_missed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    missed: list[bool] = []

    class Starting(WorkerSession):
        def __init__(self, command: StartCommand, *, misses_host: Callable[[], bool], **how: Any) -> None:
            super().__init__(command, **how)
            self._misses = misses_host

        def start(self) -> None:
            end_s = time.monotonic() + 0.5  # as while it waits
            while not (is_missed := self._misses()) and time.monotonic() < end_s:
                time.sleep(0.01)
            missed.append(is_missed)
            raise LaunchFailed("agent", "it broke")

    monkeypatch.setattr("hockney.measure.pool.WorkerSession", Starting)
    monkeypatch.setattr("hockney.measure.pool.lost_hosts", lambda *_: {"n2": cause})
    catalogue = load()
    options = RunOptions(
        placement=make_placement(hosts), transports=("tcp",), sizes=(8,), ranks=(2,), oversubscribe=True
    )
    plan = make_plan(pattern_suite("pingpong"), options, catalogue)
    pool = pool_of(plan, catalogue, asks_hosts=asks_hosts)
    with pool.launch(0, seed=1), pytest.raises(PointFailed):
        pool.clock_ns(plan.points[0])
    assert missed == [is_missed]


@pytest.mark.parametrize(
    ("asked", "bind", "oversubscribed"),
    [
        ({}, "0,1,2", False),
        ({"cpus": (5, 3, 3)}, "5,3,3", True),
        ({"cpus": (5, 4, 3, 3)}, "5,4,3,3", False),
        ({"map_by": "node"}, "node", False),
        ({"hosts": ("n1", "n2")}, "core", False),
        ({"hosts": ("n1", "n2"), "map_by": "node"}, "node", False),
        ({"hosts": ("n1", "small")}, "core", False),
        ({"hosts": ("small", "n2")}, "core", True),  # which gets two of three ranks
    ],
)
def test_hockney_names_the_cpus_of_ranks_unless_hosts_or_a_map_do(
    asked: dict[str, Any],
    bind: str,
    oversubscribed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = broken(monkeypatch)
    monkeypatch.setattr("hockney.measure.pool.choose_cpus", lambda ranks: tuple(range(ranks)))
    monkeypatch.setattr("hockney.measure.pool.usable_cpus", lambda: tuple(range(8)))
    catalogue = load()
    options = RunOptions(transports=("tcp",), ranks=(3,), oversubscribe=True, placement=make_placement(**asked))
    plan = make_plan(pattern_suite("barrier"), options, catalogue)
    pool = pool_of(plan, catalogue, asks_hosts=False)
    with pool.launch(0, seed=1), pytest.raises(PointFailed):
        pool.clock_ns(plan.points[0])
    (job,) = jobs
    assert (job.placement.bind, job.oversubscribed) == (bind, oversubscribed)
    # Of many ranks an MPI's launcher needs a second for each on hosts that share two CPUs.
    assert job.start_limit_s == START_LIMIT_S + (3 if "hosts" in asked else 0)


@pytest.mark.parametrize(("timed_out", "starts"), [(True, 1), (False, 2)])
def test_a_launcher_that_never_answered_is_not_started_for_another_number_of_ranks(
    timed_out: bool, starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = broken(monkeypatch, timed_out=timed_out)
    catalogue = load()
    options = RunOptions(transports=("shm",), ranks=(2, 3), oversubscribe=True)
    plan = make_plan(pattern_suite("barrier"), options, catalogue)
    pool = pool_of(plan, catalogue)
    with pool.launch(0, seed=1):
        for point in plan.points:
            with pytest.raises(PointFailed, match="it broke"):
                pool.clock_ns(point)
    assert [job.ranks for job in jobs] == [2, 3][:starts]


def came_up(
    monkeypatch: pytest.MonkeyPatch,
    found: Sequence[tuple[str, int, int]],
    hosts: tuple[str, ...] = (),
    launches: int = 1,
) -> list[Launch]:
    """The launches of a barrier whose ranks say that they are on these machines and CPUs, of so many usable ones."""
    hello = WorkerSession.hello

    def elsewhere(session: WorkerSession) -> HelloAnswer:
        answer = hello(session)
        places = [{"machine": machine, "cpu": cpu, "cpus_usable": usable} for machine, cpu, usable in found]
        ranks = tuple(rank.model_copy(update=place) for rank, place in zip(answer.ranks, places, strict=True))
        return answer.model_copy(update={"ranks": ranks})

    monkeypatch.setattr(WorkerSession, "hello", elsewhere)
    monkeypatch.setattr("hockney.measure.pool.usable_cpus", lambda: tuple(range(64)))
    monkeypatch.setenv("HOCKNEY_RSH", """sh -c 'exec sh -c "$1"'""")  # leads to this host
    noted = Noted()
    catalogue = load()
    options = RunOptions(placement=make_placement(hosts), transports=("tcp",), ranks=(len(found),), oversubscribe=True)
    plan = make_plan(pattern_suite("barrier"), options, catalogue)
    pool = pool_of(plan, catalogue, noted, asks_hosts=False)
    for index in range(launches):
        with pool.launch(index, seed=1):
            pool.clock_ns(plan.points[0])
    return noted.launches


@pytest.mark.parametrize(
    ("found", "share"),
    [
        ([("a", 0, 1), ("a", 1, 1), ("a", 2, 1)], False),
        ([("a", 0, 1), ("a", 1, 1), ("a", 0, 1)], True),
        ([("a", 0, 1), ("a", 1, 1), ("b", 0, 1)], False),
        ([("a", 0, 3), ("a", 0, 3), ("a", 0, 3)], False),  # not pinned: each has a CPU to move to
        ([("a", 0, 2), ("a", 0, 2), ("a", 0, 2)], True),
        ([("a", 0, 2), ("a", 0, 2), ("b", 0, 2)], False),
    ],
)
def test_ranks_that_came_up_on_shared_cpus_are_started_again_to_yield(
    found: list[tuple[str, int, int]], *, share: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each launch after the first one starts them so at once."""
    starts, start = Counter[str](), WorkerSession.start

    def counted(session: WorkerSession) -> None:
        starts["all"] += 1
        start(session)

    monkeypatch.setattr(WorkerSession, "start", counted)
    launches = came_up(monkeypatch, found, launches=3)
    assert [launch.oversubscribed for launch in launches] == [share] * 3
    assert starts["all"] == 3 + share


@pytest.mark.parametrize("machines", ["aab", "aba", "abb", "aaa"])
def test_ranks_on_other_hosts_than_asked_for_are_not_measured(machines: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(machine, cpu, 1) for cpu, machine in enumerate(machines)]
    hosts = ("127.0.0.1:2", "b:1")
    if len({*machines}) == 2:
        assert len(came_up(monkeypatch, found, hosts)) == 1
    else:
        with pytest.raises(PointFailed, match=r"ranks that belong on 127\.0\.0\.1:2, b:1 came up on"):
            came_up(monkeypatch, found, hosts)


@pytest.mark.parametrize(
    ("machines", "hostnames", "named"),
    [
        ("aabb", ("x", "x", "y", "y"), ("x", "x", "y", "y")),
        ("aabb", ("localhost",) * 4, ("n1", "n1", "n2", "n2")),
        ("aaaa", ("localhost",) * 4, ("localhost",) * 4),
        ("abab", ("localhost",) * 4, ("localhost",) * 4),  # not in the order of the list
    ],
)
def test_ranks_on_machines_of_one_hostname_have_the_names_that_were_listed(
    machines: str, hostnames: tuple[str, ...], named: tuple[str, ...]
) -> None:
    job = Job(Path("worker"), "tcp", 4, Placement(hosts=(Host("n1", 2), Host("n2", 2))))
    ranks = [
        Rank(rank=number, host=host, machine=machine, network="", pid=1, cpu=0, cpus_usable=1, bound="0", strangers=0)
        for number, (machine, host) in enumerate(zip(machines, hostnames, strict=True))
    ]
    assert _host_names(job, ranks) == named
