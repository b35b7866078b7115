"""The figures of events beside their time, from counters and wall times that are known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.builders import make_point

from hockney.model import PatternTraits
from hockney.results.building import Building, building_of, jain


def test_fairness_is_one_for_equal_rates_and_the_share_of_one_that_has_all() -> None:
    assert jain([3.0, 3.0, 3.0, 3.0]) == 1.0
    assert jain([1.0, 1e-9, 1e-9, 1e-9]) == pytest.approx(0.25)
    assert jain([1.0, 3.0]) == pytest.approx(16 / 20)


def built(*, rate_hz: int = 0, wall_ns: int = 1, **counters: tuple[float, ...]) -> Building:
    """Of 2 readouts with 3 streams of 1,000 B and 2 builders: two measurements of 50 events, or 10 us for each."""
    options = {"senders": "2", "streams": "3", **({"rate_hz": str(rate_hz)} if rate_hz else {})}
    events = PatternTraits(events=True)
    point = make_point(1000, "tcp", "eventbuilder", ranks=5, options=tuple(options.items()), traits=events)
    each: Any = SimpleNamespace(elapsed_ns=np.zeros((5, 50)), wall_ns=(wall_ns, 7, 7, 7, 7))
    return building_of(point, 10_000.0, [counters, counters], [each, each])


def test_events_that_start_at_once_have_the_bytes_of_a_builder_and_what_was_sent_again() -> None:
    sending, resent = (0.0, 10.0, 30.0, 0.0, 0.0), (0.0, 1.0, 2.0, 0.0, 0.0)
    building = built(send_ns=sending, retransmits=resent, timeouts=(0.0, 1.0, 0.0, 0.0, 0.0))
    fairness = jain([1 / 20, 1 / 60])
    assert building == Building(1e5, None, 1e5 * 2 * 3 * 1000 / 2, None, fairness, 0, 6, 2)


@pytest.mark.parametrize(("wall_ns", "reached"), [(100_000_000, 500.0), (49_000_000, 1000.0)])
def test_events_on_schedule_have_the_rate_that_was_reached(wall_ns: int, reached: float) -> None:
    building = built(rate_hz=1000, wall_ns=wall_ns, late_events=(10.0, 0.0, 0.0, 0.0, 0.0))
    assert building == Building(reached, reached / 1000, None, 0.2, None, 0, 0, 0)
