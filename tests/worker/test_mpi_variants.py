"""The transports of every MPI found here: plain, send modes, persistent requests, one-sided."""

from __future__ import annotations

import itertools
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.matrix import matrix
from tests.worker.test_session import ENDLESS, EVERY_MPI, MPIS, opened, soon
from tests.worker.test_session import shared_job as job

from hockney.model import Point
from hockney.worker.build import Recipe
from hockney.worker.catalogue import load
from hockney.worker.errors import WorkerDied, WorkerRefused
from hockney.worker.libraries import Library
from hockney.worker.session import WorkerSession

HERE = Path(__file__).parent
VARIANTS = ("sync", "ready", "buffered", "persistent", "rma", "shared")
PATTERNS = (
    *("pingpong", "oneway", "twoway", "pairs", "alltoall", "outfarm", "multicast", "funnel", "barrier"),
    *("bisection", "rounds", "ring", "prtt", "robpush", "robpull"),
)
TRANSPORTS = ["mpi", *(f"mpi:{variant}" for variant in VARIANTS)]
EVERY_TRANSPORT = pytest.mark.parametrize("transport", matrix(TRANSPORTS, short=["mpi", "mpi:persistent", "mpi:rma"]))


def check_mailbox(library: Library, transport: str, ranks: int) -> WorkerSession:
    """Messages that are puts, gets and waits of this transport arrive."""
    with opened(job(library, "mailbox", ranks, mailbox_over(library, transport))) as session:
        for size in (0, 8, 100, 70_001):
            assert session.measure("pingpong", bytes=size, batch=3, samples=3, timeout_s=60).verified
        session.measure("barrier", batch=2, samples=2, timeout_s=60, options=[("algorithm", "dissemination")])
    return session


def mailbox_over(library: Library, transport: str) -> Recipe:
    """A worker with a transport `mailbox`, whose messages are puts, gets and waits of another transport."""
    return replace(
        library.recipe,
        flags=("-O0", "-DHK_EXTRA_TRANSPORTS(X)=X(mailbox)", f"-DHK_MAILBOX_OVER=hk_transport_{transport}"),
        extra_sources=(HERE / "mailbox.c",),
    )


@EVERY_MPI
def test_each_variant_is_listed_with_its_capabilities(mpi: Library) -> None:
    transports = load(libraries=[mpi]).transports
    for variant in VARIANTS:
        caps = transports[f"{mpi.id}:{variant}"].caps
        assert {"send", "nonblocking", "payload"} <= caps
        assert ("one_sided" in caps) is (variant in ("rma", "shared"))
        assert ("synchronous" in caps) is (variant in ("sync", "ready"))


@EVERY_MPI
def test_the_plain_transport_names_the_variant_for_puts(mpi: Library) -> None:
    put = Point(mpi.id, "put", 2, 8)
    why = "put needs put and get, which mpi does not offer; mpi:rma does"
    assert load(libraries=[mpi]).obstacles([put]) == {put: why}


@EVERY_MPI
@pytest.mark.parametrize(
    ("pattern", "counts", "most"), [("alltoallv", "equal", 1 << 24), ("allgatherv", "one-big", 1 << 18)]
)
def test_blocks_of_more_neighbours_than_ranks_count_too(mpi: Library, pattern: str, counts: str, most: int) -> None:
    """Places of the last ones are beyond 32 bits. A neighbour with a big block may be there 64 times."""
    options = (("algorithm", "native"), ("distances", "+1" * 64), ("counts", counts))
    fits, wraps = (Point(mpi.id, f"neighbor_{pattern}", 2, size, options) for size in (most, 2 * most))
    big = 2 * most * (64 if counts == "one-big" else 1)
    why = f"mpi has no neighbor_{pattern} of {big} B in 64 blocks: counts are 32 bits wide"
    assert load(libraries=[mpi]).obstacles([fits, wraps]) == {wraps: why}


