"""Events on schedule: on a virtual clock each latency is known exactly; S, R and W are those of test_applications.

All times are multiples of the 50 ns between two polls of the supervisor.
"""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any

import pytest
from tests.worker.sim import lines, times
from tests.worker.test_native import DESCRIPTION, converse, measure, measured, on_virtual, shared, why_unsupported

from hockney.worker.build import build_worker

S, R, W = 300, 200, 1000
HOP = S + W + R
COMPUTE_NS = 10_000
EVENTS = 40
SCHEDULES: list[dict[str, Any]] = [
    *({"schedule": schedule} for schedule in ("all", "barrel", "random", "credits")),
    {"schedule": "credits", "credits": 1, "streams": 3},
    {"schedule": "random", "sigma_percent": 100, "streams": 2},
    {"fragment": "+7+1000+200"},
]
FARMS = {"pushfarm": 3, "pullfarm": 4, "eventbuilder": 3}  # hops of an event with one sender and one receiver


def latencies(pattern: str, ranks: int = 3, **options: Any) -> list[int]:
    """Of each event on the supervisor, in the order of their schedule."""
    command = measure(pattern, 8, **{"batch": 1, "samples": EVENTS, "warmup": 3, **options})
    answer = on_virtual(f"{S} {R} {W} 0", command, ranks)
    assert (answer["verified"], answer["divisor"], answer["bytes_per_rep"]) == (True, 1, 0)
    supervisor, *others = answer["elapsed_ns"]
    assert all(ns == 0 for row in others for ns in row)  # only the supervisor knows of events
    return list(supervisor)


@pytest.mark.parametrize(("pattern", "hops"), FARMS.items())
def test_spaced_events_take_as_long_as_one(pattern: str, hops: int) -> None:
    assert latencies(pattern, rate_hz=10_000) == [hops * HOP] * EVENTS
    assert latencies(pattern, rate_hz=10_000, delay_us=10) == [hops * HOP + COMPUTE_NS] * EVENTS


@pytest.mark.parametrize(("pattern", "hops"), FARMS.items())
def test_with_one_in_flight_the_wait_for_the_previous_event_counts(pattern: str, hops: int) -> None:
    """Started late, and counted from the schedule: else all events would seem equally quick."""
    each_ns, period_ns = hops * HOP + COMPUTE_NS, 5_000
    expected = [each_ns + event * (each_ns - period_ns) for event in range(EVENTS)]
    assert latencies(pattern, rate_hz=200_000, delay_us=10) == expected


def test_a_receiver_that_is_slower_than_the_schedule_has_a_growing_queue() -> None:
    """Several in flight overlap, so only the receiver's own work is one after the other."""
    busy_ns, period_ns = R + COMPUTE_NS + S, 5_000
    first_ns = 3 * HOP + COMPUTE_NS
    expected = [first_ns + event * (busy_ns - period_ns) for event in range(EVENTS)]
    assert latencies("pushfarm", rate_hz=200_000, delay_us=10, in_flight=1024) == expected


def test_two_receivers_keep_a_schedule_that_one_cannot() -> None:
    event_ns = 3 * HOP + COMPUTE_NS
    behind = latencies("pushfarm", rate_hz=125_000, delay_us=10, in_flight=8)
    assert behind[-1] > 2 * event_ns
    assert latencies("pushfarm", ranks=4, rate_hz=125_000, delay_us=10, in_flight=8) == [event_ns] * EVENTS


def test_the_bound_of_events_in_flight_is_kept() -> None:
    """The first ones start as if there were no bound; those after them start later, and more so the fewer may be."""
    free = latencies("pushfarm", rate_hz=1_000_000, delay_us=10, in_flight=1024)
    for bound in (1, 2, 3):
        bounded = latencies("pushfarm", rate_hz=1_000_000, delay_us=10, in_flight=bound)
        assert bounded[:bound] == free[:bound]
        assert all(late >= early for late, early in zip(bounded, free, strict=True))
    ends = [latencies("pushfarm", rate_hz=1_000_000, delay_us=10, in_flight=bound)[-1] for bound in (1, 2)]
    assert ends[1] < ends[0]


def test_a_rate_that_is_no_divisor_of_a_second_does_not_drift() -> None:
    """300,000 events a second: 3,333 ns, and 3,334 ns for every third one."""
    taken = latencies("pushfarm", samples=300, rate_hz=300_000, in_flight=64)
    assert all(3 * HOP <= ns < 3 * HOP + S + R + 50 for ns in taken)
    assert max(taken[-30:]) <= max(taken[:30]) + 50


