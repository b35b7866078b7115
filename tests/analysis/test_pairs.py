"""All pairs of ranks: the matrix, the classes, and who stands out, on runs whose times are known."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.analysis.explain.readings import found
from tests.analysis.places import TWO_CORES
from tests.report.runs import Made, options, store_run

from hockney.analysis.clusters import group_name
from hockney.analysis.explain import Explanation, explain_run
from hockney.analysis.explain.read import read_run
from hockney.analysis.finding import Absence
from hockney.analysis.pair_classes import PAIR_CLASSES, Share, classify_pairs
from hockney.analysis.pairs import PairMatrix, pair_matrices, partners
from hockney.analysis.repeat import same_placement
from hockney.machine.topology import Cache, Topology
from hockney.model import Point
from hockney.render.text import show
from hockney.report.documents.pairs import matrix_blocks, pairs_as_json
from hockney.report.findings import evidence_of, title_of
from hockney.results.runs import open_results
from hockney.stats.interval import Interval


def matrices(path: Path, made: list[Made], **how: Any) -> list[PairMatrix]:
    store_run(path / "r.db", "allpairs", made, **how)
    with open_results(path / "r.db") as results:
        return pair_matrices(results.run())


def explained(path: Path, made: list[Made], suite: str = "allpairs", **how: Any) -> Explanation:
    """A run of hosts has them in its plan."""
    path.mkdir(exist_ok=True)
    hosts: dict[str, Any] = {"plan": {"hosts": list(dict.fromkeys(how["hosts"]))}} if "hosts" in how else {}
    store_run(path / "r.db", suite, made, **{**hosts, **how})
    with open_results(path / "r.db") as results:
        return explain_run(results.run())


def idle(ranks: int, times: dict[tuple[int, int], float], fallback: float, measurements: int = 9) -> list[Made]:
    return [
        Made(
            Point("mpi", "pingpong", ranks, 8, options(source=a, target=b)),
            times.get((min(a, b), max(a, b)), fallback) * (1 + 0.001 * ((3 * a + b) % 5)),
            divisor=2,
            measurements=measurements,
        )
        for a, b in itertools.permutations(range(ranks), 2)
    ]


@pytest.mark.parametrize("ranks", range(2, 12))
def test_in_rounds_all_pairs_meet_once(ranks: int) -> None:
    last = ranks - 1 if ranks % 2 == 0 else ranks
    met = [pair for number in range(1, last + 1) for pair in partners(ranks, number)]
    assert sorted(met) == list(itertools.combinations(range(ranks), 2))


def test_like_pairs_are_one_class(tmp_path: Path) -> None:
    (matrix,) = matrices(tmp_path, idle(4, {}, 1000.0))
    assert (matrix.load, matrix.ranks, matrix.missing, len(matrix.times)) == ("idle", 4, 0, 12)
    assert [pair_class.name for pair_class in matrix.classes] == ["one host"]
    assert matrix.classes[0].median_ns == pytest.approx(1002, abs=2)
    assert matrix.outliers == ()


@pytest.mark.parametrize(
    ("ranks", "slow", "named", "of_pairs"),
    [(4, [(1, 3)], (1, 3), 6), (6, [(min(4, a), max(4, a)) for a in (0, 1, 2, 3, 5)], (4,), 5)],
    ids=["a pair", "a rank, not each of its pairs"],
)
def test_slow_ranks_and_pairs_are_named(
    ranks: int, slow: list[tuple[int, int]], named: tuple[int, ...], of_pairs: int, tmp_path: Path
) -> None:
    (matrix,) = matrices(tmp_path, idle(ranks, dict.fromkeys(slow, 1300.0), 1000.0))
    assert [outlier.ranks for outlier in matrix.outliers] == [named]
    assert matrix.inconclusive == ()
    assert matrix.outliers[0].of_pairs == of_pairs
    assert matrix.outliers[0].factor == pytest.approx(1.3, rel=0.01)


def test_a_pair_of_few_measurements_is_inconclusive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    made = idle(5, {(1, 3): 1300.0, (2, 4): 1400.0}, 1000.0)
    few = [replace(one, measurements=2) if 1200 < one.time_ns < 1350 else one for one in made]
    (matrix,) = matrices(tmp_path, few)
    assert [outlier.ranks for outlier in matrix.outliers] == [(2, 4)]
    assert [(pair.ranks, pair.time.n, pair.time.low) for pair in matrix.inconclusive] == [((1, 3), 4, None)]
    assert [pair["ranks"] for pair in pairs_as_json([matrix])["matrices"][0]["inconclusive"]] == [(1, 3)]
    show(matrix_blocks(matrix))
    assert capsys.readouterr().out == snapshot


@pytest.mark.parametrize(
    ("hosts", "heading"),
    [
        (("a", "b", "c"), "from to a to b to c"),
        (("a", "a", "b"), "from to 0 (a) to 1 (a) to 2 (b)"),
        (("a", "a", "a"), "from to 0 to 1 to 2"),
    ],
)
def test_matrices_of_several_hosts_name_them(
    hosts: tuple[str, ...], heading: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for matrix in matrices(tmp_path, idle(3, {}, 1000.0), hosts=hosts):
        show(matrix_blocks(matrix))
    assert heading in " ".join(capsys.readouterr().out.split())


def test_a_pair_slow_in_half_of_its_launches_is_inconclusive(tmp_path: Path) -> None:
    """Pair (1, 3) is slow in the first three of six launches."""
    slow = idle(4, {(1, 3): 1300.0}, 1000.0)
    made = [replace(one, then=replace(one, time_ns=1000.0)) if one.time_ns > 1200 else one for one in slow]
    (matrix,) = matrices(tmp_path, made, launches=[{}] * 6)
    assert matrix.outliers == ()
    (pair,) = matrix.inconclusive
    assert pair.ranks == (1, 3)
    assert pair.time.low == pytest.approx(980, rel=0.01)


def test_a_matrix_is_of_the_state_in_which_most_pairs_have_an_interval(tmp_path: Path) -> None:
    """Every pair was seen twice while the CPUs were near; all but one often while they were far."""
    rare, *rest = idle(4, {}, 1000.0, measurements=2)
    often = [replace(one, then=replace(one, time_ns=6000.0, measurements=9, floor_ns=184.0)) for one in rest]
    (matrix,) = matrices(tmp_path, [rare, *often])
    assert (matrix.state, matrix.others, len(matrix.times)) == ("far", 1, 11)


def test_a_matrix_has_the_figures_that_tables_show(tmp_path: Path) -> None:
    """Of pairs with too few measurements in its state they are of several, and judge nobody."""
    made = idle(4, {}, 1000.0)
    busy = [replace(one, measurements=5, time_ns=1400.0, pace_ns=(0.9,) * 4) for one in made]
    made = [
        replace(one, measurements=3 if n % 3 else 9, pace_ns=(0.5,) * 4, then=busy[n]) for n, one in enumerate(made)
    ]
    (matrix,) = matrices(tmp_path, made)
    with open_results(tmp_path / "r.db") as results:
        figures = [series.shown for series in results.run().series if series.shown is not None]
    shown = {tuple(int(value) for _, value in each.point.options): each for each in figures}
    assert {pair: time.value for pair, time in matrix.shown.items()} == {
        pair: each.time.value for pair, each in shown.items()
    }
    assert (matrix.state, matrix.others, matrix.missing) == ("near", 8, 0)
    assert {time.n for time in matrix.times.values()} == {3, 9}
    (document,) = pairs_as_json([matrix])["matrices"]
    assert document["time_ns"][1][2] == shown[1, 2].time.value


def test_between_hosts_every_measurement_counts(tmp_path: Path) -> None:
    """On busy hosts the floor changes during most measurements, and no state has an interval: it is of two ranks."""
    slow = idle(4, dict.fromkeys(((0, 1), (1, 2), (1, 3)), 4000.0), 1000.0, measurements=3)
    busy = [replace(one, then=replace(one, measurements=6, floor_after_ns=300.0)) for one in slow]
    for hosts, count in (((), 3), (("n1", "n2", "n3", "n4"), 9)):
        folder = tmp_path / str(count)
        folder.mkdir()
        (matrix,) = matrices(folder, busy, hosts=hosts)
        assert {time.n for time in matrix.times.values()} == {count}
    assert (matrix.state, matrix.floor_ns, matrix.others) == ("near", None, 12)
    with open_results(tmp_path / "9/r.db") as results:
        findings = explain_run(results.run()).findings
    assert [finding.facts["host"] for finding in findings if finding.code == "slow host"] == ["n2"]


def test_a_pair_is_the_median_of_both_directions(tmp_path: Path) -> None:
    made = idle(4, {}, 1000.0)
    made[0] = replace(made[0], time_ns=1200.0)  # from 0 to 1
    (matrix,) = matrices(tmp_path, made)
    assert matrix.times[0, 1].value == pytest.approx(1200, abs=1)
    assert matrix.times[1, 0].value == pytest.approx(1003, abs=1)
    (of_all,) = matrix.classes
    spread_ns = of_all.fastest_ns, of_all.median_ns, of_all.slowest_ns
    assert spread_ns == pytest.approx((1000.5, 1001.5, 1101.5), abs=0.6)


def test_classes_follow_the_topology(tmp_path: Path) -> None:
    topology = Topology(
        source="sysfs",
        cores=((0, 1), (2, 3), (4, 5), (6, 7)),
        packages=((0, 1, 2, 3, 4, 5), (6, 7)),
        caches=(Cache(3, "unified", 1 << 20, 64, (0, 1, 2, 3)), Cache(3, "unified", 1 << 20, 64, (4, 5)),
                Cache(3, "unified", 1 << 20, 64, (6, 7))),
    )  # fmt: skip
    (matrix,) = matrices(
        tmp_path, idle(8, {}, 1000.0), pinned=True, facts={"hostname": "here", "topology": topology.as_json()}
    )
    assert {pair_class.name: len(pair_class.pairs) for pair_class in matrix.classes} == {
        "one core": 4,
        "one last-level cache": 4,
        "one package": 8,
        "one host": 12,
    }


def test_a_pair_is_judged_over_all_launches(tmp_path: Path) -> None:
    """Pair (0, 1) is slow in all of six launches, pair (2, 3) in four."""
    quick = idle(4, {(0, 1): 1300.0}, 1000.0, measurements=12)
    slow = idle(4, {(0, 1): 1300.0, (2, 3): 1300.0}, 1000.0, measurements=24)
    made = [replace(one, then=then) for one, then in zip(slow, quick, strict=True)]
    (matrix,) = matrices(tmp_path, made, launches=[{}] * 6)
    assert {time.n for time in matrix.times.values()} == {6}
    assert [outlier.ranks for outlier in matrix.outliers] == [(0, 1)]


def test_the_class_holds_in_every_launch(tmp_path: Path) -> None:
    (matrix,) = matrices(
        tmp_path,
        idle(3, {}, 1000.0),
        facts=TWO_CORES,
        launches=[{"cpus": (0, 1, 2)}, {"cpus": (0, 2, 3)}],
    )
    assert {each.name: each.pairs for each in matrix.classes} == {"one package": ((0, 1), (0, 2), (1, 2))}
    assert matrix.cpus == (0, -1, -1)


def test_launches_in_other_states_do_not_count_for_the_class(tmp_path: Path) -> None:
    """Ranks 0 and 1 share a core in the first launch, as 2 and 3 do, and not in the second, seen in another state."""
    first = idle(4, {}, 1000.0)
    of_two = {options(source=0, target=1), options(source=1, target=0)}
    second = [replace(one, floor_ns=184.0 if one.point.options in of_two else one.floor_ns) for one in first]
    (matrix,) = matrices(
        tmp_path,
        [replace(one, then=then) for one, then in zip(first, second, strict=True)],
        facts=TWO_CORES,
        launches=[{"cpus": (0, 1, 2, 3)}, {"cpus": (0, 2, 1, 3)}],
    )
    assert [(each.name, len(each.pairs)) for each in matrix.classes] == [("one core", 1), ("one package", 5)]
    assert matrix.classes[0].pairs == ((0, 1),)


def test_a_rank_that_moved_has_both_hosts(tmp_path: Path) -> None:
    launches = [{"hosts": ("a", "a", "b")}, {"hosts": ("a", "b", "b"), "oversubscribed": True}]
    (matrix,) = matrices(tmp_path, idle(3, {}, 1000.0), launches=launches)
    assert matrix.hosts == ("a", "a or b", "b")
    assert [pair_class.name for pair_class in matrix.classes] == ["between hosts"]
    assert matrix.oversubscribed


def test_points_with_other_options_make_another_matrix(tmp_path: Path) -> None:
    made = idle(3, {}, 1000.0)
    other = [
        replace(one, point=replace(one.point, options=(*one.point.options, ("touch", "yes"))),
                            time_ns=5000.0)
        for one in made
    ]  # fmt: skip
    plain, touching = matrices(tmp_path, [*made, *other])
    assert (plain.options, touching.options) == ((), (("touch", "yes"),))
    assert plain.classes[0].slowest_ns < 1100
    assert touching.classes[0].fastest_ns > 4900


def test_idle_matrices_are_read_without_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "hockney.results.runs.Series.measurements", property(lambda series: pytest.fail("samples were read"))
    )
    assert len(matrices(tmp_path, idle(4, {}, 1000.0))) == 1


def test_each_class_has_one_line_in_each_state(tmp_path: Path) -> None:
    """Four ranks on two hosts: 100 ns + 0.1 ns/B within a host, 3000 + 0.3 between, twice that in the other state."""
    made = []
    for (a, b), size in itertools.product(itertools.permutations(range(4), 2), (8, 1024, 8192, 65536)):
        time_ns = 100 + 0.1 * size if a // 2 == b // 2 else 3000 + 0.3 * size
        point = Point("mpi", "pingpong", 4, size, options(source=a, target=b))
        slow = Made(point, 2 * time_ns, divisor=2, measurements=7, floor_ns=184.0)
        made.append(Made(point, time_ns, divisor=2, measurements=9, then=slow))
    of = explained(tmp_path, made, hosts=("a", "a", "b", "b"))
    assert [(line.pattern, line.pair_class, line.state) for line in of.lines] == [
        ("pingpong", "between hosts", "near"),
        ("pingpong", "between hosts", "far"),
        ("pingpong", "one host", "near"),
        ("pingpong", "one host", "far"),
    ]
    assert [line.t0_ns and line.t0_ns.value for line in of.lines] == pytest.approx([3000, 6000, 100, 200], rel=0.02)


def test_in_rounds_each_pair_has_its_own_time(tmp_path: Path) -> None:
    made = []
    for number in (1, 2, 3):
        by_rank = [0.0] * 4
        for a, b in partners(4, number):
            by_rank[a] = by_rank[b] = 100.0 * (a + 1) + 10 * b
        point = Point("mpi", "rounds", 4, 8, options(round=number))
        made.append(Made(point, max(by_rank), divisor=2, timed="slowest", by_rank=by_rank))
    (matrix,) = matrices(tmp_path, made)
    assert matrix.load == "loaded"
    for a, b in itertools.combinations(range(4), 2):
        time = matrix.time(b, a)
        assert time is not None
        assert time.value == pytest.approx(100.0 * (a + 1) + 10 * b, abs=1)


def test_rounds_of_a_large_model_have_no_times_of_pairs(tmp_path: Path) -> None:
    """One row stands for all of its ranks."""
    points = [Point("sim@large", "rounds", 5000, 8, options(round=number)) for number in (1, 2)]
    assert (
        matrices(tmp_path, [Made(point, 100.0, divisor=2, timed="slowest", by_rank=[100.0]) for point in points]) == []
    )


def test_explain_finds_the_slow_pair(tmp_path: Path) -> None:
    store_run(tmp_path / "r.db", "allpairs", idle(4, {(1, 3): 1300.0}, 1000.0))
    with open_results(tmp_path / "r.db") as results:
        (slow,) = found("slow ranks and pairs", read_run(results.run()))
    assert (slow.code, slow.facts["slow_pair"], slow.facts["load"]) == ("slow rank or pair", [1, 3], "idle")
    assert slow.fix is not None
    assert slow.fix.argv == ("hockney", "show", "1", "--tables")
    assert slow.facts["time_ns"].value == pytest.approx(1300, rel=0.01)
    assert slow.effect == pytest.approx(0.3, abs=0.01)


def test_a_slow_pair_between_hosts_comes_before_a_slower_one_within_a_host(tmp_path: Path) -> None:
    times = {(a, a + 1): 200.0 for a in (2, 4, 6)} | {(0, 1): 800.0, (2, 4): 1300.0}
    store_run(tmp_path / "r.db", "allpairs", idle(8, times, 1000.0), hosts=tuple("aabbccdd"))
    with open_results(tmp_path / "r.db") as results:
        findings = found("slow ranks and pairs", read_run(results.run()))
    assert [(each.facts["slow_pair"], each.facts["others"]) for each in findings] == [([2, 4], ["a"])]


def test_one_pair_is_no_matrix(tmp_path: Path) -> None:
    assert matrices(tmp_path, idle(2, {}, 50.0)) == []


def test_between_hosts_times_make_the_classes(tmp_path: Path) -> None:
    hosts = ("a", "a", "b", "b", "c", "c")
    far = {(a, b): 3000.0 for a in (0, 1, 2, 3) for b in (4, 5)}
    near = {(a, b): 1000.0 for a in (0, 1) for b in (2, 3)}
    (matrix,) = matrices(tmp_path, idle(6, {**far, **near}, 200.0), hosts=hosts)
    classes = {each.name: (len(each.pairs), round(each.median_ns, -2)) for each in matrix.classes}
    assert classes == {
        "one host": (3, 200.0),
        "between hosts a, b": (4, 1000.0),
        "between hosts c and others": (8, 3000.0),
    }
    assert matrix.outliers == ()


def test_groups_of_pairs_between_the_same_hosts_have_numbers(tmp_path: Path) -> None:
    """Two rails: ranks 0, 1, 4 and 5 use the one, the others the other."""
    hosts, ranks = tuple("aaaabbbb"), range(8)
    near = {pair: 200.0 for pair in itertools.combinations(ranks, 2) if hosts[pair[0]] == hosts[pair[1]]}
    across = {(a, b): 3000.0 for a, b in itertools.product(ranks[:4], ranks[4:]) if a // 2 % 2 != b // 2 % 2}
    (matrix,) = matrices(tmp_path, idle(8, {**near, **across}, 1000.0), hosts=hosts)
    names = [pair_class.name for pair_class in matrix.classes]
    assert names == ["one host", "between hosts, group 1", "between hosts, group 2"]


def test_a_slow_host_and_a_slow_pair_are_named_by_their_hosts(tmp_path: Path) -> None:
    hosts = tuple("abcdef")
    slow = dict.fromkeys([(min(4, a), max(4, a)) for a in (0, 1, 2, 3, 5)], 1300.0) | {(0, 1): 1200.0}
    of = explained(tmp_path, idle(6, slow, 1000.0), hosts=hosts)
    (slow_host,) = [each for each in of.findings if each.code == "slow rank or pair"]
    assert title_of(slow_host) == "e is slow"
    assert (slow_host.facts["slow_host"], slow_host.facts["pairs"], slow_host.facts["others"]) == ("e", 5, ["a-b"])
    assert "slow hosts" not in [gap.what for gap in of.not_checked]


@pytest.mark.parametrize("hosts", [("a", "b", "c"), ("a", "b", "c", "d"), tuple("aabbccdd")], ids="".join)
def test_a_slow_host_among_three_or_four_is_named(hosts: tuple[str, ...], tmp_path: Path) -> None:
    names = list(dict.fromkeys(hosts))
    for slow in names:
        times = {
            (a, b): 100.0 if hosts[a] == hosts[b] else 4000.0 if slow in (hosts[a], hosts[b]) else 1000.0
            for a, b in itertools.combinations(range(len(hosts)), 2)
        }
        of = explained(tmp_path / slow, idle(len(hosts), times, 1000.0), hosts=hosts)
        (finding,) = (each for each in of.findings if each.code != "far above the floor")
        assert (finding.code, finding.facts["host"], finding.facts["others"]) == ("slow host", slow, len(names) - 1)
        assert finding.facts["slower_ratio"] == pytest.approx(4, rel=0.01)
        assert evidence_of(finding).endswith(f", with {len(names) - 1} of {len(names) - 1} other hosts (idle).")
        assert "slow hosts" not in [gap.what for gap in of.not_checked]


@pytest.mark.parametrize(("low_ns", "named"), [(1000.0, []), (1090.0, []), (1110.0, [(6, 7)])])
def test_a_group_is_slow_if_its_interval_lies_a_tenth_above_its_class(low_ns: float, named: list[Any]) -> None:
    pairs = list(itertools.combinations(range(8), 2))
    fast, slow = Interval(1000.0, 990.0, 1010.0, 9, 0.95), Interval(1400.0, low_ns, 1500.0, 9, 0.95)
    times = {pair: slow if pair[1] > 5 else fast for pair in pairs}
    _, outliers, _ = classify_pairs(times, dict.fromkeys(pairs, Share(PAIR_CLASSES[-1], is_certain=True)))
    assert [outlier.ranks for outlier in outliers] == named


def slow_of(times: dict[tuple[int, int], Interval]) -> list[tuple[int, ...]]:
    """The ranks of the outliers among pairs of one class."""
    _, outliers, _ = classify_pairs(times, dict.fromkeys(times, Share("one core", is_certain=True)))
    return [outlier.ranks for outlier in outliers]


def known(value_ns: float, low_ns: float | None = None) -> Interval:
    """1 % around the value where no lower end is given."""
    return Interval(value_ns, 0.99 * value_ns if low_ns is None else low_ns, 1.01 * value_ns, 9, 0.95)


@pytest.mark.parametrize(
    ("slow_ns", "low_ns", "named", "inconclusive"),
    [
        (1120.0, 1101.0, [(0, 1)], []),
        (1120.0, 1099.0, [], [(0, 1)]),
        (1099.0, 1098.0, [], []),
    ],
    ids=["surely", "not surely", "less"],
)
def test_a_pair_is_slow_from_a_tenth_above_its_class(
    slow_ns: float, low_ns: float, named: list[Any], inconclusive: list[Any]
) -> None:
    pairs = list(itertools.combinations(range(4), 2))
    times = {pair: known(slow_ns, low_ns) if pair == (0, 1) else known(1000.0) for pair in pairs}
    _, outliers, unsure = classify_pairs(times, dict.fromkeys(pairs, Share("one core", is_certain=True)))
    assert ([one.ranks for one in outliers], [one.ranks for one in unsure]) == (named, inconclusive)


@pytest.mark.parametrize(("slow_ns", "named"), [(1295.0, []), (1298.0, [(0, 1)])])
def test_a_slow_pair_is_four_spreads_off_its_class(slow_ns: float, named: list[Any]) -> None:
    """The median of the deviations is 50 ns, so a spread is 74.13 ns."""
    around = (slow_ns, 950.0, 950.0, 1000.0, 1050.0, 1050.0, 1050.0, 950.0, 1000.0, 1000.0)
    times = dict(zip(itertools.combinations(range(5), 2), map(known, around), strict=True))
    assert slow_of(times) == named


@pytest.mark.parametrize(("pairs", "named"), [(3, []), (4, [(0, 1)])])
def test_among_three_pairs_none_is_odd(pairs: int, named: list[Any]) -> None:
    times = {(2 * at, 2 * at + 1): known(1000.0 if at else 1300.0) for at in range(pairs)}
    assert slow_of(times) == named


@pytest.mark.parametrize(
    ("ranks", "slow", "named"),
    [
        (7, (1, 2, 3, 4), [(0,)]),
        (7, (1, 2, 3), [(0, 1), (0, 2), (0, 3)]),
        (5, (1, 2, 3), [(0,)]),
        (4, (1, 2), [(0, 1), (0, 2)]),
    ],
)
def test_a_rank_is_slow_with_more_than_half_of_its_pairs_and_three(
    ranks: int, slow: tuple[int, ...], named: list[Any]
) -> None:
    pairs = list(itertools.combinations(range(ranks), 2))
    times = {pair: known(1200.0 if pair[0] == 0 and pair[1] in slow else 1000.0) for pair in pairs}
    assert slow_of(times) == named


@pytest.mark.parametrize("hosts", [4, 6, 8])
def test_half_of_the_hosts_slow_is_not_checked(hosts: int, tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(1, hosts + 1)]
    slow = {(a, b): 4000.0 for a, b in itertools.combinations(range(hosts), 2) if a >= hosts // 2 or b >= hosts // 2}
    of = explained(tmp_path, idle(hosts, slow, 1000.0), hosts=tuple(names))
    (gap,) = (gap for gap in of.not_checked if gap.what == "slow hosts")
    assert (gap.reason, gap.why, gap.facts["fast"]) == (Absence.INSUFFICIENT_DATA, "two times", names[: hosts // 2])


@pytest.mark.parametrize("hosts", [4, 8])
def test_hosts_on_two_switches_are_not_slow(hosts: int, tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(1, hosts + 1)]
    across = {(a, b): 4000.0 for a, b in itertools.combinations(range(hosts), 2) if a < hosts // 2 <= b}
    of = explained(tmp_path, idle(hosts, across, 1000.0), hosts=tuple(names))
    assert {each.code for each in of.findings} == {"far above the floor"}
    assert "slow hosts" not in [gap.what for gap in of.not_checked]


@pytest.mark.parametrize(
    ("hosts", "reason", "argv"),
    [
        ((), None, ()),
        (("n1", "n2"), Absence.NOT_APPLICABLE, ()),
        (("n1", "n2:4", "n3"), Absence.NOT_MEASURED, ("hockney", "health", "--hosts", "n[1-3]")),
    ],
    ids=["one machine", "two hosts", "three hosts"],
)
def test_a_run_on_hosts_without_all_pairs_does_not_check_for_slow_hosts(
    hosts: tuple[str, ...], reason: Absence | None, argv: tuple[str, ...], tmp_path: Path
) -> None:
    made = [Made(Point("tcp", "pingpong", 2, 8), 1000.0, divisor=2)]
    of = explained(tmp_path, made, "quick", plan={"hosts": [*hosts]})
    gaps = [gap for gap in of.not_checked if gap.what == "slow hosts"]
    assert [gap.reason for gap in gaps] == ([reason] if reason else [])
    assert [gap.how.argv for gap in gaps if gap.how] == ([argv] if argv else [])


@pytest.mark.parametrize(
    ("transports", "plan", "words"),
    [
        (("tcp", "tcp/2"), {"hosts": ["n1", "n2:2"]}, ("-t", "tcp", "--hosts", "n1,n2:2")),
        (("shm",), {"cpus": [4, 0, 2]}, ("--cpus", "4,0,2")),
    ],
)
def test_the_suite_that_is_missing_is_measured_in_the_same_placement(
    transports: tuple[str, ...], plan: dict[str, Any], words: tuple[str, ...], tmp_path: Path
) -> None:
    made = [Made(Point(transport, "barrier", 3, 0), 1000.0) for transport in transports]
    hows = [gap.how.argv for gap in explained(tmp_path, made, "collectives", plan=plan).not_checked if gap.how]
    assert ("hockney", "run", "quick", *words) in hows


def test_no_suite_is_missing_in_a_run_of_that_suite(tmp_path: Path) -> None:
    gaps = explained(tmp_path, [Made(Point("shm", "barrier", 3, 0), 1000.0)], "quick").not_checked
    suites = {gap.how.argv[2] for gap in gaps if gap.how and gap.how.argv[:2] == ("hockney", "run")}
    assert suites
    assert "quick" not in suites


@pytest.mark.parametrize(
    ("plan", "transport", "words"),
    [
        ({"hosts": []}, "shm", ("-t", "shm")),
        ({"hosts": [], "cpus": [2, 0], "map_by": "core"}, "shm", ("-t", "shm", "--cpus", "2,0")),
        ({"hosts": ["n1:2", "n2:2", "n3:2"]}, "tcp/2", ("-t", "tcp", "--hosts", "n[1-3]:2", "--per-node", "2")),
        (
            {"hosts": ["a", "b"], "launcher": "ssh", "interface": "ib0", "map_by": "node"},
            "",
            ("--hosts", "a,b", "--launcher", "ssh", "--interface", "ib0", "--map", "node"),
        ),
    ],
)
def test_the_options_that_repeat_the_places_of_a_run(
    plan: dict[str, Any], transport: str, words: tuple[str, ...]
) -> None:
    assert same_placement(plan, transport) == words


@pytest.mark.parametrize(
    ("pairs", "name"),
    [
        ([(0, 1), (0, 2), (1, 2)], "a, b, c"),
        ([(0, 1), (2, 3), (4, 5)], "a, b / c, d / e, f"),
        ([(0, 3), (1, 3), (2, 3)], "d and others"),
        ([(0, 2), (0, 3), (1, 2), (1, 3), (4, 5), (2, 4)], "a-c, a-d, b-c and 3 more"),
    ],
)
def test_a_group_of_pairs_is_named_by_its_hosts(pairs: list[tuple[int, int]], name: str) -> None:
    assert group_name(pairs, "abcdef") == name


def test_as_json_it_is_a_square(tmp_path: Path) -> None:
    (matrix,) = pairs_as_json(matrices(tmp_path, idle(3, {}, 1000.0)))["matrices"]
    json.dumps(matrix)
    assert [len(row) for row in matrix["time_ns"]] == [3, 3, 3]
    assert matrix["time_ns"][1][1] is None
    assert matrix["low_ns"][0][1] <= matrix["time_ns"][0][1] <= matrix["high_ns"][0][1]
