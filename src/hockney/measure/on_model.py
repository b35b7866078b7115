"""Times of points on a model of a machine, from its virtual clock: nothing is stored, and no CPU is measured."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hockney.measure.point_work import batch_ns, measure_exactly, most_repetitions
from hockney.measure.pool import measurement_of
from hockney.model import Measurement, Point
from hockney.worker import cache
from hockney.worker.build import Recipe, build_worker
from hockney.worker.errors import LaunchFailed, ProtocolError, WorkerDied, WorkerRefused, WorkerTimedOut
from hockney.worker.launch import Job, launch
from hockney.worker.session import WorkerSession

if TYPE_CHECKING:
    from hockney.worker.machine_model import Model

Models = Mapping[str, "Model"]
"""By the names of transports."""

Tick = Callable[[], None]
"""Called after each point."""


@dataclass
class ModelTimes:
    """The time of each point in ns as docs/metrics.md defines it, or the reason why there is none.

    `measured` has the measurements behind the times. `has_broken`: a job ended early, could not start or had too
    little memory, which may succeed the next time.
    """

    time_ns: dict[Point, float] = field(default_factory=dict)
    measured: dict[Point, Measurement] = field(default_factory=dict)
    failed: dict[Point, str] = field(default_factory=dict)
    has_broken: bool = False


def times_of(points: Iterable[Point], models: Models, *, seed: int = 0, tick: Tick = lambda: None) -> ModelTimes:
    """The times of points, each on the model of its transport.

    They are exact, or with noise the median of batches that it hardly changes. Raises UsageError for a wrong model,
    BuildError.
    """
    points, times = tuple(points), ModelTimes()
    of_job: dict[tuple[str, int], list[Point]] = {}
    for point in points:
        of_job.setdefault((point.transport, point.ranks), []).append(point)
    for (transport, _), left in of_job.items():
        while left:
            _measure_in_a_job(left, models[transport], seed, times, tick)
    times.time_ns = {point: times.time_ns[point] for point in points if point in times.time_ns}
    return times


def _measure_in_a_job(left: list[Point], model: Model, seed: int, times: ModelTimes, tick: Tick) -> None:
    """Measure in one job as many of the points as possible, all with the same number of ranks; at least one."""
    import numpy as np

    try:
        with _session(model, left[0].ranks, seed) as session:
            while left:
                try:
                    measurement = _measurement(left[0], session, is_exact=model.machine.noise is None)
                    times.measured[left[0]] = measurement
                    times.time_ns[left[0]] = float(np.median(measurement.times_ns()))
                except WorkerRefused as refusal:
                    times.failed[left[0]] = str(refusal)
                    times.has_broken |= not refusal.unsupported  # another time there may be memory
                del left[0]
                tick()
    except LaunchFailed as error:
        times.failed |= dict.fromkeys(left, str(error))
        times.has_broken = True
        left.clear()
    except (WorkerDied, WorkerTimedOut, ProtocolError) as end:
        times.failed[left.pop(0)] = str(end)
        times.has_broken = True
        tick()


@contextlib.contextmanager
def _session(model: Model, ranks: int, seed: int) -> Iterator[WorkerSession]:
    """A job on a model. Raises UsageError, BuildError, LaunchFailed, ProtocolError."""
    from hockney.worker.machine_model import compiled_file

    with contextlib.ExitStack() as stack:
        with compiled_file(model, ranks) as path:
            job = Job(_executable(cache.default_folder()), "sim", ranks, model=path, seed=seed)
            session = stack.enter_context(WorkerSession(launch(job)))
            session.hello()
        yield session


@functools.cache
def _executable(folder: Path) -> Path:
    """The worker's executable, cached: finding it takes as long as a job."""
    return build_worker(Recipe("sim"), folder=folder)


def _measurement(point: Point, session: WorkerSession, *, is_exact: bool) -> Measurement:
    def measure(batch: int, *, samples: int, warmup: int) -> Measurement:
        answer = session.measure(
            point.pattern,
            bytes=point.bytes,
            batch=batch,
            samples=samples,
            warmup=warmup,
            timeout_s=600,  # a barrier of a million ranks takes half a minute
            verify=False,
            options=point.options,
        )
        return measurement_of(point, answer)

    if not is_exact:
        return measure_exactly(point, measure, batch=100, samples=9)
    measurement = measure_exactly(point, measure, samples=1)
    least_ns = 20_000  # the clock has whole ns: in a batch this long they are less than 0.01 %
    if not point.is_stream and not point.rate_hz and batch_ns(measurement) < least_ns:
        batch = min(math.ceil(measurement.batch * least_ns / batch_ns(measurement)), most_repetitions(measurement))
        measurement = measure_exactly(point, measure, batch=max(1, batch), samples=1)
    return measurement
