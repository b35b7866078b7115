"""Fits a model of a machine to the basic figures of two ranks: the costs of messages as functions of their size.

The parameters are those of LogP at each measured size (P-LogP); between two sizes the model interpolates linearly.
docs/machines.md has the rules. The figures do not show what more than two ranks share, so each rank gets a CPU and a
private link to a switch.

Source: T. Kielmann, H. E. Bal, K. Verstoep, Fast measurement of LogP parameters for message passing platforms, IPDPS
workshops 2000.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hockney.analysis.explain.fits import delay_of
from hockney.analysis.thresholds import thresholds_of
from hockney.model import Point
from hockney.results.figures import Figure
from hockney.results.runs import Run
from hockney.stats import UNKNOWN
from hockney.stats.fit import NoFit
from hockney.stats.interval import Estimate
from hockney.suites import Suite
from hockney.units import format_bytes
from hockney.worker.words import each_of

WINDOW = 16
_STREAM = (("window", str(WINDOW)),)
_FRAMED = 1.1  # bytes on a link, over those of messages
_BASIC = {  # the basic figures of two ranks that a pattern with these options measures
    ("pingpong", ()): "half",
    ("oneway", _STREAM): "gap",
    ("twoway", _STREAM): "both",
    ("put", ()): "put",
    ("putpong", ()): "putpong",
    ("get", ()): "get",
}


@dataclass(frozen=True)
class Basics:
    """The times of two ranks at one message size, in ns, by name.

    `half`: half a round trip; `gap`: per message of a stream; `both`: likewise, of two streams at once; `one`, `burst`,
    `one_delayed`, `spaced`: of prtt with 1 and n messages, without and with a delay; `put`, `putpong`, `get`.
    `messages` is that n, `delay_ns` the real length of the delay. A stream ends with one acknowledgement after
    `acknowledged` messages.
    """

    bytes: int
    times: dict[str, Estimate] = field(default_factory=dict)
    messages: int = 0
    delay_ns: float = 0.0
    acknowledged: int = 0


@dataclass(frozen=True)
class Figures:
    """The times of a transport in a run, those that tables show.

    `state` is that of the two ranks, or None. `has_ranges`: the bounds of a basic figure are no interval of one state.
    """

    transport: str
    state: str | None
    basics: tuple[Basics, ...]
    others: dict[Point, Estimate]
    has_ranges: bool = False

    @property
    def complete(self) -> tuple[Basics, ...]:
        """The sizes with all figures that a fit needs."""
        return tuple(each for each in self.basics if {"half", "gap"} <= each.times.keys())


def figures_of(run: Run, transport: str, checks: Suite | None = None) -> Figures:
    """The figures of a transport: those of two ranks that a fit uses, by size, and the others.

    A fit does not use the points of the suite `checks`.
    """
    left_out = {
        (series.pattern, tuple(sorted(options.items())), size)
        for series in (() if checks is None else checks.series)
        for options in each_of(series.options)
        for size in series.bytes
    }
    basics: dict[int, Basics] = {}
    others: dict[Point, Estimate] = {}
    has_ranges = False
    for series in run.series:
        point, figure = series.point, series.shown
        if point.transport != transport or point.background or point.rate_hz or figure is None:
            continue
        if (point.pattern, point.options, point.bytes) in left_out or not _takes(basics, figure):
            others[point] = figure.time
        else:
            has_ranges |= figure.is_range
    state = run.state_of(transport, 2)
    state = None if state == UNKNOWN.name else state
    return Figures(transport, state, tuple(basics[size] for size in sorted(basics)), others, has_ranges)


def _takes(basics: dict[int, Basics], figure: Figure) -> bool:
    """Whether a figure is a basic one: then it is entered."""
    point = figure.point
    options = dict(point.options)
    messages, delay = int(options.pop("messages", 1)), int(options.pop("delay_ns", 0))
    name = _BASIC.get((point.pattern, point.options))
    if point.pattern == "prtt" and not options:
        name = ("one_delayed" if delay else "one") if messages == 1 else "spaced" if delay else "burst"
    if name is None or point.ranks != 2:
        return False
    of_size = basics.get(point.bytes, Basics(point.bytes))
    of_size = replace(of_size, times={**of_size.times, name: figure.time}, messages=max(messages, of_size.messages))
    if delay:
        of_size = replace(of_size, delay_ns=delay_of(figure.measurements) or of_size.delay_ns)
    if name == "gap":
        of_size = replace(of_size, acknowledged=figure.measurements[-1].batch * figure.definition.divisor)
    basics[point.bytes] = of_size
    return True


# ---- the machine ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Knot:
    """The costs of messages of one size, in ns by the model's keys, and their protocol."""

    bytes: int
    protocol: str
    costs: Mapping[str, float]


