"""Times of points on models of machines, from their virtual clock: nothing is stored, and no CPU is measured.

On fitted machines with intervals, and next to measured times. what_if.py changes the models.
"""

from __future__ import annotations

import contextlib
import functools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from hockney.analysis.finding import load_of
from hockney.analysis.predict.fit import Fit, fit_machine
from hockney.machine.files import parse_cpus
from hockney.measure.point_work import PointFailed, batch_ns, measure_exactly, most_repetitions
from hockney.measure.pool import measurement_of
from hockney.model import Measurement, Point
from hockney.results.rates import SustainedRate
from hockney.results.runs import Results, Run
from hockney.stats.fit import NoFit
from hockney.stats.interval import Estimate
from hockney.suites import load_suite
from hockney.worker import cache
from hockney.worker.build import Recipe, build_worker
from hockney.worker.errors import LaunchFailed, ProtocolError, WorkerDied, WorkerRefused, WorkerTimedOut
from hockney.worker.launch import Job, launch
from hockney.worker.machine_model import Model, compiled_file
from hockney.worker.session import WorkerSession

Models = Mapping[str, Model]
"""By the names of transports."""

Tick = Callable[[], None]
"""Called after each point."""

DRAWS = 20  # their minimum and maximum enclose about 95 %


@dataclass
class ModelTimes:
    """The time of each point in ns as docs/metrics.md defines it, or the reason why there is none.

    `measured` has the measurements behind the times. `has_broken`: a job ended early, could not start or had too
    little memory, which may succeed the next time. `rates`: of a search (rates.py), whose times are their periods.
    """

    time_ns: dict[Point, float] = field(default_factory=dict)
    measured: dict[Point, Measurement] = field(default_factory=dict)
    failed: dict[Point, str] = field(default_factory=dict)
    has_broken: bool = False
    rates: list[SustainedRate] = field(default_factory=list)


def times_of(points: Iterable[Point], models: Models, *, tick: Tick = lambda: None) -> ModelTimes:
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
            _measure_in_a_job(left, models[transport], times, tick)
    times.time_ns = {point: times.time_ns[point] for point in points if point in times.time_ns}
    return times


def _measure_in_a_job(left: list[Point], model: Model, times: ModelTimes, tick: Tick) -> None:
    """Measure in one job as many of the points as possible, all with the same number of ranks; at least one."""
    import numpy as np

    try:
        with contextlib.ExitStack() as held:
            with compiled_file(model, left[0].ranks) as path:
                worker = _executable(cache.default_folder())
                session = WorkerSession(launch(Job(worker, "sim", left[0].ranks, model=path)))
                held.enter_context(session).hello()
            while left:
                try:
                    measurement = _measurement(left[0], session, is_exact=model.machine.noise is None)
                    times.measured[left[0]] = measurement
                    times.time_ns[left[0]] = float(np.median(measurement.times_ns()))
                except PointFailed as none:
                    times.failed[left[0]] = str(none)
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


@functools.cache
def _executable(folder: Path) -> Path:
    """The worker's executable, cached: finding it takes as long as a job."""
    return build_worker(Recipe("sim"), folder=folder)


def _measurement(point: Point, session: WorkerSession, *, is_exact: bool) -> Measurement:
    def measure(batch: int, **how: int) -> Measurement:
        how |= {"bytes": point.bytes, "timeout_s": 600}  # a barrier of a million ranks takes half a minute
        answer = session.measure(point.pattern, batch=batch, verify=False, options=point.options, **how)
        return measurement_of(point, answer)

    if not is_exact:
        return measure_exactly(point, measure, batch=100, samples=9)
    measurement = measure_exactly(point, measure, samples=1)
    least_ns = 20_000  # the clock has whole ns: in a batch this long they are less than 0.01 %
    if not point.is_stream and not point.rate_hz and batch_ns(measurement) < least_ns:
        batch = min(math.ceil(measurement.batch * least_ns / batch_ns(measurement)), most_repetitions(measurement))
        measurement = measure_exactly(point, measure, batch=max(1, batch), samples=1)
    return measurement


