"""The part `hosts`: many ranks on eight hosts of the test bed: their start, the pairs of `health`, rank 0's memory."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.benchlib.commands import ROOT
from scripts.benchlib.place import Place
from scripts.benchlib.table import Row, Target, not_measured, row_of, row_of_one
from tests.truth.bed.bed import Bed, Host, why_not_here

import hockney
from hockney.errors import ExitCode, HockneyError
from hockney.stats import median

_HOSTS, _RANKS = 8, 256
_LIMIT_S = 180.0
_SHOWN = Target("-")  # without a limit
# Prints the seconds from the start of a job to its first answer, and the memory of rank 0 after a measurement.
_START = """
import sys, time
from pathlib import Path
from hockney.worker.build import build_worker
from hockney.worker.hosts import parse_hosts
from hockney.worker.launch import Job, launch
from hockney.worker.placement import Placement
from hockney.worker.session import WorkerSession
job = Job(build_worker(), "tcp", int(sys.argv[2]), Placement(hosts=parse_hosts(sys.argv[1])), oversubscribed=True)
begin_s = time.perf_counter()
with WorkerSession(launch(job)) as session:
    ranks = session.hello().ranks
    took_s = time.perf_counter() - begin_s
    session.measure("rounds", bytes=8, samples=3)
    status = dict(line.split(":", 1) for line in Path(f"/proc/{ranks[0].pid}/status").read_text().splitlines())
    print(took_s, status["RssAnon"].split()[0])
"""


def hosts(place: Place) -> list[Row]:
    """The start of 256 ranks, and the memory that each costs rank 0; the pairs that `health` measures in a second."""
    names, times = f"n[1-{_HOSTS}]", 1 if place.short else 7
    start = f"start of {_RANKS} tcp ranks on {_HOSTS} hosts"
    why = why_not_here()
    if why is not None:
        return [not_measured(start, _SHOWN, why)]
    with Bed([Host()] * _HOSTS) as bed:
        found: dict[int, list[tuple[float, float]]] = {_HOSTS: [], _RANKS: []}
        for number, ranks in itertools.product(range(times), found):
            place.say(f"hosts: start of {ranks} ranks, {number + 1} of {times}")
            place.look_round()
            took_s, memory_kib = _on_first(bed, [sys.executable, "-c", _START, names, str(ranks)]).split()
            found[ranks].append((float(took_s), float(memory_kib)))
        place.say("hosts: health")
        store = place.folder / "hosts.db"
        words = ["health", "--hosts", names, "--store", str(store), "--time", "10s" if place.short else "60s", "-q"]
        _on_first(bed, [str(ROOT / "hockney"), *words])
    few, many = (median([memory for _, memory in found[ranks]]).value for ranks in found)
    each_kib = (many - few) / (_RANKS - _HOSTS)
    rate = _pairs_per_s(store)
    return [
        *(
            row_of(f"start of {ranks} tcp ranks on {_HOSTS} hosts", _SHOWN, median([s for s, _ in known]), "s")
            for ranks, known in found.items()
        ),
        row_of_one(
            f"rank 0 of {_RANKS}: memory", _SHOWN, many, f"{many / 1024:.1f} MiB: {each_kib:.2f} KiB for each rank"
        ),
        row_of_one(f"`hockney health` of {_HOSTS} hosts: pairs", _SHOWN, rate, f"{rate:.0f} a second (one run)"),
    ]


def _pairs_per_s(store: Path) -> float:
    """How often a pair was measured in a second of a run: in each measurement all of a round are."""
    with hockney.open(store) as results:
        run = results.run()
        return sum(len(series.measurements) for series in run.series) * (_HOSTS // 2) / (run.measured_s or 1.0)


def _on_first(bed: Bed, argv: Sequence[str]) -> str:
    """The output of a command on the first host. Raises HockneyError if it fails."""
    try:
        done = bed.run("n1", argv, limit_s=_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise HockneyError(f"{Path(argv[0]).name} did not end on n1 within {_LIMIT_S:g} s") from error
    if done.returncode not in (ExitCode.DONE, ExitCode.WORSE, ExitCode.INCOMPLETE):  # hosts that share CPUs may be slow
        raise HockneyError(f"{Path(argv[0]).name} ended on n1 with {done.returncode}: {done.stderr[-300:]}")
    return str(done.stdout)
