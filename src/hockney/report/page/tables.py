"""Tables of a run as texts: the data sheet, times under load, and the facts about the run and its machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hockney.analysis.impact import impacts_of
from hockney.model import PointStatus
from hockney.report.document import Block, Bullet, Title
from hockney.report.impacts import background_text, impact_table
from hockney.report.page.material import Material
from hockney.report.page.summary import utc
from hockney.report.sheet import MARKS, OTHER_STATE, Row, Sheet, SheetColumn, Value, marks_text
from hockney.report.table import Cell, TextTable, text_rows
from hockney.report.words import ROUGH, SHORT_MARK, hosts_text, launches_text, placement_text
from hockney.results.runs import Run
from hockney.units import format_bytes, format_ns, format_share

_FACTS_MAX = 400  # characters of a value


def sheet_table(material: Material) -> TextTable | None:
    """The data sheet; None for a run without one."""
    sheet = material.sheet
    if sheet is None or not sheet.rows:
        return None
    values = {column.key: [row.values[column.key] for row in sheet.rows] for column in sheet.columns}
    rows = []
    floors = {row.floor_ns for row in sheet.rows}
    floor_ns = floors.pop() if len(floors) == 1 else None
    if floor_ns:
        rows.append((Cell("floor"), Cell(format_ns(floor_ns)), *[Cell("")] * (len(sheet.columns) - 1)))
    for row in sheet.rows:
        name = row.name + (f" ({row.state})" if row.state != sheet.state else "")
        rows.append((Cell(name), *(_cell(column, row, values[column.key]) for column in sheet.columns)))
    shown = [str(cell) for row in rows for cell in row]
    return TextTable(
        "Data sheet",
        ("transport", *(column.title for column in sheet.columns)),
        tuple(rows),
        notes=tuple(_notes(sheet, material.run, shown)),
        definitions=("", *(column.definition for column in sheet.columns)),
    )


def _cell(column: SheetColumn, row: Row, of_column: Iterable[Value | None]) -> Cell:
    value = row.values[column.key]
    text, bounds = column.texts(value)
    bounds += row.marks(column.key)
    if value is None or column.is_fitted:  # to know how sure a fit is, see the curve
        return Cell(text, bounds)
    known = [other for other in of_column if other is not None]
    if column.unit == "ns":
        is_best = value.low <= min(known, key=lambda other: other.value).high
    else:
        is_best = value.high >= max(known, key=lambda other: other.value).low
    return Cell(text, bounds, is_best and value.relative <= ROUGH)


def _notes(sheet: Sheet, run: Run, shown: Iterable[str]) -> Iterable[str]:
    yield f"Median with its 95 % confidence interval, {launches_text(run)}."
    total = sum(state.measurements for state in sheet.states)
    if sheet.state is not None and total:
        count = sum(state.measurements for state in sheet.states if state.name == sheet.state)
        yield f"Machine state: {sheet.state}, {format_share(count / total)} of all measurements."
    for column in sheet.columns:
        yield f"{column.title}: {column.definition}."
    short = f"{SHORT_MARK}: fewer than 8 events in a row, so start and end weigh in the time"
    others = {OTHER_STATE: f"{OTHER_STATE}: in another machine state", SHORT_MARK: short}
    yield from filter(None, [marks_text(shown, {**MARKS, **others})])


# ---- under load -----------------------------------------------------------------------------------------------------


def load_table(material: Material) -> TextTable | None:
    """Times idle and under the background; None for a run without a point that was measured both ways."""
    run, reading = material.run, material.reading
    impacts = impacts_of(run) if reading is None else reading.impacts
    if impacts is None or not impacts.impacts:
        return None
    return replace(impact_table(impacts, material.name_of), lead=" ".join(_where(run)))


def _where(run: Run) -> Iterable[str]:
    """Who makes the traffic, and who is measured."""
    yield f"Background: {background_text(run)}."
    if run.info.plan["background"]["hosts"]:
        launches = (launch for launch in run.launches.values() if launch.transport not in run.harness)
        hosts = dict.fromkeys(host for launch in launches for host in launch.hosts)
        yield f"Measured: ranks on {hosts_text(list(hosts))}."
    elif placement := placement_text(run):
        yield f"Measured: {placement}"


# ---- the environment ------------------------------------------------------------------------------------------------


def environment_of(material: Material) -> Iterable[Block]:
    """What limits the figures of the first run, its series without figures, its launches, and facts about it."""
    run = material.run
    plan = {name: value for name, value in run.info.plan.items() if not isinstance(value, dict | list)}
    left_out = {"traits", "topology", "taken_unix_s", "machine_id"}
    facts = {name: value for name, value in run.facts.items() if name not in left_out}
    if run.warnings:
        yield Title("Limits of these figures")
        yield from (Bullet(warning.cause, (warning.remedy,)) for warning in run.warnings)
    endings = Counter(
        (f"{series.status.value}, {series.point.transport}", series.reason or "no reason is known")
        for series in run.series
        if series.status in (PointStatus.FAILED, PointStatus.SKIPPED)
    )
    if endings:
        yield Title("Failed and skipped")
        yield from (Bullet(f"{what} ({count}): {why}") for (what, why), count in endings.items())
    launches = Counter(
        (
            launch.transport,
            launch.library,
            str(launch.ranks),
            ", ".join(dict.fromkeys(launch.hosts)),
            ", ".join(map(str, launch.cpus[:64])) if launch.cpus and min(launch.cpus) >= 0 else "unknown",
            " ".join(launch.argv)[:_FACTS_MAX],
        )
        for launch in run.launches.values()
    )
    columns = ("transport", "library", "ranks", "hosts", "CPUs", "command", "launches")
    yield TextTable("Launches", columns, text_rows((*launch, str(n)) for launch, n in launches.items()))
    started = {"run.started": utc(run.info.started_unix_s), "run.seed": str(run.info.seed)}
    rows = (*started.items(), *_flat({"plan": plan}), *_flat(facts))
    yield TextTable("Machine and plan", ("fact", "value"), text_rows(rows), keys=(0, 1))


def _flat(values: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        key = f"{above}.{name}".lstrip(".")
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
