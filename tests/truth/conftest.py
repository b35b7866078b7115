from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from tests.truth.bed.bed import Bed, Host, why_not_here

MakeBed = Callable[..., Bed]


@pytest.fixture(scope="module")
def make_bed() -> Iterator[MakeBed]:
    """Puts up a bed of the hosts given, until the module's last test; skips where there can be none."""
    why = why_not_here() or (None if shutil.which("iperf3") else "not here: iperf3; scripts/runtimes installs it")
    if why is not None:
        pytest.skip(why)
    with ExitStack() as beds:
        yield lambda *hosts, **more: beds.enter_context(Bed(hosts, **more))


@pytest.fixture(scope="module")
def two_hosts(make_bed: MakeBed) -> Bed:
    return make_bed(Host(), Host())
