"""Tables that are a grid of published figures: which point belongs to which row is said in the reports' TOML files.

A `[[table]]` has one or several `[[table.part]]`s, and gives them whatever they don't say themselves:

    where      which published figures (columns of the archive's file and their values)
    pattern    the pattern that measures it; the null transport is left out
    ranks      how many: a number, or the column that says it
    bytes      likewise; left out where the best of all sizes is wanted
    options    the pattern's options: "=VALUE", or the column that says it
    quantity   what the report prints (reading.QUANTITIES)
    best       take the best of all series that match
    line       "t0" or "r_inf": what one straight line through all sizes that match has
    scope      "intra-node" or "inter-node": where the ranks must be
    label      what a row is called, where a table has several parts

and of its own:

    keys       columns of the archive that make a row's place, with their titles
    derived    for rows that the report has not: a key as the first of these minus the others
    qualifiers options that make a column of their own wherever they differ
    counters   [title, sum, count]: a column with the quotient of two counters, in us, of the same measurements
    fastest    a second column with the fastest sample, which is what the report's program takes
    headed     rows with the same keys stand together, below their keys
    sorted     rows by their keys, wherever they come from; else those that the report has not come last
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from hockney.archive import Coordinate, Published, published
from hockney.model import Measurement
from hockney.report.classic.reading import (
    NOT_PLANNED,
    QUANTITIES,
    SEVERAL_STATES,
    Reading,
    blank,
)
from hockney.report.classic.values import Cell, Column, Measured, Table
from hockney.results.runs import Series
from hockney.stats.fit import NoFit, fit_line

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FOLDER = Path(__file__).parent
_INTER = "inter-node"
_ONE_HOST = "all ranks were on one host; `hockney run` measures between hosts with `--hosts`"
_HOSTS = "its ranks were on several hosts"
_NO_RATE = "the times do not show that they grow with the size"


@dataclass(frozen=True)
class Part:
    """Published figures of a table, and the points that measure them."""

    pattern: str
    where: Mapping[str, Coordinate] = field(default_factory=dict)
    ranks: int | str = 2
    bytes: int | str | None = None  # as Point calls it
    options: Mapping[str, str] = field(default_factory=dict)
    quantity: str = "time"
    best: bool = False
    line: str | None = None
    scope: str | None = None
    label: str | None = None

    @property
    def all_sizes(self) -> bool:
        """Whether it is a figure of all sizes together."""
        return self.best or self.line is not None


@dataclass(frozen=True)
class Layout:
    """A table as its file describes it."""

    name: str
    title: str
    keys: Mapping[str, str]
    parts: tuple[Part, ...]
    derived: Mapping[str, Sequence[str | int]] = field(default_factory=dict)
    qualifiers: Sequence[str] = ()
    counters: Sequence[tuple[str, str, str]] = ()
    notes: Sequence[str] = ()
    sorted: bool = False
    fastest: bool = False
    headed: bool = False


@functools.cache
def contents(report: str) -> dict[str, Any]:
    """The file of a report."""
    found: dict[str, Any] = tomllib.loads((_FOLDER / f"{report}.toml").read_text(encoding="utf-8"))
    return found


@functools.cache
def layouts(report: str) -> tuple[Layout, ...]:
    """The tables of a report that are a grid of published figures."""
    return tuple(_layout(row) for row in contents(report).get("table", ()))


def defaults(report: str) -> Mapping[str, Mapping[str, str]]:
    """Options that points leave out because they are the default, by pattern."""
    found: Mapping[str, Mapping[str, str]] = contents(report).get("defaults", {})
    return found


def _layout(row: Mapping[str, Any]) -> Layout:
    of_parts = {field.name for field in fields(Part)}
    shared = {name: value for name, value in row.items() if name in of_parts}
    parts = tuple(Part(**_merged(shared, part)) for part in row.get("part", ({},)))
    own = {name: value for name, value in row.items() if name not in of_parts and name != "part"}
    return Layout(parts=parts, **own)


def _merged(shared: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    return {**shared, **part, "where": {**shared.get("where", {}), **part.get("where", {})}}


@dataclass(frozen=True)
class _Line:
    """A row: a published figure, or a place that only this machine has."""

    part: Part
    place: Mapping[str, Coordinate]
    figure: Published | None


def make_table(layout: Layout, report: str, reading: Reading) -> Table:
    """The table with this run's figures."""
    figures = published(report)
    lines = [
        _Line(part, _place(part, figure), figure)
        for part in layout.parts
        for figure in figures
        if figure.matches(part.where)
    ]
    lines += _own_lines(layout, reading, lines)
    if layout.sorted:
        lines.sort(key=lambda line: _by_keys(layout, line))
    if layout.headed:
        places = list(dict.fromkeys(_by_keys(layout, line) for line in lines))
        lines.sort(key=lambda line: (places.index(_by_keys(layout, line)), layout.parts.index(line.part)))
    labels = _labels(layout, reading)
    rows = [_row(layout, line, reading, labels) for line in lines]
    columns = [Column(title) for title in layout.keys.values()]
    if any(part.label for part in layout.parts):
        columns.insert(len(columns) if layout.headed else 0, Column("what"))
    columns.append(Column("published", "published"))
    for label in labels or (("this machine",),):
        name = " ".join(label)
        columns.append(Column(name, "measured", label))
        more = [title for title, _, _ in layout.counters] + ["fastest"] * layout.fastest
        columns.extend(Column(f"{name}: {title}", "measured", (*label, title)) for title in more)
    units = dict.fromkeys(QUANTITIES[part.quantity].unit for part in layout.parts)
    title = f"{layout.title}, {' and '.join(units)}"
    heading = len(layout.keys) if layout.headed else 0
    return Table(layout.name, title, tuple(columns), tuple(rows), (*layout.notes, *_archive_notes(lines)), heading)


