"""Measures made-up machines of known truth through the whole chain, and judges what comes out.

The sampler measures them in the worker of models, a store keeps the samples, explain reads them: nothing is replaced
but the machine. Seeds are fixed, so every check gives the same on every machine. `tests/chain` does this with many.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from hockney.measure.plan import pattern_suite
from hockney.measure.self_test.chain import (
    Figure,
    explained,
    figures_of_lines,
    figures_of_loggp,
    named,
    switches_of,
    verdict,
)
from hockney.measure.self_test.curves import curve_machine, loggp_machine
from hockney.measure.self_test.pairs import SLOW, Slow, healthy, planted
from hockney.stats.fit import Estimate
from hockney.suites import Suite, SuiteSeries
from hockney.worker.catalogue import Catalogue, load

_NEAR = 0.02  # a figure this close to the truth is right
_COVERED = 0.75  # of the intervals contain the truth, at least: of 95 % that is certain
_CURVE, _LOGGP, _SMOOTH, _PAIRS = 12, 3, 2, 1  # seeds: two switches, one switch, and several levels of pairs
_BYTES = ("0", "8", "64", "256", "1K", "2K", "3K", "4K", "6K", "8K", "12K", "16K")


@dataclass(frozen=True)
class Check:
    """One thing that is known of a machine, and what came out. The end of `what` is its unit.

    Of a figure that is `truth` and `estimate`, of the segment that ends at `up_to_bytes` (0: the last). Else `planted`
    are the sizes after which the time jumps, or the ranks that are slow; `named` has the two sizes between which each
    jump was found, or each rank, pair or group that is called slow.
    """

    machine: str
    what: str
    is_met: bool
    up_to_bytes: int | None = None
    truth: float | None = None
    estimate: Estimate | None = None
    planted: tuple[int, ...] | None = None
    named: tuple[tuple[int, ...], ...] | None = None


def self_test() -> Iterator[Check]:
    """Each check as it is made. Raises BuildError without a compiler."""
    catalogue = load(["shm"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures: list[Figure] = []
        yield from _curve(catalogue, folder, figures)
        yield from _loggp(catalogue, folder, figures)
        covered = sum(figure.is_covered for figure in figures) / len(figures)
        share = Estimate(covered, covered, covered)
        yield Check("all of these", "intervals_share", covered >= _COVERED, truth=_COVERED, estimate=share)
        yield from _smooth(catalogue, folder)
        for slow in SLOW:
            yield _pairs(catalogue, folder, slow)


def _curve(catalogue: Catalogue, folder: Path, figures: list[Figure]) -> Iterator[Check]:
    machine = curve_machine(Random(_CURVE), "segments")
    explanation = explained(machine.toml, pattern_suite("pingpong"), catalogue, folder, seed=_CURVE)
    switches = switches_of(machine, explanation)
    said = tuple(sorted((*switches.placed, *switches.invented)))
    is_met = not switches.missed and not switches.invented
    yield Check("ping-pong", "switches_bytes", is_met, planted=machine.jumps, named=said)
    lines = list(figures_of_lines(machine, explanation))
    figures += lines
    yield from _checks("ping-pong", lines)


def _loggp(catalogue: Catalogue, folder: Path, figures: list[Figure]) -> Iterator[Check]:
    machine = loggp_machine(Random(_LOGGP))
    calls: tuple[dict[str, str], ...] = (
        {},
        {"messages": "8"},
        {"delay_ns": "30000"},
        {"messages": "8", "delay_ns": "30000"},
    )
    series = tuple(
        SuiteSeries.model_validate({"pattern": "prtt", "bytes": list(_BYTES), "options": call}) for call in calls
    )
    suite = Suite(name="LogGP", title="LogGP", series=series)
    explanation = explained(machine.toml, suite, catalogue, folder, seed=_LOGGP)
    parameters = list(figures_of_loggp(machine, explanation))
    figures += parameters
    yield from _checks("LogGP", parameters)


def _checks(machine: str, figures: Sequence[Figure]) -> Iterator[Check]:
    for figure in figures:
        is_met = figure.is_covered or abs(figure.error) <= _NEAR
        yield Check(machine, figure.name, is_met, figure.up_to_bytes, figure.truth, figure.estimate)


def _smooth(catalogue: Catalogue, folder: Path) -> Iterator[Check]:
    machine = curve_machine(Random(_SMOOTH), "smooth")
    explanation = explained(machine.toml, pattern_suite("pingpong"), catalogue, folder, seed=_SMOOTH)
    invented = switches_of(machine, explanation).invented
    yield Check("smooth bend", "switches_bytes", not invented, planted=(), named=invented)


def _pairs(catalogue: Catalogue, folder: Path, slow: Slow) -> Check:
    machine = planted(Random(_PAIRS), slow) if slow else healthy(Random(_PAIRS))
    series = SuiteSeries.model_validate({"pattern": "pingpong", "bytes": ["8"], "pairs": "all"})
    suite = Suite(name="pairs", title="pairs", series=(series,))
    explanation = explained(machine.toml, suite, catalogue, folder, seed=_PAIRS, ranks=machine.size)
    said = named(explanation)
    return Check(
        f"slow {slow}" if slow else "nothing slow",
        "slow_ranks",
        verdict(machine, said) == "right",
        planted=tuple(sorted(machine.ranks)),
        named=tuple(tuple(sorted(ranks)) for ranks in said),
    )
