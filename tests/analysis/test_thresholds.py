"""The documented sizes of a transport, and the values that a run's environment had set instead."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from tests.analysis.explain.readings import FACTS, curve, found, reading
from tests.shared import finished
from tests.worker.test_session import MPIS, job

from hockney.analysis.thresholds import Threshold, thresholds_of
from hockney.worker.libraries import Library
from hockney.worker.session import WorkerSession

OPENMPI, MPICH, UCX = "mpi@openmpi-4.1.4", "mpi@mpich-5.0.2", "mpi@mpich-4.0.2"
LIBRARIES = {
    OPENMPI: "Open MPI 4.1.4 (ob1:vader:cma tcp)",
    MPICH: "MPICH 5.0.2 (ch4:ofi)",
    UCX: "MPICH 4.0.2 (ch4:ucx)",
    "mpi@openmpi-5.0.1": "Open MPI 5.0.1 (ob1:sm)",
}
VADER, CELL = "OMPI_MCA_btl_vader_eager_limit", "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE"


def documented(transport: str, library: str = "", launcher: str = "", **variables: str) -> list[Threshold]:
    """Those of a transport in a run with these variables."""
    facts = with_variables(**variables)
    return list(thresholds_of(transport, facts, library or LIBRARIES.get(transport, ""), launcher))


def with_variables(**variables: str) -> dict[str, Any]:
    return {**FACTS, "environment": variables}


@pytest.mark.parametrize(
    ("library", "names"),
    [
        ("MPICH 5.0.2 (ch4:ucx ofi)", ["IQUEUE_CELL_SIZE", "IPC_CMA_P2P_THRESHOLD"]),
        ("MPICH 5.0.2 (ch4)", ["IQUEUE_CELL_SIZE", "IPC_CMA_P2P_THRESHOLD"]),
        ("MPICH 5.0.2 (ch3:nemesis)", []),
        ("MPICH 4.0.2 (ch4:ofi:tcp)", ["IQUEUE_CELL_SIZE"]),
        ("MPICH 4.0.2 (ch4:ucx ofi)", ["UCX_POSIX_SEG_SIZE, UCX_SYSV_SEG_SIZE"]),
        ("MPICH 4.0.2 (ch4:ofix)", []),
        ("Open MPI 4.1.4 (ob1:vader:cma tcp)", ["btl_vader_eager_limit", "btl_vader_max_send_size"]),
        ("Open MPI 4.1.4 (ob1:tcp)", ["btl_tcp_eager_limit"]),
        ("Open MPI 5.0.11 (ob1:tcp)", ["btl_tcp_eager_limit"]),
        ("Open MPI 4.1.4 (cm:ofi)", []),
        ("Open MPI 5.0.11 (ob1:sm:cma tcp)", ["btl_sm_eager_limit"]),
    ],
)
def test_a_device_has_the_sizes_of_all_builds_whose_device_begins_with_it(library: str, names: list[str]) -> None:
    name, version = library.partition(" (")[0].rsplit(maxsplit=1)
    known = thresholds_of(f"mpi@{name.lower().replace(' ', '')}-{version}", {}, library)
    assert [one.name.removeprefix("MPIR_CVAR_CH4_").removeprefix("SHM_POSIX_") for one in known] == names


@pytest.mark.parametrize(
    ("transport", "library", "first_bytes"),
    [
        ("pipe", "", {"capacity of a pipe": 65537}),
        ("shm", "", {"inline word": 9, "first cache line": 49, "single-copy threshold": 257}),
        # With its header, 4,096 B hold 4,040.
        (OPENMPI, "", {"btl_vader_eager_limit": 4041, "btl_vader_max_send_size": 32713}),
        (OPENMPI, "Open MPI 4.1.4 (ob1:tcp)", {"btl_tcp_eager_limit": 65481}),
        ("mpi@openmpi-5.0.1", "", {"btl_sm_eager_limit": 4041}),
        (UCX, "", {"UCX_POSIX_SEG_SIZE, UCX_SYSV_SEG_SIZE": 8256}),
        (UCX, "MPICH 4.0.2 (ch4:ofi)", {CELL: 69553}),
        (MPICH, "", {CELL: 8113, "MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD": 8192}),  # messages as long, too
    ],
)
def test_a_threshold_lies_between_the_last_size_before_the_change_and_the_first_after(
    transport: str, library: str, first_bytes: dict[str, int]
) -> None:
    known = documented(transport, library)
    assert {one.name.removeprefix("hockney's "): one.first_bytes for one in known} == first_bytes
    for one in known:
        assert one.lies_between(one.first_bytes - 1, one.first_bytes)
        assert not one.lies_between(one.first_bytes, one.first_bytes + 1)
        assert not one.lies_between(one.first_bytes - 2, one.first_bytes - 1)


def test_the_library_is_asked_by_the_programs_next_to_its_launcher() -> None:
    """A program of that name on the PATH may be another library's."""
    assert documented(MPICH, launcher="/opt/mpich/bin/mpiexec")[0].see == "/opt/mpich/bin/mpivars"
    assert documented(MPICH, launcher="mpiexec")[0].see == "mpivars"
    assert documented("shm")[0].see.startswith("docs/transports.md")


