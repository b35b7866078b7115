"""Measures models of known truth through the whole chain, and judges the results.

The sampler measures them in the worker of models, a store keeps the samples, explain reads them: only the machine is
replaced. Seeds are fixed, so every check gives the same on every machine. `tests/chain` does this with many.
"""

from __future__ import annotations

import functools
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from hockney.analysis.explain import Explanation
from hockney.measure.plan import pattern_suite
from hockney.measure.self_test.chain import (
    CheckedFigure,
    explained,
    figures_of_lines,
    figures_of_loggp,
    named,
    switches_of,
    verdict,
)
from hockney.measure.self_test.curves import CurveMachine, curve_machine, loggp_machine
from hockney.measure.self_test.pairs import SLOW, healthy, planted
from hockney.stats.fit import Estimate
from hockney.suites import load_suite
from hockney.worker.catalogue import load

_COVERED = 0.75  # of the intervals contain the truth, at least: of 95 % that is certain


@dataclass(frozen=True)
class Check:
    """One known property of a machine, and the result of measuring it. The end of `what` is its unit.

    A figure has `truth` and `estimate`, for the segment that ends at `up_to_bytes` (0: the last). Else `planted` has
    the sizes after which the time jumps, or the slow ranks; `named` has the two sizes around each jump in the result,
    or each rank, pair or group that is called slow.
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
    """Each check as soon as it is done. Raises BuildError without a compiler."""
    with tempfile.TemporaryDirectory() as name:
        explain = functools.partial(explained, catalogue=load(["shm"]), folder=Path(name))
        curve = curve_machine(Random(12), "segments")  # with two switches
        explanation = explain(curve.content, pattern_suite("pingpong"), seed=12)
        yield _switches("ping-pong", curve, explanation)
        lines = list(figures_of_lines(curve, explanation))
        yield from _checks("ping-pong", lines)
        loggp = loggp_machine(Random(3))  # with one switch
        parameters = list(figures_of_loggp(loggp, explain(loggp.content, load_suite("loggp"), seed=3)))
        yield from _checks("LogGP", parameters)
        covered = statistics.fmean(figure.is_covered for figure in (*lines, *parameters))
        share = Estimate(covered, covered, covered)
        yield Check("all of these", "intervals_share", covered >= _COVERED, truth=_COVERED, estimate=share)
        smooth = curve_machine(Random(2), "smooth")
        yield _switches("smooth bend", smooth, explain(smooth.content, pattern_suite("pingpong"), seed=2))
        for slow in SLOW:
            pairs = planted(Random(1), slow) if slow else healthy(Random(1))
            explanation = explain(pairs.content, load_suite("allpairs"), seed=1, ranks=pairs.size)
            said = named(explanation)
            yield Check(
                f"slow {slow}" if slow else "nothing slow",
                "slow_ranks",
                verdict(pairs, said) == "right",
                planted=tuple(sorted(pairs.ranks)),
                named=tuple(tuple(sorted(ranks)) for ranks in said),
            )


def _switches(name: str, machine: CurveMachine, explanation: Explanation) -> Check:
    switches = switches_of(machine, explanation)
    said = tuple(sorted((*switches.placed, *switches.invented)))
    is_met = not switches.missed and not switches.invented
    return Check(name, "switches_bytes", is_met, planted=machine.jumps, named=said)


def _checks(machine: str, figures: Sequence[CheckedFigure]) -> Iterator[Check]:
    for figure in figures:
        is_met = figure.is_covered or abs(figure.error) <= 0.02
        yield Check(machine, figure.name, is_met, figure.up_to_bytes, figure.truth, figure.estimate)