def _place(part: Part, figure: Published) -> dict[str, Coordinate]:
    """The place of a published figure, with the ranks and bytes that the report leaves out."""
    # Modes in our spelling, without a hyphen.
    place = {name: at.replace("non-", "non") if isinstance(at, str) else at for name, at in figure.at.items()}
    for name, wanted in (("ranks", part.ranks), ("bytes", part.bytes)):
        if isinstance(wanted, int):
            place[name] = wanted
        elif wanted is not None and wanted in figure.at:
            place[name] = figure.at[wanted]
    return place


def _own_lines(layout: Layout, reading: Reading, lines: Sequence[_Line]) -> list[_Line]:
    """Rows for measured points that the report does not have: fewer ranks, other sizes."""
    found: dict[tuple[Any, ...], _Line] = {}
    for part in layout.parts:
        keyed = [name for name in layout.keys if name not in ("bytes", part.bytes) or not part.all_sizes]
        taken = {(id(part), *(line.place.get(name) for name in keyed)) for line in lines if line.part is part}
        for series in reading.series(part.pattern):
            if not _literals_match(part, reading.options(series.point)) or not _in_scope(part, series):
                continue
            place = _own_place(layout, part, series, reading)
            is_named = part.all_sizes or series.point.bytes == part.bytes
            if part.label and not isinstance(part.ranks, str) and not is_named:
                continue  # the data sheet's own sizes only
            shown = (id(part), *(place.get(name) for name in keyed))
            if shown not in taken and reading.figure(series) is not None:
                found.setdefault(shown, _Line(part, place, None))
    return sorted(found.values(), key=lambda line: _by_keys(layout, line))


def _by_keys(layout: Layout, line: _Line) -> tuple[tuple[bool, float, str], ...]:
    return tuple(_order(line.place.get(name)) for name in layout.keys)


def _order(value: Coordinate | None) -> tuple[bool, float, str]:
    return (isinstance(value, str), value if isinstance(value, (int, float)) else 0, str(value))


def _own_place(layout: Layout, part: Part, series: Series, reading: Reading) -> dict[str, Coordinate]:
    point, options = series.point, reading.options(series.point)
    place: dict[str, Coordinate] = {"ranks": point.ranks, "bytes": point.bytes, "scope": part.scope or ""}
    of_point = ((part.ranks, point.ranks), (part.bytes, point.bytes))
    place |= {column: value for column, value in of_point if isinstance(column, str)}
    given = {column: options[name] for name, column in part.options.items() if name in options and column[0] != "="}
    place |= {column: int(text) if text.isdecimal() else text for column, text in given.items()}
    for key, (first, *others) in layout.derived.items():
        terms = [term if isinstance(term, int) else int(place.get(term, 0)) for term in (first, *others)]
        place[key] = terms[0] - sum(terms[1:])
    return place


def _matches(line: _Line, series: Series, reading: Reading) -> bool:
    """Whether a series measures a row."""
    part, place, point, given = line.part, line.place, series.point, reading.options(series.point)
    wanted = {name: at[1:] if at.startswith("=") else str(place.get(at, "")) for name, at in part.options.items()}
    return (
        point.pattern == part.pattern
        and place.get("ranks") in (None, point.ranks)
        and (part.all_sizes or place.get("bytes") in (None, point.bytes))
        and all(given.get(name) == value for name, value in wanted.items())
    )


def _literals_match(part: Part, given: Mapping[str, str]) -> bool:
    return all(given.get(name) == text[1:] for name, text in part.options.items() if text.startswith("="))


def _in_scope(part: Part, series: Series) -> bool:
    if part.scope is None or not series.measurements:
        return part.scope != _INTER or bool(series.measurements)
    return Reading.between_hosts(series) == (part.scope == _INTER)


def _labels(layout: Layout, reading: Reading) -> tuple[tuple[str, ...], ...]:
    """The columns: one per transport, and per way to run a pattern that the table distinguishes."""
    found = (series for part in layout.parts for series in reading.series(part.pattern))
    return tuple(dict.fromkeys(_label(layout, series) for series in found))


