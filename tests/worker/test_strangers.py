"""Programs that do not belong to a job: what they send to its sockets is refused, changes nothing and is reported."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.shared import finished
from tests.worker.test_native import HERE

from hockney.measure.warnings import Tally
from hockney.worker.build import SOURCES, build_worker
from hockney.worker.catalogue import load
from hockney.worker.hosts import parse_hosts
from hockney.worker.launch import Job, launch
from hockney.worker.placement import Placement
from hockney.worker.session import WorkerSession

# Takes the place of ssh. Before a rank joins, a web browser and a port scanner have found the socket of rank 0 and were
# refused: it has closed their connections.
AGENT = f"""#!{sys.executable}
import contextlib, os, re, signal, socket, sys

command = " ".join(sys.argv[2:])
if listens := re.search(r"--join [^0-9]*([0-9.]+):([0-9]+)", command):
    for request in (b"GET / HTTP/1.1\\r\\nHost: hockney\\r\\nAccept: */*\\r\\n\\r\\n", b""):
        with socket.create_connection(listens.groups(), 60) as stranger:
            with contextlib.suppress(OSError):  # it may be refused at any moment
                stranger.sendall(request)
                stranger.shutdown(socket.SHUT_WR)
                while stranger.recv(64):
                    pass
signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ranks would inherit that it is ignored
os.execvp("sh", ["sh", "-c", command])
"""


def test_a_refused_stranger_is_reported(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    job = Job(build_worker(), "tcp", 2, Placement(hosts=parse_hosts("localhost:1,127.0.0.1:1")), oversubscribed=True)
    with WorkerSession(launch(job, environment={"HOCKNEY_RSH": str(agent)})) as session:
        assert [rank.strangers for rank in session.hello().ranks] == [2, 0]
        assert session.measure("pingpong", bytes=64).verified
    tally = Tally()
    tally.strangers.update({"tcp": 2, "udp": 0})
    (warning,) = tally.warnings(load(["tcp"]), {})
    assert (warning.kind, warning.subject) == ("stranger", "tcp")
    assert warning.cause.startswith("2 connections to the ranks of tcp")


def udp_ports(pid: int) -> list[int]:
    """The ports of the IPv4 datagram sockets that a process holds."""
    held = {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    rows = [line.split() for line in Path("/proc/net/udp").read_text(encoding="ascii").splitlines()[1:]]
    return [int(row[1].partition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in held]


def test_datagrams_of_strangers_change_nothing() -> None:
    noise = random.Random(1)
    with (
        WorkerSession(launch(Job(build_worker(), "udp", 2, oversubscribed=True))) as session,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        ports = [port for rank in session.hello().ranks for port in udp_ports(rank.pid)]
        assert len(ports) == 4  # of each rank one for its peer and one for questions
        for _ in range(200):
            stranger.sendto(
                noise.randbytes(noise.choice((0, 1, 15, 16, 24, 25, 1400))), ("127.0.0.1", noise.choice(ports))
            )
        answer = session.measure("pingpong", bytes=64, batch=10, samples=20)
    assert answer.verified
    assert answer.counters["lost"] == (0.0, 0.0)


@pytest.mark.full
def test_the_hello_of_a_connection_may_be_any_bytes(tmp_path: Path) -> None:
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed: no libFuzzer")
    flags = ["-g", "-O1", "-std=c17", "-D_GNU_SOURCE", "-fsanitize=fuzzer,address,undefined", f"-I{SOURCES}"]
    sources = [SOURCES / name for name in ("address.c", "io.c", "status.c")]
    fuzzer = tmp_path / "fuzz"
    subprocess.run(["clang", *flags, HERE / "fuzz_hello.c", *sources, "-o", fuzzer], check=True)
    argv = [str(fuzzer), "-runs=200000", "-max_len=64", "-seed=1"]
    done = finished(argv, timeout_s=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
