"""A classic report as tables of texts: a page that a reader can take in, then every row, the same for all outputs."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from hockney.machine.facts import data_caches
from hockney.model import Point
from hockney.report.classic import ClassicReport
from hockney.report.classic.conclusions import Conclusion, Judgement
from hockney.report.classic.configuration import configuration_tables
from hockney.report.classic.models import model_tables, models_of
from hockney.report.classic.quantity import NOT_PLANNED
from hockney.report.classic.values import BenchmarkRows, Here, PublishedRow, Reported, format_figure, table_section
from hockney.report.document import Cell, Section
from hockney.report.words import NOTHING, SHORT_MARK, figure_text, known_text
from hockney.stats import RANGE
from hockney.units import counted, format_bytes

PREDICTED = "~"
_NAMED_MAX = 4
_OF_DETAILS = {
    "ancor": ("Rank 0, the 250, sends; with source 1 rank 1, the 590. CPU: of the time that the side communicates.",)
}
_BEFORE = ("from", "to")  # titles that stand before their text
_COUNTS = {
    "atlas": "A row of N processors needs N ranks; outfarming and multicast need one more than receivers, the funnel "
    "one more than senders, and a farm of S senders and R receivers S + R + 1 ranks, the supervisor included.",
    "scabench": "A node of the report is a rank here; with two processes on each node, two ranks.",
}


# ---- the first page --------------------------------------------------------------------------------------------------


def first_page(report: ClassicReport) -> list[Section]:
    """A line for each benchmark, and the conclusions."""
    return [_summary(report), *_conclusions(report)]


def _summary(report: ClassicReport) -> Section:
    """Of each benchmark its first row with a figure, how many rows have one, and how near a model comes in all."""
    head = ["benchmark", "row", "published"]
    head += ["model", "error", "rows", "median, largest"] if report.is_model else ["here", "ratio", "rows"]
    lines = [_line(report, group) for group in report.groups]
    ons = {on for on, _ in lines if on}
    if len(ons) > 1:
        head.insert(4, "on")
        lines = [(on, [*texts[:4], on, *texts[4:]]) for on, texts in lines]
    figures = [row for group in report.groups for row in _figures_of(group)]
    notes = [
        f"{count} of {len(figures)} rows {'has' if count == 1 else 'have'} no figure here: {reason}."
        for reason, count in Counter(row.reason for row in figures if row.reason).most_common()
    ]
    known = [(row, row.known.values()) for group in report.groups for row in group.rows if row.known]
    predicted = [row for row, cells in known if all(cell.value.is_predicted for cell in cells)]
    if predicted:
        notes.append(
            f"Rows that need more ranks than this run had CPUs are predicted: {len(predicted)} of {len(figures)} "
            f"({PREDICTED}). --oversubscribe or --hosts measures them."
        )
    if len(ons) == 1:
        others = "; the first transport with a figure counts" if any(len(g.columns) > 1 for g in report.groups) else ""
        notes.append(f"Here: {', '.join(sorted(ons))}{others}. ratio: this machine's figure over the published one.")
    if (
        predicted or any(row.reason == NOT_PLANNED for group in report.groups for row in group.rows)
    ) and report.report.name in _COUNTS:
        notes.append(_COUNTS[report.report.name])
    rows = [texts for _, texts in lines]
    return table_section(report.report.source, (*head, "claims"), rows, notes=notes, keys=2, is_open=True)


def _line(report: ClassicReport, group: BenchmarkRows) -> tuple[str, list[str]]:
    """The column of the figure that is shown, and the line. Of two readings of a figure the nearer one counts."""
    known = _nearest(group)
    row, cell = next(((row, cell) for row, cell in known if cell.ratio), next(iter(known), (group.rows[0], None)))
    texts = [group.benchmark.title, _row_name(group, row, most=2), _published(row, with_unit=True)]
    texts += [_value_cell(cell.value, short=True) if cell else NOTHING, _compared(cell)]
    column = next((column for column, each in row.cells.items() if each is cell), "").partition(",")[0]
    if report.is_model:
        compared = [each for _, each in known if each.error is not None]
        own = [cell for cell in compared if not cell.is_used]
        not_used = {id(row.figure) for row, cell in known if cell.error is not None and not cell.is_used}
        errors = [cell.error for cell in own or compared if cell.error is not None]
        largest = max(errors, key=abs, default=0.0)
        texts.append("used" if compared and not own else f"{len(not_used)} of {len(_figures_of(group))}")
        texts.append(f"{statistics.median(map(abs, errors)):.1%}, {largest:+.1%}" if errors else NOTHING)
        column = ""
    else:
        measured = {id(row.figure) for row, cell in group.known if not cell.value.is_predicted}
        texts.append(f"{len(measured)} of {len(_figures_of(group))}")
    return column, [*texts, _verdict_of(report, group)]


def _nearest(group: BenchmarkRows) -> list[tuple[PublishedRow, Here]]:
    """The known cells; of a figure that can be read in several ways those of the reading that is nearest."""
    readings: dict[int, dict[str, list[tuple[PublishedRow, Here]]]] = {}
    for row, cell in group.known:
        readings.setdefault(id(row.figure), {}).setdefault(row.quantity, []).append((row, cell))
    return [
        each
        for quantities in readings.values()
        for each in min(
            quantities.values(),
            key=lambda pairs: min(abs(math.log(c.ratio)) if c.ratio else math.inf for _, c in pairs),
        )
    ]


def _row_name(group: BenchmarkRows, row: PublishedRow, *, most: int | None = None) -> str:
    """`4 processors, 64 B`: the figures and words that name a row, the first `most` of more."""
    parts = []
    for title, text in zip(group.benchmark.keys.values(), row.names, strict=True):
        if not text:
            continue
        is_count = text.isdecimal() and title not in _BEFORE
        word = f"{text} B" if title == "bytes" else f"{text} {title}" if is_count else text
        parts.append(f"{title} {text}" if title in _BEFORE else word.replace("delay, us", "us delay"))
    return ", ".join(parts[:most]).replace(", to ", " to ")


def _verdict_of(report: ClassicReport, group: BenchmarkRows) -> str:
    """The verdicts on the conclusions about a benchmark: one word if they agree."""
    of_group = [each for each in report.conclusions if group.benchmark.title in each.benchmarks]
    verdicts = Counter(judgement.verdict for each in of_group for judgement in each.judgements)
    del verdicts["not testable"]  # the conclusions below say why
    if not verdicts:
        return NOTHING
    if len(verdicts) == 1:
        return next(iter(verdicts))
    return f"{verdicts['holds']} of {sum(verdicts.values())} hold"


def _figures_of(group: BenchmarkRows) -> list[PublishedRow]:
    """A row for each figure: of several readings one with a value, where any has one."""
    found: dict[int, PublishedRow] = {}
    for row in group.rows:
        if found.setdefault(id(row.figure), row).reason:
            found[id(row.figure)] = row
    return list(found.values())


def _conclusions(report: ClassicReport) -> Iterator[Section]:
    """What the report concludes, and the verdict on each transport."""
    if not report.conclusions:
        return
    ons = list(dict.fromkeys(each.on for one in report.conclusions for each in one.judgements if each.on))
    ons = ons if len(ons) > 1 else []
    rows = [(_conclusion_text(each), *_verdicts(each, ons)) for each in report.conclusions]
    yield table_section("Does it hold here?", ("the report concludes", *(ons or ["here"])), rows, is_open=True)


def _conclusion_text(conclusion: Conclusion) -> str:
    reasons = dict.fromkeys(each.reason for each in conclusion.judgements if each.reason)
    text = "; ".join(str(reason).partition(";")[0] for reason in reasons)
    why = f" {text[:1].upper()}{text[1:]}." if text else ""
    return f"{conclusion.text}{f' Test: {conclusion.holds}.' if conclusion.holds else ''}{why}"


def _verdicts(conclusion: Conclusion, ons: Sequence[str]) -> list[str]:
    found = {each.on: each.verdict for each in conclusion.judgements}
    if not ons:
        return [next(iter(found.values()))]
    return [found.get(on) or found.get("") or NOTHING for on in ons]


# ---- every row -------------------------------------------------------------------------------------------------------


def all_tables(report: ClassicReport) -> list[Section]:
    """What the machine is, each benchmark with all its rows, what decided the conclusions, and what has no row."""
    head = model_tables(models_of(report.run).values()) if report.is_model else []
    head = head or configuration_tables(report.report.name, report.run)
    groups = [_group_table(report, group) for group in report.groups]
    return [*head, *groups, *_decided(report), *_details(report)]


def _group_table(report: ClassicReport, group: BenchmarkRows) -> Section:
    rows = [row for row in group.rows if row.known]
    keys = [
        (place, title) for place, title in enumerate(group.benchmark.keys.values()) if any(r.names[place] for r in rows)
    ]
    units = list(dict.fromkeys(row.unit for row in rows))
    has_model = not report.is_model and any(row.modelled is not None for row in rows)
    head = [title for _, title in keys] + ["published"] + ["model"] * has_model
    columns = [column for column in group.columns if any(column in row.known for row in rows)]
    also = rows[0].figure.also if rows and rows[0].figure.also else ""
    compared = {column for column in columns if any(row.cells[column].ratio for row in rows if column in row.cells)}
    is_narrow = len(columns) > 2  # then a ratio stands in the cell of its figure
    for column in columns:
        head += [column, *([also] if also else [])]
        head += ["error" if report.is_model else "ratio"] if column in compared and not is_narrow else []
    shown = []
    for row in rows:
        texts = [row.names[place] for place, _ in keys]
        texts += [_published(row, with_unit=len(units) > 1)] + [known_text(row.modelled, format_figure)] * has_model
        for column in columns:
            cell = row.cells.get(column)
            value = _value_cell(cell.value) if cell else ""
            texts.append(f"{value} {_compared(cell, 'x')}".rstrip() if is_narrow else value)
            texts += [_value_cell(cell.also) if cell and cell.also else ""] if also else []
            texts += [_compared(cell)] if column in compared and not is_narrow else []
        shown.append(texts)
    notes = [*_left_out(group), *group.notes]
    title = f"{group.benchmark.title}{f', {units[0]}' if len(units) == 1 and units[0] else ''}"
    return table_section(title, head, shown, notes=notes, keys=len(keys), is_open=len(shown) <= 20)


def _left_out(group: BenchmarkRows) -> Iterator[str]:
    """The rows without a figure here, by their reason: one line each."""
    reasons: dict[str, list[str]] = {}
    for row in group.rows:
        if row.reason:
            reasons.setdefault(row.reason, []).append(f"{_row_name(group, row)}: {_published(row, with_unit=True)}")
    for reason, names in reasons.items():
        more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
        yield f"Without a figure here ({'; '.join(names[:_NAMED_MAX])}{more}): {reason}."


def _decided(report: ClassicReport) -> Iterator[Section]:
    """The figures that decided each conclusion."""
    rows = []
    for conclusion in report.conclusions:
        for each in conclusion.judgements:
            here = f"{each.on}: {_figures(each)}" if each.on else _figures(each)
            rows.append(
                (conclusion.text, conclusion.published, here if each.figures else each.reason or "", each.verdict)
            )
    if rows:
        columns = ("the report concludes", "published", "here", "verdict")
        yield table_section("What decided the conclusions", columns, rows)


def _figures(judgement: Judgement) -> str:
    """`far 84.9 us ±1%, near 56.9 us`."""
    return ", ".join(f"{name} {_value_cell(value, unit=True)}" for name, value in judgement.figures.items())


def _details(report: ClassicReport) -> Iterator[Section]:
    """The points that a report has no figures of, or only drew."""
    for detail in report.details:
        units = {
            name: value.unit
            for _, values in detail.rows[:1]
            for name, value in zip(detail.quantities, values, strict=True)
        }
        named = (f"{name}, {unit}" if unit else name for name, unit in units.items())
        head = ["on", "options", "ranks", "bytes", *named]
        rows = [(*_point_names(series.point, report), *map(_value_cell, values)) for series, values in detail.rows]
        title = f"{detail.pattern.capitalize()}: all points of this run"
        yield table_section(title, head, rows, notes=_OF_DETAILS.get(report.report.name, ()), keys=2)


def _point_names(point: Point, report: ClassicReport) -> tuple[str, str, str, str]:
    options = ", ".join(f"{name} {value}" for name, value in point.options)
    level = next((f"L{level}" for level, size in data_caches(report.run.facts) if point.bytes <= size), "memory")
    size = f"{point.bytes} ({level})" if point.pattern == "memload" else str(point.bytes) if point.is_sized else ""
    return point.transport, options, str(point.ranks), size


# ---- texts -----------------------------------------------------------------------------------------------------------


def _published(row: PublishedRow, *, with_unit: bool) -> str:
    if row.published is None:
        return "na" if row.figure.value is None else ""
    printed = row.figure.printed if row.published == row.figure.value else format_figure(row.published)
    return f"{printed} {row.unit}".rstrip() if with_unit else printed


def _value_cell(value: Reported, *, unit: bool = False, short: bool = False) -> Cell:
    """`6.62`, `±1%`; `~` before a prediction, `*` after the time of a scheduler, `at 4 MiB` after a best rate."""
    if value.estimate is None:
        return Cell(NOTHING)
    has_bounds = value.over is not None or value.is_predicted
    shown, spread = figure_text(value.estimate, format_figure, is_range=value.over == RANGE) if has_bounds else ("", "")
    marks = "*" * value.is_oversubscribed + SHORT_MARK * value.is_short
    parts = [
        PREDICTED * value.is_predicted + (shown or _plain(value)) + marks,
        value.unit if unit else "",
        f"at {format_bytes(value.at_bytes)}" if value.at_bytes is not None and not short else "",
        f"({value.state})" if value.state and value.at_bytes is not None and not value.is_exact and not short else "",
        f"of {value.pairs[0]} of {value.pairs[1]} pairs" if value.pairs and value.pairs[0] < value.pairs[1] else "",
    ]
    return Cell(" ".join(filter(None, parts)), "" if value.is_exact else spread)


def _plain(value: Reported) -> str:
    """A place is a whole number, without digits behind it."""
    number = value.number or 0.0
    return f"{number:.0f}" if not value.unit and number.is_integer() else format_figure(number)


def _compared(cell: Here | None, times: str = "") -> str:
    """The error of a model, or the ratio to the published figure, with its sign."""
    if cell is None or cell.ratio is None:
        return ""
    if cell.error is not None:
        return "reproduced" if cell.is_reproduced else f"{cell.error:+.1%}"
    return f"{times}{format_figure(cell.ratio)}"


def values_of(report: ClassicReport) -> list[Reported]:
    """All values that tables show."""
    cells = [cell for group in report.groups for _, cell in group.known]
    return [value for cell in cells for value in (cell.value, cell.also) if value is not None and value.estimate]


def footnotes(report: ClassicReport, sections: Iterable[Section]) -> list[str]:
    """What the words and marks of these tables mean."""
    values, notes = values_of(report), []
    if report.is_model:
        notes.append(
            "error: of the model against the published figure. reproduced: its fit used that figure, and is within 2 %."
        )
        notes.append("rows: those that the fit did not use, with their errors, or of used ones where it used them all.")
    if any(PREDICTED in cell for each in sections for row in each.rows for cell in row):
        notes.append(f"{PREDICTED}: predicted from this run's two ranks, for as many CPUs as ranks.")
    states = Counter(value.state for value in values if value.state and not value.is_exact)
    if states:
        (state, count), *_ = states.most_common()
        notes.append(
            f"Machine state: {state} for {count} of {counted(states.total(), 'figure')}; --json has each figure's."
        )
    return notes


def plots_of(report: ClassicReport) -> Iterator[tuple[str, dict[str, list[tuple[int, float]]], str]]:
    """Title, curves of (size, value) and unit: of rows that differ in size only, with two published sizes or more."""
    for group in report.groups:
        titles = list(group.benchmark.keys.values())
        if "bytes" not in titles:
            continue
        at = titles.index("bytes")
        found: dict[tuple[str, str], dict[str, list[tuple[int, float]]]] = {}
        for row in group.rows:
            others = ", ".join(
                f"{title} {text}" for title, text in zip(titles, row.names, strict=True) if title != "bytes"
            )
            curves = found.setdefault((others, row.unit), {})
            here = ((column, cell.value.number) for column, cell in row.cells.items())
            for name, value in (("published", row.published), *here):
                if row.names[at].isdecimal() and value is not None:
                    curves.setdefault(name, []).append((int(row.names[at]), value))
        for (others, unit), curves in found.items():
            if len(curves.get("published", ())) > 1:
                yield re.sub(": $", "", f"{group.benchmark.title}, {unit}: {others}"), curves, unit