@pytest.mark.parametrize(("pattern", "hops"), FARMS.items())
def test_schedules_on_a_model(pattern: str, hops: int, tmp_path: Path) -> None:
    """The same closed forms, except for a poll: the supervisor of a model polls at least once per us."""
    model = lines(send_cpu=S, recv_cpu=R, latency=W)

    def taken(ranks: int, **options: Any) -> list[int]:
        elapsed_ns = times(tmp_path, model, ranks, pattern, 8, samples=EVENTS, warmup=3, delay_us=10, **options)
        return elapsed_ns[0]

    each_ns, period_ns, look_ns = hops * HOP + COMPUTE_NS, 5_000, 1_100
    assert all(each_ns <= ns <= each_ns + look_ns for ns in taken(3, rate_hz=10_000))
    late = taken(3, rate_hz=200_000)
    assert all(
        0 <= ns - each_ns - event * (each_ns - period_ns) <= (event + 1) * look_ns for event, ns in enumerate(late)
    )
    queued = taken(3, rate_hz=200_000, in_flight=1024)
    busy_ns = R + COMPUTE_NS + S + (S + W + R + W if pattern == "pullfarm" else 0)
    growth_ns = (queued[-1] - queued[EVENTS // 2]) / (EVENTS - 1 - EVENTS // 2)
    assert growth_ns == pytest.approx(busy_ns - period_ns, rel=0.1)


@pytest.mark.parametrize("transport", ["shm", "unix", "pipe", "tcp:nonblock", "threads"])
@pytest.mark.parametrize("pattern", FARMS)
def test_schedules_on_real_transports(pattern: str, transport: str) -> None:
    """Also with messages that no transport takes immediately while the supervisor only polls."""
    shapes = [(size, senders, in_flight) for size in (8, 5000, 300_000) for senders in (1, 2) for in_flight in (1, 8)]
    commands = [
        measure(pattern, size, senders=senders, in_flight=in_flight, rate_hz=5000, batch=1, samples=20, warmup=5)
        for size, senders, in_flight in shapes
    ]
    for answer in measured(commands, "-t", transport, *shared(5)):
        assert answer["verified"] is True
        assert len(answer["elapsed_ns"][0]) == 20
        assert all(ns > 0 for ns in answer["elapsed_ns"][0])
        assert answer["wall_ns"][0] >= 19 * 200_000  # no event starts before it is due


@pytest.mark.parametrize("transport", ["shm", "unix", "null"])
def test_an_event_builder_in_each_schedule(transport: str) -> None:
    """Rounds end at the end of a repetition, and of the events on schedule, for any number of them."""
    commands = [
        measure("eventbuilder", size, senders=senders, in_flight=in_flight, **schedule, **more)
        for size in (8, 5000)
        for senders in (1, 2, 3)
        for in_flight in (4, 7)
        for schedule in SCHEDULES
        for more in ({"batch": 2, "samples": 2}, {"batch": 1, "samples": 21, "warmup": 2, "rate_hz": 10_000})
    ]
    for answer in measured(commands, "-t", transport, *shared(6)):
        assert answer["verified"] is (transport != "null")


def test_readouts_of_a_barrel_begin_with_different_builders(tmp_path: Path) -> None:
    """The second readout sends the fragment of the first event last, so the second event of a round ends first."""
    options = {"senders": 2, "in_flight": 2, "schedule": "barrel", "rate_hz": 1000, "samples": EVENTS}
    (taken, *_) = times(tmp_path, lines(send_cpu=20_000, latency=W), 5, "eventbuilder", 8, **options)
    for first, second in zip(taken[::2], taken[1::2], strict=True):
        assert first - 1_000_000 - second == pytest.approx(20_000, abs=1_100)  # of a poll


@pytest.mark.parametrize(
    ("transport", "ranks", "line", "why"),
    [
        ("udp", 3, {"rate_hz": 1000}, "rate_hz needs a probe for messages, which udp does not offer"),
        ("unix", 3, {"rate_hz": 1000, "batch": 2},
         "repetitions on schedule are samples of one: batch must be 1, not 2"),
        ("unix", 6, {"schedule": "barrel", "in_flight": 3},
         "schedule=barrel needs rounds of 4 events, one for each builder: in_flight must be 4 or more"),
    ],
)  # fmt: skip
def test_points_without_a_schedule_are_refused(transport: str, ranks: int, line: dict[str, Any], why: str) -> None:
    command = measure("eventbuilder", 8, **{"batch": 1, **line})
    assert why_unsupported(command, transport, ranks) == why


def test_a_hanging_schedule_is_ended_by_its_time_limit() -> None:
    command = measure("pushfarm", 8, rate_hz=1, batch=1, samples=60, timeout_s=1)
    _, done = converse(build_worker(), [command], "-t", "unix", *shared(3), limit_s=20)
    assert done.returncode == 14
    assert "no end after 1 s in pushfarm of 8 B" in done.stderr


def test_events_of_a_burst_are_due_at_once() -> None:
    """Each waits for those before it: the sender takes a start and sends a fragment, for one after another."""
    taken = latencies("pushfarm", rate_hz=10_000, burst=4, in_flight=4, warmup=0)
    assert taken == 10 * [3 * HOP + place * (R + S) for place in range(4)]


def late_events(**options: Any) -> float:
    command = measure("eventbuilder", 8, **{"batch": 1, "samples": EVENTS, "warmup": 0, "delay_us": 10, **options})
    count: float = on_virtual(f"{S} {R} {W} 0", command, 3)["counters"]["late_events"][0]
    return count


def test_events_that_wait_for_a_place_are_late() -> None:
    """All but the first of those that come faster than the one in flight ends; none where there is time or place."""
    assert late_events(rate_hz=200_000) == EVENTS - 1
    assert late_events(rate_hz=10_000) == 0
    assert late_events(rate_hz=200_000, in_flight=1024) == 0


def test_a_builder_with_one_credit_takes_one_fragment_at_a_time(tmp_path: Path) -> None:
    """With one credit a readout is asked when the one before has sent; with all, they share the builder's way in."""
    hops_ns, way_in_ns = 4 * W, 500
    model = lines(latency=W, in_="0 0.5 0")  # 500 ns for a fragment, 8 for 16 B
    taken = {
        most: times(tmp_path, model, 6, "eventbuilder", 1000, senders=4, schedule="credits", credits=most)[0][0]
        for most in (1, 2, 4)
    }
    assert taken[4] == pytest.approx(hops_ns + 3 * way_in_ns, abs=50)
    assert taken[1] == pytest.approx(hops_ns + 3 * 2 * W, abs=50)
    assert taken[4] < taken[2] < taken[1]


@pytest.mark.parametrize("options", [{"sigma_percent": 50}, {"fragment": "+1+2+9", "streams": 2}])
def test_sizes_that_differ_have_the_mean_of_the_point(options: dict[str, Any], tmp_path: Path) -> None:
    """The time of a link that all fragments cross is that of fragments which are all alike, for each stream."""
    shape = {"senders": 1, "batch": 4000}
    (plain, *_) = times(tmp_path, lines("link 0 1e9 0"), 3, "eventbuilder", 30_000, **shape)
    (mixed, *_) = times(tmp_path, lines("link 0 1e9 0"), 3, "eventbuilder", 30_000, **shape, **options)
    assert mixed[0] / plain[0] == pytest.approx(int(options.get("streams", 1)), rel=0.05)


def test_the_largest_fragment_must_fit_into_a_message() -> None:
    """Of 64 classes of a lognormal distribution with sigma 1, each with its median, scaled to the mean of all."""
    weights = [math.exp(NormalDist().inv_cdf((place + 0.5) / 64)) for place in range(64)]
    largest = round(16_000 * weights[-1] / fmean(weights))
    most = next(row["max_bytes"] for row in DESCRIPTION["transports"] if row["name"] == "udp")
    why = f"the largest fragment has {largest} B, and udp sends at most {most} B in one message: choose fewer bytes"
    assert why_unsupported(measure("eventbuilder", 16_000, sigma_percent=100), "udp", 3) == why


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"fragment": "+8-8"}, "fragment=-8 is no size"),
        ({"fragment": "+8", "sigma_percent": 1}, "fragment=FILE and sigma_percent exclude each other"),
    ],
)
def test_sizes_of_fragments_that_make_no_sense_are_refused(options: dict[str, Any], why: str) -> None:
    assert why_unsupported(measure("eventbuilder", 16_000, **options), "unix", 3) == why
