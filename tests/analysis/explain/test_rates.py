"""Detectors on runs of known truth: rates of 1,000 runs stand in docs/validation.md, 200 are held to bounds here."""

from __future__ import annotations

import pytest
from tests.analysis.explain.rates import CASES, NOISES, Case

RUNS = 200


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_what_is_there_is_told_and_what_is_not_there_is_not(case: Case, noise: float) -> None:
    false, found = case.rates(noise, RUNS)
    assert false <= 0.05
    if noise <= case.noise:
        assert found >= 0.95