@pytest.mark.parametrize("mpi", [mpi for mpi in MPIS if mpi.kind == "openmpi"], ids=lambda mpi: mpi.name)
def test_an_open_mpi_has_the_documented_limit_and_a_switch_there_is_named(mpi: Library) -> None:
    """What the library says of itself chooses the row, and the command of the row says what the row says."""
    with WorkerSession(job(mpi)) as session:
        library = session.hello().library
        session.close()
    limit = next(thresholds_of(mpi.id, {}, library, str(mpi.program)))
    assert limit.name in ("btl_vader_eager_limit", "btl_sm_eager_limit")
    said = finished(shlex.split(limit.see), check=True).stdout
    assert f'"{limit.name}" (current value: "{limit.default_bytes}"' in said
    switched = curve(lambda size: 300 + 0.1 * size + (1500 if size >= limit.first_bytes else 0), transport=mpi.id)
    findings = found("protocol switches", reading(switched, libraries={mpi.id: library}))
    (switch,) = [finding for finding in findings if finding.facts["answer"] == "confirmed"]
    assert switch.subject.sizes_bytes == (2048, 4096)
    assert (switch.cause, switch.facts["threshold"]) == ("documented", limit.name)


# ---- sizes that the run had set -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "is_cause"), [(8192, True), (2048, False)])
def test_a_size_that_the_run_had_set_replaces_the_default(after: int, is_cause: bool) -> None:
    made = curve(lambda size: 500 + 0.1 * size + (9000 if size > after else 0), transport=OPENMPI)
    facts, libraries = with_variables(**{VADER: "16384"}), {OPENMPI: "Open MPI 4.1.4 (ob1:vader:cma tcp)"}
    findings = found("protocol switches", reading(made, facts=facts, libraries=libraries))
    by_answer = {finding.facts["answer"]: finding for finding in findings}
    if is_cause:
        assert by_answer["confirmed"].facts["set_value"] == f"{VADER}=16384"
    else:
        assert by_answer["suspected"].cause == ""


@pytest.mark.parametrize(
    ("transport", "variable", "value", "first_bytes"),
    [
        (OPENMPI, VADER, "1024", 1024 - 56 + 1),
        (OPENMPI, VADER, "16k", 16384 - 56 + 1),
        (MPICH, CELL, "16384", 16384 - 80 + 1),
        (MPICH, "MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD", "32768", 32768),
        (UCX, "UCX_RNDV_THRESH", "2K", 2048),
        (UCX, "UCX_SYSV_SEG_SIZE", "4096", 4096),
        ("mpi@openmpi-5.0.1", "OMPI_MCA_btl_sm_eager_limit", "8192", 8192 - 56 + 1),
    ],
)
def test_values_of_variables(transport: str, variable: str, value: str, first_bytes: int) -> None:
    (changed,) = [one for one in documented(transport, **{variable: value}) if one.set_value]
    assert (changed.first_bytes, changed.set_value) == (first_bytes, f"{variable}={value}")


def ucx(**variables: str) -> Threshold:
    (threshold,) = documented(UCX, **variables)
    return threshold


def test_the_variable_that_rules_another_is_named() -> None:
    assert ucx().set_value == ""
    assert ucx(UCX_SYSV_SEG_SIZE="4096").set_value == "UCX_SYSV_SEG_SIZE=4096"
    assert ucx(UCX_RNDV_THRESH="1024", UCX_SYSV_SEG_SIZE="4096").set_value == "UCX_RNDV_THRESH=1024"


@pytest.mark.parametrize("auto", ["auto", "AUTO"])
def test_the_default_of_ucx_set_explicitly_sets_nothing(auto: str) -> None:
    assert ucx(UCX_RNDV_THRESH=auto) == ucx()
    assert ucx(UCX_RNDV_THRESH=auto, UCX_SYSV_SEG_SIZE="4096") == ucx(UCX_SYSV_SEG_SIZE="4096")


@pytest.mark.parametrize(
    ("transport", "variable", "value"),
    [
        (OPENMPI, VADER, "many"),
        (OPENMPI, VADER, "-1"),
        (OPENMPI, VADER, "99999999999999"),
        (UCX, "UCX_RNDV_THRESH", "inf"),
    ],
)
def test_a_value_that_is_no_size_leaves_the_size_unknown(transport: str, variable: str, value: str) -> None:
    assert len(documented(transport, **{variable: value})) == len(documented(transport)) - 1


def test_without_a_device_or_a_version_nothing_is_documented() -> None:
    assert list(thresholds_of(OPENMPI, {}, "Open MPI 4.1.4")) == documented("mpi@mpich") == []


def test_the_buffer_of_tcp_is_that_of_the_machine() -> None:
    facts = {**FACTS, "network": {"tcp_receive_buffer_bytes": 8192}}
    assert [one.first_bytes for one in thresholds_of("tcp", facts)] == [8193]
    assert documented("tcp") == []


def test_sizes_of_memory_are_none_where_ucx_may_use_only_sockets() -> None:
    def names(**variables: str) -> list[str]:
        return [one.name for one in documented(UCX, **variables)]

    memory, sockets = ["UCX_POSIX_SEG_SIZE, UCX_SYSV_SEG_SIZE"], ["UCX_TCP_TX_SEG_SIZE"]
    assert names() == names(UCX_TLS="posix,self") == names(UCX_TLS="all") == memory
    assert names(UCX_TLS="tcp,self") == sockets
    assert ucx(UCX_TLS="tcp,self").first_bytes == 8192
    assert names(UCX_TLS="rc,self") == names(UCX_TLS="rc,tcp") == []
    assert ucx(UCX_TLS="tcp,self", UCX_TCP_TX_SEG_SIZE="32K").first_bytes == 32768


@pytest.mark.parametrize(("value", "is_there"), [("0", False), ("no", False), ("1", True)])
def test_a_disabled_feature_has_no_size(value: str, is_there: bool) -> None:
    names = [one.name for one in documented(MPICH, MPIR_CVAR_CH4_CMA_ENABLE=value)]
    assert ("MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD" in names) is is_there
