"""Made-up machines with a slow rank, link or switch, whose ranks wait for each other message by message.

A rank is busy with each message that it sends or receives, a link takes its time, and a rank continues when what it
waits for has arrived. `python -m tests.analysis.explain.coupled` prints the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tests.analysis.explain.readings import curve, reading
from tests.builders import make_measurement, make_point

from hockney.analysis.explain.ranks import slow_links
from hockney.analysis.finding import Finding, NotChecked
from hockney.model import Measurement
from hockney.stats import State

Floats = NDArray[np.float64]
RANKS = 8
_REPS, _SAMPLES, _MEASUREMENTS = 24, 3, 9
_BUSY_NS, _LINK_NS = 300.0, 1000.0


@dataclass
class Machine:
    """The time that a rank is busy with a message, and that a message takes between ranks, with heavy-tailed noise."""

    rng: np.random.Generator
    busy_ns: Floats = field(default_factory=lambda: np.full(RANKS, _BUSY_NS))
    link_ns: Floats = field(default_factory=lambda: np.full((RANKS, RANKS), _LINK_NS))

    def busy(self) -> Floats:
        return self.busy_ns * self._luck(RANKS)

    def link(self, to: NDArray[np.int_]) -> Floats:
        """From each rank to that one."""
        found: Floats = self.link_ns[np.arange(RANKS), to] * self._luck(RANKS)
        return found

    def _luck(self, count: int) -> Floats:
        return 1 + 0.02 * np.abs(self.rng.standard_t(3, count))

    def step(self, at_ns: Floats, distance: int) -> Floats:
        """Every rank sends to the one `distance` further on, and receives."""
        to = (np.arange(RANKS) + distance) % RANKS
        sent_ns = at_ns + self.busy()
        there_ns = np.roll(sent_ns + self.link(to), distance)
        return np.maximum(sent_ns, there_ns) + self.busy()


def ring(of: Machine, at_ns: Floats) -> Floats:
    return of.step(at_ns, 1)


def barrier(of: Machine, at_ns: Floats) -> Floats:
    for distance in (1, 2, 4):
        at_ns = of.step(at_ns, distance)
    return at_ns


def alltoall(of: Machine, at_ns: Floats) -> Floats:
    sent_ns = at_ns + (RANKS - 1) * of.busy()
    there_ns = sent_ns[:, None] + of.link_ns * of._luck(RANKS)[:, None]
    np.fill_diagonal(there_ns, 0)
    found: Floats = np.maximum(sent_ns, there_ns.max(axis=0)) + (RANKS - 1) * of.busy()
    return found


def putring(of: Machine, at_ns: Floats) -> Floats:
    """The target's CPU takes no part."""
    return at_ns + of.busy() + 2 * of.link((np.arange(RANKS) + 1) % RANKS)


