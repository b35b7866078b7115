"""The parametrised round trip on real transports: delays are taken and counted, and four times give LogGP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import pytest
from tests.matrix import matrix
from tests.worker.extra import EXTRA
from tests.worker.test_native import converse, measure
from tests.worker.test_session import MPIS, SHORT_MPIS, job

from hockney.stats.fit import NoFit, RoundTrips, fit_loggp
from hockney.suites import pattern_suite
from hockney.worker.answers import MeasureAnswer
from hockney.worker.build import build_worker
from hockney.worker.catalogue import load
from hockney.worker.launch import StartCommand
from hockney.worker.libraries import Library
from hockney.worker.session import WorkerSession

EVERY_TRANSPORT = pytest.mark.parametrize(
    "where",
    matrix(["null", "shm", "tcp", *MPIS], short=["null", "shm", "tcp", *SHORT_MPIS]),
    ids=lambda where: where if isinstance(where, str) else where.id,
)
MESSAGES, DELAY_NS, SAMPLES = 4, 300_000, 15
SIZES = (0, 64, 512, 2048, 4000)


def session_on(where: str | Library) -> WorkerSession:
    return WorkerSession(job(transport=where) if isinstance(where, str) else job(where))


def prtt(session: WorkerSession, size: int, messages: int, delay_ns: int) -> MeasureAnswer:
    options = (("messages", str(messages)), ("delay_ns", str(delay_ns)))
    return session.measure("prtt", bytes=size, batch=1, samples=SAMPLES, warmup=2, timeout_s=60, options=options)


def delay_ns(answer: MeasureAnswer) -> float:
    return float(answer.counters["delay_ns"][0]) / answer.counters["delays"][0]


@pytest.mark.parametrize(("asked_ns", "at_most"), [(20_000, 80), (1_000_000, 4), (5_000_000, 1)])
def test_a_delay_is_calibrated_within_milliseconds(asked_ns: int, at_most: int) -> None:
    command = measure("prtt", 8, batch=1, samples=2, warmup=0, verify="no", delay_ns=asked_ns)
    answers, done = converse(build_worker(EXTRA), [command], "-t", "fault", env={"HOCKNEY_FAULT": "count 0 0"})
    assert [answer["kind"] for answer in answers] == ["measure", "bye"], done.stderr
    assert 1 <= done.stderr.count("fault: a delay") - 2 <= at_most


def test_the_longest_repetition_fits_the_shortest_usual_limit_three_times() -> None:
    catalogue = load(libraries=())
    pattern = catalogue.pattern("prtt")
    limit_s = pattern_suite("prtt").limits(time_s=1).timeout_s
    assert 3 * pattern.option("messages").max * pattern.option("delay_ns").max < limit_s * 1e9


def round_trips(session: WorkerSession, sizes: Sequence[int], of: Callable[[Sequence[int]], float]) -> list[RoundTrips]:
    """`of` makes one figure of the samples."""
    trips = []
    for size in sizes:
        times = {(n, d): prtt(session, size, n, d) for n in (1, MESSAGES) for d in (0, DELAY_NS)}
        for (count, delay), answer in times.items():  # one follows every message, and its cost is known
            assert (answer.timed, answer.divisor, answer.messages_per_rep) == ("root", 1, count + 1)
            assert answer.counters["delays"] == (SAMPLES * count * (delay > 0), 0)
            assert min(answer.elapsed_ns[0]) >= count * delay
            assert delay == 0 or delay_ns(answer) >= delay
        one, burst, alone, spaced = (
            of(times[key].elapsed_ns[0]) for key in ((1, 0), (MESSAGES, 0), (1, DELAY_NS), (MESSAGES, DELAY_NS))
        )
        trips.append(RoundTrips(size, MESSAGES, one, burst, alone, spaced, delay_ns(times[MESSAGES, DELAY_NS])))
    return trips


@EVERY_TRANSPORT
def test_loggp_from_four_times_of_each_size(where: str | Library) -> None:
    """On a loaded machine too: parameters of most sizes, or a reason why not.

    Two disturbed sizes may be off every line, also the first and the last.
    """
    with session_on(where) as session:
        session.hello()
        trips = round_trips(session, SIZES, median)
        session.close()
    fits = fit_loggp(trips)
    if isinstance(fits, NoFit):
        assert any(row.one_ns > row.delay_ns for row in trips), fits.reason
        return
    assert sum(any(fit.first_bytes <= size <= fit.last_bytes for fit in fits) for size in SIZES) >= 3


def test_loggp_of_known_overheads() -> None:
    """On a virtual clock, where everything is known: the longer of the two overheads is the gap."""
    send_ns, receive_ns, way_ns, byte_ns = 20_000, 40_000, 5_000, 2
    plain = job(transport="virtual", recipe=EXTRA)
    costs = {"HOCKNEY_VIRTUAL": f"{send_ns} {receive_ns} {way_ns} {byte_ns}"}
    with WorkerSession(StartCommand(plain.launcher, plain.argv, costs)) as session:
        session.hello()
        trips = round_trips(session, SIZES, median)
        session.close()
    fit = fit_loggp(trips)
    assert not isinstance(fit, NoFit), fit.reason
    (segment,) = fit
    known_ns = {"send_ns": send_ns, "receive_ns": receive_ns, "gap_ns": receive_ns, "latency_ns": way_ns}
    assert {name: getattr(segment, name).value for name in known_ns} == pytest.approx(known_ns, rel=1e-6)
