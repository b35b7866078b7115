"""Two workstations on an Ancor fabric: a byte stream whose slower end sets the pace."""

from __future__ import annotations

from typing import Any

from scripts.machinelib.figures import Figures, cost

LONG = 65500
SLOWER = 1.1
BELOW = 0.95  # the report says "below"
ASSUMED = "assumed: no figure in the report"


def ancor() -> dict[str, Any]:
    """The model."""
    figures = Figures("ancor")
    quick = {"write": "non-blocking", "read": "non-blocking"}
    waiting = {"write": "blocking", "read": "non-blocking"}
    drain = _law(figures, "drain", quick)
    write = _law(figures, "ack", waiting)
    share = BELOW * figures.value("read", metric="receiver_cpu") / 100
    read = tuple(share * part for part in drain)
    return {
        "title": "RS/6000 250 and 590 with an Ancor fabric",
        "about": "node 0 is the 250, node 1 the 590, which is the faster",
        "machine": "ancor",
        "ranks": 2,
        "topology": {"kind": "switch", "nodes": 2, "source": "the report's text: a fabric"},
        "slower": [{"nodes": "0", "factor": SLOWER, "source": f"{ASSUMED}; which of the two is slower is in its text"}],
        "stream": {
            "source": "overheads and speeds of non-blocking writes to the 590, and of blocking ones from it; the "
            "reader's share of CPU time, taken 5 % below its bound; assumed: a writer's like it, room for two of the "
            "longest writes, and what a call takes that moves nothing",
            "buffer_bytes": 2 * LONG,
            "write": cost(*read),
            "read": cost(*read),
            "poll": 10e3,
            "drain": cost(*drain),
            "ack": cost(write[0] - read[0], write[1] - read[1]),
        },
        "class": {
            "all": {
                "segment": [
                    {
                        "source": "as a stream of non-blocking writes",
                        "latency": drain[0],
                        "transfer": cost(per_byte=drain[1]),
                    }
                ]
            }
        },
        "used": figures.used,
        "structure": [
            {"what": "non-blocking: the reading node sets the pace", "read_from": "the note on figures 3 and 4"},
            {"what": "blocking: the writing node sets the pace", "read_from": "the note on figures 5 and 6"},
        ],
    }


def _law(figures: Figures, for_: str, mode: dict[str, Any]) -> tuple[float, float]:
    """A write's fixed time, and its time for each byte."""
    fixed = figures.ns(for_, metric="system_overhead", **mode)
    whole = 1e3 * LONG / figures.value(for_, metric="speed", **mode)
    return fixed, (whole - fixed) / LONG
