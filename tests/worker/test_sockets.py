"""Transports that a system may lack: MPTCP that falls back, io_uring that is forbidden; and ranks that sleep."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.shared import finished
from tests.worker.test_native import HERE, PATTERNS, converse, measure, measured, shared

from hockney.errors import UsageError
from hockney.worker.build import SOURCES, build_worker
from hockney.worker.catalogue import load

# Installs a filter of system calls that refuses one with EPERM, as a container's does, and becomes a worker.
FORBIDDING = """
import ctypes, os, struct, sys
def step(code, k, jt=0, jf=0):
    return struct.pack("HBBI", code, jt, jf, k)
number, allow, refuse = int(sys.argv[1]), 0x7FFF0000, 0x00050001
steps = step(0x20, 0) + step(0x15, number, 0, 1) + step(0x06, refuse) + step(0x06, allow)
room = ctypes.create_string_buffer(steps, len(steps))
program = struct.pack("HxxxxxxP", 4, ctypes.addressof(room))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[2], sys.argv[2:])
"""
IO_URING_SETUP = "425"
WITHOUT_URING = (sys.executable, "-c", FORBIDDING, IO_URING_SETUP)


def described(*before: str) -> dict[str, dict[str, str | None]]:
    """The transports of the native worker that a command starts, by name."""
    (answer,), done = converse(Path(before[0] if before else "env"), [], *before[1:], str(build_worker()), "--describe")
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in answer["transports"]}


# ---- io_uring ------------------------------------------------------------------------------------------------------


def test_io_uring_that_is_forbidden_is_said_before_it_is_measured() -> None:
    for name, row in described(*WITHOUT_URING).items():
        if name.startswith("tcp:uring"):
            assert row["absent"] == "the kernel gives this process no io_uring: Operation not permitted"
            assert str(row["remedy"]).startswith("as root: sysctl kernel.io_uring_disabled=0")
        elif name not in ("mptcp", "cuda", "cuda:threads"):
            assert row["absent"] is None, name


def test_a_job_without_io_uring_ends_with_a_sentence() -> None:
    program, *words = WITHOUT_URING
    answers, done = converse(
        Path(program), [measure("pingpong", 8)], *words, str(build_worker()), "-t", "tcp:uring", *shared(), limit_s=60
    )
    assert [a["kind"] for a in answers] == ["lost"]
    assert "tcp:uring: no io_uring: Operation not permitted" in done.stderr


def test_a_transport_that_is_absent_is_missing_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plain one is still here."""
    script = tmp_path / "worker"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{FORBIDDING}' {IO_URING_SETUP} {build_worker()} \"$@\"\n")
    script.chmod(0o755)
    monkeypatch.setattr("hockney.worker.catalogue.build_worker", lambda *_: script)
    catalogue = load(libraries=())
    assert "tcp" in catalogue.transports
    assert "tcp:uring" not in catalogue.transports
    with pytest.raises(
        UsageError, match=r"^tcp:uring is not here: the kernel gives .* not permitted; as root: sysctl "
    ):
        catalogue.select(["tcp:uring"])


@pytest.mark.skipif(described()["tcp:uring-sqpoll"]["absent"] is not None, reason="this system has no io_uring")
def test_a_thread_of_the_kernel_submits_every_pattern() -> None:
    commands = [measure(name, size, batch=2, samples=2) for name in PATTERNS for size in (0, 8, 70_001)]
    commands += [measure("twoway", 300_000, window=16, batch=1, samples=2)]
    for answer in measured(commands, "-t", "tcp:uring-sqpoll", *shared()):
        assert answer["verified"] is (answer["pattern"] != "barrier")


def test_headers_older_than_what_io_uring_needs_leave_it_out(tmp_path: Path) -> None:
    """As those of Linux 5.4: the other transports can still be built."""
    (tmp_path / "linux").mkdir()
    (tmp_path / "linux" / "io_uring.h").write_text("#define IORING_SETUP_SQPOLL (1U << 1)\n")
    source = SOURCES / "transports" / "tcp_uring.c"
    done = finished(["cc", "-std=c17", "-D_GNU_SOURCE", "-Werror", "-fsyntax-only", "-I", str(tmp_path), str(source)])
    assert (done.returncode, done.stderr) == (0, "")


# ---- MPTCP ---------------------------------------------------------------------------------------------------------

