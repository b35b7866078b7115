"""Incast on a bed, predicted and measured: `python -m tests.truth.incast FOLDER [MBIT]`.

The machine is fitted to two hosts alone and extended to a switch whose ports have the bed's buffers. The event builder
then runs in virtual time and on the bed, with 3 to 7 readouts and one builder and with 4 and 4: as fast as it can where
nothing is lost, and on schedule up to more than the links carry. FOLDER keeps the fit and a line of JSON for each cell,
so that a cut run goes on.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.truth.bed.bed import Bed, Host, port_bytes
from tests.truth.runs import MEASURED, argv, hockney

from hockney.machine.placement import usable_cpus
from hockney.worker.build import Recipe, build_worker
from hockney.worker.hosts import parse_hosts
from hockney.worker.launch import Job, launch
from hockney.worker.machine_model import compiled_file, load_model
from hockney.worker.placement import Placement
from hockney.worker.session import WorkerSession

_QUEUE_BYTES = 1 << 15
_SHORT_BYTES, _LONG_BYTES = 4 << 10, 32 << 10  # 7 short fragments fit into a queue, 2 long ones do not
_IN_FLIGHT = 8  # events of each builder, on schedule
_POINT_S = 3
_MSS_BYTES, _HEADER_BYTES = 1448, 66  # Ethernet, IP and TCP, as the bed's queues count
_LOADS = (0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.15)  # of what the builders' cables carry
_KEPT_MIN = 0.9  # goodput has collapsed where less of the offered rate is reached
_LIMIT_S = 60  # of one point


@dataclass(frozen=True)
class Shape:
    """So many readouts and builders, in a schedule; a manager besides."""

    readouts: int
    builders: int
    schedule: str

    @property
    def ranks(self) -> int:
        return self.readouts + self.builders + 1

    @property
    def title(self) -> str:
        return f"{self.readouts} to {self.builders}, {self.schedule}"

    def full_hz(self, mbit: int) -> float:
        """The events per second that fill the builders' cables with long fragments."""
        frames_bytes = _LONG_BYTES * (1 + _HEADER_BYTES / _MSS_BYTES)
        return mbit * 125_000 * self.builders / (self.readouts * frames_bytes)

    def measure(self, session: WorkerSession, mbit: int, load: float) -> dict[str, Any]:
        """What the shape reached at a load, or at 0 with one event for each builder at once, and what TCP did."""
        offered_hz = round(load * self.full_hz(mbit))
        options = {"senders": self.readouts, "schedule": self.schedule}
        if load:
            options |= {"in_flight": _IN_FLIGHT * self.builders, "rate_hz": offered_hz}
            many = {"samples": round(_POINT_S * offered_hz), "warmup": round(offered_hz)}
        else:
            options |= {"in_flight": self.builders}
            many = {"samples": 5, "batch": 10, "warmup": 10}
        how = {"bytes": _LONG_BYTES if load else _SHORT_BYTES, "timeout_s": _LIMIT_S, "verify": False, **many}
        answer = session.measure("eventbuilder", **how, options=[(key, str(value)) for key, value in options.items()])
        events, took_ns = answer.samples * answer.batch * answer.divisor, sum(answer.elapsed_ns[0])
        reached_hz = 1e9 * events / (answer.wall_ns[0] if load else took_ns)
        counts = {
            name: round(sum(answer.counters.get(name, ()))) for name in ("retransmits", "timeouts", "late_events")
        }
        return {"load": load, "offered_hz": offered_hz, "reached_hz": reached_hz, "events": events, **counts}


SHAPES = (
    *(Shape(4, 4, schedule) for schedule in ("all", "barrel", "random", "credits")),
    *(Shape(readouts, 1, schedule) for readouts in (3, 4, 5, 6, 7) for schedule in ("all", "credits")),
)


@dataclass
class Trial:
    """The cells of one speed of the cables, measured on the bed and on the model, which are there once asked for."""

    folder: Path
    mbit: int
    stack: ExitStack

    @cached_property
    def bed(self) -> Bed:
        return self._opened(self.stack, 9)

    def _opened(self, stack: ExitStack, count: int) -> Bed:
        """Hosts that have the CPUs in turn; their TCP is what the model has, NewReno."""
        cpus, queue_bytes = usable_cpus(), _QUEUE_BYTES
        hosts = [Host(self.mbit, cpus=[cpus[at % len(cpus)]], queue_bytes=queue_bytes) for at in range(count)]
        bed = stack.enter_context(Bed(hosts))
        bed.set_kernel("net.ipv4.tcp_congestion_control", "reno")
        bed.set_kernel("net.ipv4.tcp_no_metrics_save", "1")  # what one run learned is not the next one's
        return bed

    @cached_property
    def model(self) -> Path:
        """The machine fitted to two hosts, on the bed's switch."""
        fit, network, model = (self.folder / f"{self.mbit}-{name}" for name in ("fit.db", "net.toml", "model.toml"))
        if not fit.exists():
            words = ("run", "basics", "-t", "tcp", "--hosts", "n1,n2", "--time", "45s")
            with ExitStack() as stack:
                hockney(self._opened(stack, 2), fit, *words, codes=MEASURED)
        network.write_text(
            f'topology = {{ kind = "switch", nodes = {max(shape.ranks for shape in SHAPES)}, source = "bed" }}\n'
            f'link = [{{ bytes_per_s = {self.mbit * 125_000}, source = "bed" }}]\n'
            f'switch = {{ buffer_bytes = {port_bytes(self.mbit, _QUEUE_BYTES)}, source = "bed" }}\n'
            f'tcp = {{ header_bytes = {_HEADER_BYTES}, source = "bed" }}\n',
            encoding="utf-8",
        )
        point = ("eventbuilder", "-n", "4", "--bytes", "4K", "-o", "senders=2", "--time", "1s")
        wanted = ("predict", *point, "--from", "1", "-t", "tcp", "--topology", str(network), "--write", str(model))
        subprocess.run(argv(fit, *wanted), check=True, capture_output=True)
        return model

    def cells(self, shape: Shape, on: str) -> Iterator[dict[str, Any]]:
        """What a shape reached at each load on the model, or on the bed."""
        if on == "model":
            model = load_model(str(self.model))
            with compiled_file(model, shape.ranks) as path:
                job = Job(build_worker(Recipe("sim")), "sim", shape.ranks, model=path)
                yield from cells_of(job, shape, self.mbit)
            return
        hosts = ",".join(self.bed.names[: shape.ranks])
        of_shape = (hosts, str(SHAPES.index(shape)), str(self.mbit))
        words = (sys.executable, "-m", "tests.truth.incast", "--on-bed", *of_shape)
        done = self.bed.run("n1", words, limit_s=_LIMIT_S * (1 + len(_LOADS)))
        assert done.returncode == 0, done.stderr
        yield from map(json.loads, done.stdout.splitlines())


