"""Readings of known truth: curves made from formulas, with intervals of given width."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hockney.analysis.explain import DETECTORS, Explanation
from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve, Reading
from hockney.analysis.finding import Finding, NotChecked
from hockney.report.findings import check_name
from hockney.stats.fit import Estimate

_BY_NAME = {one.what: one for one in DETECTORS}
SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
# A kernel's page, and a last-level cache whose size is among those of tests.


def _transport(carrier: str, *limits: tuple[str, int, str | None], below: str | None = None) -> dict[str, Any]:
    keys = ("name", "bytes", "fact", "meaning", "see", "source")
    documented = [dict(zip(keys, (*limit, "", "docs/transports.md", ""), strict=True)) for limit in limits]
    caps = ["payload", "syscalls" if carrier == "kernel" else "spins"]
    return {"carrier": carrier, "caps": caps, "limits": documented, "below": below}


_RING = (
    ("hockney's inline word", 8, None),
    ("hockney's first cache line", 48, None),
    ("hockney's single-copy threshold", 256, None),
)
TRAITS = {
    "transports": {
        "shm": _transport("memory", *_RING),
        "threads": _transport("memory", *_RING, below="shm"),
        "pipe": _transport("kernel", ("capacity of a pipe", 65536, None)),
        "tcp": _transport("kernel", ("net.ipv4.tcp_rmem (default)", 0, "tcp_receive_buffer_bytes"), below="unix"),
    }
}
FACTS: Mapping[str, Any] = {
    "traits": TRAITS,
    "topology": {"caches": [{"level": 2, "kind": "unified", "size_bytes": 8192}]},
}


def near(value: float, precision: float = 0.005) -> Estimate:
    return Estimate(value, value * (1 - precision), value * (1 + precision))


def line(start_ns: float = 500.0, ns_per_byte: float = 0.1) -> Callable[[int], float]:
    return lambda size: start_ns + ns_per_byte * size


STRAIGHT = line()


def curve(
    time_ns: Callable[[int], float] = STRAIGHT,
    pattern: str = "pingpong",
    transport: str = "shm",
    ranks: int = 2,
    sizes: Sequence[int] = SIZES,
    *,
    precision: float = 0.005,
    random: np.random.Generator | None = None,
    **more: Any,
) -> MeasuredCurve:
    """Times by a formula, with 1 % of noise where there is a generator."""
    options = tuple(sorted((name, str(value)) for name, value in more.pop("options", {}).items()))
    noise = 0.01 if random is not None else 0.0
    points = []
    for size in sizes:
        time = time_ns(size) * (1 + noise * (random.standard_normal() if random is not None else 0.0))
        points.append(CurvePoint(size, near(time, max(precision, 2 * noise)), float(size) or None))
    return MeasuredCurve(transport, pattern, ranks, options, more.pop("state", "near"), tuple(points), **more)


def reading(*curves: MeasuredCurve, **more: Any) -> Reading:
    return Reading("a test", curves, facts={"traits": TRAITS, **more.pop("facts", FACTS)}, **more)


def found(what: str, of: Reading) -> list[Finding]:
    """The findings of one detector; it must have had the data it needs."""
    result = _BY_NAME[what].find(of)
    assert not isinstance(result, NotChecked), result
    return list(result)


def not_checked(what: str, of: Reading) -> NotChecked:
    """Why one detector finds nothing."""
    result = _BY_NAME[what].find(of)
    assert isinstance(result, NotChecked), result
    return result


def gaps_of(of: Explanation) -> dict[str, NotChecked]:
    """Checks that were not made, by name."""
    return {check_name(gap): gap for gap in of.not_checked}
