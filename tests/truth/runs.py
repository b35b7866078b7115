"""Commands of hockney on the first host of a bed, and the runs that they store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Container
from pathlib import Path

from tests.truth.bed.bed import Bed

from hockney.results.runs import Run
from hockney.results.store import Store

_LIMIT_S = 290  # below that of a test
MEASURED = (0, 3)  # 3: no interval in so little time


def argv(store: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "hockney", *words, "--store", str(store)]


def hockney(
    bed: Bed, store: Path, *words: str, codes: Container[int] = (0,), **variables: str
) -> subprocess.CompletedProcess[str]:
    """The ended command on n1, which must have one of these exit codes."""
    environment = {**os.environ, **variables}
    done: subprocess.CompletedProcess[str] = bed.run("n1", argv(store, *words), limit_s=_LIMIT_S, env=environment)
    assert done.returncode in codes, done.stderr
    return done


def run_of(path: Path) -> Run:
    """The first run in a file, with all its measurements."""
    with Store.open(path, readonly=True) as store:
        run = Run(store, 1)
        for series in run.series:
            _ = series.measurements, series.pairs  # they stay
    return run


def nothing_is_stored(path: Path) -> bool:
    with Store.open(path, readonly=True) as store:
        return store.runs() == []
