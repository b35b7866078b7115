"""Classes of pairs of ranks by what they share, and pairs, ranks and parts of the machine that are slower than theirs.

The topology gives the class of two ranks; if it is not known, their times do (clusters.py).
"""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hockney.analysis.clusters import Pair, Reach, are_few, clusters, group_name, slow_part
from hockney.machine.facts import fact
from hockney.machine.topology import Topology
from hockney.model import Point
from hockney.results.runs import Run
from hockney.stats.fit import Estimate
from hockney.stats.interval import Interval

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


# ---- classes by topology ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """One of PAIR_CLASSES, or "" if the placement is not known. `is_certain`: they share nothing closer."""

    name: str
    is_certain: bool


ShareOf = Callable[[Pair, int], Share]


def pair_of(point: Point) -> Pair:
    """The ranks between which a pattern of two measures."""
    options = dict(point.options)
    return int(options.get("source", "0")), int(options.get("target", "1"))


def classes_of(run: Run) -> ClassOf:
    """A function that gives the class of a pair of ranks in a launch, "" if their placement is not known."""
    share_of = shares_of(run)
    return lambda pair, launch_id: share_of(pair, launch_id).name


def shares_of(run: Run) -> ShareOf:
    """A function that gives what a pair of ranks shares in a launch."""
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