@dataclass(frozen=True)
class Fit:
    """A fitted machine. `switches`: the shortest messages of documented protocols, where one begins.

    `network`: tables of its model that are asked for, not fitted.
    """

    figures: Figures
    switches: tuple[int, ...] = ()
    title: str = "fitted"
    network: Mapping[str, Any] = field(default_factory=dict)

    @property
    def transport(self) -> str:
        """The transport whose figures these are."""
        return self.figures.transport

    @property
    def sizes_bytes(self) -> tuple[int, ...]:
        """The sizes that messages were measured with, ascending."""
        return tuple(basics.bytes for basics in self.figures.complete)

    @property
    def rate_bytes_per_s(self) -> float:
        """The rate of a stream of the longest messages."""
        longest = self.figures.complete[-1]
        return max(longest.bytes, 1) / longest.times["gap"].value * 1e9

    def outside(self, point: Point) -> int | None:
        """The measured size nearest to that of a point outside the measured ones; None: it is not outside."""
        sizes = self.sizes_bytes
        nearest = min(max(point.bytes, sizes[0]), sizes[-1])
        return None if not point.is_sized or nearest == point.bytes else nearest

    def missing(self, points: Collection[Point]) -> dict[Point, str]:
        """Why points have no time: their messages are shorter than all measured ones, or longer than the only one."""
        shortest, *longer = self.sizes_bytes  # up to 64 B, shorter messages take as long
        why = f"the run has no oneway (window=16) {{}} {format_bytes(shortest)}: the suite basics measures it"
        missing = {point: why.format("below") for point in points if point.bytes < shortest > 64}
        return missing | {point: why.format("above") for point in points if point.bytes > shortest and not longer}

    def content(self, ranks: int, cpus: int = 0) -> dict[str, Any]:
        """The content of a model: a switch with a node for each rank, or for each of the `cpus` that ranks share."""
        source = f"{self.transport}, {self.title}"
        content: dict[str, Any] = {
            "title": self.title,
            "topology": {"kind": "switch", "nodes": cpus or ranks, "source": "assumed: one switch"},
            "class": {"all": {"segment": self._segments(self._knots(), source)}},
        }
        if cpus:
            content["placement"] = {"nodes": ",".join(str(rank % cpus) for rank in range(ranks)), "source": "as pinned"}
        for name in ("put", "get"):
            knots = _one_sided(self.figures.basics, name)
            if knots:
                content[name] = {"all": {"segment": self._segments(knots, source)}}
        return {**content, **self.network}

    def _knots(self) -> list[Knot]:
        """The costs at each size; under [tcp] those of sockets."""
        knots = _messages(self.figures.complete)
        is_socket = self.transport.partition(":")[0] == "tcp"
        if not is_socket or "tcp" not in self.network:
            return knots
        return _of_sockets(self.figures.complete, knots, self.network.get("link", ()))

    def _segments(self, knots: Sequence[Knot], source: str) -> list[dict[str, Any]]:
        segments = [
            {"source": source, "up_to_bytes": knot.bytes, "protocol": knot.protocol, **_written(costs)}
            for knot, costs in _pieces(knots, self.switches)
        ]
        del segments[-1]["up_to_bytes"]
        return segments

    def resampled(self, count: int, seed: int = 0) -> Iterator[Fit]:
        """Fits to figures drawn from their bounds; none of exact figures."""
        if all(time.low == time.high for basics in self.figures.basics for time in basics.times.values()):
            return
        draw = random.Random(seed)
        for _ in range(count):
            drawn = tuple(
                replace(basics, times={name: self._drawn(time, draw) for name, time in basics.times.items()})
                for basics in self.figures.basics
            )
            yield replace(self, figures=replace(self.figures, basics=drawn))

    def _drawn(self, time: Estimate, draw: random.Random) -> Estimate:
        """A normal value, as its interval has it; with ranges any value within the bounds."""
        half = (time.high - time.low) / 2
        value = draw.uniform(time.low, time.high) if self.figures.has_ranges else draw.gauss(time.value, half / 1.96)
        value = max(value, 0.05 * time.value)  # none is zero
        return Estimate(value, value, value)


def fit_machine(run: Run, transport: str, checks: Suite | None = None) -> Fit | NoFit:
    """The machine of a transport of a run, from all sizes with the figures, except the points of `checks`."""
    figures = figures_of(run, transport, checks)
    if not figures.complete:
        return NoFit("a fit needs ping-pongs and oneway with window=16 of two ranks, at the same sizes")
    launchers = (each.argv[0] for each in run.launches.values() if each.transport == transport and each.argv)
    thresholds = thresholds_of(transport, run.facts, run.libraries.get(transport, ""), next(launchers, ""))
    title = f"fitted to run {run.id}{f', {figures.state}' if figures.state else ''}"
    return Fit(figures, tuple(sorted({threshold.first_bytes for threshold in thresholds})), title)


