"""Device memory on a stand-in of NVIDIA's driver (standin_cuda.c): copies, kernels, messages, and every fault."""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.worker.test_layers import UCX, started
from tests.worker.test_native import DESCRIPTION, converse, measure, measured, shared
from tests.worker.test_session import MPIS, opened

from hockney.model import Point
from hockney.worker.build import build_worker
from hockney.worker.catalogue import load
from hockney.worker.errors import WorkerDied, WorkerRefused
from hockney.worker.libraries import Library
from hockney.worker.session import WorkerSession

pytestmark = pytest.mark.timeout(300)
Standin = Callable[..., dict[str, str]]
OPTIONS = {row["name"]: {each["name"]: each for each in row["options"]} for row in DESCRIPTION["patterns"]}
MEMORIES = OPTIONS["devcopy"]["memory"]["choices"].split("|")
ALONE = ("-t", "shm", *shared(1))
CUDA = ("cuda", "cuda:threads")
MESSAGES = ("pingpong", "oneway", "twoway", "pairs", "bisection", "pingping", "rounds", "flows", "funnel")
SIZES = (1, 8, 4097, 1 << 20)


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def told(commands: list[str], *arguments: str, env: dict[str, str]) -> tuple[list[str], str]:
    """The kinds of the answers, those of errors with their code, and standard error."""
    answers, done = converse(build_worker(), commands, *arguments, env=env)
    assert "allocations are left" not in done.stderr
    return [answer.get("code", answer["kind"]) for answer in answers], done.stderr


