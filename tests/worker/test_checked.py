"""Transports over libraries and io_uring under sanitizers: every byte arrives, and connections are cut."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.matrix import matrix
from tests.worker.extra import ADDRESS, THREAD
from tests.worker.test_native import DESCRIPTION, HERE, measure, measured, shared
from tests.worker.test_session import ENDLESS, nothing_stays, soon

from hockney.worker.build import Recipe, build_worker
from hockney.worker.errors import LaunchFailed, WorkerDied
from hockney.worker.launch import Job, launch
from hockney.worker.libraries import Library, find_ofis, find_ucxs, find_zmqs
from hockney.worker.session import WorkerSession

_GET_FD = 438  # pidfd_getfd(2), Linux 5.6
_QUIET = {"ASAN_OPTIONS": "detect_leaks=0"}  # what libraries keep until the end is theirs
ZMQ, UCX, OFI = find_zmqs()[0], find_ucxs()[0], find_ofis()[0]
PROVIDERS = [each for each in OFI if each.id == "ofi@tcp-rxm"]
HERE_ARE = [row["name"] for row in DESCRIPTION["transports"] if not row["absent"]]


def cut(pid: int) -> None:
    """Shuts the TCP connections of a process, as a fault of the network does."""
    for number in [int(link.name) for link in Path(f"/proc/{pid}/fd").iterdir()]:
        copy = taken(pid, number)
        try:
            one = socket.socket(fileno=copy)
        except (OSError, ValueError):  # no socket, or closed meanwhile
            if copy >= 0:
                os.close(copy)
            continue
        with one, contextlib.suppress(OSError):
            is_tcp = one.family in (socket.AF_INET, socket.AF_INET6)
            if is_tcp and not one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                one.shutdown(socket.SHUT_RDWR)


def taken(pid: int, number: int) -> int:
    """A copy of another process's descriptor; below 0: this system gives none."""
    pidfd = os.pidfd_open(pid)
    try:
        return int(ctypes.CDLL(None).syscall(_GET_FD, pidfd, number, 0))
    finally:
        os.close(pidfd)


@pytest.mark.skipif("tcp:uring" not in HERE_ARE, reason="this system has no io_uring")
def test_a_connection_of_io_uring_that_is_cut_leaves_no_operation() -> None:
    """Requests of both directions are open then: none may use memory that is gone, and each rank says one sentence."""
    plain = launch(Job(build_worker(ADDRESS), "tcp:uring", 2, oversubscribed=True))
    with WorkerSession(replace(plain, environment={**plain.environment, **_QUIET})) as session, nothing_stays(session):
        pid = session.hello().ranks[1].pid
        if (copy := taken(pid, 0)) < 0:
            pytest.skip("this system lets no process take another one's sockets")
        os.close(copy)
        with soon(lambda: cut(pid)), pytest.raises(WorkerDied, match=r"rank [01] is gone"):
            session.measure("twoway", bytes=4104, batch=ENDLESS, timeout_s=60, options=[("window", "64")])
        said = session.words()
    lines = [line for line in said.splitlines() if line.startswith("hockney worker: ") and "control: " not in line]
    assert len(lines) == len({line.split(":")[1] for line in lines}), said
    assert "Sanitizer" not in said, said


@pytest.mark.parametrize("size", [5000, 300_000])
@pytest.mark.parametrize(
    ("library", "transport", "says"),
    [(each, "zmq", "zmq: rank [01] sent {} B where {} B were awaited") for each in ZMQ]
    + [(each, "ucx:am", "ucx:am: .* failed: it has another size than its receive") for each in UCX[:1]]
    + [(each, "ucx", "ucx: ucp_tag_recv_nbx failed: Message truncated") for each in UCX[:1]],
)
def test_a_message_of_another_size_than_its_receive_ends_the_job(
    library: Library, transport: str, says: str, size: int, tmp_path: Path
) -> None:
    """Also one that UCX fetches by a rendezvous."""
    preloaded = tmp_path / "short.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", preloaded, HERE / "short_send.c"], check=True)
    command = launch(Job(build_worker(library.recipe), transport, 2, oversubscribed=True), library)
    command = replace(command, environment={**command.environment, "LD_PRELOAD": str(preloaded)})
    with WorkerSession(command) as session, nothing_stays(session):
        session.hello()
        with pytest.raises(WorkerDied, match=says.format(size - 1, size)):
            session.measure("pingpong", bytes=size, timeout_s=60)


@pytest.mark.parametrize("size", [5000, 300_000])
@pytest.mark.parametrize("library", PROVIDERS, ids=lambda library: library.id)
def test_a_message_that_is_longer_than_its_receive_ends_a_job_of_libfabric(library: Library, size: int) -> None:
    """Not over shm, whose receive of libfabric 1.17 does not end then."""
    recipe = replace(library.recipe, flags=(*library.recipe.flags, "-include", str(HERE / "long_send.h")))
    command = launch(Job(build_worker(recipe), "ofi", 2, oversubscribed=True), library)
    with WorkerSession(command) as session, nothing_stays(session):
        session.hello()
        with pytest.raises(WorkerDied, match=r"ofi: a message failed: "):
            session.measure("pingpong", bytes=size, timeout_s=60)


