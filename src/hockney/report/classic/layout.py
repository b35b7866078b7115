"""Tables as the reports' TOML files describe them: which point belongs to which row.

A `[[table]]` has the keys of Layout, and `[[table.part]]`s with those of Part; keys of Part in the table apply to all
its parts. Missing keys come from the table that it is `like`. With `scopes`, its parts are repeated for each scope.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from hockney.archive import Coordinate, Published, published
from hockney.machine.facts import data_caches
from hockney.machine.files import read_toml
from hockney.report.classic.models import is_model, judged, models_of, plain_name, why_not
from hockney.report.classic.predicted import prediction_notes
from hockney.report.classic.reading import NOT_PLANNED, QUANTITIES, RunReader, chosen
from hockney.report.classic.values import Cell, ClassicColumn, ClassicTable, Measured, blank
from hockney.results.runs import Series

Place = dict[str, Coordinate]
Label = tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """Published figures of a table, and the points that measure them; those of the null transport are left out."""

    pattern: str | Sequence[str]
    where: Mapping[str, Coordinate] = field(default_factory=dict)  # columns of the archive's file, and their values
    ranks: int | str = 2  # or the column that says it; "any": a column of this machine for each number
    bytes: int | str | None = None  # likewise; None where all sizes count
    options: Mapping[str, str] = field(default_factory=dict)  # of the pattern: "=VALUE", or the column that says it
    quantity: str = "time"  # what the report prints (reading.QUANTITIES)
    # Of several series that match: "best"; "t0" or "r_inf" of one line through all sizes; "in L1" or "beyond all
    # caches", the largest size there; or a statistic over pairs of ranks (reading.STATISTICS).
    how: str = ""
    scope: str | None = None  # "intra-node" or "inter-node": where the ranks must be
    label: str = ""  # the name of a row, if a table has several parts
    at: Mapping[str, Coordinate] = field(default_factory=dict)  # further keys of a row that the figures do not contain
    published: str | None = None  # the column of the archive that is printed instead of the figure itself
    loads: int = 1  # as for reading.Basis, like the next
    load_bytes: int = 0
    per_node: int = 0  # `ranks` counts nodes, with this many ranks on each host, unless there is only one; 0: ranks
    why: str | None = None  # why nothing here measures it

    @property
    def patterns(self) -> Sequence[str]:
        return [self.pattern] if isinstance(self.pattern, str) else self.pattern


@dataclass(frozen=True)
class FigureColumn:
    """A figure of each row and transport: of its part's quantity, another one, or the "fastest" sample.

    It is compared with the `published` column of the archive, times `factor`.
    """

    title: str = ""
    quantity: str | None = None
    published: str | None = None
    factor: float = 1.0


@dataclass(frozen=True)
class Layout:
    """A table as its file describes it."""

    report: str
    name: str
    title: str
    # Columns that make a row's place, and their titles; "what": the part's label, "by": see down.
    keys: Mapping[str, str]
    parts: tuple[Part, ...]
    published_keys: Sequence[str] = ()  # keys that are figures of the report, too
    derived: Mapping[str, Sequence[str | int]] = field(default_factory=dict)  # keys of own rows: the first minus others
    columns: tuple[FigureColumn, ...] = (FigureColumn(),)  # in the file those next to the first one
    qualifiers: Sequence[str] = ()  # options that make a column of their own if they differ
    places: Sequence[str] = ()  # options that name a pair of ranks: each pattern and other option has its own column
    notes: Sequence[str] = ()
    heading: int = 0  # how many of the keys stand above the rows that share them
    sorted: bool = False  # all rows by their keys; else rows that the report does not have come last
    down: bool = False  # rows for each transport ("by") instead of columns
    of: str = ""  # the columns that the report's figures are of (a regular expression): only they show a model's errors

    @property
    def patterns(self) -> Iterable[str]:
        return dict.fromkeys(pattern for part in self.parts for pattern in part.patterns)


@functools.cache
def contents(report: str) -> dict[str, Any]:
    """The file of a report."""
    return read_toml(Path(__file__).with_name(f"{report}.toml"))


@functools.cache
def layouts(report: str) -> tuple[Layout, ...]:
    """The tables of a report."""
    rows: dict[str, Mapping[str, Any]] = {}
    for row in contents(report).get("table", ()):
        rows[row["name"]] = {**rows.get(row.get("like", ""), {}), **row}
    return tuple(_layout(report, row) for row in rows.values())


def _layout(report: str, row: Mapping[str, Any]) -> Layout:
    of_parts = {field.name for field in fields(Part)}
    shared = {name: value for name, value in row.items() if name in of_parts}
    parts = tuple(
        Part(**{**shared, **part, **at, "where": {**shared.get("where", {}), **part.get("where", {}), **at}})
        for at in ([{"scope": scope} for scope in row["scopes"]] if "scopes" in row else [{}])
        for part in row.get("part", ({},))
    )
    of_table = {name: value for name, value in row.items() if name not in {*of_parts, "part", "like", "scopes"}}
    columns = tuple(FigureColumn(**column) for column in of_table.pop("columns", ()))
    return Layout(report, parts=parts, columns=columns if row.get("down") else (FigureColumn(), *columns), **of_table)


@dataclass(frozen=True)
class _Line:
    """A row: a published figure, or a place that only this machine has."""

    part: Part
    place: Place
    figure: Published | None = None

    def published(self, column: FigureColumn) -> float | None:
        """The number that a column is compared with."""
        name = column.published or self.part.published
        is_other = not column.published and column.quantity not in (None, self.part.quantity, "fastest")
        if self.figure is None or is_other or (column.published and self.part.how == "best"):
            return None
        return self.figure.value if name is None else float(self.figure.at[name]) * column.factor


@dataclass(frozen=True)
class _Group:
    """The series of a column, or of the rows of a transport."""

    label: Label
    series: Sequence[Series]
    is_predicted: bool = False


def make_table(layout: Layout, reader: RunReader) -> ClassicTable:
    """The table with this run's figures."""
    if reader.is_exact:
        layout = replace(layout, columns=tuple(each for each in layout.columns if each.quantity != "fastest"))
    measured = reader.series(*layout.patterns)
    predicted = [] if layout.down else reader.predicted(*layout.patterns)
    groups, lines = _groups(layout, measured, predicted), _lines(layout, reader)
    rows: list[tuple[Cell, ...]] = []
    for line in lines:
        cells = {group: _cells(layout, line, group, reader) for group in groups}
        reasons = (why_not(model, line.figure) for model in models_of(reader.run).values())
        blanks = _blanks(layout, line, next(filter(None, reasons), None))
        if layout.down:
            has_figure = [group for group, some in cells.items() if any(cell.value is not None for cell in some)]
            for group in has_figure:
                by = [part for part in group.label if part not in reader.run.harness]
                rows.append((*_head(layout, line, by), *cells[group]))
            if not has_figure:
                rows.append((*_head(layout, line), *next(filter(None, cells.values()), blanks)))
            continue
        row = _head(layout, line)
        for group, some in cells.items():
            row += (map(_predicted, some[:1]) if some else [""]) if group.is_predicted else (some or blanks)
        rows.append(tuple(row))
    heads = list(dict.fromkeys(row[: layout.heading] for row in rows))
    rows.sort(key=lambda row: heads.index(row[: layout.heading]))
    units = dict.fromkeys(QUANTITIES[part.quantity].unit for part in layout.parts)
    title = layout.title if layout.down else f"{layout.title}, {' and '.join(units)}"
    notes = (*layout.notes, *_archive_notes(lines), *prediction_notes(measured, predicted))
    return ClassicTable(layout.name, title, tuple(_columns(layout, groups)), tuple(rows), notes, layout.heading)


