"""Hosts that are slow by themselves, though none is slower than the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.analysis.health.made import RATE, known_host, read_health, store_health

from hockney.analysis.clusters import Pair
from hockney.analysis.finding import Finding
from hockney.analysis.health import Health
from hockney.errors import notice

LINE = round(8 * RATE)  # bits/s of an interface that carries the usual rate and no more


def hosts_at(*speeds: int | None, **more: int) -> list[dict[str, Any]]:
    named = {"name": "eth0", "mtu_bytes": 1500, "address": "10.0.0.1", **more}
    return [known_host(f"n{n}", interfaces=[{**named, "bits_per_s": speed}]) for n, speed in enumerate(speeds, start=1)]


def found(path: Path, hosts: int, **run: Any) -> list[Finding]:
    store_health(path / "r.db", hosts, **run)
    return [each for each in read_health(path / "r.db").findings if each.code != "differing hosts"]


@pytest.mark.parametrize(
    ("speed", "is_named"), [(1.9 * LINE, False), (2.1 * LINE, True), (10 * LINE, True), (None, False)]
)
def test_hosts_below_half_of_their_interface_are_named(tmp_path: Path, speed: float | None, is_named: bool) -> None:
    """All hosts are alike, so none is slow compared with the others."""
    listed = found(tmp_path, 4, known=hosts_at(*[None if speed is None else round(speed)] * 4))
    assert [(each.code, each.facts["names"]) for each in listed] == [("below interface", "n[1-4]")] * is_named
    for each in listed:
        assert each.facts["of_speed_share"] == pytest.approx(LINE / (speed or 1), rel=1e-3)


def test_beyond_10_gigabits_one_flow_need_not_fill_it(tmp_path: Path) -> None:
    known = hosts_at(*[400 * 10**9] * 4)
    assert not found(tmp_path, 4, known=known, rates={(a, b): 6.5 for a in range(4) for b in range(4)})
    (finding,) = found(tmp_path, 4, known=known, rates={(a, b): 6.0 for a in range(4) for b in range(4)})
    assert finding.facts["speed_bytes_per_s"] == 50e9


@pytest.mark.parametrize(("links", "is_named"), [(4, False), (1, True)])
def test_one_connection_need_not_fill_a_bond_of_several_links(tmp_path: Path, links: int, is_named: bool) -> None:
    known = hosts_at(*[4 * LINE] * 4, link_bits_per_s=4 * LINE // links)
    assert [each.code for each in found(tmp_path, 4, known=known)] == ["below interface"] * is_named


def test_one_kind_of_hosts_is_named(tmp_path: Path) -> None:
    """Two of six have a faster interface, and are no faster, neither with each other nor with the rest."""
    (finding,) = found(tmp_path, 6, known=hosts_at(*[LINE] * 4, *[10 * LINE] * 2))
    assert finding.facts["hosts"] == ["n5", "n6"]


def test_half_of_the_hosts_are_named_where_the_others_are_as_fast_as_their_interface(tmp_path: Path) -> None:
    slow = {(a, b): 0.3 for a in range(6) for b in range(6) if a > 2 or b > 2}
    assert [each.facts["hosts"] for each in found(tmp_path, 6, known=hosts_at(*[LINE] * 6), rates=slow)] == [
        ["n4", "n5", "n6"]
    ]


def test_a_host_that_is_slow_anyway_is_named_once(tmp_path: Path) -> None:
    rates: dict[Pair, float] = {pair: 0.3 for other in range(5) for pair in ((2, other), (other, 2))}
    assert [each.code for each in found(tmp_path, 5, known=hosts_at(*[LINE] * 5), rates=rates)] == ["slow host"]


def test_without_an_interval_nothing_is_named(tmp_path: Path) -> None:
    known = hosts_at(*[10 * LINE] * 3)
    assert not found(tmp_path, 3, known=known, measurements=3)
    assert found(tmp_path, 3, known=known, measurements=6)


# ---- limits of the user ----------------------------------------------------------------------------------------------


def of_limits(path: Path, *tables: dict[str, Any], hosts: int = 5, **run: Any) -> Health:
    whole = [{"pattern": "flows", "transports": ["tcp"], "hosts": ["*"], **table} for table in tables]
    store_health(path / "r.db", hosts, plan={"expected": whole}, **run)
    return read_health(path / "r.db")


@pytest.mark.parametrize(
    ("hosts", "limit", "missing"),
    [
        (["*"], 0.9, set()),
        (["*"], 1.1, {"n1", "n2", "n3", "n4", "n5"}),
        (["n[2-3]"], 1.1, {"n2", "n3"}),
        (["n5", "m*"], 1.1, {"n5"}),
    ],
)
def test_the_hosts_of_a_limit_are_judged_by_what_they_send_and_receive(
    tmp_path: Path, hosts: list[str], limit: float, missing: set[str]
) -> None:
    health = of_limits(tmp_path, {"hosts": hosts, "bandwidth": limit * RATE})
    ways = [(each.facts["host"], each.facts["way"]) for each in health.findings]
    assert sorted(ways) == sorted((host, way) for host in missing for way in ("receives", "sends"))
    assert {each.code for each in health.findings} <= {"missed limit"}
    assert health.not_checked == ()


def test_a_limit_of_the_latency_and_one_that_no_interval_decides(tmp_path: Path) -> None:
    late = {pair: 1.5 for other in range(5) for pair in ((1, other), (other, 1)) if other != 1}
    tables = {"pattern": "rounds", "latency": 25_000.0}, {"hosts": ["n9"], "bandwidth": RATE}
    health = of_limits(tmp_path, *tables, latencies=late)
    assert [(each.facts["host"], each.facts["time_ns"]) for each in health.findings] == [
        ("n2", pytest.approx(30_000, rel=1e-3))
    ]
    assert [(each.why, each.facts["place"]) for each in health.not_checked] == [("no such host", "the 2nd [[expect]]")]
    near = of_limits(tmp_path, {"hosts": ["n1"], "bandwidth": RATE}, scatter=0.05)
    assert {(each.why, each.facts["names"]) for each in near.not_checked} == {("near limit", "n1")}
    assert near.findings == ()


@pytest.mark.parametrize("hosts", [3, 4, 8])
def test_hosts_that_keep_a_limit_are_cleared_beside_a_slow_and_late_one(hosts: int, tmp_path: Path) -> None:
    bad = [pair for other in range(hosts) if other != 2 for pair in ((2, other), (other, 2))]
    tables = {"bandwidth": 0.8 * RATE}, {"pattern": "rounds", "latency": 25_000.0}
    of_bad = {"rates": dict.fromkeys(bad, 0.25), "latencies": dict.fromkeys(bad, 9.0)}
    health = of_limits(tmp_path, *tables, hosts=hosts, **of_bad)
    assert {each.facts["host"] for each in health.findings} == {"n3"}
    assert [each.code for each in health.findings].count("missed limit") == 3
    assert health.not_checked == ()


def test_a_limit_of_the_user_takes_the_place_of_the_interface(tmp_path: Path) -> None:
    known = hosts_at(*[10 * LINE] * 5)
    assert [each.code for each in of_limits(tmp_path, {"bandwidth": 0.9 * RATE}, known=known).findings] == []
    (finding,) = of_limits(tmp_path, {"hosts": ["n1"], "bandwidth": 0.9 * RATE}, known=known).findings
    assert finding.facts["hosts"] == ["n2", "n3", "n4", "n5"]


def test_facts_that_cannot_be_read_are_left_out_and_said(tmp_path: Path) -> None:
    store_health(tmp_path / "r.db", 3, worse=[{"host": "n2", "now": "unknown"}])
    said: list[str] = []
    before = notice.set(said.append)
    try:
        assert read_health(tmp_path / "r.db").findings == ()
    finally:
        notice.reset(before)
    assert [text.split(":")[0] for text in said] == [
        "stored runs of health have worse hosts of another version, or damaged"
    ]
