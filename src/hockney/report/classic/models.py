"""Models of machines in the tables of their reports: which published figures they used, and how far off they are."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hockney.archive import Published, machines
from hockney.model import split_placed
from hockney.report.classic.values import NOTHING, Cell, ClassicTable, Measured, plain_table
from hockney.results.runs import Run

Record = Mapping[str, Any]
"""The stored record of a model (worker/machine_model.py)."""


def models_of(run: Run) -> Mapping[str, Record]:
    """The models of a run by the names of their transports."""
    models: Mapping[str, Record] = run.facts.get("models", {})
    return models


def plain_name(transport: str) -> str:
    """The name of a transport without its placement, and of a model's without its variant."""
    transport = split_placed(transport)[0]
    return transport.partition(":")[0] if is_model(transport) else transport


def is_model(transport: str) -> bool:
    """Whether it is a model of a machine."""
    return transport.startswith("sim@")


def why_not(model: Record, figure: Published | None) -> str | None:
    """Why a model has no value for a published figure, or None."""
    if figure is None:
        return None
    for row in model["not_modelled"]:
        if figure.matches(row["where"]):
            return f"not modelled: {row['why']}"
    machine = machines().get(model["machine"] or "")
    if machine is not None and machine.report == figure.report and figure.system not in machine.systems:
        return f"a figure of the {figure.system}; the model is of the {model['title']}"
    return None


def way_of(model: Record, pair: tuple[int, int]) -> tuple[int, int] | None:
    """The hops between two ranks of a torus and their changes of direction; None elsewhere."""
    torus = model["torus"]
    if torus is None:
        return None
    source, target = (torus["nodes"][rank] for rank in pair)
    steps = []
    for length in torus["dimensions"]:
        apart = (source - target) % length
        steps.append(min(apart, length - apart))
        source, target = source // length, target // length
    return sum(steps), max(0, sum(step > 0 for step in steps) - 1)


def judged(model: Record, figure: Published | None, cell: Measured) -> Measured:
    """The cell, with whether the model rebuilds the machine of its published figure, and used that for its fit."""
    machine = machines().get(model["machine"] or "")
    if figure is None or machine is None or figure.system not in machine.systems:
        return cell
    return replace(cell, model=True, reproduced=any(figure.matches(row["where"]) for row in model["used"]))


def model_tables(models: Iterable[Record]) -> list[ClassicTable]:
    """The parameters of models with their sources, the figures they used, and the facts read from the report."""
    records = list(models)
    used = [(_where(row["where"]), row["for"]) for row in _rows(records, "used")]
    structure = [(_structure(row), row["read_from"]) for row in _rows(records, "structure")]
    not_modelled = [(_where(row["where"]), row["why"]) for row in _rows(records, "not_modelled")]
    tables = [
        plain_table("model", "The model: its parameters, times in ns", "of|parameters|source", _parameters(records)),
        plain_table(
            "model-used", "Published figures that the model used: they count as reproduced", "figures|for", used
        ),
        plain_table(
            "model-structure", "Structure that was read from the report, and is no number", "what|read from", structure
        ),
        plain_table("model-not", "Not modelled", "figures|why", not_modelled),
    ]
    return [table for table in tables if table.rows]


def _rows(records: Sequence[Record], key: str) -> list[Any]:
    """The rows of all models under a key, each once."""
    rows: list[Any] = []
    for record in records:
        rows += [row for row in record[key] if row not in rows]
    return rows


def _parameters(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """The parameters of each table of the models' files with their source; of a variant those that it changes."""
    tables: dict[tuple[str, str], list[str]] = {}
    shown: list[Any] = []
    for record in records:
        variant = f"{record['variant']}: " if record["variant"] and shown else ""
        new = [row for row in record["parameters"] if row not in shown]
        for key, value, source in new:
            table, _, name = key.rpartition(".")
            tables.setdefault((f"{variant}{table}", source), []).append(f"{name} {value}")
        shown += new
    return [(table, "; ".join(texts), source) for (table, source), texts in tables.items()]


def _where(where: Mapping[str, Any]) -> str:
    """`Com-1.1, Com-1.4`, `Com-1.3, processors 62`."""
    parts = []
    for name, value in where.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        parts.append(text if name in ("benchmark", "metric", "system") else f"{name} {text}")
    return ", ".join(parts)


def _structure(row: Mapping[str, Any]) -> str:
    """A structure as a sentence, or the points that a variant is for."""
    if "what" in row:
        return str(row["what"])
    parts = [", ".join(row["pattern"]) or "all patterns"]
    parts += [f"{', '.join(map(str, row['ranks']))} ranks"] if row["ranks"] else []
    parts += [f"{name}={value}" for name, value in row["options"].items()]
    return f"{', '.join(parts)}: variant {', '.join(name or 'plain' for name in row['variants'])}"


def _off(cells: Sequence[Measured]) -> tuple[Cell, ...]:
    """The number of figures, and their median and largest error."""
    errors = [100 * abs(cell.error or 0.0) for cell in cells]
    if not errors:
        return ("0", NOTHING, NOTHING)
    return (str(len(errors)), *(Measured("%", of(errors), computed=True) for of in (statistics.median, max)))


def errors_table(tables: Sequence[ClassicTable]) -> list[ClassicTable]:
    """How far the models are off the published figures that they did not use, by table; [] without any.

    A figure that a table shows twice, since its report can be read in two ways, counts with the nearer one.
    """
    rows = []
    for table in tables:
        nearest: dict[int, Measured] = {}
        for row in table.rows:
            figure = next((id(cell) for cell in row if isinstance(cell, Published)), id(row))
            for cell in row:
                if isinstance(cell, Measured) and cell.error is not None:
                    nearest[figure] = min(nearest.get(figure, cell), cell, key=lambda each: abs(each.error or 0.0))
        cells = list(nearest.values())
        if cells:
            predicted, used = ([cell for cell in cells if cell.reproduced is used] for used in (False, True))
            rows.append((re.split("[,:]", table.title)[0], *_off(predicted), *_off(used)))
    heads = "table|figures|median, %|largest, %|reproduced|median, %|largest, %"
    note = "Errors count only on published figures that the model did not use. Reproduced: it used the figure."
    return [plain_table("errors", "How far the model is off", heads, rows, note)] if rows else []
