"""The Scali cluster, from messages between two processes; the rest is predicted, except the barrier."""

from __future__ import annotations

import math
from statistics import mean
from typing import Any

from scripts.machinelib.figures import Figures, cost

from hockney.stats.npb import FT_GRIDS, FT_ITERATIONS, ft_operations

US = 1000.0
STEP_BYTES = 32
EMPTY_BYTES = 1  # 0 would be any size
COMPLEX_BYTES = 16
NPB = "NPB 2.3 FT class A"
FT_READ_FROM = "Scali-1 has one process per node, Scali-2 two"


def ns_per_byte(mb_per_s: float) -> float:
    """1 MB is 10^6 bytes."""
    return 1e3 / mb_per_s


def scali() -> dict[str, Any]:
    """The model."""
    figures = Figures("scabench")
    # Within a node a one-way stream is as fast as either CPU, which do the same for a message without data.
    within = {"scope": "intra-node"}
    send = figures.ns("class.node", benchmark="one-way (pingping)", metric="latency", **within)
    half = figures.ns("class.node", benchmark="ping-pong", metric="latency", bytes=0, **within)
    half_step = figures.ns("class.node", benchmark="ping-pong", metric="latency", bytes=STEP_BYTES, **within)
    send_byte = ns_per_byte(
        figures.value("class.node", benchmark="one-way (pingping)", metric="peak_bandwidth", **within)
    )
    half_byte = ns_per_byte(figures.value("class.node", benchmark="ping-pong", metric="peak_bandwidth", **within))
    node = [
        {
            "source": "0 B: one-way and ping-pong",
            "up_to_bytes": EMPTY_BYTES,
            "send_cpu": send,
            "recv_cpu": send,
            "latency": half - 2 * send,
        },
        {
            "source": "32 B: ping-pong; peaks of one-way and ping-pong",
            "send_cpu": cost(fixed=send, per_byte=send_byte),
            "recv_cpu": cost(fixed=send, per_byte=half_byte - send_byte),
            "latency": half_step - 2 * send - STEP_BYTES * half_byte,
        },
    ]
    between = {"scope": "inter-node"}
    stream = figures.ns("out", benchmark="one-way (pingping)", metric="latency", **between)
    exchange = 2 * figures.ns("both", benchmark="two-way", metric="latency", **between)
    trip = figures.ns("latency", benchmark="ping-pong", metric="latency", bytes=0, **between)
    trip_step = figures.ns("latency", benchmark="ping-pong", metric="latency", bytes=STEP_BYTES, **between)
    byte = ns_per_byte(
        figures.value("transfer, out, in", benchmark="one-way (pingping)", metric="peak_bandwidth", **between)
    )
    two_way = figures.value("both, link", benchmark="two-way", metric="peak_bandwidth", **between)
    network = [
        {
            "source": "0 B: one-way, two-way, ping-pong",
            "up_to_bytes": EMPTY_BYTES,
            "send_cpu": send,
            "latency": trip - 2 * send,
            "out": stream,
            "both": exchange,
            "recv_cpu": send,
        },
        {
            "source": "32 B: ping-pong; peaks of one-way and two-way",
            "send_cpu": send,
            "latency": trip_step - 2 * send - STEP_BYTES * byte,
            "transfer": cost(per_byte=byte),
            "out": cost(fixed=stream, per_byte=byte),
            "both": cost(fixed=exchange, per_byte=ns_per_byte(two_way)),
            "in": cost(per_byte=byte),
            "recv_cpu": send,
        },
    ]
    ft = _ft(figures, send, send_byte / 2)
    barriers = figures.table("barrier", "nodes", benchmark="barrier", nodes=[2, 16])
    return {
        "title": "Scali cluster",
        "about": "16 nodes with two Pentium III of 450 MHz; SCI cards on 32-bit PCI of 33 MHz, a 4 x 4 torus; ScaMPI",
        "machine": "scali",
        "topology": {"kind": "torus", "dimensions": [4, 4], "source": "the report's text"},
        "cpu": {
            "per_node": 2,
            "flops_per_s": ft["cpu"]["flops_per_s"],
            "source": f"the report's text; {ft['cpu']['source']}",
        },
        "link": [
            {"bytes_per_s": 2e6 * two_way, "source": "two-way: what a pair moves at once, both directions together"}
        ],
        "class": {"node": {"same_node": True, "segment": node}, "network": {"segment": network}},
        "barrier": {
            "per_round_ns": mean([barriers[2,], barriers[16,] / 4]) * US,
            "source": "barriers of 2 and of 16 nodes, 1 and 4 rounds: the library's own, no messages of its users",
        },
        "alltoall": {
            "own_per_byte_ns": send_byte / 2,
            "source": "one-way within a node: it copies twice, the own block of an all-to-all once",
        },
        "variant": {
            "within": {"placement": {"nodes": "0,0", "source": "two processes of one node"}},
            "ft": {"class": ft["class"]},
            "ft-two": {**ft["two"], "ranks_per_node": 2},
        },
        "run": [
            {
                "pattern": ["oneway", "pingpong"],
                "variants": ["", "within"],
                "read_from": "the report has both, inter-node and intra-node",
            },
            {"pattern": "ft", "ranks": [1, 2], "variants": ["ft"], "read_from": FT_READ_FROM},
            {"pattern": "ft", "ranks": [4, 8, 16], "variants": ["ft", "ft-two"], "read_from": FT_READ_FROM},
            {"pattern": "ft", "ranks": 32, "variants": ["ft-two"], "read_from": FT_READ_FROM},
        ],
        "used": figures.used,
        "structure": [
            {"what": "rates of two-way count both messages as twoway does", "read_from": "its latency is the least"},
        ],
    }


