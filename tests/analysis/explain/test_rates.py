"""Detectors on runs of known truth: docs/validation.md has the rates of many runs, some must keep bounds here.

Recorded curves are those on a busy machine (busy.py): a switch is placed in a range that has it, or nothing is said.
"""

from __future__ import annotations

import pytest
from tests.analysis.explain import busy
from tests.analysis.explain.rates import CASES, NOISES, Case
from tests.matrix import matrix

RUNS = 200


@pytest.mark.parametrize("noise", matrix(NOISES, short=NOISES[1:2]))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_effects_are_found_and_none_are_invented(case: Case, noise: float) -> None:
    false, right = case.rates(noise, RUNS)
    assert false <= 0.05
    if noise <= case.noise:
        assert right >= 0.95


@pytest.mark.parametrize("noise", matrix(busy.NOISES, short=busy.NOISES[:2]))
@pytest.mark.parametrize("added_ns", busy.WAITS_NS)
@pytest.mark.parametrize("transport", matrix([*busy.PLACES], short=[*busy.PLACES][:1]))
def test_a_placed_switch_is_there_and_none_is_denied(transport: str, added_ns: float, noise: float) -> None:
    counts = busy.score(transport, noise, added_ns, 60)
    assert counts.denied == []
    assert counts.right >= 0.95 * counts.told
    assert counts.refined == counts.suspected, "the advice measures where the switch is"
