"""`hockney run --dry-run`: the points to measure, the skipped ones with the reason, and the time needed."""

from __future__ import annotations

from collections.abc import Iterable

from hockney.cli import render
from hockney.cli.progress import idle_hosts_text, short_text
from hockney.cli.render import TableColumn
from hockney.cli.words import sizes_text
from hockney.measure.estimate import first_rounds_s
from hockney.measure.plan import Plan, RunOptions, make_plan, refuse_empty, transport_words
from hockney.model import CurveKey, Point, curve_of
from hockney.report.words import size_text
from hockney.suites import Suite
from hockney.units import counted, format_duration_s, percent_digits
from hockney.worker.catalogue import load


def show_plan(suite: Suite, asked: RunOptions, *, as_json: bool) -> int:
    """Print the plan; nothing is started or stored. Returns the exit code. Raises UsageError for an empty plan."""
    plan = make_plan(suite, asked, load(transport_words(suite, asked)))
    refuse_empty(plan)
    if as_json:
        document = {
            "dry_run": True,
            "suite": plan.suite,
            "plan": plan.as_json(),
            "first_rounds_s": first_rounds_s(plan.points, plan.launches, on_hosts=bool(plan.hosts)),
            "points": plan.points,
            "skipped": plan.skipped,
        }
        render.print_json("run", document)
    else:
        _print(plan)
    return 0


def _print(plan: Plan) -> None:
    transports = counted(len({point.transport for point in plan.points}), "transport")
    render.title(f"{plan.suite}: {counted(len(plan.points), 'point')} on {transports}", first=True)
    columns: list[TableColumn | str] = [TableColumn("what", wrap=True), "transport", TableColumn("sizes", wrap=True)]
    render.table(columns, _rows(plan.points, plan), fits=True)
    if plan.skipped:
        render.title("Skipped")
        by_reason: dict[str, list[Point]] = {}
        for skipped in sorted(plan.skipped, key=lambda skipped: skipped.point.bytes):
            by_reason.setdefault(skipped.reason, []).append(skipped.point)
        texts = [text for why, points in by_reason.items() for text in (f"Because {why}:", *_rows(points, plan))]
        render.table(columns, texts, fits=True)
    first_s = first_rounds_s(plan.points, plan.launches, on_hosts=bool(plan.hosts))
    render.say()
    render.note(
        f"Ends when every point is known to {percent_digits(plan.precision)} %, after about "
        f"{format_duration_s(max(plan.time_s, first_s))} at the latest: "
        f"{counted(plan.launches, 'launch', 'launches')}{' or more' * plan.more_launches}, whose first rounds take "
        f"about {format_duration_s(first_s)}. Nothing was started or stored."
    )
    idle = idle_hosts_text(plan.as_json(), max(point.ranks for point in plan.points))
    if idle:
        render.note(f"{idle}.")
    if short := short_text(plan):
        render.note(f"{short}.", style="yellow")


def _rows(points: Iterable[Point], plan: Plan) -> list[list[str]]:
    """A row for each curve, its smallest size first."""
    curves: dict[CurveKey, list[Point]] = {}
    for point in sorted(points, key=lambda point: point.bytes):
        curves.setdefault(curve_of(point), []).append(point)
    rows = []
    for key, curve in curves.items():
        whole = f"{len(curve)} from {size_text(curve[0])} to {size_text(curve[-1])}"
        sizes = whole if len(curve) > 4 else sizes_text(curve)
        more = ", more where the curve bends" if key in plan.refine else ""
        rows.append([curve[0].text(), curve[0].transport, f"{sizes}{more}"])
    return rows