def _ft(figures: Figures, call_ns: float, own_byte_ns: float) -> dict[str, Any]:
    """What FT computes in a second, and what a byte costs that its transposes exchange, with packing and unpacking.

    A rank of P computes 1/P of the operations, and exchanges (P - 1) / P^2 of the grid in each transpose; its own block
    is copied. The times on two and on four nodes have both costs. Two processes of a node share its memory: both take
    as much longer as the four of two nodes than the four of four.
    """
    mops = figures.table("ft: computing, exchanged bytes", "nodes", benchmark=NPB, system="Scali-1", nodes=[2, 4])
    pair = figures.value("ft: two processes share a memory", benchmark=NPB, system="Scali-2", nodes=2)
    operations, grid_bytes = ft_operations("A"), (1 + FT_ITERATIONS) * COMPLEX_BYTES * math.prod(FT_GRIDS["A"])
    two_ns, four_ns = (operations / nodes / mops[nodes,] * 1e3 for nodes in (2, 4))
    byte_ns = 16 * (four_ns - two_ns / 2) / grid_bytes + own_byte_ns
    computing_ns = two_ns - grid_bytes / 4 * (byte_ns + own_byte_ns)
    flops_per_s = operations / 2 / computing_ns * 1e9
    shared = 2 * mops[4,] / pair
    source = "NPB FT on two and on four nodes, Scali-1"

    def classes(byte_ns: float, source: str) -> dict[str, Any]:
        call = cost(fixed=call_ns, per_byte=byte_ns / 2)
        segment = [{"source": source, "send_cpu": call, "recv_cpu": call, "latency": 0.0}]
        return {"node": {"segment": segment}, "network": {"segment": segment}}

    of_two = f"{source}; a memory for two: Scali-2 on two nodes"
    return {
        "cpu": {"flops_per_s": flops_per_s, "source": source},
        "class": classes(byte_ns, source),
        "two": {
            "cpu": {"flops_per_s": flops_per_s / shared, "source": of_two},
            "class": classes(byte_ns * shared, of_two),
        },
    }
