"""What of an MPI carries the bytes between ranks of one host, as far as a run tells: shared memory or not."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MPI = re.compile(r"(?P<name>.*(?:MPI|MPICH|MVAPICH2?) \S+) \((?P<carrier>[^()]+)\)")
_OF_MEMORY = ("ob1:vader", "ob1:sm", "ob1:smcuda")  # of Open MPI
_OMPI_CHOICES = ("OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl")
# Of UCX_TLS, whose default is all of them.
_UCX_OF_MEMORY = {"all", "sm", "shm", "mm", "sysv", "posix", "cma", "knem", "xpmem"}
_UCX_OF_SOCKETS = {"self", "tcp"}


def split_library(library: str) -> tuple[str, str | None]:
    """What the worker calls an MPI, `MPICH 4.0.2 (ch4:ucx)`, -> `MPICH 4.0.2` and what carries the bytes, `ch4:ucx`.

    None for the latter where it isn't told, as in runs of earlier versions.
    """
    match = _MPI.fullmatch(library)
    return (match["name"], match["carrier"]) if match else (library, None)


def begins_with(carrier: str, device: str) -> bool:
    """In whole words: `ch4:ucx ofi` begins with `ch4` and with `ch4:ucx`."""
    return carrier == device or carrier.startswith((f"{device}:", f"{device} "))


def by_sockets(library: str, environment: Mapping[str, str] | None) -> bool | None:
    """Whether messages between ranks of one host go through sockets; None where that is neither known nor usual.

    `environment`: the variables that the run had. Of a library that tells nothing the usual is taken, memory.
    """
    name, carrier = split_library(library)
    if name.startswith("Open MPI"):
        if carrier is None or any(begins_with(carrier, device) for device in _OF_MEMORY):
            return False
        return True if begins_with(carrier, "ob1:tcp") else None
    # Later ones than 4.0 have shared memory of their own next to UCX.
    allowed = ((environment or {}).get("UCX_TLS") if name.startswith("MPICH 4.0") else None) or "all"
    words = set(allowed.split(","))
    if carrier not in (None, "ch4:ucx") or allowed.startswith("^") or words & _UCX_OF_MEMORY:
        return False
    return True if words <= _UCX_OF_SOCKETS and "tcp" in words else None


def another_way(library: str, environment: Mapping[str, str] | None) -> str:
    """What carries the bytes in place of memory, and why: `Open MPI chose ob1:tcp`; empty where nothing is told."""
    if by_sockets(library, environment) is False:
        return ""
    name, carrier = split_library(library)
    variables = environment or {}
    if not name.startswith("Open MPI"):
        return f"UCX_TLS was set to {variables['UCX_TLS']}"
    told = [f"{name}={variables[name]}" for name in _OMPI_CHOICES if variables.get(name)]
    return f"Open MPI chose {carrier}" + (f", with {' and '.join(told)} set" if told else "")
