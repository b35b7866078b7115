"""The archive: the figures that the classic reports published, and the machines that they measured.

A figure is a row of its report's file: what was measured on which system, at which place of the report's grid, and the
value as it was printed. Files are read when they are first asked for.
"""

from __future__ import annotations

import csv
import functools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hockney.errors import unknown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FOLDER = Path(__file__).parent
_FIXED = ("system", "benchmark", "metric", "value", "within", "unit", "note")

Coordinate = int | float | str


@dataclass(frozen=True)
class Published:
    """One published figure. `value` is None where the report prints none; `printed` is what it prints.

    `within` is how far the true value may lie from it, in its unit: half of the last printed digit, unless the file
    says more. "around 1 millisecond" stands there as 1000 us within 500.

    `at` is its place in the report's grid: the columns of the file that say something of this figure (ranks, bytes,
    delay, scope …), whole numbers as int.
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

    def matches(self, where: Mapping[str, Coordinate | list[Coordinate]]) -> bool:
        """Whether its system, benchmark, metric and place are those of `where`, or among several listed there."""
        return all(self.get(name) in (one if isinstance(one, list) else [one]) for name, one in where.items())

    def get(self, name: str) -> Coordinate | None:
        """A column of its file by name; None where it is empty there."""
        fixed = {"system": self.system, "benchmark": self.benchmark, "metric": self.metric, "unit": self.unit}
        return fixed[name] if name in fixed else self.at.get(name)


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
        """Who published it, where and when, in one line."""
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
        """All that was published of it."""
        return tuple(figure for figure in published(self.report) if figure.system in self.systems)


@functools.cache
def reports() -> Mapping[str, Report]:
    """Every report by its name, which is also the name of its suite."""
    return {row["name"]: Report(**row) for row in _contents()["report"]}


@functools.cache
def machines() -> Mapping[str, Machine]:
    """Every machine by its name."""
    return {row["name"]: Machine(**row | {"systems": tuple(row["systems"])}) for row in _contents()["machine"]}


@functools.cache
def published(report: str) -> tuple[Published, ...]:
    """The figures of a report in their order there. Raises UsageError for a name that no report has."""
    if report not in reports():
        raise unknown("report", report, reports())
    path = _FOLDER / reports()[report].file
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(_figure(report, row) for row in csv.DictReader(file))


@functools.cache
def conclusions(report: str) -> tuple[Mapping[str, Any], ...]:
    """What a report concludes, in its order; conclusions.toml explains the keys."""
    rows = tomllib.loads((_FOLDER / "conclusions.toml").read_text(encoding="utf-8"))["conclusion"]
    return tuple(row for row in rows if row["report"] == report)


def _contents() -> dict[str, list[dict[str, Any]]]:
    contents: dict[str, list[dict[str, Any]]] = tomllib.loads((_FOLDER / "reports.toml").read_text(encoding="utf-8"))
    return contents


def _figure(report: str, row: Mapping[str, str]) -> Published:
    return Published(
        report=report,
        system=row["system"],
        benchmark=row["benchmark"],
        metric=row["metric"],
        value=float(row["value"]) if row["value"] else None,
        printed=row["value"],
        unit=row["unit"],
        note=row["note"],
        at={name: _coordinate(text) for name, text in row.items() if text and name not in _FIXED},
        within=float(row.get("within") or 0.5 * 10 ** -len(row["value"].partition(".")[2])),
    )


def _coordinate(text: str) -> Coordinate:
    if text.isdecimal():
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text