# ---- one size ------------------------------------------------------------------------------------------------------


def _messages(measured: Iterable[Basics]) -> list[Knot]:
    """The costs at each size. The extra time of an exchange, measured for small sizes only, also applies beyond."""
    knots: list[Knot] = []
    answer_ns = None
    for basics in measured:
        answer_ns = basics.times["half"].value if answer_ns is None else answer_ns
        knots.append(_knot(basics, answer_ns, knots[-1] if knots else None))
    return knots


def _knot(basics: Basics, answer_ns: float, before: Knot | None) -> Knot:
    """The knot of a size; `answer_ns` is the time of a stream's acknowledgement."""
    times = {name: time.value for name, time in basics.times.items()}
    half = times["half"]
    gap = times["gap"] - max(0.0, half + answer_ns - times["gap"]) / basics.acknowledged
    both = 2 * times["both"] if "both" in times else min(2 * gap, half)  # of a message each way
    gap = min(gap, 2 * times.get("both", gap))  # more is the wake-up of a receiver that sleeps between messages
    busy, send, blocking = _overheads(basics, times)
    waits = 0.75 * half  # a send that takes longer waits for its receiver
    if (gap if blocking is None else blocking) > waits and (send is None or send > waits):
        protocol, exchange = "rendezvous", None if blocking is None else blocking - half
        transfer = min(gap, half)
        costs = {"latency": half - transfer, "transfer": transfer, "out": transfer, "in": transfer}
        explained = transfer
    else:
        protocol, exchange = "eager", None if busy is None else busy - half
        send_cpu, recv_cpu, port = _eager(half, gap, both, send, busy)
        transfer = port if send_cpu + recv_cpu + port <= half else 0.0
        costs = {"send_cpu": send_cpu, "recv_cpu": recv_cpu, "latency": half - send_cpu - recv_cpu - transfer}
        costs |= {"transfer": transfer, "out": port, "in": port}
        explained = max(send_cpu + recv_cpu, transfer)
    if exchange is None and before is not None:
        exchange = before.costs["exchange"]
    costs |= {"duplex": both - explained - (half - transfer) / WINDOW if transfer else 0.0, "exchange": exchange or 0.0}
    return Knot(basics.bytes, protocol, {name: max(0.0, cost) for name, cost in costs.items()})


def _of_sockets(measured: Sequence[Basics], knots: Sequence[Knot], links: Iterable[Mapping[str, Any]]) -> list[Knot]:
    """The knots of sockets whose bytes simulated TCP carries: a send returns when the kernel has the bytes.

    The links carry the bytes, so a message costs the CPUs and the latency as much as the shortest one. Where a stream
    is slower than the links, either CPU may be why: both take the rest.
    """
    per_byte_ns = max((1e9 / link["bytes_per_s"] for link in links if link.get("bytes_per_s")), default=0.0)
    first, costs = measured[0], knots[0].costs
    latency_ns = costs["latency"] + costs.get("transfer", 0.0)
    sockets = []
    for basics in measured:
        more_ns = basics.times["gap"].value - first.times["gap"].value
        rest_ns = max(0.0, more_ns - _FRAMED * per_byte_ns * (basics.bytes - first.bytes))
        cpus = {name: costs.get(name, 0.0) + rest_ns for name in ("send_cpu", "recv_cpu")}
        sockets.append(Knot(basics.bytes, "eager", {**cpus, "latency": latency_ns}))
    return sockets


def _overheads(basics: Basics, times: Mapping[str, float]) -> tuple[float | None, float | None, float | None]:
    """Costs from prtt: o_s + o_r, o_s, and the time per message of a stream of blocking sends (stats/fit/loggp.py)."""
    busy = send = blocking = None
    if "one_delayed" in times and basics.delay_ns > times["half"]:
        busy = times["one_delayed"] - basics.delay_ns
        if "spaced" in times:
            send = (times["spaced"] - times["one_delayed"]) / (basics.messages - 1) - basics.delay_ns
    if "one" in times and "burst" in times:
        blocking = (times["burst"] - times["one"]) / (basics.messages - 1)
    return busy, send, blocking


