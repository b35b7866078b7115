"""Joins the rows of a report with the figures of a run: each published figure next to those of its point here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hockney.archive import Benchmark, Published, benchmarks, conclusions, published
from hockney.archive.points import Spec, parse
from hockney.model import split_placed
from hockney.report.classic.models import is_model, is_of, is_used, models_of, why_not
from hockney.report.classic.predicted import ASSUMED, PredictedSeries, predicted_series
from hockney.report.classic.quantities import QUANTITIES, also_of
from hockney.report.classic.quantity import NOT_PLANNED, Context
from hockney.report.classic.values import BenchmarkRows, Here, PublishedRow, Reported
from hockney.results.runs import Run, Series

MODEL = "model"  # the column of a model of the report's machine, under whichever name
_ENDS = ("source", "target", "distance")  # options that name a pair of ranks
_WORDS = {"quiet=seen": "with completion"}


class Elsewhere(Exception):
    """A point was measured, but not where its figure is of: within a host, or between two."""


class Joiner:
    """The series of a run by the points of a report."""

    def __init__(self, run: Run, report: str) -> None:
        self.run = run
        specs = [figure.spec for figure in published(report) if figure.spec is not None]
        rows = [where for conclusion in conclusions(report) for where in conclusion.get("rows", {}).values()]
        specs += [spec for where in rows if "point" in where and (spec := parse(where["point"])) is not None]
        # A point without one of these options is of a pattern with its default; others make a separate column.
        self._options = {
            pattern: {name for spec in specs if pattern in spec.patterns for name in spec.options}
            for pattern in {pattern for spec in specs for pattern in spec.patterns}
        }
        of_pairs = [each for each in published(report) if any(QUANTITIES[q].over_pairs for q in each.quantities)]
        at_ranks = {name: int(each.at.get("npes", 16)) for each in of_pairs if each.spec for name in each.spec.patterns}
        self._series = [
            *(
                series
                for series in run.series
                if series.point.role != "basic" and (not series.is_harness or series.point.pattern == "memload")
            ),
            *predicted_series(run, at_ranks),
        ]

    def members(self, spec: Spec, *, over_pairs: bool = False) -> list[Series]:
        """The series of a point, of all its sizes or ranks where it names none."""
        found = [series for series in self._series if self._matches(series, spec, over_pairs=over_pairs)]
        if over_pairs and spec.ranks is None:
            return found
        measured = [each for each in found if not isinstance(each, PredictedSeries)]
        has_figure = {column_of(each) for each in measured if each.shown is not None}
        return [each for each in found if not isinstance(each, PredictedSeries) or column_of(each) not in has_figure]

    def _matches(self, series: Series, spec: Spec, *, over_pairs: bool) -> bool:
        point = series.point
        if point.pattern not in spec.patterns or spec.ranks not in (None, point.ranks):
            return False
        if spec.bytes not in (None, point.bytes) or not is_way(point.transport, spec.on):
            return False
        options = dict(point.options)
        named = self._options[point.pattern] - (set(_ENDS) if over_pairs else set())
        return all(options.get(name) == spec.options.get(name) for name in named) and _fills_nodes(series, spec)

    def columns(self, spec: Spec, quantity: str, scope: str | None = None) -> dict[str, list[Series]]:
        """The members of a point by their column. Raises Elsewhere where none has its ranks where `scope` says."""
        over_pairs = QUANTITIES[quantity].over_pairs
        members = self.members(spec, over_pairs=over_pairs)
        found: dict[str, list[Series]] = {}
        inter = [each for each in members if between_hosts(each)]
        if scope is None:  # two ranks are measured within a host, too
            members = inter or members
        elif members:
            members = inter if scope == "inter-node" else [each for each in members if not between_hosts(each)]
            if not members:
                is_inter = scope == "inter-node"
                raise Elsewhere(
                    "all ranks were on one host: add --hosts" if is_inter else "its ranks were on several hosts"
                )
        for each in members:
            names = self._options[each.point.pattern]
            way = each.point.pattern if len(spec.patterns) > 1 else ""
            found.setdefault(column_of(each, names, way, over_pairs=over_pairs), []).append(each)
        return found

    def context(self, spec: Spec) -> Context:
        """What a quantity of a point needs."""
        ways: dict[str, Sequence[Series]] = {}
        if spec.on:
            ways = {on: self.members(replace(spec, on=on)) for on in ("native", "psend", "inplace", "raw")}
            ways = {on: members for on, members in ways.items() if members}
        return Context(self.run, spec, ways)

    def value(self, spec: Spec, quantity: str, members: Sequence[Series]) -> Reported:
        """A quantity of members of one column."""
        return QUANTITIES[quantity].value(members, self.context(spec))


def is_way(transport: str, on: str) -> bool:
    """Whether a transport sends in this way: "native" is the wire that PVM uses, or a model without a variant."""
    if not on:
        return True
    name = split_placed(transport)[0]
    if on == "native":
        return name == "tcp" or (is_model(name) and ":" not in name)
    return name.removesuffix("-posted").endswith(f":{on}")  # a model's way to receive what it has posted


def column_of(series: Series, named: Iterable[str] = (), way: str = "", *, over_pairs: bool = False) -> str:
    """The column of a series: its transport, and what else it differs in."""
    point = series.point
    parts = [" ".join(filter(None, (transport_of(series), way)))]
    left_out = {*named, *(_ENDS if over_pairs else ())}
    options = [f"{name}={value}" for name, value in point.options if name not in left_out]
    parts += [_WORDS.get(option, option.replace("=", " ")) for option in options]
    parts += [point.ranks_text] if over_pairs else []
    return ", ".join(parts)


def transport_of(series: Series) -> str:
    """The name of a series' transport in columns: a model has one under all of its variants."""
    name = split_placed(series.point.transport)[0]
    return MODEL if is_model(name) else "this machine" if series.is_harness else name


