"""Predictions: a suite on a given model, or on machines fitted to a run; their times as tables and as JSON."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
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
from hockney.measure.predict import ModelTimes, Prediction, Validation, model_of, newest_validation, predict, times_of
from hockney.measure.rates import search_on_models
from hockney.measure.what_if import SLOWDOWNS, Effect, Tolerance, Tolerances, effects_of, tolerances_of
from hockney.model import Point
from hockney.report.rates import rates_table
from hockney.report.words import bounds_column, known_text, size_text
from hockney.results.rates import HighestRates
from hockney.results.runs import Results, Run, open_results
from hockney.stats.fit import NoFit
from hockney.suites import Suite
from hockney.units import RANKS_MAX, counted, format_bytes, format_duration_s, format_messages, format_ns, format_rate
from hockney.worker.catalogue import load, matches, split_name
from hockney.worker.machine_model import Model, load_model

_GAIN_MIN = 5e-4  # less is printed as 0.0 %
_RANGES = "‡: ranges, as figures of the fitted run are. For 95 % intervals measure it for longer."
_ALONE = "every pair is as fast as these two ranks alone; memory, NIC and switch are never full."
_TOO_SLOW = 0.25  # errors above contradict that a model is optimistic
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

    `effects` and `tolerances` are of the changed models, as `rates`; None: not asked for. The times are then their
    periods. `intervals_s`: how long intervals take, if there was no time for them.
    """

    case: Case
    changes: Sequence[str]
    missing: dict[Point, str]
    predictions: Sequence[Prediction] = ()
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
    why: list[HockneyError] = []
    for summary in reversed(results.runs()):
        try:
            fits = _fits(results.run(summary.id), transports)
        except HockneyError as error:
            why.append(error)
            continue
        if any(fit.sizes_bytes[0] <= 64 for fit in fits):  # shorter messages take as long
            return fits
        newest = newest or fits
    if not newest and why:
        raise next((error for error in why if not isinstance(error, UsageError)), why[0])
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
    model = model_of(fit, plan.points)
    return Case(model, plan, {f"sim@{machine}": model}, fit, text, checked)


def predicted(
    case: Case, changes: Sequence[Change], *, sensitivity: bool, tolerance: bool, as_json: bool, draws_s: float
) -> Predicted:
    """The times of a case, and the requested analyses; without intervals, if draws_s is too short for them.

    Raises UsageError for a change without effect.
    """
    plan, fit, after, deadline_ns = case.plan, case.fit, changed(case.models, changes), case.plan.deadline_ns
    done = Predicted(case, [change.word for change in changes], {each.point: each.reason for each in plan.skipped})
    if deadline_ns is not None and (sensitivity or tolerance):
        raise UsageError("rate=max searches a rate: leave out --sensitivity and --tolerance, or name a rate")
    done.missing |= {} if fit is None else fit.missing(plan.points)
    points = [point for point in plan.points if point not in done.missing]
    times_on: Callable[..., ModelTimes] = times_of
    if deadline_ns is not None:
        times_on = functools.partial(search_on_models, deadline_ns=deadline_ns, changes=changes)
    with contextlib.closing(ProgressDisplay()) as display:
        if fit is not None and not as_json:
            display.say(f"Predicting {counted(len(plan.points), 'point')} on {case.model.name}, {fit.title}.")
        tick_of = display.simulating
        done.predictions, times, takes_s = predict(points, case.models, fit, times_on, tick_of=tick_of, draws_s=draws_s)
        done.missing |= times.failed
        done.intervals_s = takes_s if takes_s > draws_s else None
        done.rates = None if deadline_ns is None else HighestRates(deadline_ns, tuple(times.rates))
        new_ns = times.time_ns
        if changes and deadline_ns is None:
            new_ns = times_of(points, after, tick=tick_of("changed", len(points))).time_ns
            done.predictions = [replace(row, changed_ns=new_ns.get(row.point)) for row in done.predictions]
        if sensitivity:
            tick = tick_of("sensitivity", len(new_ns) * len(improvements(after.values())))
            done.effects = effects_of(new_ns, after, tick=tick)
        if tolerance:
            tick = tick_of("tolerance", len(new_ns))
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
    fitted = [(each, each.case.fit, each.case.checked) for each in done if each.case.fit is not None]
    if not fitted:
        return []
    checked = [each for _, _, each in fitted if each is not None]
    is_optimistic = all(row.error <= _TOO_SLOW for each in checked for row in each.rows)
    word, network = "Optimistic" if is_optimistic else "Assumed", fitted[0][0].case.network
    limits = f"memory and NIC are never full. The network is {network}."
    notes = [f"{word}: {limits if network else f'{_ALONE} Name a network: --topology, --link.'}"]
    is_range = any(fit.figures.has_ranges for _, fit, _ in fitted)
    bounds = "range" if is_range else "interval"
    has_bounds = any(row.low_ns is not None for each, _, _ in fitted for row in each.predictions)
    errors = [f"the model itself was off by {'; '.join(map(_error_text, checked))}"] if checked else []
    if known := [f"the {bounds} has only the noise of the input"] * has_bounds + errors:
        notes.append(f"T{'; '.join(known)[1:]}.")
    if unknown := [fit.transport for _, fit, each in fitted if each is None]:
        notes.append(f"How far off such models are: {typed('predict', '--validate', '-t', ','.join(unknown))}")
    if takes_s := max(each.intervals_s or 0.0 for each, _, _ in fitted):
        enough = format_duration_s(math.ceil(1.5 * takes_s * len(done)))
        notes.append(f"For {bounds}s: --time {enough.replace(' min', 'm').replace(' ', '')}.")
    return notes + [_RANGES] * (is_range and has_bounds)


