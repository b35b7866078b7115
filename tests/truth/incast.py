"""Incast on a bed, predicted and measured: `python -m tests.truth.incast FOLDER [MBIT]`.

The machine is fitted to two hosts alone and extended to a switch whose ports have the bed's buffers. The event builder
then runs in virtual time and on the bed, with 3 to 7 readouts and one builder and with 4 and 4: as fast as it can where
nothing is lost, and on schedule up to more than the links carry. FOLDER keeps the fit and the bed's cells, in lines of
JSON, so that a cut run continues, and a changed model is compared without a bed.
"""

from __future__ import annotations

import itertools
import json
import statistics
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
_SHORT_BYTES = 28 << 10  # of an event: it fits into a queue
_LONG_BYTES = 24 << 10  # of a fragment: two that come at once fit into a queue, three do not
_ROUNDS = 2  # over all cells of the bed
_IN_FLIGHT = 8  # events of each builder, on schedule
_POINT_S = 3
_MSS_BYTES, _HEADER_BYTES = 1448, 66  # Ethernet, IP and TCP, as the bed's queues count
_LOADS = (0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.15)  # as a share of the builders' cables
_KEPT_MIN = 0.9  # goodput has collapsed where less of the offered rate is reached
_LIMIT_S = 60  # of one point
_FREE_ERROR, _COLLAPSE_ERROR = 0.10, 0.15  # that predictions may have
_TIE = 0.05  # rates that differ by less have no order


@dataclass(frozen=True)
class Shape:
    """Readouts and builders, in a schedule; a manager besides."""

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
        """The rate reached at a load, or at 0 with one event for each builder at once, and TCP's counts."""
        offered_hz = round(load * self.full_hz(mbit))
        options = {"senders": self.readouts, "schedule": self.schedule}
        if load:
            options |= {"in_flight": _IN_FLIGHT * self.builders, "rate_hz": offered_hz}
            many = {"samples": round(_POINT_S * offered_hz), "warmup": round(offered_hz)}
        else:
            options |= {"in_flight": self.builders}
            many = {"samples": 5, "batch": 10, "warmup": 10}
        how = {
            "bytes": _LONG_BYTES if load else _SHORT_BYTES // self.readouts,
            "timeout_s": _LIMIT_S,
            "verify": False,
            **many,
        }
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
        """Hosts that have the CPUs in turn; their congestion control is the model's, Reno."""
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
        """The cells of a shape at each load on the model, or on the bed."""
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
    """The cells of a shape at each load, from none on: connections remember earlier losses."""
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
    """The offered rate from which on less than _KEPT_MIN is reached, between two that were tried; None: none was."""
    ladder = sorted((cell["offered_hz"], cell["reached_hz"] / cell["offered_hz"]) for cell in cells)
    for (low, before), (high, after) in itertools.pairwise([(0, 1.0), *ladder]):
        if after < _KEPT_MIN:
            return float(low + (high - low) * (before - _KEPT_MIN) / (before - after))
    return None


@dataclass(frozen=True)
class Row:
    """Of a shape: events per second without losses, the load of the collapse, and the rate reached at the highest load.

    Each predicted and measured.
    """

    shape: Shape
    free_hz: tuple[float, ...]
    collapse: tuple[float, ...]
    most_hz: tuple[float, ...]

    @classmethod
    def of(cls, shape: Shape, cells: Sequence[dict[str, Any]], mbit: int) -> Row:
        """Over the rounds medians count; a shape that never collapses does so above the highest load."""
        sides = []
        for on in ("model", "bed"):
            mine = [cell for cell in cells if (cell["mbit"], cell["shape"], cell["on"]) == (mbit, shape.title, on)]
            loads = sorted({cell["load"] for cell in mine})
            median = {
                load: statistics.median(cell["reached_hz"] for cell in mine if cell["load"] == load) for load in loads
            }
            ladder = [{"offered_hz": load * shape.full_hz(mbit), "reached_hz": median[load]} for load in loads if load]
            collapse = collapse_hz(ladder)
            sides.append((median[0], collapse / shape.full_hz(mbit) if collapse else max(loads), median[max(loads)]))
        return cls(shape, *zip(*sides, strict=True))


def table(cells: Sequence[dict[str, Any]], mbit: int) -> Iterator[str]:
    """A row for each shape, and how many are within the limits."""
    yield "| shape | events/s predicted | measured | error | collapse at load, predicted | measured | error |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    rows = [Row.of(shape, cells, mbit) for shape in SHAPES]
    for row in rows:
        free, of = (f"{error(pair):+.0%}" for pair in (row.free_hz, row.collapse))
        yield (
            f"| {row.shape.title} | {row.free_hz[0]:,.0f} | {row.free_hz[1]:,.0f} | {free} "
            f"| {row.collapse[0]:.2f} | {row.collapse[1]:.2f} | {of} |"
        )
    right = sum(abs(error(row.free_hz)) <= _FREE_ERROR for row in rows)
    of_collapse = sum(abs(error(row.collapse)) <= _COLLAPSE_ERROR for row in rows)
    within = f"event rate within {_FREE_ERROR:.0%}: {right}; collapse within {_COLLAPSE_ERROR:.0%}: {of_collapse}"
    yield f"of {len(rows)}: {within}"
    pairs = [
        (better, worse)
        for better, worse in itertools.permutations(rows, 2)
        if (better.shape.readouts, better.shape.builders) == (worse.shape.readouts, worse.shape.builders)
        and better.most_hz[1] > (1 + _TIE) * worse.most_hz[1]
    ]
    right = sum(better.most_hz[0] > worse.most_hz[0] for better, worse in pairs)
    yield f"of {len(pairs)} pairs of schedules that differ by over {_TIE:.0%} at the highest load, in order: {right}"


def error(pair: Sequence[float]) -> float:
    """Of a prediction, as a fraction of the measurement."""
    return pair[0] / pair[1] - 1


def main() -> None:
    """Measure the cells that FOLDER does not have, and print the table."""
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
        _ = trial.model  # first, on a bed of two hosts alone
        for number, shape in itertools.product(range(_ROUNDS), SHAPES):
            named = {"mbit": mbit, "shape": shape.title, "on": "bed", "round": number}
            if any(named.items() <= cell.items() for cell in known):
                continue
            cells = [{**named, **cell} for cell in trial.cells(shape, "bed")]
            known += cells
            with file.open("a", encoding="utf-8") as out:
                out.writelines(json.dumps(cell) + "\n" for cell in cells)
            print(row(named, cells), flush=True)
        for shape in SHAPES:
            named = {"mbit": mbit, "shape": shape.title, "on": "model"}
            known += (cells := [{**named, **cell} for cell in trial.cells(shape, "model")])
            print(row(named, cells), flush=True)
    print("\n".join(table(known, mbit)))


def row(named: dict[str, Any], cells: Sequence[dict[str, Any]]) -> str:
    """The rates that a shape reached, over those offered, at each load."""
    rates = (f"{cell['load']:g}: {cell['reached_hz']:.1f}/{cell['offered_hz']}" for cell in cells)
    return f"{named['shape']} {named['on']}: {', '.join(rates)}"


if __name__ == "__main__":
    main()
