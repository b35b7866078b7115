"""A payload that arrives wrong fails the point, for every pattern, receiving rank and block."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.worker.extra import EXTRA
from tests.worker.test_native import DESCRIPTION, converse, measure, shared

from hockney.worker.build import build_worker

RANKS, PLACES = 4, 8

HANDED_ON = ("allreduce", "ringreduce", "paramserver")  # a wrong part is in the sum of other ranks

# In how many places each of four ranks receives messages.
BLOCKS: list[tuple[str, dict[str, object], tuple[int, ...]]] = [
    ("pingpong", {}, (1, 1, 0, 0)),
    ("pingpong", {"receive": "posted"}, (1, 1, 0, 0)),
    ("pingpong", {"receive": "late"}, (1, 1, 0, 0)),
    ("pingpong", {"source": 1, "target": 2}, (0, 1, 1, 0)),
    ("prtt", {}, (1, 1, 0, 0)),
    ("oneway", {"window": 3}, (0, 3, 0, 0)),
    ("twoway", {"window": 3}, (3, 3, 0, 0)),
    ("pairs", {"window": 3}, (0, 0, 3, 3)),
    ("pairs", {"window": 2, "ways": "both"}, (2, 2, 2, 2)),
    ("pairs", {"window": 2, "answer": "window", "start": "barrier"}, (0, 0, 2, 2)),
    ("oneway", {"window": 3, "answer": "window"}, (0, 3, 0, 0)),
    ("pingping", {}, (1, 1, 1, 1)),
    ("pingping", {"receive": "posted"}, (1, 1, 1, 1)),
    ("random", {"way": "ring"}, (1, 1, 1, 1)),  # of pairs: below
    ("fanin", {"window": 2}, (6, 0, 0, 0)),
    ("fanin", {"window": 2, "parents": 2}, (2, 2, 0, 0)),
    ("fanout", {"window": 3}, (0, 3, 3, 3)),
    ("fanout", {"window": 3, "parents": 2}, (0, 0, 3, 3)),
    ("datatype", {"pack": "hand"}, (1, 1, 0, 0)),
    ("datatype", {"pack": "hand", "layout": "indexed"}, (1, 1, 0, 0)),
    ("datatype", {"pack": "hand", "layout": "struct", "source": 3, "target": 2}, (0, 0, 1, 1)),
    ("datatype", {"pack": "none"}, (1, 1, 0, 0)),
    ("alltoall", {}, (3, 3, 3, 3)),
    ("allreduce", {"algorithm": "doubling"}, (1, 1, 1, 1)),  # a scratch for the others' values
    ("outfarm", {}, (0, 1, 1, 1)),
    ("multicast", {}, (0, 1, 1, 1)),
    ("funnel", {}, (3, 0, 0, 0)),
    ("pushfarm", {"senders": 2}, (1, 1, 1, 2)),
    ("pushfarm", {"senders": 1}, (1, 1, 1, 1)),
    ("pullfarm", {"senders": 2}, (1, 1, 1, 3)),
    ("pullfarm", {"senders": 1}, (1, 1, 2, 2)),
    ("eventbuilder", {"senders": 2}, (0, 0, 0, 2)),  # the messages that start and end an event are shorter
    ("eventbuilder", {"senders": 1, "in_flight": 2, "schedule": "barrel"}, (0, 0, 1, 1)),
    ("eventbuilder", {"senders": 1, "in_flight": 2, "schedule": "random"}, (0, 0, 1, 1)),
    ("eventbuilder", {"senders": 2, "in_flight": 2}, (0, 0, 0, 4)),
    ("eventbuilder", {"senders": 2, "schedule": "credits", "streams": 2}, (0, 0, 0, 4)),
    ("robpush", {}, (3, 0, 0, 0)),
    ("robpush", {"read": "parallel", "buffers": 2}, (6, 0, 0, 0)),
    ("robpull", {}, (3, 0, 0, 0)),
    ("robpull", {"read": "parallel", "buffers": 2}, (6, 0, 0, 0)),
    ("bisection", {}, (1, 1, 1, 1)),
    ("bisection", {"start": "barrier"}, (1, 1, 1, 1)),
    ("rounds", {}, (1, 1, 1, 1)),
    ("flows", {"window": 3}, (0, 0, 3, 3)),
    ("flows", {"window": 3, "direction": "down"}, (3, 3, 0, 0)),
    ("ring", {}, (1, 1, 1, 1)),
    ("ring", {"ways": "both"}, (2, 2, 2, 2)),
    ("halo2d", {}, (4, 4, 4, 4)),
    ("halo2d", {"nx": 4}, (2, 2, 2, 2)),
    ("halo3d", {"nx": 1, "ny": 2, "nz": 2}, (4, 4, 4, 4)),
    ("halo4d", {"nx": 1, "ny": 1, "nz": 2, "nt": 2}, (4, 4, 4, 4)),
    ("sweep", {"blocks": 2}, (4, 4, 4, 4)),
    ("ringreduce", {}, (4, 4, 4, 4)),  # a place for the addend, and one for each other rank's part of the sum
    ("paramserver", {}, (3, 1, 1, 1)),
    ("paramserver", {"servers": 2}, (2, 2, 2, 2)),
    ("putpong", {}, (1, 1, 0, 0)),
    ("put", {}, (0, 1, 0, 0)),
    ("put", {"quiet": "seen"}, (0, 1, 0, 0)),
    ("get", {}, (1, 0, 0, 0)),
    ("putring", {}, (1, 1, 1, 1)),
    ("put", {"sync": "quiet", "window": 3}, (0, 3, 0, 0)),
    ("get", {"sync": "quiet", "window": 3, "source": 2, "target": 0}, (0, 0, 3, 0)),
    ("putpairs", {}, (0, 0, 1, 1)),
    ("getpairs", {}, (1, 1, 0, 0)),
    ("putring", {"sync": "quiet", "window": 2}, (2, 2, 2, 2)),
    ("getring", {}, (1, 1, 1, 1)),
    ("putfan", {}, (0, 1, 1, 1)),
    ("getfan", {}, (3, 0, 0, 0)),
    ("putall", {}, (1, 1, 1, 1)),  # of each writer, as another writes elsewhere
    ("putall", {"sync": "quiet", "window": 2}, (2, 2, 2, 2)),
    ("getall", {}, (3, 3, 3, 3)),
    ("putexchange", {}, (2, 2, 2, 2)),
    ("getexchange", {"sync": "quiet", "window": 2}, (4, 4, 4, 4)),
    ("passive", {}, (0, 1, 0, 0)),
]

# Patterns that are not above: in whatever places they receive messages.
KNOWN = {pattern for pattern, _, _ in BLOCKS}
SHM = next(row for row in DESCRIPTION["transports"] if row["name"] == "shm")  # which the transport fault is made of
OTHERS = [
    row["name"]
    for row in DESCRIPTION["patterns"]
    if row["name"] not in KNOWN
    and not row["collective"]  # test_collectives.py
    and not {"atomics", "windows"} & {*row["needs"]}  # test_onesided.py
    and (row["sized"] and row["payload"] and {*row["needs"]} <= {*SHM["caps"]})
    and (row["ranks"][0] <= RANKS <= (row["ranks"][1] or RANKS) and RANKS % row["ranks"][2] == 0)
]


Places = set[tuple[int, int]]  # of ranks


def wrong_places(pattern: str, options: dict[str, object]) -> tuple[Places, Places]:
    """The places in which one changed bit fails the point, each tried alone; and all in which a bit was changed.

    Some patterns take places and receivers in turn: the repetition that is verified is the second or the third.
    """
    places = [(rank, place) for rank in range(RANKS) for place in range(PLACES)]
    first_bytes = 72 if pattern == "putpong" or options.get("quiet") == "seen" else 64  # the last word comes alone
    parts = RANKS if pattern == "ringreduce" else 1  # of each block, each a message
    sizes = [first_bytes + 8 * at for at in range(len(places))]
    once = {"samples": 1, "warmup": 0, **options}
    commands = [measure(pattern, parts * size, batch=batch, **once) for batch in (1, 2) for size in sizes]
    answers, done = converse(
        build_worker(EXTRA), commands, "-t", "fault", *shared(RANKS), env={"HOCKNEY_FAULT": "wrong 0 0"}
    )
    assert len(answers) == 2 * len(places) + 1, done.stderr
    wrong = set()
    for (rank, place), answer in zip(2 * places, answers, strict=False):
        if answer["kind"] == "error":
            assert answer["code"] == "corrupt", answer
            assert answer["rank"] == rank or pattern in HANDED_ON
            wrong.add((rank, place))
        else:
            assert answer["verified"]
    changed = {place for place, size in zip(places, sizes, strict=True) if f"fault: wrong {size}\n" in done.stderr}
    return wrong, changed


@pytest.mark.parametrize(("pattern", "options", "blocks"), [*BLOCKS, *((name, {}, None) for name in OTHERS)])
def test_each_wrong_block_of_each_rank_fails_the_point(
    pattern: str, options: dict[str, object], blocks: tuple[int, ...] | None
) -> None:
    wrong, changed = wrong_places(pattern, options)
    assert changed
    known = changed if blocks is None else {(rank, place) for rank in range(RANKS) for place in range(blocks[rank])}
    assert wrong == known


def drawn_pairs() -> Iterator[list[tuple[int, int]]]:
    """The pairs of each repetition of `random` on four ranks: who sends to whom, by SplitMix64 from 1."""
    state, mask = 1, (1 << 64) - 1

    def draw(below: int) -> int:
        nonlocal state
        bits = state = (state + 0x9E3779B97F4A7C15) & mask
        bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & mask
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & mask
        return (bits ^ (bits >> 31)) % below

    while True:
        pairs = []
        for _ in range(RANKS):
            source, other = draw(RANKS), draw(RANKS - 1)
            pairs.append((source, other + (other >= source)))
        yield pairs


@pytest.mark.parametrize("way", ["one-way", "two-way"])
def test_each_wrong_message_between_random_pairs_fails_the_point(way: str) -> None:
    """The repetitions that are verified are the second and the third."""
    places = set()
    for pairs in itertools.islice(drawn_pairs(), 1, 3):
        receivers = [rank for pair in pairs for rank in (pair if way == "two-way" else pair[1:])]
        places |= {(rank, place) for rank in range(RANKS) for place in range(receivers.count(rank))}
    wrong, _ = wrong_places("random", {"way": way})
    assert wrong == places


def test_a_stream_with_a_wrong_byte_fails_the_point(tmp_path: Path) -> None:
    library, file = tmp_path / "wrong.so", Path(__file__).parent / "wrong_recv.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, file], check=True)
    ways = [(source, read) for source in (0, 1) for read in ("blocking", "nonblocking")]
    commands = [measure("stream", size, source=at, read=read, writes=1) for at, read in ways for size in (999, 1000)]
    env = {"LD_PRELOAD": str(library)}
    answers, done = converse(build_worker(), commands, "-t", "unix", *shared(), env=env)
    assert [answer["kind"] for answer in answers] == [*["measure", "error"] * len(ways), "bye"], done.stderr
    for (source, _), answer in zip(ways, answers[1::2], strict=False):
        assert (answer["code"], answer["rank"], answer["offset"]) == ("corrupt", 1 - source, 999)
