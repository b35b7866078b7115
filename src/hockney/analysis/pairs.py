"""Times between all pairs of ranks: a matrix, classes of pairs, and slow pairs, ranks and parts of the machine.

The pattern pingpong measures one pair at a time (idle), rounds measures disjoint pairs concurrently (loaded). The
topology gives the class of two ranks; if it is not known, their times do (clusters.py).
"""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hockney.analysis.clusters import Pair, Reach, are_few, clusters, group_name, slow_part
from hockney.machine.facts import fact
from hockney.machine.topology import Topology
from hockney.model import Point, PointStatus
from hockney.results.figures import Figure
from hockney.results.runs import Run, Series
from hockney.results.store import MeasurementSummary
from hockney.stats import BETWEEN_LAUNCHES, time_of
from hockney.stats.fit import Estimate
from hockney.stats.interval import Interval, middle
from hockney.stats.states import MIXED, State

Load = Literal["idle", "loaded"]
Options = tuple[tuple[str, str], ...]
ClassOf = Callable[[Pair, int], str]  # of a pair in the launch with this id

# Classes of two ranks, the closest first.
PAIR_CLASSES = ("one core", "one last-level cache", "one package", "one host", "between hosts")
FARTHEST = PAIR_CLASSES[-1]

_SLOW = 1.10


@dataclass(frozen=True)
class PairClass:
    """Pairs that share the same, each with its lower rank first. `by_times`: the topology is not known of all."""

    name: str
    pairs: tuple[Pair, ...]
    median_ns: float
    fastest_ns: float
    slowest_ns: float
    by_times: bool = False


@dataclass(frozen=True)
class Outlier:
    """A pair that is slower than its class, or a rank with `of_pairs` slow pairs, or (with `reach`) a slow part.

    `may_be_farther`: the topology is not known, so these ranks may also lie farther off.
    """

    ranks: tuple[int, ...]
    time: Estimate
    class_name: str
    class_ns: float
    of_pairs: int
    may_be_farther: bool = False
    reach: Reach | None = None

    @property
    def factor(self) -> float:
        """Its time over the class's."""
        return self.time.value / self.class_ns


@dataclass(frozen=True)
class Inconclusive:
    """A pair whose value is as far from its class as an outlier's, while its interval is too wide or absent."""

    ranks: Pair
    time: Interval
    class_name: str
    class_ns: float


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
    share_of = _shares_of(run)
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
    share_of: _ShareOf,
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


# ---- classes by topology ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """One of PAIR_CLASSES, or "" if the placement is not known. `is_certain`: they share nothing closer."""

    name: str
    is_certain: bool


_ShareOf = Callable[[Pair, int], Share]


def pair_of(point: Point) -> Pair:
    """The ranks between which a pattern of two measures."""
    options = dict(point.options)
    return int(options.get("source", "0")), int(options.get("target", "1"))


def classes_of(run: Run) -> ClassOf:
    """A function that gives the class of a pair of ranks in a launch, "" if their placement is not known."""
    share_of = _shares_of(run)
    return lambda pair, launch_id: share_of(pair, launch_id).name


def _shares_of(run: Run) -> _ShareOf:
    topology = Topology.from_json(run.facts["topology"]) if fact(run.facts, "topology.cores") else None

    @functools.cache
    def share_of(pair: Pair, launch_id: int) -> Share:
        launch = run.launches.get(launch_id)
        if launch is None or max(pair) >= min(len(launch.hosts), len(launch.cpus)):  # as in a launch of one rank
            return Share("", is_certain=False)
        hosts = {launch.hosts[rank] for rank in pair}
        cpus = {launch.cpus[rank] for rank in pair}
        if len(hosts) > 1:
            return Share("between hosts", is_certain=False)
        # The topology is that of the machine that hockney ran on; other hosts may be built differently.
        if topology is None or -1 in cpus or hosts != {run.facts.get("hostname")}:
            return Share("one host", is_certain=False)
        is_certain = True  # until a CPU is in no known group of a kind: it may share one of that kind
        for name, groups in zip(PAIR_CLASSES, (topology.cores, topology.last_level(), topology.packages), strict=False):
            if any(cpus <= set(group) for group in groups):
                return Share(name, is_certain)
            is_certain = is_certain and all(any(cpu in group for group in groups) for cpu in cpus)
        return Share("one host", is_certain)

    return share_of


# ---- classes, and pairs slower than their class ----------------------------------------------------------------------


