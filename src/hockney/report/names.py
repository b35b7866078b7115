"""Names of transports for people: `Open MPI 4.1.4` for `mpi@openmpi-4.1.4`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hockney.model import Launch


def readable_name(transport: str, library: str) -> str:
    """The library with its version and the transport's variant, for MPI and its like; else the transport's own name.

    `library` is how it introduced itself in a launch.
    """
    base, at, rest = transport.partition("@")
    name = library.partition(" (")[0]
    if not at or not name:
        return transport
    variant = rest.partition(":")[2]
    kind = f"{name} OpenSHMEM" if base == "shmem" and "SHMEM" not in name else name
    return f"{kind} {variant}".rstrip()


def readable_names(launches: Iterable[Launch]) -> dict[str, str]:
    """The name of each transport; the exact one where two would read the same."""
    names = {launch.transport: readable_name(launch.transport, launch.library) for launch in launches}
    count = Counter(names.values())
    return {transport: name if count[name] == 1 else transport for transport, name in names.items()}
