"""The rows of the T3D newsletter, from runs whose times are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report.cells import MPI, about, cell, groups, number, point, report_of, row, shown
from tests.report.runs import FACTS, Made, store_run
from tests.report.test_classic import FAR_NS, RECORD, on_model

from hockney.suites import load_suite


def ends(source: int, target: int) -> dict[str, int]:
    return {name: rank for name, rank, usual in (("source", source, 0), ("target", target, 1)) if rank != usual}


def test_statistics_are_over_all_pairs(tmp_path: Path) -> None:
    pairs = {(0, 1): 200, (1, 0): 400, (0, 2): 300}
    made = [Made(point("shm", "putpong", 3, 8, **ends(*pair)), time, divisor=2) for pair, time in pairs.items()]
    made.append(Made(point(MPI, "pingpong", 3, 8), 770, divisor=2))
    found = groups(tmp_path, "t3d", made)
    group = found["ping_pong"]
    assert group.columns == ("shm putpong, 3 ranks", f"{MPI} pingpong, 3 ranks")
    assert number(group, "largest time of a pair") == about(0.4)
    assert number(group, "least time of a pair") == about(0.2)
    assert number(group, "mean time of the pairs") == about(0.3)
    assert number(group, "mean rate of the pairs") == about(8 / 0.3)
    assert cell(found["PVM or MPI"], "mean time of the pairs").ratio == about(0.01)


def test_if_all_send_together_each_rank_and_its_target_are_a_pair(tmp_path: Path) -> None:
    """Largest and smallest are of one rank to one target, and not of a mean over the ranks."""
    made = [
        Made(point("shm", "putring", 3, 8, **given), 0, timed="mean", by_rank=times)
        for given, times in (({}, (100, 200, 300)), ({"distance": 2}, (400, 500, 900)))
    ]
    group = groups(tmp_path, "t3d", made)["multiple_pairs"]
    assert number(group, "least time of a pair") == about(0.1)
    assert number(group, "largest time of a pair") == about(0.9)
    assert number(group, "mean time of the pairs") == about(0.4)
    assert cell(group, "largest time of a pair").value.pairs == (6, 6)


def pairs_of_ranks() -> list[Made]:
    return [
        Made(point("shm", "putpong", 3, 8), 200, divisor=2),
        Made(point("shm", "putpong", 3, 8, target=2), 220, divisor=2),
        Made(point("shm", "putpong", 3, 8, source=1, target=2), 900, divisor=2, floor_ns=FAR_NS),
        Made(point("shm", "putpong", 3, 8, source=2, target=1), failed="rank 1 was killed by SIGKILL"),
    ]


def test_a_statistic_over_some_of_the_pairs_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cell(groups(tmp_path, "t3d", pairs_of_ranks())["ping_pong"], "mean time of the pairs").value.pairs == (2, 4)
    assert "0.220 of 2 of 4 pairs" in shown(tmp_path, capsys)
    store_run(tmp_path / "r.db", "t3d", pairs_of_ranks()[:2])
    assert "of 2 pairs" not in shown(tmp_path, capsys)


def puts(times: dict[int, float], targets: Sequence[int] = (1,), **more: Any) -> list[Made]:
    return [
        Made(point("shm", "put", len(targets) + 1, size, **ends(0, target)), time + 10 * (target - 1), **more)
        for size, time in times.items()
        for target in targets
    ]


def test_n_half_lies_between_two_sizes(tmp_path: Path) -> None:
    """On a line of 100 ns and 0.25 ns/B: half of the best measured rate, 2,560 MB/s, is reached at 188.2 B."""
    made = puts({8: 102, 64: 116, 256: 164, 4096: 1600, 65536: 32768})
    group = groups(tmp_path, "t3d", made)["single_pairs"]
    best = cell(group, "Rmax").value
    assert (best.number, best.at_bytes) == (about(2560), 4096)
    half = cell(group, "N 1/2")
    assert (half.value.number, half.published) == (about(1.28 * 100 / (1 - 1.28 * 0.25) / 8), 22)
    assert (number(group, "rate at N 1/2"), row(group, "rate at N 1/2").figure.printed) == (about(1280), "63.008408")


@pytest.mark.parametrize(("pattern", "name", "words"), [("putring", "multiple_pairs", 10), ("put", "single_pairs", 22)])
def test_n_half_of_the_t3d_is_found_with_the_sizes_of_the_suite(
    pattern: str, name: str, words: int, tmp_path: Path
) -> None:
    series = [member for member in load_suite("t3d").series if member.pattern == pattern and not member.options]
    sizes = sorted({size for member in series for size in member.bytes if isinstance(size, int)})
    made = [Made(point("shm", pattern, 2, size), 0.1 * 8 * words + 0.1 * size) for size in sizes]
    assert number(groups(tmp_path, "t3d", made)[name], "N 1/2") == pytest.approx(words, rel=0.05)


def test_rmax_is_over_all_pairs_of_a_rank_and_the_best_of_all_states(tmp_path: Path) -> None:
    """To the second target a put takes 10 ns longer; all pairs were faster for a time, far from each other."""
    near, far = {8: 100.0, 4096: 990.0}, {8: 100.0, 4096: 490.0}
    made = [
        replace(one, then=replace(other, floor_ns=FAR_NS, measurements=7))
        for one, other in zip(puts(near, (1, 2)), puts(far, (1, 2)), strict=True)
    ]
    best = cell(groups(tmp_path, "t3d", made)["single_pairs"], "Rmax").value
    assert (best.number, best.state, best.pairs) == (about(4096 / 0.495), "far", (2, 2))


def test_puts_with_completion_have_a_column_of_their_own(tmp_path: Path) -> None:
    made = [Made(point("shm", "put", 2, 8), 3), Made(point("shm", "put", 2, 8, quiet="seen"), 60)]
    group = groups(tmp_path, "t3d", made)["single_pairs"]
    assert group.columns == ("shm put, 2 ranks", "shm put, with completion, 2 ranks")
    assert [number(group, "mean time of the pairs", column=column) for column in group.columns] == [
        about(0.003), about(0.06),
    ]  # fmt: skip


TWO_CACHES = {
    **FACTS,
    "topology": {
        "source": "sysfs",
        "cores": ["0", "1", "2", "3"],
        "packages": ["0-3"],
        "nodes": [{"cpus": "0-3", "memory_bytes": None}],
        "slower": "",
        "caches": [
            {"level": 3, "kind": "unified", "size_bytes": 4 << 20, "line_bytes": 64, "shared_by": ["0-1", "2-3"]}
        ],
    },
}
_CP = 0.15  # of the T3D's clock in a ns


def every_pair(ranks: int, near_ns: float, far_ns: float) -> list[Made]:
    """Ping-pongs within two caches of two CPUs, and between them; a pair that is 2 ns slower on the way back."""
    return [
        Made(
            point("shm", "putpong", ranks, 8, **ends(source, target)),
            (near_ns if source // 2 == target // 2 else far_ns) + (1 if source < target else -1),
            divisor=2,
        )
        for source in range(ranks)
        for target in range(ranks)
        if source != target
    ]


def test_distance_is_fitted_over_the_borders_between_cpus(tmp_path: Path) -> None:
    found = groups(tmp_path, "t3d", every_pair(4, 50, 150), facts=TWO_CACHES, pinned=True)
    group = found["Remote load by distance"]
    assert number(group, "base") == pytest.approx(-50 * _CP, abs=0.1 * _CP)  # one border in a cache, two between
    hop = cell(group, "each hop").value
    assert hop.number == pytest.approx(100 * _CP, abs=0.1 * _CP)
    assert hop.interval is not None
    # 12 pairs, 1 ns off each: t(10) = 2.228; the hops are 1 four times and 2 eight times.
    half_ns = (hop.interval.high - hop.interval.low) / 2 / _CP
    assert half_ns == pytest.approx(2.228 * math.sqrt(12 / 10 / (8 / 3)), rel=0.01)
    assert "no directions" in str(row(group, "each change of direction").reason)


@pytest.mark.parametrize(
    ("made", "given", "why"),
    [
        (every_pair(2, 50, 50), {"facts": TWO_CACHES, "pinned": True}, "needs 3 pairs"),
        (every_pair(4, 50, 50), {"facts": TWO_CACHES}, "do not separate hops"),
        (every_pair(4, 50, 50), {"pinned": True}, "topology of this machine's CPUs is unknown"),
        (every_pair(4, 50, 50), {"facts": TWO_CACHES, "oversubscribed": True}, "more ranks than CPUs"),
        ([Made(point("shm", "put", 2, 8), 50)], {}, "not asked for in this run"),
    ],
)
def test_where_no_distance_is_known_a_sentence_says_why(
    tmp_path: Path, made: Sequence[Made], given: dict[str, Any], why: str
) -> None:
    for one in groups(tmp_path, "t3d", made, **given)["Remote load by distance"].rows:
        assert why in str(one.reason)


def test_load_table_has_the_nearest_load_of_this_machine(tmp_path: Path) -> None:
    sizes = {16 << 10: 2.0, 1 << 20: 10.0, 16 << 20: 90.0}
    made = [
        Made(point("null", "memload", 1, size, **access), time / faster, bytes_per_rep=8)
        for size, time in sizes.items()
        for access, faster in (({}, 1), ({"access": "stream"}, 10), ({"access": "read-ahead"}, 5))
    ]
    made += [Made(point("shm", "get", 2, size), time) for size, time in ((8, 40), (64, 60), (4096, 500))]
    report = report_of(tmp_path, "t3d", made)
    loads = next(group for group in report.groups if group.benchmark.title == "Load table")

    def both(*names: str) -> list[float | None]:
        found = cell(loads, *names)
        return [found.value.number, found.also.number if found.also else None]

    assert both("Cache") == [about(4000), about(2)]
    assert both("DRAM", "Cache", "out of page") == [about(64e3 / 90), about(90)]
    assert both("DRAM", "Cache", "in page")[1] == about(72)  # a line of eight words of 9 ns
    assert both("Remote DRAM", "Register", "in page") == [about(200), about(40)]
    assert number(loads, "Remote DRAM", "Prefetch", "in page") == about(8192)
    assert row(loads, "Remote DRAM", "Cache", "out of page").reason == "nothing here measures it"
    [detail] = report.details
    assert [value.number for value in detail.rows[0][1]] == [about(2), about(4), about(1 / 4), about(4000)]  # 2 GHz


def test_memory_needs_a_working_set_beyond_the_caches(tmp_path: Path) -> None:
    made = [Made(point("null", "memload", 1, 1 << 20), 10, bytes_per_rep=8)]
    loads = groups(tmp_path, "t3d", made)["Load table"]
    assert row(loads, "DRAM", "Cache", "out of page").reason == "no working set beyond all caches"
    assert row(loads, "Cache").reason == "no working set in L1"


def test_a_torus_has_hops_and_changes_of_direction(tmp_path: Path) -> None:
    """100 ns and 10 for each hop, 3 for each change of direction: two ranks on each node of a 4 x 2 torus."""
    torus = {"dimensions": [4, 2], "nodes": [rank // 2 for rank in range(16)]}
    made = []
    for source in range(16):
        for target in range(16):
            x, y = abs(source // 2 % 4 - target // 2 % 4), abs(source // 8 - target // 8)
            hops = min(x, 4 - x) + y
            time_ns = 100 + 10 * hops + 3 * (x > 0 and y > 0)
            if source != target:
                made.append(Made(point("sim@t3d", "putpong", 16, 8, **ends(source, target)), time_ns, measurements=1))
    report = on_model(tmp_path, "t3d", made, {"sim@t3d": {**RECORD, "machine": "t3d", "torus": torus}})
    [group] = [each for each in report.groups if each.benchmark.title == "Remote load by distance"]
    names = ("base", "each hop", "each change of direction")
    assert [number(group, name) for name in names] == [about(15), about(1.5), about(0.45)]
