"""Detectors on runs of known truth: docs/validation.md has the rates of 1,000 runs, 200 must keep bounds here."""

from __future__ import annotations

import pytest
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