def _groups(layout: Layout, measured: Iterable[Series], predicted: Iterable[Series]) -> list[_Group]:
    """The columns of this machine; next to a transport's, one of predictions where there are any."""
    by_kind = {False: by_label(layout, measured) or {("",): []}, True: by_label(layout, predicted)}
    labels = dict.fromkeys(label for of in by_kind.values() for label in of)
    return [
        _Group(label, tuple(of[label]), is_predicted)
        for label in labels
        for is_predicted, of in by_kind.items()
        if label in of
    ]


def by_label(layout: Layout, series: Iterable[Series]) -> dict[Label, list[Series]]:
    """Series by their column: the transport, and the other distinctions of the table."""
    groups: dict[Label, list[Series]] = {}
    for each in series:
        point, names = each.point, contents(layout.report).get("names", {})
        transport = plain_name(point.transport)
        if layout.places:
            options = (f"{name}={value}" for name, value in point.options if name not in layout.places)
            way = " ".join([point.pattern, *options])
            label: Label = (transport, names.get(way, way), point.ranks_text)
        else:
            method = (name for end, name in names.items() if point.transport.endswith(end))
            qualifiers = (f"{name}={value}" for name, value in point.options if name in layout.qualifiers)
            label = (transport, *method, *qualifiers)
        groups.setdefault(label, []).append(each)
    return groups


