"""The Intel Paragon: the native library, and PVM's variants to send, by the copies that the report states."""

from __future__ import annotations

from typing import Any

from scripts.machinelib.figures import Figures, cost

LATENCY_NS, CALL_NS = 50e3, 5e3
PAGE_BYTES, FRAGMENT_NS = 4096, 30e3
ASSUMED = "assumed: no figure in the report"


def paragon() -> dict[str, Any]:
    """The model."""
    figures = Figures("paragon")
    byte = 1e3 / figures.value("transfer; each copy is as fast", metric="asymptotic_bandwidth")
    jump = int(figures.value("where in-place data stop being buffered", metric="jump_at") * (1 << 20))
    wire = {"latency": LATENCY_NS, "transfer": cost(per_byte=byte), "out": cost(per_byte=byte)}
    copies = f"a copy is as fast as the wire, {ASSUMED}"

    def pvm(source: str, sent: float, received: float, **more: Any) -> dict[str, Any]:
        """A variant to send, with its copies at either end."""
        return {
            "source": f"{source}; {copies}",
            **more,
            **wire,
            "send_cpu": cost(fixed=CALL_NS, per_byte=sent * byte),
            "recv_cpu": cost(fixed=CALL_NS, per_byte=received * byte),
        }

    raw = pvm("packing; unpacking what the system has buffered", 1, 2, packet_bytes=PAGE_BYTES)
    posted_raw = pvm("packing; unpacking: the system has nothing to buffer", 1, 1, packet_bytes=PAGE_BYTES)
    for way in (raw, posted_raw):
        way["send_cpu"] |= {"per_packet_ns": FRAGMENT_NS}
    inplace = [
        pvm("unpacking, and the system's buffer before it", 0, 2, up_to_bytes=jump),
        pvm("unpacking alone: the message waits for its receive", 0, 1, protocol="rendezvous"),
    ]
    buffered = cost(per_byte=byte)
    ways = {
        "psend": [pvm("it is built on isend", 0, 0, late=buffered)],
        "inplace": inplace,
        "raw": [raw],
    }
    posted = {
        "inplace-posted": [pvm("unpacking alone: the system has nothing to buffer", 0, 1)],
        "raw-posted": [posted_raw],
    }
    return {
        "title": "Intel Paragon",
        "about": "two nodes; NX, and PVM 3 as variants: psend, inplace, raw",
        "machine": "paragon",
        "ranks": 2,
        "topology": {"kind": "switch", "nodes": 2, "source": "the report's text: two nodes"},
        "class": {"all": {"segment": [{"source": f"the rate of NX; latency {ASSUMED}", **wire, "late": buffered}]}},
        "variant": {name: {"class": {"all": {"segment": segments}}} for name, segments in {**ways, **posted}.items()},
        "run": [
            {
                "pattern": "pingpong",
                "options": {"receive": "posted"},
                "variants": ["", "psend", *posted],
                "read_from": "a message whose receive is posted needs no buffer of the system",
            },
            {
                "pattern": "pingpong",
                "variants": ["", *ways],
                "read_from": "the report compares these ways",
            },
        ],
        "used": figures.used,
        "structure": [
            {"what": "which way to send copies how often, and where", "read_from": "the report's text"},
            {"what": "packed data go in pieces of a page", "read_from": "the blip at the page size"},
            {"what": "a message that has no receive is buffered", "read_from": "the report's text"},
        ],
    }