def _error_text(checked: Validation) -> str:
    """`10% in the median, up to 30% too fast and 1.9 times too slow on tcp (run 3)`: compared with measurements."""
    ratios = [1 + row.error for row in checked.rows]
    worst = (1 / max(1e-9, min(ratios)), max(ratios))
    fast, slow = (f"{ratio:.1f} times" if ratio >= 1.5 else f"{max(0.0, ratio - 1):.0%}" for ratio in worst)
    most = f"up to {fast} too fast and {slow} too slow"
    return f"{checked.median_error:.0%} in the median, {most} on {checked.transport} (run {checked.run})"


def _print_case(predicted: Predicted, *, first: bool) -> None:
    case = predicted.case
    with_changes = f", with {' '.join(predicted.changes)}" if predicted.changes else ""
    render.title(f"{case.plan.suite} on {case.model.name} ({case.model.machine.title}){with_changes}", first=first)
    if predicted.rates is not None:
        render.texts(rates_table(predicted.rates, more="Searched in virtual time."), bold="events")
    elif predicted.predictions:
        _print_times(predicted.predictions)
    else:
        render.note("No time predicted: the reason is below.")
    if predicted.effects is not None:
        _print_effects(predicted.effects)
    if predicted.tolerances is not None:
        _print_tolerances(predicted.tolerances)


def print_missing(reasons: Mapping[Point, str]) -> None:
    """Each reason once, after the curves whose points have it."""
    for reason in dict.fromkeys(reasons.values()):
        names = dict.fromkeys(_name(point) for point, why in reasons.items() if why == reason)
        render.item(reason, head="; ".join(names))


def _print_times(rows: Sequence[Prediction]) -> None:
    bounds = bounds_column(rows, attrgetter("time_ns", "low_ns", "high_ns"), format_ns)
    columns: dict[TableColumn, Callable[[Prediction], str]] = {
        WHAT[0]: lambda row: _name(row.point),
        WHAT[1]: lambda row: size_text(row.point),
        TableColumn("predicted", right=True, style="bold"): lambda row: format_ns(row.time_ns),
        **{TableColumn(title, right=True): cell for title, cell in bounds.items()},
        TableColumn("events", right=True, optional=True): _events,
        TableColumn("rate", right=True, optional=True): lambda row: known_text(row.bytes_per_s, format_rate),
        TableColumn("changed", right=True): lambda row: known_text(row.changed_ns, format_ns),
        TableColumn("change", right=True): _change,
        TableColumn("outside the fit", wrap=True): _outside,
    }
    render.records({column: text for column, text in columns.items() if any(map(text, rows))}, rows)


