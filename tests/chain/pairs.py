"""Models of machines with several ranks, with or without a slow rank, link or switch.

Machines are built of leaf switches around a core switch. A slow link is a detour over two extra switches. A slow switch
is such a detour among all its nodes, or one more switch on the way to the others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from tests.chain.curves import SOURCE, log_uniform, random_noise

Slow = Literal["", "rank", "link", "switch", "uplink"]
SLOW: tuple[Slow, ...] = ("", "rank", "link", "switch", "uplink")


@dataclass(frozen=True)
class PairsMachine:
    """`slow`: the kind of planted fault; `ranks` are its ranks, empty if nothing is slow."""

    size: int
    content: dict[str, Any]
    slow: Slow = ""
    ranks: frozenset[int] = frozenset()

    def is_right(self, named: Sequence[frozenset[int]]) -> bool:
        """Whether explain names the whole planted fault: for a switch all its ranks, in any number of parts."""
        if self.slow in ("rank", "link"):
            return self.ranks in named
        return frozenset[int]().union(*named) == self.ranks

    def verdict(self, named: Sequence[frozenset[int]]) -> str:
        """`right`, `silent`, `in part` or `false`."""
        if any(self.is_false(ranks) for ranks in named):
            return "false"
        if not self.slow or self.is_right(named):
            return "right"
        return "in part" if named else "silent"

    def is_false(self, named: frozenset[int]) -> bool:
        """Whether a rank, pair or group is wrongly called slow. A pair with one end in the fault is slow."""
        if self.slow in ("link", "switch"):
            return not named <= self.ranks
        if self.slow:
            return not (named <= self.ranks or (len(named) == 2 and named & self.ranks))
        return True


def planted(rng: Random, slow: Slow) -> PairsMachine:
    """A machine with a fault: it takes 1.5 to 3 times as long, a slow rank 1.3 times compared with the farthest.

    Levels of times differ enough for explain to separate them, and a switch with a slow way to the others is one of
    four.
    """
    count = {"switch": rng.randint(3, 4), "uplink": 4}.get(slow, rng.randint(1, 3))
    leaves = _leaves(rng, count, least=3 if slow == "switch" else 2)
    nodes = sum(map(len, leaves))
    ranks: list[int] = []
    if slow == "rank":
        ranks = [rng.randrange(nodes)]
    elif slow == "link":
        ranks = sorted(rng.sample(range(nodes), 2))
    elif slow:
        ranks = min(leaves, key=len)
    near_ns = log_uniform(rng, 1000, 20_000)
    factor, over = rng.uniform(1.5, 3), rng.uniform(1.5, 5)
    while slow == "switch" and abs(math.log(factor / over)) < math.log(1.35):  # explain needs a factor of 1.25
        factor, over = rng.uniform(1.5, 3), rng.uniform(1.5, 5)
    far_ns = near_ns * over
    is_near = any(leaf.issuperset(ranks) for leaf in map(set, leaves))
    times_ns = {1: near_ns, 2: factor * (near_ns if is_near else far_ns), 4: factor * far_ns, 3: far_ns}
    busy_ns = near_ns * rng.uniform(0.1, 0.4)
    content: dict[str, Any] = {
        "title": "made up",
        "topology": _graph(leaves, ranks, slow),
        "noise": random_noise(rng, 0.1, near_ns).content,
    }
    if slow == "rank":
        slower = 1 + 2 * rng.uniform(0.3, 1.5) * (far_ns if count > 1 else near_ns) / busy_ns
        content["slower"] = [{"nodes": ranks, "factor": slower, **SOURCE}]
    ns_per_byte = log_uniform(rng, 0.02, 0.5)
    content["class"] = {  # by the number of switches on the way; the last class is for all pairs
        f"over{switches}": _class(busy_ns, time_ns, ns_per_byte) | ({} if switches == 3 else {"switches": switches})
        for switches, time_ns in times_ns.items()
    }
    return PairsMachine(nodes, content, slow, frozenset(ranks))


def healthy(rng: Random) -> PairsMachine:
    """A machine without anything slow, of another topology: its links are shared, and farther ranks take longer."""
    near_ns, ns_per_byte = log_uniform(rng, 1000, 20_000), log_uniform(rng, 0.02, 0.5)
    hop_ns = near_ns * rng.uniform(0.02, 1.0)
    topology, nodes = _topology(rng)
    content: dict[str, Any] = {
        "title": "made up",
        "topology": topology,
        "link": [{"bytes_per_s": 1e9 / ns_per_byte, "latency_ns": hop_ns, **SOURCE}],
        "noise": random_noise(rng, 0.1, near_ns).content,
        "class": {"all": _class(near_ns * rng.uniform(0.1, 0.4), near_ns, ns_per_byte)},
    }
    return PairsMachine(nodes, content)


def _topology(rng: Random) -> tuple[dict[str, Any], int]:
    """Its keys, and how many nodes it has."""
    kind = rng.choice(("hierarchy", "torus", "mesh", "fat tree", "dragonfly"))
    a, b = rng.randint(2, 4), rng.randint(2, 3)
    keys: dict[str, Any] = {"dimensions": [a, b]}
    if kind == "hierarchy":
        keys = {"level": [{"name": "host", "holds": a}, {"name": "rack", "holds": b}]}
    elif kind == "fat tree":
        keys = {"down": [a, b], "up": [1, 1]}
    elif kind == "dragonfly":
        keys = {"groups": 3, "routers_per_group": 2, "nodes_per_router": 2, "global_links": 1}
    return {"kind": kind, **keys, **SOURCE}, 12 if kind == "dragonfly" else a * b


def _class(busy_ns: float, time_ns: float, ns_per_byte: float) -> dict[str, Any]:
    costs = {"send_cpu": busy_ns / 2, "recv_cpu": busy_ns / 2, "latency": time_ns - busy_ns}
    return {"segment": [{**costs, "transfer": {"per_byte_ns": ns_per_byte}, **SOURCE}]}


def _leaves(rng: Random, count: int, least: int) -> list[list[int]]:
    """Nodes by their switch, six in all at least; which node hangs where is random."""
    sizes = [rng.randint(least, 4 if count < 4 else 3) for _ in range(count)]
    while sum(sizes) < 6:
        sizes[rng.randrange(count)] += 1
    nodes = list(range(sum(sizes)))
    rng.shuffle(nodes)
    rest = iter(nodes)
    return [list(itertools.islice(rest, size)) for size in sizes]


def _graph(leaves: Sequence[Sequence[int]], ranks: Sequence[int], slow: Slow) -> dict[str, Any]:
    nodes = sum(map(len, leaves))
    core, uplink, first, second = (nodes + len(leaves) + i for i in range(4))
    edges: list[tuple[int, int]] = []
    via: list[tuple[int, ...]] = []
    for number, leaf in enumerate(leaves, nodes):
        edges += [(node, number) for node in leaf]
        if slow == "uplink" and set(leaf) == set(ranks):
            edges += [(number, uplink), (uplink, core)]
        elif len(leaves) > 1:
            edges.append((number, core))
    if slow in ("link", "switch"):
        edges += [(first, second), *((node, first) for node in ranks[:-1]), *((node, second) for node in ranks[1:])]
        for a, b in itertools.combinations(ranks, 2):
            via += [(a, first, second, b), (b, second, first, a)]
    return {"kind": "graph", "nodes": nodes, "switches": len(leaves) + 4, "edges": edges, "via": via, **SOURCE}