def between_hosts(series: Series) -> bool:
    """Whether its ranks were on more than one host."""
    return any(len(set(launch.hosts)) > 1 for launch in series.launches)


def _fills_nodes(series: Series, spec: Spec) -> bool:
    hosts = Counter(host for launch in series.launches[:1] for host in launch.hosts)
    return not spec.per_node or len(hosts) < 2 or max(hosts.values()) == spec.per_node


# ---- rows ------------------------------------------------------------------------------------------------------------


def joined(joiner: Joiner, report: str) -> tuple[BenchmarkRows, ...]:
    """All published figures of a report, each next to the figures of its point in a run."""
    return tuple(_group(joiner, benchmark) for benchmark in benchmarks(report))


def _group(joiner: Joiner, benchmark: Benchmark) -> BenchmarkRows:
    rows = [
        _row(joiner, benchmark, figure, place)
        for figure in published(benchmark.report)
        if figure.matches(benchmark.where)
        for place in range(len(figure.quantities) or 1)
    ]
    columns = dict.fromkeys(column for row in rows for column in row.cells)
    notes = [*benchmark.notes, *benchmark.oddities, *_archive_notes(rows)]
    if any(cell.value.is_predicted for row in rows for cell in row.cells.values()):
        notes.append(f"~: predicted. {ASSUMED}")
    return BenchmarkRows(benchmark, tuple(columns), tuple(rows), tuple(notes))


