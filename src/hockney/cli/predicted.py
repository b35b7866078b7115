"""Predictions: a suite on a given model, or on machines fitted to a run; their times as tables and as JSON."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hockney.analysis.predict.change import PARAMETERS, Change, changed, improvements
from hockney.analysis.predict.fit import Fit, fit_machine
from hockney.analysis.predict.topology import parse_topology
from hockney.analysis.rates import HighestRates
from hockney.cli import render
from hockney.cli.progress import ProgressDisplay
from hockney.cli.rates import print_rates
from hockney.cli.render import TableColumn
from hockney.cli.rerun import typed
from hockney.cli.run_options import read_options
from hockney.cli.words import format_interval
from hockney.errors import HockneyError, UsageError, unknown
from hockney.measure.plan import Plan, make_plan, refuse_empty
from hockney.measure.predict import Prediction, Tick, predict_fitted, times_of
from hockney.measure.rates import search_on_models
from hockney.measure.what_if import SLOWDOWNS, Effect, Tolerance, Tolerances, effects_of, tolerances_of
from hockney.model import Point
from hockney.report.classic.models import is_model
from hockney.report.words import size_text
from hockney.results.runs import Results, Run, open_results
from hockney.stats.fit import NoFit
from hockney.suites import Suite
from hockney.units import RANKS_MAX, counted, format_bytes, format_duration_s, format_ns
from hockney.worker.catalogue import load, matches, split_name
from hockney.worker.machine_model import Model, load_model

_GAIN_MIN = 5e-4  # less is printed as 0.0 %
_NO_INTERVAL = "No interval: the figures that the model is fitted to have none. Measure them for longer."
WHAT = (TableColumn("what", key=True, wrap=True), TableColumn("size", right=True, key=True))
"""The columns of predictions."""


@dataclass(frozen=True)
class Case:
    """Points, and the models of their transports; `model` is the plain one.

    `fit` is the source of a fitted model, which `topology` extends.
    """

    model: Model
    plan: Plan
    models: Mapping[str, Model]
    fit: Fit | None = None
    topology: Mapping[str, Any] = field(default_factory=dict)
    assumptions: Sequence[str] = ()


@dataclass(frozen=True)
class Predicted:
    """The times of a case, after `changes` of its models, too, and why points have none.

    `effects` and `tolerances` are of the changed models, as `rates`, which stand for times; None: not asked for.
    """

    case: Case
    changes: Sequence[str]
    predictions: Sequence[Prediction]
    missing: Mapping[Point, str]
    changed_ns: Mapping[Point, float]
    effects: Sequence[Effect] | None = None
    tolerances: Sequence[Tolerances] | None = None
    rates: HighestRates | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every point has a time that the plan does not skip."""
        return self.missing.keys() <= {skipped.point for skipped in self.case.plan.skipped}


# ---- cases ----------------------------------------------------------------------------------------------------------


def on_machine(suite: Suite, machine: str, words: Mapping[str, Any]) -> Case:
    """A suite on a model. Raises UsageError."""
    model, catalogue = load_model(machine), load(libraries=())
    plan = make_plan(suite, read_options({**words, "machine": machine}), catalogue)
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

    Raises HockneyError if none has fits: for the last run that has these transports, if any has, else for the last.
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
    catalogue, machine = load(libraries=()), fit.transport.replace(":", "-")  # a colon begins a variant of a model
    name = fit.transport if topology is None else f"{fit.transport} on {topology}"
    catalogue.add_model(f"sim@{machine}", Model.from_content(name, {**fit.content(RANKS_MAX), **extended}))
    plan = make_plan(suite, read_options({**words, "machine": machine}), catalogue)
    refuse_empty(plan, what="predict")
    model = Model.from_content(fit.transport, _content(fit, plan, extended))
    way = "one switch for all" if topology is None else f"topology {topology}"
    assumptions = [
        f"Assumed: a CPU for each rank, and {way}. Between sizes, costs are interpolated.",
        f"For the errors of such models: {typed('predict', '--validate')}",
    ]
    return Case(model, plan, {f"sim@{machine}": model}, fit, extended, assumptions)


def _content(fit: Fit, plan: Plan, extended: Mapping[str, Any]) -> Mapping[str, Any]:
    """The model of a fit, for the most ranks of a plan."""
    return {**fit.content(max(point.ranks for point in plan.points)), **extended}