# ---- copies and kernels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_copy_between_any_two_memories_arrives(memory: str, standin: Standin) -> None:
    ways: list[dict[str, Any]] = [{"ways": ways, "by": by} for ways in ("one", "both") for by in ("engine", "kernel")]
    if "host" in memory.split(":"):
        ways = [way for way in ways if way["by"] == "engine"]
    commands = [measure("devcopy", size, memory=memory, **way) for way in ways for size in SIZES]
    answers = measured(commands, *ALONE, env=standin())
    assert all(answer["verified"] for answer in answers)
    counted = [2 if way["ways"] == "both" else 1 for way in ways for _ in SIZES]
    assert [answer["messages_per_rep"] for answer in answers] == counted
    assert [answer["bytes_per_rep"] // answer["bytes"] for answer in answers] == counted


@pytest.mark.parametrize(("source", "target"), [(0, 1), (1, 0), (1, 1)])
def test_a_copy_between_two_devices_arrives(source: int, target: int, standin: Standin) -> None:
    ends = {"from": source, "to": target}
    commands = [measure("devcopy", 4097, memory=memory, ways="both", **ends) for memory in MEMORIES]
    assert all(answer["verified"] for answer in measured(commands, *ALONE, env=standin("devices=2")))


@pytest.mark.parametrize("memory", ["pinned:device", "device:host", "device"])
def test_a_copy_that_arrives_wrong_fails_the_point(memory: str, standin: Standin) -> None:
    by = ("engine",) if "host" in memory else ("engine", "kernel")
    commands = [measure("devcopy", size, memory=memory, by=each) for each in by for size in SIZES]
    kinds, _ = told(commands, *ALONE, env=standin("wrong=1"))
    assert kinds == [*["corrupt"] * len(commands), "bye"]


def test_a_copy_takes_at_least_as_long_as_its_link(standin: Standin) -> None:
    """1 MiB at 1000 MB/s is 1.05 ms, and twice that where both ways share the link."""
    commands = [measure("devcopy", 1 << 20, ways=ways, batch=1) for ways in ("one", "both")]
    one, both = measured(commands, *ALONE, env=standin("mb_per_s=1000"))
    assert min(one["elapsed_ns"][0]) >= 1_048_576
    assert min(both["elapsed_ns"][0]) >= 2_097_152


def test_kernels_start_and_answer_flags(standin: Standin) -> None:
    commands = [measure(pattern, 0, batch=batch) for pattern in ("devlaunch", "devflag") for batch in (1, 100)]
    answers = measured(commands, *ALONE, env=standin())
    assert [answer["divisor"] for answer in answers] == [1, 1, 2, 2]
    assert all(ns > 0 for answer in answers for ns in answer["elapsed_ns"][0])


# ---- what a system may lack -----------------------------------------------------------------------------------------

HIDDEN = (
    "the NVIDIA driver finds no device; nvidia-smi"
    if Path("/dev/nvidiactl").exists()
    else "but no /dev/nvidiactl; start the container"
)


@pytest.mark.parametrize(
    ("faults", "old", "sentence"),
    [
        (["init=100"], False, HIDDEN),
        (["devices=0"], False, "devlaunch needs a device: the NVIDIA driver finds no device; nvidia-smi"),
        (["init=803"], False, "the NVIDIA driver does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        ([], True, "too old: it lacks cuMemAllocManaged; install a driver for CUDA 11 or newer"),
        ([], False, "devlaunch: there is no device 1: this machine has 1, from 0 on"),
    ],
)
def test_what_the_driver_lacks_is_one_sentence(faults: list[str], old: bool, sentence: str, standin: Standin) -> None:
    command = measure("devlaunch", 0, device=1 if sentence.endswith("from 0 on") else 0)
    answers, _ = converse(build_worker(), [command], *ALONE, env=standin(*faults, old=old))
    assert answers[0]["code"] == "unsupported"
    assert sentence in answers[0]["message"]
    assert "\n" not in answers[0]["message"]


@pytest.mark.skipif(has_driver(), reason="an NVIDIA driver is installed")
@pytest.mark.parametrize("pattern", ["devlaunch", "devflag", "devcopy"])
def test_without_a_driver_the_point_and_the_transport_say_so(pattern: str) -> None:
    size = 8 if pattern == "devcopy" else 0
    answers, _ = converse(build_worker(), [measure(pattern, size)], *ALONE)
    how = "use a machine with an NVIDIA GPU and its driver"
    assert answers[0]["message"] == f"{pattern} needs a device: no NVIDIA driver; {how}"
    rows = {row["name"]: (row["absent"], row["remedy"]) for row in DESCRIPTION["transports"]}
    assert {rows[name] for name in CUDA} == {("no NVIDIA driver", how)}
    assert not {*CUDA} & {missing.name for missing in load(libraries=()).to_get()}  # nothing to install
    _, done = converse(build_worker(), [measure("pingpong", 8)], "-t", "cuda", *shared(2))
    assert f"cuda: no NVIDIA driver; {how}" in done.stderr


def test_a_kernel_copies_no_pageable_memory(standin: Standin) -> None:
    command = measure("devcopy", 8, memory="host:device", by="kernel")
    answers, _ = converse(build_worker(), [command], *ALONE, env=standin())
    assert answers[0]["message"] == "by=kernel needs memory that a kernel can access: pinned in place of host"


def test_a_device_in_exclusive_mode_is_named(standin: Standin) -> None:
    kinds, log = told([measure("devlaunch", 0), measure("memcpy", 8)], *ALONE, env=standin("exclusive=1"))
    assert kinds == ["system", "measure", "bye"]
    assert (
        "CUDA_ERROR_DEVICE_UNAVAILABLE: its compute mode allows one process at a time, and another one uses it" in log
    )


@pytest.mark.parametrize("memory", ["pinned:device", "device", "managed"])
def test_out_of_memory_fails_the_size_and_smaller_ones_go_on(memory: str, standin: Standin) -> None:
    commands = [measure("devcopy", size, memory=memory) for size in (8, 64 << 20, 8)]
    kinds, log = told(commands, *ALONE, env=standin(f"oom={32 << 20}"))
    assert kinds == ["measure", "memory", "measure", "bye"]
    assert re.search(r"device 0: cuMem\w+ of \d+ B: CUDA_ERROR_OUT_OF_MEMORY; smaller sizes may fit", log)


def test_a_lost_device_ends_the_job_with_the_name_of_the_error(standin: Standin) -> None:
    kinds, log = told([measure("devcopy", 8)] * 2, *ALONE, env=standin("lost=9"))
    assert "measure" not in kinds[1:]
    assert "device 0: cuStreamSynchronize: CUDA_ERROR_ECC_UNCORRECTABLE" in log


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (measure("devcopy", 8, timeout_s=1), "hang=9"),
        (measure("devlaunch", 0, timeout_s=1), "hang=2"),
        (measure("devflag", 0, timeout_s=1), "deaf=1"),
    ],
)
def test_a_wait_for_a_device_that_hangs_ends_at_its_limit(command: str, fault: str, standin: Standin) -> None:
    _, log = told([command], *ALONE, env=standin(fault))
    assert "no end after 1 s in dev" in log


@pytest.mark.parametrize("transport", CUDA)
def test_copies_run_where_buffers_of_messages_lie_on_the_device(transport: str, standin: Standin) -> None:
    commands = [measure("devcopy", size, memory=memory, ways="both") for memory in MEMORIES for size in SIZES]
    commands += [measure(pattern, 0) for pattern in ("devlaunch", "devflag")]
    answers = measured(commands, "-t", transport, *shared(1), env=standin())
    assert [answer["verified"] for answer in answers] == [*[True] * (len(commands) - 2), False, False]


