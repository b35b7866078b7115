"""The cost that each layer adds to the one below it: a difference of half round trips, in one machine state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from hockney.analysis.explain.curve import JobKey, MeasuredCurve, Reading
from hockney.analysis.pair_classes import FARTHEST
from hockney.results.runs import Run
from hockney.results.traits import transport_traits
from hockney.stats.fit import Estimate
from hockney.worker.mpi_transport import is_on_ucx

LATENCY_BYTES = 8
"""The size whose time is a latency, of the data sheet too."""


@dataclass(frozen=True)
class Layer:
    """The time a transport adds to the half round trip of the one below it, or to the floor, in one state.

    `bytes` is the size of the message: 8 where both have it, else their shortest. `is_seen`: there is a difference.
    `floor_ns` is the floor of the upper one's measurements, where the lower one is the floor.
    """

    upper: str
    lower: str
    state: str
    bytes: int
    added_ns: float
    low_ns: float
    high_ns: float
    is_seen: bool
    floor_ns: float | None = None


def layers_of(reading: Reading) -> list[Layer]:
    """Every layer of a run, of each job in its state; between hosts, of the pairs of ranks on two of them."""
    states = {curve.job: curve.state for curve in reading.curves}
    remote = (each for each in reading.by_class if each.pair_class == FARTHEST and states.get(each.job) == each.state)
    return layers_between(reading, (*reading.curves, *remote), reading.floors)


def carried_by(
    transport: str, libraries: Mapping[str, str], measured: Collection[str], *, remote: bool = False
) -> str | None:
    """The measured transport that carries all messages of an MPI: plain UCX; None if that is not certain.

    `libraries`: how the ranks of each transport name theirs.
    """
    on_ucx = transport.startswith("mpi@") and is_on_ucx(libraries.get(transport, ""), remote=remote)
    ucx = [name for name in measured if name.startswith("ucx@") and ":" not in name] if on_ucx else []
    return ucx[0] if len(ucx) == 1 else None


def below_of(of: Run | Reading, transport: str, measured: Collection[str], *, remote: bool = False) -> str | None:
    """The transport whose cost this one adds to: what carries its messages, else the one it is compared with."""
    traits = transport_traits(of.facts, transport)
    lower = traits.below_remote if remote else traits.below
    return carried_by(transport, of.libraries, measured, remote=remote) or lower


def layers_between(
    of: Run | Reading, curves: Iterable[MeasuredCurve], floors: Mapping[JobKey, Estimate]
) -> list[Layer]:
    """Every layer of the ping-pongs that are not oversubscribed; those between hosts are of that pair class."""
    known = {
        (*curve.job, curve.state, curve.pair_class == FARTHEST): curve
        for curve in curves
        if curve.name == "pingpong" and not curve.oversubscribed
    }
    layers: list[Layer] = []
    measured = {transport for transport, *_ in known}
    for (transport, ranks, state, is_remote), curve in known.items():
        floor, size = floors.get(curve.job), _size(curve)
        time = curve.at(size) if 0 < size <= 64 else None
        if transport == "shm" and floor is not None and time is not None:
            layers.append(_layer(size, transport, "the floor", state, time, floor, floor.value))
        lower = below_of(of, transport, measured, remote=is_remote)
        below = known.get((lower or "", ranks, state, is_remote))
        if lower is not None and below is not None:
            size = _size(curve, below)
            upper_ns, lower_ns = curve.at(size), below.at(size)
            # Longer messages are limited by bandwidth, so layers then differ in rate.
            if upper_ns is not None and lower_ns is not None and 0 < size <= 1 << 16:
                layer = _layer(size, transport, lower, state, upper_ns, lower_ns)
                # An MPI that takes less time than this UCX has another one, as wheels bring their own.
                layers += [layer] if layer.high_ns >= 0 or not lower.startswith("ucx@") else []
    return layers


def _size(*curves: MeasuredCurve) -> int:
    """That of a latency if all have it, else the shortest that all have; 0: there is none."""
    sizes = set.intersection(*(set(curve.sizes) for curve in curves)) - {0}
    return LATENCY_BYTES if LATENCY_BYTES in sizes else min(sizes, default=0)


def _layer(
    size: int, upper: str, lower: str, state: str, upper_ns: Estimate, lower_ns: Estimate, floor_ns: float | None = None
) -> Layer:
    """The layer from both times. Less than 3 % does not count: of many intervals some miss by chance."""
    added = upper_ns - lower_ns
    is_seen = not added.low <= 0 <= added.high and abs(added.value) >= 0.03 * lower_ns.value
    return Layer(upper, lower, state, size, added.value, added.low, added.high, is_seen, floor_ns)
