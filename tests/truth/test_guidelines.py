"""A library with a planted slow collective: its operation, the sizes and what is faster are named, and only with it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.truth.runs import MEASURED, argv, run_of
from tests.worker.test_session import EVERY_MPI

from hockney.analysis.explain.pattern_pairs import slower_than_parts
from hockney.analysis.explain.read import read_run
from hockney.analysis.finding import Finding, NotChecked
from hockney.report.findings import sentence_of
from hockney.worker.libraries import Library

_LIMIT_S = 280
_SIZES = "1K,16K,64K"
_PLANTED = (16 << 10, 64 << 10)
_TIMES = 10  # more than any library that works as it should is faster than a ring


def planted(mpi: Library, folder: Path) -> dict[str, str]:
    """Variables that make this library's allgather slow: the object calls the library that the worker has."""
    parts, library = folder / "slow.o", folder / "slow.so"
    source = Path(__file__).parent / "slow_collective.c"
    subprocess.run([*mpi.recipe.compiler, "-fPIC", "-c", "-o", parts, source], check=True)
    subprocess.run(["cc", "-shared", "-o", library, parts], check=True)
    return {"LD_PRELOAD": str(library), "HOCKNEY_SLOW": f"Allgather {_PLANTED[0]} {_PLANTED[1]} {_TIMES}"}


def slower(mpi: Library, store: Path, **variables: str) -> Finding | None:
    """What a run says of the library's allgather. It is asked directly: of a busy machine `explain` says only that."""
    words = ("run", "allgather", "-t", mpi.id, "-n", "2", "--bytes", _SIZES, "--quiet")
    limits = ("--time", "60s", "--launches", "1", "--precision", "10%", "-o", "algorithm=native,ring,parts")
    command = argv(store, *words, *limits)
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )
    assert done.returncode in MEASURED, done.stderr
    findings = slower_than_parts(read_run(run_of(store)))
    assert not isinstance(findings, NotChecked), done.stdout
    return next(iter(findings), None)


@EVERY_MPI
def test_a_planted_slow_collective_is_named(mpi: Library, tmp_path: Path) -> None:
    slow = slower(mpi, tmp_path / "planted.db", **planted(mpi, tmp_path))
    assert slow is not None
    assert set(_PLANTED) <= set(slow.subject.sizes_bytes)
    assert (slow.facts["operation"], slow.facts["algorithm"]) == ("allgather", "ring")
    assert slow.facts["size_bytes"] in _PLANTED
    assert "slower than ring over the same library" in sentence_of(slow)
    healthy = slower(mpi, tmp_path / "healthy.db")
    if healthy is not None:  # the library may really be slower than a ring, by far less
        assert 3 * healthy.facts["slower_ratio"].value < slow.facts["slower_ratio"].value
