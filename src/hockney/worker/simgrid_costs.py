"""The costs of messages on a model, as the factors of SimGrid's SMPI.

SMPI knows an overhead of the sender and of the receiver, each a line over the size for a range of sizes. It also knows
a factor on the latency and one on the bandwidth of a route, each constant in a range. There are as many ranges as keep
times and gaps within a tolerance of the model's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hockney.worker.machine_schema import Cost, CostClass

ENVELOPE_BYTES = 16
"""The header that SMPI adds to every message."""

_TOLERANCE = 0.01
_UNDER_WAY = 16
_LEAST_NS = 1e-3  # where nothing takes any time
_SIZE_MAX = 1 << 31


@dataclass(frozen=True)
class CostRange:
    """Messages of more than `above_bytes` (-1: all): a latency in ns, and ns for each byte, the envelope's included."""

    above_bytes: int
    latency_ns: float
    per_byte_ns: float


@dataclass(frozen=True)
class Overhead:
    """The CPU of messages of more than `above_bytes`: a line over the size in ns."""

    above_bytes: int
    fixed_ns: float
    per_byte_ns: float


@dataclass(frozen=True)
class SmpiCosts:
    """`eager_bytes`: the longest eager message, -1 for none, None for all."""

    eager_bytes: int | None
    send: tuple[Overhead, ...]
    receive: tuple[Overhead, ...]
    ranges: tuple[CostRange, ...]


@dataclass(frozen=True)
class _Times:
    """Of a message of one size, in ns. The network's part of `whole`, half a round trip, is a transfer and a latency.

    `transfer`: the least and the most time for which no other message may leave or enter the nodes. `paced_by`: the
    cost that the sender waits for instead, empty for none.
    """

    segment: int
    bytes: int
    send: float
    receive: float
    whole: float
    transfer: tuple[float, float]
    paced_by: str = ""


def smpi_costs(pairs: CostClass, *, link_latency_ns: float, link_per_byte_ns: float) -> SmpiCosts:
    """The costs of all pairs. `link_…`: the latency of the links of every route, and the time of a byte on them."""
    eager_bytes = _eager_bytes(pairs)
    times = [_times(pairs, size, eager_bytes, link_latency_ns, link_per_byte_ns) for size in _sizes(pairs)]
    return SmpiCosts(
        eager_bytes,
        tuple(_overheads(times, lambda at: at.send)),
        tuple(_overheads(times, lambda at: at.receive)),
        tuple(_ranges(times)),
    )


def _eager_bytes(pairs: CostClass) -> int | None:
    ends = [0, *(segment.up_to_bytes for segment in pairs.segment)]
    for end, segment in zip(ends, pairs.segment, strict=False):
        if segment.protocol != "eager":
            return end or -1
    return None


def _sizes(pairs: CostClass) -> list[int]:
    sizes = {0, _SIZE_MAX}
    for end in (segment.up_to_bytes for segment in pairs.segment if segment.up_to_bytes):
        sizes |= {end, end + 1}
    size = 1
    while size < _SIZE_MAX:
        sizes.add(size)
        size = max(size + 1, int(size * 1.02))
    return sorted(sizes)


def _ns(cost: Cost | None, size: int) -> float:
    return 0.0 if cost is None else cost.fixed_ns + cost.per_byte_ns * size


def _times(pairs: CostClass, size: int, eager: int | None, link_latency_ns: float, link_per_byte_ns: float) -> _Times:
    """SMPI charges the CPU for eager messages only: the CPU time of a longer one becomes latency.

    Messages on a shared route arrive together in SimGrid, but one by one on a model. So if their receiver has much work
    for each, the sender spaces them.
    """
    number, segment = next(
        (number, each) for number, each in enumerate(pairs.segment) if size <= each.up_to_bytes or not each.up_to_bytes
    )
    cost = segment.costs()
    send, receive = _ns(cost.get("send_cpu"), size), _ns(cost.get("recv_cpu"), size)
    latency = _ns(cost.get("latency"), size) + link_latency_ns
    if eager is not None and size > eager:
        latency += send + receive + _ns(cost.get("handshake"), size)
        send = receive = 0.0
    busy = {name: _ns(cost.get(name), size) for name in ("transfer", "out", "in")} | {"link": link_per_byte_ns * size}
    transfer, (longest, gap) = max(busy["transfer"], busy["link"]), max(busy.items(), key=lambda item: item[1])
    whole = send + latency + transfer + receive
    room = _TOLERANCE * max(send, receive, min(gap, whole), whole / _UNDER_WAY, _LEAST_NS)
    if send < gap <= whole - receive and gap < _UNDER_WAY * receive:
        left, for_bytes = whole - receive - gap, gap - _ns(cost.get(longest), 0)
        envelope = for_bytes / max(1, size) * ENVELOPE_BYTES
        limits = min(for_bytes, left) - room, min(gap + envelope, left) + room
        return _Times(number, size, gap, receive, whole, limits, longest)
    transfer = min(gap, whole - receive - send)
    return _Times(number, size, send, receive, whole, (transfer - room, transfer + room))


def _overheads(times: Sequence[_Times], of: Callable[[_Times], float]) -> Iterator[Overhead]:
    """A line for sizes of the same segment and of the same cost."""
    above = 0
    for _, group in itertools.groupby(times, lambda at: (at.segment, at.paced_by)):
        sizes = list(group)
        first, last = sizes[0], sizes[-1]
        per_byte_ns = (of(last) - of(first)) / max(1, last.bytes - first.bytes)
        yield Overhead(above, max(0.0, of(first) - per_byte_ns * first.bytes), per_byte_ns)
        above = last.bytes


def _ranges(times: Sequence[_Times]) -> Iterator[CostRange]:
    """Ranges from the shortest message on, each as long as one latency and one rate fit all of its sizes."""
    first = 0
    while first < len(times):
        low, high = 0.0, math.inf
        end, fitting = first, (0.0, 0.0)
        for at in times[first:]:
            sent = at.bytes + ENVELOPE_BYTES
            low, high = max(low, at.transfer[0] / sent), min(high, at.transfer[1] / sent)
            wider = _fit(times[first : end + 1], low, high)
            if wider is None:
                break
            end, fitting = end + 1, wider
        yield CostRange(times[first - 1].bytes if first else -1, *fitting)
        first = end


def _fit(times: Sequence[_Times], low: float, high: float) -> tuple[float, float] | None:
    """A latency and ns per byte, within low and high, for all of the sizes."""
    if low > high:
        return None
    per_byte = (low + high) / 2
    least, most = 0.0, math.inf
    for at in times:
        latency = at.whole - at.send - at.receive - per_byte * (at.bytes + ENVELOPE_BYTES)
        room = _TOLERANCE * max(at.whole, _LEAST_NS)
        least, most = max(least, latency - room), min(most, latency + room)
    return ((least + most) / 2, per_byte) if least <= most else None
