"""The Cray T3D: puts of a word and long ones, from the least of single pairs; the torus adds the report's costs."""

from __future__ import annotations

from typing import Any

from scripts.machinelib.figures import Figures, cost

WORD = 8
CP_NS = 1e9 / 150e6
HOP_CP, TURN_CP = 1, 2  # "add 1 cp for each network switch passed and 2 cp's for each change of direction"


def t3d() -> dict[str, Any]:
    """The model."""
    figures = Figures("t3d")
    word = figures.ns("put, a word", benchmark="single_pairs", metric="latency_min")
    seen = figures.ns("put, waiting for a word", benchmark="ping_pong", metric="latency_min")
    byte = 1e3 / figures.value("put, long", benchmark="single_pairs", metric="Rmax")
    words = figures.column("put, long", "words", benchmark="single_pairs", metric="N_half")
    message = figures.ns("class", benchmark="pvm/mpi (previous newsletter)", metric="latency")
    remote = {"benchmark": "load table", "source": "Remote DRAM", "page": "out of page"}
    load = figures.column("get, a word", "latency_cp", destination="Register", **remote)
    prefetch = figures.column("get, long", "cp", destination="Prefetch", **remote)
    return {
        "title": "Cray T3D",
        "about": "16 processing elements of 150 MHz, two to a node, on a three-dimensional torus; SHMEM",
        "machine": "t3d",
        "ranks_per_node": 2,
        "cpu": {"per_node": 2, "source": "the report's machine: two processing elements to a node"},
        "default_ranks": 16,
        "topology": {
            "kind": "torus",
            "dimensions": [2, 2, 2],
            "turn_ns": TURN_CP * CP_NS,
            "source": "the report's text for a turn; 8 nodes as a cube: assumed, the report has no shape",
        },
        "link": [{"latency_ns": HOP_CP * CP_NS, "source": "the report's text: 1 clock period for each switch"}],
        "class": {
            "message": {
                "segment": [
                    {
                        "source": "the latency of PVM or MPI that the report quotes: the way is that of a put, the "
                        "rest is software; half of it on either side, and the rate of puts: assumed",
                        "send_cpu": (message - word) / 2,
                        "recv_cpu": (message - word) / 2,
                        "latency": word,
                        "transfer": cost(per_byte=byte),
                        "out": cost(per_byte=byte),
                    }
                ]
            }
        },
        "put": {
            "all": {
                "segment": [
                    {
                        "source": "single_pairs and ping_pong, least latencies: two elements of one node",
                        "up_to_bytes": WORD,
                        "protocol": "synchronous",
                        "latency": word,
                        "recv_cpu": seen - word,
                    },
                    {
                        "source": "single_pairs, Rmax and N 1/2",
                        "protocol": "synchronous",
                        "latency": words * WORD * byte,
                        "transfer": cost(per_byte=byte),
                        "out": cost(per_byte=byte),
                        "recv_cpu": seen - word,
                    },
                ]
            }
        },
        "get": {
            "all": {
                "segment": [
                    {"source": "the load table: remote, to a register", "up_to_bytes": WORD, "latency": load * CP_NS},
                    {
                        "source": "the load table: remote, by prefetch",
                        "latency": load * CP_NS,
                        "transfer": cost(per_byte=prefetch * CP_NS / WORD),
                    },
                ]
            }
        },
        "used": figures.used,
        "structure": [
            {"what": "a put returns when its data are there", "read_from": "single_pairs depend on the distance"},
            {"what": "two elements share their node's way out", "read_from": "the report's machine"},
        ],
        "not_modelled": [
            {"where": {"metric": "latency_max"}, "why": "they are of single pairs, and no distance is so long"},
            {"where": {"benchmark": "load table"}, "why": "the table is an input"},
        ],
    }
