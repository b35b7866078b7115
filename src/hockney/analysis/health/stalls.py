"""Stalls: points that had no end, as some ranks of a job were not done while all others waited for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

STALLS = "stalls"  # in the stored facts, and in the plan those of an earlier run of the same hosts


@dataclass(frozen=True)
class Stall:
    """A point that had no end after `limit_s`. `hosts`: those of the ranks that kept all others waiting.

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
    """Who keeps the others waiting: a host that was silent, or that is in stalls with several others; else a pair.

    Where hosts are in equally many, all of them have a part: two faulty hosts are in each stall together.
    """
    left = list(stalls)
    found = []
    while left:
        counts = Counter(host for hosts in {stall.hosts for stall in left} for host in hosts)
        silent = {host for stall in left if stall.is_silent and len(stall.hosts) == 1 for host in stall.hosts}
        most = max(counts.values())
        named = silent or ({host for host, count in counts.items() if count == most} if most > 1 else set())
        if not named:
            break
        found += [Blamed((host,), tuple(stall for stall in left if host in stall.hosts)) for host in sorted(named)]
        left = [stall for stall in left if named.isdisjoint(stall.hosts)]
    pairs = dict.fromkeys(stall.hosts for stall in left if len(stall.hosts) == 2)
    return found + [Blamed(pair, tuple(stall for stall in left if stall.hosts == pair)) for pair in pairs]


def to_leave_out(stalls: Iterable[Stall]) -> set[str]:
    """The hosts without which a job would go on: those that were to blame twice."""
    return {who.hosts[0] for who in blamed(stalls) if len(who.hosts) == 1 and len(who.stalls) > 1}
