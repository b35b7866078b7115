"""Collectives of a library that are made slow; `python -m tests.truth.slow_collectives` counts how many a run names.

For each operation of each MPI, one run without a fault and one with it: planted so that every size in the range takes
the factor of the best algorithm over the library's messages, or 1.3 times its own time where that is more.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.truth.runs import MEASURED, argv, run_of

from hockney.analysis.explain.curve import Reading, is_like
from hockney.analysis.explain.pattern_pairs import slower_than_parts
from hockney.analysis.explain.read import read_run
from hockney.analysis.finding import Finding, NotChecked
from hockney.report.findings import sentence_of
from hockney.stats.fit import Estimate
from hockney.worker.libraries import MPI, Library

_LIMIT_S = 280
_OPERATIONS = {
    "bcast": "binomial,chain",
    "reduce": "binomial,chain",
    "allreduce": "doubling,ring",
    "allgather": "ring,bruck",
    "alltoall": "linear,pairwise",
    "reduce_scatter_block": "pairwise,halving",
    "scan": "doubling,linear",
}
_SIZES = (1024, 4096, 16384, 65536)
_RANGES = ((16384, 65536), (1024, 4096), (4096, 16384))
_FACTORS = (1.3, 1.8, 3.0)


@dataclass(frozen=True)
class Slow:
    """A collective that takes `times` as long where its blocks or vectors have `least` to `most` bytes."""

    operation: str
    least: int
    most: int
    times: float

    def variables(self, mpi: Library, folder: Path) -> dict[str, str]:
        """Those that plant it in a job: the object calls the library that the worker is linked with."""
        parts, library = folder / "slow.o", folder / "slow.so"
        source = Path(__file__).parent / "slow_collective.c"
        subprocess.run([*mpi.recipe.compiler, "-O1", "-fPIC", "-c", "-o", parts, source], check=True)
        subprocess.run(["cc", "-shared", "-o", library, parts], check=True)
        words = f"{self.operation.capitalize()} {self.least} {self.most} {self.times:.3f}"
        return {"LD_PRELOAD": str(library), "HOCKNEY_SLOW": words}


def measured(mpi: Library, store: Path, operation: str, *words: str, **variables: str) -> Reading:
    """One launch of an operation among two ranks."""
    command = argv(store, "run", operation, "-t", mpi.id, "-n", "2", "--launches", "1", "--quiet", *words)
    environment = {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    assert done.returncode in MEASURED, done.stderr
    return read_run(run_of(store))


def named(reading: Reading) -> list[Finding]:
    """What is slow, whatever else runs: `explain` says only that of a busy machine. Two findings: one is not sure."""
    findings = slower_than_parts(reading)
    assert not isinstance(findings, NotChecked)
    return list(findings)


def over_the_best(reading: Reading) -> dict[int, Estimate]:
    """The library's time over that of the best algorithm in the same state, by size."""
    ratios: dict[int, list[Estimate]] = {}
    native = [curve for curve in reading.curves if curve.algorithm == "native"]
    for whole, other in itertools.product(native, (curve for curve in reading.curves if curve not in native)):
        for point in whole.points if is_like(whole, other) else ():
            if (by_hand := other.at(point.bytes)) is not None:
                ratios.setdefault(point.bytes, []).append(point.time_ns / by_hand)
    return {size: max(each, key=lambda ratio: ratio.value) for size, each in ratios.items()}


def rows(mpi: Library, folder: Path, time: str, shift: int) -> Iterator[tuple[bool, bool, str]]:
    """Of each operation: whether all planted sizes are named, and whether one run names a healthy size falsely.

    Falsely: by the other run it is not slow.
    """
    for at, (operation, algorithms) in enumerate(_OPERATIONS.items()):
        words = ("--bytes", ",".join(map(str, _SIZES)), "--time", time, "-o", f"algorithm=native,{algorithms}")
        stem = f"{mpi.id.removeprefix('mpi@')}-{operation}"
        (least, most), factor = _RANGES[(at + shift) % 3], _FACTORS[(at + 2 * shift) % 3]
        reading = measured(mpi, folder / f"{stem}-control.db", operation, *words)
        healthy, had = over_the_best(reading), named(reading)
        usual = min((ratio.value for size, ratio in healthy.items() if least <= size <= most), default=1.0)
        slow = Slow(operation, least, most, max(factor / usual, 1.3))
        reading = measured(mpi, folder / f"{stem}-planted.db", operation, *words, **slow.variables(mpi, folder))
        found, ratios = named(reading), (healthy, over_the_best(reading))
        planted = {size for size in _SIZES if least <= size <= most}
        said, before = ({size for one in each for size in one.subject.sizes_bytes} for each in (found, had))
        sides = [[each[size] for each in ratios if size in each] for size in (said ^ before) - planted]
        is_refuted = any(side.high < 1.05 for each in sides for side in each)
        text = " ".join(map(sentence_of, found)) or "nothing"
        line = f"{stem} {least}-{most} x{slow.times:.2f}, without it {sorted(before)}: {text}"
        yield planted <= said, is_refuted, line


def main() -> None:
    """Print each case and the counts; arguments: a folder for the runs, the time of each."""
    folder, time = Path(sys.argv[1]), sys.argv[2]
    cases = []
    for shift, mpi in enumerate(MPI()[0]):
        for case in rows(mpi, folder, time, shift):
            cases.append(case)
            print("named" if case[0] else "MISSED", "also falsely:" if case[1] else "-", case[2], flush=True)
    print(f"named {sum(case[0] for case in cases)} of {len(cases)}, falsely {sum(case[1] for case in cases)}")


if __name__ == "__main__":
    main()
