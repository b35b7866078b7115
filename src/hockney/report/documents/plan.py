"""A plan as a document: the points to measure, the skipped ones with the reason, and the time needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hockney.analysis.repeat import same_hosts
from hockney.model import CurveKey, Point, curve_of
from hockney.report.commands import typed
from hockney.report.document import Block, Column, Sentence, Table, Text, Title
from hockney.report.notes import by_reason, folded, sizes_text
from hockney.report.words import size_text
from hockney.units import counted, format_duration_s, percent_digits
from hockney.worker.placement import Placement

if TYPE_CHECKING:
    from hockney.measure.plan import Plan


def plan_document(plan: Plan, goal: str = "") -> Iterator[Block]:
    """Nothing of it was started or stored. `goal`: what ends it, by default that its points are known."""
    transports = counted(len({point.transport for point in plan.points}), "transport")
    yield Title(f"{plan.suite}: {counted(len(plan.points), 'point')} on {transports}")
    columns = [Column(name, wrap=True) for name in ("what", "transport", "sizes")]
    yield Table(columns, _rows(plan.points, plan), fits=True)
    if plan.skipped:
        yield Title("Skipped")
        skipped = sorted(plan.skipped, key=lambda each: each.point.bytes)
        texts: list[list[str] | str] = []
        for why, points in by_reason((each.reason, each.point) for each in skipped).items():
            few = folded(points)
            texts += [f"Because {why}:", *([[*few]] if few else _rows(points, plan))]
        yield Table(columns, texts, fits=True)
    limits, first_s = plan.limits, plan.first_rounds_s()
    yield Sentence()
    yield Text(
        f"Ends when {goal or f'every point is known to {percent_digits(limits.precision)} %'}, after about "
        f"{format_duration_s(max(limits.time_s, first_s))} at the latest: "
        f"{counted(limits.launches, 'launch', 'launches')}{' or more' * limits.more_launches}, whose first rounds take "
        f"about {format_duration_s(first_s)}. Nothing was started or stored."
    )
    idle = idle_hosts_text(plan.as_json(), max(point.ranks for point in plan.points))
    if idle:
        yield Text(f"{idle}.")
    if short := short_text(plan):
        yield Text(f"{short}.", tone="caution")


def _rows(points: Iterable[Point], plan: Plan) -> list[list[str]]:
    """A row for each curve with all its transports, the smallest size first."""
    curves: dict[CurveKey, list[Point]] = {}
    for point in sorted(points, key=lambda point: point.bytes):
        curves.setdefault(curve_of(point), []).append(point)
    rows: dict[tuple[str, str], list[str]] = {}
    for key, curve in curves.items():
        whole = f"{len(curve)} from {size_text(curve[0])} to {size_text(curve[-1])}"
        sizes = whole if len(curve) > 4 else sizes_text(curve)
        more = ", more where the curve bends" if key in plan.refine else ""
        rows.setdefault((curve[0].text(), f"{sizes}{more}"), []).append(curve[0].transport)
    return [[what, ", ".join(transports), sizes] for (what, sizes), transports in rows.items()]


def short_text(plan: Plan) -> str | None:
    """The warning that the time of a plan is too short, with a time that is enough; None where it is enough."""
    from hockney.measure.estimate import enough_text, is_too_short  # with pydantic, and a sheet needs the rest alone

    shown = [point for point in plan.points if point.role == "first"] or plan.points  # those have more rounds
    first_s = plan.first_rounds_s(shown)
    if not is_too_short(plan.limits.time_s, first_s, plan.limits.launches):
        return None
    network = " at 1 Gbit/s" if plan.placement.hosts else ""
    return (
        f"The time is too short for confidence intervals: one round takes about {format_duration_s(first_s)}{network}. "
        f"Try: --time {enough_text(first_s)}"
    )


def idle_hosts_text(plan: Mapping[str, Any], ranks: int) -> str | None:
    """`No rank on n3, n4. …`: the hosts of a plan without one of this number of ranks; None if all have one."""
    idle = [host.name for host in Placement.of_plan(plan).hosts[ranks:]]  # spread evenly
    if not idle:
        return None
    shown = ", ".join(idle if len(idle) <= 4 else [*idle[:3], f"… ({counted(len(idle), 'host')})"])
    return f"No rank on {shown}. To compare every host: {typed('health', *same_hosts(plan))}"
