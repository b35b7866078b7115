"""Every benchmark of the classic reports by name: on a real transport, and on null, which shows the harness alone."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hockney.archive import published, reports
from hockney.worker.answers import MeasureAnswer
from hockney.worker.catalogue import Catalogue, load
from hockney.worker.errors import WorkerRefused
from hockney.worker.launch import Job, launch
from hockney.worker.libraries import Library
from hockney.worker.placement import Placement
from hockney.worker.session import WorkerSession

CPUS = tuple(sorted(os.sched_getaffinity(0)))
Jobs = Callable[..., WorkerSession]


@dataclass(frozen=True)
class Benchmark:
    """The pattern behind a name, and the definition of a repetition. `why`: null refuses it, with these words."""

    options: tuple[tuple[str, str], ...]
    why: str
    report: str
    name: str  # the archive's name; brackets distinguish several of one name
    pattern: str
    real: str
    ranks: int
    bytes: int
    timed: str
    divisor: int
    messages: int

    def __str__(self) -> str:
        return f"{self.report}: {self.name}"


def benchmark(*fields: Any, why: str = "", **options: object) -> Benchmark:
    return Benchmark(tuple((name, str(value)) for name, value in options.items()), why, *fields)


NO_PAYLOAD = "ft needs messages that really arrive, which null does not offer"
BENCHMARKS = [
    benchmark("atlas", "Com-1.1", "oneway", "tcp", 2, 4, "root", 1, 1),
    benchmark("atlas", "Com-1.2", "twoway", "tcp", 2, 4, "root", 2, 2),
    benchmark("atlas", "Com-1.3", "alltoall", "unix", 4, 64, "slowest", 1, 12, algorithm="flat"),
    benchmark("atlas", "Com-1.4", "pairs", "unix", 4, 64, "sources", 1, 2),
    benchmark("atlas", "Com-1.5", "outfarm", "shm", 5, 256, "root", 1, 4),
    benchmark("atlas", "Com-1.6", "multicast", "shm", 5, 256, "root", 1, 4),
    benchmark("atlas", "Com-1.7", "funnel", "shm", 5, 1024, "root", 1, 4),
    benchmark("atlas", "Com-2.1", "pushfarm", "tcp", 7, 16, "root", 1, 4, senders=4),
    benchmark("atlas", "Com-2.2", "pullfarm", "tcp", 7, 16, "root", 1, 4, senders=4),
    benchmark("atlas", "Com-3.1", "robpush", "shm", 3, 256, "root", 1, 2, delay_us=100, buffers=2),
    benchmark("atlas", "Com-3.2", "robpull", "shm", 3, 1024, "root", 1, 2, delay_us=100, buffers=2),
    benchmark("scabench", "one-way (pingping)", "oneway", "pipe", 2, 0, "root", 1, 1),
    benchmark("scabench", "two-way", "twoway", "pipe", 2, 0, "root", 2, 2),
    benchmark("scabench", "ping-pong (0 B)", "pingpong", "shm", 2, 0, "root", 2, 2),
    benchmark("scabench", "ping-pong (32 B)", "pingpong", "shm", 2, 32, "root", 2, 2),
    benchmark("scabench", "bisection", "bisection", "shm", 4, 1024, "slowest", 2, 4),
    benchmark("scabench", "barrier", "barrier", "shm", 4, 0, "slowest", 1, 0),
    benchmark("scabench", "alltoall", "alltoall", "shm", 4, 1024, "slowest", 1, 12),
    benchmark("scabench", "NPB 2.3 FT class A (here S)", "ft", "shm", 2, 0, "root", 1, 0, why=NO_PAYLOAD),
    benchmark("t3d", "ping_pong", "putpong", "shm", 3, 8, "rank 1", 2, 2, source=1, target=2),
    benchmark("t3d", "single_pairs (and Rmax, N 1/2)", "put", "shm", 3, 4096, "rank 1", 1, 1, source=1, target=2),
    benchmark("t3d", "multiple_pairs", "putring", "shm", 4, 8, "mean", 1, 4, distance=3),
    benchmark("t3d", "load table (local)", "memload", "shm", 1, 4096, "root", 1, 1),
    benchmark("t3d", "load table (read ahead)", "memload", "shm", 1, 4096, "root", 1, 1, access="read-ahead"),
    benchmark("t3d", "load table (in page)", "memload", "shm", 1, 4096, "root", 8, 8, access="stream"),
    benchmark("t3d", "load table (remote)", "get", "shm", 2, 64, "root", 1, 1),
    benchmark("t3d", "pvm/mpi (previous newsletter)", "pingpong", "pvm", 2, 8, "root", 2, 2),
    benchmark("t3d", "remote load (by distance)", "putpong", "shm", 2, 8, "root", 2, 2),
    *(
        benchmark(
            *("ancor", f"stream write/read ({write}, {read}, from {source})", "stream", real),
            *(2, 65_500, "slowest", 256, 256),
            write=write,
            read=read,
            source=source,
        )
        for write, real in (("nonblocking", "unix"), ("blocking", "tcp"))
        for read in ("nonblocking", "blocking")
        for source in (0, 1)
    ),
    *(
        benchmark("paragon", f"ping-pong bandwidth ({method})", "pingpong", real, 2, 65_536, "root", 2, 2)
        for method, real in (
            ("NX csend/crecv", "shm"),
            ("psend/precv", "pvm:psend"),
            ("PvmDataInPlace", "pvm:inplace"),
            ("PvmDataRaw", "pvm:raw"),
            ("PvmDataDefault", "pvm:default"),
        )
    ),
]


@functools.cache
def catalogue() -> Catalogue:
    return load()


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    """One job of each transport and number of ranks; a job stays up from one point to the next, as in a run."""
    with ExitStack() as open_jobs:

        @functools.cache
        def started(executable: Path, transport: str, ranks: int, library: Library | None) -> WorkerSession:
            job = Job(executable, transport, ranks, Placement(cpus=CPUS), oversubscribed=ranks > len(CPUS))
            session = open_jobs.enter_context(WorkerSession(launch(job, library)))
            session.hello()
            return session

        yield started


def run(jobs: Jobs, name: str, one: Benchmark) -> MeasureAnswer:
    base, _, variant = name.partition(":")
    transport = next(
        (
            info
            for full, info in catalogue().transports.items()
            if full.partition("@")[0].partition(":")[0] == base and full.partition(":")[2] == variant
        ),
        None,
    )
    if transport is None:
        pytest.skip(f"{name} is not here")
    session = jobs(transport.executable, transport.worker_name, one.ranks, transport.library)
    return session.measure(one.pattern, bytes=one.bytes, batch=2, samples=3, timeout_s=60, options=one.options)


def check(answer: MeasureAnswer, one: Benchmark) -> None:
    definition = (answer.timed, answer.divisor, answer.messages_per_rep, answer.bytes_per_rep)
    size = 8 if one.pattern == "memload" else one.bytes
    assert definition == (one.timed, one.divisor, one.messages, one.messages * size)
    assert [len(row) for row in answer.elapsed_ns] == [3] * one.ranks


@pytest.mark.parametrize("one", BENCHMARKS, ids=str)
def test_on_a_real_transport(jobs: Jobs, one: Benchmark) -> None:
    answer = run(jobs, one.real, one)
    check(answer, one)
    # A barrier carries nothing, and loads are nobody's messages.
    assert answer.verified is (one.pattern not in ("barrier", "memload"))


@pytest.mark.parametrize("one", BENCHMARKS, ids=str)
def test_on_null(jobs: Jobs, one: Benchmark) -> None:
    if one.why:
        with pytest.raises(WorkerRefused) as refused:
            run(jobs, "null", one)
        assert str(refused.value) == one.why
    else:
        answer = run(jobs, "null", one)
        check(answer, one)
        assert not answer.verified


def test_no_benchmark_of_the_archive_is_left_out() -> None:
    known = {(report, str(figure.benchmark)) for report in reports() for figure in published(report)}
    for report, name in known:
        assert any(one.report == report and one.name.startswith(name) for one in BENCHMARKS), (report, name)