def classify_pairs(
    times: Mapping[Pair, Interval], shares: Mapping[Pair, Share], hosts: Sequence[str] = ()
) -> tuple[tuple[PairClass, ...], tuple[Outlier, ...], tuple[Inconclusive, ...]]:
    """The classes of pairs (the lower rank of each first), those slower than their class, and those that may be.

    Groups of pairs between `hosts`, those of the ranks, are named by them.
    """
    classes: list[PairClass] = []
    outliers: list[Outlier] = []
    nearer: list[Pair] = []
    for name in PAIR_CLASSES:
        pairs = [pair for pair in times if shares[pair].name == name]
        by_times = not all(shares[pair].is_certain for pair in pairs)
        groups = clusters({pair: times[pair].value for pair in pairs}, nearer)
        names = _group_names(name, groups, hosts)
        for number, (group, full_name) in enumerate(zip(groups, names, strict=True), start=1):
            part = slow_part(groups[:number], nearer)
            known = [estimate for pair in group if (estimate := times[pair].estimate) is not None]
            if part is not None and known and Estimate.of_all(known).low > _SLOW * classes[-1].median_ns:
                outliers.append(_outlier(part[0], known, classes[-1], len(group), part[1]))
            values = [times[pair].value for pair in group]
            spread = statistics.median(values), min(values), max(values)
            classes.append(PairClass(full_name, tuple(sorted(group)), *spread, by_times))
        nearer += pairs
    inconclusive: list[Inconclusive] = []
    for pair_class in classes:
        slow_pairs: dict[Pair, Estimate] = {}
        for pair in _far_off(pair_class, times):
            time = times[pair].estimate
            if time is not None and time.low > _SLOW * pair_class.median_ns:
                slow_pairs[pair] = time
            else:
                inconclusive.append(Inconclusive(pair, times[pair], pair_class.name, pair_class.median_ns))
        outliers += _outliers(pair_class, slow_pairs)
    return tuple(classes), tuple(outliers), tuple(inconclusive)


def _group_names(name: str, groups: Sequence[Collection[Pair]], hosts: Sequence[str]) -> list[str]:
    """Names of the groups of a class: by their hosts where these distinguish them, else by numbers."""
    if len(groups) < 2:
        return [name] * len(groups)
    by_hosts = [group_name(group, hosts) for group in groups] if hosts and name == FARTHEST else []
    if len(set(by_hosts)) == len(groups):
        return [f"{name} {group}" for group in by_hosts]
    return [f"{name}, group {number}" for number in range(1, len(groups) + 1)]


def _far_off(pair_class: PairClass, times: Mapping[Pair, Interval]) -> list[Pair]:
    """Pairs with values 10 % above the class's median and further from it than four of its spreads.

    A spread is 1.48 median absolute deviations (P. J. Rousseeuw, C. Croux, JASA 88, 1993).
    """
    if len(pair_class.pairs) < 4:  # then it is unknown which one is odd
        return []
    middle_ns = pair_class.median_ns
    spread_ns = 1.4826 * statistics.median(abs(times[pair].value - middle_ns) for pair in pair_class.pairs)
    limit_ns = max(_SLOW * middle_ns, middle_ns + 4 * spread_ns)
    return [pair for pair in pair_class.pairs if times[pair].value > limit_ns]


def _outliers(pair_class: PairClass, slow_pairs: Mapping[Pair, Estimate]) -> Iterator[Outlier]:
    """Ranks most of whose pairs are slow, three at least; and the slow pairs without such a rank."""
    ranks: set[int] = set()
    for rank in sorted({rank for pair in slow_pairs for rank in pair}):
        times = [time for pair, time in slow_pairs.items() if rank in pair]
        if len(times) >= 3 and 2 * len(times) > sum(rank in pair for pair in pair_class.pairs):
            ranks.add(rank)
            yield _outlier((rank,), times, pair_class, len(times))
    rest = [pair for pair in slow_pairs if not ranks.intersection(pair)]
    # By times alone, pairs that share no rank, or are many, or of all ranks may be distant, as across a torus.
    share_rank = bool(rest) and bool(set.intersection(*map(set, rest)))
    spare_rank = set(itertools.chain(*rest)) < set(itertools.chain(*pair_class.pairs))
    if not pair_class.by_times or share_rank or (spare_rank and are_few(len(rest), len(pair_class.pairs))):
        for pair in rest:
            yield _outlier(pair, [slow_pairs[pair]], pair_class, len(pair_class.pairs))


def _outlier(
    ranks: tuple[int, ...], times: Sequence[Estimate], than: PairClass, of_pairs: int, reach: Reach | None = None
) -> Outlier:
    return Outlier(ranks, Estimate.of_all(times), than.name, than.median_ns, of_pairs, than.by_times, reach)
