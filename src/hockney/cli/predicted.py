"""Predictions: a suite on a given model, or on machines fitted to a run; and next to measurements, to validate them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hockney.analysis.predict.change import Change, changed, improvements
from hockney.analysis.predict.fit import Fit, fit_machine
from hockney.analysis.predict.topology import parse_network
from hockney.cli.measuring import measuring
from hockney.cli.progress import ProgressDisplay
from hockney.cli.run_options import read_options
from hockney.errors import ExitCode, HockneyError, UsageError, unknown
from hockney.measure import run as running
from hockney.measure.overflow import overflows_of
from hockney.measure.plan import make_plan, planned, refuse_empty
from hockney.measure.predict import (
    ModelTimes,
    Validation,
    fit_to_check,
    model_of,
    newest_validation,
    predict,
    times_of,
    validate,
)
from hockney.measure.rates import search_on_models
from hockney.measure.what_if import Case, Predicted, effects_of, tolerances_of
from hockney.render.json import print_json
from hockney.render.text import show
from hockney.report.documents.prediction import validation_document, validation_json
from hockney.results.rates import HighestRates
from hockney.results.runs import Results, Run, open_results
from hockney.stats.fit import NoFit
from hockney.suites import Suite, load_suite
from hockney.units import RANKS_MAX, counted
from hockney.worker.catalogue import load, matches
from hockney.worker.machine_model import Model, load_model
from hockney.worker.points import RunOptions

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
    """A suite on the machine of each transport of a run; None: of the newest that shows any. Raises HockneyError."""
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
    in_file = fit.network if (topology or "").endswith(".toml") else {}
    links = [f"links of {link}"] if link else [] if "link" in in_file else ["links as fast as these two ranks"]
    buffers = ["TCP over ports with buffers"] if "switch" in in_file else []
    text = ", ".join((topology or "one switch", *links, *buffers)) if topology or link else ""
    catalogue, machine = load(libraries=()), fit.transport.replace(":", "-")  # a colon begins a variant of a model
    name = fit.transport if topology is None else f"{fit.transport} on {topology}"
    catalogue.add_model(f"sim@{machine}", Model.from_content(name, fit.content(RANKS_MAX)))
    plan = make_plan(suite, read_options({**words, "machine": machine}), catalogue)
    refuse_empty(plan, what="predict")
    model = model_of(fit, plan.points)
    return Case(model, plan, {f"sim@{machine}": model}, fit, text, checked)


def predicted(
    case: Case,
    changes: Sequence[Change],
    *,
    sensitivity: bool,
    tolerance: bool,
    as_json: bool,
    quiet: bool,
    draws_s: float,
) -> Predicted:
    """The times of a case, and the analyses asked for; no intervals, if draws_s is too short. Raises UsageError."""
    plan, fit, after, deadline_ns = case.plan, case.fit, changed(case.models, changes), case.plan.deadline_ns
    done = Predicted(case, [change.word for change in changes], {each.point: each.reason for each in plan.skipped})
    if deadline_ns is not None and tolerance:
        raise UsageError("rate=max searches a rate: leave out --tolerance, or name a rate")
    done.missing |= {} if fit is None else fit.missing(plan.points)
    points = [point for point in plan.points if point not in done.missing]
    times_on: Callable[..., ModelTimes] = times_of
    of_changed = times_of
    if deadline_ns is not None:
        times_on = functools.partial(search_on_models, deadline_ns=deadline_ns, changes=changes)
        of_changed = functools.partial(search_on_models, deadline_ns=deadline_ns, changes=())
    with contextlib.closing(ProgressDisplay(quiet=quiet)) as display:
        if fit is not None and not as_json:
            display.say(f"Predicting {counted(len(plan.points), 'point')} on {case.model.name}, {fit.title}.")
        tick_of = display.simulating
        done.predictions, times, takes_s = predict(points, case.models, fit, times_on, tick_of=tick_of, draws_s=draws_s)
        done.missing |= times.failed
        done.intervals_s = takes_s if takes_s > draws_s else None
        done.rates = None if deadline_ns is None else HighestRates(deadline_ns, tuple(times.rates))
        new_ns, measured = times.time_ns, times.measured
        if changes and deadline_ns is None:
            new = times_of(points, after, tick=tick_of("changed", len(points)))
            new_ns, measured = new.time_ns, new.measured
            done.predictions = [replace(row, changed_ns=new_ns.get(row.point)) for row in done.predictions]
        if any(model.machine.switch is not None for model in after.values()):
            tick = tick_of("overflow", len(measured))
            done.overflows = overflows_of(measured, after, is_searched=deadline_ns is not None, tick=tick)
        if sensitivity:
            tick = tick_of("sensitivity", len(new_ns) * len(improvements(after.values())))
            done.effects = effects_of(new_ns, after, of_changed, tick=tick)
        if tolerance:
            tick = tick_of("tolerance", len(new_ns))
            done.tolerances = tolerances_of(new_ns, after, with_curves=as_json, tick=tick)
    return done


# ---- validation ------------------------------------------------------------------------------------------------------


def show_validation(
    store: Path | None,
    reference: str | None,
    transports: Sequence[str],
    time_s: float | None,
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    """Validate a stored run, or without one measure it first; returns the exit code. Raises UsageError, StoreError."""
    if reference is not None:
        if time_s is not None:
            raise UsageError("--validate --from measures nothing: leave out --time")
        with open_results(store) as results:
            return _show(results.run(reference), transports, as_json=as_json, quiet=quiet)
    # The basic figures and the points that check a fit, in one suite: both then see the same machine.
    basics, checks = load_suite("basics"), load_suite("validate")
    both = {"series": (*basics.series, *checks.series), "time_s": basics.time_s + checks.time_s}
    suite = checks.model_copy(update=both)
    asked = RunOptions(tuple(transports), limits=suite.limits(time_s=time_s))
    plan, catalogue = planned(suite, asked)
    with measuring("predict", store, catalogue, quiet=quiet) as lab:
        outcome = running.measure(plan, lab)
        return _show(Run(lab.store, outcome.run_id), (), as_json=as_json, quiet=quiet)


def _show(run: Run, transports: Sequence[str], *, as_json: bool, quiet: bool) -> int:
    fits = [fit_to_check(run, name) for name in transports_of(run, transports)]
    with contextlib.closing(ProgressDisplay(quiet=quiet)) as display:
        done = [
            validate(run, fit, tick=display.simulating(fit.transport, len(fit.figures.others)))
            for fit in fits
            if not isinstance(fit, NoFit)
        ]
    if not any(each.rows or each.missing for each in done):
        reason = next((fit.reason for fit in fits if isinstance(fit, NoFit)), "it has no transport")
        reason = "it has no figures besides those that the fit uses" if done else reason
        raise HockneyError(
            f"run {run.id} cannot be validated: {reason}. Measure a new run", argv=("hockney", "predict", "--validate")
        )
    if as_json:
        print_json("predict", {"run": run.id, "validation": list(map(validation_json, done))})
    else:
        show(validation_document(run, done))
    return ExitCode.DONE if any(each.rows for each in done) else ExitCode.INCOMPLETE
