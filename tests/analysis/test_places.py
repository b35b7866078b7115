"""Pairs of ranks without a known topology: times show the places."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.places import KINDS, NOISES
from tests.analysis.test_pairs import idle, matrices
from tests.matrix import matrix

from hockney.analysis.clusters import clusters
from hockney.analysis.pair_classes import Share, classify_pairs
from hockney.analysis.pairs import PairMatrix
from hockney.machine.topology import Cache, Topology
from hockney.report.findings import outlier_text
from hockney.stats.interval import median

MACHINES = 300
# Two complexes of six and two CPUs in one package.
TOPOLOGY = Topology(
    source="sysfs",
    cores=tuple((cpu,) for cpu in range(8)),
    packages=(tuple(range(8)),),
    caches=(Cache(3, "unified", 1 << 20, 64, tuple(range(6))), Cache(3, "unified", 1 << 20, 64, (6, 7))),
)


def blocks(*ranks: int) -> dict[tuple[int, int], float]:
    """100 ns within each group of this many ranks."""
    ends = list(itertools.accumulate(ranks, initial=0))
    return {
        pair: 100.0
        for first, end in itertools.pairwise(ends)
        for pair in itertools.combinations(range(first, end), 2)
    }  # fmt: skip


def of_two_complexes(path: Path, **how: Any) -> PairMatrix:
    (matrix,) = matrices(path, idle(8, blocks(6, 2), 300.0), **how)
    return matrix


@pytest.mark.parametrize(
    "how",
    [
        {},  # no topology
        {"facts": {"hostname": "here", "topology": TOPOLOGY.as_json()}, "launches": [{"cpus": (-1,) * 8}]},
        {"facts": {"hostname": "elsewhere", "topology": TOPOLOGY.as_json()}, "pinned": True},
    ],
    ids=["no topology", "not pinned", "another host"],
)
def test_a_small_complex_is_not_slow(tmp_path: Path, how: dict[str, Any]) -> None:
    matrix = of_two_complexes(tmp_path, **how)
    classes = [(each.name, len(each.pairs), round(each.median_ns, -1)) for each in matrix.classes]
    assert classes == [("one host, group 1", 16, 100.0), ("one host, group 2", 12, 300.0)]
    assert (matrix.outliers, matrix.inconclusive) == ((), ())


def test_a_known_topology_goes_before_times(tmp_path: Path) -> None:
    """All pairs take the same, and yet those of one cache are their own class."""
    (matrix,) = matrices(
        tmp_path, idle(8, {}, 100.0), facts={"hostname": "here", "topology": TOPOLOGY.as_json()}, pinned=True
    )
    assert [(each.name, len(each.pairs)) for each in matrix.classes] == [
        ("one last-level cache", 16),
        ("one package", 12),
    ]
    assert not any(pair_class.by_times for pair_class in matrix.classes)


def test_without_caches_times_make_the_classes(tmp_path: Path) -> None:
    topology = Topology("sysfs", cores=TOPOLOGY.cores, packages=TOPOLOGY.packages)
    facts = {"hostname": "here", "topology": topology.as_json()}
    matrix = of_two_complexes(tmp_path, facts=facts, pinned=True)
    assert [pair_class.name for pair_class in matrix.classes] == ["one package, group 1", "one package, group 2"]
    assert matrix.outliers == ()


def test_a_rank_alone_may_be_farther(tmp_path: Path) -> None:
    (matrix,) = matrices(tmp_path, idle(6, blocks(5, 1), 300.0))
    (alone,) = matrix.outliers
    assert alone.ranks == (5,)
    assert alone.may_be_farther


def test_two_near_ranks_are_a_place() -> None:
    times = dict.fromkeys(itertools.combinations(range(64), 2), 300.0) | blocks(62, 2)
    assert [len(group) for group in clusters(times, ())] == [62 * 61 // 2 + 1, 2 * 62]


@pytest.mark.parametrize(("ratio", "levels"), [(1.23, 1), (1.27, 2)])
def test_times_a_quarter_longer_are_the_next_level(ratio: float, levels: int) -> None:
    times = dict.fromkeys(itertools.combinations(range(4), 2), 100.0 * ratio) | {(0, 1): 100.0, (2, 3): 100.0}
    assert len(clusters(times, ())) == levels


def test_hops_of_a_ring_are_levels() -> None:
    """A ring has no places: neighbours of neighbours are farther away."""
    hops = {(a, b): min(b - a, 8 + a - b) for a, b in itertools.combinations(range(8), 2)}
    groups = clusters({pair: 100.0 * 2**count for pair, count in hops.items()}, ())
    assert [{hops[pair] for pair in group} for group in groups] == [{1}, {2}, {3}, {4}]


@pytest.mark.parametrize(("lengths", "slow"), [((4, 2), (0, 1)), ((3, 2), None), ((2, 2), None)])
def test_the_far_side_of_a_torus_is_not_slow(lengths: tuple[int, int], slow: tuple[int, int] | None) -> None:
    """Long messages take little more for each hop, so that all are one group; a slow link in it is named."""
    length, width = lengths
    pairs = list(itertools.combinations(range(length * width), 2))
    hops = {
        (a, b): min((a - b) % length, (b - a) % length) + min((a // length - b // length) % width, 1) for a, b in pairs
    }
    times = {pair: median([(16 + 3 * count) * 100.0 + i for i in range(9)]) for pair, count in hops.items()}
    shares = dict.fromkeys(pairs, Share("between hosts", is_certain=False))
    assert classify_pairs(times, shares)[1] == ()
    if slow is not None:
        times[slow] = median([4000.0 + i for i in range(9)])
        assert [outlier.ranks for outlier in classify_pairs(times, shares)[1]] == [slow]


# Least share of machines with the slow one named (or all classes found), greatest share with a healthy one accused.
# docs/validation.md has the rates of 1,000 machines. Slow switches with the times of another level cannot be found.
@pytest.mark.parametrize("noise", matrix(NOISES, short=NOISES[1:2]))
@pytest.mark.parametrize(
    ("kind", "least", "accused"),
    [
        ("unchanged", 0.98, 0.01),
        ("one slow pair", 0.97, 0.01),
        ("one slow rank", 0.97, 0.03),
        ("one slow switch", 0.4, 0.015),
    ],
)
def test_rates_on_made_up_machines(kind: str, noise: float, least: float, accused: float) -> None:
    score = KINDS[kind](noise, MACHINES)
    assert (score.classes_found if kind == "unchanged" else score.named) >= least * MACHINES
    assert score.accused <= accused * MACHINES


def test_a_slow_host_is_named(tmp_path: Path) -> None:
    hosts = tuple(host for host in "abcdef" for _ in range(2))
    near = {(a, b): 100.0 for a, b in itertools.combinations(range(12), 2) if hosts[a] == hosts[b]}
    slow = {(a, b): 1500.0 for a, b in itertools.combinations(range(12), 2) if b in (8, 9) or a in (8, 9)}
    (matrix,) = matrices(tmp_path, idle(12, {**slow, **near}, 1000.0), hosts=hosts)
    assert [(outlier.ranks, outlier.reach) for outlier in matrix.outliers] == [((8, 9), "all others")]
    assert "host e with all others: 1.50 us" in outlier_text(matrix.outliers[0], matrix.hosts)


def test_a_slow_cache_of_a_known_topology_is_certain(tmp_path: Path) -> None:
    slow = dict.fromkeys(itertools.combinations(range(6), 2), 200.0)
    (matrix,) = matrices(
        tmp_path,
        idle(8, {**slow, (6, 7): 100.0}, 300.0),
        facts={"hostname": "here", "topology": TOPOLOGY.as_json()},
        pinned=True,
    )
    assert [(outlier.ranks, outlier.reach, outlier.may_be_farther) for outlier in matrix.outliers] == [
        ((0, 1, 2, 3, 4, 5), "each other", False)
    ]
