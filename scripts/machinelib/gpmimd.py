"""The GPMIMD machine: T9000 transputers on C104 switches, from Com-1.x alone; and calibrated with four other cells."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median
from typing import Any, NamedTuple

from scripts.machinelib.figures import Figures, between, cost, line

US = 1000.0
PACKET = 32
WORD, LONG = 4, (64, 256, 1024)
SLOTS = 8  # of a board
TEXT = "the report's text"
# The rest of a packet comes at the links' 100 Mbit/s, with 10 bits for a byte.
LINK_NS_PER_BYTE = 10 / 100e6 * 1e9

ROOT = "1,9-15,17-23,25-31,33-39,41-47,49-55,57-63,2-5"
SENDERS = [board * SLOTS + slot for board in (1, 2, 3, 4) for slot in range(1, SLOTS)]
RECEIVERS = "41-47,49-55,57-63,2-6"


class Busy(NamedTuple):
    """Time of a busy node for a message of one word; for longer ones, the fixed part and that of each packet."""

    word: float
    fixed: float
    each: float

    def short(self) -> dict[str, float]:
        """As a cost of messages of up to one packet, of which a full one costs as much as each of many."""
        return between((WORD, self.word), (PACKET, self.each))

    def long(self) -> dict[str, float]:
        """As a cost of longer ones."""
        return cost(fixed=self.fixed, per_packet=self.each)


class Basic:
    """Times of messages in Com-1.x, in ns."""

    def __init__(self) -> None:
        self.figures = Figures("atlas")
        near = self.ns("Com-1.1", "transfer, one switch", "bytes", bytes=[WORD, *LONG])
        self.near = {length: near[(length,)] for length in (WORD, *LONG)}
        far = self.ns("Com-1.4", "transfer, three switches", "bytes", "processors", bytes=[WORD, *LONG])
        self.far = {length: mean(ns for at, ns in far.items() if at[0] == length) for length in (WORD, *LONG)}
        two_way = self.ns("Com-1.2", "duplex", "bytes", bytes=[WORD, *LONG])
        self.exchange = {length: 2 * two_way[(length,)] for length in (WORD, *LONG)}
        self.out = self.busy("Com-1.5", "out", "receivers", (8, 16, 53), (8, 16))
        self.into = self.busy("Com-1.7", "in", "senders", (8, 16, 53), (8, 16))
        self.both = self.busy("Com-1.3", "both", "processors", (8, 16, 62), (4, 8, 16), others=-1)
        (all_to_all,) = self.ns("Com-1.3", "link", "bytes", processors=62, bytes=1024).values()
        self.board_bytes_per_s = SLOTS * (62 - SLOTS) * 1024 / (all_to_all / 1e9)

    def ns(self, benchmark: str, for_: str, *columns: str, **where: Any) -> dict[tuple[int, ...], float]:
        """Rows of a table."""
        return {at: us * US for at, us in self.figures.table(for_, *columns, benchmark=benchmark, **where).items()}

    def busy(
        self, name: str, for_: str, column: str, of_words: Sequence[int], of_packets: Sequence[int], others: int = 0
    ) -> Busy:
        """A busy node's time for messages: medians over numbers of ranks."""
        words = self.ns(name, for_, column, bytes=WORD, **{column: list(of_words)})
        longer = self.ns(name, for_, column, "bytes", bytes=[64, 256], **{column: list(of_packets)})
        packets = (256 - 64) / PACKET
        slopes = {n: (longer[n, 256] - longer[n, 64]) / packets / (n + others) for n in of_packets}
        fixed = median(longer[n, 64] / (n + others) - 64 / PACKET * slope for n, slope in slopes.items())
        word = median(ns / (n + others) for (n,), ns in words.items())
        return Busy(word, max(0.0, fixed), median(slopes.values()))