# ---- fitted machines -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    """The time of a point in ns; `bytes_per_s`: the rate of its payload, None without one.

    `low_ns` and `high_ns`: its 95 % interval, or `is_range`, as figures of the fit are; None where the model is given,
    and without draws. `outside_bytes`: of a point outside the sizes that the model was fitted to, the nearest of them.
    `changed_ns`: on changed models; None: without changes.
    """

    point: Point
    time_ns: float
    low_ns: float | None = None
    high_ns: float | None = None
    outside_bytes: int | None = None
    is_range: bool = False
    bytes_per_s: float | None = None
    changed_ns: float | None = None


@dataclass(frozen=True)
class Checked:
    """A point that the fit did not use."""

    point: Point
    predicted_ns: float
    measured_ns: Estimate

    @property
    def error(self) -> float:
        """How much more is predicted than measured, as a fraction."""
        return self.predicted_ns / self.measured_ns.value - 1


@dataclass(frozen=True)
class Validation:
    """The points of a transport of a run in one machine state (None: in all), and why others could not be predicted.

    `is_busy`: other programs used the machine, so the errors are not those of the model alone.
    """

    run: int
    transport: str
    state: str | None
    rows: Sequence[Checked]
    missing: Mapping[Point, str]
    is_busy: bool = False

    @property
    def median_error(self) -> float | None:
        """The median size of the errors; None without points."""
        return statistics.median(abs(row.error) for row in self.rows) if self.rows else None

    @property
    def largest_error(self) -> float | None:
        """The largest error, with its sign; None without points."""
        return max((row.error for row in self.rows), key=abs, default=None)

    def share_within(self, limit: float) -> float | None:
        """The fraction of the points with an error of at most this limit."""
        return sum(abs(row.error) <= limit for row in self.rows) / len(self.rows) if self.rows else None


def model_of(fit: Fit, points: Iterable[Point], cpus: int = 0) -> Model:
    """The model of a fit for these points: with a CPU for each rank, or with `cpus` that all share."""
    return Model.from_content(fit.transport, fit.content(max(point.ranks for point in points), cpus))


def predict(
    points: Sequence[Point],
    models: Models,
    fit: Fit | None,
    times_on: Callable[..., ModelTimes] = times_of,
    *,
    tick_of: Callable[[str, int], Tick] = lambda step, points: lambda: None,
    draws_s: float = math.inf,
) -> tuple[list[Prediction], ModelTimes, float]:
    """The times of points on models, or on those of a fit; these times as `times_on` returns them; the time of draws.

    The interval or range is that of the fit's figures: from models fitted to figures that are drawn from theirs. It
    leaves out by how much such models are wrong. Where the draws would take longer than `draws_s`, there are none, and
    no interval. `tick_of` makes the tick of a step with so many points. Raises as times_of.
    """
    begin_s = monotonic()
    times = times_on(points, models, tick=tick_of("times", len(points)))
    known, drawn = list(times.time_ns), list(fit.resampled(DRAWS)) if fit is not None else []
    expected_s = len(drawn) * (monotonic() - begin_s) if known else 0.0
    draws = []
    if 0 < expected_s <= draws_s:
        tick = tick_of("intervals", len(drawn) * len(known))
        draws = [times_on(known, dict.fromkeys(models, model_of(each, known)), tick=tick).time_ns for each in drawn]
    predictions = []
    for point in known:
        seen_ns = [times.time_ns[point], *(draw[point] for draw in draws if point in draw)]
        low_ns, high_ns = (min(seen_ns), max(seen_ns)) if len(set(seen_ns)) > 1 else (None, None)
        about = (None, False) if fit is None else (fit.outside(point), fit.figures.has_ranges)
        how = times.measured[point].definition if point in times.measured else None
        payload_bytes = how.bytes_per_rep / how.divisor if how and seen_ns[0] > 0 else 0.0
        per_s = payload_bytes / seen_ns[0] * 1e9 if payload_bytes else None
        predictions.append(Prediction(point, seen_ns[0], low_ns, high_ns, *about, per_s))
    for number, (rate, row) in enumerate(zip(times.rates, predictions, strict=False)):
        low_hz, high_hz = (period_ns and 1e9 / period_ns for period_ns in (row.high_ns, row.low_ns))
        times.rates[number] = replace(rate, low_hz=low_hz, high_hz=high_hz, is_range=row.is_range)
    return predictions, times, expected_s


def fit_to_check(run: Run, transport: str) -> Fit | NoFit:
    """The machine that a transport shows without the points of the suite validate."""
    return fit_machine(run, transport, load_suite("validate"))


def validate(run: Run, fit: Fit, *, tick: Tick = lambda: None) -> Validation:
    """The figures that a fit did not use, predicted. Raises as times_of."""
    rows: list[Checked] = []
    missing: dict[Point, str] = {}
    for cpus, points in _by_cpus(run, fit).items():
        times = times_of(points, {fit.transport: model_of(fit, points, cpus)}, tick=tick)
        rows += [Checked(point, time_ns, fit.figures.others[point]) for point, time_ns in times.time_ns.items()]
        missing |= times.failed
    return Validation(run.id, fit.transport, fit.figures.state, rows, missing, load_of(run.warnings) is not None)


def newest_validation(results: Results, transport: str) -> Validation | None:
    """That of the newest run which measured the suite validate on a transport; None without one. Raises as times_of.

    One of a busy machine counts only without another.
    """
    runs = [results.run(summary.id) for summary in reversed(results.runs()) if summary.suite == "validate"]
    runs.sort(key=lambda run: load_of(run.warnings) is not None)
    fits = ((run, fit_to_check(run, transport)) for run in runs)
    done = (validate(run, fit) for run, fit in fits if isinstance(fit, Fit))
    return next((validation for validation in done if validation.rows), None)


def _by_cpus(run: Run, fit: Fit) -> dict[int, list[Point]]:
    """Points whose ranks share the CPUs of this machine, by their number, and the others (0)."""
    here = len(parse_cpus((run.facts.get("limits") or {}).get("usable_cpus")) or ())
    oversubscribed = {
        launch.ranks
        for launch in run.launches.values()
        if launch.transport == fit.transport and launch.oversubscribed and len(set(launch.hosts)) == 1
    }
    groups: dict[int, list[Point]] = {}
    for point, measured in fit.figures.others.items():
        if measured.value > 0:
            groups.setdefault(here if point.ranks in oversubscribed else 0, []).append(point)
    return groups
