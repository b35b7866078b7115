"""Models carry data in the repetition that is verified: every portable algorithm on them, and what they find."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.worker.sim import SIM, answer, lines, simulate
from tests.worker.test_native import measure

from hockney.worker.build import build_worker

COSTS: dict[str, Any] = {"send_cpu": 200, "recv_cpu": 300, "latency": 800, "transfer": "10 0.1 0"}
TORUS = lines(topology="torus 4 4 4", **COSTS)
# Messages whose sender may go on before they have a receive, and those whose sender waits.
PROTOCOLS = {
    "eager": lines(**COSTS),
    "rendezvous": ["topology switch", "class all any", "segment 0 rendezvous 32", "cost handshake 500 0 0"],
    "synchronous": ["topology switch", "class all any", "segment 0 synchronous 32", "cost transfer 10 0.1 0"],
}
# What depends on the ranks, or is the library's own; such algorithms are refused with one of these.
REFUSED = ("has no ", " needs a", " itself: use algorithm=native")


def collectives() -> dict[str, list[str]]:
    """The algorithms of each collective pattern that moves data."""
    told = subprocess.run([build_worker(SIM), "--describe"], capture_output=True, text=True, check=True).stdout
    found = {}
    for pattern in json.loads(told.strip().removeprefix("@hk "))["patterns"]:
        words = next((each["choices"] for each in pattern["options"] if each["name"] == "algorithm"), None)
        if pattern["collective"] and pattern["name"] != "barrier":
            found[pattern["name"]] = str(words).split("|")[1:]
    return found


def verified(answers: list[dict[str, Any]]) -> int:
    """How many are verified; all others are refused."""
    refusals = [each["message"] for each in answers if each["kind"] == "error"]
    assert all(any(word in message for word in REFUSED) for message in refusals), refusals
    assert all(each["verified"] for each in answers if each["kind"] == "measure")
    return len(answers) - len(refusals)


@pytest.mark.parametrize(("model", "ranks"), [(TORUS, 64), (lines(**COSTS), 100), (PROTOCOLS["rendezvous"], 9)])
def test_every_algorithm_is_verified(tmp_path: Path, model: list[str], ranks: int) -> None:
    commands = [
        measure(name, size, batch=1, samples=1, warmup=0, algorithm=algorithm)
        for name, algorithms in collectives().items()
        for algorithm in algorithms
        for size in (8, 1000)
    ]
    answers, done = simulate(tmp_path, model, ranks, *commands)
    assert (len(answers), answers[-1]["kind"], done.returncode) == (len(commands) + 1, "bye", 0)
    assert verified(answers[:-1]) > 2 * 2 * len(collectives())  # of two sizes, by more than two algorithms on average


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("pattern", ["pingpong", "oneway", "ring", "halo2d", "pushfarm", "sweep", "bisection"])
def test_a_sender_may_use_its_buffer_again(tmp_path: Path, protocol: str, pattern: str) -> None:
    for size in (0, 8, 9, 70_000):
        assert answer(tmp_path, PROTOCOLS[protocol], 4 if pattern != "pingpong" else 2, pattern, size)["verified"]


def test_puts_gets_and_streams_are_verified(tmp_path: Path) -> None:
    one_sided = [*lines(**COSTS), "class put:all any", "segment 0 eager 0", "class get:all any", "segment 0 eager 0"]
    for pattern, ranks in (("put", 2), ("get", 2), ("putpong", 2), ("putring", 5)):
        assert answer(tmp_path, one_sided, ranks, pattern, 8)["verified"]
        assert answer(tmp_path, one_sided, ranks, pattern, 4000)["verified"]
    stream = [
        *lines(**COSTS),
        "stream 1000",
        "stream_cost write 10 1",
        "stream_cost read 10 1",
        "stream_cost drain 5 1",
    ]
    assert answer(tmp_path, stream, 2, "stream", 64)["verified"]


def test_verifying_changes_no_time(tmp_path: Path) -> None:
    noisy = ["noise lognormal 0.1", *lines(**COSTS)]
    commands = [measure("alltoall", 64, samples=5, verify=word) for word in ("yes", "no", "yes")]
    (*with_data, _), _ = simulate(tmp_path, noisy, 8, *commands)
    (*without, _), _ = simulate(tmp_path, noisy, 8, *[measure("alltoall", 64, samples=5, verify="no")] * 3)
    assert [each["elapsed_ns"] for each in with_data] == [each["elapsed_ns"] for each in without]
    assert with_data[0]["elapsed_ns"] != with_data[1]["elapsed_ns"]  # the noise goes on
    assert [each["verified"] for each in with_data] == [True, False, True]


def test_too_much_data_are_left_out(tmp_path: Path) -> None:
    """More than 2 GiB of buffers; more ranks than have a row in the answer."""
    assert not answer(tmp_path, lines(**COSTS), 64, "alltoall", 1 << 19)["verified"]
    assert not answer(tmp_path, lines(**COSTS), 4097, "bcast", 8)["verified"]
    assert answer(tmp_path, lines(**COSTS), 4096, "bcast", 8)["verified"]
