"""Ping-pong's variants to receive on every transport here, and computing on either side between messages."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.worker.test_session import MPIS, SHORT_MPIS, opened, shared_job

from hockney.worker.build import build_worker
from hockney.worker.catalogue import describe
from hockney.worker.errors import WorkerRefused
from hockney.worker.libraries import Library, find_ofis, find_pvms, find_ucxs, find_zmqs
from hockney.worker.session import WorkerSession

CPUS = tuple(sorted(os.sched_getaffinity(0)))
PVMS, UCX, OFI, ZMQS = (find()[0] for find in (find_pvms, find_ucxs, find_ofis, find_zmqs))
LIBRARIES: list[Library | None] = [None, *MPIS, *PVMS, *UCX, *OFI, *ZMQS]
SHORT = (None, *SHORT_MPIS, *PVMS, *UCX, *OFI[:1], *ZMQS)
EVERY = pytest.mark.parametrize(
    ("library", "transport"),
    [
        pytest.param(library, row["name"], marks=() if library in SHORT else pytest.mark.full)
        for library in LIBRARIES
        for row in describe(build_worker(*([library.recipe] if library else [])))["transports"]
        if not row["name"].endswith("-daemon") and not row["absent"]
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "id", "native"),
)
SIZES = (0, 8, 257, 65_000)
WITHOUT_PROBE = ("mpi:ready", "udp", "udp:spin", "ofi", "ofi:write")
REPETITIONS = 3 * 4


def session_of(library: Library | None, transport: str, ranks: int = 2) -> AbstractContextManager[WorkerSession]:
    return opened(shared_job(library, transport, ranks))


@EVERY
def test_each_way_to_receive(library: Library | None, transport: str) -> None:
    with session_of(library, transport) as session:
        for receive in ("blocking", "posted", "late", "probe"):
            for size in SIZES:
                options = [("receive", receive)]
                if receive == "probe" and transport in WITHOUT_PROBE:
                    with pytest.raises(WorkerRefused, match="receive=probe needs a probe for messages") as refusal:
                        session.measure("pingpong", bytes=size, options=options)
                    assert refusal.value.unsupported
                    continue
                answer = session.measure("pingpong", bytes=size, batch=4, samples=3, timeout_s=60, options=options)
                assert answer.verified is (transport != "null")
                assert (answer.divisor, answer.messages_per_rep) == (2, 2)
                counted = {name: values for name, values in answer.counters.items() if name.endswith("_receives")}
                of_mode = {"posted": "posted_receives", "late": "late_receives", "probe": "probed_receives"}
                assert counted == ({of_mode[receive]: (REPETITIONS,) * 2} if receive != "blocking" else {})
                assert ("probes" in answer.counters) is (receive == "probe")
                assert ("late_wait_ns" in answer.counters) is (receive == "late")
                if receive == "probe":
                    assert min(answer.counters["probes"]) >= REPETITIONS


@pytest.mark.parametrize("transport", ["pipe", "unix:nonblock", "tcp"])
def test_a_probe_sees_a_message_only_when_it_is_there(transport: str) -> None:
    """Else each of a thousand messages would be there at its first probe."""
    with session_of(None, transport) as session:
        answer = session.measure("pingpong", bytes=8, batch=100, samples=10, options=[("receive", "probe")])
        assert answer.counters["probes"][0] > answer.counters["probed_receives"][0]


def test_the_time_excludes_a_late_receivers_wait() -> None:
    """At most the rest of a rank's wall time, under any load of the machine."""
    with session_of(None, "unix") as session:
        answer = session.measure("pingpong", bytes=65_000, batch=8, samples=10, options=[("receive", "late")])
        waits_ns = sum(answer.counters["late_wait_ns"])
        assert waits_ns > 0
        assert sum(answer.elapsed_ns[0]) <= answer.wall_ns[0] - waits_ns


def test_other_ranks_idle_and_the_ends_can_be_chosen() -> None:
    with session_of(None, "shm", ranks=3) as session:
        for receive in ("posted", "late", "probe"):
            options = [("receive", receive), ("source", "2"), ("target", "1")]
            answer = session.measure("pingpong", bytes=1000, batch=4, samples=3, timeout_s=60, options=options)
            assert (answer.verified, answer.timed) == (True, "rank 2")
            counter = f"{'probed' if receive == 'probe' else receive}_receives"
            assert answer.counters[counter] == (0, REPETITIONS, REPETITIONS)


def test_nothing_is_warmed_up(tmp_path: Path) -> None:
    """The first message of the first sample is received in the way that was asked for, too."""
    with session_of(None, "tcp") as session:
        for receive in ("posted", "late", "probe"):
            options = [("receive", receive)]
            assert session.measure("pingpong", bytes=100, batch=4, samples=3, warmup=0, options=options).verified


# ---- computing ------------------------------------------------------------------------------------------------------


NS = 1000
ONEWAY = [
    *((None, name) for name in ("shm", "shm:sync", "threads", "unix", "tcp:spin")),
    *((library, library.id.partition("@")[0]) for library in LIBRARIES if library is not None),
]


@pytest.mark.parametrize(("library", "transport"), ONEWAY)
def test_oneway_computes_after_each_message(library: Library | None, transport: str) -> None:
    with session_of(library, transport) as session:
        for sender_us, receiver_us in ((20, 0), (0, 30), (20, 30)):
            options = [("delay_us", str(sender_us)), ("receiver_delay_us", str(receiver_us))]
            answer = session.measure("oneway", bytes=1000, batch=5, samples=4, timeout_s=60, options=options)
            assert answer.verified
            assert answer.counters["delays"] == (20 if sender_us else 0, 20 if receiver_us else 0)
            sent_ns, received_ns = answer.counters["delay_ns"]
            assert (sent_ns >= 20 * sender_us * NS, received_ns >= 20 * receiver_us * NS) == (True, True)
            # Acknowledged: the sender has waited until the receiver had computed.
            assert min(answer.elapsed_ns[0]) >= 5 * max(sender_us, receiver_us) * NS
        plain = session.measure("oneway", bytes=1000, samples=2)
        assert "delays" not in plain.counters
        with pytest.raises(WorkerRefused, match="needs window=1") as refusal:
            session.measure("oneway", bytes=8, options=[("delay_us", "1"), ("window", "2")])
        assert refusal.value.unsupported


@pytest.mark.parametrize("transport", ["null", "pipe", "unix", "tcp"])
@pytest.mark.parametrize("way", ["blocking", "nonblocking"])
def test_stream_computes_after_each_write_and_each_read(transport: str, way: str) -> None:
    with session_of(None, transport) as session:
        ways = [("write", way), ("read", way), ("writes", "16")]
        options = [*ways, ("delay_us", "10"), ("receiver_delay_us", "5")]
        answer = session.measure("stream", bytes=3000, batch=2, samples=3, options=options)
        writes = 16 * 2 * 3
        assert answer.verified is (transport != "null")
        assert answer.counters["delays"] == (writes, answer.counters["reads"][1])
        assert answer.counters["delay_ns"][0] >= writes * 10 * NS
        assert min(answer.elapsed_ns[0]) >= 16 * 2 * 10 * NS
        assert "delays" not in session.measure("stream", bytes=3000, options=ways).counters
