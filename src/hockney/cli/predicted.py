"""Predictions as tables and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hockney.analysis.predict.change import PARAMETERS
from hockney.cli import render
from hockney.cli.cases import Predicted
from hockney.cli.changes import point_json
from hockney.cli.curves import format_interval
from hockney.cli.render import TableColumn
from hockney.measure.predict import Prediction
from hockney.measure.what_if import SLOWDOWNS, Effect, Tolerance, Tolerances
from hockney.model import Point
from hockney.report.words import size_text
from hockney.units import format_bytes, format_ns
from hockney.worker.catalogue import split_name

_GAIN_MIN = 5e-4  # less is printed as 0.0 %
WHAT = (TableColumn("what", key=True, wrap=True), TableColumn("size", right=True, key=True))
"""The columns of predictions."""


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
    if predicted.predictions:
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
            {**vars(row), "point": point_json(row.point), "changed_ns": predicted.changed_ns.get(row.point)}
            for row in predicted.predictions
        ],
        "not_predicted": [
            {"point": point_json(point), "reason": reason} for point, reason in predicted.missing.items()
        ],
        "assumptions": predicted.case.assumptions,
    }
    if predicted.effects is not None:
        document["sensitivity"] = [
            {
                "parameter": effect.change.key,
                "factor": effect.change.factor,
                "gain": effect.gain,
                "gains": [{"point": point_json(point), "gain": gain} for point, gain in effect.gains.items()],
            }
            for effect in predicted.effects
        ]
    if predicted.tolerances is not None:
        document["tolerance"] = [
            {
                "point": point_json(row.point),
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
