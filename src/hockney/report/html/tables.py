"""Text tables of the page: the data sheet, and the facts about the run and its machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hockney.report.html.material import Material
from hockney.report.html.summary import utc
from hockney.report.sheet import COLUMNS, MARKS, NOTHING, Column, Sheet, Value, marks_text
from hockney.report.words import SHORT_MARK, launches_text, spread_text
from hockney.results.runs import Run
from hockney.units import format_bytes, format_ns, format_share

_FACTS_MAX = 400  # characters of a value


@dataclass(frozen=True)
class Cell:
    """A figure and its interval; `is_best`: of its column, or its interval overlaps with that one's."""

    text: str
    spread: str = ""
    is_best: bool = False


@dataclass(frozen=True)
class SheetTable:
    """The data sheet: `rows` are names with their cells."""

    columns: tuple[str, ...]
    definitions: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[Cell, ...]], ...]
    notes: tuple[str, ...]


def sheet_table(material: Material) -> SheetTable | None:
    """None for a run without a data sheet."""
    sheet = material.sheet
    if sheet is None or not sheet.rows:
        return None
    values = {column.key: [row.values[column.key] for row in sheet.rows] for column in COLUMNS}
    rows = []
    floors = {row.floor_ns for row in sheet.rows}
    floor_ns = floors.pop() if len(floors) == 1 else None
    if floor_ns:
        rows.append(("floor", "", (Cell(format_ns(floor_ns)), *[Cell("")] * (len(COLUMNS) - 1))))
    for row in sheet.rows:
        cells = tuple(_cell(column, row.values[column.key], values[column.key]) for column in COLUMNS)
        name = row.name + (f" ({row.state})" if row.state != sheet.state else "") + ("*" if row.oversubscribed else "")
        rows.append((name, row.library, cells))
    shown = "".join(name + "".join(cell.text for cell in cells) for name, _, cells in rows)
    titles, definitions = zip(*((column.title, column.definition) for column in COLUMNS), strict=True)
    return SheetTable(titles, definitions, tuple(rows), tuple(_notes(sheet, material.run, shown)))


def _cell(column: Column, value: Value | None, of_column: Iterable[Value | None]) -> Cell:
    if value is None:
        return Cell(NOTHING)
    text = column.text(value) + SHORT_MARK * value.is_short
    if column.is_fitted:  # to know how sure it is, see the curve
        return Cell(text)
    if not value.has_interval:
        return Cell(text, spread_text(value.relative))
    known = [other for other in of_column if other is not None and other.has_interval]
    if column.unit == "bytes/s":
        is_best = value.high >= max(known, key=lambda other: other.value).low
    else:
        is_best = value.low <= min(known, key=lambda other: other.value).high
    return Cell(text, spread_text(value.relative), is_best)


def _notes(sheet: Sheet, run: Run, shown: str) -> Iterable[str]:
    yield f"Median with its 95 % confidence interval, {launches_text(run)}."
    total = sum(state.measurements for state in sheet.states)
    if sheet.state is not None and total:
        count = sum(state.measurements for state in sheet.states if state.name == sheet.state)
        yield f"Machine state: {sheet.state}, {format_share(count / total)} of all measurements."
    for column in COLUMNS:
        yield f"{column.title}: {column.definition}."
    marks = marks_text(shown, {**MARKS, SHORT_MARK: "fewer than 8 events in a row, so start and end weigh in the time"})
    if marks:
        yield f"{marks}."


# ---- the environment ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Environment:
    """Facts about the run: pairs of a dotted name and its value, launches, warnings, and series without figures."""

    facts: tuple[tuple[str, str], ...]
    launches: tuple[tuple[str, ...], ...]
    warnings: tuple[tuple[str, str], ...]
    endings: tuple[tuple[str, int, str], ...]


def environment_of(material: Material) -> Environment:
    """Of the first run."""
    run = material.run
    plan = {name: value for name, value in run.info.plan.items() if not isinstance(value, dict | list)}
    left_out = {"traits", "topology", "taken_unix_s", "machine_id"}
    facts = {name: value for name, value in run.facts.items() if name not in left_out}
    launches: dict[tuple[str, ...], int] = {}
    for launch in run.launches.values():
        key = (
            launch.transport,
            launch.library,
            str(launch.ranks),
            ", ".join(dict.fromkeys(launch.hosts)),
            ", ".join(map(str, launch.cpus[:64])) if launch.cpus and min(launch.cpus) >= 0 else "unknown",
            " ".join(launch.argv)[:_FACTS_MAX],
        )
        launches[key] = launches.get(key, 0) + 1
    endings: dict[tuple[str, str], int] = {}
    for series in run.series:
        if series.status.value in ("failed", "skipped"):
            key_of = (f"{series.status.value}, {series.point.transport}", series.reason or "no reason is known")
            endings[key_of] = endings.get(key_of, 0) + 1
    started = {"run.started": utc(run.info.started_unix_s), "run.seed": str(run.info.seed)}
    return Environment(
        facts=(*started.items(), *_flat({"plan": plan}), *_flat(facts)),
        launches=tuple((*key, str(count)) for key, count in launches.items()),
        warnings=tuple((warning.cause, warning.remedy) for warning in run.warnings),
        endings=tuple((what, count, why) for (what, why), count in endings.items()),
    )


def _flat(values: Mapping[str, Any], place: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        key = f"{place}.{name}".lstrip(".")
        if isinstance(value, Mapping):
            yield from _flat(value, key)
        elif value not in (None, "", [], ()):
            yield key, _value(name, value)[:_FACTS_MAX]


def _value(name: str, value: Any) -> str:
    if name.endswith("_bytes") and isinstance(value, int):
        return format_bytes(value)
    if isinstance(value, list | tuple):
        return ", ".join(_value("", each) for each in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value(key, each)}" for key, each in value.items() if each is not None)
    return str(value)
