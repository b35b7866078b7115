"""Patterns with threads that call MPI at once, partitioned messages, forked children, and the start of a launch."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.matrix import matrix
from tests.worker.extra import EXTRA, THREAD
from tests.worker.test_native import DESCRIPTION, all_unsupported, converse, measure, measured, shared
from tests.worker.test_session import EVERY_MPI, SHORT_MPIS, opened
from tests.worker.test_session import shared_job as job

from hockney.model import Point
from hockney.worker.build import build_worker
from hockney.worker.catalogue import Catalogue, load
from hockney.worker.errors import WorkerDied, WorkerRefused, WorkerTimedOut
from hockney.worker.launch import StartCommand
from hockney.worker.libraries import Library
from hockney.worker.placement import Placement
from hockney.worker.points import reasons
from hockney.worker.session import WorkerSession

THREADED = [row["name"] for row in DESCRIPTION["patterns"] if "thread_multiple" in row["needs"]]
MESSAGES = [name for name in THREADED if name != "mt_collective"]
OPTIONS = {
    row["name"]: {option["name"]: option for option in row["options"]}
    for row in DESCRIPTION["patterns"]
    if row["name"] in THREADED
}
FEW: dict[str, Any] = {"batch": 3, "samples": 2, "timeout_s": 120}


def asked(**options: object) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in options.items()]


def faulty(mpi: Library, transport: str, fault: str, folder: Path) -> StartCommand:
    """A job whose MPI has this fault."""
    library, source = folder / "faults.so", Path(__file__).parent / "mpi_faults.c"
    subprocess.run([*mpi.recipe.compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    plain = job(mpi, transport)
    return replace(plain, environment={**plain.environment, "LD_PRELOAD": str(library), "HOCKNEY_MPI_FAULT": fault})


def ends_with_its_name(mpi: Library, transport: str, call: str, folder: Path, pattern: str, options: str) -> None:
    """A call that fails ends the job: no rank waits for the one that has failed."""
    name, rank, _ = call.split()
    given = [(option, value) for option, _, value in (word.partition("=") for word in options.split())]
    with WorkerSession(faulty(mpi, transport, f"fail {call}", folder)) as session:
        session.hello()
        with pytest.raises(WorkerDied, match=f"rank {rank}: MPI_{name} failed: "):
            session.measure(pattern, bytes=8, batch=4, samples=4, timeout_s=60, options=given)


# ---- the threads themselves, over a transport that costs nothing -----------------------------------------------------


@pytest.mark.parametrize("name", MESSAGES)
def test_a_repetition_counts_the_messages_of_all_threads(name: str) -> None:
    """By hand, of 4 ranks with 3 threads each: of each pair of threads, in a window of 8."""
    of_pair = {"mt_pingpong": 2, "mt_pingping": 2, "mt_sendrecv": 2, "mt_exchange": 4, "mt_uniband": 8, "mt_biband": 16}
    divisor = {"mt_pingpong": 2, "mt_uniband": 8, "mt_biband": 16}
    window = {"window": 8} if "window" in OPTIONS[name] else {}
    (answer,) = measured([measure(name, 100, threads=3, **window)], "-t", "null", *shared(4))
    assert answer["messages_per_rep"] == 3 * 2 * of_pair[name]
    assert answer["bytes_per_rep"] == 100 * answer["messages_per_rep"]
    assert answer["divisor"] == divisor.get(name, 1)
    assert answer["timed"] == ("sources" if name in ("mt_pingpong", "mt_uniband") else "mean")


def test_threads_have_no_data_race() -> None:
    commands = [
        measure(name, 8, batch=50, samples=3, threads=threads, time=time)
        for name in MESSAGES
        for threads, time in ((1, "mean"), (2, "slowest"), (5, "mean"))
    ]
    measured(commands, "-t", "null", *shared(), recipe=THREAD)


def test_options_that_do_not_suit_each_other_are_refused() -> None:
    asked = {
        measure("mt_pingpong", 8, receivers=3): "receivers= needs comm=pool: else thread i answers to thread i",
        measure("mt_pingpong", 8, comm="shared", match="any"): (
            "comm=shared tells threads apart by their tags: with any tag use comm=private or comm=pool"
        ),
        measure("mt_sendrecv", 8, distance=4): (
            "distance= is a multiple of the number of ranks: a rank would send to itself"
        ),
        measure("mt_collective", 6): "mt_collective accepts multiples of 4 B, not 6 B",
        measure("mt_collective", 8): "null has no collective operation of its own",
        measure("partitioned", 8): "partitioned needs messages in partitions, which null does not offer",
        measure("init", 0): "init needs a library that starts the ranks, which null does not offer",
    }
    assert all_unsupported(list(asked), "null", 4) == list(asked.values())


def test_more_threads_than_cpus_are_refused(catalogue: Catalogue) -> None:
    two, one = (Point("null", "mt_pingpong", 2, 8, options) for options in ((), (("threads", "1"),)))
    why = reasons([two, one], catalogue, Placement(), 2, None, oversubscribe=False)
    assert why == {
        two: "more threads (4) than CPUs (2) would measure the scheduler; allow this process more CPUs, or use run "
        "--oversubscribe"
    }
    assert reasons([two], catalogue, Placement(), 4, None, oversubscribe=False) == {}
    assert reasons([two], catalogue, Placement(), 2, None, oversubscribe=True) == {}


# ---- messages of threads ---------------------------------------------------------------------------------------------


@EVERY_MPI
@pytest.mark.parametrize("name", MESSAGES)
def test_every_thread_gets_its_messages(mpi: Library, name: str) -> None:
    with opened(job(mpi, "mpi:threads")) as session:
        for comm in OPTIONS[name]["comm"]["choices"].split("|"):
            for threads in (1, 2, 3):
                for size in (0, 8, 40_000):
                    window = {"window": 5} if "window" in OPTIONS[name] else {}
                    options = asked(comm=comm, threads=threads, **window)
                    assert session.measure(name, bytes=size, options=options, **FEW).verified, (comm, threads, size)


@EVERY_MPI
@pytest.mark.full
@pytest.mark.parametrize("name", ["mt_sendrecv", "mt_exchange"])
def test_threads_have_neighbours_at_a_distance(mpi: Library, name: str) -> None:
    with opened(job(mpi, "mpi:threads", ranks=3)) as session:
        for distance in (1, 2, 4):
            assert session.measure(name, bytes=64, options=asked(distance=distance), **FEW).verified


@EVERY_MPI
@pytest.mark.parametrize("team", matrix([(1, 2), (2, 2), (3, 2), (1, 4), (4, 1)], short=[(1, 2), (3, 2)]), ids=str)
def test_any_thread_of_a_pool_answers(mpi: Library, team: tuple[int, int]) -> None:
    """As in osu_latency_mt, where one thread sends and two answer."""
    threads, receivers = team
    with opened(job(mpi, "mpi:threads")) as session:
        for match in ("all", "any-source", "any-tag", "any"):
            options = asked(comm="pool", threads=threads, receivers=receivers, match=match)
            assert session.measure("mt_pingpong", bytes=100, options=options, **FEW).verified


@EVERY_MPI
def test_threads_call_collectives_at_once(mpi: Library) -> None:
    with opened(job(mpi, "mpi:threads")) as session:
        for operation in OPTIONS["mt_collective"]["operation"]["choices"].split("|"):
            for start in ("barrier", "stream"):
                options = asked(operation=operation, start=start)
                assert session.measure("mt_collective", bytes=40, options=options, **FEW).verified, options


@EVERY_MPI
def test_a_wrong_byte_of_any_thread_is_named(mpi: Library, tmp_path: Path) -> None:
    """Thread 1 alone gets it."""
    with opened(faulty(mpi, "mpi:threads", "flip", tmp_path)) as session:
        for name in ("mt_pingpong", "mt_pingping", "mt_exchange"):
            assert session.measure(name, bytes=16, options=asked(comm="shared", threads=1), **FEW).verified
            with pytest.raises(WorkerRefused, match=r"corrupted message of 16 B from rank [01]: byte 5 is") as wrong:
                session.measure(name, bytes=16, options=asked(comm="shared"), **FEW)
            assert wrong.value.code == "corrupt"


@EVERY_MPI
def test_a_thread_whose_message_never_comes_ends_at_the_limit(mpi: Library, tmp_path: Path) -> None:
    with WorkerSession(faulty(mpi, "mpi:threads", "lost", tmp_path)) as session:
        session.hello()
        with pytest.raises(WorkerTimedOut, match="mt_pingpong"):
            session.measure("mt_pingpong", bytes=8, options=asked(comm="shared"), timeout_s=2)


@EVERY_MPI
@pytest.mark.parametrize(("name", "turn"), [("mt_collective", 1), ("mt_collective", 4), ("mt_pingpong", 1)])
def test_threads_that_one_rank_has_no_memory_for_leave_nothing(
    mpi: Library, name: str, turn: int, tmp_path: Path
) -> None:
    with opened(faulty(mpi, "mpi:threads", f"fail aligned_alloc 1 {turn}", tmp_path)) as session:
        with pytest.raises(WorkerRefused, match=r"rank 1: no memory for .*2 threads") as refused:
            session.measure(name, bytes=8, **FEW)
        assert refused.value.code == "memory"
        assert session.measure(name, bytes=8, **FEW).verified


@EVERY_MPI
def test_a_library_with_a_lower_level_of_threads_is_skipped_with_it(mpi: Library, tmp_path: Path) -> None:
    with opened(faulty(mpi, "mpi:threads", "level", tmp_path)) as session:
        for name in ("mt_pingpong", "pingpong"):
            with pytest.raises(WorkerRefused) as refusal:
                session.measure(name, bytes=8)
            assert refusal.value.unsupported
            why = "the library was asked for MPI_THREAD_MULTIPLE and gave MPI_THREAD_SERIALIZED"
            assert str(refusal.value) == f"{name} cannot run on mpi:threads: {why}"


# ---- partitioned messages, children ----------------------------------------------------------------------------------


@EVERY_MPI
def test_partitioned_messages_where_the_library_has_them(mpi: Library) -> None:
    """MPI 4: MPICH 4, Open MPI 5. Others say what has them."""
    is_old = "openmpi-4" in mpi.id
    assert ("partitions" in load(libraries=[mpi]).transports[mpi.id].caps) is not is_old
    with opened(job(mpi, "mpi:threads")) as session:
        if is_old:
            with pytest.raises(WorkerRefused, match=r"this library has none; MPI 4 has \(Open MPI 5, MPICH 4\)"):
                session.measure("partitioned", bytes=8)
        else:
            for parts, threads, arrived in ((1, 1, "all"), (8, 1, "each"), (8, 2, "all"), (6, 3, "each")):
                options = asked(partitions=parts, threads=threads, arrived=arrived)
                for size in (24, 48_000):
                    assert session.measure("partitioned", bytes=size, options=options, **FEW).verified


@pytest.mark.parametrize("mpi", [mpi for mpi in SHORT_MPIS if mpi.kind == "mpich"], ids=lambda mpi: mpi.id)
def test_a_wrong_byte_of_a_partitioned_message_is_named(mpi: Library, tmp_path: Path) -> None:
    """Rank 0 waits for its message last, rank 1 once more for its answer."""
    wrong = pytest.raises(WorkerRefused, match=r"rank 0 got a corrupted message of 16 B from rank 1: byte 5 is")
    with opened(faulty(mpi, "mpi", "flip", tmp_path)) as session, wrong:
        session.measure("partitioned", bytes=16, **FEW)


def test_a_wrong_byte_is_named_where_ranks_have_children() -> None:
    env = {"HOCKNEY_FAULT": "corrupt 1 17"}
    answers, done = converse(build_worker(EXTRA), [measure("forked", 64)], "-t", "fault", *shared(), env=env)
    assert (answers[0]["code"], answers[0]["rank"], answers[0]["offset"]) == ("corrupt", 1, 17), done.stderr


def test_children_end_with_their_point() -> None:
    for transport in ("tcp", "threads"):
        with WorkerSession(job(transport=transport)) as session:
            pids = {rank.pid for rank in session.hello().ranks}
            assert session.measure("forked", bytes=1000, options=asked(children=3), **FEW).verified
            assert [child for pid in pids for child in psutil.Process(pid).children()] == []
            session.close()


# ---- start-up --------------------------------------------------------------------------------------------------------


@EVERY_MPI
def test_a_launch_has_one_sample_of_its_start(mpi: Library, tmp_path: Path) -> None:
    """The start of MPI was made 0.3 s longer."""
    with opened(faulty(mpi, "mpi", "slow", tmp_path)) as session:
        first = session.measure("init", samples=1)
        again = session.measure("init", samples=1)
        launch = session.measure("init", samples=1, options=asked(**{"from": "launcher"}))
    assert [len(row) for row in first.elapsed_ns] == [1, 1]
    assert min(first.elapsed_ns)[0] >= 300_000_000
    assert first.elapsed_ns == again.elapsed_ns
    for (call_ns,), (launch_ns,) in zip(first.elapsed_ns, launch.elapsed_ns, strict=True):
        assert launch_ns + 10_000_000 >= call_ns  # it has a resolution of 10 ms


@EVERY_MPI
def test_the_first_exchange_of_each_pair_is_that_of_the_launch(mpi: Library, tmp_path: Path) -> None:
    """It was made 0.3 s longer on each side, the second one was not."""
    with opened(faulty(mpi, "mpi:startup", "first", tmp_path)) as session:
        first = session.measure("first", samples=1)
        again = session.measure("first", samples=1)
        pair = session.measure("first", samples=1, options=asked(pairs="one", source=1, target=0))
    assert min(first.elapsed_ns)[0] >= 300_000_000
    assert first.elapsed_ns == again.elapsed_ns == pair.elapsed_ns
    assert first.counters["longest_ns"] == tuple(float(row[0]) for row in first.elapsed_ns)
    assert {"second_ns", "resident_bytes", "proportional_bytes"} <= set(first.counters)
