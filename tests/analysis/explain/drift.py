"""Runs of known truth on a machine that drifts: `python -m tests.analysis.explain.drift` prints the rates.

The machine goes at two speeds, which no floor or pace shows. A straight curve has no protocol switch; one that takes
half as long again from one byte on has one, there.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.analysis.explain.readings import FACTS, found
from tests.builders import make_info, make_launch
from tests.measure.made_up_machine import Machine, jumping_after, plan_of, sample

from hockney.analysis.explain.read import read_run
from hockney.analysis.finding import Finding
from hockney.model import Measurement, Point, PointStatus
from hockney.results.runs import Run
from hockney.results.store import Store

POWERS = [0, *(1 << n for n in range(3, 21))]


def straight(point: Point) -> float:
    return 200 + point.bytes / 10


def findings_of(
    path: Path,
    measurements: list[Measurement],
    statuses: Sequence[PointStatus] = (),
    plan: Mapping[str, Any] = MappingProxyType({}),
    detector: str = "protocol switches",
    facts: Mapping[str, Any] = FACTS,
    **launched: Any,
) -> list[Finding]:
    """The result of a detector on a run of these measurements, of a job with these launches.

    `statuses` are those of its points, in the order of their first measurement.
    """
    points = list(dict.fromkeys(measurement.point for measurement in measurements))
    with Store.open(path) as store:
        run = store.create_run(make_info(plan=dict(plan), facts=dict(facts)), points)
        launch = store.add_launch(run, make_launch(transport="mpi", **launched))
        store.write_round(run, [replace(measurement, launch_id=launch) for measurement in measurements])
        for point, status in zip(points, statuses, strict=False):
            store.set_status(run, point, status)
        return found(detector, read_run(Run(store, run)))


def measured(machine: Machine) -> list[Measurement]:
    """As the sampler would measure it with --refine."""
    points = [Point("mpi", "pingpong", 2, size) for size in POWERS]
    notes = sample(machine, replace(plan_of(*points, refine=True), exact=True), budget_s=600)
    return [measurement for measurements in notes.rounds for measurement in measurements]


def drifts(every_s: float, by: float) -> Callable[[float], float]:
    """A machine that goes at two speeds, for so long each, and no floor shows it."""
    return lambda now_s: 1 + by * (int(now_s / every_s) % 2)


class Uneven(Machine):
    """Long messages scatter more, so they are measured for longer."""

    def measure(self, point: Point, **more: Any) -> Measurement:
        self.noise = 0.002 if point.bytes <= 4096 else 0.03
        return super().measure(point, **more)


def false_switches(every_s: float, by: float, seed: int) -> list[str]:
    """The reported switches of a straight curve, except those that may be drift."""
    machine = Uneven(straight, pause_s=0.05, drift=drifts(every_s, by), random=random.Random(seed))
    return [str(one.facts) for one in switches_of(machine)]


def places(every_s: float, by: float, seed: int, last_bytes: int) -> list[tuple[int, ...]]:
    """Between which sizes a curve is said to jump that does so after `last_bytes`."""
    drift = drifts(every_s, by)
    machine = Machine(jumping_after(last_bytes), 0.003, pause_s=0.05, drift=drift, random=random.Random(seed))
    return [one.subject.sizes_bytes for one in switches_of(machine)]


def switches_of(machine: Machine) -> list[Finding]:
    with tempfile.TemporaryDirectory() as folder:
        findings = findings_of(Path(folder) / "r.db", measured(machine))
    return [finding for finding in findings if finding.code == "protocol switch" and finding.cause != "drift"]


def main() -> None:
    cases = list(itertools.product((7.0, 15.0, 23.0, 31.0), (0.1, 0.2, 0.3), (1, 7)))
    false = [bool(false_switches(*case)) for case in cases]
    print(f"straight curves with a reported switch: {sum(false)} of {len(false)}")
    placed = [(places(*case, last), last) for case, last in itertools.product(cases, (1000, 4040, 8255))]
    exact = [seen == [(last, last + 1)] for seen, last in placed]
    print(f"jumps found to a byte: {sum(exact)} of {len(exact)}; not reported: {sum(not seen for seen, _ in placed)}")


if __name__ == "__main__":
    main()
