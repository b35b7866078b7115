"""Whether the reports' conclusions hold on this machine.

Conclusions are data (archive/conclusions.toml): expressions over rows of the report's tables, evaluated with intervals.
Where the intervals allow both answers, the verdict is inconclusive.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hockney.archive import Published, Report, conclusions
from hockney.report.classic.reading import NOT_PLANNED, SEVERAL_STATES
from hockney.report.classic.values import Measured, Table
from hockney.stats import MIXED
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
class Named:
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
    tables: tuple[Table, ...]
    conclusions: tuple[Conclusion, ...]


class NotTestable(Exception):
    """A figure of the expression is missing, for the reason given."""


def judged(report: str, tables: Sequence[Table], *, one_host: bool, page_bytes: int | None) -> tuple[Conclusion, ...]:
    """The verdicts on all conclusions of a report from these tables."""
    by_name = {table.name: table for table in tables}
    found = conclusions(report)
    return tuple(_judged(spec, by_name, _why_not(spec, one_host, page_bytes)) for spec in found)


def _why_not(spec: Mapping[str, Any], one_host: bool, page_bytes: int | None) -> str | None:
    if spec.get("page_bytes", page_bytes) != page_bytes:
        size = "not known" if page_bytes is None else format_bytes(page_bytes)
        return f"it is judged for pages of {format_bytes(spec['page_bytes'])}; the page size here is {size}"
    return spec.get("untestable") or (spec.get("one_host") if one_host else None)


def _judged(spec: Mapping[str, Any], tables: Mapping[str, Table], why: str | None) -> Conclusion:
    holds, rows = spec.get("holds"), spec.get("rows", {})
    if why or not holds:
        found = [Judgement(_ANY, "not testable", why)]
    else:
        groups = [_ANY] if spec.get("across") else _transports(rows.values(), tables)
        found = [_judgement(holds, rows, group, tables) for group in groups or [_ANY]]
        reasons = {one.reason for one in found if one.verdict == "not testable"}
        if len(reasons) == 1 and all(one.verdict == "not testable" for one in found):
            found = [Judgement(_ANY, "not testable", reasons.pop())]
    # A published figure that two names share belongs to neither.
    places = [(where["table"], where["row"]) for where in rows.values()]
    alone = {name: where for name, where in rows.items() if places.count((where["table"], where["row"])) == 1}
    there = [_published(name, where, tables) for name, where in alone.items()]
    figures = tuple(one for one in there if one is not None)
    return Conclusion(spec["id"], spec["text"], holds, spec.get("published"), figures, tuple(found))


def _judgement(holds: str, rows: Mapping[str, Any], group: str, tables: Mapping[str, Table]) -> Judgement:
    try:
        figures = {name: _figure(name, where, group, tables) for name, where in rows.items()}
    except NotTestable as why:
        return Judgement(group, "not testable", str(why))
    said = tuple(figures.values())
    if any(one.low is None or one.high is None for one in said):
        return Judgement(group, "inconclusive", "too few measurements for an interval", said)
    states = {one.state for one in said if one.state is not None}
    if len(states) > 1 or states & {MIXED.name, SEVERAL_STATES}:
        told = ", ".join(f"{one.name} {one.state}" for one in said if one.state is not None)
        return Judgement(group, "inconclusive", f"the figures are not of one state of the machine: {told}", said)
    result = evaluate(holds, {one.name: (one.low or 0.0, one.high or 0.0) for one in said})
    return Judgement(group, "inconclusive" if result is None else "holds" if result else "does not hold", None, said)


# ---- the cells of a name -------------------------------------------------------------------------------------------


def _cells(where: Mapping[str, Any], group: str, tables: Mapping[str, Table]) -> Iterable[Measured]:
    """The measured cells of a name's rows in matching columns, those with the fewest parts first."""
    table = tables.get(where["table"])
    if table is None:
        return
    fits = re.compile(where.get("column", ""))
    columns = [
        (len(column.parts), place)
        for place, column in enumerate(table.columns)
        if column.kind == "measured" and fits.search(column.title) and group in (_ANY, *column.parts[:1])
    ]
    for row in _rows(where, table):
        for _, place in sorted(columns):
            cell = row[place]
            if isinstance(cell, Measured):
                yield cell


