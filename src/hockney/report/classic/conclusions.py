"""Whether the reports' conclusions hold on this machine.

Conclusions are data (archive/conclusions.toml): expressions over figures of points, evaluated with intervals. Where the
intervals allow both answers, the verdict is inconclusive.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hockney.archive import Published, benchmarks, conclusions, machines, published
from hockney.archive.points import Spec, parse
from hockney.report.classic.join import Joiner, between_hosts, transport_of
from hockney.report.classic.models import is_model, models_of
from hockney.report.classic.predicted import PredictedSeries
from hockney.report.classic.quantity import NOT_PLANNED, reason_of
from hockney.report.classic.values import Reported
from hockney.results.figures import SEVERAL_STATES
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
class Judgement:
    """The verdict on a conclusion for the transport `on` (empty: several or none), and the `figures` that decided."""

    on: str
    verdict: Verdict
    reason: str | None = None
    figures: Mapping[str, Reported] = field(default_factory=dict)


@dataclass(frozen=True)
class Conclusion:
    """A conclusion of a report, when it `holds` in words, what the report says, and the verdicts."""

    id: str
    text: str
    holds: str | None
    published: str
    judgements: tuple[Judgement, ...]
    benchmarks: tuple[str, ...] = ()


class NotTestable(Exception):
    """A figure of the expression is missing, for the reason given."""


def judged(joiner: Joiner, report: str) -> tuple[Conclusion, ...]:
    """The verdicts on all conclusions of a report from the figures of a run.

    On models of the report's machine, what holds because of an input of them says so.
    """
    series, facts = joiner.run.series, joiner.run.facts
    one_host = not any(map(between_hosts, series))
    of_report = [machine for machine in machines().values() if machine.report == report]
    is_simulated = any(is_model(each.point.transport) for each in series)
    models = [models_of(joiner.run).get(each.point.transport) for each in series]
    rebuilds = all(model and machines().get(model["machine"] or "") in of_report for model in models)
    page_bytes = None if is_simulated else facts.get("memory", {}).get("page_bytes")
    found = []
    for spec in conclusions(report):
        why = spec.get("untestable") or (spec.get("one_host") if one_host else None)
        if page_bytes is not None and spec.get("page_bytes", page_bytes) != page_bytes:
            why = f"it is judged for pages of {format_bytes(spec['page_bytes'])}, which this machine does not have"
        found.append(_judged(joiner, report, spec, why, spec.get("input") if rebuilds else None))
    return tuple(found)


def _judged(
    joiner: Joiner, report: str, spec: Mapping[str, Any], why: str | None, from_input: str | None
) -> Conclusion:
    judgements = [Judgement(_ANY, "not testable", why)]
    if "holds" in spec and not why:
        judgements = [_judgement(joiner, report, spec, on) for on in _transports(joiner, report, spec)]
        if from_input:
            said = f"by construction: {from_input}"
            judgements = [replace(each, reason=said) if each.verdict == "holds" else each for each in judgements]
        reasons = {(each.verdict, each.reason) for each in judgements}
        if len(reasons) == 1 and judgements[0].verdict == "not testable":
            judgements = [replace(judgements[0], on=_ANY)]
    figures = {name: _published(report, where) for name, where in _first(spec).items() if "where" in where}
    said = spec.get("published") or ", ".join(f"{name} {each.printed} {each.unit}" for name, each in figures.items())
    of = [each.title for each in benchmarks(report) if any(figure.matches(each.where) for figure in figures.values())]
    return Conclusion(spec["id"], spec["text"], spec.get("when"), said, tuple(judgements), (*spec.get("of", ()), *of))


def _transports(joiner: Joiner, report: str, spec: Mapping[str, Any]) -> list[str]:
    """The transports that a conclusion is judged on, each for itself; or one for all."""
    if spec.get("across"):
        return [_ANY]
    found: dict[str, None] = {}
    for where in _first(spec).values():
        spec_, quantity = _point(report, where)
        for members in joiner.columns(spec_, quantity).values():
            found[transport_of(members[0])] = None
    return list(found) or [_ANY]


def _first(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    rows: Mapping[str, Any] = spec.get("rows", {})
    each: Mapping[str, Sequence[Any]] = spec.get("each", {})
    return {name: _with(where, {key: values[0] for key, values in each.items()}) for name, where in rows.items()}


def _with(where: Mapping[str, Any], more: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**where, "where": {**where["where"], **more}} if "where" in where else where


def _judgement(joiner: Joiner, report: str, spec: Mapping[str, Any], on: str) -> Judgement:
    """The verdict over `each` of several rows: all must hold. The first that does not decides."""
    key, values = next(iter(spec.get("each", {}).items()), ("", [None]))
    judgements = [_one(joiner, report, spec, on, {key: value} if key else {}) for value in values]
    rank: list[Verdict] = ["does not hold", "inconclusive", "not testable", "holds"]
    worst = min(judgements, key=lambda each: rank.index(each.verdict))
    if not key or worst.verdict == "not testable":
        return worst
    count = sum(each.verdict == "holds" for each in judgements)
    at = "" if worst.verdict == "holds" else f"; not with {values[judgements.index(worst)]}"
    return replace(
        worst, reason="; ".join(filter(None, (f"with {count} of {len(values)} numbers of {key}{at}", worst.reason)))
    )


def _one(joiner: Joiner, report: str, spec: Mapping[str, Any], on: str, more: Mapping[str, Any]) -> Judgement:
    try:
        rows = spec["rows"].items()
        figures = {name: _figure(joiner, report, _with(where, more), on) for name, where in rows}
    except NotTestable as why:
        return Judgement(on, "not testable", str(why))
    bounds = {name: (each.interval.low, each.interval.high) for name, each in figures.items() if each.interval}
    if len(bounds) < len(figures):
        return Judgement(on, "inconclusive", "too few measurements for an interval", figures)
    states = {each.state for each in figures.values() if each.state is not None}
    if len(states) > 1 or states & {MIXED.name, SEVERAL_STATES}:
        listed = ", ".join(f"{name} {each.state}" for name, each in figures.items() if each.state is not None)
        return Judgement(on, "inconclusive", f"the figures belong to several machine states: {listed}", figures)
    result = evaluate(spec["holds"], bounds)
    verdict: Verdict = "inconclusive" if result is None else "holds" if result else "does not hold"
    return Judgement(on, verdict, None, figures)


# ---- the figures of a name -----------------------------------------------------------------------------------------


def _published(report: str, where: Mapping[str, Any]) -> Published:
    return next(figure for figure in published(report) if figure.matches(where["where"]))


def _point(report: str, where: Mapping[str, Any]) -> tuple[Spec, str]:
    """The point that a name stands for, and the quantity of it."""
    if "point" in where:
        spec, quantity = parse(where["point"]), where["quantity"]
    else:
        figure = _published(report, where)
        spec, quantity = figure.spec, where.get("quantity") or figure.quantities[0]
    assert spec is not None
    return spec, quantity


def _figure(joiner: Joiner, report: str, where: Mapping[str, Any], on: str) -> Reported:
    """The measured value of a name on a transport: of the best way, or of the one with the fewest options."""
    spec, quantity = _point(report, where)
    columns = joiner.columns(spec, quantity)
    values: list[Reported] = []
    for members in sorted(columns.values(), key=lambda each: len(each[0].point.options)):
        fits = [each for each in members if re.search(where.get("transports", ""), each.point.transport)]
        measured = [each for each in fits if not isinstance(each, PredictedSeries)]
        if measured and on in (_ANY, transport_of(measured[0])):
            values.append(joiner.value(spec, quantity, measured))
    known = [value for value in values if value.number is not None]
    if not known:
        unlike = where.get("elsewhere") if columns and not values else None  # measured on other transports only
        raise NotTestable(next((value.reason for value in values if value.reason), unlike or _too_many(joiner, spec)))
    best = {"min": min, "max": max}.get(where.get("best", ""))
    return best(known, key=lambda value: value.number or 0.0) if best else known[0]


def _too_many(joiner: Joiner, spec: Spec) -> str:
    """Why there is no measured value: what its series say, where predictions stand for them."""
    skipped = [each for each in joiner.run.series if each.point.pattern in spec.patterns and each.shown is None]
    of_ranks = [each for each in skipped if spec.ranks in (None, each.point.ranks)]
    return reason_of(of_ranks[0]) if of_ranks else NOT_PLANNED


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