def bisection(of: Machine, at_ns: Floats) -> Floats:
    """There and back: both ends are busy with each of the two messages."""
    mate = (np.arange(RANKS) + RANKS // 2) % RANKS
    busy, link = of.busy(), of.link(mate)
    one_way = busy + link + busy[mate]
    return at_ns + one_way + one_way[mate]


def pairs(of: Machine, at_ns: Floats) -> Floats:
    """A window of one: the slower end, and the link, decide."""
    mate = (np.arange(RANKS) + RANKS // 2) % RANKS
    busy = of.busy()
    return at_ns + busy + of.link(mate) + busy[mate]


PATTERNS: dict[str, Callable[[Machine, Floats], Floats]] = {
    "ring": ring,
    "barrier": barrier,
    "alltoall": alltoall,
    "putring": putring,
    "pairs": pairs,
    "bisection": bisection,
}


KINDS = ("nothing", "rank", "link", "switch")


@dataclass(frozen=True)
class Slow:
    """What is slow and by which factor: a rank's busy times, a link both ways, or all links of some ranks."""

    ranks: frozenset[int]
    kind: str
    factor: float

    def machine(self, rng: np.random.Generator) -> Machine:
        of = Machine(rng)
        own = sorted(self.ranks)
        if self.kind == "rank":
            of.busy_ns[own] *= self.factor
        elif self.kind == "link":
            of.link_ns[np.ix_(own, own)] *= self.factor
        elif self.kind == "switch":
            of.link_ns[own, :] *= self.factor
            of.link_ns[:, own] *= self.factor
        return of

    def links(self, pattern: str) -> set[tuple[int, int]]:
        """The slow links among those that a pattern times. The target of a put takes no part."""
        ranks, step = (RANKS, 1) if pattern == "putring" else (RANKS // 2, RANKS // 2)
        timed = {(rank, (rank + step) % RANKS) for rank in range(ranks)}
        if self.kind == "link":
            return {link for link in timed if self.ranks.issuperset(link)}
        ends = 1 if (pattern, self.kind) == ("putring", "rank") else 2
        return {link for link in timed if self.ranks.intersection(link[:ends])}


def slow(rng: np.random.Generator, pattern: str, kind: str) -> Slow:
    """A link that the pattern times. A switch has two ranks in a row."""
    first = int(rng.integers(RANKS))
    step = RANKS // 2 if (pattern, kind) in {("pairs", "link"), ("bisection", "link")} else 1
    count = {"nothing": 0, "rank": 1, "link": 2, "switch": 2}[kind]
    own = frozenset((first, (first + step) % RANKS)[:count])
    return Slow(own, kind, float(rng.uniform(1.5, 3) if kind != "rank" else rng.uniform(3, 10)))


def measurements(pattern: str, of: Machine) -> list[tuple[Measurement, State]]:
    """As a run stores them: ranks leave a barrier almost together, and a sample has many repetitions."""
    made = []
    for _ in range(_MEASUREMENTS):  # so many give an interval
        samples = []
        for _ in range(_SAMPLES):
            start_ns = of.rng.uniform(0, _LINK_NS, RANKS)
            at_ns = start_ns
            for _ in range(_REPS):
                at_ns = PATTERNS[pattern](of, at_ns)
            samples.append(at_ns - start_ns)
        elapsed_ns = np.round(np.array(samples).T).astype(np.int64)
        measurement = make_measurement(make_point(pattern=pattern, ranks=RANKS), elapsed_ns, batch=_REPS)
        made.append((measurement, State("near", 30.0)))
    return made


def told(pattern: str, made: list[tuple[Measurement, State]]) -> list[Finding] | None:
    """The findings; None where nothing can be said."""
    found = slow_links(
        reading(
            curve(pattern=pattern, ranks=RANKS),
            samples=lambda most, patterns=(): [one for one in made if not patterns or pattern in patterns],
        )
    )
    return None if isinstance(found, NotChecked) else found


def named(findings: list[Finding]) -> set[tuple[int, int]]:
    """The links that are said to be slow."""
    links = [link.split("-") for finding in findings for link in finding.facts["links"]]
    return {(int(a), int(b)) for a, b in links}


@dataclass(frozen=True)
class Score:
    """Counts of machines: without a claim, with exactly the slow links named, with a healthy link among them.

    `apart` is the median of the slowest rank's time over the median rank's.
    """

    machines: int
    silent: int
    right: int
    accused: int
    apart: float


def score(pattern: str, kind: str, machines: int) -> Score:
    silent = right = accused = 0
    apart: list[float] = []
    for seed in range(machines):
        rng = np.random.default_rng((seed, len(kind)))
        what = slow(rng, pattern, kind)
        made = measurements(pattern, what.machine(rng))
        by_rank = np.median([np.median(measurement.elapsed_ns, axis=1) for measurement, _ in made], axis=0)
        apart.append(float(by_rank.max() / np.median(by_rank)))
        found = told(pattern, made)
        links = named(found or [])
        silent += found is None
        right += links == what.links(pattern)
        accused += bool(links - what.links(pattern))
    return Score(machines, silent, right, accused, float(np.median(apart)))


def main() -> None:
    """Print the table: 100 machines for each row."""
    print("| pattern | slow | slowest rank over the median one | the slow links named | a healthy one accused |")
    print("| --- | --- | --- | --- | --- |")
    for pattern in PATTERNS:
        for kind in KINDS:
            one = score(pattern, kind, 100)
            right = "no claim" if one.silent == one.machines else f"{one.right} %"
            print(f"| {pattern} | {kind} | {one.apart:.2f} | {right} | {one.accused} % |", flush=True)


if __name__ == "__main__":
    main()
