"""LogGP's parameters are recovered from round trips of a made-up machine that has known ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.fit.truth import sizes_of

from hockney.fit import LogGP, NoFit, RoundTrips, fit_loggp

MESSAGES = 16
DELAY_NS = 5e7


@dataclass(frozen=True)
class Machine:
    """LogGP as its authors mean it: a message costs o at each end, L on the way, and g + size G to its successor."""

    latency_ns: float = 900.0
    send_ns: float = 300.0
    receive_ns: float = 200.0
    gap_ns: float = 450.0
    gap_ns_per_byte: float = 0.08

    def way_ns(self, size: int) -> float:
        return self.send_ns + self.latency_ns + size * self.gap_ns_per_byte + self.receive_ns

    def round_trip_ns(self, size: int, messages: int, delay_ns: float) -> float:
        """PRTT(n, d) for no delay, or for one that is longer than a round trip."""
        if delay_ns:
            return messages * (self.send_ns + delay_ns) + self.receive_ns
        return 2 * self.way_ns(size) + (messages - 1) * (self.gap_ns + size * self.gap_ns_per_byte)

    def trips(self, size: int, noise: float = 0.0, rng: np.random.Generator | None = None) -> RoundTrips:
        """Noise is of the communication; a delay ends when the clock says so."""

        def measured(messages: int, delay_ns: float) -> float:
            communication_ns = self.round_trip_ns(size, messages, delay_ns) - messages * delay_ns
            luck = rng.normal(1, noise) if rng is not None else 1.0
            return communication_ns * luck + messages * delay_ns

        return RoundTrips(
            size_bytes=size,
            messages=MESSAGES,
            one_ns=measured(1, 0),
            burst_ns=measured(MESSAGES, 0),
            one_delayed_ns=measured(1, DELAY_NS),
            spaced_ns=measured(MESSAGES, DELAY_NS),
            delay_ns=DELAY_NS,
        )


SMALL, LARGE = Machine(), Machine(latency_ns=2500.0, send_ns=700.0, gap_ns=900.0, gap_ns_per_byte=0.05)


def fitted(trips: list[RoundTrips]) -> tuple[LogGP, ...]:
    found = fit_loggp(trips)
    assert not isinstance(found, NoFit), found
    return found


def check(found: LogGP, truth: Machine, rel: float) -> None:
    for name in ("latency_ns", "send_ns", "receive_ns", "gap_ns", "gap_ns_per_byte"):
        assert getattr(found, name).value == pytest.approx(getattr(truth, name), rel=rel), name


def test_each_segment_has_its_own_parameters() -> None:
    sizes = sizes_of(36)
    low, high = fitted([(SMALL if size <= 8192 else LARGE).trips(size) for size in reversed(sizes)])
    check(low, SMALL, 1e-3)
    check(high, LARGE, 1e-3)
    assert (low.last_bytes, high.first_bytes) == (8192, 12288)
    assert low.busy_ns.value == pytest.approx(500)
    assert low.holds is True


def test_parameters_are_within_two_percent_where_they_say_so_and_intervals_hold_them() -> None:
    """200 machines measured with 1 % noise."""
    rng = np.random.default_rng(12)
    known = near = intervals = covered = 0
    for _ in range(200):
        latency, send, receive, gap = rng.uniform(200, 2000, 4).tolist()
        truth = Machine(latency, send, receive, gap, float(10 ** rng.uniform(-2, 0)))
        found = fitted([truth.trips(size, 0.01, rng) for size in sizes_of(36)])
        if len(found) > 1:
            continue
        for name in ("latency_ns", "send_ns", "receive_ns", "gap_ns", "gap_ns_per_byte"):
            value, true = getattr(found[0], name), getattr(truth, name)
            intervals += 1
            covered += value.low <= true <= value.high
            if value.high - value.low <= 0.04 * value.value:
                known += 1
                near += abs(value.value / true - 1) <= 0.02
    assert intervals >= 5 * 190
    print(covered / intervals, known / intervals, near / known, intervals)
    assert 0.93 <= covered / intervals <= 0.99
    assert known >= 0.3 * intervals
    assert near >= 0.95 * known


@pytest.mark.parametrize("part", ["latency_ns", "send_ns", "receive_ns"])
def test_what_is_below_zero_is_said_not_clipped(part: str) -> None:
    (found,) = fitted([replace(SMALL, **{part: -100.0}).trips(size) for size in sizes_of(24)])
    assert getattr(found, part).value == pytest.approx(-100)
    assert found.holds is False


def test_what_cannot_be_told_from_zero_is_left_open() -> None:
    rng = np.random.default_rng(4)
    (found,) = fitted([replace(SMALL, latency_ns=1.0).trips(size, 0.01, rng) for size in sizes_of(24)])
    assert found.latency_ns.low < 0 < found.latency_ns.high
    assert found.holds is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"delay_ns": 1500.0}, "o_s and o_r need a delay longer than a round trip: at 0 B that takes 2800 ns, the"),
        ({"messages": 1}, "LogGP needs bursts of two messages at least"),
        ({"one_ns": 0.0}, "a fit needs positive times"),
    ],
)
def test_no_fit_says_why(change: dict[str, Any], reason: str) -> None:
    found = fit_loggp([replace(SMALL.trips(size), **change) for size in sizes_of(24)])
    assert isinstance(found, NoFit)
    assert found.reason.startswith(reason)


def test_two_sizes_are_too_few() -> None:
    assert fit_loggp([SMALL.trips(8), SMALL.trips(64)]) == NoFit("a fit needs three sizes, there are 2")
