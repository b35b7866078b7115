"""Documented sizes that the environment of a run had set otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.analysis.explain.readings import FACTS, curve, found, reading
from tests.analysis.explain.test_reading import explained, pingpongs

from hockney.analysis.explain.thresholds import thresholds_of, unreadable

OPENMPI, MPICH = "mpi@openmpi-4.1.4", "mpi@mpich-5.0.2"
VADER, CELL = "OMPI_MCA_btl_vader_eager_limit", "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE"


def with_variables(**variables: str) -> dict[str, Any]:
    return {**FACTS, "environment": variables}


def test_a_size_that_the_run_had_set_stands_in_place_of_the_default() -> None:
    def told(after_bytes: int, name: str = "protocol switches") -> str:
        made = curve(lambda size: 500 + 0.1 * size + (9000 if size > after_bytes else 0), transport=OPENMPI)
        known = reading(
            made, facts=with_variables(**{VADER: "16384"}), libraries={OPENMPI: "Open MPI 4.1.4 (ob1:vader:cma tcp)"}
        )
        return " ".join(one.sentence for one in found(name, known))

    own = f"btl_vader_eager_limit, which this run had set to 16384 ({VADER}); 4 KiB by default: eager limit"
    assert f"Documented there: {own}" in told(8192)
    assert "No documented threshold" in told(2048)  # where it lies by default
    assert own in told(2048, "nothing at a documented size")
    assert "btl_vader_eager_limit" not in told(8192, "nothing at a documented size")


@pytest.mark.parametrize(
    ("transport", "variable", "value", "first_bytes"),
    [
        (OPENMPI, VADER, "1024", 1024 - 56 + 1),
        (OPENMPI, VADER, "16k", 16384 - 56 + 1),
        (MPICH, CELL, "16384", 16384 - 80 + 1),
        (MPICH, "MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD", "32768", 32768),
        ("mpi@mpich-4.0.2", "UCX_RNDV_THRESH", "2K", 2048),
        ("mpi@mpich-4.0.2", "UCX_SYSV_SEG_SIZE", "4096", 4096),
        ("mpi@openmpi-5.0.1", "OMPI_MCA_btl_sm_eager_limit", "8192", 8192 - 56 + 1),
    ],
)
def test_what_a_variable_sets(transport: str, variable: str, value: str, first_bytes: int) -> None:
    (own,) = [one for one in thresholds_of(transport, with_variables(**{variable: value})) if one.set is not None]
    assert own.first_bytes == first_bytes
    assert own.lies_between(first_bytes - 1, first_bytes)
    assert not list(unreadable(transport, with_variables(**{variable: value})))


def test_a_variable_that_is_the_name_of_its_size_is_named_once() -> None:
    (own,) = [one for one in thresholds_of(MPICH, with_variables(**{CELL: "16384"})) if one.set is not None]
    assert own.text.startswith(f"{CELL}, which this run had set to 16384; 8 KiB by default: ")


def test_a_size_that_another_variable_sets_is_named_by_that_one_alone() -> None:
    def told(**variables: str) -> str:
        (own,) = [one for one in thresholds_of(ucx, with_variables(**variables), library) if one.source]
        return own.text.partition(" (see ")[0]

    ucx, library, both = "mpi@mpich-4.0.2", "MPICH 4.0.2 (ch4:ucx)", "UCX_POSIX_SEG_SIZE, UCX_SYSV_SEG_SIZE"
    what = "what UCX copies through shared memory in one piece: from there on a message is announced first"
    unless = "unless UCX_RNDV_THRESH is more"
    announced = "from there on a message is announced first"
    assert told(UCX_RNDV_THRESH="1024") == f"UCX_RNDV_THRESH, which this run had set to 1024: {announced}"
    own = "which this run had set to 4096 (UCX_SYSV_SEG_SIZE)"
    assert told(UCX_SYSV_SEG_SIZE="4096") == f"{both}, {own}; 8,256 B by default: {what}, {unless}"
    assert told() == f"{both}, 8,256 B by default: {what}, {unless}"


@pytest.mark.parametrize("auto", ["auto", "AUTO"])
def test_the_default_of_ucx_said_out_loud_sets_nothing(auto: str) -> None:
    """It must not hide what the segments were set to either."""
    alone = with_variables(UCX_RNDV_THRESH=auto)
    ucx = "mpi@mpich-4.0.2"
    assert list(thresholds_of(ucx, alone)) == list(thresholds_of(ucx, with_variables()))
    both = with_variables(UCX_RNDV_THRESH=auto, UCX_SYSV_SEG_SIZE="4096")
    (own,) = [one for one in thresholds_of(ucx, both) if one.set is not None]
    assert own.set is not None
    assert (own.set.variable, own.first_bytes) == ("UCX_SYSV_SEG_SIZE", 4096)
    assert not [*unreadable(ucx, alone), *unreadable(ucx, both)]


@pytest.mark.parametrize(
    ("transport", "variable", "value"),
    [
        (OPENMPI, VADER, "many"),
        (OPENMPI, VADER, "-1"),
        (OPENMPI, VADER, "010000"),  # octal, to Open MPI
        (OPENMPI, VADER, "99999999999999"),
        (MPICH, CELL, "16K"),  # of which MPICH knows no K
        ("mpi@mpich-4.0.2", "UCX_RNDV_THRESH", "inf"),
    ],
)
def test_a_value_that_is_no_size_leaves_the_size_unknown(transport: str, variable: str, value: str) -> None:
    facts = with_variables(**{variable: value})
    ((name, setting),) = unreadable(transport, facts)
    assert (setting.variable, setting.value) == (variable, value)
    assert name not in [one.name for one in thresholds_of(transport, facts)]
    assert name in [one.name for one in thresholds_of(transport, {})]


def test_a_value_that_is_no_size_is_said(tmp_path: Path) -> None:
    of = explained(tmp_path / "r.db", pingpongs(OPENMPI, jump_ns=2000.0), facts=with_variables(**{VADER: "many"}))
    assert any(f"{VADER} was set to 'many', which can't be read as a size here" in note for note in of.notes)
    (switch,) = [each for each in of.findings if each.kind == "jump"]
    assert "No documented threshold" in switch.sentence
    assert switch.remedy is not None
    assert f"`{VADER}=many hockney run " in switch.remedy


def test_sizes_of_memory_are_none_where_ucx_may_use_sockets_alone() -> None:
    def names(**variables: str) -> list[str]:
        return [one.name for one in thresholds_of("mpi@mpich-4.0.2", with_variables(**variables), library)]

    library = "MPICH 4.0.2 (ch4:ucx)"
    memory, sockets = ["UCX_POSIX_SEG_SIZE, UCX_SYSV_SEG_SIZE"], ["UCX_TCP_TX_SEG_SIZE"]
    assert names() == names(UCX_TLS="posix,self") == names(UCX_TLS="all") == memory
    assert names(UCX_TLS="tcp,self") == sockets
    assert names(UCX_TLS="rc,self") == names(UCX_TLS="rc,tcp") == []
    (own,) = thresholds_of("mpi@mpich-4.0.2", with_variables(UCX_TLS="tcp,self", UCX_TCP_TX_SEG_SIZE="32K"), library)
    assert own.first_bytes == 32768


@pytest.mark.parametrize(("value", "is_there"), [("0", False), ("no", False), ("1", True)])
def test_a_size_of_what_was_switched_off_is_none(value: str, is_there: bool) -> None:
    names = [one.name for one in thresholds_of(MPICH, with_variables(MPIR_CVAR_CH4_CMA_ENABLE=value))]
    assert ("MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD" in names) is is_there