@EVERY_MPI
@EVERY_TRANSPORT
def test_every_pattern(mpi: Library, transport: str) -> None:
    with WorkerSession(job(mpi, transport)) as session:
        hello = session.hello()
        assert (hello.transport, hello.library.partition(" (")[0]) == (transport, mpi.name)
        for pattern in PATTERNS:
            for size in (0, 8, 100_000):
                answer = session.measure(pattern, bytes=size, batch=2, samples=3, timeout_s=60)
                assert answer.verified is (pattern != "barrier")
        for algorithm, done_by in (("auto", "native"), ("doubling", "doubling"), ("parts", "parts")):
            for size in (8, 100_000):
                answer = session.measure("allreduce", bytes=size, samples=3, options=[("algorithm", algorithm)])
                assert (answer.algorithm, answer.verified) == (done_by, True)
        session.close()
    assert not session.channel.noise


@EVERY_MPI
@EVERY_TRANSPORT
@pytest.mark.full
def test_many_messages_under_way_and_a_barrier_of_messages(mpi: Library, transport: str) -> None:
    with opened(job(mpi, transport)) as session:
        for pattern in ("oneway", "twoway"):
            for size in (8, 40_000):
                answer = session.measure(pattern, bytes=size, samples=3, timeout_s=60, options=[("window", "64")])
                assert answer.verified
        answer = session.measure("alltoall", bytes=40_000, samples=3, timeout_s=60, options=[("algorithm", "flat")])
        assert (answer.verified, answer.algorithm) == (True, "flat")
        # Where a send waits for its receive, ranks that all send first would wait for ever.
        answer = session.measure("barrier", batch=20, samples=3, timeout_s=60, options=[("algorithm", "dissemination")])
        assert answer.algorithm == "dissemination"


@EVERY_MPI
@pytest.mark.parametrize("transport", ["mpi:rma", "mpi:shared"])
def test_a_first_word_by_one_sided_calls(mpi: Library, transport: str) -> None:
    with opened(job(mpi, transport)) as session:
        for pattern, size in itertools.product(("put", "get", "putpong", "putring"), (0, 8, 64, 4104, 100_000)):
            if size > 0 or pattern != "putpong":  # which waits for a word
                assert session.measure(pattern, bytes=size, samples=3, timeout_s=60).verified


@EVERY_MPI
@pytest.mark.parametrize("ranks", [2, 3])
def test_loads_and_stores_in_shared_memory(mpi: Library, ranks: int) -> None:
    with opened(job(mpi, "mpi:shared", ranks=ranks)) as session:
        for pattern in ("put", "get", "putring", "getring", "putall", "getall"):
            for size in (0, 8, 1001, 100_000):
                options = [("sync", "quiet"), ("window", "3")]
                assert session.measure(pattern, bytes=size, samples=3, timeout_s=60, options=options).verified
        assert session.measure("putpong", bytes=64, samples=3, timeout_s=60, options=[("sync", "signal")]).verified
        session.measure("window", bytes=5000, samples=2, timeout_s=60)
    assert not session.channel.noise


@EVERY_MPI
@EVERY_TRANSPORT
@pytest.mark.full
def test_receives_while_sends_are_under_way(mpi: Library, transport: str) -> None:
    with opened(job(mpi, transport, ranks=3)) as session:
        for pattern, in_flight in itertools.product(("pushfarm", "pullfarm"), ("1", "3")):
            answer = session.measure(pattern, bytes=16, samples=1, timeout_s=60, options=[("in_flight", in_flight)])
            assert answer.verified


@EVERY_MPI
def test_buffered_sends_of_more_than_the_buffer_holds(mpi: Library) -> None:
    with opened(job(mpi, "mpi:buffered")) as session:
        window = [("window", "40")]  # of 33 MiB
        assert session.measure("twoway", bytes=1 << 20, samples=1, timeout_s=60, options=window).verified
        assert session.measure("pingpong", bytes=16 << 20, samples=1, timeout_s=60).verified
        with pytest.raises(WorkerRefused, match="mpi:buffered sends at most 16777216 B in one message") as refusal:
            session.measure("pingpong", bytes=(16 << 20) + 1)
        assert refusal.value.unsupported


