"""The cost that each layer adds to the one below it: differences of half round trips, in one machine state."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hockney.analysis.explain.curve import MeasuredCurve, Reading
from hockney.analysis.pairs import FARTHEST
from hockney.results.traits import transport_traits
from hockney.stats.fit import Estimate


@dataclass(frozen=True)
class Layer:
    """The time a transport adds to the half round trip of the one below it, or to the floor, in one state.

    It holds from `first_bytes` to `last_bytes`, and its interval encloses those of these sizes. `is_seen`: there is a
    difference; else `unsure_bytes` are its sizes. `floor_ns` is the floor of the upper one's measurements, where the
    lower one is the floor.
    """

    upper: str
    lower: str
    state: str
    added_ns: float
    low_ns: float
    high_ns: float
    first_bytes: int
    last_bytes: int
    is_seen: bool
    unsure_bytes: tuple[int, ...] = ()
    floor_ns: float | None = None


def layer_at(size_bytes: int, upper: str, lower: str, state: str, upper_ns: Estimate, lower_ns: Estimate) -> Layer:
    """The layer from both times at one size. Less than 3 % does not count: of many intervals some miss by chance."""
    added = upper_ns - lower_ns
    is_seen = not added.low <= 0 <= added.high and abs(added.value) >= 0.03 * lower_ns.value
    return Layer(upper, lower, state, added.value, added.low, added.high, size_bytes, size_bytes, is_seen)


def layers_of(reading: Reading) -> list[Layer]:
    """Every layer, by ranges of sizes in which it adds time, saves time, or neither."""
    curves = {curve.job: curve for curve in reading.of("pingpong") if not curve.options}
    remote = {
        curve.job: curve
        for curve in reading.by_class
        if (curve.name, curve.pair_class) == ("pingpong", FARTHEST)
        and curve.job in curves
        and curve.state == curves[curve.job].state
    }
    layers: list[Layer] = []
    for (transport, ranks), curve in curves.items():
        traits = transport_traits(reading.facts, transport)
        floor, first = reading.floors.get(curve.job), next((point for point in curve.points if point.bytes > 0), None)
        if transport == "shm" and floor is not None and first is not None and first.bytes <= 64:
            over_floor = layer_at(first.bytes, transport, "the floor", curve.state, first.time_ns, floor)
            layers.append(replace(over_floor, floor_ns=floor.value))
        for group, lower in ((curves, traits.below), (remote, traits.below_remote)):
            if lower is not None and (lower, ranks) in group and curve.job in group:
                layers += _ranges(group[curve.job], group[lower, ranks])
    return layers


def _ranges(upper: MeasuredCurve, lower: MeasuredCurve) -> Iterator[Layer]:
    """Ranges up to 64 KiB. Longer messages are limited by bandwidth, so layers then differ in rate."""
    if upper.state != lower.state:
        return
    names = upper.transport, lower.transport, upper.state
    at_sizes = [
        layer_at(point.bytes, *names, point.time_ns, under)
        for point in upper.points
        if point.bytes <= 1 << 16 and (under := lower.at(point.bytes)) is not None
    ]
    for (is_seen, _), members in itertools.groupby(at_sizes, lambda at: (at.is_seen, at.is_seen and at.added_ns > 0)):
        layers = list(members)
        added = Estimate.of_all([Estimate(layer.added_ns, layer.low_ns, layer.high_ns) for layer in layers])
        sizes = layers[0].first_bytes, layers[-1].last_bytes
        unsure_bytes = () if is_seen else tuple(layer.first_bytes for layer in layers)
        yield Layer(*names, added.value, added.low, added.high, *sizes, is_seen, unsure_bytes)