def predicted(
    case: Case,
    changes: Sequence[Change],
    *,
    sensitivity: bool,
    tolerance: bool,
    as_json: bool,
    time_s: float,
    cases: int,
) -> Predicted:
    """The times of a case, and the requested analyses; without intervals, if its share of time_s is too short for them.

    Raises UsageError for a change without effect.
    """
    points, after = case.plan.points, changed(case.models, changes)
    skipped, words = {each.point: each.reason for each in case.plan.skipped}, [change.word for change in changes]
    if case.plan.deadline_ns is not None:
        if sensitivity or tolerance:
            raise UsageError("rate=max searches a rate: leave out --sensitivity and --tolerance, or name a rate")
        outside = {} if case.fit is None else case.fit.missing(points)
        rates, failed = search_on_models([each for each in points if each not in outside], after, case.plan.deadline_ns)
        return Predicted(case, words, (), skipped | outside | {**failed}, {}, rates=rates)
    with contextlib.closing(ProgressDisplay()) as display:
        if case.fit is None:
            times = times_of(points, case.models, tick=display.simulating("times", len(points)))
            predictions = [Prediction(point, time_ns) for point, time_ns in times.time_ns.items()]
            failed: Mapping[Point, str] = times.failed
        else:
            if not as_json:
                display.say(f"Predicting {counted(len(points), 'point')} on {case.model.name}, {case.fit.title}.")
            case, predictions, failed = _fitted(case, case.fit, display, time_s, cases)
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
    return Predicted(case, words, predictions, skipped | {**failed}, new_ns if changes else {}, effects, tolerances)


def _fitted(
    case: Case, fit: Fit, display: ProgressDisplay, time_s: float, cases: int
) -> tuple[Case, list[Prediction], Mapping[Point, str]]:
    """The times on a fitted machine, and the reasons why points have none; the case says why there is no interval."""
    draws_s = time_s / cases

    def tick_of(step: str, points: int) -> Tick:
        return display.simulating(f"{step} on {case.model.name}", points)

    predictions, failed, takes_s = predict_fitted(
        fit, case.plan.points, lambda each: _content(each, case.plan, case.topology), tick_of=tick_of, draws_s=draws_s
    )
    if takes_s <= draws_s:
        has_draws = takes_s > 0 or not predictions
        missing = [] if has_draws or is_model(fit.transport) else [_NO_INTERVAL]
        return replace(case, assumptions=[*case.assumptions, *missing]), predictions, failed
    takes, allowed = format_duration_s(takes_s), format_duration_s(draws_s)
    why = f"No interval on {case.model.name}: it takes about {takes}; its share of --time is {allowed}. "
    why += f"For an interval, add `--time {math.ceil(1.5 * takes_s * cases)}s`."
    return replace(case, assumptions=[*case.assumptions, why]), predictions, failed


# ---- tables ---------------------------------------------------------------------------------------------------------


def print_predicted(done: Sequence[Predicted]) -> None:
    """Print the predictions and the requested analyses of each case, then what holds for all, each once."""
    for number, each in enumerate(done):
        _print_case(each, first=number == 0)
    missing = {point: reason for each in done for point, reason in each.missing.items()}
    if missing:
        render.title("Not predicted")
        print_missing(missing)
    if len(done) > 1:
        render.say()
    if any(row.low_ns is not None for each in done for row in each.predictions):
        render.note("The interval is that of the figures that the model is fitted to.")
    for assumption in dict.fromkeys(assumption for each in done for assumption in each.case.assumptions):
        render.note(assumption)


def _print_case(predicted: Predicted, *, first: bool) -> None:
    case = predicted.case
    with_changes = f", with {' '.join(predicted.changes)}" if predicted.changes else ""
    render.title(f"{case.plan.suite} on {case.model.name} ({case.model.machine.title}){with_changes}", first=first)
    if predicted.rates is not None:
        print_rates(predicted.rates, "Searched in virtual time.", first=False)
    elif predicted.predictions:
        _print_times(predicted)
    else:
        render.note("No time predicted: the reason is below.")
    if predicted.effects is not None:
        _print_effects(predicted.effects)
    if predicted.tolerances is not None:
        rows = predicted.tolerances
        _print_limits("How much latency can be added to each message", rows, lambda row: row.latency, format_ns)
        _print_limits("How much bandwidth can be lost", rows, lambda row: row.bandwidth, "{:.1%}".format)


def print_missing(reasons: Mapping[Point, str]) -> None:
    """Each reason once, after the curves whose points have it."""
    for reason in dict.fromkeys(reasons.values()):
        render.item(
            reason, head="; ".join(dict.fromkeys(_name(point) for point, why in reasons.items() if why == reason))
        )


def _print_times(predicted: Predicted) -> None:
    def interval(row: Prediction) -> str:
        return "" if row.low_ns is None else format_interval(row.low_ns, row.high_ns)

    def changed(row: Prediction, text: Callable[[float], str]) -> str:
        new_ns = predicted.changed_ns.get(row.point)
        return "" if new_ns is None else text(new_ns)

    columns: dict[TableColumn, Callable[[Prediction], str]] = {
        WHAT[0]: lambda row: _name(row.point),
        WHAT[1]: lambda row: size_text(row.point),
        TableColumn("predicted", right=True, style="bold"): lambda row: format_ns(row.time_ns),
        TableColumn("95 % interval", right=True): interval,
        TableColumn("changed", right=True): lambda row: changed(row, format_ns),
        TableColumn("change", right=True): lambda row: changed(row, lambda new_ns: _percent(new_ns, row.time_ns)),
        TableColumn("outside the fit", wrap=True): _outside,
    }
    always = list(columns)[:3]
    render.records(
        {column: text for column, text in columns.items() if column in always or any(map(text, predicted.predictions))},
        predicted.predictions,
    )


