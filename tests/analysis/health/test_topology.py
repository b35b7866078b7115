"""Topologies as files have them, and faults that are of a switch: its hosts and its uplink are known."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.health.made import known_host, read_health, store_health

from hockney.analysis.clusters import Pair
from hockney.analysis.finding import Finding
from hockney.analysis.health import Health
from hockney.analysis.health.topology import SWITCHES, read_topology
from hockney.errors import UsageError
from hockney.report.documents.health import bad_hosts, undrained
from hockney.report.findings import sentence_of

HOSTS = [f"n{number}" for number in range(1, 13)]
LEAVES = {"leaf1": "n[1-4]", "leaf2": "n[5-8]", "leaf3": "n[9-12]"}
SECOND = frozenset(range(4, 8))  # of leaf2, counted from 0
PAIRS = list(itertools.permutations(range(12), 2))


def crossing(hosts: Iterable[int]) -> list[Pair]:
    """The pairs of these hosts with others."""
    return [pair for pair in PAIRS if len({*hosts}.intersection(pair)) == 1]


def touching(hosts: Iterable[int]) -> list[Pair]:
    return [pair for pair in PAIRS if {*hosts}.intersection(pair)]


def made(path: Path, switches: Mapping[str, str] = LEAVES, **run: Any) -> Health:
    plan = {SWITCHES: switches} if switches else {}
    store_health(path / "r.db", 12, plan=plan, **run)
    return read_health(path / "r.db")


def named(health: Health) -> list[tuple[str, str]]:
    """The code of each finding, and its switch or its host."""
    return [(each.code, each.facts.get("switch") or each.facts["host"]) for each in health.findings]


@pytest.mark.parametrize(
    "text",
    [
        """
        SwitchName=leaf1 Nodes=n[1-4]
        SwitchName=leaf2 Nodes=n[5-8] LinkSpeed=100
        SwitchName=core Switches=leaf[1-2]
        SwitchName=far Nodes=x[1-9]
        """,
        "# rack = hosts\nleaf1 = n1, n2 n[3-4]  # the first\n\nleaf2=n[5-8]\ncore = n[1-8]\n",
        "SwitchName=leaf1 \\\n Nodes=n[1-4]\nSwitchName=leaf2 Nodes=n[5-6],\\\nn[7-8]\ncore = n[1-8]",
        "switchname=core switches=leaf1,leaf2\nSWITCHNAME=leaf1 NODES=n1,n2,n3,n4\nSwitchName=leaf2 Nodes=n[5-8,40]\n",
    ],
    ids=["of Slurm", "simple lines", "continued lines", "in another order"],
)
def test_the_hosts_behind_each_switch(text: str, tmp_path: Path) -> None:
    (tmp_path / "topology").write_text(text)
    known = read_topology(tmp_path / "topology", HOSTS)
    assert known == {"leaf1": "n[1-4]", "leaf2": "n[5-8]", "core": "n[1-8]"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "leaf1 = n[1-4]\nleaf2 n[5-8]",
            "line 2 of .*, 'leaf2 n.5-8.', names no switch with its hosts: write for example",
        ),
        ("SwitchName=leaf1 Nodes=n[1-4", "line 1 of .* names no switch with its hosts"),
        ("SwitchName=leaf1 LinkSpeed=9", "line 1 of .* names no switch with its hosts"),
        ("a = n1,n2\n\na = n3,n4", "line 3 of .*, 'a = n3,n4', names the switch a again"),
        ("SwitchName=a Switches=b,c\nSwitchName=b Nodes=n1", "line 1 of .* puts the switch c below a, which no line"),
        (
            "SwitchName=a Switches=b\nSwitchName=b Switches=a",
            "line 2 of .* puts the switch a below b, which is above it",
        ),
        ("a = n1,x2", "has no switch with two of these hosts"),
        ("", "has no switch with two of these hosts"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "topology").write_text(text)
    with pytest.raises(UsageError, match=said):
        read_topology(tmp_path / "topology", HOSTS)


def test_a_long_chain_of_switches_and_many_ways_to_a_host(tmp_path: Path) -> None:
    """Once a stack that overflowed, and a time that doubled with each layer."""
    chain = "".join(f"SwitchName=c{n} Switches=c{n + 1}\n" for n in range(2000))
    layers = "".join(f"SwitchName={side}{n} Switches=a{n + 1},b{n + 1}\n" for n in range(60) for side in "ab")
    ends = "SwitchName=c2000 Nodes=n[1-4]\nSwitchName=a60 Nodes=n[1-4]\nSwitchName=b60 Nodes=n[5-8]\n"
    (tmp_path / "topology").write_text(chain + layers + ends)
    known = read_topology(tmp_path / "topology", HOSTS)
    assert (known["c0"], known["a0"]) == ("n[1-4]", "n[1-8]")
    assert [*known][:2] == ["c0", "c1"]  # the order of the file decides between switches with the same hosts


def test_slow_hosts_of_one_switch_are_one_finding(tmp_path: Path) -> None:
    rates = dict.fromkeys(touching(SECOND), 0.25)
    assert len(made(tmp_path, {}, rates=rates).findings) == 4
    health = made(tmp_path, rates=rates)
    assert named(health) == [("slow host", "leaf2")]
    (finding,) = health.findings
    assert finding.facts["hosts"] == ["n5", "n6", "n7", "n8"]
    assert finding.facts["of_usual_share"] == pytest.approx(0.25, rel=1e-3)
    assert {*bad_hosts(health)} == {"n5", "n6", "n7", "n8"}
    assert undrained(health) == ""
    said = "The hosts behind switch leaf2 are slow: n5, n6, n7, n8. 25.0 MB/s, 25% of the usual 100 MB/s"
    assert sentence_of(finding).startswith(said)


@pytest.mark.parametrize(
    ("bad", "switch"),
    [
        ((4, 5, 6), "leaf2"),  # most
        ((4, 5), ""),  # half
        ((0, 1, 2, 8), ""),  # and one of eight others
    ],
)
def test_a_switch_is_named_for_most_of_its_hosts_and_few_others(
    bad: tuple[int, ...], switch: str, tmp_path: Path
) -> None:
    health = made(tmp_path, latencies=dict.fromkeys(touching(bad), 9.0))
    assert named(health) == ([("late host", switch)] if switch else [("late host", HOSTS[host]) for host in bad])


def test_hosts_of_two_switches_and_one_more_fault(tmp_path: Path) -> None:
    """Of the pod with both leaves, which has just the hosts without an answer. The slow link is another fault."""
    gone = {f"x{number}": "no answer" for number in range(1, 7)}
    switches = {**LEAVES, "gone1": "x[1-3]", "gone2": "x[4-6]", "pod": "x[1-6]"}
    health = made(tmp_path, switches, unusable=gone, rates={(0, 5): 0.5})
    assert named(health) == [("unusable host", "pod"), ("slow link", "n1")]
    assert made(tmp_path, {**LEAVES, "gone1": "x[1-3]", "gone2": "x[4-6]"}, unusable=gone).findings[0].facts["of"] == 3


def test_an_uplink_has_the_name_of_its_switch(tmp_path: Path) -> None:
    health = made(tmp_path, rates=dict.fromkeys(crossing(SECOND), 0.25))
    assert named(health) == [("slow uplink", "leaf2")]
    assert bad_hosts(health) == {}
    assert undrained(health) == "the uplink of switch leaf2 is slow: n5, n6, n7, n8"


def test_hosts_of_a_switch_without_an_answer_are_not_drained(tmp_path: Path) -> None:
    gone = {f"x{number}": "no answer" for number in range(1, 4)}
    health = made(tmp_path, {**LEAVES, "gone": "x[1-3]"}, unusable=gone)
    assert bad_hosts(health) == {}
    assert undrained(health) == "the hosts behind switch gone cannot be used: x1, x2, x3"
    assert {*bad_hosts(made(tmp_path, unusable=gone))} == {*gone}


def test_one_of_two_cables_of_a_switch(tmp_path: Path) -> None:
    """Half of its pairs with others are slow, in no order: too many for links, and too few for hosts."""
    some = [(a, b) for a, b in crossing(SECOND) if (a + b) % 2]
    without = made(tmp_path, {}, rates=dict.fromkeys(some, 0.5))
    assert (without.findings, without.not_checked[0].why) == ((), "uneven network")
    health = made(tmp_path, rates=dict.fromkeys(some, 0.5))
    assert named(health) == [("slow uplink", "leaf2")]
    assert health.not_checked == ()
    assert "in 32 of 64 directions between them and others" in sentence_of(health.findings[0])


@pytest.mark.parametrize(
    "some",
    [
        [(a, b) for a, b in PAIRS if a < 4 <= b < 8 and (a + b) % 2],  # the cable between two
        [(a, b) for a, b in PAIRS if (a + b) % 3 == 0],
    ],
    ids=["of two switches", "anywhere"],
)
def test_slow_pairs_that_are_of_no_single_switch_stay_unclear(some: list[Pair], tmp_path: Path) -> None:
    health = made(tmp_path, rates=dict.fromkeys(some, 0.5))
    assert (health.findings, health.not_checked[0].why) == ((), "uneven network")


def test_a_property_that_differs_stays_a_finding_of_its_own(tmp_path: Path) -> None:
    hosts = [
        known_host(name, kernel="Linux 5.4" if number in SECOND else "Linux 6.1") for number, name in enumerate(HOSTS)
    ]
    (finding,) = made(tmp_path, known=hosts).findings
    assert isinstance(finding, Finding)
    assert finding.code == "differing hosts"
