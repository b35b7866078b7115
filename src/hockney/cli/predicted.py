"""Predictions as a table and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hockney.analysis.predict import Prediction
from hockney.cli import render
from hockney.cli.changes import point_json
from hockney.cli.curves import format_interval, name_of, size_text
from hockney.cli.render import Column
from hockney.measure.on_model import ModelTimes
from hockney.measure.plan import Plan
from hockney.model import Point
from hockney.units import format_ns
from hockney.worker.catalogue import split_name
from hockney.worker.machine_model import Model


@dataclass(frozen=True)
class Predicted:
    """What is shown: predictions on a model, what they assume, and why points have none."""

    model: Model
    suite: str
    predictions: tuple[Prediction, ...]
    missing: dict[Point, str]
    assumptions: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: Model, plan: Plan, times: ModelTimes) -> Predicted:
        """Those of a plan on a model that is given, so that they have no interval."""
        missing = {skipped.point: skipped.reason for skipped in plan.skipped} | times.failed
        known = tuple(Prediction(point, times.time_ns[point]) for point in plan.points if point in times.time_ns)
        return cls(model, plan.suite, known, missing)


def print_predicted(predicted: Predicted) -> None:
    """A row for each point."""
    model = predicted.model
    render.title(f"{predicted.suite} on {model.name}: {model.machine.title}", first=True)
    rows = {prediction: _cells(prediction) for prediction in predicted.predictions}
    columns = [
        Column("what", key=True, wrap=True),
        Column("size", right=True, key=True),
        Column("predicted", right=True, style="bold"),
        Column("95 % interval", right=True),
        Column("outside the fit", wrap=True),
    ]
    shown = [place for place in range(len(columns)) if place < 3 or any(row[place] for row in rows.values())]
    render.table([columns[place] for place in shown], ([row[place] for place in shown] for row in rows.values()))
    if predicted.missing:
        render.title("Not predicted")
        for reason in dict.fromkeys(predicted.missing.values()):
            names = dict.fromkeys(_name(point) for point, why in predicted.missing.items() if why == reason)
            render.item(reason, head="; ".join(names))
    for assumption in predicted.assumptions:
        render.note(assumption)


def _name(point: Point) -> str:
    """`pairs, 2 ranks (apart)`: a curve with the variant of the model."""
    variant = split_name(point.transport)[2]
    return name_of(point) + (f" ({variant})" if variant else "")


def _cells(prediction: Prediction) -> list[str]:
    point = prediction.point
    interval = "" if prediction.low_ns is None else format_interval(prediction.low_ns, prediction.high_ns)
    return [_name(point), size_text(point), format_ns(prediction.time_ns), interval, prediction.outside or ""]


def predicted_json(predicted: Predicted) -> dict[str, Any]:
    """The same values."""
    record = predicted.model.record
    return {
        "suite": predicted.suite,
        "model": {name: record[name] for name in ("name", "title", "key", "exact")},
        "predictions": [{**vars(row), "point": point_json(row.point)} for row in predicted.predictions],
        "not_predicted": [
            {"point": point_json(point), "reason": reason} for point, reason in predicted.missing.items()
        ],
        "assumptions": list(predicted.assumptions),
    }