def _events(row: Prediction) -> str:
    is_rate = row.point.traits.events and not row.point.rate_hz and row.time_ns > 0
    return format_messages(1e9 / row.time_ns) if is_rate else ""


def _outside(prediction: Prediction) -> str:
    """`above 1 MiB`; "" within the fit."""
    size, above = prediction.outside_bytes, prediction.point.bytes > (prediction.outside_bytes or 0)
    return "" if size is None else f"{'above' if above else 'below'} {format_bytes(size)}"


def _change(row: Prediction) -> str:
    """`-31.0%`; a pattern that takes no time has no change in per cent."""
    if row.changed_ns is None or row.time_ns <= 0:
        return "" if row.changed_ns is None else "-"
    change = row.changed_ns / row.time_ns - 1
    return f"{change:+.1%}" if abs(change) >= _GAIN_MIN else "0.0%"


def _name(point: Point) -> str:
    """`pairs, 2 ranks (apart)`: a curve with the variant of the model."""
    variant = split_name(point.transport)[2]
    return point.text() + (f" ({variant})" if variant else "")


def _print_effects(effects: Sequence[Effect]) -> None:
    """A row for each parameter that matters, the most important first."""

    def cells(effect: Effect) -> list[str]:
        point, most = max(effect.gains.items(), key=itemgetter(1))
        change = f"{_parameter(effect)} {'doubled' if PARAMETERS[effect.change.key].is_rate else 'halved'}"
        return [change, f"{effect.gain:.1%}", f"{most:.1%}", f"{_name(point)} {size_text(point)}"]

    columns = [TableColumn("change", wrap=True, key=True), TableColumn("gain", right=True, style="bold")]
    if any(len(effect.gains) > 1 for effect in effects):
        columns += [TableColumn("largest gain", right=True), TableColumn("of", wrap=True)]
    effective = [effect for effect in effects if max(map(abs, effect.gains.values()), default=0.0) >= _GAIN_MIN]
    render.title("Gain of each change")
    render.table(columns, [cells(effect)[: len(columns)] for effect in effective])
    if idle := [_parameter(effect) for effect in effects if effect not in effective]:
        render.note(f"No effect: {', '.join(idle)}.")


def _parameter(effect: Effect) -> str:
    return f"{PARAMETERS[effect.change.key].title} ({effect.change.key})"


def _print_tolerances(tolerances: Sequence[Tolerances]) -> None:
    """A table for each way to be slower, with a row for each point: how much makes it 1, 2 and 5 % slower."""
    kinds: dict[str, tuple[Callable[[Tolerances], Tolerance], Callable[[float], str]]] = {
        "How much latency can be added to each message": (attrgetter("latency"), format_ns),
        "How much bandwidth can be lost": (attrgetter("bandwidth"), "{:.1%}".format),
    }
    columns = [*WHAT, *(TableColumn(f"{slowdown:.0%} slower", right=True) for slowdown in SLOWDOWNS)]
    for title, (tolerance_of, text) in kinds.items():
        render.title(title)
        limits = ((row.point, tolerance_of(row).limits.values()) for row in tolerances)
        render.table(
            columns, ([_name(of), size_text(of), *(known_text(x, text, "any") for x in to)] for of, to in limits)
        )


# ---- JSON -----------------------------------------------------------------------------------------------------------


def predicted_json(predicted: Predicted) -> dict[str, Any]:
    """The same values, and the curves of tolerances."""
    record, of = predicted.case.model.record, predicted.case.checked
    document: dict[str, Any] = {
        "suite": predicted.case.plan.suite,
        "model": {name: record[name] for name in ("name", "title", "key", "exact")},
        "changes": predicted.changes,
        "predictions": predicted.predictions if predicted.rates is None else (),
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
