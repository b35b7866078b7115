"""Made-up nights of a machine, for histories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.analysis.compare.made import add_run
from tests.builders import make_point

from hockney.model import Point
from hockney.results.store import Store

TCP, LARGE, SHM = make_point(8, "tcp"), make_point(65536, "tcp"), make_point(8)
TIMES_NS = {TCP: 20_000.0, LARGE: 60_000.0, SHM: 300.0}
DAY_S = 86_400.0
FIRST_S = 1_780_000_000.0
FACTS = {"cpu": {"model": "Ω-9"}, "hostname": "here", "os": {"kernel": "Linux 6.1"}, "environment": {}}
SCATTER = (1.0, 1.012, 0.991, 1.004, 0.985, 1.008, 0.997, 1.014, 0.989)


def night(store: Store, number: int, times_ns: Mapping[Point, float], **more: Any) -> int:
    """A run of some nights after the first, with times that scatter by 1 %."""
    scatter = SCATTER[number % len(SCATTER)]
    known: dict[str, Any] = {"launches": 2, "measurements": (1.0,) * 3, "scatter": 0.002, "facts": FACTS}
    known["started_unix_s"] = FIRST_S + number * DAY_S
    return add_run(store, {point: ns * scatter for point, ns in times_ns.items()}, **known | more)


def slower(points: Iterable[Point], ratio: float = 1.2) -> dict[Point, float]:
    return {point: ns * (ratio if point in points else 1.0) for point, ns in TIMES_NS.items()}


def step_of_tcp(store: Store, nights: int = 20, **more: Any) -> None:
    """Nights of which the later half has slower times on tcp, since a new kernel."""
    for number in range(nights):
        is_new = number >= nights // 2
        facts = {**FACTS, "os": {"kernel": "Linux 6.6" if is_new else "Linux 6.1"}}
        night(store, number, slower((TCP, LARGE) if is_new else ()), facts=facts, **more)