@EVERY_MPI
@pytest.mark.parametrize("transport", ["mpi", "mpi:persistent"])
def test_calls_of_sched_yield_are_counted(mpi: Library, transport: str) -> None:
    """The wheel of MPICH calls it while it waits, Open MPI if it is told to, MPICH's own build never."""
    for asked in ("0", "1"):
        is_told = mpi.kind == "openmpi" and asked == "1"
        command = job(mpi, transport, environment={"OMPI_MCA_mpi_yield_when_idle": asked})
        with opened(command) as session:
            yields = session.measure("pingpong", bytes=8, batch=100, samples=10, timeout_s=60).counters["yields"]
        assert (min(yields) > 0) is (mpi.is_wheel or is_told), (asked, yields)


@EVERY_MPI
def test_more_persistent_requests_than_are_kept(mpi: Library) -> None:
    """A receiver's window of 1024 messages in 1024 places, for more sizes than 16384 requests are enough for."""
    with opened(job(mpi, "mpi:persistent")) as session:
        for size in range(8, 26):
            options = [("window", "1024")]
            assert session.measure("oneway", bytes=size, batch=1, samples=1, timeout_s=60, options=options).verified


@EVERY_MPI
def test_uneven_blocks_of_fresh_data_where_the_warm_up_uses_all(mpi: Library) -> None:
    """All ranks make as many calls as the others, of as many copies as fill the caches."""
    with opened(job(mpi, "mpi:persistent")) as session:
        for pattern in ("gatherv", "scatterv", "allgatherv", "reduce_scatter"):
            for counts in ("linear", "one-big"):
                options = [("counts", counts), ("data", "fresh")]
                answer = session.measure(pattern, bytes=4 << 20, warmup=0, samples=2, timeout_s=60, options=options)
                assert answer.verified
                assert answer.warmup == 5


@EVERY_MPI
@pytest.mark.full
def test_persistent_requests_are_made_before_the_first_sample(mpi: Library) -> None:
    asked = (("oneway", ("window", "64")), ("robpush", ("buffers", "2")), ("pushfarm", ("in_flight", "3")))
    with opened(job(mpi, "mpi:persistent", ranks=4)) as session:
        for pattern, option in asked:
            answer = session.measure(pattern, bytes=24, samples=8, warmup=0, timeout_s=60, options=[option])
            assert answer.counters["requests_made"] == (0.0,) * 4
            assert answer.warmup == (1 if pattern == "oneway" else 2)


@pytest.mark.full
@pytest.mark.parametrize("mpi", [mpi for mpi in MPIS if mpi.kind != "mpich" or mpi.is_wheel], ids=lambda mpi: mpi.id)
def test_more_pending_persistent_requests_than_are_kept(mpi: Library) -> None:
    """A supervisor with 1024 messages under way to each of 17 senders.

    What is kept is hockney's matter, not the library's: 19 ranks that never yield would take two CPUs half a minute.
    """
    options = [("in_flight", "64"), ("senders", "17")]
    with opened(job(mpi, "mpi:persistent", ranks=19)) as session:
        assert session.measure("pushfarm", bytes=8, samples=1, timeout_s=100, options=options).verified


@EVERY_MPI
@pytest.mark.full
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("transport", ["mpi_rma", "mpi_shared"])
def test_put_get_and_wait_carry_messages(mpi: Library, transport: str, ranks: int) -> None:
    check_mailbox(mpi, transport, ranks)


@EVERY_MPI
@pytest.mark.full
@pytest.mark.parametrize("transport", ["mpi:ready", "mpi:rma", "mailbox"])
def test_a_killed_rank_ends_the_job(mpi: Library, transport: str) -> None:
    recipe = mailbox_over(mpi, "mpi_rma") if transport == "mailbox" else None
    with WorkerSession(job(mpi, transport, recipe=recipe)) as session:
        pid = session.hello().ranks[1].pid
        killed = pytest.raises(WorkerDied, match=r"signal 9|SIGKILL|exit code")
        with soon(lambda: os.kill(pid, signal.SIGKILL)), killed:
            session.measure("pingpong", bytes=8, batch=ENDLESS, timeout_s=60)
