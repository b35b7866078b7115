"""Every pair of ranks: their times as a matrix, what pairs have in common, and which of them stand out.

One pair at a time (idle) comes from pingpong with source and target; all at once (loaded) from rounds, where each
rank's own samples tell its pair's time. The matrix has both directions of an idle pair; what follows looks at a pair
once, at the median of both. Pairs are put into classes by what their two ranks share: a core, the last
cache, a package, the host; what lies between hosts, where nothing is known of the network, is told apart by its times.
A pair stands out from its class where its interval lies above 1.1 times the class's median, and its value further from
it than four of the class's spreads (1.48 median absolute deviations; P. J. Rousseeuw, C. Croux, Alternatives to the
Median Absolute Deviation, JASA 88, 1993). One whose value does, but whose interval does not lie there or could not be
told from so few measurements, is inconclusive. A class of fewer than four pairs has no outliers: nobody can say which
one is odd.

All launches of a run make one matrix. Ranks may lie elsewhere in each: a pair is of the farthest class that it had in
the launches that saw it in the matrix's state, and for classes and outliers its times in launches of that class count.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hockney.analysis.explain.clusters import Pair, Reach, clusters, slow_place
from hockney.analysis.explain.finding import of_all
from hockney.machine.topology import Topology
from hockney.model import Point, PointStatus
from hockney.results.runs import Run, Series
from hockney.results.store import MeasurementSummary
from hockney.stats import time_of
from hockney.stats.fit import Estimate
from hockney.stats.interval import Interval
from hockney.stats.states import MIXED, State
from hockney.units import format_ns

Load = Literal["idle", "loaded"]
Options = tuple[tuple[str, str], ...]
ClassOf = Callable[[Pair, int], str]  # of a pair in the launch with this id

# What one rank and one other do alone, ranks 0 and 1 unless the options name others.
PAIR_PATTERNS = ("pingpong", "putpong", "oneway", "twoway", "put", "get")

_CLASS_MIN = 4  # pairs, or nobody can say which one is odd
_SLOW = 1.10
_SPREADS = 4.0
_CLASSES = ("one core", "one last-level cache", "one package", "one host")
PAIR_CLASSES = (*_CLASSES, "between hosts")


@dataclass(frozen=True)
class PairClass:
    """Pairs that share the same: the median of their times, and the range of them."""

    name: str
    pairs: tuple[Pair, ...]
    median_ns: float
    fastest_ns: float
    slowest_ns: float
    by_times: bool = False  # told apart by them, for nothing else is known of some of its pairs


@dataclass(frozen=True)
class Outlier:
    """A pair (with one rank, all pairs of it) that is slower than its class.

    With `reach`: several ranks, all of whose pairs with these are slower than the class of the others. A switch or a
    group is slow, no single one of them.
    """

    ranks: tuple[int, ...]
    time: Estimate
    class_name: str
    class_ns: float
    of_pairs: int  # how many pairs of its class were looked at; with one rank, how many of its pairs are slow
    may_be_farther: bool = False  # no topology tells these ranks from such as lie farther off
    reach: Reach | None = None

    @property
    def factor(self) -> float:
        """Its time over the class's."""
        return self.time.value / self.class_ns


@dataclass(frozen=True)
class Inconclusive:
    """A pair whose value stands out from its class as an outlier's does, without an interval that bears it out."""

    ranks: Pair
    time: Interval
    class_name: str
    class_ns: float


@dataclass(frozen=True)
class PairMatrix:
    """Half round trips between all pairs, in one state of the machine. `missing` pairs have no figure in that state.

    `options` are the pattern's, but for those that name the pair. Classes and outliers have a pair once, the lower rank
    first. A rank that launches put on several hosts has them as `a or b`, and the CPU -1 if it was not always the same.
    """

    transport: str
    pattern: str
    options: Options
    bytes: int
    load: Load
    state: str
    floor_ns: float | None
    ranks: int
    hosts: tuple[str, ...]
    cpus: tuple[int, ...]
    oversubscribed: bool  # some launch was: then these are scheduling times
    times: Mapping[Pair, Interval]
    missing: int
    classes: tuple[PairClass, ...]
    outliers: tuple[Outlier, ...]
    inconclusive: tuple[Inconclusive, ...]

    def time(self, a: int, b: int) -> Interval | None:
        """That of a pair, whichever way it was measured."""
        return self.times.get((a, b)) or self.times.get((b, a))


