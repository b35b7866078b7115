"""Computing on either side of oneway and stream between messages, on real transports."""

from __future__ import annotations

import pytest
from tests.worker.test_receive import LIBRARIES, session_of

from hockney.worker.errors import WorkerRefused
from hockney.worker.libraries import Library

NS = 1000
ONEWAY = [
    *((None, name) for name in ("shm", "shm:sync", "threads", "unix", "tcp:spin")),
    *((library, library.id.partition("@")[0]) for library in LIBRARIES if library is not None),
]


@pytest.mark.parametrize(("library", "transport"), ONEWAY)
def test_oneway_computes_after_each_message(library: Library | None, transport: str) -> None:
    with session_of(library, transport) as session:
        session.hello()
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
        session.close()


@pytest.mark.parametrize("transport", ["null", "pipe", "unix", "tcp"])
@pytest.mark.parametrize("way", ["blocking", "nonblocking"])
def test_stream_computes_after_each_write_and_each_read(transport: str, way: str) -> None:
    with session_of(None, transport) as session:
        session.hello()
        ways = [("write", way), ("read", way), ("writes", "16")]
        options = [*ways, ("delay_us", "10"), ("receiver_delay_us", "5")]
        answer = session.measure("stream", bytes=3000, batch=2, samples=3, options=options)
        writes = 16 * 2 * 3
        assert answer.verified is (transport != "null")
        assert answer.counters["delays"] == (writes, answer.counters["reads"][1])
        assert answer.counters["delay_ns"][0] >= writes * 10 * NS
        assert min(answer.elapsed_ns[0]) >= 16 * 2 * 10 * NS
        assert "delays" not in session.measure("stream", bytes=3000, options=ways).counters
        session.close()
