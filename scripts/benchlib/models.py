"""The part `models`: how fast machines are simulated, and how many ranks fit into memory."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from scripts.benchlib.place import Place, output_of
from scripts.benchlib.table import Row, Target, not_measured, row_of, row_of_one

from hockney.errors import HockneyError
from hockney.stats import median
from hockney.worker.build import Recipe, build_worker

_COSTS = ("class all any", "segment 0 eager 0", "cost send_cpu 100 0 0", "cost recv_cpu 100 0 0")
_TORUS = ("topology torus 16 8 8", "link 0 1e10 50", *_COSTS, "cost out 0 0.1 0")
_SWITCH = ("topology switch", *_COSTS, "cost latency 1000 0 0")
_RANKS = 1024  # of the torus
_MIB = 1024.0
_SIMGRID = Target("≥ 40 × SimGrid SMPI", low=40.0)
_SIMGRID_RANKS = 256  # more are slower: 1,024 take a minute
_SIMGRID_LIMIT_S = 300.0
# The same torus.
_PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="torus" prefix="node" suffix="" radical="0-1023" speed="1Gf" bw="10GBps" lat="50ns" topology="TORUS"
           topo_parameters="16,8,8"/>
</platform>
"""
_SIMGRID_OPTIONS = ("--cfg=smpi/host-speed:1Gf", "--cfg=smpi/simulate-computation:no")


@dataclass(frozen=True)
class _Job:
    """The costs of a simulated job: CPU time, as one process runs one job on one core, and its peak memory."""

    cpu_s: float
    peak_mib: float


def models(place: Place) -> list[Row]:
    """Messages a second in an all-to-all on a torus, and barriers of very many ranks; fewer with --short."""
    worker = build_worker(Recipe("sim"))
    rate = median([_millions_per_s(place, worker, number) for number in range(1 if place.short else 7)])
    what = f"simulated messages: pairwise all-to-all of {_RANKS:,} ranks on a torus with contention"
    return [
        row_of(what, Target("≥ 4 million/s", low=4.0), rate, "million/s of CPU time"),
        _against_simgrid(place, rate.value),
        *_many(place, worker, 100_000, 1.0),
        *_many(place, worker, 1_000_000, 8.0),
    ]


def _millions_per_s(place: Place, worker: Path, number: int) -> float:
    batch = 8
    command = "measure pattern=alltoall algorithm=pairwise bytes=64 warmup=0 samples=1"
    place.say(f"models: all-to-all, number {number + 1}")
    place.look_round()
    # The difference of two numbers of repetitions: the fixed cost of a job is in both.
    whole, part = (_run(place, worker, _TORUS, _RANKS, f"{command} batch={times}") for times in (batch + 1, 1))
    return batch * _RANKS * (_RANKS - 1) / (whole.cpu_s - part.cpu_s) / 1e6


def _against_simgrid(place: Place, millions_per_s: float) -> Row:
    what = "simulated messages: the same by SimGrid SMPI"
    if place.short:
        return not_measured(what, _SIMGRID, "left out by --short")
    if shutil.which("smpicc") is None or shutil.which("smpirun") is None:
        return not_measured(what, _SIMGRID, "no SimGrid is here; for example: apt install libsimgrid-dev")
    place.say("models: SimGrid")
    program = place.built("alltoall_bare.c", ["smpicc"])
    platform, hosts = place.folder / "torus.xml", place.folder / "hosts"
    platform.write_text(_PLATFORM)
    hosts.write_text("".join(f"node{number}\n" for number in range(_SIMGRID_RANKS)))
    words = ["-np", str(_SIMGRID_RANKS), "-platform", str(platform), "-hostfile", str(hosts), *_SIMGRID_OPTIONS]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output_of(["smpirun", *words, str(program)], limit_s=_SIMGRID_LIMIT_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    messages = _SIMGRID_RANKS * (_SIMGRID_RANKS - 1)
    theirs = messages / (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 1e6
    ratio = millions_per_s / theirs
    measured = f"{ratio:.0f}: hockney {millions_per_s:.2f}, SimGrid {theirs:.3f} million/s on {_SIMGRID_RANKS} ranks"
    return row_of_one(what, _SIMGRID, ratio, measured)


def _many(place: Place, worker: Path, ranks: int, most_gib: float) -> list[Row]:
    memory, time = Target(f"≤ {most_gib:g} GiB", high=most_gib * _MIB), Target("≤ 30 s", high=30.0)
    name = f"simulated barrier of {ranks:,} ranks"
    if place.short and ranks > 100_000:
        return [not_measured(name, time, "left out by --short")]
    place.say(f"models: {ranks:,} ranks")
    command = "measure pattern=barrier samples=1 timeout_s=900 warmup=0"
    batch = 4  # with one, cache effects of other programs would hide the difference
    part, whole = (_run(place, worker, _SWITCH, ranks, f"{command} batch={times}") for times in (1, batch + 1))
    took_s = (whole.cpu_s - part.cpu_s) / batch
    return [
        row_of_one(name, time, took_s, f"{took_s:.1f} s of CPU time (one run)"),
        row_of_one(f"{name}: memory", memory, whole.peak_mib, f"{whole.peak_mib:.0f} MiB"),
    ]


def _run(place: Place, worker: Path, model: tuple[str, ...], ranks: int, command: str) -> _Job:
    path = place.folder / "machine.model"
    path.write_text("\n".join(["hockney-model 1", *model]) + "\n")
    argv = [str(worker), "-t", "sim", "-n", str(ranks), "--model", str(path)]
    answers = place.folder / "answers"
    with answers.open("w") as out, subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out, text=True) as process:
        assert process.stdin is not None
        process.stdin.write(f"{command}\n")
        process.stdin.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or '"kind":"measure"' not in answers.read_text():
        raise HockneyError(f"a simulated job of {ranks} ranks failed: {answers.read_text()[-300:]}")
    return _Job(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
