"""LogGP's parameters are recovered from round trips of a made-up machine that has known ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.stats.fit.truth import LOGGP, SUITE_SIZES, Machine, loggp_score, sizes_of

from hockney.stats.fit import LogGP, NoFit, RoundTrips, fit_loggp

SMALL, LARGE = Machine(), Machine(latency_ns=2500.0, send_ns=700.0, gap_ns=900.0, gap_ns_per_byte=0.05)


def fitted(trips: list[RoundTrips]) -> tuple[LogGP, ...]:
    fits = fit_loggp(trips)
    assert not isinstance(fits, NoFit), fits
    return fits


def check(found: LogGP, truth: Machine, rel: float) -> None:
    for name in LOGGP.values():
        assert getattr(found, name).value == pytest.approx(getattr(truth, name), rel=rel), name


def test_each_segment_has_its_own_parameters() -> None:
    sizes = sizes_of(36)
    low, high = fitted([(SMALL if size <= 8192 else LARGE).trips(size) for size in reversed(sizes)])
    check(low, SMALL, 1e-3)
    check(high, LARGE, 1e-3)
    assert (low.last_bytes, high.first_bytes) == (8192, 12288)
    assert low.busy_ns.value == pytest.approx(500)
    assert low.holds is True


@pytest.mark.full
def test_intervals_cover_the_parameters() -> None:
    """200 machines measured with 1 % noise."""
    parameters = loggp_score(noise=0.01).values()
    intervals, known = sum(score.intervals for score in parameters), sum(score.known for score in parameters)
    assert intervals >= 5 * 190
    assert 0.93 <= sum(score.covered for score in parameters) / intervals <= 0.98
    assert known >= 0.3 * intervals
    assert sum(score.near for score in parameters) >= 0.95 * known
    for score in parameters:
        assert score.within == pytest.approx(score.best, abs=0.05 * score.intervals)


def test_precise_times_weigh_more() -> None:
    """Parameters over two orders of magnitude; each time errs by its own 0.3 to 10 %, which is known or not."""
    weighted, unweighted = (
        loggp_score(wide=True, known=known, machines=100, sizes=SUITE_SIZES) for known in (True, False)
    )
    for name, score in weighted.items():
        assert score.covered >= 0.93 * score.intervals, name
    within, without = (sum(score.within for score in scores.values()) for scores in (weighted, unweighted))
    assert within >= 1.15 * without


def test_residuals_by_line_and_size() -> None:
    sizes = sizes_of(24)
    trips = [SMALL.trips(size) for size in sizes]
    (exact,) = fitted(trips)
    assert exact.relative_rms < 1e-9
    odd = 10
    trips[odd] = replace(trips[odd], burst_ns=1.2 * trips[odd].burst_ns)  # one of the four times, at one size
    (fit,) = fitted(trips)
    assert fit.sizes_bytes == tuple(sizes)
    assert set(fit.residuals) == {"half_round_trip", "per_message", "send", "busy"}
    of_bursts = fit.residuals["per_message"]
    assert max(range(len(sizes)), key=lambda at: of_bursts[at]) == odd
    # Nearly all of the burst's extra time, which is no part of the line.
    assert 0.1 < of_bursts[odd] < 0.2
    assert all(max(map(abs, fit.residuals[name])) < 1e-9 for name in ("half_round_trip", "send", "busy"))
    squares = [one**2 for missed in fit.residuals.values() for one in missed]
    assert fit.relative_rms == pytest.approx((sum(squares) / len(squares)) ** 0.5)


@pytest.mark.parametrize("part", ["latency_ns", "send_ns", "receive_ns"])
def test_negative_parameters_stay(part: str) -> None:
    (fit,) = fitted([replace(SMALL, **{part: -100.0}).trips(size) for size in sizes_of(24)])
    assert getattr(fit, part).value == pytest.approx(-100)
    assert fit.holds is False


def test_an_interval_with_zero_leaves_it_open() -> None:
    rng = np.random.default_rng(4)
    (fit,) = fitted([replace(SMALL, latency_ns=1.0).trips(size, 0.01, rng) for size in sizes_of(24)])
    assert fit.latency_ns.low < 0 < fit.latency_ns.high
    assert fit.holds is None


def test_latency_is_as_uncertain_as_the_busy_times_that_are_taken_off() -> None:
    rng = np.random.default_rng(5)
    trips = [SMALL.trips(size) for size in sizes_of(24)]
    noisy = [replace(trip, one_delayed_ns=trip.one_delayed_ns + rng.normal(0, 5)) for trip in trips]
    (fit,) = fitted(noisy)
    busy, latency = fit.busy_ns, fit.latency_ns
    assert latency.high - latency.low == pytest.approx(busy.high - busy.low, rel=1e-3)
    assert latency.high - latency.low > 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"delay_ns": 1500.0}, "o_s and o_r need a delay longer than a round trip: at 0 B that takes 2800 ns, the"),
        ({"messages": 1}, "LogGP needs bursts of two messages at least"),
        ({"one_ns": 0.0}, "a fit needs positive times"),
    ],
)
def test_no_fit_says_why(change: dict[str, Any], reason: str) -> None:
    fits = fit_loggp([replace(SMALL.trips(size), **change) for size in sizes_of(24)])
    assert isinstance(fits, NoFit)
    assert fits.reason.startswith(reason)


def test_two_sizes_are_too_few() -> None:
    assert fit_loggp([SMALL.trips(8), SMALL.trips(64)]) == NoFit("a fit needs three sizes")
