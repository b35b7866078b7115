"""Turns a model of a machine into the lines that the sim worker reads (csrc/sim/model.c)."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from hockney.errors import UsageError
from hockney.units import counted
from hockney.worker import cache
from hockney.worker.machine_model import Model
from hockney.worker.machine_schema import (
    Clos,
    Dragonfly,
    FatTree,
    Graph,
    Hierarchy,
    Link,
    Machine,
    Mesh,
    PairClass,
    Switch,
    Torus,
)

_VERSION = 1
_MESH_MAX = 4096  # switches of a mesh, which is handed over as a graph


def nodes_of(machine: Machine) -> int:
    """How many nodes a machine has."""
    topology = machine.topology
    match topology:
        case Switch() | Graph():
            return topology.nodes
        case FatTree():
            return math.prod(topology.down)
        case Clos():
            return topology.boards * topology.nodes_per_board
        case Hierarchy():
            return math.prod(level.holds for level in topology.level)
        case Torus() | Mesh():
            return math.prod(topology.dimensions)
        case Dragonfly():
            return topology.groups * topology.routers_per_group * topology.nodes_per_router


def ranks_of(machine: Machine) -> int:
    """The most ranks that a machine takes."""
    placement = machine.placement
    if placement is None:
        most = nodes_of(machine) * machine.ranks_per_node
    elif placement.second_half is None:
        most = len(placement.nodes)
    else:
        most = 2 * min(len(placement.nodes), len(placement.second_half))
    return min(machine.ranks or most, most)


def why_unfit(model: Model, ranks: int) -> str | None:
    """Why so many ranks do not fit the machine, or None."""
    most = ranks_of(model.machine)
    if ranks <= most:
        return None
    return f"the model {model.name} has room for {counted(most, 'rank')}{' where it places them' * bool(model.variant)}"


def compiled(model: Model, ranks: int) -> str:
    """The lines for a job of so many ranks. Raises UsageError for a route or a place that does not exist."""
    machine = model.machine
    _refuse_unknown_nodes(model)
    lines = [
        f"hockney-model {_VERSION}",
        f"name {re.sub(r'[^A-Za-z0-9_.-]', '_', Path(model.name).stem)[:40]}",
        f"ranks {ranks_of(machine)}",
        f"ranks_per_node {machine.ranks_per_node}",
        *_cpu(machine),
        *_topology(model),
        *_links(machine),
        *(f"place {rank} {node}" for rank, node in enumerate(places(machine, ranks)) if machine.placement is not None),
    ]
    for prefix, classes in (("", machine.classes), ("put:", machine.put), ("get:", machine.get)):
        lines += _classes(prefix, classes, machine)
    if machine.barrier is not None:
        lines.append(f"barrier {_number(machine.barrier.fixed_ns)} {_number(machine.barrier.per_round_ns)}")
    if machine.alltoall is not None:
        lines.append(f"alltoall {_number(machine.alltoall.own_per_byte_ns)}")
    for slower in machine.slower:
        lines.append(f"node_factor {_number(slower.factor)} {_listed(slower.nodes)}")
    return "\n".join([*lines, *_stream(machine)]) + "\n"


def write_compiled(model: Model, ranks: int) -> Path:
    """The file with these lines, which is kept beside the workers. Raises as compiled, CacheUnusable."""
    text = compiled(model, ranks)
    path = cache.default_folder() / f"model-{hashlib.sha256(text.encode()).hexdigest()[:20]}"
    if not cache.touch(path):
        with cache.scratch(path.parent) as room:
            (room / path.name).write_text(text, encoding="utf-8")
            (room / path.name).replace(path)
    return path


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _cpu(machine: Machine) -> Iterator[str]:
    cpu, noise = machine.cpu, machine.noise
    if cpu is not None:
        yield f"node_cpus {cpu.per_node}"
        yield f"slice_ns {_number(cpu.slice_ns)}"
        yield f"compute {_number(cpu.compute_fixed_ns)} {_number(cpu.compute_factor)}"
        if cpu.flops_per_s is not None:
            yield f"flops_per_s {_number(cpu.flops_per_s)}"
    if noise is not None:
        yield f"noise {noise.law} {_number(noise.sigma or noise.mean_ns or 0.0)}"


# ---- topology ------------------------------------------------------------------------------------------------------


def _topology(model: Model) -> Iterator[str]:
    topology = model.machine.topology
    match topology:
        case Switch():
            yield "topology switch"
        case FatTree():
            yield _tree(topology.down, topology.up)
        case Clos():
            yield _tree([topology.nodes_per_board, topology.boards], [1, topology.crossbars])
        case Hierarchy():
            yield _tree([level.holds for level in topology.level], [1] * len(topology.level))
        case Torus():
            yield f"topology torus {_listed(topology.dimensions)}"
            yield f"turn {_number(topology.turn_ns)}"
        case Mesh():
            yield from _mesh(model, topology)
        case Dragonfly():
            size = (topology.groups, topology.routers_per_group, topology.nodes_per_router, topology.global_links)
            yield f"topology dragonfly {_listed(size)}"
        case Graph():
            yield from _graph(model, topology)


def _listed(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))


def _tree(down: Sequence[int], up: Sequence[int]) -> str:
    return f"topology tree {len(down)} down:{','.join(map(str, down))} width:{','.join(map(str, up))}"


def _mesh(model: Model, mesh: Mesh) -> Iterator[str]:
    """As a graph: switch s, on which node s hangs, next to its neighbours in each dimension."""
    count = math.prod(mesh.dimensions)
    if count > _MESH_MAX:
        raise UsageError(f"{model.name}: dimensions: a mesh has at most {_MESH_MAX} places, not {count}")
    yield f"topology graph {count} {count}"
    yield from (f"edge {node} {count + node}" for node in range(count))
    stride = 1
    for length in mesh.dimensions:
        yield from (
            f"edge {count + place} {count + place + stride}"
            for place in range(count)
            if place // stride % length < length - 1
        )
        stride *= length


def _graph(model: Model, graph: Graph) -> Iterator[str]:
    """Nodes have the numbers 0 to nodes - 1, switches those that follow."""
    count = graph.nodes + graph.switches
    root = list(range(count))

    def top(place: int) -> int:
        while root[place] != place:
            root[place] = root[root[place]]
            place = root[place]
        return place

    for a, b in graph.edges:
        if max(a, b) >= count:
            raise UsageError(f"{model.name}: edges: there is no {max(a, b)} among {count} nodes and switches")
        root[top(a)] = top(b)
    lost = next((node for node in range(graph.nodes) if top(node) != top(0)), None)
    if lost is not None:
        raise UsageError(f"{model.name}: edges: there is no route from node 0 to node {lost}")
    known = {frozenset(edge) for edge in graph.edges}
    for route in graph.via:
        for step in itertools.pairwise(route):
            if frozenset(step) not in known:
                raise UsageError(f"{model.name}: via {_listed(route)}: there is no edge from {step[0]} to {step[1]}")
    yield f"topology graph {graph.switches} {graph.nodes}"
    yield from (f"edge {a} {b}" for a, b in graph.edges)
    yield from (f"via {route[0]} {route[-1]} {_listed(route[1:-1])}" for route in graph.via)


def _links(machine: Machine) -> Iterator[str]:
    for link in machine.link:
        yield f"link {level_of(link, machine)} {_number(link.bytes_per_s or 0.0)} {_number(link.latency_ns)}"


def level_of(link: Link, machine: Machine) -> int:
    """Which level of the topology a link is of, counted from 1; 0: all."""
    return link.level if isinstance(link.level, int) else 1 + _level_names(machine).index(link.level)


def _level_names(machine: Machine) -> list[str]:
    return [level.name for level in machine.topology.level] if isinstance(machine.topology, Hierarchy) else []


# ---- places and costs ----------------------------------------------------------------------------------------------


def _refuse_unknown_nodes(model: Model) -> None:
    placement, nodes = model.machine.placement, nodes_of(model.machine)
    for key in ("nodes", "second_half") if placement is not None else ():
        places = getattr(placement, key) or (0,)
        if max(places) >= nodes:
            raise UsageError(f"{model.name}: placement.{key}: there is no node {max(places)} among {nodes}")


def places(machine: Machine, ranks: int) -> list[int]:
    """The node of each of so many ranks."""
    placement = machine.placement
    if placement is None:
        return [rank // machine.ranks_per_node for rank in range(ranks)]
    if placement.second_half is None:
        return list(placement.nodes[:ranks])
    half = ranks // 2
    return [*placement.nodes[: ranks - half], *placement.second_half[:half]]


def _classes(prefix: str, classes: Mapping[str, PairClass], machine: Machine) -> Iterator[str]:
    for name, pair_class in classes.items():
        yield f"class {prefix}{name} {_condition(pair_class, machine)}"
        for segment in pair_class.segment:
            yield f"segment {segment.up_to_bytes} {segment.protocol} {segment.packet_bytes}"
            for which, cost in segment.costs().items():
                numbers = (cost.fixed_ns, cost.per_byte_ns, cost.per_packet_ns)
                yield f"cost {which} {' '.join(map(_number, numbers))}"


def _stream(machine: Machine) -> Iterator[str]:
    stream = machine.stream
    if stream is not None:
        yield f"stream {stream.buffer_bytes}"
        for which in ("write", "read", "poll", "drain", "ack"):
            cost = getattr(stream, which)
            yield f"stream_cost {which} {_number(cost.fixed_ns)} {_number(cost.per_byte_ns)}"


def _condition(pair_class: PairClass, machine: Machine) -> str:
    if pair_class.same_node:
        return "same_node"
    if pair_class.within is not None:
        return f"switches 0 {2 * _level_names(machine).index(pair_class.within) + 1}"
    if pair_class.switches is not None:
        return f"switches {min(pair_class.switches)} {max(pair_class.switches)}"
    return "any"
