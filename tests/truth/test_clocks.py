"""Clocks of hosts that share one clock: no difference within the error, also over a slow cable."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.truth.bed.bed import Host
from tests.truth.conftest import MakeBed


def test_hosts_with_one_clock(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(Host(), Host(), Host(delay_ms=5))
    words = ("run", "clocks", "-t", "tcp", "--time", "3s", "--launches", "1", "--per-node", "1", "-n", "3")
    argv = [sys.executable, "-m", "hockney", *words, "--hosts", "n[1-3]", "--json", "--store", str(tmp_path / "r.db")]
    done = bed.run("n1", argv, limit_s=120)
    assert done.returncode in (0, 3), done.stderr  # 3: no interval in so little time
    (job,) = json.loads(done.stdout)["clocks"]
    assert [host["host"] for host in job["hosts"]] == ["n1", "n2", "n3"]
    for host in job["hosts"]:
        assert abs(host["ahead_ns"]) <= host["error_ns"], host
    assert job["hosts"][2]["error_ns"] >= 5e6  # a round trip is 10 ms at least