def _row(joiner: Joiner, benchmark: Benchmark, figure: Published, place: int) -> PublishedRow:
    quantity = figure.quantities[place] if figure.quantities else ""
    unit = QUANTITIES[quantity].unit if quantity else figure.unit
    named = {**figure.at, "what": quantity or figure.metric.replace("_", " "), "system": figure.system}
    # The report's number of words is printed next to the rate there.
    value = float(figure.at["words"]) if quantity == "N 1/2" else figure.value
    value = None if quantity == "ratio to the native library" else value
    modelled = figure.modelled[place] if place < len(figure.modelled) else None
    names = tuple("" if (name := named.get(key)) is None else str(name) for key in benchmark.keys)
    row = PublishedRow(figure, names, quantity, unit, value, modelled)
    if figure.spec is None:
        return replace(row, reason="nothing here measures it")
    models = models_of(joiner.run)
    reason = next(filter(None, (why_not(model, figure) for model in models.values())), None)
    try:
        scope = str(figure.get("scope"))  # where its ranks must be, if the report says it
        columns = joiner.columns(figure.spec, quantity, scope if scope in ("inter-node", "intra-node") else None)
    except Elsewhere as elsewhere:
        return replace(row, reason=str(elsewhere))
    if reason or not columns:
        return replace(row, reason=reason or NOT_PLANNED)
    cells = {column: _cell(joiner, row, members) for column, members in columns.items()}
    reasons, row = Counter(cell.value.reason for cell in cells.values()), replace(row, cells=cells)
    return row if row.known else replace(row, reason=reasons.most_common(1)[0][0])


def _cell(joiner: Joiner, row: PublishedRow, members: Sequence[Series]) -> Here:
    spec = row.figure.spec
    assert spec is not None
    context = joiner.context(spec)
    value = QUANTITIES[row.quantity].value(members, context)
    has_also = row.figure.also and not value.is_predicted
    also = also_of(row.figure.also, row.quantity, members, context) if has_also else None
    compared = None if row.quantity == "place" else row.published  # a place has no ratio
    point, model = members[0].point, models_of(joiner.run).get(members[0].point.transport)
    if model is None or not is_of(model, row.figure):
        return Here(value, compared, also)
    # A report's figures are of its first way to send: a model's others have no error.
    names = joiner._options[point.pattern]
    is_other = point.pattern != spec.patterns[0] or any(name not in {*names, *_ENDS} for name, _ in point.options)
    if row.unit == "cp" and row.quantity:  # of a load: a put or message has another base
        return Here(value, None, also)
    published_here = None if is_other else compared
    return Here(value, published_here, also, of_model=not is_other, is_used=is_used(model, row.figure))


def _archive_notes(rows: Iterable[PublishedRow]) -> list[str]:
    """The archive's notes on the figures, once each."""
    noted: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.figure.note:
            noted.setdefault(row.figure.note, {})[row.figure.printed or "no figure"] = None
    return [
        f"Published {', '.join(list(values)[:4])}{' …' if len(values) > 4 else ''}: {note}."
        for note, values in noted.items()
    ]


# ---- what only this machine has --------------------------------------------------------------------------------------

DETAILS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "ancor": {
        "stream": (
            "time of the sender", "time of the receiver", "rate", "CPU of the sender", "CPU of the receiver",
            "write would block", "read would block",
        )
    },
    "t3d": {"memload": ("load time", "load cycles", "words per cycle", "load rate")},
    "scabench": {"ft": ("speed of each rank",), "bisection": ("best rate of all pairs",)},
    "paragon": {"pingpong": ("time", "rate")},
}  # fmt: skip
"""Quantities of patterns that the plain tables of a run do not have: what reports drew, and never printed."""


@dataclass(frozen=True)
class Detail:
    """The points of a pattern, each with the values of some quantities."""

    pattern: str
    quantities: tuple[str, ...]
    rows: tuple[tuple[Series, tuple[Reported, ...]], ...]


def details(run: Run, report: str) -> Iterator[Detail]:
    """Of each such pattern all points of the run."""
    for pattern, names in DETAILS.get(report, {}).items():
        context = Context(run, Spec((), load_bytes=8 if pattern == "memload" else 0))
        quantities = [replace(QUANTITIES[name], combine=None) for name in names]
        rows = tuple(
            (series, tuple(quantity.of_series(series, context) for quantity in quantities))
            for series in run.series
            if series.point.pattern == pattern
            and series.point.role != "basic"
            and (not series.is_harness or pattern == "memload")
            and series.shown is not None
        )
        if rows:
            yield Detail(pattern, names, rows)
