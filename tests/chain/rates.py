"""How often the whole chain is right about made-up machines: `python -m tests.chain.rates 100` prints the tables.

Each machine is run with one launch, by the sampler, into a store, and explained from there.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from scipy.stats import binomtest
from tests.chain.curves import CURVE_KINDS, CurveKind, curve_machine, loggp_machine
from tests.chain.judged import NEAR, FittedFigure, explained, figures_of, slow_in, switches_of
from tests.chain.pairs import SLOW, PairsMachine, healthy, planted

from hockney.suites import load_suite, pattern_suite
from hockney.worker.catalogue import Catalogue, load


@dataclass
class Curves:
    """Counts over machines of one kind: true jumps, those found, machines with an invented switch; and figures."""

    machines: int = 0
    jumps: int = 0
    placed: int = 0
    invented: int = 0
    confirmed: int = 0
    figures: list[FittedFigure] = field(default_factory=list)

    @property
    def covered(self) -> int:
        return sum(figure.is_covered for figure in self.figures)

    @property
    def near(self) -> int:
        return sum(abs(figure.error) <= NEAR for figure in self.figures)


def curves(kind: CurveKind, seeds: Iterable[int], catalogue: Catalogue, folder: Path) -> dict[str, Curves]:
    """By the law of the noise."""
    by_law: dict[str, Curves] = {}
    for seed in seeds:
        machine = curve_machine(Random(seed), kind)
        explanation = explained(machine.content, pattern_suite("pingpong"), catalogue, folder, seed=seed)
        switches = switches_of(machine.jumps, explanation)
        score = by_law.setdefault(machine.noise.law, Curves())
        score.machines += 1
        score.jumps += len(machine.jumps)
        score.placed += len(machine.jumps) - len(switches.missed)
        score.invented += bool(switches.invented)
        score.confirmed += bool(switches_of(machine.jumps, explanation, ["confirmed"]).invented)
        score.figures += figures_of(machine.truth, explanation)
    return by_law


def loggp(seeds: Iterable[int], catalogue: Catalogue, folder: Path) -> dict[str, list[FittedFigure]]:
    """By the law of the noise."""
    by_law: dict[str, list[FittedFigure]] = {}
    for seed in seeds:
        machine = loggp_machine(Random(seed))
        explanation = explained(machine.content, load_suite("loggp"), catalogue, folder, seed=seed)
        by_law.setdefault(machine.noise.law, []).extend(figures_of(machine.truth_of_loggp, explanation))
    return by_law


def pairs(
    make: Callable[[Random], PairsMachine], seeds: Iterable[int], catalogue: Catalogue, folder: Path
) -> Counter[str]:
    """How many machines got which verdict."""
    verdicts: Counter[str] = Counter()
    for seed in seeds:
        machine = make(Random(seed))
        explanation = explained(
            machine.content, load_suite("allpairs"), catalogue, folder, seed=seed, ranks=machine.size
        )
        verdicts[machine.verdict(slow_in(explanation))] += 1
    return verdicts


def share(count: int, of: int) -> str:
    """Per cent with its 95 % interval: `97.0 (91.5–99.4)`."""
    if of == 0:
        return "–"
    low, high = binomtest(count, of).proportion_ci()
    return f"{100 * count / of:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def _row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def _of(figures: Sequence[FittedFigure], name: str) -> str:
    of_name = [figure for figure in figures if figure.name == name]
    near = sum(abs(figure.error) <= NEAR for figure in of_name)
    return (
        f"{share(sum(figure.is_covered for figure in of_name), len(of_name))}, {100 * near / max(1, len(of_name)):.1f}"
    )


def main() -> None:
    """Print the tables for the given number of machines of each kind."""
    count = int(sys.argv[1])
    catalogue = load(["shm"])
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        _row("curves", "machines", "switches found", "one invented", "confirmed", "intervals right", "within 2 %")
        for kind in CURVE_KINDS:
            for law, score in curves(kind, range(count), catalogue, folder).items():
                _row(
                    f"{kind}, {law}",
                    score.machines,
                    share(score.placed, score.jumps) if kind == "segments" else "–",
                    share(score.invented, score.machines),
                    score.confirmed,
                    share(score.covered, len(score.figures)),
                    share(score.near, len(score.figures)),
                )
        _row("LogGP", "L", "o_s", "o_r", "g", "G")
        for law, parameters in loggp(range(count), catalogue, folder).items():
            _row(law, *(_of(parameters, name) for name in ("L_ns", "o_s_ns", "o_r_ns", "g_ns", "G_ns_per_byte")))
        _row("pairs", "right", "in part", "nothing named", "a healthy one accused")
        makers: dict[str, Callable[[Random], PairsMachine]] = {
            slow or "nothing": functools.partial(planted, slow=slow) for slow in SLOW
        }
        for name, make in {**makers, "nothing, other topologies": healthy}.items():
            verdicts = pairs(make, range(count), catalogue, folder)
            _row(name, *(share(verdicts[each], count) for each in ("right", "in part", "silent", "false")))


if __name__ == "__main__":
    main()
