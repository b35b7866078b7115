"""The cases that `hockney predict` runs: the points of a suite on a given model, or on machines fitted to a run."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hockney.analysis.predict.change import Change, changed, improvements
from hockney.analysis.predict.fit import Fit, fit_machine
from hockney.analysis.predict.topology import parse_topology
from hockney.cli.progress import ProgressDisplay
from hockney.cli.rerun import typed
from hockney.cli.run_options import read_model_options
from hockney.errors import HockneyError, UsageError, unknown
from hockney.measure.plan import Plan, make_plan, refuse_empty
from hockney.measure.predict import Prediction, Tick, predict_fitted, times_of
from hockney.measure.what_if import Effect, Tolerances, effects_of, tolerances_of
from hockney.model import Point
from hockney.results.runs import Results, Run, open_results
from hockney.stats.fit import NoFit
from hockney.suites import Suite
from hockney.units import RANKS_MAX, counted, format_duration_s
from hockney.worker.catalogue import load, matches
from hockney.worker.machine_model import Model, load_model, write_model

Content = Callable[[Fit], Mapping[str, Any]]


@dataclass(frozen=True)
class Case:
    """Points, and the models of their transports; `model` is the plain one. `fit`: the source of a fitted model."""

    model: Model
    plan: Plan
    models: Mapping[str, Model]
    fit: tuple[Fit, Content] | None = None
    assumptions: Sequence[str] = ()


@dataclass(frozen=True)
class Predicted:
    """The times of a case, after `changes` of its models, too, and why points have none.

    `effects` and `tolerances` are of the changed models; None: not asked for.
    """

    case: Case
    changes: Sequence[str]
    predictions: Sequence[Prediction]
    missing: Mapping[Point, str]
    changed_ns: Mapping[Point, float]
    effects: Sequence[Effect] | None = None
    tolerances: Sequence[Tolerances] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every point has a time that the plan does not skip."""
        return self.missing.keys() <= {skipped.point for skipped in self.case.plan.skipped}


def on_machine(suite: Suite, machine: str, words: Mapping[str, Any]) -> Case:
    """A suite on a model. Raises UsageError."""
    model, catalogue = load_model(machine), load(libraries=())
    plan = make_plan(suite, read_model_options(machine, words), catalogue)
    refuse_empty(plan, what="predict")
    models = {point.transport: catalogue.transports[point.transport].model or model for point in plan.points}
    return Case(model, plan, models)


def on_fits(
    suite: Suite, store: Path | None, reference: str | None, transports: Sequence[str], topology: str | None, words: Any
) -> list[Case]:
    """A suite on the machine that each transport of a run shows; None: of the newest run that shows any.

    Raises UsageError, StoreError, HockneyError.
    """
    with open_results(store) as results:
        fits = _newest_fits(results, transports) if reference is None else _fits(results.run(reference), transports)
    return [_on_fit(suite, fit, topology, words) for fit in fits]


def transports_of(run: Run, words: Sequence[str]) -> list[str]:
    """The transports of a run that the words name; all without words. Raises UsageError for a word without any."""
    known = list(dict.fromkeys(series.point.transport for series in run.series if not series.is_harness))
    for word in words:
        if not any(matches(word, name) for name in known):
            raise UsageError(f"{unknown(f'transport of run {run.id}', word, known)}; --from names another run")
    return [name for name in known if not words or any(matches(word, name) for word in words)]


def _newest_fits(results: Results, transports: Sequence[str]) -> list[Fit]:
    """The fits of the newest run that has them, down to short messages if any run has those.

    Raises HockneyError if none has fits: for the last run, if it has these transports, else for the last that has.
    """
    newest: list[Fit] = []
    why: HockneyError | None = None
    for summary in reversed(results.runs()):
        try:
            fits = _fits(results.run(summary.id), transports)
        except UsageError:  # it has not all of these transports
            continue
        except HockneyError as error:
            why = why or error
            continue
        if any(fit.sizes_bytes[0] <= 64 for fit in fits):  # shorter messages take as long
            return fits
        newest = newest or fits
    if not newest and why is not None:
        raise why
    return newest or _fits(results.run(), transports)


