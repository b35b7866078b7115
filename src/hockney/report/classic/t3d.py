"""The tables of the T3D newsletter: statistics over all pairs of ranks, and what a load costs from each place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from hockney.archive import Published, published
from hockney.report.classic.configuration import clock_hz, data_caches
from hockney.report.classic.distance import PERIOD_NS, distance_table
from hockney.report.classic.layout import contents
from hockney.report.classic.reading import (
    NOT_PLANNED,
    QUANTITIES,
    Quantity,
    Reading,
    blank,
    options_text,
)
from hockney.report.classic.values import Cell, Column, Measured, Table
from hockney.results.runs import Series
from hockney.stats import ONE_LAUNCH
from hockney.units import format_bytes

_WORD_BYTES = 8
_LOAD_UNITS = ("ns", "cp", "words/cp", "MB/s")
_TIME = QUANTITIES["time"]
# Of a get, which counts its bytes once.
_RATE = Quantity("MB/s", lambda point, figure, ns: point.bytes / ns * 1e3, True)
_CHOICES: Mapping[str, Callable[[Sequence[float]], float]] = {"max": max, "min": min}


@dataclass(frozen=True)
class _Group:
    """All pairs of one pattern over one transport with so many ranks."""

    parts: tuple[str, ...]  # transport, pattern with its options, ranks
    series: tuple[Series, ...]
    pairs: int  # of each series: 1, or as many as there are ranks where all send at once

    @property
    def title(self) -> str:
        return f"{' '.join(self.parts[:-1])}, {self.parts[-1]}"


def _notes(of: str) -> tuple[str, ...]:
    return tuple(contents("t3d")["notes"][of])


def pair_tables(reading: Reading) -> list[Table]:
    """ping_pong, multiple_pairs and single_pairs."""
    return [_pair_table(spec, reading) for spec in contents("t3d")["pairs"]]


def distance_tables(reading: Reading) -> list[Table]:
    """What distance adds to the latency of one word, for every way to ping-pong it."""
    spec = next(one for one in contents("t3d")["pairs"] if one["name"] == "ping_pong")
    groups = {group.parts: _of_size(group, _WORD_BYTES) for group in _groups(spec, reading)}
    return [distance_table(groups, reading)]


def _pair_table(spec: Mapping[str, Any], reading: Reading) -> Table:
    groups = _groups(spec, reading)
    rows: list[tuple[Cell, ...]] = []
    for title, metric, what in spec["rows"]:
        of = (spec["name"], contents("t3d")["newsletter"])
        known = next(one for one in published("t3d") if one.metric == metric and one.benchmark in of)
        unit, told = ("words", float(known.at["words"])) if what == "words" else (known.unit, known.value)
        cells = [_statistic(group, what, reading) for group in groups] or [blank(unit, NOT_PLANNED)]
        printed = f"{told:.0f}" if what == "words" else known
        rows.append((title, unit, printed, *(replace(cell, unit=unit, published=told) for cell in cells)))
    columns = [Column("what"), Column("unit"), Column("published", "published")]
    columns += [Column(group.title, "measured", group.parts) for group in groups] or [
        Column("this machine", "measured")
    ]
    return Table(spec["name"], spec["title"], tuple(columns), tuple(rows), _notes("pairs"))


def _groups(spec: Mapping[str, Any], reading: Reading) -> list[_Group]:
    found: dict[tuple[str, ...], list[Series]] = {}
    for series in reading.series(*spec["patterns"]):
        point = series.point
        told = options_text(pair for pair in point.options if pair[0] not in spec["places"])
        way = f"{point.pattern} {told}".strip()
        parts = (point.transport, contents("t3d")["ways"].get(way, way), point.ranks_text)
        found.setdefault(parts, []).append(series)
    return [
        _Group(parts, tuple(members), members[0].point.ranks if spec.get("all_send") else 1)
        for parts, members in found.items()
    ]


def _beside(cell: Measured, value: float | None) -> Measured:
    return replace(cell, published=value)


def _statistic(group: _Group, what: str, reading: Reading) -> Measured:
    """A row of a table of pairs: of one word, or of all sizes."""
    if what in ("r_max", "words", "half"):
        return _of_rates(group, what, reading)
    cell = _over_pairs(group, _WORD_BYTES, reading, _CHOICES.get(what, fmean))
    if cell.value is not None and what == "rate":
        return _rate(_WORD_BYTES, cell)
    if cell.value is not None and what == "message" and group.series[0].point.pattern != "pingpong":
        return blank(cell.unit, "of messages, not of puts")
    return cell


def _of_rates(group: _Group, what: str, reading: Reading) -> Measured:
    """The best average rate of all sizes, or the fewest words that reach half of it, or the rate there."""
    sizes = sorted({one.point.bytes for one in group.series if one.point.bytes > 0})
    cells = [(size_bytes, _over_pairs(group, size_bytes, reading)) for size_bytes in sizes]
    rates = [(size_bytes, _rate(size_bytes, cell)) for size_bytes, cell in cells if cell.value is not None]
    if len(rates) < 2:
        return blank("MB/s", "only one size was measured" if rates else reading.reason(group.series[0]))
    size, best = max(rates, key=lambda pair: pair[1].value or 0.0)
    if what == "r_max":
        return replace(best, at_bytes=size)
    size, half = next(pair for pair in rates if (pair[1].value or 0.0) >= (best.value or 0.0) / 2)
    if what == "half":
        return half
    return replace(half, value=size / _WORD_BYTES, low=None, high=None, at_bytes=size, computed=True)


def _of_size(group: _Group, size_bytes: int) -> list[Series]:
    """All pairs that were asked for with a size."""
    return [series for series in group.series if series.point.bytes == size_bytes]


def _over_pairs(
    group: _Group, size_bytes: int, reading: Reading, choose: Callable[[Sequence[float]], float] | None = None
) -> Measured:
    """A statistic over pairs of ranks of one state; the same of the ends of their intervals encloses it.

    Where all ranks send at once, each rank and its target are a pair. Without `choose`, the mean over series, each of
    which is a mean over its own pairs.
    """
    series = _of_size(group, size_bytes)
    measured = reading.together(series, _TIME)
    if not measured:
        return blank("us", reading.reason(series[0]) if series else NOT_PLANNED)
    if choose is not None and group.pairs > 1:
        ranks = range(group.pairs)
        cells = [reading.of_rank(one, rank, whole.state) for one, whole in measured for rank in ranks]
    else:
        cells = [whole for _, whole in measured]
    lows = [cell.low for cell in cells if cell.low is not None]
    highs = [cell.high for cell in cells if cell.high is not None]
    complete, of = len(lows) == len(highs) == len(cells), choose or fmean
    return Measured(
        "us",
        of([cell.value for cell in cells if cell.value is not None]),
        of(lows) if complete else None,
        of(highs) if complete else None,
        cells[0].state,
        any(cell.oversubscribed for cell in cells),
        pairs=(len(measured) * group.pairs, len(series) * group.pairs),
        interval_over=_over(cells) if complete else None,
    )


def _over(cells: Sequence[Measured]) -> str | None:
    """What all intervals are over: within one launch if one of them is."""
    overs = {cell.interval_over for cell in cells}
    return ONE_LAUNCH if ONE_LAUNCH in overs else cells[0].interval_over


def _rate(size_bytes: int, time_us: Measured) -> Measured:
    """B/us are MB/s."""
    assert time_us.value is not None
    return Measured(
        "MB/s",
        size_bytes / time_us.value,
        None if time_us.high is None else size_bytes / time_us.high,
        None if time_us.low is None else size_bytes / time_us.low,
        time_us.state,
        time_us.oversubscribed,
        pairs=time_us.pairs,
        interval_over=time_us.interval_over,
    )


# ---- the load table ------------------------------------------------------------------------------------------------


def load_tables(reading: Reading) -> list[Table]:
    """The published load table with what comes nearest to each row here, and every level of this machine."""
    return [_load_table(reading), _levels_table(reading)]


def _load_table(reading: Reading) -> Table:
    hertz = clock_hz(reading.run.facts)
    rows: list[tuple[Cell, ...]] = []
    for spec in contents("t3d")["load"]:
        where = {"benchmark": "load table", **spec["where"]}
        known = next(one for one in published("t3d") if one.matches(where))
        for title, cells in _load_cells(spec, known, reading, hertz):
            at = known.at
            place = (str(at["source"]), str(at["destination"]), str(at.get("page", "")))
            told = (f"{at['latency_cp']}", f"{at['words']}/{at['cp']}", known)
            rows.append((*place, *told, title, *cells))
    columns = [Column("source"), Column("destination"), Column("page")]
    columns += [Column(f"published {name}", "published") for name in ("latency, cp", "words/cp", "MB/s")]
    columns.append(Column("by"))
    columns += [Column(name, "measured") for name in ("time per load, ns", "cp", "words/cp", "MB/s")]
    clock = (
        f"of {hertz / 1e9:.3g} GHz here, as the system names the clock, not as the CPU may have run"
        if hertz
        else "of an unknown length here"
    )
    notes = (*_notes("load"), f"cp: clock periods of 150 MHz there, {clock}.")
    return Table("load", "Load table", tuple(columns), tuple(rows), notes, heading=6)


def _load_cells(
    spec: Mapping[str, Any], known: Published, reading: Reading, hertz: int | None
) -> list[tuple[str, tuple[Measured, ...]]]:
    """What a row was measured by, and its cells: ns, cp, words/cp and MB/s; several for several transports."""
    if "why" in spec:
        return [("", _no_load(spec["why"], known))]
    if "access" in spec:
        series = _at_level(reading, spec["access"], spec["level"])
        if isinstance(series, str):
            return [("memload", _no_load(series, known))]
        title = f"{spec['access']}, {format_bytes(series.point.bytes)}"
        return [(title, _loads(series, spec["words"] == "line", known, reading, hertz))]
    return _gets(spec["get_bytes"], known, reading, hertz)


def _no_load(reason: str, known: Published) -> tuple[Measured, ...]:
    return tuple(blank(unit, reason, value) for unit, value in zip(_LOAD_UNITS, _told(known), strict=True))


def _told(known: Published) -> tuple[float | None, ...]:
    """The published ns, cp, words/cp and MB/s. A ratio of periods of two clocks would say nothing, one of ns does."""
    return float(known.at["latency_cp"]) * PERIOD_NS, None, None, known.value


def _at_level(reading: Reading, access: str, level: str) -> Series | str:
    """The series whose working set is in the first cache, or the largest if that is far beyond the last."""
    loads = [one for one in reading.series("memload") if reading.options(one.point).get("access") == access]
    if not loads:
        return NOT_PLANNED
    caches = data_caches(reading.run.facts)
    ordered = sorted(loads, key=lambda one: one.point.bytes)
    if not caches:
        return ordered[0] if level == "L1" else ordered[-1]
    if level == "L1":
        inside = [one for one in ordered if one.point.bytes <= caches[0][1]]
        return inside[-1] if inside else "no working set fits into the first cache"
    largest = max(size for _, size, _ in caches)
    if ordered[-1].point.bytes < 2 * largest:
        return f"no working set is twice as large as the last cache, {format_bytes(largest)}"
    return ordered[-1]


def _loads(series: Series, line: bool, known: Published, reading: Reading, hertz: int | None) -> tuple[Measured, ...]:
    """A load of a line by `stream` is that of its words; the other patterns load one word of each line."""
    cell = reading.cell(series, _TIME)
    if cell.value is None:
        return _no_load(cell.reason or NOT_PLANNED, known)
    line_bytes = next((size for _, _, size in data_caches(reading.run.facts)), 64)
    streamed = reading.options(series.point)["access"] == "stream"
    words = line_bytes // _WORD_BYTES if line else 1
    return _columns(cell, words if streamed else 1, words * _WORD_BYTES, known, hertz)


def _gets(
    wanted_bytes: int, known: Published, reading: Reading, hertz: int | None
) -> list[tuple[str, tuple[Measured, ...]]]:
    """Gets of so many bytes on each transport; 0: those with the best rate, of which only the rate is comparable."""
    found: dict[str, list[Series]] = {}
    gets = reading.series("get")
    several = len({one.point.ranks for one in gets}) > 1
    for series in gets:
        if wanted_bytes in (0, series.point.bytes) and series.point.bytes > 0:
            ranks = f", {series.point.ranks_text}" if several else ""
            found.setdefault(f"{series.point.transport}{ranks}", []).append(series)
    rows = []
    for where, members in found.items():
        chosen, _ = reading.best(members, _RATE)
        if chosen is None:
            rows.append((f"get on {where}", _no_load(reading.reason(members[0]), known)))
            continue
        size, cell = chosen.point.bytes, reading.cell(chosen, _TIME)
        load_ns, *others = _columns(cell, 1, size, known, hertz)
        row = (load_ns if wanted_bytes else _beside(load_ns, None), *others)
        rows.append((f"get of {format_bytes(size)} on {where}", row))
    return rows or [("get", _no_load(NOT_PLANNED, known))]


def _columns(
    cell: Measured, times: int, size_bytes: int, known: Published | None, hertz: int | None
) -> tuple[Measured, ...]:
    """ns, cp, words/cp and MB/s of `times` such loads that bring so many bytes."""
    told = (None,) * 4 if known is None else _told(known)

    def scaled(unit: str, factor: float, published: float | None = None) -> Measured:
        value, low, high = (None if one is None else one * factor for one in (cell.value, cell.low, cell.high))
        return replace(cell, unit=unit, value=value, low=low, high=high, published=published)

    load_ns, rate = scaled("ns", times * 1e3, told[0]), _beside(_rate(size_bytes, scaled("us", times)), told[3])
    if not hertz:
        unknown = (blank(unit, "the clock of the CPU is not known") for unit in ("cp", "words/cp"))
        return load_ns, *unknown, rate
    # The same counted in periods: the intervals stand beside them.
    assert cell.value is not None
    periods = cell.value * times * 1e-6 * hertz
    counted = replace(load_ns, unit="cp", value=periods, low=None, high=None, published=told[1], computed=True)
    words = replace(counted, unit="words/cp", value=size_bytes / _WORD_BYTES / periods, published=told[2])
    return load_ns, counted, words, rate


def _levels_table(reading: Reading) -> Table:
    hertz = clock_hz(reading.run.facts)
    rows: list[tuple[Cell, ...]] = []
    for series in sorted(
        reading.series("memload"), key=lambda one: (reading.options(one.point)["access"], one.point.bytes)
    ):
        access, size = reading.options(series.point)["access"], series.point.bytes
        cell = reading.cell(series, _TIME)
        if cell.value is None:
            cells = tuple(blank(unit, cell.reason or NOT_PLANNED) for unit in _LOAD_UNITS)
        else:
            cells = _columns(cell, 1, _WORD_BYTES, None, hertz)
        rows.append((access, format_bytes(size), _level(reading, size), *cells))
    columns = [Column("access"), Column("working set"), Column("fits into")]
    columns += [Column(name, "measured") for name in ("time per load, ns", "cp", "words/cp", "MB/s")]
    return Table("levels", "Loads at each level of this machine", tuple(columns), tuple(rows), _notes("levels"))


def _level(reading: Reading, size_bytes: int) -> str:
    inside = [f"L{level}" for level, size, _ in data_caches(reading.run.facts) if size_bytes <= size]
    return inside[0] if inside else "memory"
