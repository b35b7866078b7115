"""The topology from sysfs and hwloc, and the placement of ranks on it."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest
from tests.machine.trees import grow, two_sockets

from hockney.machine import placement
from hockney.machine.files import format_cpus, parse_cpus
from hockney.machine.topology import Cache, Node, Topology, read_topology


@pytest.fixture
def sockets(tmp_path: Path) -> Topology:
    return read_topology(two_sockets(tmp_path))


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0", (0,)), ("0-2,8\n", (0, 1, 2, 8)), ("", ()), (None, ()), ("0-1,,x,3-y", (0, 1))],
)
def test_sets_of_cpus_are_read(text: str | None, cpus: tuple[int, ...]) -> None:
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["", "0", "0-2,8", "1,3,5-6"])
def test_sets_of_cpus_are_written_as_linux_does(text: str) -> None:
    assert format_cpus(parse_cpus(text)) == text


# ---- topology -------------------------------------------------------------------------------------------------------


def test_sysfs(sockets: Topology) -> None:
    assert sockets.source == "sysfs"
    assert sockets.cores == tuple((core, core + 8) for core in range(8))
    assert sockets.packages == ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15))
    assert sockets.nodes[1] == Node((4, 5, 6, 7, 12, 13, 14, 15), 1024 * 1024)
    assert sockets.last_level() == ((0, 1, 8, 9), (2, 3, 10, 11), (4, 5, 12, 13), (6, 7, 14, 15))
    assert Cache(3, "unified", 32 << 20, 64, (0, 1, 8, 9)) in sockets.caches
    assert Cache(1, "data", 48 << 10, 64, (3, 11)) in sockets.caches
    assert len(sockets.caches) == 12


@pytest.mark.parametrize(
    ("one", "other", "borders"), [(0, 0, 0), (0, 8, 0), (0, 1, 1), (0, 9, 1), (0, 2, 2), (3, 4, 3)]
)
def test_borders_between_two_cpus(sockets: Topology, one: int, other: int, borders: int) -> None:
    """Threads of a core, cores of a cache, caches of a socket, sockets; a node is a socket here, so one border."""
    assert sockets.borders(one, other) == sockets.borders(other, one) == borders


def test_topology_survives_json(sockets: Topology) -> None:
    again = Topology.from_json(json.loads(json.dumps(sockets.as_json())))
    assert dataclasses.replace(again, caches=()) == dataclasses.replace(sockets, caches=())
    assert sorted(again.caches, key=str) == sorted(sockets.caches, key=str)


def test_no_sysfs(tmp_path: Path) -> None:
    assert read_topology(tmp_path) == Topology()
    assert Topology().last_level() == ()


@pytest.mark.parametrize(
    ("files", "slower"),
    [
        ({"sys/devices/cpu_core/cpus": "0-3", "sys/devices/cpu_atom/cpus": "4-5"}, (4, 5)),
        (
            {
                "sys/devices/system/cpu/cpu0/cpu_capacity": "446",
                "sys/devices/system/cpu/cpu1/cpu_capacity": "1024",
                "sys/devices/system/cpu/cpu2/cpu_capacity": "446",
            },
            (0, 2),
        ),
        ({"sys/devices/system/cpu/cpu0/cpu_capacity": "1024"}, ()),
        ({"sys/devices/cpu_atom/cpus": "0-5"}, ()),  # all are of one kind
        ({}, ()),
    ],
)
def test_slower_kinds_of_cores(files: dict[str, str], slower: tuple[int, ...], tmp_path: Path) -> None:
    cpus = {f"sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list": str(cpu) for cpu in range(6)}
    root = grow(tmp_path, {"sys/devices/system/cpu/online": "0-5", **cpus, **files})
    assert read_topology(root).slower == slower


# ---- where ranks go -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "usable", "chosen"),
    [
        (1, range(16), (0,)),
        (2, range(16), (0, 1)),  # two cores under one cache, no siblings
        (3, range(16), (0, 1, 2)),  # one package
        (5, range(16), (0, 1, 2, 3, 4)),  # both packages
        (8, range(16), tuple(range(8))),
        (10, range(16), (*range(8), 8, 9)),  # siblings only when cores are used up
        (18, range(16), (*range(16), 0, 1)),  # oversubscribed
        (2, (0, 2, 8, 10, 11), (2, 11)),  # the one cache with two usable cores, by the threads that may be used
        (3, (0, 1, 4, 6), (0, 1, 4)),  # no package holds three
        (3, (1, 4, 6, 7), (4, 6, 7)),  # the second one does
        (2, (5,), (5, 5)),
        (3, (0, 1, 8), (0, 1, 8)),  # of one core a sibling, too
        (4, (0, 1, 8), (0, 1, 8, 0)),
        (2, (0, 99), (0, 99)),  # a CPU that the topology does not know
        (0, range(16), ()),
        (2, (), ()),
    ],
)
def test_choice_of_cpus(ranks: int, usable: tuple[int, ...], chosen: tuple[int, ...], sockets: Topology) -> None:
    assert placement.choose_cpus(ranks, sockets, usable) == chosen


def test_fast_cores_are_taken_before_slow_ones() -> None:
    shared = Cache(3, "unified", 1 << 20, 64, (0, 1, 2, 3))
    mixed = Topology("sysfs", cores=((0,), (1,), (2,), (3,)), caches=(shared,), slower=(0, 1))
    assert placement.choose_cpus(3, mixed, range(4)) == (2, 3, 0)


def test_ranks_that_fit_no_package_fill_one_first() -> None:
    caches = tuple(Cache(3, "unified", 1 << 20, 64, (cpu,)) for cpu in range(4))
    cores = tuple((cpu,) for cpu in range(4))
    spread = Topology("sysfs", cores=cores, packages=((0, 2), (1, 3)), caches=caches)
    assert placement.choose_cpus(3, spread, range(4)) == (0, 2, 1)


def test_the_smallest_cache_of_a_level_counts() -> None:
    kinds = [(1, "data", 48), (1, "data", 32), (1, "instruction", 16), (2, "unified", 512), (2, "unified", 2048)]
    caches = [Cache(level, kind, kib << 10, 64, (cpu,)) for cpu, (level, kind, kib) in enumerate(kinds)]
    caches.append(Cache(3, "unified", None, 64, (0,)))
    assert Topology("sysfs", caches=tuple(caches)).cache_sizes() == {1: 32 << 10, 2: 512 << 10}


def test_without_any_topology_cpus_are_taken_in_order() -> None:
    assert placement.choose_cpus(3, Topology(), (4, 6, 5)) == (4, 5, 6)


def test_where_nothing_can_be_pinned_nothing_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "can_pin", lambda: False)
    assert placement.choose_cpus(2) == ()


def test_a_system_without_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    assert placement.usable_cpus() == tuple(range(os.cpu_count() or 1))
    assert not placement.can_pin()


def test_a_sandbox_that_forbids_pinning(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, cpus: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", refuse, raising=False)
    assert not placement.can_pin()


def test_this_machine_has_cpus_for_ranks() -> None:
    chosen = placement.choose_cpus(3)
    assert set(chosen) <= set(placement.usable_cpus())
    assert len(chosen) == (3 if placement.can_pin() else 0)
