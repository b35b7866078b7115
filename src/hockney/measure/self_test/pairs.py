"""Made-up machines of several ranks, as models, with or without a slow rank, link or switch in them.

Planted ones hang on leaf switches around a core switch. A slow link is a detour over two switches of its own, a slow
switch is such a detour among all its nodes, or one more switch on the way to the others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from hockney.measure.self_test.curves import Noise

Slow = Literal["", "rank", "link", "switch", "uplink"]
SLOW: tuple[Slow, ...] = ("", "rank", "link", "switch", "uplink")

_APART = 1.35  # two levels of times: explain tells them apart from a factor of 1.25
_WAY_NS, _NS_PER_BYTE = (1000, 20_000), (0.02, 0.5)
_NEAR, _FAR, _DETOUR, _UPLINK = 1, 3, 2, 4  # switches on a route


@dataclass(frozen=True)
class PairsMachine:
    """`slow`: what is planted; `ranks` are those of it, empty where nothing is slow."""

    size: int
    toml: str
    slow: Slow = ""
    ranks: frozenset[int] = frozenset()

    def is_right(self, named: Sequence[frozenset[int]]) -> bool:
        """Whether what explain names is exactly what is planted: of a switch all its ranks, in whichever parts."""
        if any(self.is_false(each) for each in named):
            return False
        if self.slow in ("rank", "link"):
            return self.ranks in named
        return frozenset[int]().union(*named) == self.ranks

    def is_false(self, named: frozenset[int]) -> bool:
        """Whether a rank, pair or group is called slow that is not. A pair with one end in what is slow is slow."""
        if self.slow == "link" or self.slow == "switch":
            return not named <= self.ranks
        if self.slow:
            return not (named <= self.ranks or (len(named) == 2 and named & self.ranks))
        return True


def planted(rng: Random, slow: Slow) -> PairsMachine:
    """A machine with something slow in it: it takes 1.5 to 3 times as long, a slow rank 1.3 times with the farthest.

    Levels of times differ by enough for explain to tell them apart, and a switch with a slow way to the others is one
    of four.
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
    near_ns = math.exp(rng.uniform(*map(math.log, _WAY_NS)))
    factor, over = rng.uniform(1.5, 3), rng.uniform(1.5, 5)
    while slow == "switch" and abs(math.log(factor / over)) < math.log(_APART):
        factor, over = rng.uniform(1.5, 3), rng.uniform(1.5, 5)
    far_ns = near_ns * over
    is_near = any(leaf.issuperset(ranks) for leaf in map(set, leaves))
    times_ns = {
        _NEAR: near_ns,
        _DETOUR: factor * (near_ns if is_near else far_ns),
        _UPLINK: factor * far_ns,
        _FAR: far_ns,
    }
    busy_ns = near_ns * rng.uniform(0.1, 0.4)
    parts = ['title = "made up"', _graph(leaves, ranks, slow), _noise(rng, near_ns).toml]
    if slow == "rank":
        slower = 1 + 2 * rng.uniform(0.3, 1.5) * (far_ns if count > 1 else near_ns) / busy_ns
        parts.append(f'[[slower]]\nnodes = "{ranks[0]}"\nfactor = {slower!r}\nsource = "made up"\n')
    ns_per_byte = math.exp(rng.uniform(*map(math.log, _NS_PER_BYTE)))
    for switches, time_ns in times_ns.items():
        condition = "" if switches == _FAR else f"switches = {switches}\n"  # the last class is for all
        parts.append(_class(f"over{switches}", condition, busy_ns, time_ns, ns_per_byte))
    return PairsMachine(nodes, "\n".join(parts), slow, frozenset(ranks))


def healthy(rng: Random) -> PairsMachine:
    """A machine without anything slow, of another topology: its links are shared, and farther ranks take longer."""
    near_ns = math.exp(rng.uniform(*map(math.log, _WAY_NS)))
    ns_per_byte = math.exp(rng.uniform(*map(math.log, _NS_PER_BYTE)))
    hop_ns = near_ns * rng.uniform(0.02, 1.0)
    topology, nodes = _topology(rng)
    parts = [
        'title = "made up"',
        f'[topology]\nsource = "made up"\n{topology}',
        f'[[link]]\nbytes_per_s = {1e9 / ns_per_byte!r}\nlatency_ns = {hop_ns!r}\nsource = "made up"\n',
        _noise(rng, near_ns).toml,
        _class("all", "", near_ns * rng.uniform(0.1, 0.4), near_ns, ns_per_byte),
    ]
    return PairsMachine(nodes, "\n".join(parts))


def _topology(rng: Random) -> tuple[str, int]:
    """Its keys, and how many nodes it has."""
    kind = rng.choice(("hierarchy", "torus", "mesh", "fat tree", "dragonfly"))
    a, b = rng.randint(2, 4), rng.randint(2, 3)
    keys, nodes = f"dimensions = [{a}, {b}]\n", a * b
    if kind == "hierarchy":
        levels = (("host", a), ("rack", b))
        keys = "".join(f'[[topology.level]]\nname = "{name}"\nholds = {holds}\n' for name, holds in levels)
    elif kind == "fat tree":
        keys = f"down = [{a}, {b}]\nup = [1, 1]\n"
    elif kind == "dragonfly":
        keys, nodes = "groups = 3\nrouters_per_group = 2\nnodes_per_router = 2\nglobal_links = 1\n", 12
    return f'kind = "{kind}"\n{keys}', nodes


def _noise(rng: Random, near_ns: float) -> Noise:
    """Up to 10 % of each cost, or of the way."""
    if rng.random() < 0.5:
        return Noise("lognormal", rng.uniform(0.01, 0.1))
    return Noise("exponential", rng.uniform(0.01, 0.1) * near_ns)


def _class(name: str, condition: str, busy_ns: float, time_ns: float, ns_per_byte: float) -> str:
    costs = f"send_cpu = {busy_ns / 2!r}, recv_cpu = {busy_ns / 2!r}, latency = {time_ns - busy_ns!r}"
    transfer = f"transfer = {{ per_byte_ns = {ns_per_byte!r} }}"
    return f'[class.{name}]\n{condition}segment = [{{ {costs}, {transfer}, source = "made up" }}]\n'


def _leaves(rng: Random, count: int, least: int) -> list[list[int]]:
    """Nodes by their switch, six in all at least; which node hangs where is random."""
    sizes = [rng.randint(least, 4 if count < 4 else 3) for _ in range(count)]
    while sum(sizes) < 6:
        sizes[rng.randrange(count)] += 1
    nodes = list(range(sum(sizes)))
    rng.shuffle(nodes)
    rest = iter(nodes)
    return [list(itertools.islice(rest, size)) for size in sizes]


def _graph(leaves: Sequence[Sequence[int]], ranks: Sequence[int], slow: Slow) -> str:
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
        via = [(a, *way, b) for a, b, way in _detours(ranks, (first, second))]
    keys = {"nodes": nodes, "switches": len(leaves) + 4, "edges": list(map(list, edges)), "via": list(map(list, via))}
    listed = "".join(f"{key} = {value}\n" for key, value in keys.items())
    return f'[topology]\nkind = "graph"\nsource = "made up"\n{listed}'


def _detours(ranks: Sequence[int], way: tuple[int, int]) -> Iterator[tuple[int, int, tuple[int, int]]]:
    for a, b in itertools.permutations(ranks, 2):
        yield a, b, way if ranks.index(a) < ranks.index(b) else (way[1], way[0])
