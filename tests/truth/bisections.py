"""Rates of `hockney bisect` in histories of 64 commits.

`python -m tests.truth.bisections 1000` makes up 1,000 histories (noise with long tails and outliers), and 1,000 more in
which builds fail. `python -m tests.truth.bisections 20 FOLDER` searches 20 real repositories of a small library, which
is preloaded into the jobs of an MPI and delays each send, from one commit on for longer. After a stop the same command
goes on: FOLDER keeps a line for each search that ended, and the search that did not.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections import Counter
from pathlib import Path

from tests.measure.test_bisect import MadeUp, found, noisy, planted
from tests.shared import finished
from tests.worker.test_commits import Written

from hockney.measure.bisect import Ending
from hockney.worker import cache

_COMMITS = 64
BUILD = "sh build.sh $PREFIX"
_PATTERN = ("pingpong", "--bytes", "8", "-t", "mpi@$PREFIX", "--time", "5m")


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


def _real(folder: Path) -> str:
    """Search the history in a folder, where it is first written; `right`, `open` or `WRONG`, and what was found.

    Right is the planted commit after 9 comparisons or fewer; open is a range with it, or no answer.
    """
    plan, rng = folder / "plan.json", random.Random()
    if not plan.exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "hockney").mkdir(parents=True)
        workers = cache.user_folder("cache") / "workers"
        workers.mkdir(parents=True, exist_ok=True)
        (folder / "hockney/workers").symlink_to(workers)
        planted_at = rng.randint(1, _COMMITS)
        reads = [0] * planted_at + [rng.choice((10, 20, 40))] * (_COMMITS + 1 - planted_at)
        plan.write_text(json.dumps([planted_at, write_library(Written(folder / "library"), reads)]))
    planted_at, commits = json.loads(plan.read_text())
    words = ("--good", commits[0], "--repo", folder / "library", "--build", BUILD, "--jobs", "2", "--json")
    ended = finished(
        [sys.executable, "-m", "hockney", "bisect", *words, "--", *_PATTERN],
        timeout_s=3600,
        env={**os.environ, "XDG_CACHE_HOME": str(folder), "HOCKNEY_STORE": str(folder / "results.db")},
    )
    document = json.loads(ended.stdout or "{}")
    if "trials" not in document:
        raise SystemExit(ended.stderr)
    compared = [trial for trial in document["trials"] if trial["verdict"] != "skipped"]
    found_at = [commits.index(each) for each in document["candidates"]]
    change = compared[0]["ratio"]["value"]
    is_right = found_at == [planted_at] and document["ending"] == "found" and len(compared) <= 9
    word = "right" if is_right else "open" if planted_at in found_at or not found_at else "WRONG"
    said = f"{planted_at} (x{change:.2f}): {document['ending']} {found_at}, {len(compared)} comparisons"
    return f"{word}: {said}, load {os.getloadavg()[1]:.0f}"


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
    count = int(sys.argv[1])
    if len(sys.argv) == 2:
        for failing in (0.0, 0.1):
            _made_up(count, failing, random.Random())
        return
    folder = Path(sys.argv[2])
    found = folder / "found"
    folder.mkdir(parents=True, exist_ok=True)
    found.touch()
    while len(done := found.read_text().splitlines()) < count:
        line = _real(folder / "search")
        print(line, flush=True)
        found.write_text("\n".join([*done, line, ""]))
        shutil.rmtree(folder / "search")
    right = sum(line.startswith("right") for line in done)
    print(f"found {right} of {len(done)}, each in at most 9 comparisons")


if __name__ == "__main__":
    main()
