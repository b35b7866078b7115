"""Made-up runs of the classic suites: points whose times are known, stored as a real run is."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from tests.builders import make_info, make_launch, make_measurement

from hockney.model import Definition, Measurement, Point, PointStatus, RunStatus, Warning_, split_placed
from hockney.results.runs import Run
from hockney.results.store import Store

FACTS: dict[str, Any] = {
    "hostname": "host-a",
    "os": {"name": "Some Linux 1", "kernel": "Linux 6.1"},
    "cpu": {"model": "Test CPU", "cores": 2, "frequency_max_hz": 2_000_000_000},
    "topology": {
        "caches": [
            {"level": 3, "kind": "unified", "size_bytes": 4 << 20, "line_bytes": 64},
            {"level": 1, "kind": "data", "size_bytes": 32 << 10, "line_bytes": 64},
            {"level": 1, "kind": "instruction", "size_bytes": 16 << 10, "line_bytes": 64},
        ]
    },
    "memory": {"total_bytes": 8 << 30, "page_bytes": 4096},
    "clock": {"source": "tsc"},
    "board": "Maker X1",
    "network": {
        "tcp_send_buffer_bytes": 16 << 10,
        "tcp_receive_buffer_bytes": 128 << 10,
        "send_buffer_bytes": 208 << 10,
        "interfaces": [{"name": "eth0", "driver": "fast", "bits_per_s": 25_000_000_000}],
    },
    "software": {"c_compiler": "cc 12.2", "c_options": "-O3 -std=c17", "commit": "abc"},
    "environment": {},
}
TOO_MANY_RANKS = (
    "more ranks than CPUs (2) would measure the scheduler; allow this process more CPUs, or add --oversubscribe to "
    "hockney run"
)


@dataclass(frozen=True)
class Made:
    """A point of a made-up run: the pattern's time, and how its samples become it; or why there is none."""

    point: Point
    time_ns: float = 0.0
    divisor: int = 1
    bytes_per_rep: int = 0
    timed: str = "root"
    by_rank: Sequence[float] | None = None  # the ranks' own times, where they differ
    counters: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    cpu_share: Sequence[float] | None = None  # CPU time over wall time, by rank
    late_ns: float = 0.0  # the delay of one sample of each measurement, a different one on each rank
    batch: int = 1000
    measurements: int = 9
    floor_ns: float = 30.0
    floor_kind: str = "line"
    floor_after_ns: float | None = None  # where it changed during each measurement
    pace_ns: tuple[float, ...] | None = None  # of each rank, before and after each measurement
    scatter: float = 0.0  # of the times of its measurements: about the half-width of their interval over the time
    then: Made | None = None  # its later measurements, in another machine state
    skipped: str | None = None
    failed: str | None = None
    algorithm: str | None = None


def options(**given: object) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in given.items()))


def oversubscribed(transport: str, pattern: str, ranks: int, size: int, **given: object) -> Made:
    """A point that was skipped because it has more ranks than there are CPUs."""
    return Made(Point(transport, pattern, ranks, size, options(**given)), skipped=TOO_MANY_RANKS.format(ranks=ranks))


def store_run(
    path: Path,
    suite: str,
    made: Sequence[Made],
    *,
    oversubscribed: bool = False,
    facts: Mapping[str, Any] = FACTS,
    pinned: bool = False,
    hosts: Sequence[str] = (),
    launches: Sequence[Mapping[str, Any]] = ({},),
    libraries: Mapping[str, str] = MappingProxyType({}),
    warnings: Sequence[Warning_] = (),
    **info: Any,
) -> None:
    """Store a run of these points. Each measurement's three samples differ by one, so medians are exact.

    `pinned`: rank r was on CPU r, else all were on CPU 0. `hosts` are those of the ranks; without, all are one;
    `tcp/2` has two ranks on each.
    `launches` says of each launch what is its own; rounds are spread over them evenly, one launch after the other.
    """
    with Store.open(path) as store:
        run = store.create_run(make_info(suite=suite, facts=dict(facts), **info), [one.point for one in made])
        started: dict[tuple[str, int], list[int]] = {}
        for one in made:
            key = (one.point.transport, one.point.ranks)
            if key not in started:
                of_all: dict[str, Any] = {
                    "library": libraries.get(
                        split_placed(one.point.transport)[0], f"the library of {one.point.transport}"
                    ),
                    "ranks": one.point.ranks,
                    "cpus": tuple(range(one.point.ranks)) if pinned else (0,) * one.point.ranks,
                    "hosts": _hosts(one.point, hosts),
                    "oversubscribed": oversubscribed,
                }
                started[key] = [
                    store.add_launch(run, make_launch(one.point.transport, **{**of_all, **own})) for own in launches
                ]
        rounds = max(map(_rounds, made))
        for round_ in range(rounds):
            launch = round_ * len(launches) // rounds
            measurements = [
                measurement_of(now, started[one.point.transport, one.point.ranks][launch], round_)
                for one in made
                if (now := _in_round(one, round_)) is not None and one.skipped is None and one.failed is None
            ]
            store.write_round(run, measurements)
        for one in made:
            if one.skipped is not None:
                store.set_status(run, one.point, PointStatus.SKIPPED, one.skipped)
            elif one.failed is not None:
                store.set_status(run, one.point, PointStatus.FAILED, one.failed)
            else:
                store.set_status(run, one.point, PointStatus.PRECISE)
        for warning in warnings:
            store.add_warning(run, warning)
        store.finish_run(run, RunStatus.DONE)


