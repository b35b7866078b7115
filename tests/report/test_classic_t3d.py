"""The tables of the T3D newsletter, from runs whose times are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.report.cells import MPI, about, figure, measured, point, reason, row, tables
from tests.report.runs import FACTS, Made, oversubscribed

from hockney.report.classic.values import Measured
from hockney.report.classic.view import text_of


def test_statistics_are_over_all_pairs(tmp_path: Path) -> None:
    pairs = {(0, 1): 200, (1, 0): 400, (0, 2): 300}
    made = [
        Made(point("shm", "putpong", 3, 8, **places(*pair)), time, divisor=2, timed=f"rank {pair[0]}")
        for pair, time in pairs.items()
    ]
    made.append(Made(point(MPI, "pingpong", 3, 8), 770, divisor=2))
    table = tables(tmp_path, "t3d", made)["ping_pong"]
    assert [column.title for column in table.columns[2:]] == ["shm, putpong, 3 ranks", f"{MPI}, pingpong, 3 ranks"]
    assert figure(row(table, "max latency")[2]) == about(0.4)
    assert figure(row(table, "min latency")[2]) == about(0.2)
    assert figure(row(table, "average latency")[2]) == about(0.3)
    assert figure(row(table, "average rate")[2]) == about(8 / 0.3)
    newsletter = row(table, "PVM or MPI (previous newsletter)")
    assert reason(newsletter[2]) == "not asked for in this run"
    assert isinstance(newsletter[3], Measured)
    assert newsletter[3].ratio == about(0.01)


def places(source: int, target: int) -> dict[str, int]:
    return {name: rank for name, rank, usual in (("source", source, 0), ("target", target, 1)) if rank != usual}


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


def every_pair(ranks: int, near_ns: float, far_ns: float) -> list[Made]:
    """Ping-pongs within two caches of two CPUs, and between them; a pair that is 2 ns slower on the way back."""
    return [
        Made(
            point("shm", "putpong", ranks, 8, **places(source, target)),
            (near_ns if source // 2 == target // 2 else far_ns) + (1 if source < target else -1),
            divisor=2,
            timed=f"rank {source}",
        )
        for source in range(ranks)
        for target in range(ranks)
        if source != target
    ]


def test_distance_is_fitted_over_the_borders_between_cpus(tmp_path: Path) -> None:
    table = tables(tmp_path, "t3d", every_pair(4, 50, 150), facts=TWO_CACHES, pinned=True)["distance"]
    assert [column.title for column in table.columns] == ["what", "published", "shm, putpong, 4 ranks"]
    base, hop = row(table, "base")[2], row(table, "each hop")[2]
    assert figure(base) == pytest.approx(-50, abs=0.1)  # one border in a cache, two between caches
    assert figure(hop) == pytest.approx(100, abs=0.1)
    assert isinstance(hop, Measured)
    assert hop.low is not None
    assert hop.high is not None
    # 12 pairs, 1 ns off each: t(10) = 2.228; the hops are 1 four times and 2 eight times.
    assert (hop.high - hop.low) / 2 == pytest.approx(2.228 * math.sqrt(12 / 10 / (8 / 3)), rel=0.01)
    assert hop.published == about(1 / 0.15)
    assert "no directions" in reason(row(table, "each change of direction")[2])
    assert figure(row(table, "scatter about it (rms)")[2]) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("made", "given", "why"),
    [
        (every_pair(2, 50, 50), {"facts": TWO_CACHES, "pinned": True}, "needs 3 pairs"),
        (every_pair(4, 50, 50), {"facts": TWO_CACHES}, None),
        (every_pair(4, 50, 50), {"pinned": True}, "topology of this machine's CPUs is unknown"),
        (every_pair(4, 50, 50), {"facts": TWO_CACHES, "oversubscribed": True}, "more ranks than CPUs"),
        ([Made(point("shm", "put", 2, 8), 50)], {}, "not asked for in this run"),
    ],
)
def test_where_no_distance_is_known_a_sentence_says_why(
    tmp_path: Path, made: Sequence[Made], given: dict[str, Any], why: str | None
) -> None:
    table = tables(tmp_path, "t3d", made, **given)["distance"]
    assert [column.title for column in table.columns] == ["what", "published", "this machine"]
    assert [cells[0] for cells in table.rows] == ["base", "each hop", "each change of direction"]
    for cells in table.rows:
        assert (why or "do not separate hops") in reason(cells[2])


def test_n_half_is_the_first_size_with_half_of_the_best_rate(tmp_path: Path) -> None:
    times = {8: 100, 64: 120, 256: 190, 4096: 1600, 65536: 32768}
    made = [Made(point("shm", "put", 2, size), time) for size, time in times.items()]
    table = tables(tmp_path, "t3d", [*made, oversubscribed("shm", "put", 16, 8)])["single_pairs"]
    best = measured(row(table, "Rmax (Rinf)")[2])
    assert figure(best) == about(2560)
    assert best.at_bytes == 4096
    half = row(table, "N 1/2")
    assert (half[1], figure(half[2])) == ("22", 32)
    assert measured(half[2]).published == 22
    there = row(table, "N 1/2: rate there")
    assert (text_of(there[1]), figure(there[2])) == ("63.008408", about(256e3 / 190))
    assert "--oversubscribe" in reason(row(table, "average latency")[3])


def test_load_table_has_the_nearest_load_of_this_machine(tmp_path: Path) -> None:
    sizes = {16 << 10: 2.0, 1 << 20: 10.0, 16 << 20: 90.0}
    made = [
        Made(point("null", "memload", 1, size, **access), time / faster, bytes_per_rep=8)
        for size, time in sizes.items()
        for access, faster in (({}, 1), ({"access": "stream"}, 10), ({"access": "read-ahead"}, 5))
    ]
    made += [Made(point("shm", "get", 2, size), time) for size, time in ((8, 40), (64, 60), (4096, 500))]
    report = tables(tmp_path, "t3d", made)
    cache = row(report["load"], "Cache")
    assert cache[6] == "chase"
    assert [figure(cell) for cell in cache[9:]] == [about(2), about(4), about(1 / 4), about(4000)]  # 2 GHz
    out = row(report["load"], "DRAM", "Cache", "out of page")
    assert [figure(cell) for cell in out[9:]] == [about(90), about(180), about(8 / 180), about(64e3 / 90)]
    inside = row(report["load"], "DRAM", "Cache", "in page")
    assert figure(inside[9]) == about(72)  # a line of eight words of 9 ns
    remote = row(report["load"], "Remote DRAM", "Register", "in page")
    assert figure(remote[9]) == about(40)
    assert isinstance(remote[9], Measured)
    assert remote[9].published == about(86 / 0.15)
    assert figure(row(report["load"], "Remote DRAM", "Prefetch", "in page")[12]) == about(8192)
    assert reason(row(report["load"], "Remote DRAM", "Cache", "out of page")[9]) == "a get does not choose its page"
    assert [cells[2] for cells in report["levels"].rows[:3]] == ["L1", "L3", "memory"]
    assert [figure(cell) for cell in report["levels"].rows[0][4:]] == [about(2), about(4), about(1 / 4), about(4000)]


def test_memory_needs_a_working_set_beyond_the_caches(tmp_path: Path) -> None:
    made = [Made(point("null", "memload", 1, 1 << 20), 10, bytes_per_rep=8)]
    table = tables(tmp_path, "t3d", made)["load"]
    assert reason(row(table, "DRAM", "Cache", "out of page")[9]) == "no working set beyond all caches"
    assert reason(row(table, "Cache")[9]) == "no working set in L1"
    assert len(table.rows) == 12
