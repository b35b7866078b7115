"""Simulated machines with a slow rank, link or switch, whose ranks wait for each other's messages.

Sending and receiving a message take CPU time, a link takes its latency, and a rank continues when the message that it
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
    """CPU time for each message by rank, and latency of each link, with heavy-tailed noise."""

    rng: np.random.Generator
    busy_ns: Floats = field(default_factory=lambda: np.full(RANKS, _BUSY_NS))
    link_ns: Floats = field(default_factory=lambda: np.full((RANKS, RANKS), _LINK_NS))

    def busy(self) -> Floats:
        return self.busy_ns * self._noise(RANKS)

    def link(self, to: NDArray[np.int_]) -> Floats:
        """The latency from each rank to its target."""
        latency_ns: Floats = self.link_ns[np.arange(RANKS), to] * self._noise(RANKS)
        return latency_ns

    def _noise(self, count: int) -> Floats:
        return 1 + 0.02 * np.abs(self.rng.standard_t(3, count))

    def step(self, at_ns: Floats, distance: int) -> Floats:
        """Each rank sends to the rank `distance` after it, and receives."""
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
    there_ns = sent_ns[:, None] + of.link_ns * of._noise(RANKS)[:, None]
    np.fill_diagonal(there_ns, 0)
    ended_ns: Floats = np.maximum(sent_ns, there_ns.max(axis=0)) + (RANKS - 1) * of.busy()
    return ended_ns


def putring(of: Machine, at_ns: Floats) -> Floats:
    """The target's CPU takes no part."""
    return at_ns + of.busy() + 2 * of.link((np.arange(RANKS) + 1) % RANKS)


def bisection(of: Machine, at_ns: Floats) -> Floats:
    """A round trip: both ends take CPU time for each of the two messages."""
    mate = (np.arange(RANKS) + RANKS // 2) % RANKS
    busy, link = of.busy(), of.link(mate)
    one_way = busy + link + busy[mate]
    return at_ns + one_way + one_way[mate]


def pairs(of: Machine, at_ns: Floats) -> Floats:
    """A window of one message: both ends and the link add up."""
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
    """The slow part and its factor: the CPU time of a rank, a link both ways, or all links of some ranks."""

    ranks: frozenset[int]
    kind: str
    factor: float

    def machine(self, rng: np.random.Generator) -> Machine:
        of = Machine(rng)
        ranks = sorted(self.ranks)
        if self.kind == "rank":
            of.busy_ns[ranks] *= self.factor
        elif self.kind == "link":
            of.link_ns[np.ix_(ranks, ranks)] *= self.factor
        elif self.kind == "switch":
            of.link_ns[ranks, :] *= self.factor
            of.link_ns[:, ranks] *= self.factor
        return of

    def links(self, pattern: str) -> set[tuple[int, int]]:
        """The slow links among those that a pattern times. The target of a put takes no CPU time."""
        ranks, step = (RANKS, 1) if pattern == "putring" else (RANKS // 2, RANKS // 2)
        timed = {(rank, (rank + step) % RANKS) for rank in range(ranks)}
        if self.kind == "link":
            return {link for link in timed if self.ranks.issuperset(link)}
        ends = 1 if (pattern, self.kind) == ("putring", "rank") else 2
        return {link for link in timed if self.ranks.intersection(link[:ends])}


def slow(rng: np.random.Generator, pattern: str, kind: str) -> Slow:
    """A random slow part that the pattern times. A switch has two neighbouring ranks."""
    first = int(rng.integers(RANKS))
    step = RANKS // 2 if (pattern, kind) in {("pairs", "link"), ("bisection", "link")} else 1
    count = {"nothing": 0, "rank": 1, "link": 2, "switch": 2}[kind]
    ranks = frozenset((first, (first + step) % RANKS)[:count])
    return Slow(ranks, kind, float(rng.uniform(1.5, 3) if kind != "rank" else rng.uniform(3, 10)))


def measurements(pattern: str, of: Machine) -> list[tuple[Measurement, State]]:
    """Measurements in a run's form: ranks leave a barrier almost together, and a sample has many repetitions."""
    made = []
    for _ in range(_MEASUREMENTS):  # enough for an interval
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


def findings_of(pattern: str, made: list[tuple[Measurement, State]]) -> list[Finding] | None:
    """The findings; None where the check was not made."""
    findings = slow_links(
        reading(
            curve(pattern=pattern, ranks=RANKS),
            samples=lambda most, patterns=(): made if not patterns or pattern in patterns else [],
        )
    )
    return None if isinstance(findings, NotChecked) else findings


def named(findings: list[Finding]) -> set[tuple[int, int]]:
    """The links that the findings call slow."""
    links = [link.split("-") for finding in findings for link in finding.facts["links"]]
    return {(int(a), int(b)) for a, b in links}


@dataclass(frozen=True)
class Score:
    """Counts of machines: not checked, named exactly the slow links, named a healthy link.

    `contrast` is the slowest rank's time over the median rank's, as the median of all machines.
    """

    machines: int
    unchecked: int
    right: int
    accused: int
    contrast: float


def score(pattern: str, kind: str, machines: int) -> Score:
    unchecked = right = accused = 0
    contrasts: list[float] = []
    for seed in range(machines):
        rng = np.random.default_rng((seed, len(kind)))
        part = slow(rng, pattern, kind)
        made = measurements(pattern, part.machine(rng))
        by_rank = np.median([np.median(measurement.elapsed_ns, axis=1) for measurement, _ in made], axis=0)
        contrasts.append(float(by_rank.max() / np.median(by_rank)))
        findings = findings_of(pattern, made)
        links = named(findings or [])
        unchecked += findings is None
        right += links == part.links(pattern)
        accused += bool(links - part.links(pattern))
    return Score(machines, unchecked, right, accused, float(np.median(contrasts)))


def main() -> None:
    """Print the table: 100 machines for each row."""
    print("| pattern | slow | slowest rank over the median one | the slow links named | a healthy one accused |")
    print("| --- | --- | --- | --- | --- |")
    for pattern in PATTERNS:
        for kind in KINDS:
            row = score(pattern, kind, 100)
            right = "not checked" if row.unchecked == row.machines else f"{row.right} %"
            print(f"| {pattern} | {kind} | {row.contrast:.2f} | {right} | {row.accused} % |", flush=True)


if __name__ == "__main__":
    main()
