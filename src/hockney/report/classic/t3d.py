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
from hockney.report.classic.values import Cell, Column, Field, Measured, Table, table_of
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
    """All pairs of a pattern over one transport with one number of ranks."""

    parts: tuple[str, ...]  # transport, pattern with its options, ranks
    series: tuple[Series, ...]
    pairs: int  # of each series: 1, or the number of ranks where all send at once

    @property
    def title(self) -> str:
        return f"{' '.join(self.parts[:-1])}, {self.parts[-1]}"


def _notes(of: str) -> tuple[str, ...]:
    return tuple(contents("t3d")["notes"][of])


def pair_tables(reading: Reading) -> list[Table]:
    """ping_pong, multiple_pairs and single_pairs."""
    return [_pair_table(spec, reading) for spec in contents("t3d")["pairs"]]


def distance_tables(reading: Reading) -> list[Table]:
    """What distance adds to the latency of a word, for each way to ping-pong it."""
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


def _statistic(group: _Group, what: str, reading: Reading) -> Measured:
    """A cell of a table of pairs: of one word, or of all sizes."""
    if what in ("r_max", "words", "half"):
        return _of_rates(group, what, reading)
    cell = _over_pairs(group, _WORD_BYTES, reading, _CHOICES.get(what, fmean))
    if cell.value is not None and what == "rate":
        return _rate(_WORD_BYTES, cell)
    if cell.value is not None and what == "message" and group.series[0].point.pattern != "pingpong":
        return blank(cell.unit, "of messages, not of puts")
    return cell


def _of_rates(group: _Group, what: str, reading: Reading) -> Measured:
    """The best average rate of all sizes, the fewest words that reach half of it, or their rate."""
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
    """All pairs of a size."""
    return [series for series in group.series if series.point.bytes == size_bytes]


def _over_pairs(
    group: _Group, size_bytes: int, reading: Reading, choose: Callable[[Sequence[float]], float] | None = None
) -> Measured:
    """A statistic over the pairs of ranks in one state; the same of their intervals' ends encloses it.

    Where all ranks send at once, each rank and its target are a pair. Without `choose`: the mean over series, each of
    which is a mean over its pairs.
    """
    series = _of_size(group, size_bytes)
    measured = reading.together(series, _TIME)
    if not measured:
        return blank("us", reading.reason(series[0]) if series else NOT_PLANNED)
    cells = [cell for _, cell in measured]
    if choose is not None and group.pairs > 1:
        ranks = range(group.pairs)
        cells = [reading.of_rank(one, rank, whole.state) for one, whole in measured for rank in ranks]
    lows = [cell.low for cell in cells if cell.low is not None]
    highs = [cell.high for cell in cells if cell.high is not None]
    complete, of = len(lows) == len(highs) == len(cells), choose or fmean
    overs = {cell.interval_over for cell in cells}
    return Measured(
        "us",
        of([cell.value for cell in cells if cell.value is not None]),
        of(lows) if complete else None,
        of(highs) if complete else None,
        cells[0].state,
        any(cell.oversubscribed for cell in cells),
        pairs=(len(measured) * group.pairs, len(series) * group.pairs),
        interval_over=(ONE_LAUNCH if ONE_LAUNCH in overs else cells[0].interval_over) if complete else None,
    )


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


# ---- loads ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Load:
    """A row: what it stands for, what it was measured by, and ns, cp, words/cp and MB/s."""

    keys: tuple[str, ...]
    known: Published | None
    title: str
    cells: tuple[Measured, ...]


def _key(title: str, place: int) -> Field[_Load]:
    return Field(title, lambda row: row.keys[place])


def _figure(title: str, place: int) -> Field[_Load]:
    return Field(title, lambda row: row.cells[place], "measured")


_FIGURES = [_figure(title, place) for place, title in enumerate(("time per load, ns", "cp", "words/cp", "MB/s"))]
_PLACE = ("source", "destination", "page")


def load_tables(reading: Reading) -> list[Table]:
    """The published load table with the nearest load of this machine, and every level of this machine."""
    return [_load_table(reading), _levels_table(reading)]


def _load_table(reading: Reading) -> Table:
    hertz = clock_hz(reading.run.facts)
    rows = []
    for spec in contents("t3d")["load"]:
        where = {"benchmark": "load table", **spec["where"]}
        known = next(figure for figure in published("t3d") if figure.matches(where))
        keys = tuple(str(known.at.get(name, "")) for name in _PLACE)
        rows += [_Load(keys, known, title, cells) for title, cells in _loads_of(spec, known, reading, hertz)]
    fields: list[Field[_Load]] = [
        *(_key(name, place) for place, name in enumerate(_PLACE)),
        Field("published latency, cp", lambda row: _place_of(row, "latency_cp"), "published"),
        Field("published words/cp", lambda row: f"{_place_of(row, 'words')}/{_place_of(row, 'cp')}", "published"),
        Field("published MB/s", lambda row: row.known or "", "published"),
        Field("by", lambda row: row.title),
        *_FIGURES,
    ]
    clock = (
        f"{hertz / 1e9:.3g} GHz here, as the system reports the clock; the CPU may have run at another"
        if hertz
        else "an unknown clock here"
    )
    return table_of("load", "Load table", fields, rows, (*_notes("load"), f"cp: periods of 150 MHz there, {clock}."), 6)


