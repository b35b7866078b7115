"""How an MPI carries messages between ranks of one host, from the name that it gives itself and its variables."""

from __future__ import annotations

import pytest

from hockney.worker.mpi_transport import another_way, by_sockets, split_library

UCX = "MPICH 4.0.2 (ch4:ucx)"
TCP = "Open MPI 4.1.4 (ob1:tcp)"


@pytest.mark.parametrize(
    ("library", "variables", "sockets", "way"),
    [
        (UCX, None, False, ""),
        (UCX, {"UCX_TLS": "tcp,self"}, True, "UCX_TLS was set to tcp,self"),
        (UCX, {"UCX_TLS": "tcp,self,sm"}, False, ""),
        (UCX, {"UCX_TLS": "^sm"}, False, ""),
        (UCX, {"UCX_TLS": "rc,tcp"}, None, "UCX_TLS was set to rc,tcp"),
        (UCX, {"UCX_TLS": "self"}, None, "UCX_TLS was set to self"),
        ("MPICH 4.0.2", {"UCX_TLS": "tcp"}, True, "UCX_TLS was set to tcp"),
        ("MPICH 4.0.2 (ch4:ofi)", {"UCX_TLS": "tcp"}, False, ""),
        ("MPICH 5.0.0 (ch4:ucx)", {"UCX_TLS": "tcp"}, False, ""),  # it has shared memory in addition
        ("Open MPI 4.1.4", {}, False, ""),
        ("Open MPI 4.1.4 (ob1:vader)", {}, False, ""),
        ("Open MPI 5.0.1 (ob1:sm self)", {}, False, ""),
        (TCP, None, True, "Open MPI chose ob1:tcp"),
        (
            TCP,
            {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_pml": "ob1", "OMPI_MCA_mtl": ""},
            True,
            "Open MPI chose ob1:tcp, with OMPI_MCA_pml=ob1 and OMPI_MCA_btl=tcp,self set",
        ),
        ("Open MPI 4.1.4 (cm:psm2)", {}, None, "Open MPI chose cm:psm2"),
        ("Open MPI 4.1.4 (ob1:tcpx)", {}, None, "Open MPI chose ob1:tcpx"),
    ],
)
def test_the_way_between_ranks_of_one_host(
    library: str, variables: dict[str, str] | None, *, sockets: bool | None, way: str
) -> None:
    assert (by_sockets(library, variables), another_way(library, variables)) == (sockets, way)


def test_a_name_without_a_device() -> None:
    assert split_library(UCX) == ("MPICH 4.0.2", "ch4:ucx")
    assert split_library("hockney shm (futex)") == ("hockney shm (futex)", None)