def _rows(where: Mapping[str, Any], table: Table) -> Iterable[tuple[Any, ...]]:
    for row in table.rows:
        if all(_begins(cell, text) for cell, text in zip(row, where["row"], strict=False)):
            yield row


def _begins(cell: object, text: str) -> bool:
    return isinstance(cell, str) and re.match(rf"{re.escape(text)}\b", cell) is not None


def _transports(rows: Iterable[Mapping[str, Any]], tables: Mapping[str, Table]) -> list[str]:
    found = (tables[where["table"]] for where in rows if where["table"] in tables)
    return list(dict.fromkeys(column.parts[0] for table in found for column in table.columns if column.parts))


def _figure(name: str, where: Mapping[str, Any], group: str, tables: Mapping[str, Table]) -> Named:
    cells = list(_cells(where, group, tables))
    known = [cell for cell in cells if cell.value is not None]
    if not known:
        raise NotTestable(next((cell.reason for cell in cells if cell.reason), NOT_PLANNED))
    best = {"min": min, "max": max}.get(where.get("best", ""))
    cell = best(known, key=lambda one: one.value or 0.0) if best else known[0]
    return Named(name, cell.unit, cell.value or 0.0, cell.low, cell.high, cell.oversubscribed, cell.state)


def _published(name: str, where: Mapping[str, Any], tables: Mapping[str, Table]) -> Named | None:
    """The published figure of a name's row."""
    table = tables.get(where["table"])
    for row in _rows(where, table) if table else ():
        for cell in row:
            if isinstance(cell, Published) and cell.value is not None:
                return Named(name, cell.unit, cell.value, cell.value - cell.within, cell.value + cell.within)
            if isinstance(cell, Measured) and cell.published is not None:
                return Named(name, cell.unit, cell.published, cell.published, cell.published)
    return None


# ---- the expression ------------------------------------------------------------------------------------------------


def evaluate(expression: str, bounds: Mapping[str, Bounds]) -> bool | None:
    """Whether an expression holds for all values within the bounds of its names; None: for some of them.

    It has numbers, names, + - * /, comparisons and `and`. Raises ValueError for others, KeyError for unknown names.
    """
    return _truth(ast.parse(expression, mode="eval").body, bounds)


def _truth(node: ast.expr, bounds: Mapping[str, Bounds]) -> bool | None:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return _all(_truth(one, bounds) for one in node.values)
    if isinstance(node, ast.Compare):
        sides = [_range(one, bounds) for one in (node.left, *node.comparators)]
        return _all(_compared(*each) for each in zip(node.ops, sides, sides[1:], strict=False))
    raise ValueError(f"no condition: {ast.unparse(node)}")


def _all(found: Iterable[bool | None]) -> bool | None:
    every = list(found)
    return False if False in every else None if None in every else True


def _compared(sign: ast.cmpop, left: Bounds, right: Bounds) -> bool | None:
    if isinstance(sign, ast.Gt | ast.GtE):
        left, right = right, left
    elif not isinstance(sign, ast.Lt | ast.LtE):
        raise ValueError(f"no comparison: {type(sign).__name__}")
    below = operator.le if isinstance(sign, ast.LtE | ast.GtE) else operator.lt
    if below(left[1], right[0]):
        return True
    return None if below(left[0], right[1]) else False


def _range(node: ast.expr, bounds: Mapping[str, Bounds]) -> Bounds:
    """The bounds of an arithmetic expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value), float(node.value)
    if isinstance(node, ast.Name):
        return bounds[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _range(node.left, bounds), _range(node.right, bounds)
        if isinstance(node.op, ast.Div) and right[0] <= 0 <= right[1]:
            return float("-inf"), float("inf")
        ends = [_ARITHMETIC[type(node.op)](one, other) for one in left for other in right]
        return min(ends), max(ends)
    raise ValueError(f"no number: {ast.unparse(node)}")
