"""Whether the reports' conclusions hold on this machine.

Conclusions are data (archive/conclusions.toml): expressions over rows of the report's tables, evaluated with intervals.
Where the intervals allow both answers, the verdict is inconclusive.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hockney.archive import Published, Report, conclusions
from hockney.report.classic.reading import NOT_PLANNED
from hockney.report.classic.values import Cell, ClassicTable, Measured
from hockney.results.figures import SEVERAL_STATES
from hockney.stats import MIXED
from hockney.stats.interval import Bounded
from hockney.units import format_bytes

Verdict = Literal["holds", "does not hold", "inconclusive", "not testable"]
Bounds = tuple[float, float]

_ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_ANY = ""  # the column of a conclusion across transports


@dataclass(frozen=True)
class Named(Bounded):
    """A figure of a conclusion."""

    name: str
    unit: str
    value: float
    low: float | None = None
    high: float | None = None
    oversubscribed: bool = False
    state: str | None = None


@dataclass(frozen=True)
class Judgement:
    """The verdict on a conclusion for the transport `on`; empty: for several transports or none."""

    on: str
    verdict: Verdict
    reason: str | None = None
    figures: tuple[Named, ...] = ()


@dataclass(frozen=True)
class Conclusion:
    """A conclusion of a report, its expression, the published figures, and the verdicts."""

    id: str
    text: str
    holds: str | None
    published: str | None
    figures: tuple[Named, ...]
    judgements: tuple[Judgement, ...]


@dataclass(frozen=True)
class ClassicReport:
    """All tables of a run of a classic suite, and the verdicts on the report's conclusions."""

    run_id: int
    report: Report
    tables: tuple[ClassicTable, ...]
    conclusions: tuple[Conclusion, ...]


class NotTestable(Exception):
    """A figure of the expression is missing, for the reason given."""


def judged(
    report: str, tables: Sequence[ClassicTable], *, one_host: bool, page_bytes: int | None, rebuilds: bool = False
) -> tuple[Conclusion, ...]:
    """The verdicts on all conclusions of a report from these tables; `page_bytes`: None for any.

    If a model `rebuilds` the report's machine, what holds because of an input of it says so.
    """
    by_name = {table.name: table for table in tables}
    verdicts = []
    for spec in conclusions(report):
        why = spec.get("untestable") or (spec.get("one_host") if one_host else None)
        if page_bytes is not None and spec.get("page_bytes", page_bytes) != page_bytes:
            why = f"it is judged for pages of {format_bytes(spec['page_bytes'])}, which this machine does not have"
        verdicts.append(_judged(spec, by_name, why, spec.get("input") if rebuilds else None))
    return tuple(verdicts)


def _judged(
    spec: Mapping[str, Any], tables: Mapping[str, ClassicTable], why: str | None, from_input: str | None
) -> Conclusion:
    holds, rows = spec.get("holds"), spec.get("rows", {})
    groups: list[str] = [_ANY]
    if not spec.get("across"):
        used = [tables[where["table"]] for where in rows.values() if where["table"] in tables]
        groups = list(dict.fromkeys(column.parts[0] for table in used for column in table.columns if column.parts))
    judgements = [Judgement(_ANY, "not testable", why)]
    if holds and not why:
        judgements = [_judgement(holds, rows, group, tables) for group in groups or [_ANY]]
        if from_input:
            said = f"by construction: {from_input}"
            judgements = [replace(each, reason=said) if each.verdict == "holds" else each for each in judgements]
        reasons = {(each.verdict, each.reason) for each in judgements}
        if len(reasons) == 1 and judgements[0].verdict == "not testable":
            judgements = [replace(judgements[0], on=_ANY)]
    # A published figure that two names share belongs to neither.
    places = [(where["table"], where["row"]) for where in rows.values()]
    alone = {name: where for name, where in rows.items() if places.count((where["table"], where["row"])) == 1}
    there = (_published(name, where, tables) for name, where in alone.items())
    figures = tuple(figure for figure in there if figure is not None)
    return Conclusion(spec["id"], spec["text"], holds, spec.get("published"), figures, tuple(judgements))


def _judgement(holds: str, rows: Mapping[str, Any], group: str, tables: Mapping[str, ClassicTable]) -> Judgement:
    try:
        figures = tuple(_figure(name, where, group, tables) for name, where in rows.items())
    except NotTestable as why:
        return Judgement(group, "not testable", str(why))
    bounds = {each.name: (each.estimate.low, each.estimate.high) for each in figures if each.estimate is not None}
    if len(bounds) < len(figures):
        return Judgement(group, "inconclusive", "too few measurements for an interval", figures)
    states = {each.state for each in figures if each.state is not None}
    if len(states) > 1 or states & {MIXED.name, SEVERAL_STATES}:
        listed = ", ".join(f"{each.name} {each.state}" for each in figures if each.state is not None)
        return Judgement(group, "inconclusive", f"the figures belong to several machine states: {listed}", figures)
    result = evaluate(holds, bounds)
    verdict: Verdict = "inconclusive" if result is None else "holds" if result else "does not hold"
    return Judgement(group, verdict, None, figures)


