"""How near the best rates of a run come to the limits of the hardware that carried them."""

from __future__ import annotations

from collections.abc import Iterator

from hockney.analysis.explain.curve import MeasuredCurve, Reading, subject_of
from hockney.analysis.finding import Finding
from hockney.analysis.hardware import faults, subjects
from hockney.analysis.health.differences import flow_bits_per_s, used_interface
from hockney.errors import Fix
from hockney.machine.facts import fact
from hockney.model import split_placed

_NORMAL = 0.8  # of a limit: PCIe and Ethernet reach 0.87 to 0.97 of theirs
_LONG_BYTES = 1 << 16  # shorter messages are limited by their latency


def hardware_limits(reading: Reading) -> Iterator[Finding]:
    """How near the best rates come to the limits of what carried them, and the faults of that hardware."""
    used = set() if reading.plan.get("virtual") else {"memory", "cpu"}
    for curve in reading.curves:
        limit = _limit(curve, reading)
        long = [point for point in curve.points if point.bytes >= _LONG_BYTES]
        rates = [rate for point in long if (rate := point.rate_bytes_per_s) is not None]
        if limit is None or not rates:
            continue
        kind, what, most = limit
        used |= {kind, "tcp"} if kind == "network" else {kind}
        best = max(rates, key=lambda rate: rate.value)
        if best.low > most:  # of both directions
            continue
        about = {"rate_bytes_per_s": best, "limit_bytes_per_s": most, "what": what, "of_limit_share": best.value / most}
        if best.high >= _NORMAL * most:
            yield Finding("near its limit", subject_of(curve), about, "", None, 0.0)
            continue
        is_tcp = kind == "network" and split_placed(curve.transport)[0].startswith(("tcp", "mptcp", "udp"))
        cause = "RDMA" if is_tcp and fact(reading.facts, "network.rdma") else "pageable" if _is_pageable(curve) else ""
        fix = Fix("mend hardware", facts={"cause": cause}) if cause else None
        yield Finding("below its limit", subject_of(curve), about, cause, fix, most / best.value - 1)
    yield from faults(reading.facts, used)


def _is_pageable(curve: MeasuredCurve) -> bool:
    return "host" in (curve.option("memory") or "").split(":")


def _limit(curve: MeasuredCurve, reading: Reading) -> tuple[str, str, float] | None:
    """What limits the rate of a curve: its kind of device, its name, and the bytes/s; None where it is not known."""
    ends = {*(curve.option("memory") or "").split(":")}
    if "device" in ends and ends != {"device"}:
        gpus = [each for each in subjects(reading.facts) if each["kind"] == "gpu" and each["link_max"]]
        return ("gpu", gpus[0]["link_max"], gpus[0]["link_max_bytes_per_s"]) if gpus else None
    hosts = reading.facts.get("hosts") or ()
    if curve.ranks != 2 or len(hosts) < 2 or split_placed(curve.transport)[1]:
        return None
    used = [used_interface(host, reading.plan.get("interface")) for host in hosts]
    speed, slowest = min(((flow_bits_per_s(each), each) for each in used), key=lambda each: each[0])
    return ("network", f"{slowest['name']} ({speed / 1e9:g} Gbit/s)", speed / 8) if slowest and speed else None