def _place_of(row: _Load, name: str) -> str:
    return str(row.known.at[name]) if row.known else ""


def _loads_of(
    spec: Mapping[str, Any], known: Published, reading: Reading, hertz: int | None
) -> list[tuple[str, tuple[Measured, ...]]]:
    """What a row of the load table is measured by, and its cells, one for each transport."""
    if "why" in spec:
        return [("", _no_load(spec["why"], known))]
    if "access" not in spec:
        return _gets(spec["get_bytes"], known, reading, hertz)
    series = _at_level(reading, spec["access"], spec["level"])
    if isinstance(series, str):
        return [("memload", _no_load(series, known))]
    title = f"{spec['access']}, {format_bytes(series.point.bytes)}"
    cell = reading.cell(series, _TIME)
    if cell.value is None:
        return [(title, _no_load(cell.reason or NOT_PLANNED, known))]
    # A load of a line by `stream` takes the time of its words; other patterns load one word of each line.
    line_bytes = next((size for _, _, size in data_caches(reading.run.facts)), 64)
    words = line_bytes // _WORD_BYTES if spec["words"] == "line" else 1
    times = words if reading.options(series.point)["access"] == "stream" else 1
    return [(title, _load_cells(cell, times, words * _WORD_BYTES, known, hertz))]


def _no_load(reason: str, known: Published | None) -> tuple[Measured, ...]:
    return tuple(blank(unit, reason, value) for unit, value in zip(_LOAD_UNITS, _published_loads(known), strict=True))


def _published_loads(known: Published | None) -> tuple[float | None, ...]:
    """The published ns, cp, words/cp and MB/s; periods of different clocks are not compared."""
    return (None,) * 4 if known is None else (float(known.at["latency_cp"]) * PERIOD_NS, None, None, known.value)


def _at_level(reading: Reading, access: str, level: str) -> Series | str:
    """The largest working set in the first cache, or the largest of all if it is twice the last cache; else why not."""
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


def _gets(
    wanted_bytes: int, known: Published, reading: Reading, hertz: int | None
) -> list[tuple[str, tuple[Measured, ...]]]:
    """Gets of a size on each transport; 0: those with the best rate, of which only the rate is compared."""
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
        size = chosen.point.bytes
        load_ns, *others = _load_cells(reading.cell(chosen, _TIME), 1, size, known, hertz)
        row = (load_ns if wanted_bytes else replace(load_ns, published=None), *others)
        rows.append((f"get of {format_bytes(size)} on {where}", row))
    return rows or [("get", _no_load(NOT_PLANNED, known))]


def _load_cells(
    cell: Measured, times: int, size_bytes: int, known: Published | None, hertz: int | None
) -> tuple[Measured, ...]:
    """ns, cp, words/cp and MB/s of as many loads, which bring this many bytes together."""
    if cell.value is None:
        return _no_load(cell.reason or NOT_PLANNED, known)
    told_ns, _, _, told_rate = _published_loads(known)
    load_ns, load_us = _scaled(cell, "ns", 1e3 * times, told_ns), _scaled(cell, "us", times)
    rate = replace(_rate(size_bytes, load_us), published=told_rate)
    if not hertz:
        unknown = (blank(unit, "the clock of the CPU is not known") for unit in ("cp", "words/cp"))
        return load_ns, *unknown, rate
    periods = cell.value * times * 1e-6 * hertz  # without intervals: those of the time apply
    counted = replace(load_ns, unit="cp", value=periods, low=None, high=None, published=None, computed=True)
    words = replace(counted, unit="words/cp", value=size_bytes / _WORD_BYTES / periods)
    return load_ns, counted, words, rate


def _scaled(cell: Measured, unit: str, factor: float, published: float | None = None) -> Measured:
    value, low, high = (None if each is None else each * factor for each in (cell.value, cell.low, cell.high))
    return replace(cell, unit=unit, value=value, low=low, high=high, published=published)


def _levels_table(reading: Reading) -> Table:
    hertz, caches = clock_hz(reading.run.facts), data_caches(reading.run.facts)
    rows = []
    for series in reading.series("memload"):
        size = series.point.bytes
        level = next((f"L{level}" for level, cache_bytes, _ in caches if size <= cache_bytes), "memory")
        cells = _load_cells(reading.cell(series, _TIME), 1, _WORD_BYTES, None, hertz)
        access = reading.options(series.point)["access"]
        rows.append((access, size, _Load((access, format_bytes(size), level), None, "", cells)))
    keys = [_key(name, place) for place, name in enumerate(("access", "working set", "fits into"))]
    ordered = [row for _, _, row in sorted(rows, key=lambda each: each[:2])]
    return table_of("levels", "Loads at each level of this machine", keys + _FIGURES, ordered, _notes("levels"))
