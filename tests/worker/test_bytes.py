"""The pattern stream: bytes without messages, blocking and not, in both directions, on real descriptors and on null."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
from typing import Any

import pytest
from tests.matrix import matrix
from tests.worker.test_native import converse, measure, measured, shared

from hockney.suites import load_suite
from hockney.worker.build import Recipe, build_worker

CARRIERS = ["pipe", "unix", "tcp"]
WAYS = ["blocking", "nonblocking"]
SIZES = [0, 1, 7, 4096, 65_500, 70_001]


def every_cell(*sizes: int, **keys: object) -> list[dict[str, Any]]:
    cells = itertools.product(WAYS, WAYS, (0, 1), sizes)
    return [
        {"write": write, "read": read, "source": source, "size": size, **keys} for write, read, source, size in cells
    ]


def commands_of(cells: list[dict[str, Any]]) -> list[str]:
    return [measure("stream", **{"samples": 2, "batch": 2, **cell}) for cell in cells]


@pytest.mark.parametrize("transport", [*CARRIERS, "null"])
def test_every_cell_moves_every_byte_and_is_timed_on_both_sides(transport: str) -> None:
    cells = every_cell(*SIZES, writes=10)
    answers = measured(commands_of(cells), "-t", transport, *shared())
    for cell, answer in zip(cells, answers, strict=True):
        assert answer["verified"] is (transport != "null"), cell
        assert (answer["timed"], answer["divisor"], answer["messages_per_rep"]) == ("slowest", 10, 10)
        assert answer["bytes_per_rep"] == 10 * cell["size"]
        assert [len(row) for row in answer["elapsed_ns"]] == [2, 2]
        counted, source = answer["counters"], cell["source"]
        # A side counts only its own calls; a blocking call never returns without a byte.
        assert counted["reads"][source] == counted["short_reads"][source] == counted["read_would_block"][source] == 0
        assert counted["write_would_block"][1 - source] == 0
        assert cell["write"] == "nonblocking" or counted["write_would_block"] == [0, 0]
        assert cell["read"] == "nonblocking" or counted["read_would_block"] == [0, 0]
        # Four repetitions of 10 writes are in the samples; no read takes more than one write carried.
        assert counted["reads"][1 - source] >= 40
        assert (counted["reads"][1 - source] == 40) or counted["short_reads"][1 - source] > 0


@pytest.mark.parametrize("source", matrix([0, 1], short=[0]))
@pytest.mark.parametrize("transport", CARRIERS)
def test_a_full_and_an_empty_buffer_are_counted(transport: str, source: int) -> None:
    """On one CPU the writer fills all buffers before the reader comes, and the reader empties them."""
    command = measure(
        "stream",
        65_500,
        batch=1,
        # Another program may come between them at a wrong moment. A pipe is full after each write, TCP after megabytes;
        # each time takes the rest of a time slice.
        samples=1,
        warmup=0,
        write="nonblocking",
        read="nonblocking",
        source=source,
        writes=250 if transport == "tcp" else 25,
    )
    written = read = 0
    for _ in range(15):
        for answer in measured([command] * 2, "-t", transport, "--bind", "0,0", *shared()):
            written += answer["counters"]["write_would_block"][source]
            read += answer["counters"]["read_would_block"][1 - source]
        if written and read:
            return
    raise AssertionError(f"no buffer was full, or none empty: {written}, {read}")


@pytest.mark.parametrize("transport", CARRIERS)
def test_other_patterns_find_the_transport_unchanged(transport: str) -> None:
    stream = measure("stream", 5000, write="nonblocking", read="nonblocking")
    commands = [stream, measure("pingpong", 70_001), measure("twoway", 70_001, window=8), stream]
    answers = measured(commands, "-t", transport, *shared())
    assert all(answer["verified"] for answer in answers)


@pytest.mark.parametrize("transport", matrix(CARRIERS, short=["unix"]))
def test_a_rank_to_spare_reads_nothing(transport: str, checked: Recipe) -> None:
    cells = every_cell(0, 5000, writes=50)
    answers = measured(commands_of(cells), "-t", transport, *shared(3), recipe=checked)
    assert all(answer["counters"]["reads"][2] == 0 for answer in answers)


@pytest.mark.parametrize(("transport", "other"), [("shm", ""), ("threads", ""), ("tcp:spin", "; tcp does")])
def test_transports_of_messages_refuse_in_a_sentence(transport: str, other: str) -> None:
    (answer, _), _ = converse(build_worker(), [measure("stream", 8)], "-t", transport, *shared())
    assert answer["message"] == f"stream needs a byte stream, which {transport} does not offer{other}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transport", matrix(CARRIERS, short=["pipe"]))
def test_a_loop_without_end_ends_with_its_time(transport: str, way: str) -> None:
    endless = measure("stream", 1000, batch=100_000_000, timeout_s=1, write=way, read=way)
    answers, done = converse(build_worker(), [endless], "-t", transport, *shared(), limit_s=60)
    assert ([a["kind"] for a in answers], done.returncode) == (["lost"], 14)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transport", matrix(CARRIERS, short=["pipe"]))
def test_a_loop_without_end_ends_with_its_peer(transport: str, way: str) -> None:
    endless = measure("stream", 1000, batch=100_000_000, timeout_s=50, write=way, read=way)
    pipe, words = subprocess.PIPE, [str(build_worker()), "-t", transport, *shared()]
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(f"hello\n{endless}\n".encode())
        worker.stdin.flush()
        hello = next(line for line in worker.stdout if line.startswith(b"@hk "))
        os.kill(json.loads(hello[4:])["ranks"][1]["pid"], signal.SIGKILL)
        assert b'"lost"' in worker.stdout.read()
        assert worker.wait(timeout=60) == 15


def test_the_suite_has_the_notes_four_cells_in_both_directions() -> None:
    plain = [series for series in load_suite("ancor").series if len(series.options) == 3]  # nobody computes
    cells = [series.options for series in plain]
    assert {(c["write"], c["read"], c["source"]) for c in cells} == set(itertools.product(WAYS, WAYS, ("0", "1")))
    assert {(series.bytes[0], series.bytes[-1]) for series in plain} == {(1, 65_500)}
