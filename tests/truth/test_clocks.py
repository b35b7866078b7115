"""Clocks of hosts that share one clock: no difference within the error, also over a slow cable.

And the one-way delays that are measured with them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.truth.bed.bed import Bed, Host, burst_bytes
from tests.truth.conftest import MakeBed
from tests.truth.runs import MEASURED, hockney, run_of

from hockney.analysis.clocks import clocks_around
from hockney.model import PointStatus


def test_hosts_with_one_clock(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(Host(), Host(), Host(delay_ms=5))
    words = ("run", "clocks", "-t", "tcp", "--time", "3s", "--launches", "1", "--per-node", "1", "-n", "3")
    done = hockney(bed, tmp_path / "r.db", *words, "--hosts", "n[1-3]", "--json", codes=MEASURED)
    (job,) = json.loads(done.stdout)["clocks"]
    assert [host["host"] for host in job["hosts"]] == ["n1", "n2", "n3"]
    for host in job["hosts"]:
        assert abs(host["ahead_ns"]) <= host["error_ns"], host
    assert job["hosts"][2]["error_ns"] >= 5e6  # a round trip is 10 ms at least


def test_clocks_are_compared_before_and_after_any_run(two_hosts: Bed, tmp_path: Path) -> None:
    words = ("run", "pingpong", "-t", "mpi@mpich-4", "--bytes", "8", "--time", "1s", "--launches", "1")
    hockney(two_hosts, tmp_path / "r.db", *words, "--hosts", "n1,n2", codes=MEASURED)
    first, second = clocks_around(run_of(tmp_path / "r.db"))
    assert (first.host, first.before.ahead_ns, first.before.error_ns) == ("n1", 0, 0)
    assert second.after is not None
    assert second.drift_ppm is not None
    assert second.drift_error_ppm is not None
    for seen in (second.before, second.after):
        assert abs(seen.ahead_ns) <= seen.error_ns  # both hosts have one clock
        assert 0 < seen.error_ns < 1e9  # half a round trip, on a busy machine a slow one
    assert second.after.time_s - second.before.time_s >= 1
    assert abs(second.drift_ppm) <= second.drift_error_ppm
    shown = hockney(two_hosts, tmp_path / "r.db", "show", "-v")
    assert "Clocks compared with n1, before and after the run" in shown.stdout


@pytest.fixture(scope="module")
def unequal(make_bed: MakeBed) -> Bed:
    """A cable on which the first host sends at half the rate at which it receives."""
    return make_bed(Host(rate_mbit=100, send_mbit=50), Host(rate_mbit=100))


@pytest.mark.parametrize(("direction", "rate_mbit"), [("up", 50), ("down", 100)])
def test_a_delay_is_that_of_its_own_direction(unequal: Bed, tmp_path: Path, direction: str, rate_mbit: int) -> None:
    words = ("run", "owd", "-t", "tcp", "--per-node", "1", "--bytes", "8,64K,1M", "--time", "5s", "--launches", "1")
    more = ("-o", f"direction={direction}", "--hosts", "n1,n2")
    hockney(unequal, tmp_path / "r.db", *words, *more, codes=(3,))  # a point has failed
    short, *others = run_of(tmp_path / "r.db").series
    # Other programs can only make it longer.
    seen_ns = {one.point.bytes: min(each.times_ns().min() for each in one.measurements) for one in others}
    assert short.status is PointStatus.FAILED
    assert "is not more than twice the clocks' error of" in (short.reason or "")
    assert "us: send longer messages (--bytes)" in (short.reason or "")
    assert not short.measurements
    assert sorted(seen_ns) == [64 << 10, 1 << 20]
    for size, time_ns in seen_ns.items():
        wire_bytes = size + -(-size // 1448) * 66  # headers of Ethernet, IP and TCP
        # What the cable lets through at once is less after an earlier message.
        least_ns, most_ns = ((wire_bytes - at_once) * 8000 / rate_mbit for at_once in (burst_bytes(rate_mbit), 0))
        # Load makes it longer, but the other direction's would be half or twice as long.
        assert 0.97 * least_ns <= time_ns <= 1.5 * most_ns
