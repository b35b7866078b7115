"""Curves next to each other: one row for each size, one column for each transport."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from hockney.cli import render
from hockney.cli.curves import has_window, size_text
from hockney.cli.render import Column
from hockney.model import Point
from hockney.results.runs import Series, curve_figures
from hockney.stats import LAUNCHES, Figure
from hockney.units import counted, format_ns, format_rate

_Group = dict[str, list[Series]]  # by transport
_Shown = tuple[Figure | None, str]  # and a mark


def groups_of(series: Iterable[Series]) -> list[_Group]:
    """The series of each pattern, number of ranks and options, by transport; null, the harness's own, is left out."""
    groups: dict[tuple[object, ...], _Group] = {}
    for one in series:
        point = one.point
        if point.transport != "null":
            group = groups.setdefault((point.pattern, point.ranks, point.options), {})
            group.setdefault(point.transport, []).append(one)
    return list(groups.values())


def print_by_size(series: Iterable[Series], state: str | None = None) -> None:
    """Times of each group; where a window keeps several messages under way, rates below them.

    Each column is of one state of the machine, `state` or the one that `curve_figures` chooses; unless a state is asked
    for, sizes that were not measured in it are marked.
    """
    overs: set[str] = set()
    for group in groups_of(series):
        chosen = {transport: curve_figures(own, state) for transport, own in group.items()}
        if not any(figures for _, figures in chosen.values()):
            continue
        first = next(iter(group.values()))[0].point
        render.title(name_of(first))
        states = {in_state for in_state, figures in chosen.values() if figures}
        columns = {
            transport if len(states) == 1 else f"{transport} ({in_state})": {
                **({} if state else {one.point.bytes: (_most_seen(one), "*") for one in group[transport]}),
                **{one.point.bytes: (figure, "") for one, figure in figures.items()},
            }
            for transport, (in_state, figures) in chosen.items()
        }
        overs |= {figure.interval_over for own in columns.values() for figure, _ in own.values() if figure is not None}
        points = {one.point.bytes: one.point for own in group.values() for one in own}
        asked = {one.point.bytes for own in group.values() for one in own if one.point.role == "asked"}
        rows = [points[size] for size in sorted(asked)]
        _print(columns, rows, lambda figure: format_ns(figure.value_ns))
        if has_window(first) and any(points):
            render.say()
            _print(columns, rows, lambda figure: format_rate(figure.rate_bytes_per_s or 0.0))
        if len(states) == 1:
            render.note(f"Machine state: {states.pop()}.", style="dim")
        if len(points) > len(rows):
            render.note(f"{counted(len(points) - len(rows), 'added size')} not shown.", style="dim")
    over = " or ".join(sorted("over launches" if one == LAUNCHES else one for one in overs))
    if overs:
        note = "" if state else "*: of another machine state; "
        render.note(f"±: how far the 95 % interval reaches, {over}; {note}-: not measured.", style="dim")


def _most_seen(series: Series) -> Figure | None:
    """Its figure in whatever state it was measured in most."""
    return max(series.figures(), key=lambda figure: figure.n_measurements, default=None)


def name_of(point: Point) -> str:
    """`oneway window=16, 2 ranks`: a curve without its transport."""
    options = "".join(f" {name}={value}" for name, value in point.options)
    return f"{point.pattern}{options}, {point.ranks_text}"


def _print(columns: dict[str, dict[int, _Shown]], rows: Iterable[Point], text: Callable[[Figure], str]) -> None:
    titles = [Column("size", right=True, key=True, style="bold"), *(Column(name, right=True) for name in columns)]
    cells = [
        [size_text(point), *(_cell(*own.get(point.bytes, (None, "")), text) for own in columns.values())]
        for point in rows
    ]
    render.table(titles, cells, fits=True)


def _cell(figure: Figure | None, mark: str, text: Callable[[Figure], str]) -> str:
    """`41.9 ns ±2%`, rounded up; as wide without an interval, so that figures stand below each other."""
    if figure is None:
        return "-"
    precision = "" if figure.precision is None else f"±{min(math.ceil(100 * figure.precision), 999)}%"
    return f"{text(figure)} {precision:<4}{mark:<1}".rstrip() if mark else f"{text(figure)} {precision:<5}"
