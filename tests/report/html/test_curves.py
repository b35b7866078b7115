"""Figures of the page's curves."""

from __future__ import annotations

from hockney.report.html.curves import CurveData


def curve(low_ns: float | None, high_ns: float | None, payload: float | None = 2.0) -> CurveData:
    of = {"run": 1, "transport": "shm", "pattern": "twoway", "ranks": 2, "state": "near", "floor_ns": None}
    times = {"sizes": (0, 1000), "times_ns": (100.0, 400.0), "low_ns": (90.0, low_ns), "high_ns": (110.0, high_ns)}
    return CurveData(**of, **times, is_main=True, is_sized=True, payload=payload)  # type: ignore[arg-type]


def test_a_rate_is_the_payload_over_the_time_and_lowest_where_that_is_longest() -> None:
    assert curve(200.0, 500.0).rate_at(1000) == (5e9, 4e9, 1e10)
    assert curve(None, None).rate_at(1000) == (5e9, None, None)


def test_what_moves_no_payload_has_no_rate() -> None:
    assert curve(200.0, 500.0, payload=None).rate_at(1000) is None
    assert curve(200.0, 500.0).rate_at(8) is None