def outlier_text(outlier: Outlier, hosts: Sequence[str]) -> str:
    """`ranks 1 and 3 take 1.30 us, 1.30 times the 1.00 us of their class (one host)`."""
    names = _names(outlier.ranks, hosts)
    who = (
        f"ranks {' and '.join(names)} {f'with {outlier.reach} ' if outlier.reach else ''}take"
        if len(names) > 1
        else f"rank {names[0]} with {outlier.of_pairs} others takes"
    )
    return (
        f"{who} {format_ns(outlier.time.value)}, {outlier.factor:.2f} times the {format_ns(outlier.class_ns)} of "
        f"{'the' if outlier.reach else 'their' if len(names) > 1 else 'its'} class ({outlier.class_name})"
        + (", or lies farther off than they, which no topology tells here" if outlier.may_be_farther else "")
    )


def inconclusive_text(pair: Inconclusive, hosts: Sequence[str]) -> str:
    """`whether ranks 1 and 3 are slow is inconclusive: 1.30 us, where their class (one host) takes 1.00 us, but …`."""
    low_ns, high_ns, n = pair.time.low, pair.time.high, pair.time.n
    but = (
        f"{n} of its measurements in this state are too few for an interval"
        if low_ns is None or high_ns is None
        else f"its interval is {format_ns(low_ns)} to {format_ns(high_ns)}"
    )
    return (
        f"whether ranks {' and '.join(_names(pair.ranks, hosts))} are slow is inconclusive: "
        f"{format_ns(pair.time.value)}, "
        f"where their class ({pair.class_name}) takes {format_ns(pair.class_ns)}, but {but}; more time (--time) tells"
    )


def _names(ranks: Iterable[int], hosts: Sequence[str]) -> list[str]:
    return [f"{rank} ({hosts[rank]})" if len(set(hosts)) > 1 else str(rank) for rank in ranks]


def why_no_matrix(points: Iterable[tuple[str, int]]) -> str | None:
    """Of a run's patterns with their numbers of ranks: a sentence where all pairs of them were just one."""
    ranks = {ranks for pattern, ranks in points if pattern == "rounds"}
    if ranks != {2}:
        return None
    return (
        "Two ranks are one pair: a matrix of all pairs needs three or more (-n 4, for one), on as many "
        "CPUs or on several hosts (`--hosts`); with --oversubscribe its times are the scheduler's."
    )


def pair_matrices(run: Run) -> list[PairMatrix]:
    """A matrix for each transport, number of ranks, size, load and options of which a run has several pairs."""
    share_of = _shares_of(run)
    return [
        matrix
        for key, series in _of_pairs(run).items()
        for matrix in [_matrix(run, key, series, share_of)]
        if matrix is not None
    ]


# ---- reading ---------------------------------------------------------------------------------------------------------

_Key = tuple[str, int, int, str, Options]  # transport, ranks, bytes, pattern
_Summaries = Sequence[tuple[MeasurementSummary, State]]
_Measured = list[tuple[Series, _Summaries, list[Pair]]]
_OfMeasurements = list[tuple[float, int]]  # a median for each, with its launch
_Medians = dict[State, _OfMeasurements]