# ---- messages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("transport", CUDA)
def test_messages_between_device_memories_arrive(transport: str, devices: int, ranks: int, standin: Standin) -> None:
    commands = [measure(pattern, size) for pattern in MESSAGES for size in (8, 4097, 1 << 20)]
    commands += [measure(pattern, size, window=5) for pattern in ("oneway", "twoway") for size in (0, 8, 4097)]
    commands += [measure("pingpong", 8, receive="posted"), measure("pingpong", 0)]
    answers = measured(commands, "-t", transport, *shared(ranks), env=standin(f"devices={devices}"))
    assert all(answer["verified"] for answer in answers)


@pytest.mark.parametrize(
    ("transport", "devices", "library"),
    [
        ("cuda", 2, "Stand-in 0, CUDA 13.0"),
        ("cuda", 1, "Stand-in 0, CUDA 13.0, same device: times are of its turns between processes"),
        ("cuda:threads", 1, "Stand-in 0, CUDA 13.0, same device"),
        ("cuda:threads", 2, "Stand-in 0, CUDA 13.0"),
    ],
)
def test_ranks_that_share_a_device_are_named(transport: str, devices: int, library: str, standin: Standin) -> None:
    answers, _ = converse(build_worker(), ["hello"], "-t", transport, *shared(2), env=standin(f"devices={devices}"))
    assert answers[0]["library"] == library


def test_a_slice_of_a_device_has_its_name(standin: Standin) -> None:
    answers, _ = converse(build_worker(), ["hello"], "-t", "cuda", *shared(1), env=standin("mig=1"))
    assert answers[0]["library"] == "Stand-in 0 MIG 1g.10gb, CUDA 13.0"


@pytest.mark.parametrize("transport", CUDA)
def test_a_message_that_arrives_wrong_fails_the_point(transport: str, standin: Standin) -> None:
    kinds, _ = told(
        [measure("pingpong", 8), measure("oneway", 4097)], "-t", transport, *shared(2), env=standin("wrong=1")
    )
    assert kinds == ["corrupt", "corrupt", "bye"]


@pytest.mark.parametrize("transport", CUDA)
def test_buffers_that_do_not_fit_fail_the_point_on_all_ranks(transport: str, standin: Standin) -> None:
    commands = [measure("pingpong", size) for size in (8, 64 << 20, 8)]
    kinds, log = told(commands, "-t", transport, *shared(2), env=standin(f"oom={32 << 20}"))
    assert kinds == ["measure", "memory", "measure", "bye"]
    assert log.count("CUDA_ERROR_OUT_OF_MEMORY") == 2, "once on each rank"


@pytest.mark.parametrize("transport", CUDA)
@pytest.mark.parametrize("fault", ["hang=20", "lost=20"])
def test_a_device_that_fails_ends_all_ranks(transport: str, fault: str, standin: Standin) -> None:
    commands = [measure("pingpong", 8, timeout_s=1, samples=20)] * 2
    kinds, log = told(commands, "-t", transport, *shared(2), env=standin(fault))
    assert "bye" not in kinds
    assert ("no end after 1 s" if fault.startswith("hang") else "CUDA_ERROR_ECC_UNCORRECTABLE") in log


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (measure("allreduce", 8), "allreduce uses its buffers with the CPU, which cannot reach those of cuda"),
        (measure("pingpong", 8, receive="late"), "receive=late writes times into its messages"),
    ],
)
def test_patterns_whose_cpu_reads_messages_are_refused(command: str, why: str, standin: Standin) -> None:
    answers, _ = converse(build_worker(), [command], "-t", "cuda", *shared(2), env=standin())
    assert answers[0]["code"] == "unsupported"
    assert why in answers[0]["message"]


# ---- libraries that were built for device memory: the stand-in answers for them -------------------------------------

LIBRARIES = [(mpi, "mpi") for mpi in MPIS] + [(ucx, "ucx") for ucx in UCX]
EVERY_LIBRARY = pytest.mark.parametrize(
    ("library", "transport"), [pytest.param(*each, id=each[0].id) for each in LIBRARIES]
)
PLACES = ("device", "managed", "host:device", "device:host")
REFUSALS = {"mpi": "this library was built without CUDA", "ucx": "has no usable CUDA module here"}


