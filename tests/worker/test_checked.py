"""Transports over libraries and io_uring under sanitizers: every byte arrives, and connections are cut."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import socket
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.worker.extra import ADDRESS, THREAD
from tests.worker.test_native import DESCRIPTION, measure, measured, shared
from tests.worker.test_session import ENDLESS, nothing_stays, soon

from hockney.worker.build import Recipe, build_worker
from hockney.worker.errors import WorkerDied
from hockney.worker.launch import Job, launch
from hockney.worker.libraries import NATIVE, Library, find_ofis, find_ucxs, find_zmqs
from hockney.worker.session import WorkerSession

_GET_FD = 438  # pidfd_getfd(2), Linux 5.6
_QUIET = {"ASAN_OPTIONS": "detect_leaks=0"}  # what libraries keep until the end is theirs


@dataclass(frozen=True)
class Wire:
    """A transport whose messages are carried by TCP, and what it says of a connection that is cut."""

    transport: str
    says: str
    library: Library | None
    environment: tuple[tuple[str, str], ...] = ()


def _wires() -> dict[str, Wire]:
    """Those that are here."""
    zmq, ucx, ofi = (found[0] for found in (find_zmqs(), find_ucxs(), find_ofis()))
    uring = next(row for row in DESCRIPTION["transports"] if row["name"] == "tcp:uring")
    wires = [] if uring["absent"] else [Wire("tcp:uring", "rank [01] is gone", None)]
    wires += [Wire(name, "rank [01] is gone", each) for each in zmq for name in ("zmq:tcp", "zmq:push-tcp")]
    over_tcp = (("UCX_TLS", "tcp,self"),)
    wires += [Wire(name, ".* failed: .+", each, over_tcp) for each in ucx[:1] for name in ("ucx", "ucx:am")]
    wires += [Wire("ofi", ".* failed: .+", each) for each in ofi if each.id == "ofi@tcp-rxm"]
    return {wire.transport: wire for wire in wires}


WIRES = _wires()
EVERY = pytest.mark.parametrize("name", WIRES)


def cut(pid: int) -> int:
    """Shuts the TCP connections of a process, as a fault of the network does. Returns their number."""
    count, pidfd = 0, os.pidfd_open(pid)
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            copy = ctypes.CDLL(None).syscall(_GET_FD, pidfd, int(link.name), 0)
            is_socket = copy >= 0 and link.readlink().name.startswith("socket:")
            with socket.socket(fileno=copy) if is_socket else contextlib.nullcontext() as one:
                if one and one.family in (socket.AF_INET, socket.AF_INET6) and one.type == socket.SOCK_STREAM:
                    with contextlib.suppress(OSError):  # one that listens
                        one.shutdown(socket.SHUT_RDWR)
                        count += 1
            if copy >= 0 and not is_socket:
                os.close(copy)
    finally:
        os.close(pidfd)
    return count


def sanitized(library: Library | None, recipe: Recipe = ADDRESS) -> Recipe:
    """That of a library's worker, or of the native one, with a sanitizer."""
    plain = library.recipe if library else Recipe()
    return replace(plain, flags=(*plain.flags, *recipe.flags))


@EVERY
def test_a_connection_that_is_cut_ends_the_job_with_a_sentence_of_each_rank(name: str) -> None:
    """Requests stay open then: nothing may use their memory, and no further measurement begins."""
    wire = WIRES[name]
    command = launch(
        Job(build_worker(sanitized(wire.library)), wire.transport, 2, oversubscribed=True), wire.library or NATIVE
    )
    command = replace(command, environment={**command.environment, **_QUIET, **dict(wire.environment)})
    counts: list[int] = []
    with WorkerSession(command) as session, nothing_stays(session):
        pid = session.hello().ranks[1].pid
        with soon(lambda: counts.append(cut(pid))), pytest.raises(WorkerDied) as death:
            session.measure("twoway", bytes=4104, batch=ENDLESS, timeout_s=60, options=[("window", "64")])
        said = session.words()
    if counts == [0]:
        pytest.skip("this system lets no process take another one's sockets")
    assert re.search(wire.says, str(death.value)), said
    lines = [line for line in said.splitlines() if line.startswith("hockney worker: ") and "control: " not in line]
    assert len(lines) == len({line.split(":")[1] for line in lines}), said  # one of each rank
    assert "Sanitizer" not in said, said


# ---- every byte under sanitizers ------------------------------------------------------------------------------------

_COMMANDS = [
    *(measure(name, size) for name in ("pingpong", "twoway", "alltoall", "ring") for size in (0, 8, 70_001)),
    measure("oneway", 300_000, window=64),
    measure("oneway", 8, window=1024, until="sent"),
]
_PUTS = [measure(name, size) for name in ("put", "get", "putpong", "putall") for size in (8, 70_000)]


def _layers() -> dict[str, tuple[Library | None, str, Recipe]]:
    """The library, the transport in its worker, and the sanitizer."""
    zmq, ucx, ofi = (found[0] for found in (find_zmqs(), find_ucxs(), find_ofis()))
    here = [row["name"] for row in DESCRIPTION["transports"] if not row["absent"]]
    rows = [(None, name) for name in ("shm:sleep", "unix:seqpacket", "tcp:uring", "mptcp") if name in here]
    rows += [(each, name) for each in zmq for name in ("zmq", "zmq:inproc", "zmq:push")]
    rows += [(each, name) for each in ucx[:1] for name in ("ucx:am", "ucx:put")]
    rows += [(each, "ofi:write") for each in ofi if each.id in ("ofi@shm", "ofi@tcp-rxm")]
    found = {f"{library.id if library else ''} {name}": (library, name, ADDRESS) for library, name in rows}
    return found | {f"{each.id} threads": (each, "zmq:inproc", THREAD) for each in zmq}


LAYERS = _layers()


@pytest.mark.parametrize("layer", LAYERS)
def test_sanitizers_find_nothing(layer: str) -> None:
    """ThreadSanitizer does not see how a library's own threads meet, so it looks at ours alone."""
    library, transport, recipe = LAYERS[layer]
    commands = _COMMANDS + (_PUTS if transport in ("ucx:put", "ofi:write") else [])
    environment = {
        **_QUIET,
        "TSAN_OPTIONS": "ignore_noninstrumented_modules=1",
        **dict(library.environment if library else ()),
    }
    measured(commands, "-t", transport, *shared(), recipe=sanitized(library, recipe), env=environment)
