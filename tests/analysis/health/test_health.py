"""What is found among made-up hosts whose faults are known."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.health.made import RATE, known_host, read_health, store_health
from tests.matrix import matrix

from hockney.analysis.clusters import Pair
from hockney.analysis.health import Health
from hockney.analysis.health.matrices import LOST
from hockney.analysis.pairs import partners
from hockney.model import PointStatus
from hockney.results.store import Store

MakeHealth = Callable[..., Health]


@pytest.fixture
def made(tmp_path: Path) -> MakeHealth:
    """Makes a run as `store_health` does, and reads it."""

    def health(hosts: int, **run: Any) -> Health:
        store_health(tmp_path / "r.db", hosts, **run)
        return read_health(tmp_path / "r.db")

    return health


def sends(host: int, hosts: int) -> list[Pair]:
    return [(host, other) for other in range(hosts) if other != host]


def receives(host: int, hosts: int) -> list[Pair]:
    return [(b, a) for a, b in sends(host, hosts)]


def both(pairs: Iterable[Pair]) -> list[Pair]:
    return [each for a, b in pairs for each in ((a, b), (b, a))]


def named(found: Health) -> list[tuple[Any, ...]]:
    """The code, the hosts and the direction of each finding."""
    facts = [(finding.code, finding.facts) for finding in found.findings]
    return [(code, of["host"], *((of["other"],) if "other" in of else ()), of["way"]) for code, of in facts]


def test_healthy_hosts(made: MakeHealth) -> None:
    health = made(5, needless=30)
    assert health.findings == ()
    assert health.not_checked == ()
    assert health.matrices.usual_bytes_per_s == pytest.approx(RATE, rel=1e-3)
    assert (health.matrices.measured, health.matrices.pairs) == (10, 10)


@pytest.mark.parametrize("hosts", matrix([3, 4, 5, 8], short=[3, 5]))
def test_a_slow_host_is_named_wherever_it_is(made: MakeHealth, hosts: int) -> None:
    for host in range(hosts):
        for way, pairs in (
            ("sending", sends(host, hosts)),
            ("receiving", receives(host, hosts)),
            ("both", both(sends(host, hosts))),
        ):
            health = made(hosts, rates=dict.fromkeys(pairs, 0.25))
            assert named(health) == [("slow host", f"n{host + 1}", way)]
            assert health.findings[0].facts["of_usual_share"] == pytest.approx(0.25, rel=1e-3)
            assert health.not_checked == ()


@pytest.mark.parametrize(("hosts", "measurements"), [(4, 3), (6, 3), (8, 1)])
def test_a_slow_host_is_named_after_few_measurements_of_each_pair(
    made: MakeHealth, hosts: int, measurements: int
) -> None:
    """None of which has an interval: together they are enough, and a pair fewer is not."""
    slow = dict.fromkeys(both(sends(2, hosts)), 0.25)
    assert named(made(hosts, rates=slow, measurements=measurements)) == [("slow host", "n3", "both")]
    fewer = made(4, rates=dict.fromkeys(both(sends(2, 4)), 0.25), measurements=2)
    assert (fewer.findings, [gap.why for gap in fewer.not_checked]) == ((), ["few measurements"])
    two = [pair for pair in both(sends(2, hosts)) if 0 not in pair]
    assert made(hosts, rates=dict.fromkeys(two, 0.25), measurements=measurements).findings == ()


@pytest.mark.parametrize("hosts", matrix([3, 4, 8], short=[4]))
def test_a_slow_link_is_named_wherever_it_is(made: MakeHealth, hosts: int) -> None:
    for a, b in itertools.permutations(range(hosts), 2):
        assert named(made(hosts, rates={(a, b): 0.5})) == [("slow link", f"n{a + 1}", f"n{b + 1}", "sending")]
    assert named(made(hosts, rates=dict.fromkeys(both([(1, 2)]), 0.5))) == [("slow link", "n2", "n3", "both")]


def test_of_two_hosts_only_a_direction_can_be_named(made: MakeHealth) -> None:
    assert named(made(2, rates={(1, 0): 0.5})) == [("slow link", "n2", "n1", "sending")]


def test_a_late_host_and_a_late_link(made: MakeHealth) -> None:
    assert named(made(6, latencies=dict.fromkeys(both(sends(3, 6)), 5.0))) == [("late host", "n4", "both")]
    assert named(made(6, latencies={(1, 4): 5.0})) == [("late link", "n2", "n5", "both")]
    assert named(made(6, latencies={(1, 4): 3.0})) == []


def test_a_busy_cpu_may_delay_all_of_a_few_messages(made: MakeHealth) -> None:
    few = made(6, latencies={(1, 4): 5.0}, measurements=5)
    assert (named(few), [(each.what, each.why) for each in few.not_checked]) == (
        [],
        [("latency", "few measurements")],
    )
    assert named(made(6, latencies={(1, 4): 5.0}, measurements=6)) == [("late link", "n2", "n5", "both")]
    assert named(made(6, latencies=dict.fromkeys(both(sends(3, 6)), 5.0), measurements=3)) == [
        ("late host", "n4", "both")
    ]


@pytest.mark.parametrize(
    ("usual", "late", "is_late"),
    [(1.0, 3.4, False), (1.0, 3.6, True), (10.0, 19.0, False), (10.0, 21.0, True)],
    ids=["45 us more", "55 us more", "less than twice 200 us", "more than twice 200 us"],
)
def test_late_is_twice_the_usual_and_50_us_more(made: MakeHealth, usual: float, late: float, is_late: bool) -> None:
    latencies = dict.fromkeys(itertools.permutations(range(6), 2), usual) | {(1, 4): late}
    assert bool(made(6, latencies=latencies).findings) is is_late


@pytest.mark.parametrize(("fault", "is_named"), [({"rates": {(1, 4): 0.84}}, True), ({"rates": {(1, 4): 0.86}}, False),
    ({"lost": {(1, 4): 1.1}}, True), ({"lost": {(1, 4): 0.9}}, False)])  # fmt: skip
def test_15_percent_slower_or_a_loss_of_one_in_a_thousand_is_a_fault(
    made: MakeHealth, fault: dict[str, Any], is_named: bool
) -> None:
    assert bool(made(6, **fault).findings) is is_named


def test_a_rate_lowered_by_latency_is_no_second_fault(made: MakeHealth) -> None:
    of_host = both(sends(3, 6))
    late = dict.fromkeys(of_host, 5.0)
    assert named(made(6, latencies=late, rates=dict.fromkeys(of_host, 0.7))) == [("late host", "n4", "both")]
    assert {code for code, *_ in named(made(6, latencies=late, rates=dict.fromkeys(of_host, 0.3)))} == {
        "late host",
        "slow host",
    }


def test_lost_segments(made: MakeHealth) -> None:
    health = made(6, lost=dict.fromkeys(sends(2, 6), 10.0), needless=30)
    assert named(health) == [("lossy host", "n3", "sending")]
    assert health.findings[0].facts["lost_share"] == pytest.approx(0.01)
    assert named(made(6, lost={(0, 5): 10.0})) == [("lossy link", "n1", "n6", "sending")]


def test_few_measurements_of_lost_segments(made: MakeHealth) -> None:
    assert named(made(6, lost=dict.fromkeys(both(sends(2, 6)), 10.0), measurements=2)) == [("lossy host", "n3", "both")]
    health = made(6, lost={(0, 5): 10.0}, measurements=1)
    assert health.findings == ()
    assert [gap.what for gap in health.not_checked] == ["lost messages"]


def test_losses_of_a_slow_host_are_evidence_and_no_second_fault(made: MakeHealth) -> None:
    pairs = receives(2, 6)
    (finding,) = made(6, rates=dict.fromkeys(pairs, 0.25), lost=dict.fromkeys(pairs, 30.0)).findings
    assert (finding.code, finding.cause) == ("slow host", "loss or a full queue")
    assert finding.facts["lost_share"] == pytest.approx(0.03)


def test_losses_of_a_slow_host_do_not_hide_a_lossy_link(made: MakeHealth) -> None:
    slow, link = both(sends(0, 8)), both([(2, 5)])
    found = sorted(named(made(8, rates=dict.fromkeys(slow, 0.25), lost=dict.fromkeys([*slow, *link], 30.0))))
    assert found == [("lossy link", "n3", "n6", "both"), ("slow host", "n1", "both")]


def test_two_slow_hosts_and_a_slow_link(made: MakeHealth) -> None:
    slow = dict.fromkeys([*both(sends(1, 8)), *receives(6, 8)], 0.5) | {(3, 4): 0.5}
    assert sorted(named(made(8, rates=slow))) == [
        ("slow host", "n2", "both"),
        ("slow host", "n7", "receiving"),
        ("slow link", "n4", "n5", "sending"),
    ]


def test_hosts_behind_a_narrow_uplink(made: MakeHealth) -> None:
    across = [(a, b) for a in range(5) for b in range(5, 8)]
    health = made(8, rates=dict.fromkeys(both(across), 0.5))
    (finding,) = health.findings
    assert (finding.code, finding.facts["hosts"], finding.facts["way"]) == ("slow uplink", ["n6", "n7", "n8"], "both")
    assert health.not_checked == ()


def test_many_slow_links_are_inconclusive(made: MakeHealth) -> None:
    health = made(8, rates={(n, (n + 1) % 8): 0.5 for n in range(8)})
    assert health.findings == ()
    (gap,) = health.not_checked
    assert gap.why == "uneven network"


# Of the rounds of eight hosts, one has the pairs 1-6, 2-5, 3-4 and 7-8, counted from 1.
@pytest.mark.parametrize(
    "lost",
    [
        both([(0, 5), (2, 3), (6, 7)]),
        [(5, 0), (3, 2)],
        [*((0, other) for other in range(4, 8)), (0, 1), (1, 6), (2, 5), (4, 3), (6, 5), (5, 6), (3, 7), (2, 7)],
    ],
    ids=["three links", "two links one way", "a host whose pairs never lose alone"],
)
def test_what_pairs_lose_only_at_once_is_no_fault_of_each(made: MakeHealth, lost: list[Pair]) -> None:
    """Two groups of hosts behind a narrow uplink lose segments in rounds in which many pairs cross it."""
    found = made(8, lost=dict.fromkeys(lost, 10.0))
    assert found.findings == ()
    assert [(gap.what, gap.why) for gap in found.not_checked] == [("lost messages", "uneven network")]


@pytest.mark.parametrize("hosts", [7, 8])
def test_two_links_that_lose_in_one_round_are_no_faults_in_any_round(made: MakeHealth, hosts: int) -> None:
    for round_ in range(1, hosts + hosts % 2):
        assert made(hosts, lost=dict.fromkeys(partners(hosts, round_)[:2], 10.0)).findings == ()


def test_slow_links_that_other_pairs_lose_segments_with_are_inconclusive(made: MakeHealth) -> None:
    found = made(8, rates={(0, 5): 0.5}, lost={(0, 5): 30.0, (2, 3): 30.0})
    assert found.findings == ()
    assert [gap.what for gap in found.not_checked] == ["bandwidth", "lost messages"]


def test_a_host_slow_with_all_others_is_named_though_pairs_lose_segments_in_every_round(made: MakeHealth) -> None:
    lost = both([(1, 7), (5, 6), (2, 4), (3, 5), (4, 6), (2, 3), (1, 6)])
    assert all(not {*partners(8, round_)}.isdisjoint(lost) for round_ in range(1, 8))
    assert named(made(8, rates=dict.fromkeys(both(sends(0, 8)), 0.5), lost=dict.fromkeys(lost, 10.0))) == [
        ("slow host", "n1", "both")
    ]


def test_faults_that_pairs_show_alone_are_named(made: MakeHealth) -> None:
    """Two links of different rounds, and two hosts, which are in all rounds."""
    assert named(made(8, lost=dict.fromkeys([(0, 5), (1, 2)], 10.0))) == [
        ("lossy link", "n1", "n6", "sending"),
        ("lossy link", "n2", "n3", "sending"),
    ]
    assert named(made(8, lost=dict.fromkeys([*sends(1, 8), *sends(6, 8)], 10.0))) == [
        ("lossy host", "n2", "sending"),
        ("lossy host", "n7", "sending"),
    ]


def of_hosts(slow: Iterable[int], hosts: int) -> list[Pair]:
    """Every pair of some hosts, both ways."""
    return both(pair for host in slow for pair in sends(host, hosts))


@pytest.mark.parametrize(("hosts", "slow"), [(4, 2), (6, 3), (8, 4), (8, 5)])
@pytest.mark.parametrize("measurements", [2, 9])
def test_half_of_the_hosts_slow_is_inconclusive(made: MakeHealth, hosts: int, slow: int, measurements: int) -> None:
    """What is usual is the rate of the slow ones then, and what their full queues lose is no fault of its own."""
    pairs = of_hosts(range(1, slow + 1), hosts)
    lost = dict.fromkeys(pairs[::3], 80.0)
    rates = dict.fromkeys(pairs, 0.25)
    health = made(hosts, rates=rates, lost=lost, measurements=measurements)
    fast = ["n1", *(f"n{number}" for number in range(slow + 2, hosts + 1))]
    assert health.findings == ()
    assert [(gap.what, gap.why) for gap in health.not_checked] == [
        ("bandwidth", "two rates"),
        ("lost messages", "slow pairs"),
    ]
    assert health.not_checked[0].facts["fast"] == fast
    assert health.not_checked[0].facts["fast_bytes_per_s"] == pytest.approx(RATE, rel=1e-3)
    assert health.not_checked[0].facts["usual_bytes_per_s"] == pytest.approx(RATE / 4, rel=1e-3)


def test_a_host_slower_than_the_slow_half_is_named(made: MakeHealth) -> None:
    rates = dict.fromkeys(of_hosts((1, 2), 4), 0.5) | dict.fromkeys(of_hosts((2,), 4), 0.1)
    health = made(4, rates=rates)
    assert named(health) == [("slow host", "n3", "both")]
    assert [gap.why for gap in health.not_checked] == ["two rates", "slow pairs"]


def test_half_of_the_hosts_late_is_inconclusive(made: MakeHealth) -> None:
    health = made(4, latencies=dict.fromkeys(of_hosts((1, 2), 4), 50.0))
    assert health.findings == ()
    assert [(gap.what, gap.why, gap.facts["fast"]) for gap in health.not_checked] == [
        ("latency", "two times", ["n1", "n4"])
    ]


@pytest.mark.parametrize(
    ("hosts", "fast"),
    [(6, [(0, 3)]), (8, [(0, 1), (2, 3), (4, 5), (6, 7)]), (8, [(0, 1), (2, 3), (4, 5)])],
    ids=["one pair", "two hosts on each switch", "some alone on theirs"],
)
def test_a_few_faster_pairs_do_not_hide_faults(made: MakeHealth, hosts: int, fast: list[Pair]) -> None:
    rates = dict.fromkeys(both(fast), 4.0) | {(1, 4): 0.5}
    health = made(hosts, rates=rates, lost={(5, 0): 10.0})
    assert sorted(named(health)) == [("lossy link", "n6", "n1", "sending"), ("slow link", "n2", "n5", "sending")]
    assert health.not_checked == ()


def test_too_few_measurements_of_a_link_are_inconclusive(made: MakeHealth) -> None:
    health = made(6, rates={(0, 1): 0.5}, measurements=3)
    assert health.findings == ()
    (gap,) = health.not_checked
    assert gap.how is not None
    assert gap.how.argv[:4] == ("hockney", "health", "--hosts", "n[1-6]")


def test_few_measurements_of_many_pairs_name_a_host(made: MakeHealth) -> None:
    """A sample of the rounds of many hosts: each pair twice."""
    reached = (3, 7, 8, 11, 14, 16, 20)
    unmeasured = [number for number in range(1, 24) if number not in reached]
    slow = dict.fromkeys(both(sends(9, 24)), 0.5)
    health = made(24, rates=slow, unmeasured=unmeasured, measurements=2)
    assert named(health) == [("slow host", "n10", "both")]
    assert (health.matrices.measured, health.matrices.pairs) == (7 * 12, 24 * 23 // 2)
    assert health.not_checked == ()


def test_differences_between_hosts(made: MakeHealth) -> None:
    odd = {
        "kernel": "Linux 5.10",
        "libc": "glibc 2.31",
        "cpu": "Other CPU",
        "congestion": "bbr",
        "libraries": {"mpi@mpich": "4.1"},
        "interfaces": [{"name": "eth0", "mtu_bytes": 9000, "bits_per_s": 25 * 10**8, "address": "10.0.0.3"}],
    }
    hosts = [known_host("n1"), known_host("n2"), known_host("n3", **odd)]
    facts = {finding.facts["property"]: finding.facts for finding in made(3, known=hosts).findings}
    assert sorted(facts) == ["MTU of eth0", "congestion", "cpu", "kernel", "libc", "mpi@mpich", "speed of eth0"]
    assert facts["MTU of eth0"] == {"property": "MTU of eth0", "differing": ["n3 9000"], "usual": "1500", "of": 2}


def test_half_of_the_hosts_differ(made: MakeHealth) -> None:
    kernels = ["a", "a", "b", "b"]
    hosts = [known_host(f"n{number}", kernel=kernel) for number, kernel in enumerate(kernels, 1)]
    (finding,) = made(4, known=hosts).findings
    assert finding.facts == {"property": "kernel", "differing": ["n1 a", "n2 a", "n3 b", "n4 b"]}


def test_a_wrong_clock(made: MakeHealth) -> None:
    offsets = [0.0, 0.1, -3.0, 0.05]
    hosts = [
        known_host(f"n{number}", clock_offset_s=offset, clock_error_s=0.2) for number, offset in enumerate(offsets, 1)
    ]
    (finding,) = made(4, known=hosts).findings
    assert (finding.code, finding.facts["host"], finding.facts["way"]) == ("wrong clock", "n3", "behind")
    assert finding.facts["off_ns"] == pytest.approx(3e9, rel=0.1)


def test_the_clock_of_the_host_that_asks_may_be_wrong(made: MakeHealth) -> None:
    hosts = [known_host(f"n{number}", clock_offset_s=5.0 * (number > 1)) for number in range(1, 5)]
    (finding,) = made(4, known=hosts).findings
    assert (finding.facts["host"], finding.facts["way"]) == ("n1", "behind")


def compared(**ahead_ms: float) -> dict[str, dict[str, float]]:
    return {
        host: {"time_s": 1e9, "ahead_ns": 1e6 * ms, "error_ns": 2e4 * (host != "n1")} for host, ms in ahead_ms.items()
    }


@pytest.mark.parametrize(
    ("ahead_ms", "wrong"),
    [
        ({"n1": 0, "n2": 4, "n3": -4, "n4": 2}, []),
        ({"n1": 0, "n2": 1, "n3": 12, "n4": 1}, [("n3", "ahead", 11e6)]),
        ({"n1": 0, "n2": 50, "n3": 51, "n4": 50}, [("n1", "behind", 50e6)]),
    ],
    ids=["as NTP leaves them", "one", "the first one"],
)
def test_a_clock_that_the_logins_cannot_tell_to_be_wrong(
    made: MakeHealth, ahead_ms: dict[str, float], wrong: list[tuple[str, str, float]]
) -> None:
    hosts = [known_host(name, clock_error_s=0.2) for name in ahead_ms]
    facts = [
        finding.facts for finding in made(4, known=hosts, clocks=[compared(**ahead_ms), compared(**ahead_ms)]).findings
    ]
    assert [(of["host"], of["way"], of["off_ns"]) for of in facts] == [
        (host, way, pytest.approx(off_ns, rel=0.03)) for host, way, off_ns in wrong
    ]
    assert all(of["error_ns"] <= 2e4 for of in facts)


def test_of_two_equal_halves_it_is_unclear_whose_clocks_are_wrong(made: MakeHealth) -> None:
    found = made(4, clocks=[compared(n1=0, n2=1, n3=50, n4=51)]).findings
    assert [(finding.code, finding.cause) for finding in found] == [("wrong clock", "unclear")] * 2


def test_a_comparison_of_clocks_goes_before_what_logins_show(made: MakeHealth) -> None:
    hosts = [known_host(f"n{number}", clock_offset_s=5.0 * (number == 3)) for number in range(1, 5)]
    assert made(4, known=hosts, clocks=[compared(n1=0, n2=0, n3=0, n4=0)]).findings == ()


def interfaces(*listed: tuple[str, int, str | None]) -> list[dict[str, Any]]:
    return [{"name": name, "mtu_bytes": mtu, "bits_per_s": 10**9, "address": address} for name, mtu, address in listed]


@pytest.mark.parametrize(
    ("plan", "of_first", "of_third", "title", "differing"),
    [
        ({}, [("eth0", 1500, "10.0.0.1")], [("ens3", 9000, "10.0.0.3")], "MTU of ens3 and eth0", "n3 9000"),
        ({}, [("eth0", 1500, None)], [("eth0", 9000, None)], "MTU of eth0", "n3 9000"),
        (
            {},
            [("eth0", 1500, "10.0.0.1"), ("docker0", 1400, "172.17.0.1")],
            [("docker0", 1500, "172.17.0.1"), ("eth0", 9000, "10.0.0.1")],
            "MTU of eth0",
            "n3 9000",
        ),
        (
            {"interface": "ib0"},
            [("eth0", 1500, "10.0.0.1"), ("ib0", 2044, "10.1.0.1")],
            [("eth0", 9000, "10.0.0.1"), ("ib0", 4092, "10.1.0.3")],
            "MTU of ib0",
            "n3 4092",
        ),
    ],
    ids=["other names", "no addresses", "the one in use", "--interface"],
)
def test_interfaces_are_compared_by_their_use(
    made: MakeHealth, plan: dict[str, str], of_first: Any, of_third: Any, title: str, differing: str
) -> None:
    hosts = [
        known_host(name, interfaces=interfaces(*of_host), address="10.0.0.1")
        for name, of_host in (("n1", of_first), ("n2", of_first), ("n3", of_third))
    ]
    health = made(3, known=hosts, plan=plan)
    assert [(of.facts["property"], of.facts["differing"]) for of in health.findings] == [(title, [differing])]
    assert health.not_checked == ()


def test_properties_that_hosts_do_not_report_are_not_checked(made: MakeHealth) -> None:
    several = interfaces(("eth0", 1500, "10.0.0.1"), ("eth1", 9000, "10.1.0.1"))
    hosts = [known_host("n1", cpu=None), known_host("n2", cpu=None), known_host("n3", cpu=None, interfaces=several)]
    health = made(3, known=hosts)
    assert health.findings == ()
    (gap,) = health.not_checked
    assert (gap.what, gap.facts["properties"]) == ("differences", ["cpu", "MTU (n3)", "speed (n3)"])


def test_hosts_that_could_not_be_used(made: MakeHealth) -> None:
    health = made(4, unusable={"n9": "no answer"})
    (finding,) = health.findings
    assert (finding.code, finding.facts) == ("unusable host", {"host": "n9", "said": "no answer"})
    assert not health.has_fault


def test_a_host_that_was_lost_after_all_pairs_is_named_and_nothing_is_unclear(tmp_path: Path) -> None:
    store_health(tmp_path / "r.db", 4)
    with Store.open(tmp_path / "r.db") as store:
        for row in store.points(1):
            store.set_status(1, row.point, PointStatus.FAILED, "n3 does not answer")
        store.add_to_facts(1, LOST, {"n3": "no answer within 6 s"})
    health = read_health(tmp_path / "r.db")
    (finding,) = health.findings
    said = "it answered at first, but not later: no answer within 6 s"
    assert (finding.code, finding.facts) == ("unusable host", {"host": "n3", "said": said})
    assert health.matrices.measured == health.matrices.pairs
    assert not health.not_checked


@pytest.mark.parametrize(
    ("down", "named"),
    [
        ([(1, 0), (2, 1), (1, 4)], [("interrupted host", "n2", None)]),
        ([(1, 0), (2, 1)], []),
        ([(1, 4), (4, 1), (1, 4)], [("interrupted link", "n2", "n5")]),
        ([(1, 0), (2, 3), (4, 5)], []),
    ],
    ids=["host", "two times", "link", "scattered"],
)
def test_a_link_that_is_down_for_moments(
    tmp_path: Path, down: list[Pair], named: list[tuple[str, str, str | None]]
) -> None:
    """100 of 1,000 segments of one measurement each are lost while it is down."""
    store_health(tmp_path / "r.db", 6, down=down)
    findings = read_health(tmp_path / "r.db").findings
    assert [(each.code, each.facts["host"], each.facts.get("other")) for each in findings] == named


def test_a_lossy_link_that_was_also_down_once_is_lossy(made: MakeHealth) -> None:
    health = made(4, lost={(0, 1): 5.0}, down=[(0, 1)])
    assert [(each.code, each.facts["host"]) for each in health.findings] == [("lossy link", "n1")]


def test_only_the_interface_in_use_and_ports_of_infiniband_count(made: MakeHealth) -> None:
    before = {"eth0": {"rx_errors": 0}, "docker0": {"carrier_changes": 1}, "mlx5_0/2": {"link_downed": 0}}
    after = {"eth0": {"rx_errors": 9}, "docker0": {"carrier_changes": 9}, "mlx5_0/2": {"link_downed": 1}}
    hosts = [known_host(name, counters=before) for name in ("n1", "n2", "n3")]
    health = made(3, known=hosts, counted=[{"n2": after}])
    assert [(each.code, each.facts["interface"]) for each in health.findings] == [("lost carrier", "mlx5_0/2")]


@pytest.mark.parametrize("stored", ["x", {"hosts": ["n1"]}, {"host": "n1", "now": 0}, 3, None])
def test_facts_of_another_version_are_no_fault(made: MakeHealth, stored: object) -> None:
    hosts = [known_host(name, counters={"eth0": {"rx_errors": 5}}) for name in ("n1", "n2", "n3")]
    assert made(3, known=hosts, counted=[stored], worse=[stored], plan={"stalls": [stored]}).findings == ()


@pytest.mark.parametrize(
    ("after", "named"),
    [
        ({"carrier_changes": 8, "rx_errors": 5}, [("lost carrier", {"times": 3})]),
        ({"carrier_changes": 2, "rx_errors": 17}, [("interface errors", {"errors": ["rx_errors 12"]})]),
        ({"carrier_changes": 2, "rx_errors": 5}, []),
        ({}, []),
        ({"carrier_changes": 0, "rx_errors": 0}, []),
    ],
    ids=["carrier", "errors", "nothing", "unknown", "anew"],
)
def test_what_an_interface_counted_during_the_run(
    made: MakeHealth, after: dict[str, int], named: list[tuple[str, dict[str, Any]]]
) -> None:
    before = {"eth0": {"carrier_changes": 2, "rx_errors": 5}}
    hosts = [known_host(name, counters=before) for name in ("n1", "n2", "n3")]
    health = made(3, known=hosts, counted=[{"n2": {"eth0": after}}])
    assert [(each.code, each.facts["host"]) for each in health.findings] == [(code, "n2") for code, _ in named]
    for finding, (_, facts) in zip(health.findings, named, strict=True):
        assert {name: finding.facts[name] for name in facts} == facts


def test_a_host_that_kept_the_others_waiting(made: MakeHealth) -> None:
    """By stalls of an earlier run, which had it."""
    stalls = [
        {"hosts": hosts, "pattern": "flows", "bytes": 16384, "limit_s": 8.0, "is_silent": False}
        for hosts in (["n5", "n1"], ["n5", "n3"])
    ]
    health = made(4, plan={"stalls": stalls})
    (finding,) = health.findings
    assert (finding.code, finding.facts["host"], finding.facts["others"]) == ("stuck host", "n5", ["n1", "n3"])
    assert finding.cause == "long messages"
    assert health.has_fault


def test_a_rate_counts_the_datagrams_that_arrived(made: MakeHealth) -> None:
    """Of 4 times 16 messages in each of three samples half did not reach n2."""
    known = made(4, counters={"lost": (0.0, 96.0, 0.0, 0.0)}).matrices
    assert known.bytes_per_s[0, 1].value == pytest.approx(50e6, rel=0.01)
    assert known.bytes_per_s[1, 0].value == pytest.approx(100e6, rel=0.01)


def test_a_reason_that_another_one_includes_is_printed_once(tmp_path: Path) -> None:
    store_health(tmp_path / "r.db", 4, failed="n3 does not answer")
    with Store.open(tmp_path / "r.db") as store:
        points = [row.point for row in store.points(1)]
        store.set_status(1, points[0], PointStatus.FAILED, "no end after 20 s; n3 does not answer")
    (gap,) = read_health(tmp_path / "r.db").not_checked
    assert gap.facts == {"said": "no end after 20 s; n3 does not answer"}