def preloaded(standin: Standin, *faults: str) -> dict[str, str]:
    """A wheel's programs do not see LD_LIBRARY_PATH."""
    variables = standin(*faults)
    return {**variables, "LD_PRELOAD": f"{variables['LD_LIBRARY_PATH']}/libcuda.so.1"}


def aware(standin: Standin, *faults: str) -> dict[str, str]:
    """Variables of a library that says that it takes device memory."""
    return preloaded(standin, "aware=1", *faults)


def job(library: Library, transport: str, variables: dict[str, str]) -> AbstractContextManager[WorkerSession]:
    """A session of two ranks that has said hello."""
    return opened(started(library, transport, 2, hosts=(), **variables))


@EVERY_LIBRARY
def test_a_library_sends_from_and_to_device_memory(library: Library, transport: str, standin: Standin) -> None:
    patterns = ("pingpong", "oneway", "twoway", "pairs", "bisection", "pingping", "rounds")
    with job(library, transport, aware(standin, "open=1")) as session:
        for place, pattern in itertools.product(("default", *PLACES, "default"), patterns):
            for size in (0, 8, 100_000):
                answer = session.measure(pattern, bytes=size, samples=2, options=[("memory", place)], timeout_s=60)
                assert answer.verified
    assert not session.channel.noise


@EVERY_LIBRARY
@pytest.mark.parametrize(("place", "source"), [("device:host", 0), ("host:device", 1)])
def test_messages_really_lie_on_the_device(
    library: Library, transport: str, place: str, source: int, standin: Standin
) -> None:
    """A library that uses the CPU dies at the device's buffer, which the CPU does not reach here."""
    roles = [("memory", place), ("source", str(source)), ("target", str(1 - source))]
    with pytest.raises(WorkerDied), job(library, transport, aware(standin)) as session:
        session.measure("pingpong", bytes=8, samples=2, options=roles, timeout_s=20)


@EVERY_LIBRARY
@pytest.mark.parametrize("fault", ["wrong=1", f"oom={32 << 20}"])
def test_wrong_data_and_no_memory_on_a_device_fail_the_point(
    library: Library, transport: str, fault: str, standin: Standin
) -> None:
    with job(library, transport, aware(standin, "open=1", fault)) as session:
        with pytest.raises(WorkerRefused) as refused:
            session.measure("pingpong", bytes=64 << 20, samples=1, options=[("memory", "device")], timeout_s=60)
        assert refused.value.code == ("corrupt" if fault == "wrong=1" else "memory")
        assert session.measure("pingpong", bytes=8, samples=2, timeout_s=60).verified


@EVERY_LIBRARY
def test_a_library_without_devices_says_so(
    library: Library, transport: str, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a job where the library knows it then; else the job does, before it measures."""
    for name, value in preloaded(standin).items():
        monkeypatch.setenv(name, value)
    point = Point(library.id, "pingpong", 2, 8, (("memory", "device"),))
    early = load(libraries=[library]).obstacles([point])
    knows_early = transport == "ucx" or library.id.startswith("mpi@openmpi-4")
    assert bool(early) == knows_early
    assert all(REFUSALS[transport] in why for why in early.values())
    with job(library, transport, standin()) as session:
        with pytest.raises(WorkerRefused, match=REFUSALS[transport]) as refused:
            session.measure("pingpong", bytes=8, samples=2, options=[("memory", "device")])
        assert refused.value.unsupported


@pytest.mark.parametrize(
    ("transport", "why"),
    [
        ("tcp", "pingpong needs messages from and to memory of devices, which tcp does not offer"),
        ("cuda", "cuda has all buffers on devices: leave memory= out"),
    ],
)
def test_other_transports_take_no_memory(transport: str, why: str, standin: Standin) -> None:
    command = measure("pingpong", 8, memory="device")
    answers, _ = converse(build_worker(), [command], "-t", transport, *shared(2), env=standin())
    assert (answers[0]["code"], answers[0]["message"]) == ("unsupported", why)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"receive": "late"}, "receive=late writes times into its messages, which the CPU cannot reach on devices"),
        ({"unexpected": "3"}, "messages of unexpected= and preposted= are written by the CPU: leave memory= out"),
    ],
)
@pytest.mark.parametrize(("library", "transport"), LIBRARIES[:1])
def test_options_whose_messages_the_cpu_writes_are_refused(
    library: Library, transport: str, options: dict[str, str], why: str, standin: Standin
) -> None:
    asked = [("memory", "device"), *options.items()]
    with job(library, transport, aware(standin)) as session, pytest.raises(WorkerRefused, match=why):
        session.measure("pingpong", bytes=8, options=asked)
