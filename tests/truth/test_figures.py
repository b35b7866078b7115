"""Figures between hosts against other programs, which measure the same cables in turn with hockney.

Whatever else runs here can only slow a program down, so the least time of all rounds counts, of each program.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.truth.bed.bed import Bed, Host
from tests.truth.conftest import MakeBed
from tests.truth.runs import MEASURED, hockney
from tests.truth.test_bed import ECHO, ROUND_TRIP, iperf, said

from hockney.machine.placement import usable_cpus
from hockney.results.runs import open_results

_TOLERANCE = 0.03
_ROUNDS = 6
_WINDOW = 64
_PAYLOAD = 1448 / 1514  # of a full Ethernet frame, TCP's timestamps left out
# Mbit/s, and bytes of which a window takes a third of a second: a cable may send 1 ms of that at once, without limit.
RATES = {"n2": (100, 1 << 16), "n3": (1000, 1 << 19)}
DELAYS_MS = {"n4": 1, "n5": 5}
TRANSPORTS = ("tcp", "mpi@mpich-4")


@pytest.fixture(scope="module")
def bed(make_bed: MakeBed) -> Bed:
    """n1 has another CPU than the rest: MPI ranks spin as they wait, and on one CPU they would wait for each other."""
    first, last = usable_cpus()[0], usable_cpus()[-1]
    fast = (Host(rate_mbit=rate, cpus=[last]) for rate, _ in RATES.values())
    return make_bed(Host(cpus=[first]), *fast, *(Host(delay_ms=delay, cpus=[last]) for delay in DELAYS_MS.values()))


def least_ns(bed: Bed, store: Path, target: str, transport: str, *words: str) -> float:
    """The least time of a short run of a pattern from n1 to the target."""
    short = ("--per-node", "1", "--launches", "1", "--time", "1s")
    hockney(bed, store, "run", *words, "--hosts", f"n1,{target}", "-t", transport, *short, codes=MEASURED)
    with open_results(store) as results:
        (series,) = results.run("last").series
        assert series.times_ns.size
        return float(series.times_ns.min())


def compare(known_ns: Callable[[], float], measured_ns: Callable[[], float], possible_ns: float) -> None:
    """Rounds of both programs, until their least times agree; neither may be faster than the cable."""
    known, measured = [], []
    for _ in range(_ROUNDS):
        known.append(known_ns())
        measured.append(measured_ns())
        over = min(measured) / min(known)
        assert min(*known, *measured) > possible_ns * (1 - _TOLERANCE)
        if abs(over - 1) <= _TOLERANCE:
            return
    load, cpus = os.getloadavg()[0], len(usable_cpus())
    if over > 1 and load > 2 * cpus:  # a rank that spins gets no CPU in time
        pytest.xfail(f"load {load:.0f} on {cpus} CPUs: hockney has {over:.3f} of the known time")
    pytest.fail(f"hockney has {measured} ns where {known} ns are known")


@pytest.mark.full
@pytest.mark.parametrize("target", RATES, ids=[f"{rate} Mbit/s" for rate, _ in RATES.values()])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_bandwidth_is_that_of_iperf3(bed: Bed, tmp_path: Path, target: str, transport: str) -> None:
    rate_mbit, size = RATES[target]

    def known_ns() -> float:
        return 8e9 * size / float(iperf(bed, target, "--time", "1")["sum_received"]["bits_per_second"])

    def measured_ns() -> float:
        words = ("oneway", "--bytes", str(size), "-o", f"window={_WINDOW}")
        return least_ns(bed, tmp_path / "r.db", target, transport, *words)

    compare(known_ns, measured_ns, 8e3 * size / (rate_mbit * _PAYLOAD))


@pytest.mark.full
@pytest.mark.parametrize("target", DELAYS_MS, ids=[f"{delay} ms" for delay in DELAYS_MS.values()])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_latency_is_that_of_bare_sockets(bed: Bed, tmp_path: Path, target: str, transport: str) -> None:
    def known_ns() -> float:
        with bed.serve(target, [sys.executable, "-c", ECHO], "ready"):
            return 1e6 * float(said(bed, "n1", sys.executable, "-c", ROUND_TRIP, target)) / 2

    def measured_ns() -> float:
        return least_ns(bed, tmp_path / "r.db", target, transport, "pingpong", "--bytes", "8")

    compare(known_ns, measured_ns, DELAYS_MS[target] * 1e6)
