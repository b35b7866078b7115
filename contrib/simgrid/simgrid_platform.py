"""Writes a model of a machine as a platform of SimGrid, whose SMPI runs MPI programs on it.

`simgrid_platform.py MODEL > platform.xml`: a model in a file (`hockney predict --write` makes one), or of the archive.

Ranks are hosts, each behind a separate link that holds the costs of a message, in the form of SMPI's factors. The links
of the topology follow; SimGrid chooses among the shortest routes.

SMPI knows an overhead of the sender and of the receiver, each a line over the size for a range of sizes. It also knows
a factor on the latency and one on the bandwidth of a route, each constant in a range. There are as many ranges as keep
times and gaps within a tolerance of the model's.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from hockney.errors import HockneyError, UsageError
from hockney.worker.machine_model import Model, grid_edges, level_of, load_model, nodes_of_ranks, ranks_of
from hockney.worker.machine_schema import Cost, CostClass, Graph, Link, MachineModel, Mesh, Torus, Tree

_SIZE_MAX = (1 << 31) - 1  # of an int, as SMPI has sizes in its settings
_UNLIMITED_BPS = 1e18
_ENVELOPE_BYTES = 16  # the header that SMPI adds to every message
_TOLERANCE = 0.01
_UNDER_WAY = 16
_LEAST_NS = 1e-3  # where nothing takes any time


class Platform(NamedTuple):
    """`xml`: the file. `left_out`: keys of the model that it has nothing for."""

    xml: str
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class _Network:
    """`home`: at which switch each node is. `edges`: between two switches, with the level of their link.

    `home_level`: that of the links of nodes, which are part of each route; None where nodes are switches.
    """

    home: Sequence[int]
    home_level: int | None
    edges: Sequence[tuple[int, int, int]]


class _CostLine(NamedTuple):
    """Messages of more than `above_bytes` (-1: all): ns, and ns for each byte.

    Of the network: a latency, and ns for each byte with the envelope's.
    """

    above_bytes: int
    fixed_ns: float
    per_byte_ns: float


@dataclass(frozen=True)
class _SmpiCosts:
    """`eager_bytes`: the longest eager message, -1 for none, None for all."""

    eager_bytes: int | None
    send: Sequence[_CostLine]
    receive: Sequence[_CostLine]
    network: Sequence[_CostLine]


@dataclass(frozen=True)
class _Times:
    """Of a message of one size, in ns. The network's part of `whole`, half a round trip, is a transfer and a latency.

    `transfer`: the least and the most time for which no other message may leave or enter the nodes. `paced_by`: the
    cost that the sender waits for instead, empty for none.
    """

    segment: int
    bytes: int
    send: float
    receive: float
    whole: float
    transfer: tuple[float, float]
    paced_by: str = ""


def platform_of(model: Model) -> Platform:
    """The platform of a model. Raises UsageError for one that SimGrid cannot hold."""
    machine = model.machine
    if ranks_of(machine) > 4096:  # each is a host, and SimGrid computes the routes between them
        raise _refusal(model, f"ranks: at most 4096, not {ranks_of(machine)}; ask for fewer")
    name, pairs = _pairs_of(model)
    for number, segment in enumerate(pairs.segment, 1):
        if segment.protocol == "synchronous":
            raise _refusal(model, f"class.{name}.segment[{number}]: SMPI has no synchronous messages")
        if any(cost.per_packet_ns for cost in segment.costs().values()):
            raise _refusal(model, f"class.{name}.segment[{number}]: SMPI has no costs per packet")
    network = _network(model)
    levels = {level_of(link, machine): link for link in machine.link}
    costs = _costs(pairs, network, levels)
    lines = (*_head(model, costs), *_zone(machine, network, levels, costs), "</platform>", "")
    return Platform("\n".join(lines), tuple(_left_out(machine, pairs)))


def _refusal(model: Model, why: str) -> UsageError:
    return UsageError(f"{model.name} cannot be a platform of SimGrid: {why}")


def _pairs_of(model: Model) -> tuple[str, CostClass]:
    """The class of all pairs of ranks: SMPI has one set of costs."""
    machine = model.machine
    names = []
    for name, pairs in machine.classes.items():
        if pairs.same_node and not _shares_nodes(machine):
            continue
        names.append(name)
        if pairs.is_for_all or (pairs.same_node and machine.topology.shape.nodes == 1):
            break
    if len(names) > 1:
        raise _refusal(model, f"class: SMPI has the same costs for all pairs, and this model {len(names)} classes")
    return names[0], machine.classes[names[0]]


def _shares_nodes(machine: MachineModel) -> bool:
    homes = nodes_of_ranks(machine, ranks_of(machine))
    return len(set(homes)) < len(homes)


# ---- costs ----------------------------------------------------------------------------------------------------------


def _link(levels: Mapping[int, Link], level: int) -> Link | None:
    return levels.get(level, levels.get(0))


def _costs(pairs: CostClass, network: _Network, levels: Mapping[int, Link]) -> _SmpiCosts:
    """The costs with the links that are part of every route."""
    latency_ns, rate = 0.0, None
    home = None if network.home_level is None else _link(levels, network.home_level)
    if home is not None and len(network.home) > 1:
        latency_ns, rate = 2 * home.latency_ns, home.bytes_per_s
    elif network.home_level is None and len(network.home) > 1:
        links = [_link(levels, level) for _, _, level in network.edges]
        rates = [link.bytes_per_s for link in links if link is not None and link.bytes_per_s is not None]
        rate = max(rates, default=None) if len(rates) == len(links) else None
    return _smpi_costs(pairs, latency_ns, 1e9 / rate if rate is not None else 0.0)


def _smpi_costs(pairs: CostClass, link_latency_ns: float, link_per_byte_ns: float) -> _SmpiCosts:
    """`link_…`: the latency of the links of every route, and the time of a byte on them."""
    eager_bytes = _eager_bytes(pairs)
    times = [_times(pairs, size, eager_bytes, link_latency_ns, link_per_byte_ns) for size in _sizes(pairs)]
    send, receive = (list(_lines(times, operator.attrgetter(of))) for of in ("send", "receive"))
    return _SmpiCosts(eager_bytes, send, receive, list(_ranges(times)))


def _eager_bytes(pairs: CostClass) -> int | None:
    ends = (0, *(segment.up_to_bytes for segment in pairs.segment))
    later = (end or -1 for end, segment in zip(ends, pairs.segment, strict=False) if segment.protocol != "eager")
    return next(later, None)


def _sizes(pairs: CostClass) -> list[int]:
    ends = [segment.up_to_bytes for segment in pairs.segment if segment.up_to_bytes]
    sizes = {0, _SIZE_MAX, *ends, *(end + 1 for end in ends)}
    size = 1
    while size < _SIZE_MAX:
        sizes.add(size)
        size = max(size + 1, int(size * 1.02))
    return sorted(sizes)


def _ns(cost: Cost | None, size: int) -> float:
    return 0.0 if cost is None else cost.fixed_ns + cost.per_byte_ns * size


def _times(pairs: CostClass, size: int, eager: int | None, link_latency_ns: float, link_per_byte_ns: float) -> _Times:
    """SMPI charges the CPU for eager messages only: the CPU time of a longer one becomes latency.

    Messages on a shared route arrive together in SimGrid, but one by one on a model. So if their receiver has much work
    for each, the sender spaces them.
    """
    number, segment = next(
        (number, each) for number, each in enumerate(pairs.segment) if size <= each.up_to_bytes or not each.up_to_bytes
    )
    cost = segment.costs()
    send, receive = _ns(cost.get("send_cpu"), size), _ns(cost.get("recv_cpu"), size)
    latency = _ns(cost.get("latency"), size) + link_latency_ns
    if eager is not None and size > eager:
        latency += send + receive + _ns(cost.get("handshake"), size)
        send = receive = 0.0
    busy = {name: _ns(cost.get(name), size) for name in ("transfer", "out", "in")} | {"link": link_per_byte_ns * size}
    transfer, (longest, gap) = max(busy["transfer"], busy["link"]), max(busy.items(), key=lambda item: item[1])
    whole = send + latency + transfer + receive
    room = _TOLERANCE * max(send, receive, min(gap, whole), whole / _UNDER_WAY, _LEAST_NS)
    if send < gap <= whole - receive and gap < _UNDER_WAY * receive:
        left, for_bytes = whole - receive - gap, gap - _ns(cost.get(longest), 0)
        envelope = for_bytes / max(1, size) * _ENVELOPE_BYTES
        limits = min(for_bytes, left) - room, min(gap + envelope, left) + room
        return _Times(number, size, gap, receive, whole, limits, longest)
    transfer = min(gap, whole - receive - send)
    return _Times(number, size, send, receive, whole, (transfer - room, transfer + room))


def _lines(times: Sequence[_Times], of: Callable[[_Times], float]) -> Iterator[_CostLine]:
    """A line for sizes of the same segment and of the same cost."""
    above = 0
    for _, group in itertools.groupby(times, lambda at: (at.segment, at.paced_by)):
        sizes = list(group)
        first, last = sizes[0], sizes[-1]
        per_byte_ns = (of(last) - of(first)) / max(1, last.bytes - first.bytes)
        yield _CostLine(above, max(0.0, of(first) - per_byte_ns * first.bytes), per_byte_ns)
        above = last.bytes


def _ranges(times: Sequence[_Times]) -> Iterator[_CostLine]:
    """Ranges from the shortest message on, each as long as one latency and one rate fit all of its sizes."""
    first = 0
    while first < len(times):
        low, high = 0.0, math.inf
        end, fitting = first, (0.0, 0.0)
        for at in times[first:]:
            sent = at.bytes + _ENVELOPE_BYTES
            low, high = max(low, at.transfer[0] / sent), min(high, at.transfer[1] / sent)
            wider = _fit(times[first : end + 1], low, high)
            if wider is None:
                break
            end, fitting = end + 1, wider
        yield _CostLine(times[first - 1].bytes if first else -1, *fitting)
        first = end


def _fit(times: Sequence[_Times], low: float, high: float) -> tuple[float, float] | None:
    """A latency and ns per byte, within low and high, for all of the sizes."""
    if low > high:
        return None
    per_byte = (low + high) / 2
    least, most = 0.0, math.inf
    for at in times:
        latency = at.whole - at.send - at.receive - per_byte * (at.bytes + _ENVELOPE_BYTES)
        room = _TOLERANCE * max(at.whole, _LEAST_NS)
        least, most = max(least, latency - room), min(most, latency + room)
    return ((least + most) / 2, per_byte) if least <= most else None


# ---- network --------------------------------------------------------------------------------------------------------


def _network(model: Model) -> _Network:
    topology, count = model.machine.topology, model.machine.topology.shape.nodes
    match topology:
        case Tree():
            return _tree(*topology.branches)
        case Torus():
            return _Network(range(count), None, list(grid_edges(topology.dimensions, is_ring=True)))
        case Mesh():
            edges = [(a, b, 0) for a, b, _ in grid_edges(topology.dimensions, is_ring=False)]
            return _Network(range(count), 0, edges)
        case Graph() if not topology.via:
            return _Network(range(count), None, [(a, b, 0) for a, b in topology.edges])
    what = "graph with given routes" if isinstance(topology, Graph) else topology.kind
    raise _refusal(model, f"topology: its shortest routes are not those of a {what}")


def _tree(down: Sequence[int], up: Sequence[int]) -> _Network:
    """Switches level by level; the k-th parent of a switch is the k-th of those over all of its part of the tree."""
    nodes = math.prod(down)
    copies: list[int] = [1, *itertools.accumulate(up, operator.mul)]
    below: list[int] = [1, *itertools.accumulate(down, operator.mul)]
    first = [0, 0]  # the number of the first switch of each level
    for level in range(1, len(down)):
        first.append(first[level] + nodes // below[level] * copies[level])

    def switch(level: int, part: int, place: int) -> int:
        return first[level] + part * copies[level] + place

    edges = [
        (switch(level, part, place), switch(level + 1, part // down[level], place * up[level] + k), level + 1)
        for level in range(1, len(down))
        for part in range(nodes // below[level])
        for place in range(copies[level])
        for k in range(up[level])
    ]
    return _Network([switch(1, node // down[0], 0) for node in range(nodes)], 1, edges)


# ---- the file -------------------------------------------------------------------------------------------------------


def _latency_ns(costs: _SmpiCosts) -> float:
    """Of the ports of two ranks: that of short messages. Factors, which links between switches have too, stay small."""
    return max(costs.network[0].fixed_ns, max(each.fixed_ns for each in costs.network) / 4)


def _overheads(overheads: Sequence[_CostLine]) -> str:
    return ";".join(f"{each.above_bytes}:{each.fixed_ns / 1e9:g}:{each.per_byte_ns / 1e9:g}" for each in overheads)


def _factors(costs: _SmpiCosts) -> tuple[str, str]:
    """The factors of the latency, and of the bandwidth."""
    latency_ns, per_byte_ns = _latency_ns(costs), costs.network[-1].per_byte_ns
    above = [0, *(each.above_bytes + _ENVELOPE_BYTES for each in costs.network[1:])]
    rows = list(zip(above, costs.network, strict=True))
    return (
        ";".join(f"{size}:{each.fixed_ns / latency_ns if latency_ns else 1:.5g}" for size, each in rows),
        ";".join(f"{size}:{per_byte_ns / each.per_byte_ns:.5g}" for size, each in rows),
    )


def _head(model: Model, costs: _SmpiCosts) -> Iterator[str]:
    eager = _SIZE_MAX if costs.eager_bytes is None else min(costs.eager_bytes + 1, _SIZE_MAX)
    latency_factors, bandwidth_factors = _factors(costs)
    settings = {
        "network/model": "SMPI",
        "network/TCP-gamma": f"{_UNLIMITED_BPS:g}",
        "network/crosstraffic": "no",
        "network/weight-S": "0",
        "smpi/async-small-thresh": str(eager),
        "smpi/send-is-detached-thresh": str(eager),
        "smpi/os": _overheads(costs.send),
        "smpi/ois": _overheads(costs.send),
        "smpi/or": _overheads(costs.receive),
        "smpi/lat-factor": latency_factors,
        "smpi/bw-factor": bandwidth_factors,
    }
    yield '<?xml version="1.0"?>'
    yield '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
    said = f"{model.machine.title}: written by hockney export from {model.name}"
    yield f"<!-- {re.sub('--+', '-', ''.join(filter(str.isprintable, said)))} -->"
    yield '<platform version="4.1">'
    yield "  <config>"
    yield from (f"    <prop id={quoteattr(key)} value={quoteattr(value)}/>" for key, value in settings.items())
    yield "  </config>"


def _left_out(machine: MachineModel, pairs: CostClass) -> Iterator[str]:
    cpu = machine.cpu
    if cpu is not None and (cpu.slice_ns or cpu.compute_fixed_ns or cpu.compute_factor != 1):
        yield "cpu"
    yield from (
        key
        for key in ("noise", "barrier", "alltoall", "stream", "switch", "tcp", "slower", "put", "get")
        if getattr(machine, key)
    )
    if _shares_nodes(machine):
        yield "ranks_per_node"
    if isinstance(machine.topology, Torus) and machine.topology.turn_ns:
        yield "topology.turn_ns"
    given = {name for segment in pairs.segment for name in segment.costs()}
    left_out = ("both", "node", "duplex", "rest", "exchange", "late", "ack")
    yield from (f"class.{name}" for name in left_out if name in given)


def _zone(machine: MachineModel, network: _Network, levels: Mapping[int, Link], costs: _SmpiCosts) -> Iterator[str]:
    """Names sort as numbers do, since SMPI places ranks in the order of names."""
    homes = [network.home[node] for node in nodes_of_ranks(machine, ranks_of(machine))]
    used = sorted({*homes, *(place for edge in network.edges for place in edge[:2])})
    digits = len(str(max(len(homes) - 1, used[-1])))
    hosts = [f"rank-{rank:0{digits}}" for rank in range(len(homes))]
    switches = {place: f"switch-{place:0{digits}}" for place in used}
    rate_bps, latency_ns = 1e9 / costs.network[-1].per_byte_ns, _latency_ns(costs)
    links: list[str] = []
    routes: list[str] = []
    for host, home in zip(hosts, homes, strict=True):
        links.append(_link_tag(f"port-{host}", rate_bps, latency_ns / 2))
        routes += _both_ways(host, switches[home], f"port-{host}")
    for number, (a, b, level) in enumerate(network.edges):
        link = _link(levels, level)
        rate = link.bytes_per_s if link is not None else None
        links.append(_link_tag(f"link-{number}", rate or _UNLIMITED_BPS, link.latency_ns if link is not None else 0.0))
        routes += _both_ways(switches[a], switches[b], f"link-{number}")
    yield '  <zone id="machine" routing="Dijkstra">'
    flops = (machine.cpu.flops_per_s if machine.cpu is not None else None) or 1e9
    yield from (f'    <host id="{host}" speed="{flops:g}f"/>' for host in hosts)
    yield from (f'    <router id="{switch}"/>' for switch in switches.values())
    yield from links
    yield from routes
    yield "  </zone>"


def _link_tag(name: str, rate_bps: float, latency_ns: float) -> str:
    costs = f'bandwidth="{rate_bps:.9g}Bps" latency="{latency_ns:.9g}ns"'
    return f'    <link id="{name}" {costs} sharing_policy="SPLITDUPLEX"/>'


def _both_ways(a: str, b: str, link: str) -> Iterator[str]:
    for source, target, direction in ((a, b, "UP"), (b, a, "DOWN")):
        way = f'<link_ctn id="{link}" direction="{direction}"/>'
        yield f'    <route src="{source}" dst="{target}" symmetrical="NO">{way}</route>'


def main() -> int:
    """Write the platform to standard output, and what it leaves out to standard error."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: simgrid_platform.py MODEL > platform.xml\n")
        return 2
    try:
        platform = platform_of(load_model(sys.argv[1]))
    except HockneyError as error:
        sys.stderr.write(f"simgrid_platform.py: {error}\n")
        return 2
    sys.stdout.write(platform.xml)
    if platform.left_out:
        sys.stderr.write(f"SimGrid has nothing for {', '.join(platform.left_out)}: left out\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
