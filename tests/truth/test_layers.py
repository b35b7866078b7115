"""UCX and libfabric between the hosts of a bed, and the interface that they are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.truth.bed.bed import Bed
from tests.truth.runs import MEASURED, hockney, run_of

from hockney.worker.libraries import find_ofis, find_ucxs

_HERE = [library.id.partition("@1")[0] for library in (*find_ucxs()[0], *find_ofis()[0])]


@pytest.mark.parametrize(("transport", "carrier"), [("ucx", "tcp/eth0"), ("ofi@tcp-rxm", "tcp;ofi_rxm (eth0)")])
@pytest.mark.parametrize("interface", [(), ("--interface", "eth0")])
def test_between_two_hosts(
    two_hosts: Bed, tmp_path: Path, transport: str, carrier: str, interface: tuple[str, ...]
) -> None:
    if transport not in _HERE:
        pytest.skip("no UCX or libfabric here: apt-get install libucx-dev ucx-utils libfabric-dev libfabric-bin")
    where = ("-t", transport, "--hosts", "n1:1,n2:1", *interface)
    words = ("run", "pingpong", *where, "--bytes", "8,70001", "--launches", "1", "--time", "1s")
    hockney(two_hosts, tmp_path / "r.db", *words, codes=MEASURED)
    measured = run_of(tmp_path / "r.db")
    assert [series.measurements[0].verified for series in measured.series] == [True] * 2
    (launch,) = measured.launches.values()
    assert launch.hosts == ("n1", "n2")
    assert carrier in launch.library, launch.library
