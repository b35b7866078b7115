"""The first run compared with each other one: slower and faster series, and the differences around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hockney.analysis.compare import Comparison, Range, Verdict, compare_runs
from hockney.errors import UsageError
from hockney.report.changes import counts_text, differences_texts, load_sentences, names_of, range_name, row
from hockney.report.html.charts import Axis, Chart, Line, PointValues, View
from hockney.report.html.material import Material

_ORDER = (Verdict.SLOWER, Verdict.FASTER, Verdict.INCONCLUSIVE, Verdict.SAME)


@dataclass(frozen=True)
class ComparisonItem:
    """A comparison in words: `rows` of series, base, new, change and verdict; `why` where there is none."""

    title: str
    summary: str
    first: str = ""
    second: str = ""
    rows: tuple[tuple[str, ...], ...] = ()
    changed: tuple[str, ...] = ()
    load: tuple[str, ...] = ()


def comparisons_of(material: Material) -> tuple[list[ComparisonItem], list[Chart]]:
    """One item and one chart for each other run; no chart where nothing has an interval."""
    items, charts = [], []
    for number, other in enumerate(material.others):
        title = f"{material.run.name} and {other.name}"
        try:
            comparison = compare_runs(material.results.store, material.run.id, other.id)
        except UsageError as error:
            items.append(ComparisonItem(title, f"{str(error)[:1].upper()}{str(error)[1:]}."))
            continue
        items.append(_item(title, comparison))
        chart = _chart(f"comparison-{number + 1}", title, comparison)
        charts += [chart] if chart else []
    return items, charts


def _item(title: str, comparison: Comparison) -> ComparisonItem:
    ranges = sorted(comparison.ranges, key=lambda alike: (_ORDER.index(alike.verdict), -_distance(alike)))
    names = names_of(comparison)
    return ComparisonItem(
        title=title,
        summary=f"{counts_text(comparison)}.",
        first=f"run {comparison.base}",
        second=f"run {comparison.new}",
        rows=tuple(tuple(row(alike, names)) for alike in ranges),
        changed=tuple(differences_texts(comparison)),
        load=tuple(load_sentences(comparison)),
    )


def _ratio(alike: Range) -> float:
    return 1.0 if alike.ratio is None else alike.ratio.value


def _distance(alike: Range) -> float:
    return max(_ratio(alike), 1 / _ratio(alike))


def _chart(chart_id: str, title: str, comparison: Comparison) -> Chart | None:
    ranges = sorted((alike for alike in comparison.ranges if alike.ratio), key=_distance, reverse=True)
    ranges = sorted(ranges[:40], key=_ratio, reverse=True)
    if not ranges:
        return None
    names = names_of(comparison)
    lines = [Line(verdict.value, _points(ranges, verdict)) for verdict in _ORDER]
    return Chart(
        id=chart_id,
        title=f"Change from {title}",
        about="The ratio of the second run's times to the first one's with its 95 % interval, by series.",
        kind="intervals",
        x=Axis("time of the second over the first", "ratio", "log10"),
        y=Axis("", "", "names"),
        views=(
            View("", tuple(line for line in lines if line.points), tuple(range_name(alike, names) for alike in ranges)),
        ),
        note="Above 1 the second run is slower. The intervals of several sizes are the outermost of theirs.",
    )


def _points(ranges: Sequence[Range], verdict: Verdict) -> list[PointValues]:
    placed = [(place, alike.ratio) for place, alike in enumerate(ranges) if alike.verdict is verdict]
    return [(ratio.value, place, ratio.low, ratio.high) for place, ratio in placed if ratio is not None]
