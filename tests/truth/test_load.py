"""Points under a background, on hosts whose cables are known: two switches, and a cable of 100 Mbit/s between them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.truth.bed.bed import Bed, Host
from tests.truth.conftest import MakeBed
from tests.truth.runs import MEASURED, hockney


@pytest.fixture(scope="module")
def racks(make_bed: MakeBed) -> Bed:
    """n1 and n3 on one switch, n2 and n4 on the other; their own cables have the rate of the one between."""
    near, far = Host(rate_mbit=100), Host(rate_mbit=100, is_far=True)
    return make_bed(near, far, near, far, uplink_mbit=100)


def impact_of(bed: Bed, store: Path, hosts: str) -> dict[str, Any]:
    words = ("run", "oneway", "-t", "tcp", "--per-node", "1", "--bytes", "8K", "--launches", "1", "--hosts", hosts)
    more = ("--background", "bulk", "--time", "40s", "--precision", "5%", "--json")
    (impact,) = json.loads(hockney(bed, store, *words, *more, codes=MEASURED).stdout)["impacts"]
    return dict(impact)


def test_a_shared_cable_halves_the_bandwidth(racks: Bed, tmp_path: Path) -> None:
    impact = impact_of(racks, tmp_path / "r.db", "n1,n2,n3,n4")
    assert impact["low"] <= 2.0 * 1.05
    assert impact["high"] >= 2.0 * 0.95
    assert 1.8 <= impact["factor"] <= 2.2


@pytest.mark.full
def test_cables_that_are_not_shared_have_no_impact(racks: Bed, tmp_path: Path) -> None:
    impact = impact_of(racks, tmp_path / "r.db", "n1,n3,n2,n4")
    assert 0.95 <= impact["factor"] <= 1.05
