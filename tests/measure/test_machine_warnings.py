"""Warnings of what limits precision on a machine, from facts of fake ones and moments of watching."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_info, make_launch
from tests.machine.trees import two_sockets

from hockney.machine.activity import Moment, Program
from hockney.machine.facts import facts as machine_facts
from hockney.machine.topology import read_topology
from hockney.measure.warnings import warnings_before, warnings_during, warnings_of_map
from hockney.results.store import Store
from hockney.worker.build import FAMILY_SOURCES

QUIET = Moment(0.3, steal=0.0, busy_cpus=0.0)


@pytest.fixture
def facts(tmp_path: Path) -> dict[str, Any]:
    """A quiet machine with nothing to complain of."""
    return {
        "os": {"kernel": "Linux 6.1"},
        "cpu": {"governors": ["performance"]},
        "topology": read_topology(two_sockets(tmp_path)).as_json(),
        "clock": {"source": "tsc", "available": ["tsc", "hpet"]},
        "limits": {"usable_cpus": "0-15", "quota_cpus": None, "can_pin": True},
        "surroundings": {"hypervisor": None, "container": None},
        "environment": {"LD_LIBRARY_PATH": "/lib"},
    }


def test_the_advice_for_more_ranks_than_cpus_names_transports_that_sleep(facts: dict[str, Any]) -> None:
    changed = {**facts, "limits": {**facts["limits"], "usable_cpus": "0-1"}}
    (warning,) = [one for one in warnings_before(changed, ranks=8, moment=QUIET) if one.kind == "oversubscription"]
    assert warning.remedy.endswith("prefer pipe and unix: their ranks sleep while they wait, others take CPU time.")


def test_a_quiet_machine_needs_no_warning(facts: dict[str, Any]) -> None:
    assert warnings_before(facts, moment=QUIET) == []


@pytest.mark.parametrize(
    ("part", "name", "value", "ranks", "kind", "said"),
    [
        ("limits", "can_pin", False, 2, "pinning", "cannot be pinned to CPUs here"),
        ("limits", "usable_cpus", "3", 2, "oversubscription", "2 ranks share 1 CPU:"),
        ("limits", "quota_cpus", 1.5, 2, "quota", "limits this process to 1.5 CPUs"),
        ("limits", "cma", False, 2, "cma", "refuses copies from process to process (CMA)"),
        ("limits", "ptrace_scope", 1, 2, "cma", "kernel.yama.ptrace_scope is 1, so MPICH copies long messages twice"),
        ("limits", "shared_memory_bytes", 1 << 20, 2, "shm", "/dev/shm has 1 MiB for 2 ranks"),
        ("limits", "loopback", False, 2, "loopback", "loopback interface is down"),
        ("limits", "usable_cpus", "1,9", 2, "smt", "2 ranks on 1 core share hardware threads"),
        ("limits", "usable_cpus", "0-7", 3, "placement", "3 ranks sit on 2 last-level caches"),
        ("limits", "usable_cpus", "0-7", 5, "placement", "5 ranks sit on 2 packages"),
        ("cpu", "governors", ["performance", "powersave"], 2, "governor", "governor is powersave"),
        ("clock", "source", "hpet", 2, "clock", "The clock is hpet"),
        ("surroundings", "hypervisor", "KVM", 2, "virtual", "virtual machine (KVM)"),
        ("surroundings", "hypervisor", "unknown", 2, "virtual", "virtual machine (a hypervisor)"),
        ("surroundings", "container", "Docker", 2, "container", "container (Docker)"),
        ("environment", "UCX_TLS", "tcp", 2, "environment", "change what is measured: UCX_TLS."),
    ],
)
def test_warnings(part: str, name: str, value: object, ranks: int, kind: str, said: str, facts: dict[str, Any]) -> None:
    changed = copy.deepcopy(facts)
    changed[part][name] = value
    (warning,) = warnings_before(changed, ranks=ranks, moment=QUIET)
    assert warning.kind == kind
    assert said in warning.cause
    assert warning.remedy


@pytest.mark.parametrize(
    ("part", "name", "value", "ranks", "kinds"),
    [
        ("limits", "usable_cpus", "0-1", 2, set()),
        ("limits", "quota_cpus", 2.0, 2, set()),
        ("limits", "quota_cpus", 1.99, 2, {"quota"}),
        ("limits", "usable_cpus", "0-3", 2, set()),  # two caches, and room for both ranks on one
        ("network", "tcp_congestion_control", "cubic", 2, set()),
        ("network", "tcp_congestion_control", "bbr", 2, {"congestion"}),
        ("environment", "LD_LIBRARY_PATH", "/elsewhere", 2, set()),
    ],
)
def test_a_limit_that_the_ranks_keep_is_not_warned_of(
    part: str, name: str, value: object, ranks: int, kinds: set[str], facts: dict[str, Any]
) -> None:
    facts[part] = {**facts.get(part, {}), name: value}
    assert {warning.kind for warning in warnings_before(facts, ranks=ranks, moment=QUIET)} == kinds


@pytest.mark.parametrize(("devices", "kinds"), [([], []), (["mlx5_0"], ["memlock"])])
def test_locked_memory_limits_networks_with_rdma(devices: list[str], kinds: list[str], facts: dict[str, Any]) -> None:
    changed = {**facts, "limits": {**facts["limits"], "locked_memory_bytes": 1 << 16}, "network": {"rdma": devices}}
    assert [warning.kind for warning in warnings_before(changed, moment=QUIET)] == kinds


@pytest.mark.parametrize(
    ("uses", "needed_bytes", "kinds"),
    [
        (["shm", "pipe"], 1 << 28, []),
        (["shm", "pipe"], 1 << 30, ["memory"]),
        (["tcp:spin"], 0, ["loopback"]),
        (["shmem@openmpi-4.1.4"], 0, ["loopback", "cma", "shm"]),
    ],
)
def test_only_limits_of_what_is_measured_are_warned_of(
    uses: list[str], needed_bytes: int, kinds: list[str], facts: dict[str, Any]
) -> None:
    facts["limits"] |= {"cma": False, "loopback": False, "shared_memory_bytes": 1 << 20, "memory_bytes": 512 << 20}
    warnings = warnings_before(facts, moment=QUIET, uses=uses, needed_bytes=needed_bytes)
    assert [warning.kind for warning in warnings] == kinds


def test_a_quota_for_all_cpus_limits_no_number_of_ranks(facts: dict[str, Any]) -> None:
    """More ranks than CPUs are slow without a quota, too."""
    facts["limits"] |= {"usable_cpus": "0-1", "quota_cpus": 2.0}
    kinds = [warning.kind for warning in warnings_before(facts, ranks=4, moment=QUIET)]
    assert kinds == ["oversubscription"]


def test_the_cpus_of_a_placement_are_those_of_its_ranks(facts: dict[str, Any]) -> None:
    def kinds(*cpus: int) -> list[str]:
        return [warning.kind for warning in warnings_before(facts, ranks=2, moment=QUIET, cpus=cpus)]

    assert kinds(0, 1, 8, 9) == []
    assert kinds(0, 8, 1, 9) == ["smt"]
    assert kinds(3, 3) == ["oversubscription"]


@pytest.mark.parametrize(
    ("steal", "busy_cpus", "kinds"),
    [(0.01, 0.0, []), (0.011, 0.0, ["steal"]), (0.0, 0.19, []), (0.0, 0.2, ["load"]), (None, None, [])],
)
def test_load_is_warned_of_above_one_percent_stolen_or_from_a_fifth_of_a_cpu(
    steal: float | None, busy_cpus: float | None, kinds: list[str], facts: dict[str, Any]
) -> None:
    moment = Moment(0.3, steal=steal, busy_cpus=busy_cpus)
    assert [warning.kind for warning in warnings_before(facts, moment=moment)] == kinds
    assert len(warnings_during([moment], goes_on=False)) == ("load" in kinds)


@pytest.mark.parametrize(
    ("moment", "kind", "said"),
    [
        (
            Moment(0.3, steal=0.05, busy_cpus=0.0),
            "steal",
            "took 5% of the CPU time for other virtual machines when the run began.",
        ),
        (
            Moment(0.3, steal=0.0, busy_cpus=1.3, programs=(Program("cc1", 12, 1.0), Program("make", 3, 0.2))),
            "load",
            "cc1 (12) and make (3) used 1.3 CPUs when the run began.",
        ),
        (Moment(0.3, steal=0.0, busy_cpus=2.0), "load", "Other programs used 2.0 CPUs when the run began."),
    ],
)
def test_warnings_of_a_moment(moment: Moment, kind: str, said: str, facts: dict[str, Any]) -> None:
    (warning,) = warnings_before(facts, moment=moment)
    assert warning.kind == kind
    assert said in warning.cause


def test_a_warning_names_its_moment(facts: dict[str, Any]) -> None:
    moment = Moment(0.3, steal=0.05, busy_cpus=2.0)
    warnings = warnings_before(facts, moment=moment, when="a moment ago")
    assert all(warning.cause.endswith(" a moment ago.") for warning in warnings)
    assert len(warnings) == 2


def others(*cpus: float, programs: tuple[Program, ...] = ()) -> list[Moment]:
    return [Moment(2.0, busy_cpus=busy, programs=programs if busy > 1 else ()) for busy in cpus]


@pytest.mark.parametrize(
    ("launches", "goes_on", "said"),
    [
        (others(1.0), False, "Other programs used 1.0 CPUs while the run measured."),
        (others(1.0), True, "Other programs used 1.0 CPUs while the run went on."),
        (others(0.0, 0.1, 0.5), False, "Other programs used 0.5 CPUs during 1 of 3 launches."),
        (
            others(
                1.2, 1.4, 0.0, 1.9, programs=(Program("sh", 12, 0.4), Program("make", 9, 0.5), Program("sh", 13, 0.3))
            ),
            True,
            "sh, make and others used 1.4 CPUs during 3 of 4 more launches.",
        ),
    ],
)
def test_load_of_others_during_launches(launches: list[Moment], goes_on: bool, said: str) -> None:
    (warning,) = warnings_during(launches, goes_on=goes_on)
    assert (warning.kind, warning.cause) == ("others", said)
    assert warning.remedy


def test_the_programs_that_used_most_cpu_time_in_all_launches_are_named() -> None:
    launches = [
        Moment(9.0, busy_cpus=0.6, programs=(Program("cc1", 7, 0.3), Program("make", 3, 0.2), Program("sh", 4, 0.1))),
        Moment(1.0, busy_cpus=2.0, programs=(Program("backup", 8, 1.5), Program("cc1", 9, 0.5))),
    ]
    (warning,) = warnings_during(launches, goes_on=False)
    assert warning.cause.startswith("cc1, make, backup and others used 1.3 CPUs ")


def test_quiet_launches_and_unknown_ones_are_not_warned_of() -> None:
    assert warnings_during([*others(0.0, 0.1), Moment(2.0)], goes_on=False) == []
    assert warnings_during([], goes_on=False) == []


@pytest.mark.parametrize(
    ("map_by", "cpus", "said"),
    [
        ("socket", (0, 4, 1, 5), ["4 ranks sit on 2 packages"]),
        ("socket", (0, 4), []),  # one pair, which is as distant as all others
        ("node", (1, 9, 0, 8), ["4 ranks on 8 cores share hardware threads"]),
        ("core", (0, 4, 1, 5), []),  # hockney chooses, and warns before
    ],
)
def test_where_map_put_the_ranks_is_warned_of_when_they_have_run(
    map_by: str, cpus: tuple[int, ...], said: list[str], facts: dict[str, Any], tmp_path: Path
) -> None:
    assert warnings_before(facts, ranks=5, moment=QUIET, mapped=True) == []
    with Store.open(tmp_path / "r.db") as store:
        run_id = store.create_run(make_info(facts=facts, plan={"map_by": map_by}), ())
        for used in (cpus[:2], cpus):
            store.add_launch(run_id, make_launch("tcp", ranks=len(used), cpus=used, hosts=("here",) * len(used)))
        warnings = warnings_of_map(store.run(run_id))
    assert [warning.cause.split(",")[0] for warning in warnings] == said


@pytest.mark.parametrize("family", FAMILY_SOURCES)
def test_workers_are_another_hockney(family: str) -> None:
    moment = Moment(0.3, busy_cpus=1.0, programs=(Program(f"{family}-2c6325b88"[:15], 7, 1.0),))
    (warning,) = warnings_during([moment], goes_on=False)
    assert "another hockney" in warning.cause


def test_facts_of_a_machine_without_any_need_no_warning(tmp_path: Path) -> None:
    assert warnings_before(machine_facts(tmp_path, {}), ranks=1, moment=Moment(0.3)) == []


def test_facts_that_are_missing_raise_nothing() -> None:
    for facts in ({}, {"cpu": None, "topology": None, "limits": {"usable_cpus": None}}):
        assert warnings_before(facts, moment=QUIET) == []
