"""Made-up machines of two ranks, as models: segments, LogGP's parameters, and curves without a protocol switch."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

CurveKind = Literal["segments", "packets", "smooth"]
CURVE_KINDS: tuple[CurveKind, ...] = ("segments", "packets", "smooth")

SOURCE = {"source": "made up"}


@dataclass(frozen=True)
class Noise:
    """The model's law of noise with its number."""

    law: Literal["lognormal", "exponential"] = "lognormal"
    amount: float = 0.0

    def mean(self, cost_ns: float) -> float:
        """The mean of a cost with noise."""
        if self.law == "exponential":
            return cost_ns + self.amount
        return cost_ns * math.exp(self.amount**2 / 2)

    @property
    def content(self) -> dict[str, Any]:
        """The table of a model."""
        return {"law": self.law, "sigma" if self.law == "lognormal" else "mean_ns": self.amount, **SOURCE}


@dataclass(frozen=True)
class PlantedSegment:
    """The costs of messages of at most `up_to_bytes` (0: the longest). `gap_ns` is the transfer at 0 B."""

    up_to_bytes: int
    send_ns: float
    receive_ns: float
    latency_ns: float
    gap_ns: float
    ns_per_byte: float
    handshake_ns: float = 0.0
    packet_bytes: int = 0
    ns_per_packet: float = 0.0

    def way_ns(self, noise: Noise) -> float:
        """From the send to the end of the receive of 0 B."""
        noisy = sum(map(noise.mean, (self.send_ns, self.receive_ns, self.latency_ns)))
        return noisy + self.gap_ns + self.handshake_ns

    @property
    def content(self) -> dict[str, Any]:
        """The table of a model."""
        return {
            "up_to_bytes": self.up_to_bytes,
            "protocol": "rendezvous" if self.handshake_ns else "eager",
            "send_cpu": self.send_ns,
            "recv_cpu": self.receive_ns,
            "latency": self.latency_ns,
            "handshake": self.handshake_ns,
            "packet_bytes": self.packet_bytes,
            "transfer": {
                "fixed_ns": self.gap_ns,
                "per_byte_ns": self.ns_per_byte,
                "per_packet_ns": self.ns_per_packet,
            },
            **SOURCE,
        }


@dataclass(frozen=True)
class CurveMachine:
    """Two ranks. `jumps`: the sizes after which the time truly jumps; of packets every multiple, as far as it shows."""

    kind: CurveKind
    segments: tuple[PlantedSegment, ...]
    noise: Noise

    @property
    def content(self) -> dict[str, Any]:
        """Its model."""
        return {
            "title": "made up",
            "topology": {"kind": "switch", "nodes": 2, **SOURCE},
            "noise": self.noise.content,
            "class": {"all": {"segment": [segment.content for segment in self.segments]}},
        }

    @property
    def jumps(self) -> tuple[int, ...]:
        if self.kind == "segments":
            return tuple(segment.up_to_bytes for segment in self.segments[:-1])
        if self.kind == "smooth":
            return ()
        segment = self.segments[0]
        shown = segment.ns_per_packet / 0.05 - segment.way_ns(self.noise)  # a smaller step than 5 % is no switch
        per_byte = segment.ns_per_byte + segment.ns_per_packet / segment.packet_bytes
        return tuple(range(segment.packet_bytes, 1 + int(max(0.0, shown) / per_byte), segment.packet_bytes))

    @property
    def truth(self) -> dict[int, dict[str, float]]:
        """The figures of the lines by the ends of the segments; none without straight segments."""
        return {
            segment.up_to_bytes: {
                "t0_ns": segment.way_ns(self.noise),
                "r_inf_bytes_per_s": 1e9 / segment.ns_per_byte,
                "n_half_bytes": segment.way_ns(self.noise) / segment.ns_per_byte,
            }
            for segment in (self.segments if self.kind == "segments" else ())
        }

    @property
    def truth_of_loggp(self) -> dict[int, dict[str, float]]:
        """LogGP's parameters by the ends of the segments."""
        mean = self.noise.mean
        return {
            segment.up_to_bytes: {
                "L_ns": mean(segment.latency_ns) + segment.gap_ns,
                "o_s_ns": mean(segment.send_ns),
                "o_r_ns": mean(segment.receive_ns),
                "g_ns": segment.gap_ns,
                "G_ns_per_byte": segment.ns_per_byte,
            }
            for segment in self.segments
        }


def curve_machine(rng: Random, kind: CurveKind) -> CurveMachine:
    """A machine for ping-pongs."""
    first = PlantedSegment(
        0,
        send_ns=log_uniform(rng, 50, 1000),
        receive_ns=log_uniform(rng, 50, 1000),
        latency_ns=log_uniform(rng, 300, 20_000),
        gap_ns=log_uniform(rng, 10, 300),
        ns_per_byte=log_uniform(rng, 0.03, 3),
    )
    noise = random_noise(rng, 0.03, first.way_ns(Noise()) / 3)  # of three costs
    segments: tuple[PlantedSegment, ...] = (first,)
    if kind == "segments":
        segments = _with_switches(rng, first)
    elif kind == "packets":
        size = rng.choice((512, 1024, 1500, 4096))
        step_ns = rng.uniform(0.02, 0.3) * first.way_ns(Noise())
        segments = (replace(first, packet_bytes=size, ns_per_packet=step_ns),)
    elif kind == "smooth":
        segments = _smooth(rng, first)
    return CurveMachine(kind, segments, noise)