def _of_pairs(run: Run) -> dict[_Key, _Measured]:
    """The series of one matrix together, each with the pairs that it measures; not where they are all of one pair."""
    found: dict[_Key, _Measured] = {}
    for series, measurements in run.summaries():
        point = series.point
        if series.status is PointStatus.FAILED:
            continue
        options = dict(point.options)
        if point.pattern == "pingpong":
            pairs = [pair_of(point)]
        elif point.pattern == "rounds":
            pairs = partners(point.ranks, int(options.get("round", "1")))
        else:
            continue
        others = tuple(option for option in point.options if option[0] not in ("source", "target", "round"))
        key = (point.transport, point.ranks, point.bytes, point.pattern, others)
        found.setdefault(key, []).append((series, measurements, pairs))
    return {
        key: measured
        for key, measured in found.items()
        if len({frozenset(pair) for *_, pairs in measured for pair in pairs}) > 1
    }


def _matrix(run: Run, key: _Key, measured: _Measured, share_of: _ShareOf) -> PairMatrix | None:
    """In the state in which most pairs have an interval, of these most a figure; None where nothing was measured."""
    transport, ranks, size, pattern, others = key
    idle = pattern == "pingpong"
    cells = [
        (pair, _medians(measurements) if idle else _medians_of_ranks(series, pair))
        for series, measurements, own in measured
        for pair in own
    ]
    in_state: dict[State, dict[Pair, Interval]] = {}
    for pair, by_state in cells:
        for state, medians in by_state.items():
            in_state.setdefault(state, {})[pair] = _time(medians)
    if not in_state:
        return None
    state, times = max(in_state.items(), key=lambda own: (sum(t.low is not None for t in own[1].values()), len(own[1])))
    both: dict[Pair, _OfMeasurements] = {}
    for (a, b), by_state in cells:
        both.setdefault((min(a, b), max(a, b)), []).extend(by_state.get(state, ()))
    launches = [run.launches[number] for number in sorted({number for own in both.values() for _, number in own})]
    farthest = {pair: _farthest(pair, medians, share_of) for pair, medians in both.items() if medians}
    once = {pair: _time(medians) for pair, (share, medians) in farthest.items() if share.name}
    classes, outliers, inconclusive = told_apart(once, {pair: share for pair, (share, _) in farthest.items()})
    return PairMatrix(
        transport=transport,
        pattern=pattern,
        options=others,
        bytes=size,
        load="idle" if idle else "loaded",
        state=state.name,
        floor_ns=state.floor_ns,
        ranks=ranks,
        hosts=tuple(" or ".join(dict.fromkeys(own)) for own in zip(*(one.hosts for one in launches), strict=True)),
        cpus=tuple(own[0] if len(set(own)) == 1 else -1 for own in zip(*(one.cpus for one in launches), strict=True)),
        oversubscribed=any(one.oversubscribed for one in launches),
        times=times,
        missing=len(cells) - len(times),
        classes=classes,
        outliers=outliers,
        inconclusive=inconclusive,
    )


def partners(ranks: int, round_: int) -> list[Pair]:
    """Who meets whom in a round of the pattern rounds, the lower rank first (docs/metrics.md)."""
    count = ranks - 1 + ranks % 2
    met = {(min(i, j), max(i, j)) for i in range(count) for j in [(2 * round_ - i) % count] if i != j}
    if ranks % 2 == 0:
        met.add((round_ % count, ranks - 1))
    return sorted(met)


def _medians(measurements: _Summaries) -> _Medians:
    """The pattern's time of each measurement, which is the source's, by state of the machine."""
    medians: _Medians = {}
    for measurement, state in measurements:
        if measurement.median_ns is not None and state != MIXED:
            medians.setdefault(state, []).append((measurement.median_ns, measurement.launch_id))
    return medians


def _time(medians: Iterable[tuple[float, int]]) -> Interval:
    medians_ns, launch_ids = zip(*medians, strict=True)
    return time_of(medians_ns, launch_ids)[0]


def _medians_of_ranks(series: Series, ranks: Sequence[int]) -> _Medians:
    """The same of the slower of these ranks, whose samples are needed for that."""
    import numpy as np

    medians: _Medians = {}
    for measurement, state in zip(series.measurements, series.states, strict=True):
        if measurement.elapsed_ns.size and state != MIXED:
            slower = measurement.elapsed_ns[list(ranks)].max(axis=0)
            time_ns = float(np.median(slower)) / (measurement.batch * measurement.definition.divisor)
            medians.setdefault(state, []).append((time_ns, measurement.launch_id))
    return medians


