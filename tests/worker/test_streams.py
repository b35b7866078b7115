"""Streams of events on a virtual clock: the costs of a send, a receive and the way of a message are known exactly.

So is the time of every sample. All is in ns: S and R occupy the sender and the receiver, W is the way of a message
without its bytes; virtual.c says how they combine.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.worker.test_native import measure, measured, on_virtual, shared

S, R, W, BYTE = 300, 400, 1000, 2
BATCH, SAMPLES = 64, 4
DELAY = 50_000


def samples_of(
    pattern: str, size: int, ranks: int, costs: str = f"{S} {R} {W} {BYTE}", **options: Any
) -> list[list[int]]:
    """Of each rank the time of each sample."""
    command = measure(pattern, size, samples=SAMPLES, batch=BATCH, warmup=16, **options)
    answer = on_virtual(costs, command, ranks)
    assert answer["verified"] is (pattern != "barrier")  # which carries nothing
    samples: list[list[int]] = answer["elapsed_ns"]
    return samples


def test_oneway_is_a_row_of_sends_and_one_acknowledgement() -> None:
    """The receiver is slower than the sender, so the last message is taken BATCH receives after the first arrived."""
    way = W + 8 * BYTE
    sender, _ = samples_of("oneway", 8, 2)
    assert sender == [S + way + BATCH * R + S + W + R] * SAMPLES


def test_oneway_until_sent_is_its_sends() -> None:
    sender, _ = samples_of("oneway", 8, 2, until="sent")
    assert sender == [BATCH * S] * SAMPLES


def test_pairs_are_oneways_side_by_side() -> None:
    samples = samples_of("pairs", 8, 4)
    assert samples[:2] == [[S + W + 8 * BYTE + BATCH * R + S + W + R] * SAMPLES] * 2


def test_funnel_takes_one_message_after_the_other() -> None:
    receiver, *senders = samples_of("funnel", 64, 4)
    assert receiver == [BATCH * 3 * R] * SAMPLES
    assert senders == [[BATCH * S] * SAMPLES] * 3, "they wait for nobody"


def test_barriers_follow_each_other() -> None:
    """Two rounds of dissemination among four ranks."""
    assert samples_of("barrier", 0, 4) == [[BATCH * 2 * (S + W + R)] * SAMPLES] * 4


@pytest.mark.parametrize(("senders", "receivers"), [(1, 2), (3, 1), (3, 5)])
def test_an_event_of_a_push_farm_has_three_hops_however_many_receivers(senders: int, receivers: int) -> None:
    """The senders start one after the other; the receiver takes fragments one by one, slower than they come."""
    hop = W + 16 * BYTE
    event = (S + hop + R) + (S + hop + senders * R) + (S + hop + R)
    supervisor, *_ = samples_of("pushfarm", 16, 1 + senders + receivers, senders=senders)
    assert supervisor == [BATCH * event] * SAMPLES


ASKED = W + 16 * BYTE  # the way of a request


def answer_at(size: int) -> int:
    """When an answer is there, from the moment at which the processor begins to ask."""
    return S + ASKED + R + S + W + size * BYTE


@pytest.mark.parametrize(("robs", "delay_us"), [(1, 0), (1, DELAY // 1000), (4, DELAY // 1000)])
def test_one_buffer_overlaps_nothing(robs: int, delay_us: int) -> None:
    event = robs * (answer_at(256) + R) + 1000 * delay_us
    processor, *_ = samples_of("robpull", 256, robs + 1, delay_us=delay_us)
    assert processor == [BATCH * event] * SAMPLES


@pytest.mark.parametrize("robs", [1, 3])
@pytest.mark.parametrize("size", [256, 100_000], ids=["short", "long"])
def test_with_two_buffers_the_first_answer_comes_while_the_processor_computes(robs: int, size: int) -> None:
    """Also from one sample to the next: only the last event of all has no next one, and asks for none."""
    overlapped = max(answer_at(size), S + DELAY) + R
    event = overlapped + (robs - 1) * (answer_at(size) + R)
    processor, *_ = samples_of("robpull", size, robs + 1, delay_us=DELAY // 1000, buffers=2)
    assert (answer_at(size) > S + DELAY) is (size == 100_000), "either is the longer one"
    # A sample begins when a delay has ended: then the rest of earlier requests arrives.
    assert processor[:-1] == [BATCH * event] * (SAMPLES - 1)
    assert processor[-1] == BATCH * event - S


def test_where_messages_cost_nothing_an_event_is_its_delay() -> None:
    for buffers in (1, 2):
        processor, *_ = samples_of("robpush", 64, 3, costs="0 0 0 0", delay_us=7, buffers=buffers)
        assert processor == [BATCH * 7000] * SAMPLES


@pytest.mark.parametrize("pattern", ["robpush", "robpull"])
def test_on_null_every_event_has_its_delay_and_no_other(pattern: str) -> None:
    command = measure(pattern, 64, samples=SAMPLES, batch=BATCH, delay_us=3, delay_kind="clock", buffers=2)
    (answer,) = measured([command], "-t", "null", *shared(3))
    assert answer["counters"]["delays"] == [BATCH * SAMPLES, 0, 0]
    assert sum(answer["elapsed_ns"][0]) >= answer["counters"]["delay_ns"][0] >= BATCH * SAMPLES * 3000


def test_the_samples_of_a_latency_pattern_stand_alone() -> None:
    source, _ = samples_of("pingpong", 8, 2)
    assert source == [BATCH * 2 * (S + W + 8 * BYTE + R)] * SAMPLES
