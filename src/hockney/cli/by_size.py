"""Curves next to each other: one row per size, one column per transport."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from hockney.cli import render
from hockney.cli.curves import SHORT_MARK, SHORT_NOTE, figures_in, figures_in_or_most, has_window, size_text
from hockney.cli.render import Column
from hockney.model import Point
from hockney.report.names import readable_names
from hockney.results.runs import Run, Series
from hockney.stats import LAUNCHES, Figure
from hockney.units import counted, format_ns, format_rate

_Group = dict[str, list[Series]]  # by transport


def groups_of(series: Iterable[Series]) -> list[_Group]:
    """The series of each pattern, number of ranks and options, by transport; without null, the harness itself."""
    groups: dict[tuple[object, ...], _Group] = {}
    for one in series:
        point = one.point
        if point.transport != "null":
            group = groups.setdefault((point.pattern, point.ranks, point.options), {})
            group.setdefault(point.transport, []).append(one)
    return list(groups.values())


def print_by_size(run: Run, series: Iterable[Series], state: str, *, is_asked: bool = False) -> None:
    """Print the times of each group in one state; of streams the rates, too.

    Sizes that were not measured in it are marked, unless the state is asked for; then they are left out.
    """
    names = readable_names(run.launches.values())
    cells_of_all: list[str] = []
    overs: set[str] = set()
    for group in groups_of(series):
        figures: dict[str, dict[int, Figure]] = {transport: {} for transport in group}
        for transport, members in group.items():
            for one in members:
                found = figures_in(one, state) if is_asked else figures_in_or_most(one, state)
                if found:
                    figures[transport][one.point.bytes] = max(found, key=lambda figure: figure.n_measurements)
        if not any(figures.values()):
            continue
        points = {one.point.bytes: one.point for members in group.values() for one in members}
        asked = [points[size] for size in sorted(points) if points[size].role == "asked"]
        first = next(iter(points.values()))
        render.title(name_of(first))
        titles = [names.get(transport, transport) for transport in figures]
        texts: list[Callable[[Figure], str]] = [lambda figure: format_ns(figure.value_ns)]
        if has_window(first) and any(points):
            texts.append(lambda figure: format_rate(figure.rate_bytes_per_s or 0.0))
        for number, text in enumerate(texts):
            if number:
                render.say()
            rows = [
                [size_text(point), *(_cell(own.get(point.bytes), state, text) for own in figures.values())]
                for point in asked
            ]
            render.table(_columns(titles), rows, fits=True)
            cells_of_all += [cell for row in rows for cell in row]
        overs |= {figure.interval_over for own in figures.values() for figure in own.values()}
        if len(points) > len(asked):
            render.note(f"{counted(len(points) - len(asked), 'added size')} not shown.", style="dim")
    _print_legend("".join(cells_of_all), overs)


def name_of(point: Point) -> str:
    """`oneway window=16, 2 ranks`: a curve without its transport."""
    options = "".join(f" {name}={value}" for name, value in point.options)
    return f"{point.pattern}{options}, {point.ranks_text}"


def _columns(titles: Sequence[str]) -> list[Column]:
    return [Column("size", right=True, key=True, style="bold"), *(Column(title, right=True) for title in titles)]


def _print_legend(cells: str, overs: set[str]) -> None:
    """What the marks mean that are in the cells."""
    over = " or ".join(sorted("over launches" if one == LAUNCHES else one for one in overs))
    marks = {"±": f"95 % interval, {over}", "*": "in another machine state", "–": "not measured"}
    shown = [f"{mark}: {meaning}" for mark, meaning in marks.items() if mark in cells]
    if shown:
        render.note(f"{'; '.join(shown)}.", style="dim")
    if SHORT_MARK in cells:
        render.note(SHORT_NOTE)


def _cell(figure: Figure | None, state: str, text: Callable[[Figure], str]) -> str:
    """`41.9 ns ±2%`, rounded up; padded, so that figures with and without an interval are aligned."""
    if figure is None:
        return "–"
    precision = "" if figure.precision is None else f"±{min(math.ceil(100 * figure.precision), 999)}%"
    mark = SHORT_MARK * figure.is_short + "*" * (figure.state != state)
    return f"{text(figure)} {precision:<4}{mark:<1}"
