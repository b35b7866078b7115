"""The suite gpu, and figures of devices on screens, on a stand-in of NVIDIA's driver."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.support import call
from tests.shared import script

from hockney.model import NOT_MEASURED
from hockney.results.store import Store

pytestmark = pytest.mark.timeout(300)
Standin = Callable[..., dict[str, str]]


def test_copies_kernels_and_messages_of_devices_are_stored_and_shown(tmp_path: Path, standin: Standin) -> None:
    words = ("--bytes", "8,64K", "--time", "2s", "--oversubscribe")
    memories = ("pinned:device", "device")
    copies = ("run", "devcopy,devlaunch,devflag", "-t", "shm,cuda", "-o", f"memory={','.join(memories)}")
    titles = [*(f"devcopy memory={memory} on shm" for memory in memories), "devlaunch on shm", "devflag on shm"]
    shown = ""
    for asked in (copies, ("run", "pingpong", "-t", "cuda")):
        ended = call(tmp_path, *asked, *words, **standin())
        assert "Traceback" not in ended.stderr
        shown += " ".join(call(tmp_path, "show", "--all").stdout.split())
    for title in (*titles, "pingpong on cuda"):
        assert title in shown
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        stored = [*store.points(1), *store.points(2)]
        measured = {each.point.pattern for each in stored if each.status not in NOT_MEASURED}
        (warning,) = [each for each in store.run(2).warnings if each.subject == "cuda"]
    assert measured == {"devcopy", "devlaunch", "devflag", "pingpong"}
    assert "Ranks of cuda share a device" in warning.cause


def test_a_device_that_others_use_is_named_with_its_load(tmp_path: Path, standin: Standin) -> None:
    rows = "0, Stand-in 0, 87\\n1, Stand-in 1, 3\\n2, Stand-in 2, [N/A]"
    script(tmp_path / "bin" / "nvidia-smi", f"printf '{rows}\\n'")
    words = ("run", "devlaunch", "-t", "shm", "--time", "1s")
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    call(tmp_path, *words, **standin(), PATH=path)
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        (warning,) = [each for each in store.run(1).warnings if each.subject == "device 0"]
    assert warning.cause.startswith("Device 0 (Stand-in 0) was 87 % busy with other programs when the run began")


def test_out_of_memory_is_named_and_smaller_sizes_go_on(tmp_path: Path, standin: Standin) -> None:
    words = ("run", "devcopy", "-t", "shm", "--bytes", "8,64M", "--time", "2s")
    ended = call(tmp_path, *words, **standin(f"oom={32 << 20}"))
    said = " ".join((ended.stdout + ended.stderr).split())
    assert ended.returncode == 3
    assert "CUDA_ERROR_OUT_OF_MEMORY; smaller sizes may fit" in said
    assert "Traceback" not in said


def test_the_suite_gpu_has_every_pattern_of_devices(tmp_path: Path, standin: Standin) -> None:
    ended = call(tmp_path, "run", "gpu", "--dry-run", "--json", **standin())
    points = json.loads(ended.stdout)["points"]
    assert {point["pattern"] for point in points} >= {"devcopy", "devlaunch", "devflag", "pingpong", "twoway"}
    assert {point["transport"] for point in points} == {"cuda", "cuda:threads"}
    assert max(point["bytes"] for point in points) == 256 << 20


@pytest.mark.parametrize("sizes", [("--bytes", "8,1M"), pytest.param((), marks=pytest.mark.full, id="all")])
def test_the_whole_suite_gpu_runs(tmp_path: Path, sizes: tuple[str, ...], standin: Standin) -> None:
    """Kinds of memory and directions, engine and kernel, an empty kernel, a flag, processes and threads: each point."""
    ended = call(tmp_path, "run", "gpu", *sizes, "--time", "1s", **standin())
    assert ended.returncode in (0, 3), ended.stderr  # 3: no figure has an interval yet
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        points = store.points(1)
        sized = [each for each in points if each.point.bytes]
        unverified = [each.point for each in sized if not any(m.verified for m in store.measurements(each).values())]
        copies = {
            dict(each.point.options).get("memory", "host:device") for each in points if each.point.pattern == "devcopy"
        }
    assert not {each.status for each in points} & {*NOT_MEASURED}
    assert copies == {"pinned:device", "device:pinned", "host:device", "device:host", "device"}
    assert {each.point.transport for each in points} == {"cuda", "cuda:threads"}
    assert unverified == []


@pytest.mark.parametrize("faults", [["devices=0"], ["init=100"]])
def test_without_a_device_the_suite_says_what_lacks(tmp_path: Path, faults: list[str], standin: Standin) -> None:
    ended = call(tmp_path, "run", "gpu", **standin(*faults))
    assert ended.returncode == 2
    assert "NVIDIA driver" in " ".join(ended.stderr.split())
    listed = " ".join(call(tmp_path, "list", "transports", **standin(*faults)).stdout.split())
    assert "NVIDIA driver" in listed