def _columns(layout: Layout, groups: Iterable[_Group]) -> Iterable[ClassicColumn]:
    for name, title in layout.keys.items():
        is_published = name in layout.published_keys
        yield ClassicColumn(f"published {title}", "published", (title,)) if is_published else ClassicColumn(title)
    yield ClassicColumn("published", "published")
    if layout.down:
        yield from (ClassicColumn(column.title, "measured", (column.title,)) for column in layout.columns)
        return
    for group in groups:
        name = title_of(group.label) or "this machine"
        if group.is_predicted:
            yield ClassicColumn(f"{name}: predicted here", "predicted", group.label)
            continue
        for column in layout.columns:
            more = [column.title] if column.title else []
            yield ClassicColumn(": ".join([name, *more]), "measured", (*group.label, *more))


def title_of(label: Label) -> str:
    """The title of a column; a model has the same title under every name."""
    return ", ".join("model" if is_model(part) else part for part in label if part)


# ---- rows ----------------------------------------------------------------------------------------------------------


def _lines(layout: Layout, reader: RunReader) -> list[_Line]:
    """The rows: the published figures, and the places that only this machine has."""
    lines = [
        _Line(part, _place(part, figure), figure)
        for part in layout.parts
        for figure in published(layout.report)
        if figure.matches(part.where)
    ]
    lines += _own_lines(layout, reader, lines)
    if layout.sorted:
        lines.sort(key=lambda line: _by_keys(layout, line.place))
    if layout.heading:
        lines.sort(key=lambda line: layout.parts.index(line.part))
    return lines


def _place(part: Part, figure: Published) -> Place:
    """The place of a published figure, with the ranks and bytes that the report leaves out."""
    # Modes in our spelling, without a hyphen.
    place = {name: at.replace("non-", "non") if isinstance(at, str) else at for name, at in figure.at.items()}
    place |= {"system": figure.system, "what": part.label, **part.at}
    for name, wanted in (("ranks", part.ranks), ("bytes", part.bytes)):
        if isinstance(wanted, int):
            place[name] = wanted
        elif wanted is not None and wanted in figure.at:
            place[name] = figure.at[wanted]
    if part.per_node > 1:
        place["ranks"] = part.per_node * int(place["ranks"])
    return place


def _own_lines(layout: Layout, reader: RunReader, lines: Sequence[_Line]) -> list[_Line]:
    """Rows for measured points that the report does not have: fewer ranks, other sizes."""
    new: dict[tuple[Any, ...], _Line] = {}
    for part in layout.parts:
        for series in reader.series(*part.patterns) if part.per_node < 2 else ():
            size, options = series.point.bytes, reader.options(series.point)
            is_other_size = part.label and isinstance(part.ranks, int) and not part.how and size != part.bytes
            is_wanted = all(options.get(name) == text[1:] for name, text in part.options.items() if text[0] == "=")
            has_row = series.point.role != "refined" and (size > 0 or part.quantity != "rate")
            is_here = _in_scope(part, series) and _fills_nodes(part, series)
            if not is_wanted or is_other_size or not has_row or not is_here:
                continue
            place = _own_place(layout, part, series, reader)
            keys = [
                name for name in layout.keys if name in place and (name not in ("bytes", part.bytes) or not part.how)
            ]
            shown = {tuple(line.place.get(name) for name in keys) for line in lines if line.part is part}
            at = tuple(place[name] for name in keys)
            if at not in shown and reader.figure(series) is not None:
                new.setdefault((id(part), *at), _Line(part, place))
    return sorted(new.values(), key=lambda line: _by_keys(layout, line.place))


def _by_keys(layout: Layout, place: Place) -> list[tuple[bool, float, str]]:
    values = [place.get(name, "") for name in layout.keys]
    return [(isinstance(value, str), value if isinstance(value, int | float) else 0, str(value)) for value in values]


def _own_place(layout: Layout, part: Part, series: Series, reader: RunReader) -> Place:
    point, options = series.point, reader.options(series.point)
    place: Place = {"what": part.label, "ranks": point.ranks, "bytes": point.bytes, "scope": part.scope or ""}
    of_point = ((part.ranks, point.ranks), (part.bytes, point.bytes))
    place |= {column: value for column, value in of_point if isinstance(column, str)}
    given = {column: options[name] for name, column in part.options.items() if name in options and column[0] != "="}
    place |= {column: int(text) if text.isdecimal() else text for column, text in given.items()}
    caches = data_caches(reader.run.facts)
    place["level"] = next((f"L{level}" for level, size in caches if point.bytes <= size), "memory")
    for key, (first, *others) in layout.derived.items():
        terms = [term if isinstance(term, int) else int(place.get(term, 0)) for term in (first, *others)]
        place[key] = terms[0] - sum(terms[1:])
    return place