HAS_MPTCP = described()["mptcp"]["absent"] is None
IN_NAMESPACE = ("unshare", "--net", "sh", "-c")


@pytest.mark.skipif(not HAS_MPTCP, reason="this kernel has no MPTCP, or net.mptcp.enabled=0")
def test_every_connection_is_mptcp_or_the_job_is_refused(tmp_path: Path) -> None:
    command = measure("pingpong", 70_001)
    (hello, answer, _), _ = converse(build_worker(), ["hello", command], "-t", "mptcp", *shared(3))
    assert hello["library"].startswith("MPTCP over loopback, TCP_NODELAY, congestion control ")
    assert hello["library"].endswith(", blocking, 0 further subflows")
    assert answer["verified"]
    library = tmp_path / "plain.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, HERE / "plain_tcp.c"], check=True)
    answers, done = converse(
        build_worker(), [command], "-t", "mptcp", *shared(), env={"LD_PRELOAD": str(library)}, limit_s=60
    )
    assert [a["kind"] for a in answers] == ["lost"]
    assert "fell back to plain TCP: its host has no MPTCP, or something on the way removes its options" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="a namespace of its own needs root and ip")
@pytest.mark.skipif(not HAS_MPTCP, reason="this kernel has no MPTCP")
def test_mptcp_that_is_switched_off_is_said_before_it_is_measured() -> None:
    before = (*IN_NAMESPACE, 'ip link set lo up && echo 0 >/proc/sys/net/mptcp/enabled && exec "$@"', "sh")
    row = described(*before)["mptcp"]
    assert row["absent"] == "the kernel opens no MPTCP socket: Protocol not available"
    assert row["remedy"] == "as root: sysctl net.mptcp.enabled=1 (Linux 5.6 or newer)"
    answers, done = converse(
        Path(before[0]),
        [measure("pingpong", 8)],
        *before[1:],
        str(build_worker()),
        "-t",
        "mptcp",
        *shared(),
        limit_s=60,
    )
    assert [a["kind"] for a in answers] == ["lost"]
    assert "mptcp: the kernel opens no MPTCP socket: Protocol not available; as root: sysctl" in done.stderr


CHAIN = "add table ip t; add chain ip t c { type filter hook output priority 0; }"
STRIP = f"nft '{CHAIN}; add rule ip t c reset tcp option mptcp'"


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("nft") is None, reason="a filter needs root and nft")
@pytest.mark.skipif(not HAS_MPTCP, reason="this kernel has no MPTCP")
def test_a_way_that_removes_the_options_of_mptcp_is_found() -> None:
    script = f'ip link set lo up && {STRIP} && exec "$@"'
    if finished([*IN_NAMESPACE, script, "sh", "true"]).returncode != 0:
        pytest.skip("this kernel removes no options of TCP")
    answers, done = converse(
        Path(IN_NAMESPACE[0]), [measure("pingpong", 8)], *IN_NAMESPACE[1:], script, "sh", str(build_worker()),
        "-t", "mptcp", *shared(), limit_s=60,
    )  # fmt: skip
    assert [a["kind"] for a in answers] == ["lost"]
    assert "mptcp: the connection with rank " in done.stderr


# ---- ranks that sleep ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["shm:sleep", "tcp:uring"])
@pytest.mark.parametrize("bind", ["0,0", "0,0,0,0,0"])
def test_no_wake_up_is_missed(transport: str, bind: str) -> None:
    """On one CPU a rank is interrupted between any two steps: between its look and its sleep, too."""
    ranks = bind.count("0")
    patterns: list[tuple[str, dict[str, object]]]
    patterns = [("twoway", {"window": 64}), ("pingpong", {}), ("oneway", {"until": "sent", "window": 200})]
    patterns += [("alltoall", {}), ("funnel", {}), ("barrier", {}), ("pushfarm", {"senders": 2})] * (ranks > 2)
    commands = [measure(name, size, batch=200, **keys) for name, keys in patterns for size in (8, 300)]
    measured(commands, "-t", transport, "-n", str(ranks), "--bind", bind, "--oversubscribed")


def test_packets_keep_messages_whole_above_their_size() -> None:
    sizes = [65_535, 65_536, 65_537, 1 << 20, 3_000_001]
    commands = [measure(name, size, batch=1) for name in ("pingpong", "twoway") for size in sizes]
    assert all(answer["verified"] for answer in measured(commands, "-t", "unix:seqpacket", *shared()))
