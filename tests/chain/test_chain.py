"""The whole chain on model machines: planted faults come out, and nothing else is named. rates.py has the rates.

One machine of each kind stands for the long matrices in every `scripts/test`.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.chain.curves import CurveMachine, curve_machine, loggp_machine
from tests.chain.judged import NEAR, FittedFigure, explained, figures_of, slow_in, switches_of
from tests.chain.pairs import SLOW, Slow, healthy, planted
from tests.matrix import matrix

from hockney.suites import load_suite, pattern_suite
from hockney.worker.catalogue import Catalogue, load

_SKEWED = 0.4  # of the mean delay: so far below the mean may a median lie where noise is exponential


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load(["shm"])


def is_right(figure: FittedFigure, machine: CurveMachine) -> bool:
    """Within 2 % or its interval, and for times also within the shift of a median by skewed noise."""
    skew = _SKEWED * machine.noise.amount if machine.noise.law == "exponential" and figure.name.endswith("_ns") else 0.0
    return figure.is_covered or abs(figure.estimate.value - figure.truth) <= NEAR * figure.truth + skew


@pytest.mark.parametrize("seed", matrix(range(8), short=[3]))
def test_switches_and_lines(seed: int, catalogue: Catalogue, tmp_path: Path) -> None:
    machine = curve_machine(Random(seed), "segments")
    explanation = explained(machine.content, pattern_suite("pingpong"), catalogue, tmp_path, seed=seed)
    switches = switches_of(machine.jumps, explanation)
    assert (switches.missed, switches.invented) == ((), ())
    figures = list(figures_of(machine.truth, explanation))
    assert len(figures) >= 2 * len(machine.segments)
    assert [figure for figure in figures if not is_right(figure, machine)] == []


def test_a_seed_gives_the_same_again(catalogue: Catalogue, tmp_path: Path) -> None:
    content = curve_machine(Random(1), "segments").content
    first, again, other = (
        explained(content, pattern_suite("pingpong"), catalogue, tmp_path, seed=seed).lines for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize("kind", ["packets", "smooth"])
@pytest.mark.parametrize("seed", matrix(range(3), short=[0]))
def test_no_switch_is_invented(kind: str, seed: int, catalogue: Catalogue, tmp_path: Path) -> None:
    machine = curve_machine(Random(seed), "packets" if kind == "packets" else "smooth")
    explanation = explained(machine.content, pattern_suite("pingpong"), catalogue, tmp_path, seed=seed)
    assert switches_of(machine.jumps, explanation).invented == ()


@pytest.mark.parametrize("seed", matrix(range(6), short=[3]))
def test_loggp(seed: int, catalogue: Catalogue, tmp_path: Path) -> None:
    machine = loggp_machine(Random(seed))
    explanation = explained(machine.content, load_suite("loggp"), catalogue, tmp_path, seed=seed)
    figures = list(figures_of(machine.truth_of_loggp, explanation))
    assert len(figures) == 5 * len(machine.segments)
    assert [figure for figure in figures if not is_right(figure, machine)] == []


@pytest.mark.parametrize("slow", SLOW)
@pytest.mark.parametrize("seed", matrix([2, 3], short=[2]))
def test_the_slow_part_is_named_and_nothing_else(slow: Slow, seed: int, catalogue: Catalogue, tmp_path: Path) -> None:
    machine = planted(Random(seed), slow)
    explanation = explained(machine.content, load_suite("allpairs"), catalogue, tmp_path, seed=seed, ranks=machine.size)
    assert machine.verdict(slow_in(explanation)) == "right"


@pytest.mark.full
@pytest.mark.parametrize("seed", [4, 13, 32])  # tori of 2 x 2, 4 x 2 and 3 x 2
def test_distance_is_no_slowness(seed: int, catalogue: Catalogue, tmp_path: Path) -> None:
    machine = healthy(Random(seed))
    explanation = explained(machine.content, load_suite("allpairs"), catalogue, tmp_path, seed=seed, ranks=machine.size)
    assert slow_in(explanation) == []
