"""Times of a run idle and under its background, for the screen, Markdown and the page."""

from __future__ import annotations

from collections.abc import Callable

from hockney.analysis.impact import Impact, Impacts
from hockney.report.table import Cell, TextTable
from hockney.report.words import cpus_text, hosts_text, known_text, ratio_text, size_text
from hockney.results.runs import Run
from hockney.units import counted, format_ns


def background_text(run: Run) -> str:
    """`incast by 3 ranks on n3, n4, n5`: the background of a run that has one."""
    background = run.info.plan["background"]
    hosts, cpus = background["hosts"], background["cpus"]
    where = hosts_text(hosts) if hosts else cpus_text(cpus) if cpus else ""
    return f"{background['name']} by {counted(background['ranks'], 'rank')}{f' on {where}' if where else ''}"


def impact_table(impacts: Impacts, name_of: Callable[[str], str]) -> TextTable:
    """A row for each point, without the columns of which nothing is known, and a note; `name_of` a transport."""
    columns: dict[str, Callable[[Impact], Cell]] = {
        "what": lambda impact: Cell(impact.point.text(name_of(impact.point.transport))),
        "size": lambda impact: Cell(size_text(impact.point)),
        "impact": _factor,
        "idle p50": lambda impact: Cell(known_text(impact.idle.p50_ns, format_ns)),
        "loaded p50": lambda impact: Cell(known_text(impact.loaded.p50_ns, format_ns)),
        "idle p99": lambda impact: Cell(known_text(impact.idle.p99_ns, format_ns)),
        "loaded p99": lambda impact: Cell(known_text(impact.loaded.p99_ns, format_ns)),
        "idle p99.9": lambda impact: Cell(known_text(impact.idle.p999_ns, format_ns)),
        "loaded p99.9": lambda impact: Cell(known_text(impact.loaded.p999_ns, format_ns)),
    }
    cells = {title: [cell(impact) for impact in impacts.impacts] for title, cell in columns.items()}
    shown = {title: column for title, column in cells.items() if any(cell.text for cell in column)}
    note = "Impact: loaded over idle time in the same round, with its 95 % interval. p50 is the median over all rounds,"
    note += " so loaded over idle may differ from the impact."
    if not all(cell.text for column in shown.values() for cell in column):
        note += " Empty: too few samples, or several repetitions in each."
    return TextTable("Under load", tuple(shown), tuple(zip(*shown.values(), strict=True)), notes=(note,))


def _factor(impact: Impact) -> Cell:
    """`3.02x` and its interval, `(2.95 to 3.10)`, or `–` where there is none."""
    factor = impact.factor
    known = factor.estimate
    spread = f"({ratio_text(known.low)} to {ratio_text(known.high)})" if known else "–"
    return Cell(f"{ratio_text(factor.value)}x", spread)
