"""Faults that are planted among the hosts of a bed at random places, and what `hockney health` must name."""

from __future__ import annotations

import contextlib
import functools
import json
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.truth.bed.bed import Bed, Host, Link
from tests.truth.runs import hockney

from hockney.cli.health import health as health_command
from hockney.machine.placement import usable_cpus

RATE_MBIT = 100.0  # of every cable, so that the network is the limit and not the CPUs that all hosts share
_LEAST = f"{0.8 * RATE_MBIT:g} Mbit/s"
Named = tuple[str, ...]  # the finding's code, the host, the other one of a link, and the direction


@dataclass(frozen=True)
class Hang:
    """Programs of a host that stop answering, some time after its worker has started: of these names, else all."""

    host: str
    programs: str
    after_s: float


@dataclass(frozen=True)
class Planted:
    """Hosts that differ from the rest, links, and what is to be named: nothing else may be."""

    hosts: dict[str, Host] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    named: frozenset[Named] = frozenset()
    drops_long: tuple[str, ...] = ()  # hosts whose long frames are dropped
    flaps: str | None = None  # a host whose cable is out for moments
    hangs: Hang | None = None
    failing_logins: tuple[float, int] = (0, 1)  # the share of them, and the seed that chooses them
    least: str = ""  # the rate that every host must reach


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


def hanging(names: list[str], draw: random.Random) -> Planted:
    """A host whose worker stops, or where nothing answers any more, not even ssh; the first one must answer us."""
    kind, after_s = draw.choice(("worker", "host")), draw.uniform(3, 10)
    if kind == "worker":
        host = draw.choice(names)
        return Planted(hangs=Hang(host, "^native-", after_s), named=frozenset({("silent host", host, "")}))
    host = draw.choice(names[1:])
    return Planted(hangs=Hang(host, ".", after_s), named=frozenset({("unusable host", host, "")}))


def failing_logins(names: list[str], draw: random.Random, *, share: float) -> Planted:
    """A share of the logins to every host fails, and a later one works: no host is to be named."""
    del names
    return Planted(failing_logins=(share, draw.randrange(1, 1 << 32)))


def all_slow(names: list[str], draw: random.Random) -> Planted:
    """All hosts at half the rate, of which 80 % are expected."""
    del draw
    named = frozenset(("missed limit", host, way) for host in names for way in ("sends", "receives"))
    return Planted({host: Host(RATE_MBIT / 2) for host in names}, named=named, least=_LEAST)


def healthy(names: list[str], draw: random.Random) -> Planted:
    """Nothing, and all hosts reach what is expected."""
    del names, draw
    return Planted(least=_LEAST)


KINDS: dict[str, Callable[[list[str], random.Random], Planted]] = {
    "one link at 50 %": slow_link,
    "one host at 25 %": slow_host,
    "one direction only": one_direction,
    "1 % loss": loss,
    "long frames dropped": long_frames,
    "two faults": two_faults,
    "flapping cable": flapping,
    "1 % of logins fail": functools.partial(failing_logins, share=0.01),
    "5 % of logins fail": functools.partial(failing_logins, share=0.05),
    "20 % of logins fail": functools.partial(failing_logins, share=0.2),
    "a host hangs": hanging,
    "all hosts at 50 %": all_slow,
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
    bed.fail_logins(*planted.failing_logins)
    for name in bed.names:
        bed.lay(name, planted.hosts.get(name, Host(RATE_MBIT)), planted.links)


def health(bed: Bed, store: Path, *arguments: str, hosts: str = "") -> tuple[int, dict[str, Any]]:
    """The exit code and the document of `hockney health` on the first host of a bed."""
    words = ("health", "--hosts", hosts or ",".join(bed.names), "--json", "--quiet", *arguments)
    done = hockney(bed, store, *words, codes=(0, 1, 3))
    return done.returncode, json.loads(done.stdout)["health"]


def health_with(bed: Bed, planted: Planted, store: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """The same with what is planted: what hangs does so meanwhile. Raises RuntimeError where the run ended before."""
    if planted.least and any(option.name == "expect" for option in health_command.params):
        limits = store.with_suffix(".toml")
        table = {"hosts": "*", "pattern": "flows", "transports": "tcp", "bandwidth": f">= {planted.least}"}
        limits.write_text("[[expect]]\n" + "".join(f'{key} = "{value}"\n' for key, value in table.items()))
        arguments = (*arguments, "--expect", str(limits))
    with _hanging(bed, planted.hangs):
        return health(bed, store, *arguments)


@contextlib.contextmanager
def _hanging(bed: Bed, hang: Hang | None) -> Iterator[None]:
    """Stop the programs of a host once its worker has run for a time, and let them go on at the end."""
    if hang is None:
        yield
        return
    over, stopped = threading.Event(), threading.Event()

    def stop() -> None:
        while not bed.signal("0", hang.host, "^native-") and not over.wait(0.1):
            pass
        pause_s = hang.after_s
        while not over.wait(pause_s) and not stopped.is_set():
            if bed.signal("STOP", hang.host, hang.programs):
                stopped.set()
            pause_s = 0.1

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        bed.signal("CONT", hang.host)
    if not stopped.is_set():
        raise RuntimeError(f"the run ended before {hang.host} hung")


def code_of(planted: Planted) -> int:
    """The exit code: 1 for a fault, 3 where a host could not be used."""
    codes = {code for code, *_ in planted.named}
    return 0 if not codes else 3 if codes == {"unusable host"} else 1


def measured_share(bed: Bed, planted: Planted, document: dict[str, Any]) -> float:
    """The share of the pairs that are not planted to fail which have a rate in both directions."""
    faulty = {tuple(names) for _, *names, _ in planted.named}
    if len(faulty) == len(bed.names):  # of all slow hosts every pair can be measured
        faulty.clear()
    sound = [name for name in bed.names if (name,) not in faulty]
    pairs = [(a, b) for a in sound for b in sound if a != b and not {(a, b), (b, a)} & faulty]
    place, rates = {name: number for number, name in enumerate(document["hosts"])}, document["bytes_per_s"]
    known = [a in place and b in place and rates[place[a]][place[b]] is not None for a, b in pairs]
    return sum(known) / len(known)


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
