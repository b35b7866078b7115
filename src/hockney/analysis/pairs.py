"""Matrices of the times between all pairs of ranks.

The pattern pingpong measures one pair at a time (idle), rounds measures disjoint pairs concurrently (loaded).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hockney.analysis.clusters import Pair
from hockney.analysis.pair_classes import (
    PAIR_CLASSES,
    Inconclusive,
    Outlier,
    PairClass,
    Share,
    ShareOf,
    classify_pairs,
    pair_of,
    shares_of,
)
from hockney.model import PointStatus
from hockney.results.figures import Figure
from hockney.results.runs import Run, Series
from hockney.results.store import MeasurementSummary
from hockney.stats import BETWEEN_LAUNCHES, time_of
from hockney.stats.interval import Interval, middle
from hockney.stats.states import MIXED, State

Load = Literal["idle", "loaded"]
Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PairMatrix:
    """Half round trips between all pairs. `missing` directed pairs have none.

    `shown` are the figures that tables show, under load the same as `times`; `others` are not of the machine `state`
    alone. `times` are of this state, between hosts of all measurements: classes and outliers are theirs.
    `options` are the pattern's without those that name the pair. A rank that launches placed differently has its hosts
    as "a or b" and the CPU -1. `oversubscribed`: at least one launch was.
    """

    transport: str
    pattern: str
    options: Options
    bytes: int
    load: Load
    ranks: int
    state: str
    floor_ns: float | None
    hosts: tuple[str, ...]
    cpus: tuple[int, ...]
    oversubscribed: bool
    shown: Mapping[Pair, Interval]
    others: int
    times: Mapping[Pair, Interval]
    missing: int
    classes: tuple[PairClass, ...]
    outliers: tuple[Outlier, ...]
    inconclusive: tuple[Inconclusive, ...]

    def time(self, a: int, b: int) -> Interval | None:
        """The time of a pair that is judged, measured in either direction."""
        return self.times.get((a, b)) or self.times.get((b, a))


def whole_hosts(ranks: Sequence[int], hosts: Sequence[str]) -> list[str]:
    """The hosts of these ranks, where several hosts have ranks and these are all of theirs; else []."""
    names = list(dict.fromkeys(hosts[rank] for rank in ranks))
    is_whole = len(set(hosts)) > 1 and sum(hosts.count(name) for name in names) == len(ranks)
    return names if is_whole else []


Summarized = list[tuple[MeasurementSummary, State]]


StateOf = Callable[[int, State], State]
_ALL = State("all states", None)


def usable(run: Run, state_of: StateOf = lambda _, state: state) -> list[tuple[Series, Summarized]]:
    """The series with the measurements of their figures in one machine state, without those of a background.

    Samples of a failed point may be wrong. `state_of` a launch and the state that a measurement saw is the one it gets.
    """
    listed = []
    for series in run.series:
        if series.status is not PointStatus.FAILED and not series.point.background:
            rows = [row for row in series.figures() if row.state == MIXED.name or not row.is_mixed]
            seen = [(each, State(row.state, row.floor_ns)) for row in rows for each in row.measurements]
            pairs = [(each, state_of(each.launch_id, state)) for each, state in seen]
            listed.append((series, [pair for pair in pairs if pair[1] != MIXED]))
    return listed


def pair_matrices(run: Run) -> list[PairMatrix]:
    """A matrix for each transport, number of ranks, size, load and options with several pairs, idle before loaded.

    Between hosts all measurements are judged, as in `health`: a network has no floor, and states are of two CPUs.
    """
    between = {id_ for id_, launch in run.launches.items() if len(set(launch.hosts)) > 1}

    def state_of(launch_id: int, state: State) -> State:
        return _ALL if launch_id in between else state

    groups: dict[_Key, list[_Cell]] = {}
    floors_ns: dict[str, float | None] = {}
    for series, measurements in usable(run, state_of):
        point = series.point
        if point.pattern not in ("pingpong", "rounds"):
            continue
        floors_ns |= {state.name: state.floor_ns for _, state in measurements}
        options = tuple(option for option in point.options if option[0] not in ("source", "target", "round"))
        load: Load = "loaded" if point.pattern == "rounds" else "idle"
        cells = groups.setdefault((point.transport, point.pattern, options, point.bytes, load, point.ranks), [])
        if load == "loaded":
            met = partners(point.ranks, int(dict(point.options).get("round", "1")))
            cells += [(pair, _medians_of_ranks(series, pair, state_of), None) for pair in met]
        else:
            medians: _Medians = {}
            for measurement, state in measurements:
                medians.setdefault(state.name, []).append((measurement.median_ns or 0.0, measurement.launch_id))
            cells.append((pair_of(point), medians, series.shown))
    share_of = shares_of(run)
    matrices = [
        _matrix(run, key, cells, floors_ns, share_of)
        for key, cells in groups.items()
        if len({frozenset(pair) for pair, *_ in cells}) > 1
    ]
    known = _slow_when_idle_too([matrix for matrix in matrices if matrix is not None])
    known.sort(key=lambda each: (each.transport, each.ranks, each.options, each.bytes, each.load))
    if run.info.suite == "health":  # analysis/health judges its hosts
        return [replace(matrix, outliers=(), inconclusive=()) for matrix in known]
    return known


def _slow_when_idle_too(matrices: Sequence[PairMatrix]) -> list[PairMatrix]:
    """Drop pairs that are slow under load alone: they may share a link with another pair of their round."""
    by_load = {(each.load, each.transport, each.options, each.bytes, each.ranks): each for each in reversed(matrices)}
    kept = []
    for matrix in matrices:
        idle = by_load.get(("idle", matrix.transport, matrix.options, matrix.bytes, matrix.ranks), matrix)
        slow = {each.ranks for each in idle.outliers}
        outliers = (each for each in matrix.outliers if len(each.ranks) != 2 or each.reach or each.ranks in slow)
        kept.append(replace(matrix, outliers=tuple(outliers)))
    return kept


def partners(ranks: int, round_: int) -> list[Pair]:
    """The pairs of a round of the pattern rounds, the lower rank first (docs/metrics.md)."""
    count = ranks - 1 + ranks % 2
    met = {(min(i, j), max(i, j)) for i in range(count) for j in [(2 * round_ - i) % count] if i != j}
    if ranks % 2 == 0:
        met.add((round_ % count, ranks - 1))
    return sorted(met)


# ---- a matrix --------------------------------------------------------------------------------------------------------

_Key = tuple[str, str, Options, int, Load, int]  # transport, pattern, options, bytes, load, ranks
_OfLaunches = list[tuple[float, int]]  # the median of each measurement, with its launch
_Medians = dict[str, _OfLaunches]  # by the name of the machine state
_Cell = tuple[Pair, _Medians, Figure | None]  # with the figure of a pair that was measured alone


def _matrix(
    run: Run,
    key: _Key,
    cells: Sequence[_Cell],
    floors_ns: Mapping[str, float | None],
    share_of: ShareOf,
) -> PairMatrix | None:
    """The matrix in the state that tables show; None without measurements."""
    transport, *_, ranks = key
    states = {name for _, by_state, _ in cells for name in by_state}
    main = run.state_of(transport, ranks)
    state = _ALL.name if _ALL.name in states else main
    if main is None or state not in states:
        return None
    figures = {pair: figure for pair, _, figure in cells if figure is not None}
    times: dict[Pair, Interval] = {}
    both_ways: dict[Pair, _OfLaunches] = {}
    for (a, b), by_state, _ in cells:
        if state in by_state:
            times[a, b] = _time(by_state[state])
            both_ways.setdefault((min(a, b), max(a, b)), []).extend(by_state[state])
    launch_ids = sorted({launch_id for medians in both_ways.values() for _, launch_id in medians})
    launches = [run.launches[launch_id] for launch_id in launch_ids]
    shares: dict[Pair, Share] = {}
    for pair, medians in both_ways.items():  # launches may place a pair differently: keep the most distant
        seen = {share_of(pair, launch_id) for _, launch_id in medians}
        share = max(seen, key=lambda share: (("", *PAIR_CLASSES).index(share.name), not share.is_certain))
        if share.name:
            shares[pair] = share
    of_launches = zip(*(launch.hosts for launch in launches), strict=True)
    hosts = tuple(" or ".join(dict.fromkeys(of_rank)) for of_rank in of_launches)
    classes, outliers, inconclusive = classify_pairs({pair: _time(both_ways[pair]) for pair in shares}, shares, hosts)
    cpus = zip(*(launch.cpus for launch in launches), strict=True)
    return PairMatrix(
        *key,
        state=main,
        floor_ns=floors_ns.get(main),
        hosts=hosts,
        cpus=tuple(of_rank[0] if len(set(of_rank)) == 1 else -1 for of_rank in cpus),
        oversubscribed=any(launch.oversubscribed for launch in launches),
        shown={pair: _shown(figure) for pair, figure in figures.items()} or times,
        others=sum(figure.state != main for figure in figures.values()),
        times=times,
        missing=len(cells) - len(figures or times),
        classes=classes,
        outliers=outliers,
        inconclusive=inconclusive,
    )


def _shown(figure: Figure) -> Interval:
    low, high = (figure.time.low, figure.time.high) if figure.has_interval else (None, None)
    n = figure.n_launches if figure.interval_over == BETWEEN_LAUNCHES else figure.n_measurements
    return Interval(figure.time.value, low, high, n, figure.coverage)


def _time(medians: _OfLaunches) -> Interval:
    medians_ns, launch_ids = zip(*medians, strict=True)
    return time_of(medians_ns, launch_ids)[0]


def _medians_of_ranks(series: Series, ranks: Pair, state_of: StateOf) -> _Medians:
    """The time of the slower of two ranks in each measurement, from its samples."""
    medians: _Medians = {}
    for measurement, seen in zip(series.measurements, series.states, strict=True):
        state = state_of(measurement.launch_id, seen)
        has_all = len(measurement.elapsed_ns) > max(ranks)  # a large model has one row for all ranks
        if has_all and measurement.elapsed_ns.size and state != MIXED:
            slower = measurement.elapsed_ns[list(ranks)].max(axis=0)
            time_ns = middle(slower) / (measurement.batch * measurement.definition.divisor)
            medians.setdefault(state.name, []).append((time_ns, measurement.launch_id))
    return medians