def cells_of(job: Job, shape: Shape, mbit: int) -> Iterator[dict[str, Any]]:
    """What a job of a shape reached at each load, from none on: connections know what they have lost before."""
    with WorkerSession(launch(job)) as session:
        session.hello()
        yield from (shape.measure(session, mbit, load) for load in (0, *_LOADS))


def on_bed(hosts: str, shape: Shape, mbit: int) -> None:
    """On the first host: print the cells of a shape, a line for each."""
    job = Job(build_worker(), "tcp", shape.ranks, Placement(hosts=parse_hosts(hosts)))
    for cell in cells_of(job, shape, mbit):
        print(json.dumps(cell))


# ---- the table -------------------------------------------------------------------------------------------------------


def collapse_hz(cells: Sequence[dict[str, Any]]) -> float | None:
    """The offered rate from which on less than _KEPT_MIN of it is reached, between two that were; None: none was."""
    ladder = sorted((cell["offered_hz"], cell["reached_hz"] / cell["offered_hz"]) for cell in cells)
    for (low, before), (high, after) in itertools.pairwise([(0, 1.0), *ladder]):
        if after < _KEPT_MIN:
            return float(low + (high - low) * (before - _KEPT_MIN) / (before - after))
    return None


def table(cells: Sequence[dict[str, Any]], mbit: int) -> Iterator[str]:
    """A row for each shape: events per second without losses, and the collapse; each predicted and measured."""
    yield "| shape | events/s predicted | measured | ratio | collapse at load, predicted | measured | ratio |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    at_most: dict[str, dict[str, float]] = {"model": {}, "bed": {}}
    for shape in SHAPES:
        sides = [
            [cell for cell in cells if (cell["mbit"], cell["shape"], cell["on"]) == (mbit, shape.title, on)]
            for on in at_most
        ]
        if not all(sides):
            continue
        free = [next(cell["reached_hz"] for cell in side if not cell["load"]) for side in sides]
        loads = [collapse_hz([cell for cell in side if cell["load"]]) for side in sides]
        for on, side in zip(at_most, sides, strict=True):
            at_most[on][shape.title] = max(side, key=lambda cell: cell["offered_hz"])["reached_hz"]
        of_full = ["none" if load is None else f"{load / shape.full_hz(mbit):.2f}" for load in loads]
        ratio = f"{loads[0] / loads[1]:.2f}" if loads[0] and loads[1] else "–"
        yield (
            f"| {shape.title} | {free[0]:.0f} | {free[1]:.0f} | {free[0] / free[1]:.2f} "
            f"| {of_full[0]} | {of_full[1]} | {ratio} |"
        )
    for readouts, builders in dict.fromkeys((shape.readouts, shape.builders) for shape in SHAPES):
        for on, rates in at_most.items():
            of_shape = {title: rate for title, rate in rates.items() if title.startswith(f"{readouts} to {builders},")}
            order = sorted(of_shape, key=lambda title: -of_shape[title])
            yield f"{readouts} to {builders}, {on}: " + " > ".join(
                f"{title.split(', ')[1]} {of_shape[title]:.1f}/s" for title in order
            )


def main() -> None:
    """Measure what FOLDER lacks, and print the table."""
    if sys.argv[1] == "--on-bed":
        hosts, at, speed = sys.argv[2:]
        on_bed(hosts, SHAPES[int(at)], int(speed))
        return
    folder, mbit = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "cells.jsonl"
    known = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    with ExitStack() as stack:
        trial = Trial(folder, mbit, stack)
        for shape, on in itertools.product(SHAPES, ("model", "bed")):
            named = {"mbit": mbit, "shape": shape.title, "on": on}
            if any(named.items() <= cell.items() for cell in known):
                continue
            cells = [{**named, **cell} for cell in trial.cells(shape, on)]
            known += cells
            with file.open("a", encoding="utf-8") as out:
                out.writelines(json.dumps(cell) + "\n" for cell in cells)
            rates = ", ".join(f"{cell['load']:g}: {cell['reached_hz']:.1f}/{cell['offered_hz']}" for cell in cells)
            print(f"{shape.title} {on}: {rates}", flush=True)
    print("\n".join(table(known, mbit)))


if __name__ == "__main__":
    main()