def topology_of(run: Run) -> Topology | None:
    """Of the machine that a run was started on; None where it is not known."""
    try:
        return Topology.from_json(run.facts["topology"])
    except (KeyError, TypeError):
        return None


# ---- classes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """Of which of PAIR_CLASSES two ranks are: the closest thing that they are known to share; "" if none is known.

    `is_told` is False where they may share something closer, because not all that lies between was known.
    """

    name: str
    is_told: bool


_ShareOf = Callable[[Pair, int], Share]


def _farthest(pair: Pair, medians: _OfMeasurements, share_of: _ShareOf) -> tuple[Share, _OfMeasurements]:
    """What a pair shared in those of its launches in which its ranks lay farthest apart, and its medians of these."""
    shares = {launch_id: share_of(pair, launch_id) for _, launch_id in medians}
    known = [share.name for share in shares.values() if share.name]
    farthest = max(known, key=PAIR_CLASSES.index, default="")
    is_told = all(share.is_told for share in shares.values() if share.name == farthest)
    own = [(median_ns, launch_id) for median_ns, launch_id in medians if shares[launch_id].name == farthest]
    return Share(farthest, is_told), own


def told_apart(
    times: Mapping[Pair, Interval], shares: Mapping[Pair, Share]
) -> tuple[tuple[PairClass, ...], tuple[Outlier, ...], tuple[Inconclusive, ...]]:
    """The classes of pairs, the lower rank of each first; who stands out from them.

    And of whom that is inconclusive.
    """
    classes, places = _classes(times, shares)
    return classes, (*places, *_outliers(times, classes)), tuple(_inconclusive(times, classes))


def _classes(
    times: Mapping[Pair, Interval], shares: Mapping[Pair, Share]
) -> tuple[tuple[PairClass, ...], tuple[Outlier, ...]]:
    """All classes, and the slow places that have one to themselves."""
    members: dict[str, list[Pair]] = {}
    for pair in times:
        members.setdefault(shares[pair].name, []).append(pair)
    classes: list[PairClass] = []
    places: list[Outlier] = []
    nearer: list[Pair] = []
    for name in sorted(members, key=PAIR_CLASSES.index):
        pairs = members[name]
        by_times = not all(shares[pair].is_told for pair in pairs)
        groups = clusters({pair: times[pair].value for pair in pairs}, nearer)
        for number, group in enumerate(groups, start=1):
            own_name = name if len(groups) == 1 else f"{name}, group {number}"
            classes.append(_class(own_name, group, times, by_times=by_times))
            slow = slow_place(groups[:number], nearer)
            known = [_estimate(times[pair]) for pair in group if times[pair].low is not None]
            if slow is not None and known:
                faster = classes[-2]
                time = of_all(known)
                if time.low > _SLOW * faster.median_ns:
                    places.append(Outlier(slow[0], time, faster.name, faster.median_ns, len(group), by_times, slow[1]))
        nearer += pairs
    return tuple(classes), tuple(places)


def pair_of(point: Point) -> Pair:
    """The ranks between which a pattern of two measures."""
    options = dict(point.options)
    return int(options.get("source", "0")), int(options.get("target", "1"))


def classes_of(run: Run) -> ClassOf:
    """What tells of a pair of ranks in a launch (by its id) which of PAIR_CLASSES it is of.

    Ranks lie elsewhere in each launch, so it is a measurement that has a class. "" where it is not known where they
    were.
    """
    share_of = _shares_of(run)
    return lambda pair, launch_id: share_of(pair, launch_id).name


def _shares_of(run: Run) -> _ShareOf:
    topology, own_host = topology_of(run), run.facts.get("hostname")

    @functools.cache
    def share_of(pair: Pair, launch_id: int) -> Share:
        launch = run.launches.get(launch_id)
        if launch is None or max(pair) >= min(len(launch.hosts), len(launch.cpus)):
            return Share("", is_told=False)
        hosts = {launch.hosts[rank] for rank in pair}
        cpus = {launch.cpus[rank] for rank in pair}
        if len(hosts) > 1:
            return Share(PAIR_CLASSES[-1], is_told=False)
        # A topology is that of the machine that hockney ran on: other hosts may be built otherwise.
        return _shared(cpus, topology if hosts == {own_host} and -1 not in cpus else None)

    return share_of


def _shared(cpus: Collection[int], topology: Topology | None) -> Share:
    """What CPUs of one host share. CPUs that are in no known group of some kind may share one of that kind."""
    is_told = topology is not None
    kinds = (topology.cores, topology.last_level(), topology.packages) if topology is not None else ()
    for name, groups in zip(_CLASSES, kinds, strict=False):
        if any(set(cpus) <= set(group) for group in groups):
            return Share(name, is_told)
        is_told = is_told and all(any(cpu in group for group in groups) for cpu in cpus)
    return Share(_CLASSES[-1], is_told)


def _class(name: str, pairs: Iterable[Pair], times: Mapping[Pair, Interval], *, by_times: bool) -> PairClass:
    ordered = tuple(sorted(pairs))
    values = [times[pair].value for pair in ordered]
    return PairClass(name, ordered, statistics.median(values), min(values), max(values), by_times)


# ---- who stands out --------------------------------------------------------------------------------------------------


def _outliers(times: Mapping[Pair, Interval], classes: Iterable[PairClass]) -> Iterable[Outlier]:
    for one in classes:
        if len(one.pairs) < _CLASS_MIN:
            continue
        slow = _slow_pairs(one, times)
        ranks = _slow_ranks(one, slow)
        for rank, pairs in ranks.items():
            time = of_all([_estimate(times[pair]) for pair in pairs])
            yield Outlier((rank,), time, one.name, one.median_ns, len(pairs), may_be_farther=one.by_times)
        for pair in slow:
            if not set(pair) & set(ranks):
                time = _estimate(times[pair])
                yield Outlier(pair, time, one.name, one.median_ns, len(one.pairs), may_be_farther=one.by_times)


def _estimate(time: Interval) -> Estimate:
    """Of a slow pair, which has an interval, or it would not be known to be slow."""
    assert time.low is not None
    assert time.high is not None
    return Estimate(time.value, time.low, time.high)


def _inconclusive(times: Mapping[Pair, Interval], classes: Iterable[PairClass]) -> Iterable[Inconclusive]:
    for one in classes:
        if len(one.pairs) >= _CLASS_MIN:
            slow = _slow_pairs(one, times)
            for pair in _far_off(one, times):
                if pair not in slow:
                    yield Inconclusive(pair, times[pair], one.name, one.median_ns)


def _slow_pairs(one: PairClass, times: Mapping[Pair, Interval]) -> list[Pair]:
    return [pair for pair in _far_off(one, times) if (times[pair].low or 0.0) > _SLOW * one.median_ns]


def _far_off(one: PairClass, times: Mapping[Pair, Interval]) -> list[Pair]:
    """Pairs with values that stand out, whatever their intervals."""
    spread_ns = 1.4826 * statistics.median(abs(times[pair].value - one.median_ns) for pair in one.pairs)
    limit_ns = max(_SLOW * one.median_ns, one.median_ns + _SPREADS * spread_ns)
    return [pair for pair in one.pairs if times[pair].value > limit_ns]


def _slow_ranks(one: PairClass, slow: Sequence[Pair]) -> dict[int, list[Pair]]:
    """Ranks of which most pairs are slow, three at least, where most others' are not."""
    found: dict[int, list[Pair]] = {}
    for rank in sorted({rank for pair in slow for rank in pair}):
        own = [pair for pair in one.pairs if rank in pair]
        slow_own = [pair for pair in slow if rank in pair]
        if len(slow_own) >= 3 and 2 * len(slow_own) > len(own):
            found[rank] = slow_own
    return found
