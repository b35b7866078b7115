"""Models of machines in the tables of their reports: which published figures they used, and how far off they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hockney.archive import Published, machines
from hockney.report.classic.values import table_section
from hockney.report.document import Section
from hockney.results.runs import Run

Record = Mapping[str, Any]
"""The stored record of a model (worker/machine_model.py)."""


def models_of(run: Run) -> Mapping[str, Record]:
    """The models of a run by the names of their transports."""
    models: Mapping[str, Record] = run.facts.get("models", {})
    return models


def is_model(transport: str) -> bool:
    """Whether it is a model of a machine."""
    return transport.startswith("sim@")


def why_not(model: Record, figure: Published) -> str | None:
    """Why a model has no value for a published figure, or None."""
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


def is_of(model: Record, figure: Published) -> bool:
    """Whether the model rebuilds the machine of a published figure."""
    machine = machines().get(model["machine"] or "")
    return machine is not None and figure.system in machine.systems


def is_used(model: Record, figure: Published) -> bool:
    """Whether the model's fit used a published figure."""
    return any(figure.matches(row["where"]) for row in model["used"])


def model_tables(models: Iterable[Record]) -> list[Section]:
    """The parameters of models with their sources, the figures they used, and the facts read from the report."""
    records = list(models)
    tables: dict[tuple[str, tuple[str, ...]], Sequence[tuple[str, ...]]] = {
        ("The model: its parameters, times in ns", ("of", "parameters", "source")): _parameters(records),
        ("Published figures that the model used", ("figures", "for")): [
            (_where(row["where"]), row["for"]) for row in _rows(records, "used")
        ],
        ("Structure that was read from the report, and is no number", ("what", "read from")): [
            (_structure(row), row["read_from"]) for row in _rows(records, "structure")
        ],
    }
    return [table_section(title, columns, rows) for (title, columns), rows in tables.items() if rows]


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
