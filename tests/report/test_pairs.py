"""Values between all pairs, as the page, Markdown and the screen show them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from tests.analysis.health.made import LATENCY_NS, RATE, read_health, store_health
from tests.builders import make_matrix
from tests.report.cells import about

from hockney.analysis.pair_classes import Inconclusive, Outlier, PairClass
from hockney.render.drawing import drawn
from hockney.report.charts import PairValues, Picture
from hockney.report.documents.pairs import host_values, pair_block, rank_values
from hockney.stats.fit import Estimate
from hockney.stats.interval import Interval


def inconclusive(a: int, b: int) -> Inconclusive:
    return Inconclusive((a, b), Interval(1300.0, None, None, 2, 0.95), "one host", 1000.0)


def test_a_pair_has_its_time_from_and_to_and_that_of_the_other_way_where_it_has_none() -> None:
    shown = rank_values(make_matrix(3, {(0, 1): 10.0, (1, 0): 11.0, (1, 2): 12.0}), str)
    np.testing.assert_equal(shown.values, [[np.nan, 10, np.nan], [11, np.nan, 12], [np.nan, 12, np.nan]])
    block = pair_block(shown)
    assert (block.names, block.unit) == (["0", "1", "2"], "ns")
    assert block.values[:2] == [[None, 10.0, None], [11.0, None, 12.0]]


def test_the_words_next_to_a_matrix() -> None:
    pairs = list(itertools.combinations(range(4), 2))
    known = make_matrix(
        4,
        dict.fromkeys(pairs, 1000.0),
        transport="tcp",
        options=(("window", "4"),),
        load="loaded",
        hosts=("a", "a", "b", "b"),
        cpus=(0, 1, 0, 1),
        missing=3,
        classes=(PairClass("one host", tuple(pairs), 1000.0, 900.0, 1100.0),),
        outliers=(Outlier((1, 3), Estimate(1300.0, 1200.0, 1400.0), "one host", 1000.0, 6),),
        inconclusive=tuple(inconclusive(*pair) for pair in pairs),
    )
    shown = rank_values(known, {"tcp": "TCP"}.__getitem__)
    assert shown.name == "TCP, 8 B, 4 ranks, disjoint pairs at once, window=4"
    assert (shown.ends, shown.unit, shown.missing, shown.cpus) == ("ranks", "ns", 3, (0, 1, 0, 1))
    assert shown.classes == ("one host: 1.00 us (6 pairs, 900 ns to 1.10 us)",)
    assert shown.framed == ((1, 3),)
    assert shown.outliers == ("ranks 1 (a) and 3 (b): 1.30 us, 1.30x their class (one host, 1.00 us)",)
    assert rank_values(make_matrix(2, {(0, 1): 5.0}), str).name == "shm, 8 B, 2 ranks, one pair at a time"


@pytest.mark.parametrize("count", [1, 5, 6])
def test_the_first_five_inconclusive_pairs_are_named(count: int) -> None:
    pairs = list(itertools.combinations(range(4), 2))[:count]
    shown = rank_values(make_matrix(4, {}, inconclusive=tuple(inconclusive(*pair) for pair in pairs)), str)
    names = [f"ranks {a} and {b} may be slow" for a, b in pairs[:5]]
    assert [text.partition(" (")[0] for text in shown.inconclusive] == names


@pytest.mark.parametrize(
    ("hosts", "names"),
    [
        (("a", "b", "c"), ["a", "b", "c"]),
        (("a", "a", "b"), ["0 (a)", "1 (a)", "2 (b)"]),
        (("a", "a", "a"), ["0", "1", "2"]),
    ],
)
def test_rows_are_hosts_where_no_two_ranks_share_one(hosts: tuple[str, ...], names: list[str]) -> None:
    shown = rank_values(make_matrix(3, {}, hosts=hosts), str)
    assert shown.names == names
    assert shown.hosts == (() if len(set(hosts)) == 1 else hosts)


def test_of_hosts_the_bandwidth_comes_first_then_the_latency(tmp_path: Path) -> None:
    store_health(tmp_path / "r.db", 3, rates={(0, 1): 0.5}, latencies={(1, 2): 3.0})
    rates, latencies = host_values(read_health(tmp_path / "r.db"))
    assert (rates.unit, latencies.unit) == ("bytes/s", "ns")
    assert rates.classes == ("usually 100 MB/s",)
    assert latencies.classes == ("usually 20.0 us",)
    assert [rates.values[0, 1], rates.values[1, 0]] == [about(RATE / 2), about(RATE)]
    assert [latencies.values[1, 2], latencies.values[0, 2]] == [about(3 * LATENCY_NS), about(LATENCY_NS)]


@pytest.mark.parametrize(
    ("unit", "slow", "ticks"),
    [("ns", 1000.0, ["10 ns", "100 ns", "1 us"]), ("bytes/s", 10.0, ["10 B/s", "100 B/s", "1 kB/s"])],
)
def test_in_a_picture_dark_is_slow_and_a_slow_pair_is_framed_both_ways(
    unit: Literal["ns", "bytes/s"], slow: float, ticks: list[str]
) -> None:
    values = np.array([[np.nan, 10.0], [1000.0, np.nan]])
    matrix = PairValues("m", "ranks", unit, values, (), (), 0, framed=((0, 1), (0,)))
    marks = drawn(Picture("m", matrix), {}).marks
    cells = [mark for mark in marks if mark.rgb]
    brightness = {value: sum(cell.rgb or ()) for value, cell in zip((10.0, 1000.0), cells, strict=False)}
    assert min(brightness, key=brightness.__getitem__) == slow
    assert [mark.text for mark in marks if mark.text[:1].isdigit() and " " in mark.text] == ticks
    frames = [min(mark.points) for mark in marks if mark.color == "strong"]
    assert sorted(frames) == sorted(min(cell.points) for cell in cells[:2])
