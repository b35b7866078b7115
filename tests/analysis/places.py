"""Made-up machines without a known topology; `python -m tests.analysis.places` prints the rates.

Two to four core complexes of two to six ranks each, at least six ranks in all. Between complexes a message takes 1.5 to
5 times as long as within one. On every second machine with three or more complexes it takes longer still between two
halves. Each pair has nine measurements with normal noise, and a fixed share, a third of that noise. A slow pair takes
1.5 to 3 times as long, a slow rank with every other rank. A slow switch is one of three or four: its ranks take 1.5 to
3 times as long with each other, with all others, or both.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from hockney.analysis.clusters import Pair
from hockney.analysis.pair_classes import Outlier, PairClass, Share, classify_pairs
from hockney.machine.topology import Topology
from hockney.stats.interval import median

TWO_CORES = {  # of one package, with two CPUs each: facts of a run
    "hostname": "here",
    "topology": Topology("sysfs", cores=((0, 1), (2, 3)), packages=((0, 1, 2, 3),)).as_json(),
}
NOISES = (0.01, 0.02, 0.05)
UNKNOWN = Share("one host", is_certain=False)
_MEASUREMENTS = 9


@dataclass(frozen=True)
class Machine:
    """The time of each pair of ranks, and the level of places that it crosses."""

    times_ns: dict[Pair, float]
    levels: dict[Pair, int]

    @property
    def places(self) -> list[set[int]]:
        """The ranks of each complex."""
        places: list[set[int]] = []
        for rank in range(1 + max(b for _, b in self.levels)):
            place = next((place for place in places if self.levels[min(place), rank] == 0), None)
            if place is None:
                places.append({rank})
            else:
                place.add(rank)
        return places

    @property
    def classes(self) -> set[frozenset[Pair]]:
        """The pairs of each level together."""
        return {
            frozenset(pair for pair, at in self.levels.items() if at == level) for level in set(self.levels.values())
        }

    def with_slow(self, pairs: set[Pair], factor: float) -> Machine:
        times = {pair: time * (factor if pair in pairs else 1) for pair, time in self.times_ns.items()}
        return Machine(times, self.levels)


def machine(rng: np.random.Generator) -> Machine:
    complexes: list[int] = []
    while sum(complexes) < 6:
        complexes = rng.integers(2, 7, int(rng.integers(2, 5))).tolist()
    of_rank = rng.permutation(np.repeat(np.arange(len(complexes)), complexes)).tolist()
    halves = len(complexes) > 2 and rng.random() < 0.5
    level_ns = 100.0 * np.cumprod([1.0, rng.uniform(1.5, 5), rng.uniform(1.5, 3)])
    levels = {
        (a, b): 0 if of_rank[a] == of_rank[b] else 2 if halves and of_rank[a] // 2 != of_rank[b] // 2 else 1
        for a, b in itertools.combinations(range(len(of_rank)), 2)
    }
    return Machine({pair: float(level_ns[level]) for pair, level in levels.items()}, levels)


def seen(of: Machine, noise: float, rng: np.random.Generator) -> tuple[tuple[PairClass, ...], tuple[Outlier, ...]]:
    """The classes that its times show, and the outliers."""
    times = {
        pair: median(time * (1 + rng.normal(0, noise / 3)) * (1 + rng.normal(0, noise, _MEASUREMENTS)))
        for pair, time in of.times_ns.items()
    }
    classes, outliers, _ = classify_pairs(times, dict.fromkeys(times, UNKNOWN))
    return classes, outliers


@dataclass
class Score:
    """Counts of machines."""

    machines: int = 0
    classes_found: int = 0  # exactly these pairs in each
    accused: int = 0  # with a healthy pair or rank among the outliers
    named: int = 0  # with the slow one among the outliers


def unchanged(noise: float, machines: int, seed: int = 1) -> Score:
    rng = np.random.default_rng(seed)
    score = Score(machines)
    for _ in range(machines):
        made = machine(rng)
        classes, outliers = seen(made, noise, rng)
        score.classes_found += {frozenset(pair_class.pairs) for pair_class in classes} == made.classes
        score.accused += bool(outliers)
    return score


def with_slow_pair(noise: float, machines: int, seed: int = 2) -> Score:
    """It may be within a complex or between two."""
    rng = np.random.default_rng(seed)
    score = Score()
    while score.machines < machines:
        made = machine(rng)
        slow = list(made.times_ns)[int(rng.integers(len(made.times_ns)))]
        classes, outliers = seen(made.with_slow({slow}, rng.uniform(1.5, 3)), noise, rng)
        score.machines += 1
        score.classes_found += {frozenset(pair_class.pairs) for pair_class in classes} == made.classes
        score.named += any(outlier.ranks == slow for outlier in outliers)
        score.accused += any(outlier.ranks != slow for outlier in outliers)
    return score


def with_slow_rank(noise: float, machines: int, seed: int = 3) -> Score:
    """Score whether the rank is named, or pairs of it are."""
    rng = np.random.default_rng(seed)
    score = Score(machines)
    for _ in range(machines):
        made = machine(rng)
        slow = int(rng.integers(1 + max(b for _, b in made.times_ns)))
        slow_pairs = {pair for pair in made.times_ns if slow in pair}
        classes, outliers = seen(made.with_slow(slow_pairs, rng.uniform(1.5, 3)), noise, rng)
        score.classes_found += {frozenset(pair_class.pairs) for pair_class in classes} == made.classes
        score.named += any(slow in outlier.ranks for outlier in outliers)
        score.accused += any(slow not in outlier.ranks for outlier in outliers)
    return score


def with_slow_switch(noise: float, machines: int, seed: int = 4) -> Score:
    """Named is the switch, with exactly its ranks; accused are pairs and ranks without a rank of it."""
    rng = np.random.default_rng(seed)
    score = Score()
    while score.machines < machines:
        made = machine(rng)
        if len(made.places) < 3:
            continue
        switch = made.places[int(rng.integers(len(made.places)))]
        ends = ((2,), (1,), (1, 2))[int(rng.integers(3))]  # of a slow pair, on the switch
        slow = {pair for pair in made.times_ns if len(switch.intersection(pair)) in ends}
        _, outliers = seen(made.with_slow(slow, rng.uniform(1.5, 3)), noise, rng)
        score.machines += 1
        score.named += any(set(outlier.ranks) == switch for outlier in outliers)
        score.accused += any(not switch.intersection(outlier.ranks) for outlier in outliers)
    return score


KINDS = {
    "unchanged": unchanged,
    "one slow pair": with_slow_pair,
    "one slow rank": with_slow_rank,
    "one slow switch": with_slow_switch,
}


def main() -> None:
    """Print the table."""
    print("| machines | noise | all classes as made | a healthy one accused | the slow one named |")
    print("| --- | --- | --- | --- | --- |")
    for kind, made in KINDS.items():
        for noise in NOISES:
            score = made(noise, 1000)
            counts = [score.classes_found, score.accused, score.named]
            shares = [f"{100 * count / score.machines:.1f} %" for count in counts]
            if kind == "unchanged":
                shares[-1] = "-"
            if kind == "one slow switch":
                shares[0] = "-"
            print(f"| {kind} | {100 * noise:.0f} % | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