def _hosts(point: Point, hosts: Sequence[str]) -> tuple[str, ...]:
    if not hosts:
        return ("here",) * point.ranks
    return tuple(hosts[rank // (point.per_host or 1)] for rank in range(point.ranks))


def _rounds(one: Made) -> int:
    return one.measurements + (_rounds(one.then) if one.then else 0)


def _in_round(one: Made, round_: int) -> Made | None:
    if round_ < one.measurements:
        return one
    return _in_round(one.then, round_ - one.measurements) if one.then else None


def measurement_of(one: Made, launch_id: int, round_: int) -> Measurement:
    """A measurement of a point by one launch; its samples differ a little from round to round."""
    batch = one.batch
    scattered = 1 + one.scatter * (7 * round_ % one.measurements - (one.measurements - 1) / 2) * 4 / one.measurements
    times = [scattered * time for time in one.by_rank or [one.time_ns] * one.point.ranks]
    middle = np.array([[round(time * batch * one.divisor)] for time in times], dtype=np.int64)
    samples = middle + np.array([[-1, 0, 1]], dtype=np.int64) + round_ % 3
    for rank in range(len(samples)):
        samples[rank, rank % 3] += round(one.late_ns * batch * one.divisor)
    wall_ns = 1_000_000
    shares = one.cpu_share or [1.0] * one.point.ranks
    return make_measurement(
        one.point,
        samples,
        launch_id=launch_id,
        round_=round_,
        batch=batch,
        definition=Definition(one.timed, one.divisor, one.bytes_per_rep, one.divisor, one.algorithm),
        cpu_user_ns=tuple(round(wall_ns * share) for share in shares),
        cpu_system_ns=(0,) * one.point.ranks,
        wall_ns=(wall_ns,) * one.point.ranks,
        floor_ns=None  # no line goes from one rank to another
        if one.point.ranks == 1
        else (one.floor_ns, one.floor_ns if one.floor_after_ns is None else one.floor_after_ns),
        floor_kind=None if one.point.ranks == 1 else one.floor_kind,
        counters=dict(one.counters),
        pace_ns=None if one.pace_ns is None else (one.pace_ns, one.pace_ns),
        solo_ns=None if one.pace_ns is None else (one.pace_ns[0], one.pace_ns[0]),
    )


LIBRARIES = {
    "mpi@openmpi-4.1.4": "Open MPI 4.1.4 (ob1:vader:cma tcp)",
    "mpi@mpich-5.0.2": "MPICH 5.0.2 (ch4:ucx ofi)",
    "mpi@mpich-4.0.2": "MPICH 4.0.2 (ch4:ucx)",
}


def recorded_quick() -> list[Made]:
    """The points of a real run of `quick` on a virtual machine: 10 transports, some with a contended core."""
    made: dict[Point, Made] = {}
    with (Path(__file__).parent / "quick.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            pattern, size = row["pattern"], int(row["bytes"])
            window = {"window": 16} if pattern in ("oneway", "twoway") else {}
            point = Point(row["transport"], pattern, 2, size, options(**window))
            directions = 1 if pattern == "oneway" else 2
            divisor = {"pingpong": 2, "barrier": 1}.get(pattern, 16 * directions)
            in_state = Made(
                point,
                float(row["time_ns"]),
                divisor,
                bytes_per_rep=size * (2 if pattern == "pingpong" else 16 * directions),
                timed="slowest" if pattern == "barrier" else "root",
                measurements=int(row["measurements"]),
                floor_ns=float(row["floor_ns"]),
                pace_ns=(0.5, 0.7) if "contended" in row["state"] else (0.5, 0.5),
                scatter=min(0.5, float(row["spread"])),
            )
            made[point] = replace(made[point], then=in_state) if point in made else in_state
    return list(made.values())


_QUICK: dict[str, bytes] = {}
"""Files that hold the recorded run alone, by what was asked for: storing its 3,479 measurements takes a second."""


def store_quick(path: Path, *transports: str, **info: Any) -> None:
    """Store the recorded run, or what it has of these transports."""
    asked, is_new = f"{transports} {info}", not path.exists()
    if is_new and asked in _QUICK:
        path.write_bytes(_QUICK[asked])
        return
    warnings = (
        Warning_("clock", "machine", "The clock is slow.", "Choose another one."),
        Warning_("surroundings", "machine", "This is a virtual machine (KVM): its CPUs may move between cores.", ""),
    )
    made = [one for one in recorded_quick() if not transports or one.point.transport in transports]
    store_run(path, "quick", made, pinned=True, libraries=LIBRARIES, warnings=warnings, **info)
    if is_new:
        _QUICK[asked] = path.read_bytes()


def stored(store: Store) -> Run:
    return Run(store, store.find_run("last"))
