"""Times of a run idle and under its background, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hockney.analysis.impact import Impact, impacts_of
from hockney.model import Point
from hockney.report.html.material import Material
from hockney.report.html.tables import Cell
from hockney.report.sheet import NOTHING
from hockney.report.words import background_text, hosts_text, impact_texts, launches_text, placement_text
from hockney.results.runs import Run
from hockney.units import format_bytes, format_ns


@dataclass(frozen=True)
class LoadTable:
    """A row for each point, with a cell for each column; `where` says who makes the traffic, and who is measured."""

    where: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str


def load_table(material: Material) -> LoadTable | None:
    """None for a run without a point that was measured both ways. Columns without any value are left out."""
    run, reading = material.run, material.reading
    impacts = impacts_of(run) if reading is None else reading.impacts
    if impacts is None or not impacts.impacts:
        return None
    columns: dict[str, Callable[[Impact], Cell]] = {
        "pattern": lambda impact: _pattern(impact.point, material.name_of(impact.point.transport)),
        "size": lambda impact: Cell(format_bytes(impact.point.bytes) if impact.point.is_sized else ""),
        "impact": lambda impact: Cell(*impact_texts(impact)),
        "idle": lambda impact: _time(impact.idle.p50_ns),
        "loaded": lambda impact: _time(impact.loaded.p50_ns),
        "idle p99": lambda impact: _time(impact.idle.p99_ns),
        "loaded p99": lambda impact: _time(impact.loaded.p99_ns),
        "idle p99.9": lambda impact: _time(impact.idle.p999_ns),
        "loaded p99.9": lambda impact: _time(impact.loaded.p999_ns),
    }
    cells = {title: tuple(map(cell, impacts.impacts)) for title, cell in columns.items()}
    shown = {title: column for title, column in cells.items() if any(cell.text not in ("", NOTHING) for cell in column)}
    return LoadTable(
        where=" ".join(_where(run)),
        columns=tuple(shown),
        rows=tuple(zip(*shown.values(), strict=True)),
        note=" ".join(_notes(run, shown.values())),
    )


def _notes(run: Run, columns: Iterable[Iterable[Cell]]) -> Iterable[str]:
    yield (
        "Idle and loaded are medians. Impact: the loaded time over the idle time of a round, with its 95 % confidence "
        f"interval, {launches_text(run)}."
    )
    if any(cell.text == NOTHING for column in columns for cell in column):
        yield f"{NOTHING}: too few samples, or several repetitions in each."


def _pattern(point: Point, transport: str) -> Cell:
    return Cell(point.pattern_text, f"on {transport}, {point.ranks_text}")


def _time(time_ns: float | None) -> Cell:
    return Cell(NOTHING if time_ns is None else format_ns(time_ns))


def _where(run: Run) -> Iterable[str]:
    yield f"Background: {background_text(run)}."
    if run.info.plan["background"]["hosts"]:
        launches = (launch for launch in run.launches.values() if launch.transport not in run.harness)
        hosts = dict.fromkeys(host for launch in launches for host in launch.hosts)
        yield f"Measured: ranks on {hosts_text(list(hosts))}."
    elif placement := placement_text(run):
        yield f"Measured: {placement}"