def _outside(prediction: Prediction) -> str:
    """`above 1 MiB`; "" within the fit."""
    size = prediction.outside_bytes
    if size is None:
        return ""
    return f"{'above' if prediction.point.bytes > size else 'below'} {format_bytes(size)}"


def _percent(new_ns: float, before_ns: float) -> str:
    """`-31.0%`; a pattern that takes no time has no change in per cent."""
    if before_ns <= 0:
        return "-"
    change = new_ns / before_ns - 1
    return f"{change:+.1%}" if abs(change) >= _GAIN_MIN else "0.0%"


def _name(point: Point) -> str:
    """`pairs, 2 ranks (apart)`: a curve with the variant of the model."""
    variant = split_name(point.transport)[2]
    return point.text() + (f" ({variant})" if variant else "")


def _print_effects(effects: Sequence[Effect]) -> None:
    """A row for each parameter that matters, the most important first."""

    def largest(effect: Effect) -> Point:
        return max(effect.gains, key=lambda point: effect.gains[point])

    def change(effect: Effect) -> str:
        return f"{_parameter(effect)} {'doubled' if PARAMETERS[effect.change.key].is_rate else 'halved'}"

    columns: dict[TableColumn, Callable[[Effect], str]] = {
        TableColumn("change", wrap=True, key=True): change,
        TableColumn("gain", right=True, style="bold"): lambda effect: f"{effect.gain:.1%}",
    }
    if any(len(effect.gains) > 1 for effect in effects):
        columns[TableColumn("largest gain", right=True)] = lambda effect: f"{max(effect.gains.values()):.1%}"
        columns[TableColumn("of", wrap=True)] = lambda effect: f"{_name(largest(effect))} {size_text(largest(effect))}"
    effective = [effect for effect in effects if max(map(abs, effect.gains.values()), default=0.0) >= _GAIN_MIN]
    render.title("Gain of each change")
    render.records(columns, effective)
    idle = [_parameter(effect) for effect in effects if effect not in effective]
    if idle:
        render.note(f"No effect: {', '.join(idle)}.")


def _parameter(effect: Effect) -> str:
    return f"{PARAMETERS[effect.change.key].title} ({effect.change.key})"


def _print_limits(
    title: str,
    rows: Iterable[Tolerances],
    tolerance_of: Callable[[Tolerances], Tolerance],
    text: Callable[[float], str],
) -> None:
    """A table with a row for each point: the changes that make it 1, 2 and 5 % slower."""
    columns = [*WHAT, *(TableColumn(f"{slowdown:.0%} slower", right=True) for slowdown in SLOWDOWNS)]
    render.title(title)
    render.table(
        columns,
        (
            [
                *(_name(row.point), size_text(row.point)),
                *("any" if limit is None else text(limit) for limit in tolerance_of(row).limits.values()),
            ]
            for row in rows
        ),
    )


# ---- JSON -----------------------------------------------------------------------------------------------------------


def predicted_json(predicted: Predicted) -> dict[str, Any]:
    """The same values, and the curves of tolerances."""
    record = predicted.case.model.record
    document = {
        "suite": predicted.case.plan.suite,
        "model": {name: record[name] for name in ("name", "title", "key", "exact")},
        "changes": predicted.changes,
        "predictions": [
            {**vars(row), "changed_ns": predicted.changed_ns.get(row.point)} for row in predicted.predictions
        ],
        "not_predicted": [{"point": point, "reason": reason} for point, reason in predicted.missing.items()],
        "assumptions": predicted.case.assumptions,
    }
    if predicted.rates is not None:
        document |= vars(predicted.rates)
    if predicted.effects is not None:
        document["sensitivity"] = [
            {
                "parameter": effect.change.key,
                "factor": effect.change.factor,
                "gain": effect.gain,
                "gains": [{"point": point, "gain": gain} for point, gain in effect.gains.items()],
            }
            for effect in predicted.effects
        ]
    if predicted.tolerances is not None:
        document["tolerance"] = [
            {
                "point": row.point,
                "latency": _tolerance_json(row.latency, "added_ns"),
                "bandwidth": _tolerance_json(row.bandwidth, "lost"),
            }
            for row in predicted.tolerances
        ]
    return document


def _tolerance_json(tolerance: Tolerance, added: str) -> dict[str, Any]:
    return {
        "limits": [{"slowdown": slowdown, added: limit} for slowdown, limit in tolerance.limits.items()],
        "curve": [[slowdown, each] for each, slowdown in tolerance.curve],
    }