@pytest.mark.parametrize("transport", ["zmq:tcp", "zmq:push-tcp"])
@pytest.mark.parametrize("library", ZMQ[:1], ids=lambda library: library.id)
def test_a_connection_of_zeromq_that_is_cut_ends_the_job(library: Library, transport: str) -> None:
    """It is not made again, or messages would go on if none was lost at that moment."""
    command = launch(Job(build_worker(library.recipe), transport, 2, oversubscribed=True), library)
    with WorkerSession(command) as session, nothing_stays(session):
        pid = session.hello().ranks[1].pid
        if (copy := taken(pid, 0)) < 0:
            pytest.skip("this system lets no process take another one's sockets")
        os.close(copy)
        session.measure("pingpong", bytes=4104, timeout_s=60)  # the first message makes the connection
        with soon(lambda: cut(pid)), pytest.raises(WorkerDied, match=rf"{transport}: rank [01] is gone"):
            session.measure("pingpong", bytes=4104, batch=ENDLESS, timeout_s=60)


@pytest.mark.parametrize(
    ("library", "transport"), [*((each, "ucx") for each in UCX[:1]), *((each, "ofi") for each in PROVIDERS)]
)
def test_a_sender_whose_connection_is_cut_ends_the_job(library: Library, transport: str) -> None:
    """It sends all the time: neither library says so to a rank that waits for a message."""
    command = launch(Job(build_worker(library.recipe), transport, 2, oversubscribed=True), library)
    command = replace(command, environment={**command.environment, "UCX_TLS": "tcp"})
    with WorkerSession(command) as session, nothing_stays(session):
        pid = session.hello().ranks[1].pid
        if (copy := taken(pid, 0)) < 0:
            pytest.skip("this system lets no process take another one's sockets")
        os.close(copy)
        session.measure("oneway", bytes=4104, timeout_s=60)  # the first message makes the connection
        with soon(lambda: cut(pid)), pytest.raises(WorkerDied, match=rf"rank [01]: {transport}: .* failed: "):
            session.measure("oneway", bytes=4104, batch=ENDLESS, timeout_s=60, options=[("until", "sent")])
        said = [line for line in session.words().splitlines() if line.startswith("hockney worker: ")]
    assert len(said) == len({line.split(":")[1] for line in said}), said


@pytest.mark.parametrize("library", PROVIDERS, ids=lambda library: library.id)
def test_a_provider_that_does_not_start_names_the_call(library: Library, tmp_path: Path) -> None:
    preloaded = tmp_path / "none.so"
    source = "int fi_fabric(void *attr, void **fabric, void *context) { return -16; }"
    compile_it = ["cc", "-shared", "-fPIC", "-w", "-x", "c", "-o", str(preloaded), "-"]
    subprocess.run(compile_it, input=source, text=True, check=True)
    command = launch(Job(build_worker(library.recipe), "ofi", 2, oversubscribed=True), library)
    command = replace(command, environment={**command.environment, "LD_PRELOAD": str(preloaded)})
    why = r"rank [01]: ofi: the provider tcp;ofi_rxm does not start: fi_fabric: Device or resource busy"
    with pytest.raises(LaunchFailed, match=why), WorkerSession(command) as session:
        session.hello()


# ---- every byte under sanitizers ------------------------------------------------------------------------------------

_COMMANDS = [
    *(measure(name, size) for name in ("pingpong", "twoway", "alltoall", "ring") for size in (0, 8, 70_001)),
    measure("oneway", 300_000, window=64),
    measure("oneway", 8, window=1024, until="sent"),
]
_PUTS = [measure(name, size) for name in ("put", "get", "putpong", "putall") for size in (8, 70_000)]


_NATIVE: list[tuple[Library | None, str]] = [
    (None, name) for name in ("shm:sleep", "unix:seqpacket", "tcp:uring", "mptcp") if name in HERE_ARE
]
_OF_LIBRARIES: list[tuple[Library | None, str]] = [
    *((each, name) for each in ZMQ for name in ("zmq", "zmq:inproc", "zmq:push")),
    *((each, name) for each in UCX[:1] for name in ("ucx:am", "ucx:put")),
    *((each, "ofi:write") for each in OFI if each.id in ("ofi@shm", "ofi@tcp-rxm")),
]
LAYERS: dict[str, tuple[Library | None, str, Recipe]] = {
    f"{library.id if library else 'native'} {name}": (library, name, ADDRESS)
    for library, name in (*_NATIVE, *_OF_LIBRARIES)
}
# Without optimisation, which takes more time than it saves.
LAYERS |= {f"{each.id} threads": (each, "zmq:inproc", Recipe(flags=(*THREAD.flags, "-O0"))) for each in ZMQ}
_SHORT = [name for name in LAYERS if name.endswith(("inproc", "threads", "uring", "ucx:am")) or "ofi@shm" in name]


@pytest.mark.parametrize("layer", matrix(LAYERS, short=_SHORT))
def test_sanitizers_find_nothing(layer: str) -> None:
    """ThreadSanitizer does not see how a library's own threads meet, so it looks at ours alone."""
    library, transport, recipe = LAYERS[layer]
    commands = _COMMANDS + (_PUTS if transport in ("ucx:put", "ofi:write") else [])
    environment = {
        **_QUIET,
        "TSAN_OPTIONS": "ignore_noninstrumented_modules=1",
        **dict(library.environment if library else ()),
    }
    plain = library.recipe if library else Recipe()
    built = replace(plain, flags=(*plain.flags, *recipe.flags))
    measured(commands, "-t", transport, *shared(), recipe=built, env=environment)