# ---- the cells of a name -------------------------------------------------------------------------------------------


def _rows(where: Mapping[str, Any], table: ClassicTable | None) -> Iterable[tuple[Cell, ...]]:
    """The rows whose first cells are those of a name."""
    return [row for row in (table.rows if table else ()) if [*row[: len(where["row"])]] == where["row"]]


def _cells(where: Mapping[str, Any], group: str, table: ClassicTable | None) -> list[Measured]:
    """The measured cells of a name's rows in matching columns, those with the fewest parts first."""
    fits = re.compile(where.get("column", ""))
    columns = [
        (len(column.parts), place)
        for place, column in enumerate(table.columns if table else ())
        if column.kind == "measured" and fits.search(column.title) and group in (_ANY, *column.parts[:1])
    ]
    cells = (row[place] for row in _rows(where, table) for _, place in sorted(columns))
    return [cell for cell in cells if isinstance(cell, Measured)]


def _figure(name: str, where: Mapping[str, Any], group: str, tables: Mapping[str, ClassicTable]) -> Named:
    cells = _cells(where, group, tables.get(where["table"]))
    known = [cell for cell in cells if cell.value is not None]
    if not known:
        raise NotTestable(next((cell.reason for cell in cells if cell.reason), NOT_PLANNED))
    best = {"min": min, "max": max}.get(where.get("best", ""))
    cell = best(known, key=lambda cell: cell.value or 0.0) if best else known[0]
    low, high = (cell.interval.low, cell.interval.high) if cell.interval else (None, None)
    return Named(name, cell.unit, cell.value or 0.0, low, high, cell.oversubscribed, cell.state)


def _published(name: str, where: Mapping[str, Any], tables: Mapping[str, ClassicTable]) -> Named | None:
    for row in _rows(where, tables.get(where["table"])):
        for cell in row:
            if isinstance(cell, Published) and cell.value is not None:
                return Named(name, cell.unit, cell.value)
            if isinstance(cell, Measured) and cell.published is not None:
                return Named(name, cell.unit, cell.published)
    return None


# ---- the expression ------------------------------------------------------------------------------------------------


def evaluate(expression: str, bounds: Mapping[str, Bounds]) -> bool | None:
    """Whether an expression holds for all values within the bounds of its names; None: for some of them.

    An expression has numbers, names, + - * /, comparisons and `and`. Raises ValueError for others, KeyError for unknown
    names.
    """
    certain, possible = _truth(ast.parse(expression, mode="eval").body, bounds)
    return True if certain else None if possible else False


def _truth(node: ast.expr, bounds: Mapping[str, Bounds]) -> tuple[bool, bool]:
    """Whether a condition holds for all values within the bounds, and for some."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        parts = [_truth(each, bounds) for each in node.values]
    elif isinstance(node, ast.Compare):
        sides = [_range(each, bounds) for each in (node.left, *node.comparators)]
        parts = [_compared(*each) for each in zip(node.ops, sides, sides[1:], strict=False)]
    else:
        raise ValueError(f"no condition: {ast.unparse(node)}")
    return all(certain for certain, _ in parts), all(possible for _, possible in parts)


def _compared(sign: ast.cmpop, left: Bounds, right: Bounds) -> tuple[bool, bool]:
    if isinstance(sign, ast.Gt | ast.GtE):
        left, right = right, left
    elif not isinstance(sign, ast.Lt | ast.LtE):
        raise ValueError(f"no comparison: {type(sign).__name__}")
    below = operator.le if isinstance(sign, ast.LtE | ast.GtE) else operator.lt
    return below(left[1], right[0]), below(left[0], right[1])


def _range(node: ast.expr, bounds: Mapping[str, Bounds]) -> Bounds:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value), float(node.value)
    if isinstance(node, ast.Name):
        return bounds[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _range(node.left, bounds), _range(node.right, bounds)
        if isinstance(node.op, ast.Div) and right[0] <= 0 <= right[1]:
            return float("-inf"), float("inf")
        ends = [_ARITHMETIC[type(node.op)](first, second) for first in left for second in right]
        return min(ends), max(ends)
    raise ValueError(f"no number: {ast.unparse(node)}")
