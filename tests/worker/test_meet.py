"""Those that are timed together meet where a barrier is not enough: before each sample, or once before a stream.

test_meet.c says how well.
"""

from __future__ import annotations

import pytest
from tests.worker.extra import EXTRA
from tests.worker.test_native import DESCRIPTION, converse, measure

from hockney.worker.build import build_worker

SAMPLES = 3
# Each of their samples begins when both ends have met; the target of a get takes no part.
SHM = next(row for row in DESCRIPTION["transports"] if row["name"] == "shm")
LATENCY = [
    row["name"]
    for row in DESCRIPTION["patterns"]
    if not row["stream"] and row["ranks"][0] == 2 and {*row["needs"]} <= {*SHM["caps"]}
]
LATENCY.remove("get")
LATENCY.remove("clocks")  # keeps the shortest of its exchanges, so that a late start does no harm
LATENCY.remove("owd")  # of two ranks alone, whose exchanges bring them together
STREAMS = ["oneway", "bisection", "pairs"]
BOTH_ACT = ["twoway", "pingping"]


def what_rank_0_does(pattern: str, ranks: int) -> list[tuple[str, int]]:
    """Its messages and puts of one point of 64 B, in their order: which, and of how many bytes."""
    command = measure(pattern, 64, samples=SAMPLES, batch=2, warmup=0, verify="no")
    arguments = ["-t", "fault", "-n", str(ranks), "--oversubscribed"]
    answers, done = converse(build_worker(EXTRA), [command], *arguments, env={"HOCKNEY_FAULT": "list 0 0"})
    assert [answer["kind"] for answer in answers] == ["measure", "bye"], done.stderr
    lines = [line.partition("fault: ")[2].split() for line in done.stderr.splitlines() if "fault: " in line]
    return [(words[0], int(words[1])) for words in lines]


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("pattern", [*LATENCY, *STREAMS, *BOTH_ACT, "ring"])
def test_ranks_timed_together_meet_but_never_within_a_stream(pattern: str, ranks: int) -> None:
    token, meeting = ("sends", 0), ("puts", 8) if pattern == "putpong" else ("sends", 0)
    barrier = [token] * (1 if ranks == 2 else 2)
    met = [meeting] if pattern in LATENCY + STREAMS else []
    if pattern in BOTH_ACT:
        met = [meeting] * 5  # they meet, see thrice how long a round trip takes, and then one gives the word
    did = what_rank_0_does(pattern, ranks)
    before = [*barrier, *met]
    if pattern in LATENCY:
        sample = did[len(before) : did.index(token, len(before))]
        assert {size for _, size in sample} <= {8, 56, 64}
        assert did == [*(before + sample) * SAMPLES, *barrier]
    else:
        assert did == [*before, *[("sends", 64)] * 2 * SAMPLES, *barrier]
