"""Those that are timed together meet before each sample, where a barrier is not enough; test_meet.c says how well."""

from __future__ import annotations

import pytest
from tests.worker.test_native import FAULTY, converse, measure

from hockney.worker.build import build_worker

SAMPLES = 3
TWO_TIMED = ["pingpong", "prtt", "oneway", "rounds", "bisection", "pairs", "putpong"]
BOTH_ACT = ["twoway"]


def what_rank_0_does(pattern: str, ranks: int) -> list[tuple[str, int]]:
    """Its messages and puts of one point of 64 B, in their order: which, and of how many bytes."""
    command = measure(pattern, 64, samples=SAMPLES, batch=2, warmup=0, verify="no")
    arguments = ["-t", "fault", "-n", str(ranks), "--oversubscribed"]
    answers, done = converse(build_worker(FAULTY), [command], *arguments, env={"HOCKNEY_FAULT": "list 0 0"})
    assert [answer["kind"] for answer in answers] == ["measure", "bye"], done.stderr
    lines = [line.partition("fault: ")[2].split() for line in done.stderr.splitlines() if "fault: " in line]
    return [(words[0], int(words[1])) for words in lines]


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("pattern", [*TWO_TIMED, *BOTH_ACT, "ring"])
def test_two_that_are_timed_together_meet_before_each_sample(pattern: str, ranks: int) -> None:
    token, meeting = ("sends", 0), ("puts", 8) if pattern == "putpong" else ("sends", 0)
    barrier = [token] * (1 if ranks == 2 else 2)
    met = [meeting] if ranks > 2 and pattern in TWO_TIMED else []
    if pattern in BOTH_ACT:
        met = [meeting] * 5  # they meet, see thrice how long a round trip takes, and then one gives the word
    did = what_rank_0_does(pattern, ranks)
    before = [*barrier, *met]
    sample = did[2 * len(before) : did.index(token, 2 * len(before))]
    assert {size for _, size in sample} <= {8, 56, 64}
    assert did == [*before, *(before + sample) * SAMPLES, *barrier]
