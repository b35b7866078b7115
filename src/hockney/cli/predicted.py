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
from hockney.analysis.predict.topology import parse_network
from hockney.cli import render
from hockney.cli.progress import ProgressDisplay
from hockney.cli.render import TableColumn
from hockney.cli.rerun import typed
from hockney.cli.run_options import read_options
from hockney.errors import HockneyError, UsageError, unknown
from hockney.measure.plan import Plan, make_plan, refuse_empty
from hockney.measure.predict import Prediction, Validation, newest_validation, predict_fitted, times_of
from hockney.measure.rates import search_on_models
from hockney.measure.what_if import SLOWDOWNS, Effect, Tolerance, Tolerances, effects_of, tolerances_of
from hockney.model import Point
from hockney.report.rates import rates_table
from hockney.report.words import figure_text, size_text
from hockney.results.rates import HighestRates
from hockney.results.runs import Results, Run, open_results
from hockney.stats.fit import NoFit
from hockney.stats.interval import Estimate
from hockney.suites import Suite
from hockney.units import RANKS_MAX, counted, format_bytes, format_duration_s, format_ns
from hockney.worker.catalogue import load, matches, split_name
from hockney.worker.machine_model import Model, load_model

_GAIN_MIN = 5e-4  # less is printed as 0.0 %
_RANGES = "‡: ranges, as figures of the fitted run are. For 95 % intervals measure it for longer."
_OPTIMISTIC = "Optimistic: every pair is as fast as these two ranks alone; memory, NIC and switch are never full."
WHAT = (TableColumn("what", key=True, wrap=True), TableColumn("size", right=True, key=True))
"""The columns of predictions."""


@dataclass(frozen=True)
class Case:
    """Points, and the models of their transports; `model` is the plain one.

    `fit` is the source of a fitted model, `network` in words what was asked for; `checked` shows how wrong such models
    are on this transport, None: not known.
    """

    model: Model
    plan: Plan
    models: Mapping[str, Model]
    fit: Fit | None = None
    network: str = ""
    checked: Validation | None = None


@dataclass
class Predicted:
    """The times of a case, after `changes` of its models, too, and why points have none.

    `effects` and `tolerances` are of the changed models, as `rates`, which stand for times; None: not asked for.
    `intervals_s`: how long intervals take, if there was no time for them.
    """

    case: Case
    changes: Sequence[str]
    missing: dict[Point, str]
    predictions: Sequence[Prediction] = ()
    changed_ns: Mapping[Point, float] = field(default_factory=dict)
    effects: Sequence[Effect] | None = None
    tolerances: Sequence[Tolerances] | None = None
    rates: HighestRates | None = None
    intervals_s: float | None = None

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
    suite: Suite, store: Path | None, reference: str | None, transports: Sequence[str], words: Mapping[str, Any]
) -> list[Case]:
    """A suite on the machine that each transport of a run shows; None: of the newest run that shows any.

    Raises UsageError, StoreError, HockneyError.
    """
    with open_results(store) as results:
        fits = _newest_fits(results, transports) if reference is None else _fits(results.run(reference), transports)
        return [_on_fit(suite, fit, words, newest_validation(results, fit.transport)) for fit in fits]


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


def _on_fit(suite: Suite, fit: Fit, words: Mapping[str, Any], checked: Validation | None) -> Case:
    topology, link = words["topology"], words["link"]
    fit = replace(fit, network=parse_network(topology, link, fit.rate_bytes_per_s))
    links = f"links of {link}" if link else "links as fast as these two ranks"
    text = f"{topology or 'one switch'}, {links}" if topology or link else ""
    catalogue, machine = load(libraries=()), fit.transport.replace(":", "-")  # a colon begins a variant of a model
    name = fit.transport if topology is None else f"{fit.transport} on {topology}"
    catalogue.add_model(f"sim@{machine}", Model.from_content(name, fit.content(RANKS_MAX)))
    plan = make_plan(suite, read_options({**words, "machine": machine}), catalogue)
    refuse_empty(plan, what="predict")
    model = Model.from_content(fit.transport, fit.content(max(point.ranks for point in plan.points)))
    return Case(model, plan, {f"sim@{machine}": model}, fit, text, checked)


def predicted(
    case: Case, changes: Sequence[Change], *, sensitivity: bool, tolerance: bool, as_json: bool, draws_s: float
) -> Predicted:
    """The times of a case, and the requested analyses; without intervals, if draws_s is too short for them.

    Raises UsageError for a change without effect.
    """
    points, deadline_ns, after = case.plan.points, case.plan.deadline_ns, changed(case.models, changes)
    skipped = {skipped.point: skipped.reason for skipped in case.plan.skipped}
    done = Predicted(case, [change.word for change in changes], skipped)
    if deadline_ns is not None and (sensitivity or tolerance):
        raise UsageError("rate=max searches a rate: leave out --sensitivity and --tolerance, or name a rate")
    with contextlib.closing(ProgressDisplay()) as display:
        if case.fit is not None and not as_json:
            display.say(f"Predicting {counted(len(points), 'point')} on {case.model.name}, {case.fit.title}.")
        if deadline_ns is not None:
            done.missing |= {} if case.fit is None else case.fit.missing(points)
            inside = [point for point in points if point not in done.missing]
            tick = display.simulating("searches", len(inside))
            done.rates, failed = search_on_models(inside, after, deadline_ns, tick=tick)
        elif case.fit is None:
            times = times_of(points, case.models, tick=display.simulating("times", len(points)))
            done.predictions = [Prediction(point, time_ns) for point, time_ns in times.time_ns.items()]
            failed = times.failed
        else:
            tick_of = lambda step, count: display.simulating(f"{step} on {case.model.name}", count)  # noqa: E731
            done.predictions, failed, takes_s = predict_fitted(case.fit, points, tick_of=tick_of, draws_s=draws_s)
            done.intervals_s = takes_s if takes_s > draws_s else None
        done.missing |= failed
        new_ns = {prediction.point: prediction.time_ns for prediction in done.predictions}
        if changes and deadline_ns is None:
            new_ns = times_of(points, after, tick=display.simulating("changed", len(points))).time_ns
            done.changed_ns = new_ns
        if sensitivity:
            tick = display.simulating("sensitivity", len(new_ns) * len(improvements(after.values())))
            done.effects = effects_of(new_ns, after, tick=tick)
        if tolerance:
            tick = display.simulating("tolerance", len(new_ns))
            done.tolerances = tolerances_of(new_ns, after, with_curves=as_json, tick=tick)
    return done


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
    for assumption in assumptions_of(done):
        render.note(assumption)


