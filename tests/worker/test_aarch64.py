"""Code for Arm CPUs only: built here by a cross compiler, and run by an emulator."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import pytest
from tests.worker.test_native import PATTERNS, converse, measure

from hockney.worker.build import Recipe, build_worker

CROSS = "aarch64-linux-gnu-gcc"


def run_by() -> list[str]:
    """The words before a program of that machine: none on one, else the emulator. Skips where it is not installed."""
    if platform.machine() == "aarch64":
        return []
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if emulator is None or shutil.which(CROSS) is None:
        pytest.skip(f"{CROSS} or qemu-aarch64 is not installed")
    return [emulator, "-cpu", "max"]


@pytest.mark.full
@pytest.mark.parametrize("transport", ["shm", "threads"])
@pytest.mark.parametrize(("flags", "kind"), [((), "C11 atomics"), (("-DHK_LSE2",), "16-byte LSE2 stores")])
def test_every_pattern_on_an_arm_cpu(
    transport: str, flags: tuple[str, ...], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one CPU, for emulators before QEMU 8.1 carry a 16-byte store out as two; that it is one shows on silicon."""
    before = run_by()
    recipe = Recipe(compiler=(CROSS if before else "cc",), flags=("-static", *flags))
    monkeypatch.setattr("hockney.worker.build._lse2", lambda: ())  # the build follows the recipe alone
    words = [*before, str(build_worker(recipe)), "-t", transport, "-n", "2", "--oversubscribed"]
    commands = ["hello", *(measure(pattern, size) for pattern in PATTERNS for size in (8, 48, 64, 5000, 70_001))]
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        answers, done = converse(Path(words[0]), commands, *words[1:])
    finally:
        os.sched_setaffinity(0, cpus)
    assert done.returncode == 0, done.stderr
    assert kind in answers[0]["library"]
    assert [answer["kind"] for answer in answers] == ["hello", *["measure"] * (len(commands) - 1), "bye"]
    assert all(answer["verified"] or answer["pattern"] == "barrier" for answer in answers[1:-1])
