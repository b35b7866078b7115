"""Names of transports for people: `Open MPI 4.1.4` for `mpi@openmpi-4.1.4`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from hockney.model import Launch, split_placed


def readable_name(transport: str, library: str) -> str:
    """The library with its version and the transport's variant, for MPI and its like; else the transport's own name.

    `library` is how it introduced itself in a launch.
    """
    base, at, rest = split_placed(transport)[0].partition("@")
    name = library.partition(" (")[0]
    if not at or not name:
        return split_placed(transport)[0]
    variant = rest.partition(":")[2]
    kind = f"{name} OpenSHMEM" if base == "shmem" and "SHMEM" not in name else name
    return f"{kind} {variant}".rstrip()


def readable_names(launches: Collection[Launch]) -> dict[str, str]:
    """The name of each transport, with where its ranks are in a run of several placements: `tcp, within n1`.

    The exact one where two would read the same.
    """
    where = placements(launches)
    return {name: ", ".join(filter(None, (plain, where[name]))) for name, plain in plain_names(launches).items()}


def plain_names(launches: Collection[Launch]) -> dict[str, str]:
    """The names without the placement."""
    where = placements(launches)
    names = {launch.transport: readable_name(launch.transport, launch.library) for launch in launches}
    count = Counter((name, where[transport]) for transport, name in names.items())
    return {
        transport: name if count[name, where[transport]] == 1 else split_placed(transport)[0]
        for transport, name in names.items()
    }


def placements(launches: Iterable[Launch]) -> dict[str, str]:
    """Where the ranks of each transport are: `between n1 and n2`, `within n1` or `2 on each host`; else empty.

    All are empty in a run that places no transport in two ways.
    """
    together: dict[str, set[frozenset[str]]] = {}
    for launch in launches:
        together.setdefault(launch.transport, set())
        if launch.ranks > 1:
            together[launch.transport].add(frozenset(launch.hosts))
    per_host = {transport: split_placed(transport)[1] for transport in together}
    if not any(per_host.values()):
        return dict.fromkeys(together, "")
    return {transport: _placement(per_host[transport], hosts) for transport, hosts in together.items()}


def _placement(per_host: str, together: Collection[frozenset[str]]) -> str:
    if not together:
        return ""
    if all(len(hosts) == 1 for hosts in together):
        return f"within {', '.join(sorted(host for hosts in together for host in hosts))}"
    pair = sorted(next(iter(together)))
    is_pair = len(together) == 1 and len(pair) == 2
    ends = " and ".join(pair) if is_pair else "hosts"
    return f"{per_host} on each host" if per_host else f"between {ends}"
