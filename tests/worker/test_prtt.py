"""The parametrised round trip on real transports: delays are taken and counted, and four times give LogGP."""

from __future__ import annotations

import math
from statistics import median

import pytest
from tests.worker.test_session import MPIS, job

from hockney.fit import LogGP, NoFit, RoundTrips, fit_loggp
from hockney.worker.answers import MeasureAnswer
from hockney.worker.mpi import Mpi
from hockney.worker.session import WorkerSession

EVERY_TRANSPORT = pytest.mark.parametrize(
    "where", ["null", "shm", "tcp", *MPIS], ids=lambda where: where if isinstance(where, str) else where.id
)
MESSAGES, DELAY_NS = 4, 300_000


def session_on(where: str | Mpi) -> WorkerSession:
    return WorkerSession(job(transport=where) if isinstance(where, str) else job(where))


def prtt(session: WorkerSession, size: int, messages: int, delay_ns: int) -> MeasureAnswer:
    options = (("messages", str(messages)), ("delay_ns", str(delay_ns)))
    return session.measure("prtt", bytes=size, batch=2, samples=9, warmup=2, timeout_s=60, options=options)


def time_ns(answer: MeasureAnswer) -> float:
    return float(median(answer.elapsed_ns[0])) / answer.batch


def delay_ns(answer: MeasureAnswer) -> float:
    return float(answer.counters["delay_ns"][0]) / answer.counters["delays"][0]


@EVERY_TRANSPORT
def test_a_delay_follows_every_message_and_its_cost_is_known(where: str | Mpi) -> None:
    with session_on(where) as session:
        session.hello()
        answer = prtt(session, 64, MESSAGES, DELAY_NS)
        session.close()
    assert (answer.timed, answer.divisor, answer.messages_per_rep) == ("root", 1, MESSAGES + 1)
    assert min(answer.elapsed_ns[0]) >= 2 * MESSAGES * DELAY_NS
    assert answer.counters["delays"] == (9 * 2 * MESSAGES, 0)
    assert delay_ns(answer) >= DELAY_NS


@EVERY_TRANSPORT
def test_loggp_from_four_times_of_each_size(where: str | Mpi) -> None:
    """Whatever a loaded machine measures: parameters that add up to the half round trip, or a reason why not."""
    trips = []
    with session_on(where) as session:
        session.hello()
        for size in (0, 64, 512, 2048, 4000):
            times = {(n, d): prtt(session, size, n, d) for n in (1, MESSAGES) for d in (0, DELAY_NS)}
            one, burst, alone, spaced = (
                time_ns(times[key]) for key in ((1, 0), (MESSAGES, 0), (1, DELAY_NS), (MESSAGES, DELAY_NS))
            )
            trips.append(RoundTrips(size, MESSAGES, one, burst, alone, spaced, delay_ns(times[MESSAGES, DELAY_NS])))
        session.close()
    found = fit_loggp(trips)
    if isinstance(found, NoFit):
        assert any(row.one_ns > row.delay_ns for row in trips), found.reason
        return
    for one_segment in found:
        check_sum(one_segment)


def check_sum(found: LogGP) -> None:
    for name in ("latency_ns", "send_ns", "receive_ns", "busy_ns", "gap_ns", "gap_ns_per_byte"):
        estimate = getattr(found, name)
        assert -math.inf < estimate.low <= estimate.value <= estimate.high < math.inf, name
    assert found.busy_ns.value == pytest.approx(found.send_ns.value + found.receive_ns.value, rel=1e-6, abs=1e-3)
    if found.holds:
        assert min(found.latency_ns.low, found.send_ns.low, found.receive_ns.low) > 0
