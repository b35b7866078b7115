"""A network whose every link has a delay: tunnels lead from namespaces to this program, which forwards packets late.

`python slow_network.py PREFIX DELAYS` where DELAYS is a square of ms as JSON, row: from, column: to. Namespace i is
PREFIXi, its device v0, its address ends with i + 1. The kernel's own delays (netem) are a module that not all have.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import json
import os
import select
import struct
import sys
import time
from pathlib import Path

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN_NO_PI = 0x1001
PACKET_MAX = 65536


def tunnel_from(namespace: str) -> int:
    """The other end of v0 in a namespace, in which this process is from then on."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/run/netns", namespace).open(encoding="ascii") as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns into {namespace}")
    tunnel = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tunnel, TUNSETIFF, struct.pack("16sH22x", b"v0", IFF_TUN_NO_PI))
    return tunnel


def forward(tunnels: list[int], delays_ms: list[list[float]]) -> None:
    """For ever. Packets of one link stay in order, because all of them wait as long."""
    waiting: list[tuple[float, int, int, bytes]] = []
    count = 0
    while True:
        rest_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for tunnel in select.select(tunnels, [], [], rest_s)[0]:
            packet = os.read(tunnel, PACKET_MAX)
            source, target = tunnels.index(tunnel), packet[19] - 1
            if packet[0] >> 4 == 4 and target < len(tunnels):
                due_s = time.monotonic() + delays_ms[source][target] / 1000
                heapq.heappush(waiting, (due_s, count, target, packet))
                count += 1
        while waiting and waiting[0][0] <= time.monotonic():
            *_, target, packet = heapq.heappop(waiting)
            os.write(tunnels[target], packet)


if __name__ == "__main__":
    delays = json.loads(sys.argv[2])
    ends = [tunnel_from(f"{sys.argv[1]}{number}") for number in range(len(delays))]
    print("ready", flush=True)
    forward(ends, delays)