def _eager(half: float, gap: float, both: float, send: float | None, busy: float | None) -> tuple[float, float, float]:
    """The CPU of the sender and of the receiver, and for how long their ways out and in are busy.

    A stream is as fast as the slowest of these, and two streams cost each CPU both; there a window waits for its last
    message. Without overheads that can be, the sender is the slowest.
    """
    both = min(both, half)
    if send is None or busy is None or send > busy:
        send_cpu = min(gap, both)
        recv_cpu = max(0.0, min(both - send_cpu, (WINDOW * both - half) / (WINDOW - 1)))
        return send_cpu, recv_cpu, 0.0 if recv_cpu else gap  # no receive is free
    send_cpu = min(max(send, 0.0), gap)
    recv_cpu = min(busy - send_cpu, gap, max(0.0, both - send_cpu))
    return send_cpu, recv_cpu, gap if gap > 1.05 * max(send_cpu, recv_cpu) else 0.0


def _one_sided(measured: Iterable[Basics], name: str) -> list[Knot]:
    """A put or get costs its source's CPU; of a ping-pong of puts the word that follows alone takes the latency."""
    knots: list[Knot] = []
    word_ns = None
    for basics in measured:
        times = {each: time.value for each, time in basics.times.items()}
        latency_ns = 0.0
        if name == "put" and {"put", "putpong"} <= times.keys():
            latency_ns = max(0.0, times["putpong"] - times["put"] - (word_ns or 0.0))
            word_ns = times["putpong"] if word_ns is None else word_ns
        if name in times:
            knots.append(Knot(basics.bytes, "eager", {"send_cpu": times[name], "latency": latency_ns}))
    return knots


def _written(costs: Mapping[str, float | Mapping[str, float]]) -> dict[str, Any]:
    """The costs in a model's form: with six digits, and without zeros."""
    written: dict[str, Any] = {}
    for name, cost in costs.items():
        parts = cost if isinstance(cost, Mapping) else {"fixed_ns": cost}
        left = {part: float(f"{value:.6g}") for part, value in parts.items() if value > 0}
        written |= {name: left} if left else {}
    return written


# ---- between sizes -------------------------------------------------------------------------------------------------


def _pieces(knots: Sequence[Knot], switches: Sequence[int]) -> Iterator[tuple[Knot, dict[str, Any]]]:
    """The segments of a model: each by its last knot, and its costs. At each knot they have its costs."""
    if knots[0].bytes > 0 or len(knots) == 1:
        yield knots[0], dict(knots[0].costs)
    for low, high in itertools.pairwise(knots):
        switch = next((first for first in switches if low.bytes < first <= high.bytes), None)
        jumps = switch is not None and _half(high) * low.bytes > _half(low) * high.bytes
        if low.protocol == high.protocol and not jumps:
            yield from _between(low, high)
            continue
        last = switch - 1 if switch is not None else round((low.bytes * high.bytes) ** 0.5)
        if last > low.bytes:
            yield replace(low, bytes=last), dict(low.costs)
        costs: dict[str, Any] = dict(high.costs)
        if high is knots[-1]:  # and beyond all sizes: no line is known, so costs grow in proportion
            fixed = ("latency", "exchange")
            costs |= {name: {"per_byte_ns": cost / high.bytes} for name, cost in costs.items() if name not in fixed}
        yield high, costs


def _half(knot: Knot) -> float:
    """Half a round trip."""
    return sum(knot.costs.get(name, 0.0) for name in ("send_cpu", "recv_cpu", "latency", "transfer"))


def _between(low: Knot, high: Knot) -> Iterator[tuple[Knot, dict[str, Any]]]:
    """A segment, or four if a cost falls or grows by more than in proportion."""
    is_line = low.bytes == 0 or all(
        cost <= high.costs[name] <= cost * high.bytes / low.bytes for name, cost in low.costs.items()
    )
    steps = 1 if is_line else 4
    ends = [low]
    for step in range(1, steps):
        size = round(low.bytes * (high.bytes / low.bytes) ** (step / steps))
        ends.append(Knot(size, high.protocol, {name: _at(size, low, high, name) for name in high.costs}))
    for first, last in itertools.pairwise([*ends, high]):
        if last.bytes > first.bytes:
            yield last, {name: _line(first, last, name) for name in last.costs}


def _at(size: int, low: Knot, high: Knot, name: str) -> float:
    """A cost between two sizes: on a line, or as a power of the size if it grows by more than in proportion."""
    a, b = low.costs[name], high.costs[name]
    share = (size - low.bytes) / (high.bytes - low.bytes)
    if 0 < a * high.bytes / low.bytes < b:
        return float(a * (b / a) ** math.log(size / low.bytes, high.bytes / low.bytes))
    return a + (b - a) * share


def _line(low: Knot, high: Knot, name: str) -> dict[str, float]:
    """The line through both costs; without a fixed part below zero, and of a cost that falls the last value."""
    a, b = low.costs[name], high.costs[name]
    per_byte = max(0.0, min((b - a) / (high.bytes - low.bytes), b / high.bytes))
    return {"fixed_ns": max(0.0, b - per_byte * high.bytes), "per_byte_ns": per_byte}
