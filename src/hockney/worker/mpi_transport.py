"""The device of an MPI that carries the bytes between ranks of one host: shared memory or another."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MPI = re.compile(r"(?P<name>.*(?:MPI|MPICH|MVAPICH2?) \S+) \((?P<carrier>[^()]+)\)(?:, .*)?")
_OF_MEMORY = ("ob1:vader", "ob1:sm", "ob1:smcuda")  # of Open MPI
_OMPI_CHOICES = ("OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl")
# Values of UCX_TLS, whose default is all of them.
_UCX_OF_MEMORY = {"all", "sm", "shm", "mm", "sysv", "posix", "cma", "knem", "xpmem"}
_UCX_OF_SOCKETS = {"self", "tcp"}


def split_library(library: str) -> tuple[str, str | None]:
    """`MPICH 4.0.2 (ch4:ucx)`, as ranks name it, -> `MPICH 4.0.2` and the device, None if unknown, as in imports."""
    match = _MPI.fullmatch(library)
    return (match["name"], match["carrier"]) if match else (library, None)


def begins_with(carrier: str, device: str) -> bool:
    """Whether a device begins with these whole words: `ch4:ucx ofi` begins with `ch4` and with `ch4:ucx`."""
    return carrier == device or carrier.startswith((f"{device}:", f"{device} "))


def by_sockets(library: str, environment: Mapping[str, str] | None) -> bool | None:
    """Whether messages between ranks of one host use sockets; None if that is unknown.

    `environment`: the variables that the run had. A library without a known device is assumed to use memory.
    """
    name, carrier = split_library(library)
    if name.startswith("Open MPI"):
        if carrier is None or any(begins_with(carrier, device) for device in _OF_MEMORY):
            return False
        return True if begins_with(carrier, "ob1:tcp") else None
    # Versions after 4.0 have shared memory in addition to UCX.
    allowed = ((environment or {}).get("UCX_TLS") if name.startswith("MPICH 4.0") else None) or "all"
    words = set(allowed.split(","))
    if carrier not in (None, "ch4:ucx") or allowed.startswith("^") or words & _UCX_OF_MEMORY:
        return False
    return True if words <= _UCX_OF_SOCKETS and "tcp" in words else None


def is_on_ucx(library: str, *, remote: bool = False) -> bool:
    """Whether all messages are sure to go through UCX: between ranks of one host, or with `remote` of two."""
    name, carrier = split_library(library)
    # Other versions of MPICH have shared memory of their own; a device with more words has a choice.
    return carrier == "ucx" or (carrier == "ch4:ucx" and (remote or name.startswith("MPICH 4.0")))


def another_way(library: str, environment: Mapping[str, str] | None) -> str:
    """The device in place of memory, and why: `Open MPI chose ob1:tcp`; empty if there is none."""
    if by_sockets(library, environment) is False:
        return ""
    name, carrier = split_library(library)
    variables = environment or {}
    if not name.startswith("Open MPI"):
        return f"UCX_TLS was set to {variables['UCX_TLS']}"
    chosen = [f"{name}={variables[name]}" for name in _OMPI_CHOICES if variables.get(name)]
    return f"Open MPI chose {carrier}" + (f", with {' and '.join(chosen)} set" if chosen else "")