def loggp_machine(rng: Random) -> CurveMachine:
    """A machine to which LogGP applies: the gap is above both overheads; half of them have a switch up to 6 KiB."""
    send_ns, receive_ns = log_uniform(rng, 50, 1000), log_uniform(rng, 50, 1000)
    first = PlantedSegment(
        0,
        send_ns,
        receive_ns,
        latency_ns=log_uniform(rng, 300, 10_000),
        gap_ns=max(send_ns, receive_ns) * rng.uniform(1.3, 3),
        ns_per_byte=log_uniform(rng, 0.05, 0.5),
    )
    noise = random_noise(rng, 0.03, first.way_ns(Noise()) / 3)  # of three costs
    if rng.random() < 0.5:
        return CurveMachine("segments", (first,), noise)
    end = rng.randint(1100, 6000)
    more_ns = rng.uniform(0.3, 1.5) * (first.way_ns(noise) + end * first.ns_per_byte)
    last = replace(
        first,
        latency_ns=first.latency_ns + more_ns / 2,
        receive_ns=first.receive_ns * 1.5,
        gap_ns=first.gap_ns * 1.5 + more_ns / 2,
    )
    return CurveMachine("segments", (replace(first, up_to_bytes=end), last), noise)


def log_uniform(rng: Random, low: float, high: float) -> float:
    """Between the two, and as often below their geometric mean as above."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def random_noise(rng: Random, most: float, time_ns: float) -> Noise:
    """1 % up to `most` of each cost; in every second case exponential, whose mean is such a part of a time."""
    if rng.random() < 0.5:
        return Noise("lognormal", rng.uniform(0.01, most))
    return Noise("exponential", rng.uniform(0.01, most) * time_ns)


def _with_switches(rng: Random, segment: PlantedSegment) -> tuple[PlantedSegment, ...]:
    """Up to two switches of 10 to 150 % of the time, a fourth of them downwards, with sizes a factor of 10 apart."""
    segments = [segment]
    end = rng.randint(500, 3000)
    for _ in range(rng.randint(0, 2)):
        before = segments.pop()
        time_ns = before.way_ns(Noise()) + end * before.ns_per_byte
        jump = rng.uniform(0.1, 1.5) if rng.random() < 0.75 else -rng.uniform(0.1, 0.3)
        ns_per_byte = before.ns_per_byte * rng.uniform(0.4, 1.2)
        left_ns = time_ns * (1 + jump) - end * ns_per_byte - before.send_ns - before.receive_ns - before.gap_ns
        if left_ns < 0.2 * time_ns:  # a fall that the costs of the messages leave no room for
            left_ns, ns_per_byte = before.latency_ns + 0.5 * time_ns, before.ns_per_byte
        handshake_ns = left_ns * rng.choice((0.0, 0.4))
        after = replace(before, latency_ns=left_ns - handshake_ns, handshake_ns=handshake_ns, ns_per_byte=ns_per_byte)
        segments += [replace(before, up_to_bytes=end), after]
        end *= rng.randint(10, 60)
    return tuple(segments)


def _smooth(rng: Random, segment: PlantedSegment) -> tuple[PlantedSegment, ...]:
    """t_0 + a * size^p, or a slope that grows or falls around some size."""
    start_ns = segment.way_ns(Noise())
    shape = rng.choice(("power", "knee"))
    power, middle = rng.uniform(0.4, 0.8), log_uniform(rng, 4096, 65536)
    upper = (
        rng.uniform(0.3, 0.7) if rng.random() < 0.5 else 1 + min(2.0, 0.8 * start_ns / (middle * segment.ns_per_byte))
    )
    scale = start_ns / middle**power

    def time_ns(size: float) -> float:
        if shape == "power":
            return start_ns + float(scale * size**power)
        bend = (
            middle / 2 * math.log1p(math.exp((size - middle) / (middle / 2))) if size < 300 * middle else size - middle
        )
        return start_ns + segment.ns_per_byte * (size + (upper - 1) * bend)

    per_octave = 4  # the curve is a chain of short lines
    sizes = [0, *(round(64 * 2 ** (step / per_octave)) for step in range(16 * per_octave + 1))]
    pieces = []
    for low, high in itertools.pairwise(sizes):
        per_byte = (time_ns(high) - time_ns(low)) / (high - low)
        latency_ns = max(0.0, segment.latency_ns + (time_ns(low) - low * per_byte - start_ns))
        end = 0 if high == sizes[-1] else high
        pieces.append(replace(segment, up_to_bytes=end, latency_ns=latency_ns, ns_per_byte=per_byte))
    return tuple(pieces)
