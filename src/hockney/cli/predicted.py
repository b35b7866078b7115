"""Predictions as tables and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.analysis.predict.change import PARAMETERS
from hockney.analysis.predict.prediction import Prediction
from hockney.analysis.predict.sensitivity import Effect
from hockney.analysis.predict.tolerance import SLOWDOWNS, Tolerance
from hockney.cli import render
from hockney.cli.changes import point_json
from hockney.cli.curves import format_interval, name_of, size_text
from hockney.cli.render import Column
from hockney.measure.on_model import ModelTimes
from hockney.measure.plan import Plan
from hockney.measure.predict import Tolerances
from hockney.model import Point
from hockney.units import format_bytes, format_ns
from hockney.worker.catalogue import split_name
from hockney.worker.machine_model import Model

_GAIN_MIN = 5e-4  # less is printed as 0.0 %
_WHAT = Column("what", key=True, wrap=True)
_SIZE = Column("size", right=True, key=True)


@dataclass(frozen=True)
class Predicted:
    """What is shown: times on a model, after `changes` of it, too, and why points have none.

    `effects` and `tolerances` are of the changed model; None: not asked for.
    """

    model: Model
    suite: str
    predictions: Sequence[Prediction]
    missing: Mapping[Point, str]
    changes: Sequence[str] = ()
    changed_ns: Mapping[Point, float] | None = None
    effects: Sequence[Effect] | None = None
    tolerances: Sequence[Tolerances] | None = None
    assumptions: Sequence[str] = ()


def of_model(plan: Plan, times: ModelTimes) -> tuple[list[Prediction], dict[Point, str]]:
    """The predictions on a model that is given, so that they have no interval; and why points have none."""
    known = [Prediction(point, times.time_ns[point]) for point in plan.points if point in times.time_ns]
    return known, {skipped.point: skipped.reason for skipped in plan.skipped} | times.failed


# ---- tables ---------------------------------------------------------------------------------------------------------


def print_predicted(predicted: Predicted, *, first: bool = True) -> None:
    """The predictions, then what else was asked for."""
    model = predicted.model
    with_changes = f", with {' '.join(predicted.changes)}" if predicted.changes else ""
    render.title(f"{predicted.suite} on {model.name} ({model.machine.title}){with_changes}", first=first)
    _print_times(predicted)
    if predicted.effects is not None:
        _print_effects(predicted.effects)
    if predicted.tolerances is not None:
        _print_tolerances(predicted.tolerances)
    if predicted.missing:
        render.title("Not predicted")
        for reason in dict.fromkeys(predicted.missing.values()):
            names = dict.fromkeys(_name(point) for point, why in predicted.missing.items() if why == reason)
            render.item(reason, head="; ".join(names))
    for assumption in predicted.assumptions:
        render.note(assumption)


def _print_times(predicted: Predicted) -> None:
    columns = [
        _WHAT,
        _SIZE,
        Column("predicted", right=True, style="bold"),
        Column("95 % interval", right=True),
        Column("changed", right=True),
        Column("change", right=True),
        Column("outside the fit", wrap=True),
    ]
    rows = [_cells(prediction, predicted.changed_ns) for prediction in predicted.predictions]
    shown = [place for place in range(len(columns)) if place < 3 or any(row[place] for row in rows)]
    render.table([columns[place] for place in shown], ([row[place] for place in shown] for row in rows))


def _cells(prediction: Prediction, changed_ns: Mapping[Point, float] | None) -> list[str]:
    point, interval = prediction.point, ""
    if prediction.low_ns is not None:
        interval = format_interval(prediction.low_ns, prediction.high_ns)
    new = ["", ""]
    if changed_ns is not None and point in changed_ns:
        new = [format_ns(changed_ns[point]), _percent(changed_ns[point], prediction.time_ns)]
    return [*_names(point), format_ns(prediction.time_ns), interval, *new, _outside(prediction)]


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


def _names(point: Point) -> list[str]:
    return [_name(point), size_text(point)]


def _name(point: Point) -> str:
    """`pairs, 2 ranks (apart)`: a curve with the variant of the model."""
    variant = split_name(point.transport)[2]
    return name_of(point) + (f" ({variant})" if variant else "")


def _print_effects(effects: Sequence[Effect]) -> None:
    """A row for each parameter that matters, the most important first."""
    render.title("What each parameter gains")
    columns = [Column("change", wrap=True, key=True), Column("gain", right=True, style="bold")]
    columns += [Column("largest gain", right=True), Column("of", wrap=True)]
    has_largest = any(len(effect.gains) > 1 for effect in effects)
    rows = [_effect_cells(effect) for effect in effects if _matters(effect)]
    render.table(columns if has_largest else columns[:2], (row if has_largest else row[:2] for row in rows))
    idle = [_parameter(effect) for effect in effects if not _matters(effect)]
    if idle:
        render.note(f"No effect: {', '.join(idle)}.")


def _matters(effect: Effect) -> bool:
    return max(map(abs, effect.gains.values()), default=0.0) >= _GAIN_MIN


def _parameter(effect: Effect) -> str:
    key = effect.change.key
    return f"{PARAMETERS[key].title} ({key})"


def _effect_cells(effect: Effect) -> list[str]:
    point = max(effect.gains, key=lambda each: effect.gains[each])
    done = "doubled" if PARAMETERS[effect.change.key].is_rate else "halved"
    gains = f"{effect.gain:.1%}", f"{effect.gains[point]:.1%}"
    return [f"{_parameter(effect)} {done}", *gains, " ".join(filter(None, _names(point)))]


def _print_tolerances(tolerances: Sequence[Tolerances]) -> None:
    """Two tables with a row for each point: what makes it 1, 2 and 5 % slower."""
    columns = [_WHAT, _SIZE, *(Column(f"{slowdown:.0%} slower", right=True) for slowdown in SLOWDOWNS)]
    render.title("How much latency can be added to each message")
    render.table(columns, ([*_names(row.point), *_limits(row.latency, format_ns)] for row in tolerances))
    render.title("How much bandwidth can be lost")
    rows = ([*_names(row.point), *_limits(row.bandwidth, lambda lost: f"{lost:.1%}")] for row in tolerances)
    render.table(columns, rows)


def _limits(tolerance: Tolerance, text: Callable[[float], str]) -> list[str]:
    return ["any" if limit is None else text(limit) for limit in tolerance.limits.values()]


# ---- JSON -----------------------------------------------------------------------------------------------------------


def predicted_json(predicted: Predicted) -> dict[str, Any]:
    """The same values, and the curves of tolerances."""
    record, changed_ns = predicted.model.record, predicted.changed_ns or {}
    document = {
        "suite": predicted.suite,
        "model": {name: record[name] for name in ("name", "title", "key", "exact")},
        "changes": list(predicted.changes),
        "predictions": [
            {**vars(row), "point": point_json(row.point), "changed_ns": changed_ns.get(row.point)}
            for row in predicted.predictions
        ],
        "not_predicted": [
            {"point": point_json(point), "reason": reason} for point, reason in predicted.missing.items()
        ],
        "assumptions": list(predicted.assumptions),
    }
    if predicted.effects is not None:
        document["sensitivity"] = [_effect_json(effect) for effect in predicted.effects]
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


def _effect_json(effect: Effect) -> dict[str, Any]:
    return {
        "parameter": effect.change.key,
        "factor": effect.change.factor,
        "gain": effect.gain,
        "gains": [{"point": point_json(point), "gain": gain} for point, gain in effect.gains.items()],
    }


def _tolerance_json(tolerance: Tolerance, added: str) -> dict[str, Any]:
    return {
        "limits": [{"slowdown": slowdown, added: limit} for slowdown, limit in tolerance.limits.items()],
        "curve": [[slowdown, each] for each, slowdown in tolerance.curve],
    }
