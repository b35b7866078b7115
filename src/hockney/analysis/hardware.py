"""What keeps the hardware that was found below what it could do; hardware.toml has the rules."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from hockney.analysis.finding import Finding, Subject
from hockney.errors import Fix
from hockney.machine.facts import fact
from hockney.machine.files import parse_cpus, read_toml, rows_of

_RULES = Path(__file__).with_name("hardware.toml")
_LINKS = read_toml(_RULES)["pcie"]
_PACKETS = 1.1  # a link must carry that much more than its payload: headers of packets
_RDMA_BITS_PER_S = 4e10  # slower RDMA is not meant for GPUs
_OPERATORS: Mapping[str, Any] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
    "in": lambda value, among: value in among,
}


def faults(
    facts: Mapping[str, Any], kinds: Collection[str] = ("gpu", "network", "tcp", "memory", "cpu")
) -> list[Finding]:
    """Findings about the hardware of these kinds."""
    found = []
    for part in subjects(facts):
        for row in rows_of(_RULES):
            if (
                part["kind"] in kinds
                and part["kind"] in row["kinds"]
                and all(_holds(part, *each) for each in row["when"])
            ):
                about = {"device": part["name"], **{key: part[key] for key in row.get("facts", ())}}
                fix = Fix("mend hardware", facts={"cause": row["cause"]})
                found.append(Finding("hardware limit", Subject(), about, row["cause"], fix, row["effect"]))
    return found


def _holds(part: Mapping[str, Any], key: str, sign: str, other: Any) -> bool:
    value, other = part.get(key), part.get(other) if isinstance(other, str) and other in part else other
    return value is not None and other is not None and bool(_OPERATORS[sign](value, other))


def subjects(facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Each device with what is known of it, the memory, TCP and the CPUs; none for a run without such facts."""
    hardware = facts.get("hardware")
    if hardware is None:
        return
    devices = [_device(each, facts) for each in hardware["devices"]]
    speeds = {each["bits_per_s"]: each for each in devices if each["bits_per_s"] and each.get("state") == "up"}
    fastest = speeds[max(speeds)] if speeds else {}
    for each in devices:
        if each.get("state") == "up" and each["bits_per_s"] and fastest.get("link_layer") != "InfiniBand":
            each |= {"fastest": fastest["name"], "fastest_bytes_per_s": fastest["speed_bytes_per_s"]}
            each |= {"fastest_ratio": fastest["bits_per_s"] / each["bits_per_s"]}
        rdma = [one["node"] for one in devices if "port_lanes" in one and (one["bits_per_s"] or 0) >= _RDMA_BITS_PER_S]
        each["has_near_network"] = None if not rdma or None in (*rdma, each["node"]) else each["node"] in rdma
        below = [one for one in devices if one is not each and one["switch"] and one["switch"] == each["switch"]]
        each["others"] = ", ".join(one["name"] for one in below if one["apart"] != each["apart"])
        yield each
    network, memory, cpu = facts["network"], hardware["memory"], facts["cpu"]
    sizes = [hardware[f"tcp_{way}_buffer_max_bytes"] for way in ("send", "receive")]
    known = {"control": network["tcp_congestion_control"], "fastest_bits_per_s": fastest.get("bits_per_s")}
    yield {"kind": "tcp", "name": "TCP", **known, "buffer_bytes": min(filter(None, sizes), default=None)}
    share = memory["sockets"] / memory["modules"] if memory["sockets"] and memory["modules"] else None
    yield {"kind": "memory", "name": "memory", **memory, "sockets_per_module": share}
    now, most = hardware["frequency_limit_hz"], cpu["frequency_max_hz"]
    yield {"kind": "cpu", "name": "the CPUs", "of_frequency_share": now / most if now and most else None}


def _device(device: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """With its rate, its links in words and bytes/s, and whether the CPUs that hockney may use are near."""
    bits_per_s = 1e9 * (device.get("gbit_per_s") or 0) or 1e6 * (device.get("mbit_per_s") or 0) or None
    known = {**device, "bits_per_s": bits_per_s, "speed_bytes_per_s": (bits_per_s or 0) / 8}
    known["needed_bytes_per_s"] = bits_per_s / 8 * _PACKETS if bits_per_s else float("inf")
    for end in ("", "_max"):
        generation, lane_bytes_per_s = _LINKS.get(str(device[f"gt_per_s{end}"]), (0, 0))
        lanes = device[f"lanes{end}"] if generation and device[f"lanes{end}"] in range(1, 33) else None
        known[f"lanes{end}"] = lanes
        known[f"link{end}"] = f"PCIe {generation} x{lanes}" if lanes else None
        known[f"link{end}_bytes_per_s"] = lanes * lane_bytes_per_s if lanes else None
    for key in ("lanes_max", "gt_per_s_max"):  # the slots of a virtual machine are made up
        known[f"slot_{key}"] = None if fact(facts, "surroundings.hypervisor") else device[f"slot_{key}"]
        known[f"slot_{key}"] = known[f"slot_{key}"] or known[key]
    usable, nodes = {*parse_cpus(fact(facts, "limits.usable_cpus"))}, fact(facts, "topology.nodes") or ()
    near = [number for number, node in enumerate(nodes) if usable & {*parse_cpus(node["cpus"])}]
    known |= {
        "near": ", ".join(map(str, near)),
        "is_near": device["node"] in near if near and device["node"] is not None else None,
    }
    return known | {
        "is_route": device.get("interface") is not None and device["interface"] == facts["hardware"]["route"]
    }
