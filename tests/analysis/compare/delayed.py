"""Checks of a transport that can be delayed, for the tests and scripts/check-rates."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.measure.test_run import Silent
from tests.worker.extra import EXTRA

from hockney.analysis.compare import Comparison
from hockney.measure import run as running
from hockney.measure.check import check
from hockney.measure.plan import Plan
from hockney.measure.recorder import Lab
from hockney.model import Point
from hockney.results.store import Store
from hockney.suites import Limits
from hockney.worker.catalogue import Catalogue, load

SIZES = (8, 64, 512, 4096, 16384, 32768, 65536, 131072)
DELAYED = (16384, 65536)  # bytes, first and last
TRANSPORT = "fault"  # that can be delayed


def load_catalogue() -> Catalogue:
    """The native transports and `fault`, which is shm until HOCKNEY_FAULT says otherwise."""
    return load(recipe=EXTRA, libraries=())


def plan(*transports: str, sizes: tuple[int, ...] = SIZES, launches: int = 5, time_s: float = 2.0) -> Plan:
    """Ping-pongs over these transports, by default over the one that can be delayed."""
    points = tuple(Point(name, "pingpong", 2, size) for name in transports or (TRANSPORT,) for size in sizes)
    return Plan("test", points, limits=Limits(time_s=time_s, launches=launches, timeout_s=60))


def measure(catalogue: Catalogue, store: Store, plan: Plan) -> int:
    """A run; gives its number."""
    return running.measure(plan, Lab(catalogue, store, Silent(), "test")).run_id


def check_again(
    catalogue: Catalogue,
    store: Store,
    base: int,
    *,
    slowdown: float = 0.05,
    patience_s: float = 20.0,
    display: Silent | None = None,
) -> Comparison:
    return check(
        str(base),
        Lab(catalogue, store, display or Silent(), "test"),
        max_slowdown=slowdown,
        patience_s=patience_s,
    )


@contextmanager
def delayed(percent: int = 23, sizes: Sequence[int] = DELAYED) -> Iterator[None]:
    """Inside, ping-pongs of these sizes on `fault` and `sleepy` take this much longer, and some % more for waiting."""
    os.environ["HOCKNEY_FAULT"] = f"slow 1 {min(sizes)} {max(sizes)} {percent}"
    try:
        yield
    finally:
        del os.environ["HOCKNEY_FAULT"]
