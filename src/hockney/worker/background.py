"""Backgrounds: traffic that other ranks make, on separate hosts or CPUs, while a point is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from hockney.errors import UsageError
from hockney.machine.placement import choose_cpus, usable_cpus
from hockney.model import Point
from hockney.units import counted
from hockney.worker.catalogue import Catalogue
from hockney.worker.placement import Placement


class _Kind(NamedTuple):
    pattern: str
    bytes: int
    options: tuple[tuple[str, str], ...] = ()
    root_ends: bool = False
    """Whether the traffic lasts until rank 0 has received it; otherwise it ends as soon as one rank has."""


BACKGROUNDS: dict[str, _Kind] = {
    "incast": _Kind("funnel", 1 << 16, root_ends=True),
    "alltoall": _Kind("alltoall", 1 << 16),
    "bulk": _Kind("pairs", 1 << 16, (("window", "16"),)),
}
"""What ranks do in each background: a stream that keeps their links busy."""


@dataclass(frozen=True)
class Background:
    """A background and where its ranks run: one on each of `hosts`, or on these CPUs of this machine."""

    name: str
    ranks: int
    hosts: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()

    def point(self, transport: str) -> Point:
        """The point that its ranks repeat on a transport."""
        kind = BACKGROUNDS[self.name]
        return Point(transport, kind.pattern, self.ranks, kind.bytes, kind.options)


class Places(NamedTuple):
    """The ranks of the background, and where those run that are measured: elsewhere."""

    background: Background
    placement: Placement


def place(
    name: str,
    ranks: int | None,
    victims: int,
    catalogue: Catalogue,
    where: Placement,
    *,
    share: bool = False,
) -> Places:
    """The first hosts (or CPUs) for the `victims`, the ranks that are measured; the last ones for the background.

    `ranks`: how many the background has; None: one on each host (or CPU) that the victims leave. `cpus` empty: hockney
    chooses. `share`: the background may use CPUs of the victims. Raises UsageError where there are too few.
    """
    hosts, cpus = where.hosts, where.cpus
    least, _, step = catalogue.pattern(BACKGROUNDS[name].pattern).ranks
    if ranks is not None and (ranks < least or ranks % step):
        multiple = f", a multiple of {step}" if step > 1 else ""
        raise UsageError(f"--background {name} takes {least} ranks or more{multiple}, not {ranks}")
    count = len(hosts) or len(set(cpus)) or len(usable_cpus())
    left = max(0, count - victims)
    wanted = ranks or max(least, left - left % step)
    # Hosts hold several ranks, so a background of a given size may crowd the victims together.
    if wanted >= count if hosts and ranks else wanted > left and not share:
        unit, fix = ("host", "name more") if hosts else ("CPU", "measure fewer ranks, or add --oversubscribe")
        raise UsageError(
            f"--background {name} needs {counted(wanted, unit)}, but the other ranks ({victims}) leave "
            f"{left} of {count}: {fix}"
        )
    if hosts:
        theirs = tuple(map(str, hosts[-wanted:]))
        return Places(Background(name, wanted, hosts=theirs), replace(where, hosts=hosts[:-wanted]))
    order = cpus or choose_cpus(victims + wanted)
    others = tuple(order[rank % len(order)] for rank in range(victims, victims + wanted)) if order else ()
    return Places(Background(name, wanted, cpus=others), replace(where, cpus=order[:victims]))
