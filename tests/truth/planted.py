"""Faults that are planted among the hosts of a bed at random places, and what `hockney health` must name."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.truth.bed.bed import Bed, Host, Link
from tests.truth.runs import hockney

from hockney.machine.placement import usable_cpus

RATE_MBIT = 100.0  # of every cable, so that the network is the limit and not the CPUs that all hosts share
Named = tuple[str, ...]  # the finding's code, the host, the other one of a link, and the direction


@dataclass(frozen=True)
class Planted:
    """Hosts that differ from the rest, links, and what is to be named: nothing else may be."""

    hosts: dict[str, Host] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    named: frozenset[Named] = frozenset()
    drops_long: tuple[str, ...] = ()  # hosts whose long frames are dropped
    flaps: str | None = None  # a host whose cable is out for moments


def slow_link(names: list[str], draw: random.Random) -> Planted:
    """One link at half the rate, both ways."""
    a, b = draw.sample(names, 2)
    links = Link(a, b, RATE_MBIT / 2), Link(b, a, RATE_MBIT / 2)
    return Planted(links=links, named=frozenset({("slow link", *_sorted(names, a, b), "both")}))


def slow_host(names: list[str], draw: random.Random) -> Planted:
    """One host at a quarter of the rate, both ways."""
    host = draw.choice(names)
    return Planted({host: Host(RATE_MBIT / 4)}, named=frozenset({("slow host", host, "both")}))


def one_direction(names: list[str], draw: random.Random) -> Planted:
    """A host that sends or receives at half the rate, or a link that is slow from one host to the other."""
    kind, (a, b) = draw.choice(("sending", "receiving", "link")), draw.sample(names, 2)
    if kind == "link":
        return Planted(links=(Link(a, b, RATE_MBIT / 2),), named=frozenset({("slow link", a, b, "sending")}))
    half = RATE_MBIT / 2
    slow = Host(RATE_MBIT, send_mbit=half) if kind == "sending" else Host(RATE_MBIT, receive_mbit=half)
    return Planted({a: slow}, named=frozenset({("slow host", a, kind)}))


def loss(names: list[str], draw: random.Random) -> Planted:
    """1 % of the packets are lost: of all that a host sends and receives, or from one host to another."""
    kind, (a, b) = draw.choice(("host", "link")), draw.sample(names, 2)
    if kind == "link":
        return Planted(links=(Link(a, b, loss=0.01),), named=frozenset({("lossy link", a, b, "sending")}))
    return Planted({a: Host(RATE_MBIT, loss=0.01)}, named=frozenset({("lossy host", a, "both")}))


def long_frames(names: list[str], draw: random.Random) -> Planted:
    """The frames of full size that a host sends are dropped. Of the first one's, no other host could be asked."""
    host = draw.choice(names[1:])
    return Planted(drops_long=(host,), named=frozenset({("stuck host", host, "")}))


def two_faults(names: list[str], draw: random.Random) -> Planted:
    """One host whose long frames are dropped, and another one that is slow."""
    stuck, slow = draw.sample(names[1:], 2)
    named = frozenset({("stuck host", stuck, ""), ("slow host", slow, "both")})
    return Planted({slow: Host(RATE_MBIT / 4)}, drops_long=(stuck,), named=named)


def flapping(names: list[str], draw: random.Random) -> Planted:
    """The cable of a host is out for 0.5 s of 4.5 s."""
    host = draw.choice(names)
    return Planted(flaps=host, named=frozenset({("lost carrier", host, "")}))


def healthy(names: list[str], draw: random.Random) -> Planted:
    """Nothing."""
    del names, draw
    return Planted()


KINDS: dict[str, Callable[[list[str], random.Random], Planted]] = {
    "one link at 50 %": slow_link,
    "one host at 25 %": slow_host,
    "one direction only": one_direction,
    "1 % loss": loss,
    "long frames dropped": long_frames,
    "two faults": two_faults,
    "flapping cable": flapping,
    "healthy": healthy,
}


def equal_hosts(number: int) -> list[Host]:
    """Hosts that have the CPUs in turn: the first ranks of all do not wait for one CPU."""
    cpus = usable_cpus()
    return [Host(RATE_MBIT, cpus=[cpus[host % len(cpus)]]) for host in range(number)]


def plant(bed: Bed, planted: Planted) -> None:
    """Lay all cables anew."""
    bed.flap(planted.flaps)
    bed.drop_long_frames(planted.drops_long)
    for name in bed.names:
        bed.lay(name, planted.hosts.get(name, Host(RATE_MBIT)), planted.links)


def health(bed: Bed, store: Path, *arguments: str, hosts: str = "") -> tuple[int, dict[str, Any]]:
    """The exit code and the document of `hockney health` on the first host of a bed."""
    words = ("health", "--hosts", hosts or ",".join(bed.names), "--json", "--quiet", *arguments)
    done = hockney(bed, store, *words, codes=(0, 1, 3))
    return done.returncode, json.loads(done.stdout)["health"]


def named_in(document: dict[str, Any]) -> frozenset[Named]:
    """What it named, without differences between hosts."""
    names = set()
    for finding in document["findings"]:
        facts = finding["facts"]
        other = (facts["other"],) if "other" in facts else ()
        names.add((finding["code"], facts.get("host", ""), *other, facts.get("way", "")))
    return frozenset(names)


def _sorted(names: list[str], *chosen: str) -> list[str]:
    return sorted(chosen, key=names.index)
