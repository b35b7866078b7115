"""Models whose times are known: half a round trip is o_s + L + o_r + g + G bytes."""

from __future__ import annotations

from typing import Any

from hockney.worker.machine_model import Model

SEND, LATENCY, RECEIVE, GAP, PER_BYTE = 100.0, 1000.0, 50.0, 30.0, 0.5


def content(**more: Any) -> dict[str, Any]:
    """Of a switch with 64 nodes, and more or other tables."""
    segment = {
        "source": "made up",
        "send_cpu": SEND,
        "recv_cpu": RECEIVE,
        "latency": {"fixed_ns": LATENCY},
        "transfer": {"fixed_ns": GAP, "per_byte_ns": PER_BYTE},
    }
    return {
        "title": "made up",
        "topology": {"kind": "switch", "nodes": 64, "source": "made up"},
        "class": {"all": {"segment": [segment]}},
        **more,
    }


def model(**more: Any) -> Model:
    return Model.from_content("made-up", content(**more))


def half_round_trip_ns(size_bytes: int) -> float:
    return SEND + LATENCY + RECEIVE + GAP + PER_BYTE * size_bytes
