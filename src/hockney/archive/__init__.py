"""The archive: figures that the classic reports published, rows of CSV files read on first use, and their machines."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hockney.archive.points import Spec, parse
from hockney.errors import unknown
from hockney.machine.files import read_toml

_FOLDER = Path(__file__).parent
_TEXTS = ("system", "benchmark", "metric", "unit", "note")
_OF_POINT = ("value", "within", "point", "quantity", "also", "model")

Coordinate = int | float | str


@dataclass(frozen=True)
class Published:
    """A published figure: its `value`, None where the report has none, and as `printed`.

    The true value is `within` this distance: half of the last printed digit, unless the file says more. `at` is its
    place in the report's grid: the other columns of the file (ranks, bytes, delay, scope …).

    `spec` is the point of hockney that it corresponds to, None if nothing measures it; `quantities` are what it may be
    of that point, where the report leaves it open several, and `also` what is shown next to it. `modelled`: what the
    model of its machine gives for each quantity (scripts/draw-machines).
    """

    report: str
    system: str
    benchmark: str
    metric: str
    value: float | None
    printed: str
    unit: str
    note: str
    at: Mapping[str, Coordinate]
    within: float = 0.0
    spec: Spec | None = None
    quantities: tuple[str, ...] = ()
    also: str = ""
    modelled: tuple[float | None, ...] = ()

    def matches(self, where: Mapping[str, Coordinate | list[Coordinate]]) -> bool:
        """Whether each column in `where` has the value there, or one of those listed."""
        return all(self.get(name) in (value if isinstance(value, list) else [value]) for name, value in where.items())

    def get(self, name: str) -> Coordinate | None:
        """A column of its file by name; None where it is empty."""
        return getattr(self, name) if name in _TEXTS else self.at.get(name)


@dataclass(frozen=True)
class Benchmark:
    """Figures of a report that share a table: those that match `where`, each named by its `keys` (column: title).

    `oddities` are sentences on what is odd in the figures as they were printed.
    """

    report: str
    title: str
    where: Mapping[str, Coordinate | list[Coordinate]]
    keys: Mapping[str, str]
    notes: tuple[str, ...] = ()
    oddities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """A classic report: its source, and the file with its figures."""

    name: str
    title: str
    author: str
    date: str
    file: str
    about: str

    @property
    def source(self) -> str:
        """Author, title and date in one line."""
        return f"{self.author}: {self.title}, {self.date}"


@dataclass(frozen=True)
class Machine:
    """A machine of the archive; `systems` are the names that its report gives it."""

    name: str
    title: str
    report: str
    systems: tuple[str, ...]
    about: str

    @property
    def figures(self) -> tuple[Published, ...]:
        return tuple(figure for figure in published(self.report) if figure.system in self.systems)


@functools.cache
def reports() -> Mapping[str, Report]:
    """Every report by its name, which is also the name of its suite."""
    return {row["name"]: Report(**row) for row in _contents("reports")["report"]}


@functools.cache
def machines() -> Mapping[str, Machine]:
    """Every machine by its name."""
    return {row["name"]: Machine(**row | {"systems": tuple(row["systems"])}) for row in _contents("reports")["machine"]}


@functools.cache
def published(report: str) -> tuple[Published, ...]:
    """The figures of a report in its order. Raises UsageError for an unknown name."""
    if report not in reports():
        raise unknown("report", report, reports())
    path = _FOLDER / reports()[report].file
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(_figure(report, row) for row in csv.DictReader(file))


@functools.cache
def benchmarks(report: str) -> tuple[Benchmark, ...]:
    """The benchmarks of a report in its order."""
    rows = (row for row in _contents("benchmarks")["benchmark"] if row["report"] == report)
    return tuple(Benchmark(**row | {name: tuple(row.get(name, ())) for name in ("notes", "oddities")}) for row in rows)


def blocks(report: str) -> list[dict[str, Any]]:
    """What a report says of its machine: blocks of items, each with the name of what is set against it here."""
    return [row for row in _contents("benchmarks")["block"] if row["report"] == report]


@functools.cache
def conclusions(report: str) -> tuple[Mapping[str, Any], ...]:
    """The conclusions of a report in its order; conclusions.toml explains the keys."""
    return tuple(row for row in _contents("conclusions")["conclusion"] if row["report"] == report)


def _contents(name: str) -> dict[str, list[dict[str, Any]]]:
    return read_toml(_FOLDER / f"{name}.toml")


def _figure(report: str, row: Mapping[str, str]) -> Published:
    return Published(
        report,
        **{name: row[name] for name in _TEXTS},
        value=float(row["value"]) if row["value"] else None,
        printed=row["value"],
        at={name: _coordinate(text) for name, text in row.items() if text and name not in (*_TEXTS, *_OF_POINT)},
        spec=parse(row["point"]),
        quantities=tuple(filter(None, row["quantity"].split("; "))),
        also=row["also"],
        modelled=tuple(float(text) if text else None for text in row.get("model", "").split("; ")),
        within=float(row.get("within") or 0.5 * 10 ** -len(row["value"].partition(".")[2])),
    )


def _coordinate(text: str) -> Coordinate:
    if text.isdecimal():
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text
