"""Started puts and gets, epochs, atomic operations and windows: in shared memory, over every MPI and OpenSHMEM."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.worker.extra import EXTRA
from tests.worker.test_native import DESCRIPTION, all_unsupported, converse, measure, measured, shared
from tests.worker.test_session import EVERY_MPI, opened
from tests.worker.test_session import shared_job as job
from tests.worker.test_threads import ends_with_its_name, faulty

from hockney.worker.build import build_worker
from hockney.worker.errors import WorkerDied, WorkerRefused, WorkerTimedOut
from hockney.worker.libraries import Library
from hockney.worker.session import WorkerSession

# Ranks that act in a job of four, and how many others each accesses.
ACCESSES = {
    **dict.fromkeys(("put", "get"), (1, 1)),
    **dict.fromkeys(("putpairs", "getpairs"), (2, 1)),
    **dict.fromkeys(("putring", "getring"), (4, 1)),
    **dict.fromkeys(("putfan", "getfan"), (1, 3)),
    **dict.fromkeys(("putall", "getall"), (4, 3)),
    **dict.fromkeys(("putexchange", "getexchange"), (4, 2)),
}
ATOMICS = ("accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap")
SYNCS = ("flush", "flush_local", "lock", "lock_all", "fence", "fences", "pscw")
WINDOWS = ("rma", "rma-create", "rma-dynamic", "rma-shared")
OPS = ("sum", "min", "max", "band", "bor", "bxor", "replace", "inc", "no_op")
TYPES = ("uint32", "int32", "uint64", "int64")


def atomics(*, types: tuple[str, ...], ops: tuple[str, ...], **options: object) -> list[str]:
    """Points of all kinds, of one origin and of all: of few elements and of many, alone and in windows."""
    commands = []
    for pattern in ATOMICS:
        updates: list[dict[str, object]] = [{"op": op} for op in ops]
        updates = [{}, {"succeed": "no"}] if pattern == "compare_and_swap" else updates
        sizes = (8, 808) if pattern.endswith("accumulate") else (0,)
        for update in updates:
            if (pattern, update.get("op")) == ("accumulate", "no_op"):
                continue
            commands += [
                measure(pattern, size, dtype=dtype, origins=origins, window=window, **update, **options)
                for size in sizes
                for dtype in types
                for origins in ("one", "all")
                for window in (0, 3)
            ]
    return commands


def test_every_pattern_of_access_has_a_line() -> None:
    row = {row["name"]: {option["name"] for option in row["options"]} for row in DESCRIPTION["patterns"]}
    assert set(ACCESSES) == {name for name, options in row.items() if {"window", "sync", "places"} <= options}
    assert set(ATOMICS) == {name for name, options in row.items() if "origins" in options}


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("transport", ["null", "shm", "threads"])
def test_operations_of_a_window_complete_together(transport: str, ranks: int) -> None:
    ways: tuple[dict[str, object], ...]
    ways = ({"window": 5}, {"window": 3, "places": "all"}, {"window": 0}, {"window": 2, "overlap": "yes"})
    commands = [
        measure(pattern, size, sync="quiet", **way)
        for pattern in ACCESSES
        for size in (0, 8, 1001, 100_000)
        for way in ways
    ]
    for answer in measured(commands, "-t", transport, *shared(ranks)):
        assert answer["verified"] is (transport != "null")
        if ranks == 4:
            acting, each = ACCESSES[answer["pattern"]]
            assert answer["messages_per_rep"] == acting * each * answer["divisor"]
            assert answer["bytes_per_rep"] == answer["messages_per_rep"] * answer["bytes"]


def test_whose_time_of_a_ring_counts() -> None:
    words = ("mean", "slowest", "root")
    commands = [measure(pattern, 8, time=time) for pattern in ("putring", "getring") for time in words]
    assert [answer["timed"] for answer in measured(commands, "-t", "shm", *shared(4))] == [*words, *words]


def test_computing_before_the_completion_lasts_as_long_as_the_operations() -> None:
    command = measure("put", 100_000, sync="quiet", window=4, overlap="yes", samples=5, batch=20)
    (answer,) = measured([command], "-t", "shm", *shared())
    delays, delay_ns = answer["counters"]["delays"], answer["counters"]["delay_ns"]
    assert delays == [100, 0]
    assert sum(answer["elapsed_ns"][0]) >= delay_ns[0] > 0


@pytest.mark.parametrize("transport", ["shm", "threads"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_atomic_operations_are_exact(transport: str, ranks: int) -> None:
    commands = atomics(types=TYPES, ops=OPS)
    if ranks == 4:
        commands += [measure(pattern, 0, origins="half", window=3) for pattern in ATOMICS[2:]]
        commands += [measure(pattern, 808, origins="half") for pattern in ATOMICS[:2]]
        commands += [measure("get_accumulate", 600_000, origins="all")]  # more than a block of each rank
    answers = measured(commands, "-t", transport, *shared(ranks))
    assert all(answer["verified"] for answer in answers)
    assert {answer["timed"] for answer in answers} == {"root", "slowest", *(["sources"] if ranks == 4 else [])}


FAULTS = [
    (fault, pattern, op, origins)
    for fault, ops in (("update", ("sum",)), ("skip", ("sum", "bxor")), ("fetch", ("sum", "max", "no_op")))
    for pattern in ATOMICS
    for op in ops
    for origins in ("one", "all")
    if (fault, pattern) != ("fetch", "accumulate")  # which fetches nothing
    and (fault, pattern, origins) != ("update", "compare_and_swap", "all")  # rank 0 may not be the one that swaps
]


@pytest.mark.parametrize(("fault", "pattern", "op", "origins"), FAULTS)
def test_a_wrong_atomic_operation_is_named(fault: str, pattern: str, op: str, origins: str) -> None:
    swap: dict[str, object] = {"succeed": "no"} if op == "no_op" else {}
    options = swap if pattern == "compare_and_swap" else {"op": op}
    commands = [measure(pattern, 64 if pattern.endswith("accumulate") else 0, origins=origins, target=2, **options)]
    env = {"HOCKNEY_FAULT": f"{fault} 0 0"}
    answers, done = converse(build_worker(EXTRA), commands, "-t", "fault", *shared(4), env=env)
    assert (answers[0]["kind"], answers[0]["code"], answers[0]["rank"]) == ("error", "corrupt", 2), done.stderr


def test_what_does_not_suit_is_refused_with_what_to_do() -> None:
    commands, words = zip(
        (measure("put", 8, window=4, quiet="each"), "window=1 completes each"),
        (measure("put", 8, sync="quiet", quiet="seen"), "window=1 completes each"),
        (measure("get", 8, window=4), "sync=quiet"),
        (measure("put", 8, overlap="yes"), "sync=quiet"),
        (measure("put", 8, sync="flush"), "no epochs, so no flush; sync=quiet"),
        (measure("putpong", 8, sync="fence"), "no epochs; sync=word"),
        (measure("passive", 8, delay_us=5), "busy=yes"),
        (measure("accumulate", 8, op="no_op"), "use get_accumulate"),
        (measure("accumulate", 12), "multiples of 8 B"),
        (measure("accumulate", 8, dtype="float32"), "integers of 4 and 8 bytes"),
        (measure("accumulate", 8, op="band", dtype="float64"), "no band of float64"),
        (measure("get_accumulate", 8, origins="all", dtype="float64"), "integers of 4 or 8 bytes"),
        (measure("accumulate", 8, origins="all", target=4), "the last of 2 ranks is 1"),
        (measure("accumulate", 8, origins="half", target=0), "each rank of the second half is a target"),
        (measure("accumulate", 8, origins="all", source=1), "source is of origins=one"),
        (measure("compare_and_swap", 0, dtype="float32"), "of integers"),
        strict=True,
    )
    for message, word in zip(all_unsupported(list(commands), "shm", 2), words, strict=True):
        assert word in message


# ---- libraries ------------------------------------------------------------------------------------------------------


@EVERY_MPI
@pytest.mark.parametrize("variant", WINDOWS)
def test_every_synchronisation_of_mpi(mpi: Library, variant: str) -> None:
    with opened(job(mpi, f"mpi:{variant}")) as session:
        for sync in SYNCS:
            for pattern, window in (("put", "0"), ("get", "3"), ("putall", "3"), ("getexchange", "2")):
                options = [("sync", sync), ("window", window)]
                assert session.measure(pattern, bytes=1000, samples=2, timeout_s=60, options=options).verified
        for sync in ("word", "fence", "fences", "pscw"):
            assert session.measure("putpong", bytes=64, samples=2, timeout_s=60, options=[("sync", sync)]).verified
        for size in (0, 8, 5000):
            session.measure("window", bytes=size, samples=2, timeout_s=60)


@EVERY_MPI
@pytest.mark.parametrize("variant", WINDOWS)
def test_atomic_operations_of_mpi(mpi: Library, variant: str) -> None:
    """Of 4 bytes: Open MPI 4 dies in a compare_and_swap of 8."""
    with opened(job(mpi, f"mpi:{variant}")) as session:
        for pattern in ATOMICS:
            for origins in ("one", "all"):
                for sync in ("quiet", "lock", "fences"):
                    options = [("dtype", "int32"), ("origins", origins), ("sync", sync), ("window", "3")]
                    size = 80 if pattern.endswith("accumulate") else 0
                    assert session.measure(pattern, bytes=size, samples=2, timeout_s=60, options=options).verified


@EVERY_MPI
@pytest.mark.parametrize(
    ("variant", "call", "sync", "code"),
    [
        ("rma", "Group_incl 1 2", "pscw", "system"),
        ("rma", "Win_lock 0 1", "flush", "system"),
        ("rma", "Win_lock_all 1 2", "quiet", "memory"),  # of the second window
        ("rma-dynamic", "Win_attach 1 2", "quiet", "memory"),
    ],
)
def test_an_epoch_or_window_that_one_rank_cannot_make_leaves_nothing(
    mpi: Library, variant: str, call: str, sync: str, code: str, tmp_path: Path
) -> None:
    with opened(faulty(mpi, f"mpi:{variant}", f"fail {call}", tmp_path)) as session:
        with pytest.raises(WorkerRefused) as refused:
            session.measure("put", bytes=8, timeout_s=60, options=[("sync", sync)])
        assert refused.value.code == code
        for again in (sync, "quiet"):
            assert session.measure("put", bytes=8, samples=2, timeout_s=60, options=[("sync", again)]).verified
    assert not session.channel.noise


# A pattern with its options, and the call that fails: its name, on which rank, and which time.
BROKEN = [
    ("put", "", "Put 0 3"),
    ("put", "", "Win_flush_local 0 3"),
    ("put", "window=4 sync=quiet", "Win_flush_all 0 3"),
    ("put", "window=4 sync=flush", "Win_flush 0 3"),
    ("put", "window=4 sync=flush_local", "Win_flush_local 0 3"),
    ("put", "window=4 sync=quiet overlap=yes", "Put 0 3"),  # in the operations that are timed before the samples
    ("get", "", "Get 0 3"),
    ("get", "window=4 sync=lock", "Win_lock 0 3"),
    ("get", "window=4 sync=lock", "Win_unlock 0 3"),
    ("getexchange", "window=4 sync=lock_all", "Win_lock_all 1 5"),  # two windows and an epoch need some, too
    ("putexchange", "window=4 sync=lock_all", "Win_unlock_all 1 5"),
    ("putall", "window=4 sync=flush", "Win_flush_all 1 9"),
    ("putall", "window=4 sync=flush_local", "Win_flush_local_all 1 3"),
    ("putring", "window=4 sync=fence", "Win_fence 1 5"),
    ("put", "window=4 sync=pscw", "Win_post 1 3"),
    ("put", "window=4 sync=pscw", "Win_start 0 3"),
    ("put", "window=4 sync=pscw", "Win_complete 0 3"),
    ("put", "window=4 sync=pscw", "Win_wait 1 3"),
    ("passive", "", "Put 0 3"),
    ("passive", "until=complete", "Win_flush_all 0 3"),
    ("passive", "sync=flush", "Win_flush 0 3"),
    ("passive", "", "Barrier 1 5"),
    ("passive", "busy=yes", "Put 0 3"),  # in the operations that are timed before the samples
]


@EVERY_MPI
@pytest.mark.parametrize(("pattern", "options", "call"), BROKEN)
def test_a_call_that_fails_ends_the_job_with_its_name(
    mpi: Library, pattern: str, options: str, call: str, tmp_path: Path
) -> None:
    ends_with_its_name(mpi, "mpi:rma", call, tmp_path, pattern, options)


@EVERY_MPI
@pytest.mark.parametrize(
    ("variant", "pattern", "call"),
    [
        ("rma-create", "put", "Win_create 1 2"),
        ("rma-create", "window", "Win_create 1 3"),
        ("threads", "mt_collective", "Comm_dup 1 3"),
    ],
)
def test_a_call_of_all_ranks_that_fails_on_one_rank_alone_ends_the_job_with_its_name(
    mpi: Library, variant: str, pattern: str, call: str, tmp_path: Path
) -> None:
    """The others wait in the call until the time limit, unless their library notices it."""
    with WorkerSession(faulty(mpi, f"mpi:{variant}", f"fail {call}", tmp_path)) as session:
        session.hello()
        with pytest.raises((WorkerTimedOut, WorkerDied), match=f"rank 1: MPI_{call.split()[0]} failed: "):
            session.measure(pattern, bytes=8, timeout_s=2)
