"""Made-up runs with known times, for comparisons."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from tests.builders import HALF_ROUND_TRIP, make_info, make_launch, make_point, measurements_with_medians

from hockney.analysis.compare import SeriesChange
from hockney.model import Definition, Point, PointStatus, RunStatus
from hockney.results.store import Store

SLEEPING = ("tcp", "pipe")
SIZES = (8, 64, 1024, 8192, 16384, 32768, 65536)


def curve(transport: str = "shm", sizes: Iterable[int] = SIZES) -> dict[Point, float]:
    """Points of a ping-pong, each with its time in ns."""
    return {make_point(size, transport): 1000.0 + size / 10 for size in sizes}


def slower(times_ns: Mapping[Point, float], ratio: float, first: int, last: int) -> dict[Point, float]:
    """The same times, multiplied by `ratio` from one size to another."""
    return {point: ns * (ratio if first <= point.bytes <= last else 1) for point, ns in times_ns.items()}


def bounds_of(change: SeriesChange) -> tuple[float, float]:
    """The interval of the ratio, which there must be."""
    assert change.ratio is not None
    return change.ratio.low, change.ratio.high


def add_run(
    store: Store,
    times_ns: Mapping[Point, float],
    *,
    launches: int = 5,
    measurements: Sequence[float] = (1.0,) * 6,
    scatter: float = 0.01,
    seed: int = 1,
    floor_ns: float = 30.0,
    wake_ns: float | None = None,
    definition: Definition = HALF_ROUND_TRIP,
    libraries: Mapping[str, str] | None = None,
    failed: Mapping[Point, str] | None = None,
    unsteady: Collection[Point] = (),
    far: Collection[int] = (),
    contended: Collection[int] = (),
    cpus: tuple[int, ...] = (0, -1),
    cpus_far: tuple[int, ...] | None = None,
    batch: int = 1,
    counters: Mapping[str, tuple[float, ...]] | None = None,
    **info: Any,
) -> int:
    """Store a run with `measurements` (factors of the time) in each launch of each point.

    Launches scatter by `scatter`, measurements hardly. The machine state changed during those of `unsteady`. In the
    launches `far` the floor is higher, times are four times as long, and ranks are on `cpus_far` instead of `cpus`; in
    the launches `contended` the CPUs have half of their pace, and times are twice as long. `wake_ns`: the wake-up of
    SLEEPING, which scatters, too. Points of `failed` with a time were measured in the first launch.
    """
    rng = np.random.default_rng(seed)
    run = store.create_run(make_info(**info), [*times_ns, *(failed or {})])
    for index in range(launches):
        used = cpus_far if cpus_far is not None and index in far else cpus
        started = {
            name: store.add_launch(
                run,
                make_launch(
                    name,
                    index=index,
                    library=(libraries or {}).get(name, f"hockney {name}"),
                    ranks=len(used),
                    cpus=used,
                    hosts=("here",) * len(used),
                ),
            )
            for name in sorted({point.transport for point in times_ns})
        }
        woken_ns = None if wake_ns is None else wake_ns * float(np.exp(scatter * rng.standard_normal()))
        before_ns = 180.0 if index in far else floor_ns
        of_round = []
        for point, ns in times_ns.items():
            if index > 0 and point in (failed or {}):
                continue
            slowed = 2 if index in contended else 1
            of_launch_ns = ns * slowed * (4 if index in far else 1) * np.exp(scatter * rng.standard_normal())
            medians_ns = of_launch_ns * np.array(measurements) * np.exp(0.001 * rng.standard_normal(len(measurements)))
            of_round += [
                replace(measurement, launch_id=started[point.transport])
                for measurement in measurements_with_medians(
                    medians_ns.tolist(),
                    point,
                    replace(definition, bytes_per_rep=2 * point.bytes),  # a real one differs from size to size
                    floor_ns=(before_ns, before_ns * (20 if point in unsteady else 1.01)),
                    wake_ns=None if woken_ns is None or point.transport not in SLEEPING else (woken_ns, woken_ns),
                    pace_ns=((0.63 * slowed,) * len(used),) * 2,
                    batch=batch,
                    counters=counters or {},
                )
            ]
        store.write_round(run, of_round)
    for point, reason in (failed or {}).items():
        store.set_status(run, point, PointStatus.FAILED, reason)
    store.finish_run(run, RunStatus.PARTIAL if failed else RunStatus.DONE)
    return run
