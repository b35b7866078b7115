"""ZeroMQ: every pattern over each kind of socket, and peers that die behind its queues."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.matrix import matrix
from tests.worker.test_native import FARMS, PATTERNS, converse, measure, measured, shared

from hockney.errors import UsageError
from hockney.worker import catalogue
from hockney.worker.build import build_worker
from hockney.worker.libraries import find_zmqs

FOUND, _ = find_zmqs()
RECIPE = FOUND[0].recipe if FOUND else None
pytestmark = [
    pytest.mark.skipif(not FOUND, reason="no ZeroMQ here: apt-get install libzmq3-dev"),
    pytest.mark.timeout(700),  # as in test_native.py
]
TRANSPORTS = ["zmq", "zmq:tcp", "zmq:inproc", "zmq:push", "zmq:push-tcp"]
EVERY = pytest.mark.parametrize("transport", matrix(TRANSPORTS, short=["zmq", "zmq:inproc", "zmq:push-tcp"]))


_BEGUN_S = 0.5  # of CPU time: far more than a start and a verification take


def worker() -> Path:
    assert RECIPE
    return build_worker(RECIPE)


@EVERY
@pytest.mark.parametrize("ranks", matrix([2, 4], short=[4]))
def test_every_pattern(transport: str, ranks: int) -> None:
    commands = [
        measure(name, size, batch=2, samples=2)
        for name in PATTERNS + FARMS * (ranks > 2)
        for size in (0, 8, 4097, 70_001)
    ]
    assert RECIPE
    for answer in measured(commands, "-t", transport, *shared(ranks), recipe=RECIPE):
        assert answer["verified"] is (answer["pattern"] != "barrier"), answer["pattern"]


@EVERY
def test_windows_larger_than_its_queues(transport: str) -> None:
    """Which hold 1000 messages on each side: the rest waits with the sender."""
    sizes = [(8, 1024), (300_000, 16)]
    ways: tuple[tuple[str, dict[str, str]], ...] = (("oneway", {"until": "sent"}), ("twoway", {}))
    commands = [
        measure(name, size, window=window, batch=5, samples=2, **way) for name, way in ways for size, window in sizes
    ]
    assert RECIPE
    assert all(answer["verified"] for answer in measured(commands, "-t", transport, *shared(), recipe=RECIPE))


@EVERY
def test_a_receiver_takes_its_senders_in_any_order(transport: str) -> None:
    """Those that send first are asked last."""
    commands = [measure("fanin", 8, window=200), measure("fanout", 70_001, window=4), measure("robpush", 100)]
    assert RECIPE
    assert all(answer["verified"] for answer in measured(commands, "-t", transport, *shared(4), recipe=RECIPE))


def test_it_is_named_by_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    macros = "#define ZMQ_VERSION_MAJOR 4\n#define ZMQ_VERSION_MINOR 3\n#define ZMQ_VERSION_PATCH 9\n"
    (tmp_path / "zmq.h").write_text(f"#define GUARD\n{macros}")
    monkeypatch.setenv("CC", "cc -nostdinc")
    assert find_zmqs() == ((), ())
    monkeypatch.setenv("CC", f"cc -nostdinc -I{tmp_path}")
    ((found,), _) = find_zmqs()
    assert (found.id, found.name, found.has_launcher) == ("zmq@4.3.9", "ZeroMQ 4.3.9", False)


def test_without_it_the_catalogue_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalogue._FAMILIES, "zmq", (lambda: ((), ()), *catalogue._FAMILIES["zmq"][1:]))
    with pytest.raises(UsageError, match=r"^zmq:tcp is not here: no ZeroMQ was found; install one, for example: apt "):
        catalogue.load(["zmq"]).select(["zmq:tcp"])


# ---- peers that die --------------------------------------------------------------------------------------------------


@EVERY
def test_a_killed_rank_is_reported(transport: str) -> None:
    pipe, words = subprocess.PIPE, [str(worker()), "-t", transport, *shared(3)]
    endless = measure("pingpong", 1000, batch=10**9, timeout_s=100)
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"hello\n{endless}\n".encode())
        process.stdin.flush()
        hello = json.loads(next(line for line in process.stdout if line.startswith(b"@hk "))[4:])
        os.kill(hello["ranks"][1]["pid"], signal.SIGKILL)
        said = process.stdout.read()
        process.wait(timeout=60)
    assert b'"lost"' in said or transport == "zmq:inproc"  # where the process is all ranks
    assert process.returncode != 0


def say(process: subprocess.Popen[str], *lines: str) -> None:
    assert process.stdin is not None
    process.stdin.writelines(lines)
    process.stdin.flush()


def next_answer(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return next(json.loads(line[4:]) for line in process.stdout if line.startswith("@hk "))


@contextlib.contextmanager
def two_hosts(transport: str, endless: str) -> Iterator[tuple[subprocess.Popen[str], subprocess.Popen[str]]]:
    """A job of two ranks that exchanges messages, each with a process above it as on a host of its own."""
    token, pipe = f"token {'0' * 32}\n", subprocess.PIPE
    words = [str(worker()), "-t", transport, "-n", "2", "--oversubscribed", "--rank"]
    started: list[subprocess.Popen[str]] = []
    try:
        for more in (["0", "--listen", "127.0.0.1"], ["1", "--join"]):
            if started:
                address = next_answer(started[0])
                more.append(f"{address['host']}:{address['port']}")
            process = subprocess.Popen(
                [*words, *more], stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
            )
            started.append(process)
            say(process, token)
        first, second = started
        say(first, f"hello\n{endless}\n")
        rank = psutil.Process(next_answer(first)["ranks"][0]["pid"])
        while rank.cpu_times().user + rank.cpu_times().system < _BEGUN_S:
            time.sleep(0.05)
        yield first, second
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=60)


@pytest.mark.parametrize("transport", ["zmq:tcp", "zmq:push-tcp"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "silent"])
@pytest.mark.parametrize(
    "endless",
    [
        measure(name, 8, batch=10**9, timeout_s=100, **more)
        for name, more in (("pingpong", {}), ("twoway", {"window": 64}))
    ],
    ids=["answers", "windows"],
)
def test_a_host_that_dies_is_named_within_10_s_whatever_the_queues_hold(
    transport: str, how: signal.Signals, endless: str
) -> None:
    with two_hosts(transport, endless) as (first, second):
        os.killpg(second.pid, how)
        began_s = time.monotonic()
        _, said = first.communicate(timeout=60)
        assert time.monotonic() - began_s < 10
        assert f"rank 0: {transport}: rank 1 is gone" in said


@pytest.mark.parametrize("transport", ["zmq:tcp", "zmq:push-tcp"])
def test_a_stranger_that_comes_and_goes_is_no_rank_that_is_gone(transport: str) -> None:
    """A port scan reaches the sockets that listen between hosts."""
    with two_hosts(transport, measure("pingpong", 8, batch=10**9, timeout_s=100)) as (first, second):
        ranks = [psutil.Process(pid) for pid in (first.pid, second.pid)]
        all_of_both = [each for rank in ranks for each in (rank, *rank.children())]
        listening = {
            link.laddr for each in all_of_both for link in each.net_connections("tcp") if link.status == "LISTEN"
        }
        assert listening
        for address in listening:
            socket.create_connection(address, timeout=10).close()
        os.killpg(second.pid, signal.SIGSTOP)  # so that rank 0 waits, and asks whether rank 1 is there
        time.sleep(2)
        os.killpg(second.pid, signal.SIGCONT)
        time.sleep(1)
        assert first.poll() is None


def test_hello_names_the_version_and_the_sockets() -> None:
    for transport, sockets in (("zmq", "PAIR over ipc"), ("zmq:push-tcp", "PUSH and PULL over tcp")):
        answers, _ = converse(worker(), ["hello"], "-t", transport, *shared())
        assert answers[0]["library"] == f"{FOUND[0].name} ({sockets})"
