"""The transport udp, where datagrams really get lost: buffers that overflow, and nothing that hangs for it."""

from __future__ import annotations

import pytest
from tests.worker.extra import EXTRA
from tests.worker.test_native import PATTERNS, converse, measure, measured

from hockney.worker.build import Recipe, build_worker

TRANSPORTS = ["udp", "udp:spin"]
pytestmark = pytest.mark.timeout(700)  # as in test_native.py
MAX_BYTES = 65_491


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_pattern_arrives_or_is_counted(transport: str, checked: Recipe) -> None:
    commands = [measure(pattern, size) for pattern in PATTERNS for size in (0, 8, 4097)]
    for answer in measured(commands, "-t", transport, "-n", "4", "--oversubscribed", recipe=checked):
        assert set(answer["counters"]) >= {"lost", "late"}
        if answer["bytes"] == 8 and answer["pattern"] != "barrier":  # a few short ones find room in any buffer
            assert answer["verified"], answer["pattern"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_overflow_is_lost_and_counted_and_not_verified(transport: str) -> None:
    """60 MB come to a rank that sends as much before it reads, on its one CPU: no buffer holds that."""
    flood = measure("twoway", 60_000, window=1024, batch=1, samples=2)
    commands = [measure("pingpong", 8), flood, measure("pingpong", 8)]
    arguments = ["-t", transport, "--bind", "0,0", "--oversubscribed"]
    answers = measured(commands, *arguments)
    first, flooded, last = answers
    assert first["counters"]["lost"] == last["counters"]["lost"] == [0, 0]
    assert first["verified"]
    assert last["verified"]
    # At most all: two samples of 1024 messages to each rank, and before each a token and those of the meeting.
    assert 0 < sum(flooded["counters"]["lost"]) <= 2 * (2 * 1025 + 5 + 4)
    assert not flooded["verified"]


def test_the_longest_message_and_one_byte_more() -> None:
    commands = [measure("pingpong", MAX_BYTES), measure("pingpong", MAX_BYTES + 1)]
    answers, done = converse(build_worker(), commands, "-t", "udp")
    assert [a["kind"] for a in answers] == ["measure", "error", "bye"], done.stderr
    assert answers[0]["verified"]
    assert answers[1]["message"] == "udp sends at most 65491 B in one message"


@pytest.mark.parametrize(
    ("point", "at_rank", "sender"),
    [({"pattern": "pingpong"}, 1, 0), ({"pattern": "allreduce", "algorithm": "linear"}, 0, -1)],
    ids=["message", "sum"],
)
def test_wrong_is_lost_only_where_something_was_lost(point: dict[str, str], at_rank: int, sender: int) -> None:
    """A transport that may lose messages still gets a report of corrupted ones."""
    words = dict(point)
    command = measure(words.pop("pattern"), 64, **words)
    said = {}
    for fault in ("lose", "corrupt"):
        number = 64 if fault == "lose" else 17
        env = {"HOCKNEY_FAULT": f"{fault} {at_rank} {number}"}
        (said[fault], bye), done = converse(build_worker(EXTRA), [command], "-t", "lossy", env=env)
        assert bye["kind"] == "bye", done.stderr
    assert (said["lose"]["kind"], said["lose"]["verified"]) == ("measure", False)
    assert said["lose"]["counters"]["lost"][at_rank] == 12
    wrong = said["corrupt"]
    assert (wrong["kind"], wrong["code"], wrong["from"]) == ("error", "corrupt", sender)
