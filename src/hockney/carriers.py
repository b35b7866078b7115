"""What of an MPI carries the bytes between ranks of one host, as far as a run tells: shared memory or not."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MPI = re.compile(r"(?P<name>.*(?:MPI|MPICH|MVAPICH2?) \S+) \((?P<carrier>[^()]+)\)")
_OF_MEMORY = ("ob1:vader", "ob1:sm")  # of Open MPI
_OMPI_CHOICES = ("OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl")
# Of UCX_TLS, whose default is all of them.
_UCX_OF_MEMORY = {"all", "sm", "shm", "mm", "sysv", "posix", "cma", "knem", "xpmem"}


def split_library(library: str) -> tuple[str, str | None]:
    """What the worker calls an MPI, `MPICH 4.0.2 (ch4:ucx)`, -> `MPICH 4.0.2` and what carries the bytes, `ch4:ucx`.

    None for the latter where it isn't told, as in runs of earlier versions.
    """
    found = _MPI.fullmatch(library)
    return (found["name"], found["carrier"]) if found else (library, None)


def begins_with(carrier: str, device: str) -> bool:
    """In whole words: `ch4:ucx ofi` begins with `ch4` and with `ch4:ucx`."""
    return carrier == device or carrier.startswith((f"{device}:", f"{device} "))


def not_memory(library: str, environment: Mapping[str, str] | None) -> str:
    """Why messages between ranks of one host do not go through memory: `Open MPI chose ob1:tcp`.

    `environment`: the variables that the run had. Empty where they do, or where nobody knows.
    """
    name, carrier = split_library(library)
    if carrier is None:
        return ""
    if name.startswith("Open MPI"):
        told = [f"{one}={value}" for one in _OMPI_CHOICES if (value := (environment or {}).get(one))]
        by = f", with {' and '.join(told)} set" if told else ""
        return "" if any(begins_with(carrier, one) for one in _OF_MEMORY) else f"Open MPI chose {carrier}{by}"
    allowed = (environment or {}).get("UCX_TLS", "all")
    is_told = begins_with(carrier, "ch4:ucx") and not allowed.startswith("^")
    return f"UCX_TLS was set to {allowed}" if is_told and _UCX_OF_MEMORY.isdisjoint(allowed.split(",")) else ""