def _label(layout: Layout, series: Series) -> tuple[str, ...]:
    told = (f"{name}={value}" for name, value in series.point.options if name in layout.qualifiers)
    return (series.point.transport, *told)


def _row(layout: Layout, line: _Line, reading: Reading, labels: Iterable[tuple[str, ...]]) -> tuple[Cell, ...]:
    part, figure = line.part, line.figure
    keys = {title: str(line.place.get(name, "")) for name, title in layout.keys.items()}
    cells: list[Cell] = [f"{at} {title}" if layout.headed else at for title, at in keys.items()]
    if any(one.label for one in layout.parts):
        cells.insert(len(cells) if layout.headed else 0, part.label or "")
    cells.append("" if figure is None else figure)
    value = None if figure is None else figure.value
    found = [series for series in reading.series(part.pattern) if _matches(line, series, reading)]
    quantity = QUANTITIES[part.quantity]
    for label in labels or ((),):
        of_column = [series for series in found if _label(layout, series) == label]
        inside = [series for series in of_column if _in_scope(part, series)]
        series: Series | None = None
        if of_column and not inside:
            cell = blank(quantity.unit, _ONE_HOST if part.scope == _INTER else _HOSTS, value)
        else:
            series, cell = _filled(part, inside, reading, value)
        cells.append(cell)
        for _, total, count in layout.counters:
            cells.append(_quotient(series, total, count, cell, reading))
        if layout.fastest:
            cells.append(_fastest(part, inside, series, cell, reading))
    return tuple(cells)


def _filled(
    part: Part, found: Sequence[Series], reading: Reading, value: float | None
) -> tuple[Series | None, Measured]:
    """The cell, and its series."""
    quantity = QUANTITIES[part.quantity]
    if not found:
        return None, blank(quantity.unit, NOT_PLANNED, value)
    if part.best:
        return reading.best(found, quantity, value)
    if part.line is not None:
        return None, _of_line(part.line, found, quantity.unit, reading, value)
    # The series with the fewest options, unless it has no figure.
    ordered = sorted(found, key=lambda series: (reading.figure(series) is None, len(series.point.options)))
    return ordered[0], reading.cell(ordered[0], quantity, value)


def _of_line(what: str, found: Sequence[Series], unit: str, reading: Reading, published: float | None) -> Measured:
    """The time of an empty message (t0), or the rate of long ones (r_inf), by one line through all measured sizes."""
    cells = [(series, reading.cell(series, QUANTITIES["time"])) for series in found]
    known = [(series, cell) for series, cell in cells if cell.value is not None]
    if not known:
        return blank(unit, reading.reason(found[0]), published)
    fit = fit_line([series.point.bytes for series, _ in known], [1e3 * (cell.value or 0.0) for _, cell in known])
    if isinstance(fit, NoFit):
        return blank(unit, fit.reason, published)
    estimate, scale = (fit.t0_ns, 1e-3) if what == "t0" else (fit.r_inf_bytes_per_s, 1e-6)
    if estimate is None or estimate.value <= 0:
        return blank(unit, _NO_RATE if what == "r_inf" else "the line through the times begins below 0", published)
    value, low, high = (scale * end for end in (estimate.value, estimate.low, estimate.high))
    states = {cell.state for _, cell in known}
    state = states.pop() if len(states) == 1 else SEVERAL_STATES
    crowded = any(cell.oversubscribed for _, cell in known)
    return Measured(unit, value, low, high, state, crowded, published=published)


def _fastest(
    part: Part, found: Sequence[Series], series: Series | None, beside: Measured, reading: Reading
) -> Measured:
    """The fastest sample: of the best size, or of the series in the cell before."""
    quantity = QUANTITIES[part.quantity]
    if series is None or beside.value is None:
        return blank(quantity.unit, beside.reason or NOT_PLANNED, beside.published)
    if part.best:
        return reading.best(found, quantity, beside.published, fastest=True)[1]
    return replace(reading.fastest(series, quantity), published=beside.published)


def _quotient(series: Series | None, total: str, count: str, beside: Measured, reading: Reading) -> Measured:
    """A quotient of counters, for the series and the state of the cell before."""
    if series is None or beside.value is None:
        return blank("us", beside.reason or NOT_PLANNED)

    def quotient_us(measurement: Measurement) -> float | None:
        if total not in measurement.counters:
            return None
        return sum(measurement.counters[total]) / max(1.0, sum(measurement.counters[count])) / 1e3

    return reading.median(series, "us", quotient_us, beside.state)


def _archive_notes(lines: Iterable[_Line]) -> list[str]:
    """The archive's notes on the figures, once each."""
    noted: dict[str, dict[str, None]] = {}
    figures = {id(line.figure): line.figure for line in lines if line.figure is not None and line.figure.note}
    for figure in figures.values():
        noted.setdefault(figure.note, {})[figure.printed or "no figure"] = None
    return [
        f"Published {', '.join(list(values)[:4])}{' …' if len(values) > 4 else ''}: {note}."
        for note, values in noted.items()
    ]