def packet_line(times: dict[int, float]) -> tuple[float, float]:
    """Fixed part and time of each packet of long messages."""
    return line({length // PACKET: times[length] for length in LONG})


def segments(basic: Basic, times: dict[int, float], source: str) -> list[dict[str, Any]]:
    """Messages of one packet, and longer ones."""
    fixed, each = packet_line(times)
    word, packet = times[WORD], fixed + each
    exchange_fixed, exchange_each = packet_line(basic.exchange)
    near_fixed, near_each = packet_line(basic.near)
    # The first packet is there when the receiving node begins its own work.
    latency = min(word - basic.into.word, packet - basic.into.each)
    short = {
        "source": f"{source}: 4 B, and its line at 32 B; busy nodes Com-1.5, 1.7 and 1.3",
        "up_to_bytes": PACKET,
        "protocol": "synchronous",
        "latency": latency,
        "transfer": between((WORD, word - latency), (PACKET, packet - latency)),
        "out": basic.out.short(),
        "both": basic.both.short(),
        "in": basic.into.short(),
        "duplex": basic.exchange[WORD] - basic.near[WORD],
        "rest": each,
    }
    long = {
        "source": f"{source}: line through 64, 256 and 1024 B; busy nodes Com-1.5, 1.7 and 1.3",
        "protocol": "synchronous",
        "packet_bytes": PACKET,
        "latency": fixed,
        "transfer": cost(per_packet=each),
        "out": basic.out.long(),
        "both": basic.both.long(),
        "in": basic.into.long(),
        "duplex": cost(fixed=exchange_fixed - near_fixed, per_packet=exchange_each - near_each),
        "rest": cost(fixed=each, per_packet=each),
    }
    return [short, long]


def placements() -> dict[str, Any]:
    """Where ranks sat, as far as the report says it."""
    farms = {
        f"senders{count}": {
            "nodes": f"1,{','.join(map(str, SENDERS[:count]))},{RECEIVERS}",
            "source": "supervisor, senders and receivers on different boards; the last 5 of 26 receivers on the "
            "supervisor's, which the report says of some",
        }
        for count in (2, 4, 6, 8, 16, 26)
    }
    return {
        "pairs": {
            "nodes": "1-57/8,2-58/8,3-59/8,4,12",
            "second_half": "13-61/8,5,14-62/8,6,15-63/8,7,20,28",
            "source": f"{TEXT}: source and destination are on different boards; slot 0 is not used",
        },
        "root": {"nodes": ROOT, "source": f"{TEXT}: all but 4 of 53 on other boards than the source; no slot 0"},
        "sixteen": {
            "nodes": "0-3,8-11,16-19,24-27",
            "source": "Com-1.3: what 16 processors move in 1024 B is more than leaves two boards",
        },
        "nine": {"nodes": "1,9-15,17", "source": "the slope of 9 processors in Com-3.1: three switches"},
        **farms,
    }


def runs() -> list[dict[str, Any]]:
    """Which placement a table was measured with."""
    return [
        {"pattern": "pairs", "variants": "pairs", "read_from": TEXT},
        {"pattern": ["outfarm", "multicast", "funnel"], "variants": "root", "read_from": TEXT},
        *(
            {
                "pattern": ["pushfarm", "pullfarm"],
                "options": {"senders": str(count)},
                "variants": f"senders{count}",
                "read_from": f"{TEXT}: the supervisor has receivers on its board when there are 26",
            }
            for count in (2, 4, 6, 8, 16, 26)
        ),
        {"pattern": "alltoall", "ranks": 16, "variants": "sixteen", "read_from": "Com-1.3, 16 processors, 1024 B"},
        {
            "pattern": ["robpush", "robpull"],
            "ranks": 9,
            "variants": "nine",
            "read_from": "9 do not fit on a board of 8",
        },
    ]


STRUCTURE = [
    {"what": "one event in flight in both farms; their 3 and 4 hops", "read_from": "Com-2.1 and 2.2 are flat in R"},
    {"what": "a processor reads its readout buffers in turn", "read_from": "Com-3.1, times without a delay"},
    {"what": "it reads the next event while it computes", "read_from": "Com-3.1, times with 100 us"},
    {"what": "messages of Com-3.2 have 1024 B", "read_from": "Com-3.2, times without a delay"},
    {"what": "a channel takes its next message over when the last one is delivered", "read_from": "Com-1.5: R x out"},
    {"what": "the boards' links form one way out of each board", "read_from": "Com-1.3, 62 processors"},
    {
        "what": "off by more than 5 %: multicast is modelled as outfarming, the same data took less (to 14 %); "
        "outfarming of 1024 B to 16 and 53 receivers took longer than its own rows of 4 and 8 predict (7 to 10 %); "
        "all-to-all of 62: links are fitted to 1024 B, and 64 B took longer (14 %)",
        "read_from": "Com-1.3, Com-1.5 and Com-1.6",
    },
]
NOT_MODELLED = [
    {"where": {"benchmark": "Com-1.7", "senders": 4}, "why": "its times are those of 8 senders: probably mislabelled"}
]


def gpmimd() -> dict[str, Any]:
    """From the basic tables alone."""
    basic = Basic()
    return {
        "title": "GPMIMD machine",
        "about": "64 T9000 transputers of 20 MHz, 58 C104 switches, IEEE 1355 links of 100 Mbit/s",
        "machine": "gpmimd",
        "topology": {
            "kind": "clos",
            "boards": 8,
            "nodes_per_board": SLOTS,
            "crossbars": 1,
            "source": f"{TEXT}: one switch within a board, three between boards",
        },
        "link": [
            {
                "level": 2,
                "bytes_per_s": basic.board_bytes_per_s,
                "source": "Com-1.3, 62 processors, 1024 B: what leaves a board in that time",
            }
        ],
        "class": {
            "board": {"switches": 1, "segment": segments(basic, basic.near, "Com-1.1")},
            "boards": {"segment": segments(basic, basic.far, "Com-1.4")},
        },
        "variant": {name: {"placement": placement} for name, placement in placements().items()},
        "run": runs(),
        "used": basic.figures.used,
        "structure": STRUCTURE,
        "not_modelled": NOT_MODELLED,
    }


# ---- calibrated ------------------------------------------------------------------------------------------------------


def calibrated() -> dict[str, Any]:
    """With four cells of Com-2.1 and Com-3.1, and the time slice."""
    basic = Basic()
    figures = Figures("atlas")
    push = figures.table("recv_cpu, a hop of 16 B", "senders", benchmark="Com-2.1", senders=[2, 16], receivers=8)
    handling = (push[16,] - push[2,]) / 14 * US
    hop = (push[2,] * US - handling) / 3
    of_delay = figures.table(
        "cpu.compute", "delay_us", benchmark="Com-3.1", processors=3, bytes=64, delay_us=[400, 1600]
    )
    factor = (of_delay[1600,] - of_delay[400,]) / 1200
    rest_of_packet = PACKET * LINK_NS_PER_BYTE
    near, far = (segments(basic, line, "") for line in (basic.near, basic.far))
    near_hop = hop - (_way_ns(far[0], 16) - _way_ns(near[0], 16))  # one switch on the way, not three
    unread = {
        "board": {"segment": segments(basic, basic.near, "Com-1.1")},
        "boards": {"segment": segments(basic, basic.far, "Com-1.4")},
    }
    each = packet_line(basic.far)[1]
    in_turn = each + rest_of_packet + handling  # a message of two packets
    return {
        "base": "gpmimd.toml",
        "title": "GPMIMD machine, calibrated",
        "cpu": {
            "slice_ns": 256 * US,
            "compute_fixed_ns": of_delay[400,] * US - factor * 400 * US - in_turn,
            "compute_factor": factor,
            "source": "the delays of Com-3.1 (64 B, 3 processors, 400 and 1600 us) after one message in turn; "
            "the slice: 8 times of Com-3.x are its multiples or halves",
        },
        "class": {
            "board": {
                "segment": handled(segments(basic, basic.near, "Com-1.1"), handling, rest_of_packet, hop=near_hop),
            },
            "boards": {
                "segment": handled(segments(basic, basic.far, "Com-1.4"), handling, rest_of_packet, hop=hop),
            },
        },
        "variant": {
            "across": {"placement": {"nodes": "1,9,17", "source": "the slope of 3 processors in Com-3.1"}},
            **{name: {"class": unread} for name in ("unread", "sixteen", "root", "pairs")},
        },
        "run": [
            *runs(),
            {"pattern": "robpush", "ranks": 3, "variants": "across", "read_from": "Com-3.1, slope of 3 processors"},
            {
                "pattern": ["twoway", "alltoall"],
                "ranks": [2, 4, 8, 62],
                "variants": "unread",
                "read_from": "Com-1.x: no program reads what arrives",
            },
        ],
        "used": [*basic.figures.used, *figures.used],
    }


def _way_ns(segment: dict[str, Any], size: int) -> float:
    """Latency and transfer of a message."""
    transfer = segment["transfer"]
    return float(segment["latency"] + transfer.get("fixed_ns", 0.0) + size * transfer.get("per_byte_ns", 0.0))


def handled(
    basic: list[dict[str, Any]], handling: float, rest_of_packet: float, hop: float | None = None
) -> list[dict[str, Any]]:
    """The segments, if reading costs a program CPU time. Com-1.x has words that only it counts."""
    short, long = basic
    later = {"recv_cpu": handling, "rest": rest_of_packet}
    word = short | {"up_to_bytes": WORD, "rest": 0.0}
    report = short | {"up_to_bytes": 16} | later
    if hop is not None:
        into = short["in"]["fixed_ns"] + 16 * short["in"]["per_byte_ns"]
        latency = max(0.0, hop - handling - into)
        report |= {
            "source": f"{short['source']}; a hop of Com-2.1",
            "latency": latency,
            "transfer": hop - handling - latency,
        }
    rest = cost(fixed=rest_of_packet, per_packet=long["rest"]["per_packet_ns"])
    return [word, report, short | later, long | {"recv_cpu": handling, "rest": rest}]
