"""Stalls: points that timed out, as some ranks of a job were not done while all others waited for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

HostT = TypeVar("HostT", str, int)
STALLS = "stalls"  # in the stored facts, and in the plan those of an earlier run of the same hosts


@dataclass(frozen=True)
class Stall:
    """A point that timed out after `limit_s`. `hosts`: those of the ranks that kept all others waiting.

    `is_silent`: they did not even report the time limit, as if they had been stopped.
    """

    hosts: tuple[str, ...]
    pattern: str
    bytes: int
    limit_s: float
    is_silent: bool


@dataclass(frozen=True)
class Blamed:
    """A host or a pair of hosts, and the stalls that show it."""

    hosts: tuple[str, ...]
    stalls: tuple[Stall, ...]


def blamed(stalls: Iterable[Stall]) -> list[Blamed]:
    """Who keeps the others waiting: the hosts that were silent, and the culprits of the other stalls."""
    every = list(stalls)
    silent = dict.fromkeys(stall.hosts for stall in every if stall.is_silent and len(stall.hosts) == 1)
    left = [stall for stall in every if not any({*hosts} <= {*stall.hosts} for hosts in silent)]
    return [
        Blamed(hosts, tuple(stall for stall in every if {*hosts} <= {*stall.hosts}))
        for hosts in [*silent, *culprits([stall.hosts for stall in left])]
    ]


def culprits(events: Iterable[tuple[HostT, ...]]) -> list[tuple[HostT, ...]]:
    """Of events that hosts had a part in: a host that is in those with several others, else the two hosts of one.

    Where hosts are in equally many, all of them are culprits: two faulty hosts are in each event together.
    """
    left: list[tuple[HostT, ...]] = list(dict.fromkeys(events))
    found: list[tuple[HostT, ...]] = []
    while left:
        counts = Counter(host for hosts in left for host in hosts)
        most = max(counts.values())
        if most == 1:
            break
        named: list[HostT] = [host for host, count in counts.items() if count == most]
        found += [(host,) for host in named]
        left = [hosts for hosts in left if not {*named}.intersection(hosts)]
    return found + [hosts for hosts in left if len(hosts) == 2]


def to_leave_out(stalls: Iterable[Stall]) -> set[str]:
    """The hosts without which a job would go on: those that were to blame twice."""
    return {who.hosts[0] for who in blamed(stalls) if len(who.hosts) == 1 and len(who.stalls) > 1}
