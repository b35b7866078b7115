"""Ranks that share a core of a host, and the network interfaces that a run used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_info, make_launch

from hockney.measure.warnings import core_warnings, device_warnings, stray_warnings
from hockney.model import Point
from hockney.render.text import show
from hockney.report.documents.hosts import bindings
from hockney.results.placement import cores_of_hosts, shared_cores, strayed, used_interfaces
from hockney.results.runs import Run
from hockney.results.store import Store

# Two cores of two threads each: on n1 the threads of a core are next to each other, on n2 they come last.
FACTS: dict[str, Any] = {
    "hostname": "n1",
    "topology": {"cores": ["0-1", "2-3"]},
    "hosts": [
        {"name": "one", "hostname": "n1", "cores": ["0-1", "2-3"]},
        {"name": "two", "hostname": "n2", "cores": ["0,2", "1,3"]},
    ],
}
HOSTS = ("n1", "n1", "n2", "n2")


def launch(cpus: tuple[int, ...], bound: tuple[str, ...] | None = None) -> Any:
    each = tuple(map(str, cpus)) if bound is None else bound
    return make_launch("tcp", ranks=len(cpus), cpus=cpus, hosts=HOSTS[: len(cpus)], bound=each)


@pytest.mark.parametrize(
    ("cpus", "bound", "shared"),
    [
        ((0, 2, 0, 1), None, []),
        ((0, 1, 0, 1), None, [[0, 1]]),
        ((0, 2, 0, 2), None, [[2, 3]]),
        ((1, 1, 3, 3), None, [[0, 1], [2, 3]]),
        ((0, 1, 0, 2), ("0-3",) * 4, []),  # they may move
        ((0, 1), (), []),  # not recorded
    ],
)
def test_ranks_share_a_core_of_their_host(
    cpus: tuple[int, ...], bound: tuple[str, ...] | None, shared: list[list[int]]
) -> None:
    assert shared_cores(launch(cpus, bound), cores_of_hosts(FACTS)) == shared


def test_ranks_on_unknown_cpus_have_different_places() -> None:
    assert len({*launch((-1, 2, -1, -1)).places}) == 4
    assert launch((0, 2)).places == (("n1", 0), ("n1", 2))


def test_hosts_of_one_hostname_are_named_as_they_were_listed() -> None:
    one, two = ({**host, "hostname": "localhost"} for host in FACTS["hosts"])
    hosts = [{**one, "cpus": "0-3"}, {**two, "cpus": "0-1"}]
    facts = {"hostname": "localhost", "hosts": hosts}
    cpus = (0, 2, 0, 2)
    job = make_launch("tcp", ranks=4, cpus=cpus, hosts=("one", "one", "two", "two"), bound=tuple(map(str, cpus)))
    assert shared_cores(job, cores_of_hosts(facts)) == [[2, 3]]
    assert strayed(job, facts) == {"two": (2,)}


def test_a_cpu_of_an_unknown_core_is_shared_by_itself_alone() -> None:
    assert shared_cores(launch((0, 1, 5, 5)), {}) == [[2, 3]]


def stored(path: Path, facts: dict[str, Any], *cpus: tuple[int, ...]) -> None:
    with Store.open(path) as store:
        run_id = store.create_run(make_info(facts=facts), ())
        for each in cpus:
            store.add_launch(run_id, launch(each))


def test_the_fewest_ranks_that_share_a_core_are_warned_of(tmp_path: Path) -> None:
    stored(tmp_path / "r.db", FACTS, (0, 2), (0, 2, 0, 2), (0, 1, 0, 2))
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        (warning,) = core_warnings(store.run(1))
    assert (warning.kind, warning.subject) == ("smt", "tcp")
    expected = "Ranks 2 and 3 of the 4 ranks of tcp share a core of n2 (CPUs 0,2): each slows the others down."
    assert warning.cause == expected


def test_one_host_is_warned_of_before_the_run(tmp_path: Path) -> None:
    alone = {name: value for name, value in FACTS.items() if name != "hosts"}
    stored(tmp_path / "r.db", alone, (0, 1))
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        assert list(core_warnings(store.run(1))) == []


@pytest.mark.parametrize(
    ("usable", "bound", "outside"),
    [
        ("0-3", ("0", "3", "1", "2"), {}),
        ("0-1", ("0", "2", "1", "3"), {"n1": (2,), "n2": (3,)}),
        ("0-1", ("0-1", "0-3", "1", "0"), {"n1": (2, 3)}),
        ("0-1", ("0", "200 CPUs", "1"), {}),  # too many to list, and not recorded
        (None, ("0", "9", "1", "9"), {}),
    ],
)
def test_ranks_outside_of_the_cpus_that_hockney_may_use(
    usable: str | None, bound: tuple[str, ...], outside: dict[str, tuple[int, ...]]
) -> None:
    hosts = [{"hostname": "n2", "cpus": "0-2" if usable else None}]
    facts = {"hostname": "n1", "limits": {"usable_cpus": usable}, "hosts": hosts}
    assert strayed(launch((0, 2, 1, 3), bound), facts) == outside


def test_a_launcher_that_binds_ranks_elsewhere_is_warned_of(tmp_path: Path) -> None:
    stored(tmp_path / "r.db", {"hostname": "n1", "limits": {"usable_cpus": "0"}}, (0, 0), (0, 2))
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        (warning,) = stray_warnings(store.run(1))
    assert (warning.kind, warning.subject) == ("placement", "tcp")
    assert warning.cause == "Ranks of tcp were on CPUs that hockney may not use: CPU 2 of n1."


@pytest.mark.parametrize(
    ("gpus", "options", "count"),
    [
        (2, (("memory", "device"),), 0),
        (1, (("memory", "host:device"),), 1),  # both targets may be on one host
        (2, (("memory", "host:device"),), 0),
        (1, (), 0),
        (0, (("memory", "device"),), 0),
    ],
)
def test_more_ranks_on_a_host_than_it_has_devices_are_warned_of(
    tmp_path: Path, gpus: int, options: tuple[tuple[str, str], ...], count: int
) -> None:
    """Two ranks on each of two hosts; where Linux shows no GPU, none is judged."""
    facts = {**FACTS, "hardware": {"devices": [{"kind": "network"}, *[{"kind": "gpu"}] * gpus]}}
    stored(tmp_path / "r.db", facts, (0, 2, 0, 2))
    points = [Point("tcp", "pairs", 4, 8, options), Point("tcp", "devcopy", 1, 8, (("memory", "device"),))]
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        warned = [warning.cause for warning in device_warnings(store.run(1), points)]
    taken = "Ranks of tcp share a device, on which processes take turns: their figures are scheduling times."
    assert warned == [taken] * count


def test_the_bindings_of_each_host_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(tmp_path / "r.db", FACTS, (0, 2, 0, 2), (0, 2, 0, 2))  # two launches that are alike
    with Store.open(tmp_path / "r.db") as store:
        moving = make_launch("udp", cpus=(1, -1), hosts=("n1", "n2"), bound=("0-3", "200 CPUs"))
        store.add_launch(1, moving)
        store.add_launch(1, make_launch("sim@two", cpus=(-1, -1), hosts=("node 0", "node 1")))
        show(bindings(Run(store, 1)))
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split(maxsplit=3) for line in lines if line.startswith(("tcp", "udp", "sim"))]
    assert rows == [
        ["tcp", "n1", "0-1", "0, 2"],
        ["tcp", "n2", "2-3", "0*, 2*"],
        ["udp", "n1", "0", "1 of 0-3"],
        ["udp", "n2", "1", "unknown of 200 CPUs"],
    ]


def test_an_interface_that_was_named_is_the_only_one_used() -> None:
    interfaces = [{"name": "eth0", "address": "10.0.0.1"}, {"name": "eth1", "address": "10.1.0.1"},
                  {"name": "eth2", "address": None}]  # fmt: skip
    facts = {"hosts": [{"name": "n1", "interfaces": interfaces}]}
    assert used_interfaces(make_info(facts=facts)) == {"n1": interfaces[:2]}
    assert used_interfaces(make_info(facts=facts, plan={"interface": "eth1"})) == {"n1": [interfaces[1]]}
    assert used_interfaces(make_info()) == {}
