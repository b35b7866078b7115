"""A library with a planted slow collective: its operation, the sizes and what is faster are named, and only with it."""

from __future__ import annotations

from pathlib import Path

from tests.truth.slow_collectives import Slow, measured, named
from tests.worker.test_session import EVERY_MPI

from hockney.report.findings import sentence_of
from hockney.worker.libraries import Library

# The factor is more than any library that works as it should is faster than a ring.
SLOW = Slow("allgather", 16 << 10, 64 << 10, times=10)
WORDS = ("--bytes", "1K,16K,64K", "--time", "60s", "--precision", "10%", "-o", "algorithm=native,ring,parts")


@EVERY_MPI
def test_a_planted_slow_collective_is_named(mpi: Library, tmp_path: Path) -> None:
    variables = SLOW.variables(mpi, tmp_path)
    slow = named(measured(mpi, tmp_path / "planted.db", SLOW.operation, *WORDS, **variables))
    assert slow is not None
    assert {SLOW.least, SLOW.most} <= set(slow.subject.sizes_bytes)
    assert (slow.facts["operation"], slow.facts["algorithm"]) == ("allgather", "ring")
    assert slow.facts["size_bytes"] in (SLOW.least, SLOW.most)
    assert "times as long as ring (" in sentence_of(slow)
    healthy = named(measured(mpi, tmp_path / "healthy.db", SLOW.operation, *WORDS))
    if healthy is not None:  # the library may really be slower than a ring, by far less
        assert 3 * healthy.facts["slower_ratio"].value < slow.facts["slower_ratio"].value