def assumptions_of(done: Sequence[Predicted]) -> list[str]:
    """What fitted models assume, how wrong they were, and how to get intervals; each once."""
    fitted = [each for each in done if each.case.fit is not None]
    if not fitted:
        return []
    network = fitted[0].case.network
    limits = f"Optimistic: memory and NIC are never full. The network is {network}."
    notes = [limits if network else f"{_OPTIMISTIC} Name a network: --topology, --link."]
    known = [row for each in fitted for row in each.predictions]
    is_range = any(row.is_range for row in known)
    bounds = "range" if is_range else "interval"
    checked = [each.case.checked for each in fitted if each.case.checked is not None]
    parts = "{0.median_error:.0%} in the median, up to {0.largest_error:+.0%} on {0.transport} (run {0.run})"
    off = [parts.format(error) for error in checked]
    itself = f"the model itself was off by {'; '.join(off)}."
    if any(row.low_ns is not None for row in known):
        notes.append(f"The {bounds} has only the noise of the input{f'; {itself}' if off else '.'}")
    elif off:
        notes.append(f"T{itself[1:]}")
    judged = {error.transport for error in checked}
    unknown = [name for name in (each.case.model.name for each in fitted) if name not in judged]
    if unknown:
        notes.append(f"How far off such models are: {typed('predict', '--validate', '-t', ','.join(unknown))}")
    takes_s = max(each.intervals_s or 0.0 for each in fitted)
    if takes_s:
        enough = format_duration_s(math.ceil(1.5 * takes_s * len(done)))
        notes.append(f"For {bounds}s: --time {enough.replace(' min', 'm').replace(' ', '')}.")
    if is_range:
        notes.append(_RANGES)
    return notes


def _print_case(predicted: Predicted, *, first: bool) -> None:
    case = predicted.case
    with_changes = f", with {' '.join(predicted.changes)}" if predicted.changes else ""
    render.title(f"{case.plan.suite} on {case.model.name} ({case.model.machine.title}){with_changes}", first=first)
    if predicted.rates is not None:
        render.texts(rates_table(predicted.rates, more="Searched in virtual time."), bold="events")
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
        known = Estimate.known(row.time_ns, row.low_ns, row.high_ns)
        return "" if known is None else figure_text(known, format_ns, is_range=row.is_range)[1]

    def changed(row: Prediction, text: Callable[[float], str]) -> str:
        new_ns = predicted.changed_ns.get(row.point)
        return "" if new_ns is None else text(new_ns)

    bounds = "range" if any(row.is_range for row in predicted.predictions) else "95 % interval"
    columns: dict[TableColumn, Callable[[Prediction], str]] = {
        WHAT[0]: lambda row: _name(row.point),
        WHAT[1]: lambda row: size_text(row.point),
        TableColumn("predicted", right=True, style="bold"): lambda row: format_ns(row.time_ns),
        TableColumn(bounds, right=True): interval,
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
    size, above = prediction.outside_bytes, prediction.point.bytes > (prediction.outside_bytes or 0)
    return "" if size is None else f"{'above' if above else 'below'} {format_bytes(size)}"


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

    def cells(row: Tolerances) -> list[str]:
        limits = tolerance_of(row).limits.values()
        return [_name(row.point), size_text(row.point), *("any" if limit is None else text(limit) for limit in limits)]

    columns = [*WHAT, *(TableColumn(f"{slowdown:.0%} slower", right=True) for slowdown in SLOWDOWNS)]
    render.title(title)
    render.table(columns, map(cells, rows))


# ---- JSON -----------------------------------------------------------------------------------------------------------


def predicted_json(predicted: Predicted) -> dict[str, Any]:
    """The same values, and the curves of tolerances."""
    record, of = predicted.case.model.record, predicted.case.checked
    document = {
        "suite": predicted.case.plan.suite,
        "model": {name: record[name] for name in ("name", "title", "key", "exact")},
        "changes": predicted.changes,
        "predictions": [
            {**vars(row), "changed_ns": predicted.changed_ns.get(row.point)} for row in predicted.predictions
        ],
        "not_predicted": [{"point": point, "reason": reason} for point, reason in predicted.missing.items()],
        "assumptions": assumptions_of([predicted]),
        "model_error": of and {"run": of.run, "median": of.median_error, "largest": of.largest_error},
    }
    if predicted.rates is not None:
        document |= vars(predicted.rates)
    if predicted.effects is not None:
        document["sensitivity"] = [
            {"parameter": each.change.key, "factor": each.change.factor, "gain": each.gain}
            | {"gains": [{"point": point, "gain": gain} for point, gain in each.gains.items()]}
            for each in predicted.effects
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