def _head(layout: Layout, line: _Line, by: Sequence[str] = ()) -> list[Cell]:
    place = {**line.place, "by": ", ".join(by)}
    figure: Cell = line.figure or ""
    if line.figure is not None and line.part.published:
        figure = str(line.figure.at[line.part.published])
    return [*(str(place.get(name, "")) for name in layout.keys), figure]


# ---- cells ---------------------------------------------------------------------------------------------------------


def _cells(layout: Layout, line: _Line, group: _Group, reader: RunReader) -> list[Measured]:
    """The figures of a row in one column; [] if no series measures it."""
    part, place = line.part, line.place
    wanted = {name: at[1:] if at[0] == "=" else str(place.get(at, "")) for name, at in part.options.items()}
    matching = [
        series
        for series in group.series
        if series.point.pattern in part.patterns
        and place.get("ranks") in (None, series.point.ranks)
        and (part.how or place.get("bytes") in (None, series.point.bytes))
        and wanted.items() <= reader.options(series.point).items()
        and _fills_nodes(part, series)
    ]
    if part.scope is None:  # two ranks are measured within a host, too
        matching = [series for series in matching if reader.between_hosts(series)] or matching
    inside = [series for series in matching if _in_scope(part, series)]
    if not matching or part.why:
        return []
    if not inside:
        one_host = "all ranks were on one host; measure between hosts with --hosts"
        is_inter = part.scope == "inter-node"
        return _blanks(layout, line, one_host if is_inter else "its ranks were on several hosts")
    model = models_of(reader.run).get(inside[0].point.transport)
    why = why_not(model, line.figure) if model else None
    if why:
        return _blanks(layout, line, why)
    series, main = chosen(part.how, inside, part.quantity, (part.loads, part.load_bytes), reader)
    cells = [_cell(column, line, series, main, reader) for column in layout.columns]
    if model and not re.search(layout.of, ", ".join(group.label)):
        return [replace(cell, published=None) for cell in cells]
    return [judged(model, line.figure, cell) for cell in cells] if model else cells


def _predicted(cell: Measured) -> Measured:
    """The figure of a model has no interval: its own would be that of a model without noise."""
    return replace(cell, low=None, high=None, interval_over=None, exact=False, computed=True)


def _blanks(layout: Layout, line: _Line, reason: str | None = None) -> list[Measured]:
    main, why = QUANTITIES[line.part.quantity], reason or line.part.why or NOT_PLANNED
    units = (QUANTITIES.get(column.quantity or "", main).unit for column in layout.columns)
    return [blank(unit, why, line.published(column)) for unit, column in zip(units, layout.columns, strict=True)]


def _cell(column: FigureColumn, line: _Line, series: Series | None, main: Measured, reader: RunReader) -> Measured:
    """A figure of the series and the state of the main one."""
    part, cell = line.part, main
    if column.quantity not in (None, part.quantity):
        if series is None or main.value is None:
            unit = QUANTITIES[column.quantity].unit if column.quantity in QUANTITIES else main.unit
            cell = blank(unit, main.reason or NOT_PLANNED)
        elif column.quantity == "fastest":
            cell = reader.fastest(series, part.quantity)
        else:
            cell = reader.cell(series, column.quantity, main.state, (part.loads, part.load_bytes))
    return replace(cell, published=line.published(column))


def _in_scope(part: Part, series: Series) -> bool:
    return part.scope is None or RunReader.between_hosts(series) == (part.scope == "inter-node")


def _fills_nodes(part: Part, series: Series) -> bool:
    hosts = Counter(host for launch in series.launches[:1] for host in launch.hosts)
    return not part.per_node or len(hosts) < 2 or max(hosts.values()) == part.per_node


def _archive_notes(lines: Iterable[_Line]) -> list[str]:
    """The archive's notes on the figures, once each."""
    noted: dict[str, dict[str, None]] = {}
    for line in lines:
        if line.figure is not None and line.figure.note:
            noted.setdefault(line.figure.note, {})[line.figure.printed or "no figure"] = None
    return [
        f"Published {', '.join(list(values)[:4])}{' …' if len(values) > 4 else ''}: {note}."
        for note, values in noted.items()
    ]
