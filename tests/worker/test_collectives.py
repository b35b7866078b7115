"""Collective operations: every algorithm, and the library's own in every form, delivers the right data with all
options; a wrong byte that any rank receives is named."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.matrix import matrix
from tests.worker.extra import ADDRESS, EXTRA, THREAD
from tests.worker.test_native import DESCRIPTION, all_unsupported, converse, measure, measured, shared
from tests.worker.test_session import EVERY_MPI, job, opened
from tests.worker.test_threads import faulty

from hockney.worker.build import Recipe, build_worker
from hockney.worker.errors import WorkerRefused
from hockney.worker.libraries import Library
from hockney.worker.session import WorkerSession

COLLECTIVES = {row["name"]: row for row in DESCRIPTION["patterns"] if row["collective"] and row["name"] != "ft"}
OPTIONS = {name: {option["name"]: option for option in row["options"]} for name, row in COLLECTIVES.items()}
WORDS = {name: options["algorithm"]["choices"].split("|")[2:] for name, options in OPTIONS.items()}
BY_OTHERS = ("parts", "allreduce", "allgather", "allgatherv", "alltoallv", "bcast", "exscan", "gatherv", "scatterv")
PORTABLE = [(name, word) for name, words in WORDS.items() for word in words if word not in BY_OTHERS]
ONCE = {"samples": 1, "batch": 2, "warmup": 1}


def takes(pattern: str, algorithm: str, ranks: int) -> bool:
    """Whether an algorithm takes this number of ranks: some need a power of two, or an even number."""
    if algorithm == "halving" or (algorithm == "doubling" and pattern.startswith("allgather")):
        return ranks & (ranks - 1) == 0
    return algorithm != "neighbour" or ranks % 2 == 0


def variants(pattern: str, ranks: int) -> Iterator[dict[str, Any]]:
    """Options: each value alone, and combinations of options that share code."""
    has = OPTIONS[pattern]
    is_exchange = pattern.startswith("alltoall")
    yield {}
    if "root" in has:
        yield from ({"root": root} for root in {1, ranks - 1})
    if "inplace" in has and not is_exchange:
        yield from ({"inplace": "yes", **root} for root in ({}, {"root": ranks - 1} if "root" in has else {}))
    if "counts" in has:
        yield from ({"counts": counts} for counts in ("linear", "one-big"))
        if "root" in has:
            yield {"counts": "linear", "root": ranks - 1}
    if "bytes_of" in has:
        yield {"bytes_of": "vector", "dtype": "int16"}
        yield {"bytes_of": "vector", "inplace": "yes", "dtype": "int8"}
    if "distances" in has:
        yield {"distances": "+1-7+11", "counts": "linear"} if "counts" in has else {"distances": "+1-7+11"}
    if "start" in has:
        yield {"start": "barrier", "arrival_us": 10, "time": "mean"}
    if "data" in has:
        yield {"data": "fresh"}
    if ranks % 2 == 0 and ranks > 2 and "groups" in has:
        yield {"groups": 2}


def sizes(pattern: str, options: dict[str, Any] | None = None) -> tuple[int, ...]:
    """Sizes: a word, elements that no number of ranks divides, and more than any buffer holds; fewer with options."""
    if not COLLECTIVES[pattern]["sized"]:
        return (0,)
    return (24, 1000) if options else (8, 24, 1000, 70_000)


# Algorithms depend on the number of ranks, and not on the transport.
PLACES = [*itertools.product(["shm:sync"], (2, 3, 4, 5, 6, 8)), *itertools.product(["threads", "unix", "tcp"], (3, 4))]


@pytest.mark.parametrize("place", matrix(PLACES, short=[("threads", 3), ("threads", 4)]), ids=str)
def test_every_algorithm_delivers(place: tuple[str, int]) -> None:
    """On shm:sync a send waits for its receive, so ranks that all send first would hang."""
    transport, ranks = place
    commands = [
        measure(name, size, algorithm=word, **ONCE, **options)
        for name, word in PORTABLE
        for options in variants(name, ranks)
        if takes(name, word, ranks // options.get("groups", 1))
        for size in sizes(name, options)
    ]
    for answer, command in zip(measured(commands, "-t", transport, *shared(ranks)), commands, strict=True):
        assert answer["verified"] is (answer["pattern"] != "barrier"), command
        assert answer["algorithm"] in command


def test_ranks_start_together_on_compared_clocks() -> None:
    """Ranks of one host have one clock. Each time is that of the operation alone."""
    commands = [measure(name, sizes(name)[-2:][0], start="window", **ONCE) for name in ("barrier", "bcast", "alltoall")]
    for answer in measured(commands, "-t", "unix", *shared(2)):
        assert answer["verified"] is (answer["pattern"] != "barrier")
        assert answer["counters"]["clock_error_ns"][0] == 0 < answer["counters"]["clock_error_ns"][1]
        assert all(late <= 3 for late in answer["counters"]["late_starts"])


def test_a_message_that_fails_before_the_samples_ends_the_job() -> None:
    """Rank 0 waits for the next message, so it cannot agree on an error. Rank 1 ends long before the time limit."""
    env = {"HOCKNEY_FAULT": "fail 1 8"}
    commands = [measure("bcast", 1000, start="window", timeout_s=120)]
    answers, done = converse(build_worker(EXTRA), commands, "-t", "fault", *shared(), env=env, limit_s=60)
    assert [(answer["kind"], answer["rank"]) for answer in answers] == [("lost", 1)]
    assert done.returncode == 15, done.stderr


@pytest.mark.parametrize("ranks", [3, 4])
def test_reductions_of_every_type(ranks: int) -> None:
    names = [name for name, options in OPTIONS.items() if "op" in options]
    whole = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
    kinds = [
        *itertools.product(whole, ("sum", "prod", "min", "max", "band", "bor", "bxor")),
        *itertools.product(("float32", "float64"), ("sum", "prod", "min", "max")),
    ]
    commands = [measure(name, 240, dtype=dtype, op=op, **ONCE) for name in names for dtype, op in kinds]
    assert all(answer["verified"] for answer in measured(commands, "-t", "threads", *shared(ranks)))


# The ranks of four that receive a message, by pattern and algorithm; all of them in other cases.
RECEIVERS = {
    "bcast": (1, 2, 3), "scatter": (1, 2, 3), "scatterv": (1, 2, 3), "scan": (1, 2, 3), "exscan": (1, 2, 3),
    ("reduce", "linear"): (0,), ("reduce", "binomial"): (0, 2), ("reduce", "chain"): (0, 1, 2),
    ("gather", "linear"): (0,), ("gatherv", "linear"): (0,), ("gather", "binomial"): (0, 2),
    ("gatherv", "binomial"): (0, 2), ("bcast", "scatter-allgather"): (0, 1, 2, 3),
}  # fmt: skip


@pytest.mark.parametrize("rank", range(4))
def test_a_wrong_byte_that_any_rank_receives_is_named(rank: int) -> None:
    """One byte of each longer message to this rank is wrong. If it receives one, the point fails and names a rank."""
    points = [(name, word) for name, word in PORTABLE if name not in ("barrier", "reduce_local")]
    commands = [measure(name, 400, algorithm=word, **ONCE) for name, word in points]
    env = {"HOCKNEY_FAULT": f"corrupt {rank} 17"}
    answers, done = converse(build_worker(EXTRA), commands, "-t", "fault", *shared(4), env=env)
    assert len(answers) == len(points) + 1, done.stderr
    for (name, word), answer in zip(points, answers, strict=False):
        receivers = RECEIVERS.get((name, word), RECEIVERS.get(name, range(4)))
        assert answer["kind"] == ("error" if rank in receivers else "measure"), (name, word, answer)
        if answer["kind"] == "error":
            assert answer["code"] == "corrupt"
            assert re.match(r"rank \d got a (?:wrong reduction|corrupted message) of 400 B", answer["message"])


REFUSED: list[tuple[str, int, dict[str, Any], str]] = [
    ("allgather", 8, {"algorithm": "doubling"}, "algorithm=doubling of allgather needs a power of two of ranks, not 3"),
    ("allgather", 8, {"algorithm": "neighbour"}, "algorithm=neighbour of allgather needs an even number of ranks"),
    ("bcast", 8, {"root": 3}, "root=3 is not one of the 3 ranks: the last one is 2"),
    ("bcast", 8, {"groups": 2}, "3 ranks cannot form 2 equal groups of 2 or more"),
    ("bcast", 8, {"form": "persistent"}, "needs the library's own bcast, and shm has no bcast of its own"),
    ("bcast", 8, {"form": "nonblocking", "algorithm": "chain"}, "algorithm=chain is blocking only"),
    ("bcast", 8, {"overlap": "yes"}, "overlap=yes needs form=nonblocking or form=persistent"),
    ("bcast", 8, {"arrival_us": 5}, "arrival_us= needs start=barrier or start=window"),
    ("allreduce", 8, {"op": "band", "dtype": "float64"}, "hockney has no op=band of float64"),
    ("allreduce", 8, {"dtype": "float16"}, "has no op=sum of float16"),
    ("allreduce", 7, {"dtype": "int16"}, "allreduce accepts multiples of 2 B, not 7 B"),
    ("allreduce", 8, {"algorithm": "parts"}, "made of the library's own operations, and shm has no reduce of its own"),
    ("alltoall", 8, {"inplace": "yes"}, "algorithm=flat of alltoall does not work in place"),
    ("alltoall", 8, {"data": "fresh", "inplace": "yes"}, "leave out inplace=yes"),
    ("reduce_scatter_block", 8, {"bytes_of": "vector", "dtype": "int32"},
     "a vector of 8 B is too short for 3 ranks: use 12 B or more"),
    ("gatherv", 8, {"algorithm": "gatherv"}, "algorithm=gatherv is gatherv itself: use algorithm=native"),
    ("neighbor_alltoall", 8, {"nx": 2}, "3 ranks"),
    ("neighbor_alltoall", 8, {"distances": "+1-3"}, "distances=-3 makes each of 3 ranks its own neighbour"),
    ("reduce_scatter", 24, {"bytes_of": "vector", "counts": "linear"}, "blocks: leave out bytes_of= or counts="),
    *(("neighbor_alltoall", 8, {"distances": "+1", name: 3}, "replaces the grid: leave out nx=, ny= and nz=")
      for name in ("nx", "ny", "nz")),
]  # fmt: skip


def test_options_that_do_not_fit_together_are_refused_in_a_sentence() -> None:
    commands = [measure(name, size, **options) for name, size, options, _ in REFUSED]
    for message, (*_, why) in zip(all_unsupported(commands, "shm", 3), REFUSED, strict=True):
        assert why in message


@pytest.mark.parametrize("distances", ["+", "1", "+1-", "+1-1x", "+0", "+N-N", "+1" * 65, "+9999999999", "+1K"])
def test_an_invalid_list_of_distances_is_refused(distances: str) -> None:
    (answer, *_), _ = converse(build_worker(), [measure("neighbor_alltoall", 8, distances=distances)], "-t", "null")
    assert (answer["kind"], answer["code"]) == ("error", "argument")
    assert re.search("with signs, such as|must be one of grid", answer["message"])


# ---- a library's own -------------------------------------------------------------------------------------------------


def forms(pattern: str, ranks: int) -> Iterator[dict[str, Any]]:
    """The calls of a library, each with the options that change its arguments."""
    has = OPTIONS[pattern]
    for form in ("blocking", "nonblocking", "persistent") if "form" in has else ("blocking",):
        of_form = {"form": form} if form != "blocking" else {}
        yield of_form
        if "root" in has:
            yield {**of_form, "root": ranks - 1}
        if "inplace" in has:
            yield {**of_form, "inplace": "yes"}
        if "counts" in has:
            yield {**of_form, "counts": "linear"}
        if "distances" in has:
            yield {**of_form, "distances": "+1"}  # MPICH 4.0 mixes up two edges between the same ranks
        if "bytes_of" in has:
            yield {**of_form, "bytes_of": "vector", "dtype": "int8"}
        if of_form:
            yield {**of_form, "overlap": "yes", "tests": 3}
            yield {**of_form, "start": "barrier"}
        if "op" in has:
            yield {**of_form, "dtype": "float32"}
            yield {**of_form, "dtype": "int8"}
            yield {**of_form, "dtype": "uint16", "op": "prod"}
            yield {**of_form, "dtype": "int8", "op": "max"}
    if "data" in has:
        yield {"data": "fresh"}


# MPICH 4.0 copies the data of these persistent operations only when it makes them: a program of ten lines shows it.
MADE_ONCE = ("gather", "scatter", "allgather")
LACKS = re.compile("has no persistent|is no type of this library|algorithm=.* has no|has no .* of its own")


def refusals(session: WorkerSession, name: str) -> list[str]:
    """Measure a collective in all forms, and by other operations. Returns the sentences of refusals."""
    refused = []
    for size, options in itertools.product(sizes(name, {"all": "forms"}), forms(name, 2)):
        given = [("algorithm", "native"), *((key, str(value)) for key, value in options.items())]
        try:
            answer = session.measure(name, bytes=size, batch=2, samples=2, timeout_s=60, options=given)
        except WorkerRefused as error:
            refused.append(str(error))
            continue
        assert (answer.algorithm, answer.verified) == ("native", name != "barrier"), options
        assert "overlap" not in options or sum(answer.counters["delays"]) >= 2 * 2
    for word in (word for word in WORDS[name] if word in BY_OTHERS and word != name):
        answer = session.measure(name, bytes=sizes(name)[-1], batch=2, samples=2, options=[("algorithm", word)])
        assert (answer.algorithm, answer.verified) == (word, name != "barrier")
    return refused


@EVERY_MPI
@pytest.mark.parametrize("part", range(3))
def test_a_librarys_own_in_every_form(mpi: Library, part: int) -> None:
    with WorkerSession(job(mpi, "mpi")) as session:
        session.hello()
        for name in [*COLLECTIVES][part::3]:
            is_wrong = mpi.id.startswith("mpi@mpich-4.0") and name in MADE_ONCE
            refused = refusals(session, name)
            assert all(LACKS.search(why) or (is_wrong and "corrupted message" in why) for why in refused), refused
            assert not is_wrong or any("corrupted message" in why for why in refused)
        session.close()


@EVERY_MPI
def test_a_call_that_one_rank_cannot_make_leaves_nothing(mpi: Library, tmp_path: Path) -> None:
    """overlap=yes times operations before the samples; the other rank does not wait in them."""
    overlapped = [("form", "nonblocking"), ("overlap", "yes")]
    with opened(faulty(mpi, "mpi", "graph", tmp_path)) as session:
        with pytest.raises(WorkerRefused) as refused:
            session.measure("neighbor_alltoall", bytes=8, timeout_s=60, options=overlapped)
        assert refused.value.code == "system"
        assert session.measure("neighbor_alltoall", bytes=8, timeout_s=60, options=overlapped).verified


@pytest.mark.full
@pytest.mark.parametrize("recipe", [ADDRESS, THREAD], ids=["address", "thread"])
def test_sanitizers_find_nothing_in_any_algorithm(recipe: Recipe) -> None:
    commands = [measure(name, size, algorithm=word) for name, word in PORTABLE for size in sizes(name)]
    measured(commands, "-t", "threads", *shared(4), recipe=recipe)
