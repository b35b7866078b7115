"""Finding OpenSHMEM: made-up installations, and the real one of this machine, whose hooks are driven too."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.matrix import matrix
from tests.worker import made_up
from tests.worker.made_up import on_path
from tests.worker.test_mpi_variants import check_mailbox, mailbox_over
from tests.worker.test_session import CPUS, ENDLESS, opened, soon
from tests.worker.test_session import shared_job as job

from hockney.model import Point
from hockney.worker.catalogue import load
from hockney.worker.errors import WorkerDied, WorkerError, WorkerRefused
from hockney.worker.launch import StartCommand
from hockney.worker.libraries import SHMEM, Library
from hockney.worker.session import WorkerSession

FOUND = SHMEM()[0]
EVERY_SHMEM = pytest.mark.parametrize("shmem", FOUND, ids=lambda shmem: shmem.id)
VARIANTS = ("shmem", "shmem:static")

MACROS = {
    "openmpi": "#define OSHMEM_MAJOR_VERSION 5\n#define OSHMEM_MINOR_VERSION 0\n#define OSHMEM_RELEASE_VERSION 3",
    "other": '#define SHMEM_VENDOR_STRING "somebody"',
}
LAUNCHERS = {"openmpi": "oshrun (Open MPI) 5.0.3", "other": "launcher 1.0"}


def install(root: Path, maker: str, *, launcher: str | None = "oshrun", says: str = "") -> Path:
    """A made-up OpenSHMEM. Returns its bin folder."""
    return made_up.install(root, "oshcc", "oshmem", MACROS[maker], launcher, says or LAUNCHERS[maker])


def test_none_at_all(only: Path) -> None:
    assert SHMEM() == ((), ())


@pytest.mark.parametrize(
    ("maker", "name", "text", "launcher"),
    [
        ("openmpi", "shmem@openmpi-5.0.3", "Open MPI 5.0.3, OpenSHMEM", "oshrun"),
        ("other", "shmem@other", "another OpenSHMEM", "mpiexec"),
    ],
)
def test_one_on_path(
    only: Path, monkeypatch: pytest.MonkeyPatch, maker: str, name: str, text: str, launcher: str
) -> None:
    tools = install(only / "one", maker)
    on_path(monkeypatch, tools)
    (shmem,), unusable = SHMEM()
    assert (shmem.id, shmem.name, shmem.kind) == (name, text, launcher)
    assert shmem.program == tools / "oshrun"
    assert (shmem.recipe.family, shmem.recipe.compiler) == ("shmem", (str(tools / "oshcc"),))
    assert unusable == ()


def test_the_one_that_is_asked_for(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = install(only / "asked", "openmpi", launcher="shmemrun")
    monkeypatch.setenv("HOCKNEY_OSHCC", str(tools / "oshcc"))
    (shmem,), _ = SHMEM()
    assert shmem.program == tools / "shmemrun"


# ---- the real one --------------------------------------------------------------------------------------------------


def test_open_mpis_is_here() -> None:
    if shutil.which("oshcc") is None:
        pytest.skip("no OpenSHMEM is installed")
    assert any(shmem.id.startswith("shmem@openmpi-") for shmem in FOUND)


@EVERY_SHMEM
def test_capabilities(shmem: Library) -> None:
    transports = load(libraries=[shmem]).transports
    for name in (shmem.id, f"{shmem.id}:static"):
        assert transports[name].caps - {"windows", "signal"} == {
            *("one_sided", "deferred", "atomics", "payload", "spins", "hosts", "startup")
        }
        assert ("windows" in transports[name].caps) is (name == shmem.id)
        assert transports[name].native == {"allgather", "allgatherv", "allreduce", "alltoall", "barrier", "bcast"}
    assert transports[shmem.id].max_bytes == 0
    assert transports[f"{shmem.id}:static"].max_bytes == 1 << 20


@EVERY_SHMEM
@pytest.mark.parametrize("transport", VARIANTS)
def test_a_session_from_hello_to_quit_without_a_crash_at_its_end(shmem: Library, transport: str) -> None:
    with WorkerSession(job(shmem, transport)) as session:
        hello = session.hello()
        assert (hello.family, hello.transport) == ("shmem", transport)
        assert [rank.rank for rank in hello.ranks] == [0, 1]
        if len(CPUS) > 1:
            assert [rank.cpu for rank in hello.ranks] == list(CPUS[:2])
        answer = session.measure("barrier", batch=10, samples=5, timeout_s=30)
        assert answer.algorithm == "native"
        with pytest.raises(WorkerRefused, match="needs send and receive"):
            session.measure("pingpong", bytes=8)
        session.close()
    assert not session.channel.noise


@EVERY_SHMEM
@pytest.mark.parametrize("ranks", matrix([2, 3, 4], short=[3]))
@pytest.mark.parametrize("transport", VARIANTS)
def test_the_librarys_collectives(shmem: Library, transport: str, ranks: int) -> None:
    """More collectives than sync arrays, an odd and an even number of words, and every byte is verified."""
    native = [("algorithm", "native")]
    patterns = [
        ("alltoall", []),
        ("alltoall", native),
        ("bcast", native),
        ("bcast", [("root", "1")]),
        ("allgather", []),
        ("allgatherv", [("counts", "linear")]),
        ("bcast", [("start", "barrier")]),
        *([("alltoall", [("data", "fresh")])] if transport == "shmem" else []),  # static data have no room
    ]
    by_others = [("gather", "allgather"), ("scatter", "bcast"), ("allgather", "allgatherv"), ("reduce", "allreduce")]
    with opened(job(shmem, transport, ranks)) as session:
        for pattern, options in patterns:
            for size in (4, 8, 100, 70_000):
                answer = session.measure(pattern, bytes=size, batch=70, samples=1, timeout_s=60, options=options)
                assert (answer.algorithm, answer.verified) == ("native", True)
        for size in (8, 104, 70_000):
            answer = session.measure("allreduce", bytes=size, batch=70, samples=1, timeout_s=60)
            assert (answer.algorithm, answer.verified) == ("native", True)
            for pattern, algorithm in by_others:
                options = [("algorithm", algorithm)]
                answer = session.measure(pattern, bytes=size, batch=69, samples=1, timeout_s=60, options=options)
                assert (answer.algorithm, answer.verified) == (algorithm, True)
        by_allreduce = session.measure("barrier", batch=70, samples=1, options=[("algorithm", "allreduce")])
        assert by_allreduce.algorithm == "allreduce"
    assert not session.channel.noise


@EVERY_SHMEM
def test_unsupported_collectives_are_refused_and_the_job_continues(shmem: Library) -> None:
    refused = [
        ("alltoall", 6, "auto", "shmem has no alltoall of 6 B: it takes multiples of 4 B"),
        ("alltoall", 0, "auto", "shmem has no alltoall of 0 B: it takes multiples of 4 B"),  # an empty call
        ("bcast", 9, "native", "shmem has no bcast of 9 B: it takes multiples of 4 B"),
        ("bcast", 0, "native", "shmem has no bcast of 0 B: it takes multiples of 4 B"),
        ("bcast", 8, "chain", "send and receive, which shmem does not offer; algorithm=native does without"),
        ("allreduce", 12, "auto", "allreduce accepts multiples of 8 B, not 12 B"),
        ("allreduce", 8, "parts", "algorithm=parts is made of the library's own operations, and shmem has no reduce"),
        ("gather", 8, "auto", "shmem has no gather"),
        ("barrier", 0, "binomial", "send and receive, which shmem does not offer; algorithm=native does without"),
    ]
    catalogue = load(libraries=[shmem])
    transport = catalogue.transports[shmem.id]
    with opened(job(shmem, "shmem")) as session:
        for pattern, size, algorithm, why in refused:
            with pytest.raises(WorkerRefused, match=why):
                session.measure(pattern, bytes=size, options=[("algorithm", algorithm)])
            point = Point(transport.name, pattern, 2, size, (("algorithm", algorithm),))
            obstacle = catalogue.obstacles([point])[point]
            assert why in obstacle
        assert session.measure("alltoall", bytes=8).verified


@EVERY_SHMEM
@pytest.mark.full
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("table", ["shmem", "shmem_static"])
def test_put_get_and_wait_carry_messages(shmem: Library, table: str, ranks: int) -> None:
    assert not check_mailbox(shmem, table, ranks).channel.noise


@EVERY_SHMEM
@pytest.mark.parametrize("transport", matrix([*VARIANTS, "mailbox"], short=["shmem"]))
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_is_named(shmem: Library, transport: str, victim: int) -> None:
    recipe = mailbox_over(shmem, "shmem") if transport == "mailbox" else None
    pattern = "pingpong" if transport == "mailbox" else "barrier"
    with WorkerSession(job(shmem, transport, recipe=recipe)) as session:
        pid = session.hello().ranks[victim].pid
        killed = pytest.raises(WorkerDied, match=r"signal 9|SIGKILL")
        with soon(lambda: os.kill(pid, signal.SIGKILL)), killed:
            session.measure(pattern, batch=ENDLESS, timeout_s=60)


@EVERY_SHMEM
@pytest.mark.full
def test_a_full_heap_says_how_to_make_it_larger(shmem: Library) -> None:
    recipe = mailbox_over(shmem, "shmem")
    recipe = replace(recipe, flags=(*recipe.flags, f"-DHK_MAILBOX_BYTES={4 << 20}"))
    plain = job(shmem, "mailbox", recipe=recipe)
    small = StartCommand(plain.launcher, plain.argv, {**plain.environment, "SHMEM_SYMMETRIC_HEAP_SIZE": "64K"})
    with (
        pytest.raises(WorkerError, match="symmetric heap; increase it with SHMEM_SYMMETRIC_HEAP_SIZE"),
        WorkerSession(small) as session,
    ):
        session.hello()
