"""Rates of `hockney bisect`; `python -m tests.truth.bisections 20` searches 20 histories of 64 commits, and 2,000 more.

The 2,000 are made up: noise with long tails and outliers, and builds that fail. The 20 are real repositories of a small
library, which is preloaded into the jobs of an MPI and delays each send, from one commit on for longer.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.measure.test_bisect import MadeUp, found, noisy, planted
from tests.shared import finished
from tests.worker.test_commits import Written

from hockney.measure.bisect import Ending

_COMMITS = 64
BUILD = "sh build.sh $PREFIX"


def mpi_is_here() -> bool:
    return shutil.which("mpicc.openmpi") is not None and shutil.which("mpiexec.openmpi") is not None


def write_library(written: Written, reads: list[int]) -> list[str]:
    """A commit for each number of clock readings (20 ns or more) that delay a send; the first adds the build."""
    (written.folder / "build.sh").write_text(
        "set -e\nmkdir $PREFIX/bin $PREFIX/lib\n"
        "mpicc.openmpi -O2 -shared -fPIC -o $PREFIX/lib/delay.so delay.c\n"
        """printf '#!/bin/sh\\nexec mpicc.openmpi "$@"\\n' >$PREFIX/bin/mpicc\n"""
        "preloaded=$PREFIX/lib/delay.so\n"
        """printf '#!/bin/sh\\nexec mpiexec.openmpi -x LD_PRELOAD=%s "$@"\\n' $preloaded >$PREFIX/bin/mpiexec\n"""
        "chmod +x $PREFIX/bin/*\n"
    )
    commits: list[str] = []
    for count in reads:
        (written.folder / "delay.c").write_text(
            "#include <mpi.h>\n#include <time.h>\n"
            "int MPI_Send(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)\n{\n"
            "    struct timespec now;\n"
            f"    for (int left = {count}; left > 0; left--) clock_gettime(CLOCK_MONOTONIC, &now);\n"
            "    return PMPI_Send(buf, count, type, to, tag, comm);\n}\n"
        )
        commits.append(written.commit(f"{len(commits)}"))
    return commits


def _real(folder: Path, rng: random.Random) -> bool:
    """Search one history, and print what was found; whether that is the planted commit in 9 comparisons or fewer."""
    planted_at = rng.randint(1, _COMMITS)
    written = Written(folder / "library")
    commits = write_library(written, [0] * planted_at + [rng.choice((10, 20, 40))] * (_COMMITS + 1 - planted_at))
    (folder / "hockney").mkdir()
    (folder / "hockney/workers").symlink_to(Path.home() / ".cache/hockney/workers")
    words = ("--good", commits[0], "--repo", str(written.folder), "--build", BUILD, "--jobs", "2", "--json")
    begin_s = time.monotonic()
    ended = finished(
        [sys.executable, "-m", "hockney", "bisect", *words, "--", "pingpong", "--bytes", "8", "-t", "mpi@$PREFIX"],
        timeout_s=3600,
        env={**os.environ, "XDG_CACHE_HOME": str(folder), "HOCKNEY_STORE": str(folder / "results.db")},
    )
    document = json.loads(ended.stdout)
    compared = [trial for trial in document["trials"] if trial["verdict"] != "skipped"]
    found_at = [commits.index(each) for each in document["candidates"]]
    took_s = time.monotonic() - begin_s
    change = compared[0]["ratio"]["value"]
    print(f"{planted_at} (x{change:.2f}): {document['ending']} {found_at}, {len(compared)} comparisons, {took_s:.0f} s")
    return found_at == [planted_at] and document["ending"] == "found" and len(compared) <= 9


def _made_up(count: int, failing: float, rng: random.Random) -> None:
    """Search histories some of whose builds fail, and print the ends."""
    ends: Counter[str] = Counter()
    for _ in range(count):
        first, factor = rng.randint(1, _COMMITS), rng.choice((1.1, 1.3, 2.0, 0.8))
        broken = {commit for commit in range(1, _COMMITS) if rng.random() < failing}
        judge = MadeUp(noisy(rng, rng.choice((0.01, 0.03, 0.05)), planted((first, factor))), broken=broken)
        end = found(judge)
        is_right = str(first) in end.candidates or not end.candidates
        ends[end.ending.value if is_right else "WRONG"] += 1
        ends["in at most 9 comparisons"] += end.ending is Ending.FOUND and judge.count <= 9
    print(f"{count} made-up histories, {failing:.0%} of whose builds fail: {dict(ends)}")


def main() -> None:
    rng, count = random.Random(), int(sys.argv[1])
    for failing in (0.0, 0.1):
        _made_up(1000, failing, rng)
    right = 0
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            right += _real(Path(folder), rng)
    print(f"found {right} of {count}, each in at most 9 comparisons")


if __name__ == "__main__":
    main()
