"""Predictions for points with more ranks than CPUs: their times on the model fitted to the run's two-rank figures."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hockney.analysis.predict.fit import Fit, fit_machine
from hockney.errors import HockneyError
from hockney.machine.facts import fact
from hockney.machine.files import parse_cpus
from hockney.model import NOT_MEASURED, Definition, Launch, Measurement, Point, PointStatus
from hockney.results.runs import Run, Series
from hockney.results.store import StoredPoint, summary_of
from hockney.stats import UNKNOWN
from hockney.stats.fit import NoFit
from hockney.stats.interval import Estimate
from hockney.stats.npb import ft_class, ft_operations

ASSUMED = "From this run's two ranks, with a CPU for each rank and one switch without limits, by messages of its own."


class PredictedSeries(Series):
    """A point that was not measured: its measurement on the model, with bounds a factor `spread` away, or why none."""

    def __init__(self, run: Run, point: Point, outcome: Measurement | str, spread: float = 1.0) -> None:
        status, reason = (PointStatus.SKIPPED, outcome) if isinstance(outcome, str) else (PointStatus.PRECISE, None)
        super().__init__(run, StoredPoint(-1, point, status, reason))
        self._spread = spread
        self.measurements = () if isinstance(outcome, str) else (outcome,)
        self.states = (UNKNOWN,) * len(self.measurements)
        self.pairs = [(summary_of(measurement), UNKNOWN) for measurement in self.measurements]
        self.numbered = dict(enumerate(self.measurements))

    def widened(self, value: Estimate) -> Estimate:
        """A value of it with the bounds of the figures that the model was fitted to."""
        return Estimate(value.value, value.value / self._spread, value.value * self._spread)

    @property
    def launches(self) -> tuple[Launch, ...]:
        return ()

    @property
    def is_exact(self) -> bool:
        return True


def predicted_series(run: Run, at_ranks: Mapping[str, int]) -> list[PredictedSeries]:
    """Every point that was skipped and has more ranks than the run had CPUs.

    `at_ranks`: patterns whose published figures have that number of ranks, with any number measured. One switch makes
    all pairs of ranks alike, so one pair represents all.
    """
    plan = run.info.plan
    cpus = len(set(plan.get("cpus", ()))) or len(parse_cpus(fact(run.facts, "limits.usable_cpus")))
    points: dict[str, dict[Point, None]] = {}
    for series in run.series if not plan.get("hosts") else ():
        point, is_oversubscribed = series.point, 0 < cpus < series.point.ranks
        if series.is_harness or point.transport in plan.get("virtual", {}) or point.role == "basic":
            continue
        if point.pattern in at_ranks and (is_oversubscribed or series.status not in NOT_MEASURED):
            options = tuple(option for option in point.options if option[0] not in ("source", "target", "distance"))
            point = replace(point, ranks=at_ranks[point.pattern], options=options)
            is_oversubscribed = 0 < cpus < point.ranks
        elif series.status is not PointStatus.SKIPPED:
            continue
        if is_oversubscribed:
            points.setdefault(point.transport, {})[point] = None
    return [each for transport, members in points.items() for each in _predicted(run, transport, list(members))]


def _predicted(run: Run, transport: str, points: Sequence[Point]) -> Iterable[PredictedSeries]:
    fit = fit_machine(run, transport)
    if isinstance(fit, NoFit):
        return (PredictedSeries(run, point, fit.reason) for point in points)
    content = {**fit.content(max(point.ranks for point in points)), **_computing(run, transport)}
    try:
        outcomes = _outcomes(points, f"{transport} here", content)
    except HockneyError as error:
        return (PredictedSeries(run, point, str(error)) for point in points)
    return (
        PredictedSeries(run, point, outcome, 1.0 if isinstance(outcome, str) else _spread(fit, outcome))
        for point, outcome in zip(points, outcomes, strict=True)
    )


def _outcomes(points: Sequence[Point], name: str, content: Mapping[str, Any]) -> list[Measurement | str]:
    """The measurement of each point on this model, or why none; kept, as many take seconds. Raises HockneyError."""
    from hockney.measure.predict import times_of  # with pydantic, which light commands do not load
    from hockney.worker.build import Recipe, build_worker
    from hockney.worker.cache import Probes
    from hockney.worker.machine_model import Model

    worker = build_worker(Recipe("sim"))
    probes, key = Probes(worker.parent), [worker.name, json.dumps(content), *map(str, points)]
    kept = probes.get(key)
    if kept is not None:
        with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):  # damaged: it is made again
            return _restored(points, kept)
    times = times_of(points, {points[0].transport: Model.from_content(name, content)})
    kept = {"of": [times.failed.get(point) or _record(times.measured[point]) for point in points]}
    if not times.has_broken:  # any part of the program may change a prediction
        probes.put(key, kept, map(str, sorted(Path(__file__).parents[2].rglob("*.py"))))
    return _restored(points, kept)


def _record(measurement: Measurement) -> dict[str, Any]:
    """The fields of a measurement on a model that tables read, as JSON."""
    definition, counters = asdict(measurement.definition), dict(measurement.counters)
    samples = measurement.elapsed_ns.tolist()
    return {"batch": measurement.batch, "definition": definition, "elapsed_ns": samples, "counters": counters}


def _restored(points: Iterable[Point], kept: Mapping[str, Any]) -> list[Measurement | str]:
    import numpy as np

    outcomes: list[Measurement | str] = []
    for point, record in zip(points, kept["of"], strict=True):
        if isinstance(record, str):
            outcomes.append(record)
            continue
        unknown = (0,) * point.ranks
        samples, definition = np.array(record["elapsed_ns"], dtype=np.int64), Definition(**record["definition"])
        measurement = Measurement(
            *(point, 0, 0, 0.0, record["batch"], definition, samples, unknown, unknown, unknown, None),
            verified=False,
            counters=record["counters"],
        )
        outcomes.append(measurement)
    return outcomes


def _spread(fit: Fit, measurement: Measurement) -> float:
    """How uncertain a prediction is: as its fit's figures of the nearest size, and in proportion beyond the longest."""
    definition, basics = measurement.definition, fit.figures.complete
    size = definition.bytes_per_rep / max(1, definition.messages_per_rep)
    nearest = min(basics, key=lambda each: abs(each.bytes - size))
    relative = max(nearest.times[name].relative for name in ("half", "gap"))
    return (1 + relative) * max(1.0, size / max(1, basics[-1].bytes))


def _computing(run: Run, transport: str) -> dict[str, Any]:
    """The speed of one rank in NPB FT, for the largest class; {} if it was not measured."""
    rates: dict[float, float] = {}
    for series in run.find(pattern="ft", transport=transport, ranks=1):
        operations = ft_operations(str(ft_class(series.point)))
        if series.shown is not None:
            rates[operations] = operations / (series.shown.time.value * series.shown.definition.divisor) * 1e9
    return {"cpu": {"flops_per_s": rates[max(rates)], "source": "NPB FT on one rank"}} if rates else {}
