"""Shared by the tests of the command line: its call, and a results file with every kind of series."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import builders
from tests.shared import finished

from hockney.cli import execute
from hockney.model import Definition, Launch, Measurement, Point, PointStatus, RunInfo, RunStatus, Warning_
from hockney.render.json import JSON_VERSION
from hockney.results.store import Store

CHECKOUT = Path(__file__).parents[2]
FACTS: dict[str, Any] = {"hostname": "host-a", "cpu": {"model": "Test CPU"}}

PINGPONG = Point("shm", "pingpong", 2, 8)
LARGE = Point("shm", "pingpong", 2, 65536)
BARRIER = Point("shm", "barrier", 4, 0)
MPI = Point("mpi@openmpi-4.1.4", "pingpong", 2, 8)
SKIPPED = Point("null", "alltoall", 2, 8, (("algorithm", "native"),))
FAILED = Point("tcp", "pingpong", 2, 1024)

Ended = subprocess.CompletedProcess[str]
Cli = Callable[..., Ended]


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """Ours, but with data, state and results in a fresh folder. The cache of workers stays: building takes a second."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("HOCKNEY_")},
        "PYTHONPATH": str(CHECKOUT / "src"),
        "HOCKNEY_STORE": str(folder / "results.db"),
        "XDG_STATE_HOME": str(folder / "state"),
        **variables,
    }


def command_line(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "hockney", *arguments]


def let_sigint_in() -> None:
    """For a process that is to be stopped by Ctrl-C: a background job of a shell ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def call(folder: Path, *arguments: str, **variables: str) -> Ended:
    """Run `hockney` in a separate process, in `folder`."""
    return finished(
        command_line(*arguments), cwd=folder, env=environment(folder, **variables), stdin=subprocess.DEVNULL
    )


def call_here(folder: Path, *arguments: str, **variables: str) -> Ended:
    """As `call`, but in this process, which takes a tenth of the time."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - environment(folder).keys():
            patch.delenv(name)
        for name, value in environment(folder, **variables).items():
            patch.setenv(name, value)
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["hockney", *arguments])
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            code = execute(arguments)
    out, err = (stream.buffer.getvalue().decode() for stream in streams)
    return subprocess.CompletedProcess(arguments, code, out, err)


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The output of a command with --json among its arguments, which must succeed.

    It prints nothing else, but how far it is where a busy machine makes it slow.
    """
    assert execute(arguments) == 0
    output = capsys.readouterr()
    assert [line for line in output.err.splitlines() if not line.startswith("  ")] == []
    read: dict[str, Any] = json.loads(output.out)
    assert read["version"] == JSON_VERSION
    return read


def make_measurement(point: Point, launch_id: int, round_: int, time_ns: float, floor_ns: float | None) -> Measurement:
    timed = "slowest" if point.pattern == "barrier" else "root"
    divisor = 2 if point.pattern == "pingpong" else 1
    elapsed = np.full((point.ranks, 5), round(time_ns * 100 * divisor), dtype=np.int64) + np.arange(5)
    return builders.make_measurement(
        point,
        elapsed,
        launch_id=launch_id,
        round_=round_,
        started_unix_s=1_760_000_000.0 + round_,
        batch=100,
        definition=Definition(timed, divisor, divisor * point.bytes, divisor),
        cpu_system_ns=(0,) * point.ranks,
        floor_ns=None if floor_ns is None else (floor_ns, floor_ns * 1.02),
        steal=0.0,
    )


def write_model(path: Path, latency_ns: int) -> None:
    """A model of two nodes on which a message of any size takes this latency."""
    path.write_text(
        'title = "made up"\n[topology]\nkind = "switch"\nnodes = 2\nsource = "made up"\n'
        f'[[class.all.segment]]\nlatency = {latency_ns}\nsource = "made up"\n'
    )


def fill(path: Path) -> None:
    """Two runs: one with a label, then one with figures in two states, a failed and a skipped point, a warning."""
    with Store.open(path) as store:
        first = store.create_run(
            RunInfo("hockney quick", "quick", "base", 1_750_000_000.0, 1, "0.1.0", FACTS, {"launches": 1}),
            [PINGPONG],
        )
        store.finish_run(first, RunStatus.DONE)
        info = RunInfo("hockney run mine", "mine", None, 1_760_000_000.0, 2, "0.1.0", FACTS, {"launches": 1})
        run = store.create_run(info, [PINGPONG, LARGE, BARRIER, MPI, SKIPPED, FAILED])
        launches = {
            name: store.add_launch(
                run,
                Launch(name, library, ranks, 1.76e9, ("worker",), (0,) * ranks, ("h",) * ranks, ranks > 2, 20.0),
            )
            for name, library, ranks in (
                ("shm", "shared memory", 4), ("mpi@openmpi-4.1.4", "Open MPI 4.1.4", 2), ("tcp", "TCP loopback", 2),
            )
        }  # fmt: skip
        for round_ in range(16):
            floor_ns = 27.0 if round_ < 8 else 184.0
            of_round = ((PINGPONG, 40.0), (LARGE, 3000.0), (BARRIER, 200.0), (MPI, 150.0))
            store.write_round(
                run,
                [
                    make_measurement(
                        point,
                        launches[point.transport],
                        round_,
                        (time_ns + round_ % 3) * (1 if round_ < 8 else 4),
                        None if point is BARRIER else floor_ns,
                    )
                    for point, time_ns in of_round
                ],
            )
        for point in (PINGPONG, LARGE, BARRIER, MPI):
            store.set_status(run, point, PointStatus.PRECISE)
        store.set_status(run, SKIPPED, PointStatus.SKIPPED, "null has no native alltoall")
        store.set_status(run, FAILED, PointStatus.FAILED, "rank 1 was killed by SIGKILL")
        store.add_warning(run, Warning_("governor", "machine", "The governor is powersave.", "Change it."))
        store.finish_run(run, RunStatus.PARTIAL)
