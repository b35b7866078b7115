"""The first run compared with each other one: slower and faster series, and the differences around them."""

from __future__ import annotations

import math

from hockney.analysis.compare import Comparison, Range, Verdict, compare_runs
from hockney.errors import UsageError
from hockney.report.changes import names_of, range_name
from hockney.report.charts import Axis, Chart, Line, View
from hockney.report.document import Section, Text
from hockney.report.documents.comparison import comparison_document
from hockney.report.page.material import Material

_ORDER = (Verdict.SLOWER, Verdict.FASTER, Verdict.INCONCLUSIVE, Verdict.SAME)

_RANGES_MAX = 40  # of a chart


def comparisons_of(material: Material) -> tuple[list[Section], list[Chart]]:
    """For each other run what `hockney compare` says, or why nothing, and a chart where there are intervals."""
    sections, charts = list[Section](), list[Chart]()
    for number, other in enumerate(material.others, 1):
        before, after = (material.run_names[run.id] for run in (material.run, other))
        title = f"{before} → {after}" if f"run {other.id}" != after else f"{material.run.name} and {other.name}"
        try:
            comparison = compare_runs(material.results.store, material.run.id, other.id)
        except UsageError as error:
            sections.append(Section(title, (Text(f"{str(error)[:1].upper()}{str(error)[1:]}."),)))
            continue
        *blocks, summary = comparison_document(comparison, everything=False)
        sections.append(Section(title, (summary, *blocks)))  # a page is read from the top
        if any(alike.ratio for alike in comparison.ranges):
            change = f"Change from {before} to {after}"
            charts.append(_chart(f"comparison-{number}", change, comparison))
    return sections, charts


def _change(alike: Range) -> float:
    """The logarithm of the ratio of the times."""
    return math.log(alike.ratio.value) if alike.ratio else 0.0


def _chart(chart_id: str, title: str, comparison: Comparison) -> Chart:
    """The largest changes, the slowest first."""
    changed = sorted((alike for alike in comparison.ranges if alike.ratio), key=lambda alike: -abs(_change(alike)))
    ranges = sorted(changed[:_RANGES_MAX], key=_change, reverse=True)
    names = names_of(comparison)
    lines = []
    for verdict in _ORDER:
        ratios = [(row, alike.ratio) for row, alike in enumerate(ranges) if alike.verdict is verdict]
        points = [(ratio.value, row, ratio.low, ratio.high) for row, ratio in ratios if ratio is not None]
        lines += [Line(verdict.value, points)] if points else []
    return Chart(
        id=chart_id,
        title=title,
        about="The ratio of the second run's times to the first one's with its 95 % interval, by series.",
        kind="intervals",
        x=Axis("time of the second over the first", "ratio", "log10"),
        y=Axis("", "", "names"),
        views=(View("", lines, [range_name(alike, names) for alike in ranges]),),
        note="Above 1 the second run is slower. The intervals of several sizes are the outermost of theirs.",
    )