def _fits(run: Run, transports: Sequence[str]) -> list[Fit]:
    """The fits of the named transports. Raises HockneyError if one of them has no fit, or none has."""
    fits = {name: fit_machine(run, name) for name in transports_of(run, transports)}
    fitted = [fit for fit in fits.values() if isinstance(fit, Fit)]
    for name, fit in fits.items():
        if isinstance(fit, NoFit) and (transports or not fitted):
            raise HockneyError(
                f"run {run.id} shows no machine on {name}: {fit.reason}. Measure them",
                argv=("hockney", "run", "basics", "-t", name),
            )
    return fitted


def _on_fit(suite: Suite, fit: Fit, topology: str | None, words: Mapping[str, Any]) -> Case:
    extended = {} if topology is None else parse_topology(topology, fit.rate_bytes_per_s)

    def content_for(ranks: int) -> Content:
        return lambda each: {**each.content(ranks), **extended}

    catalogue, machine = load(libraries=()), fit.transport.replace(":", "-")  # a colon begins a variant of a model
    name = fit.transport if topology is None else f"{fit.transport} on {topology}"
    catalogue.add_model(f"sim@{machine}", Model.from_content(name, content_for(RANKS_MAX)(fit)))
    plan = make_plan(suite, read_model_options(machine, words), catalogue)
    refuse_empty(plan, what="predict")
    content_of = content_for(max(point.ranks for point in plan.points))
    model = Model.from_content(fit.transport, content_of(fit))
    way = "one switch for all" if topology is None else f"topology {topology}"
    assumptions = [
        f"Assumed: a CPU for each rank, and {way}. Between sizes, costs are interpolated.",
        f"For the errors of such models: {typed('predict', '--validate')}",
    ]
    return Case(model, plan, {f"sim@{machine}": model}, (fit, content_of), assumptions)


def predicted(
    case: Case,
    changes: Sequence[Change],
    *,
    sensitivity: bool,
    tolerance: bool,
    as_json: bool,
    time_s: float = 60.0,
    cases: int = 1,
) -> Predicted:
    """The times of a case, and the requested analyses; without intervals, if its share of time_s is too short for them.

    Raises UsageError for a change without effect.
    """
    points, after = case.plan.points, changed(case.models, changes)
    with contextlib.closing(ProgressDisplay()) as display:
        if case.fit is None:
            times = times_of(points, case.models, tick=display.simulating("times", len(points)))
            predictions = [Prediction(point, times.time_ns[point]) for point in points if point in times.time_ns]
            failed: Mapping[Point, str] = times.failed
        else:
            fit, content_of = case.fit
            too_long_s = 0.0

            def draw_tick(number: int, expected_s: float) -> Tick | None:
                nonlocal too_long_s
                if expected_s <= time_s / cases:
                    return display.simulating(f"intervals on {case.model.name}", number)
                too_long_s = expected_s
                return None

            if not as_json:
                display.say(f"Predicting {counted(len(points), 'point')} on {case.model.name}, {fit.title}.")
            tick = display.simulating(f"times on {case.model.name}", len(points))
            predictions, failed = predict_fitted(fit, points, content_of, tick=tick, draw_tick=draw_tick)
            if too_long_s:
                takes, allowed = format_duration_s(too_long_s), format_duration_s(time_s / cases)
                why = f"No interval on {case.model.name}: it takes about {takes}; its share of --time is {allowed}. "
                why += f"For an interval, add `--time {math.ceil(1.5 * too_long_s * cases)}s`."
                case = replace(case, assumptions=[*case.assumptions, why])
        new_ns = {prediction.point: prediction.time_ns for prediction in predictions}
        if changes:
            new_ns = times_of(points, after, tick=display.simulating("changed", len(points))).time_ns
        effects = tolerances = None
        if sensitivity:
            tick = display.simulating("sensitivity", len(new_ns) * len(improvements(after.values())))
            effects = effects_of(new_ns, after, tick=tick)
        if tolerance:
            tick = display.simulating("tolerance", len(new_ns))
            tolerances = tolerances_of(new_ns, after, with_curves=as_json, tick=tick)
    missing = {skipped.point: skipped.reason for skipped in case.plan.skipped} | {**failed}
    words = [change.word for change in changes]
    return Predicted(case, words, predictions, missing, new_ns if changes else {}, effects, tolerances)


def write_changed(model: Model, changes: Sequence[Change], path: Path) -> None:
    """Writes the file of the changed model. Raises HockneyError where it cannot be written."""
    head = "Written by hockney predict. docs/machines.md explains the keys; times are ns."
    write_model(changed({"": model}, changes)[""], path, head)
