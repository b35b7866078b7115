"""Recorded curves on a busy machine: a switch is placed in a range that has it, or nothing is said of it.

`python -m tests.analysis.explain.busy` prints the rates of 300 curves, docs/validation.md has them.
"""

from __future__ import annotations

import pytest
from tests.analysis.explain.busy import NOISES, PLACES, WAITS_NS, score
from tests.matrix import matrix

CURVES = 60


@pytest.mark.parametrize("noise", matrix(NOISES, short=NOISES[:2]))
@pytest.mark.parametrize("added_ns", WAITS_NS)
@pytest.mark.parametrize("transport", matrix([*PLACES], short=[*PLACES][:1]))
def test_a_placed_switch_is_there_and_none_is_denied(transport: str, added_ns: float, noise: float) -> None:
    counts = score(transport, noise, added_ns, CURVES)
    assert counts.denied == []
    assert counts.right >= 0.95 * counts.told
    assert counts.refined == counts.suspected, "the advice measures where the switch is"
