"""The search for the tolerated addition, on times that are known functions of it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from tests.builders import make_point

from hockney.analysis.predict.change import Change
from hockney.measure.what_if import Tolerance, tolerances_to

PARTS = (0.01, 0.02, 0.05)
PLAIN_NS = 5000.0


def of_latency(time_ns: Callable[[float], float]) -> Tolerance:
    def with_change(change: Change) -> float:
        return PLAIN_NS if change.added_ns is None else time_ns(change.added_ns)

    return tolerances_to(make_point(8), PLAIN_NS, with_change, with_curves=True).latency


@pytest.mark.parametrize("messages", [0.001, 1, 3, 1000])
def test_a_line_is_met_exactly(messages: float) -> None:
    tolerance = of_latency(lambda added_ns: PLAIN_NS + messages * added_ns)
    assert tolerance.limits == {part: pytest.approx(part * PLAIN_NS / messages, rel=3e-3) for part in PARTS}
    assert tolerance.curve[0] == (0.0, 0.0)
    assert len(tolerance.curve) == 8
    for added_ns, slowdown in tolerance.curve:
        assert slowdown == pytest.approx(messages * added_ns / PLAIN_NS)


def test_slack_is_added_before_anything_is_slower() -> None:
    tolerance = of_latency(lambda added_ns: PLAIN_NS + max(0.0, 2 * (added_ns - 30_000)))
    assert tolerance.limits == {part: pytest.approx(30_000 + part * PLAIN_NS / 2, rel=3e-3) for part in PARTS}


def test_a_jump_is_all_three() -> None:
    """As of a time slice that is missed."""
    tolerance = of_latency(lambda added_ns: PLAIN_NS * (1.5 if added_ns >= 777 else 1.0))
    assert tolerance.limits == dict.fromkeys(PARTS, pytest.approx(777, rel=3e-3))


def test_an_addition_without_effect_has_no_limit() -> None:
    assert of_latency(lambda added_ns: PLAIN_NS) == Tolerance(dict.fromkeys(PARTS), ())
    tolerance = of_latency(lambda added_ns: PLAIN_NS * (1 + 0.015 * (1 - math.exp(-added_ns))))
    assert tolerance.limits[0.01] is not None
    assert (tolerance.limits[0.02], tolerance.limits[0.05]) == (None, None)


def test_a_tolerance_above_a_thousand_times_the_pattern_is_infinite() -> None:
    near = of_latency(lambda added_ns: PLAIN_NS * (2 if added_ns >= 900 * PLAIN_NS else 1))
    assert None not in near.limits.values()
    far = of_latency(lambda added_ns: PLAIN_NS * (2 if added_ns >= 1200 * PLAIN_NS else 1))
    assert far.limits == dict.fromkeys(PARTS)


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_bandwidth_is_lost_as_a_part_of_it(share: float) -> None:
    """Of a pattern that moves bytes for this share of its time."""

    def with_change(change: Change) -> float:
        return PLAIN_NS * (1 - share + share / (change.factor or 1.0))

    tolerance = tolerances_to(make_point(8), PLAIN_NS, with_change).bandwidth
    assert tolerance.limits == {part: pytest.approx(1 - 1 / (1 + part / share), rel=3e-3) for part in PARTS}
