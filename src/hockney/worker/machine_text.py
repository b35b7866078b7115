"""Turns a model of a machine into the lines that the sim worker reads (csrc/sim/model.c)."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from hockney.units import counted
from hockney.worker import cache
from hockney.worker.machine_model import Model
from hockney.worker.machine_schema import (
    CostClass,
    Dragonfly,
    Graph,
    Hierarchy,
    Link,
    MachineModel,
    Mesh,
    SingleSwitch,
    Torus,
    Tree,
)


def ranks_of(machine: MachineModel) -> int:
    """The most ranks that a machine takes."""
    placement = machine.placement
    if placement is None:
        most = machine.topology.shape.nodes * machine.ranks_per_node
    elif placement.second_half is None:
        most = len(placement.nodes)
    else:
        most = 2 * min(len(placement.nodes), len(placement.second_half))
    return min(machine.ranks or most, most)


def why_unfit(model: Model, ranks: int) -> str | None:
    """Why this number of ranks does not fit the machine, or None."""
    machine, most = model.machine, ranks_of(model.machine)
    if ranks <= most:
        return None
    is_full = machine.topology.shape.nodes * machine.ranks_per_node == most
    each = f" of {machine.ranks_per_node} ranks" * (machine.ranks_per_node > 1)
    room = f"{counted(machine.topology.shape.nodes, 'node')}{each}" if is_full else f"room for {counted(most, 'rank')}"
    where = " where it places them" * bool(model.variant)
    remedy = f"use -n {most} or fewer, or a larger topology"
    return f"the model {model.name} has {room}{where}, so {ranks} ranks do not fit: {remedy}"


def compiled(model: Model, ranks: int) -> str:
    """The lines for a job of this number of ranks."""
    machine = model.machine
    lines = [
        "hockney-model 1",
        f"name {re.sub(r'[^A-Za-z0-9_.-]', '_', Path(model.name).stem)[:40]}",
        f"ranks {ranks_of(machine)}",
        f"ranks_per_node {machine.ranks_per_node}",
        *_cpu(machine),
        *_topology(machine),
        *(
            f"link {level_of(link, machine)} {_number(link.bytes_per_s or 0.0)} {_number(link.latency_ns)}"
            for link in machine.link
        ),
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


@contextlib.contextmanager
def compiled_file(model: Model, ranks: int) -> Iterator[Path]:
    """A file with these lines; a worker that has said hello has read it. Raises CacheUnusable if it can't be made."""
    with contextlib.ExitStack() as whole:
        with cache.scratch(cache.default_folder()) as room:
            path = room.with_name(f"model-{room.name}")
            whole.callback(path.unlink, missing_ok=True)
            path.write_text(compiled(model, ranks), encoding="utf-8")
        yield path  # outside: the errors of what uses it are not the folder's


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _cpu(machine: MachineModel) -> Iterator[str]:
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


def _topology(machine: MachineModel) -> Iterator[str]:
    topology = machine.topology
    match topology:
        case SingleSwitch():
            yield "topology switch"
        case Tree():
            down, up = topology.branches
            yield f"topology tree {len(down)} down:{','.join(map(str, down))} width:{','.join(map(str, up))}"
        case Torus():
            yield f"topology torus {_listed(topology.dimensions)}"
            yield f"turn {_number(topology.turn_ns)}"
        case Mesh():  # as a graph: on switch s hangs node s
            count = topology.shape.nodes
            yield f"topology graph {count} {count}"
            yield from (f"edge {node} {count + node}" for node in range(count))
            yield from (f"edge {count + a} {count + b}" for a, b, _ in grid_edges(topology.dimensions, is_ring=False))
        case Dragonfly():
            size = (topology.groups, topology.routers_per_group, topology.nodes_per_router, topology.global_links)
            yield f"topology dragonfly {_listed(size)}"
        case Graph():
            yield f"topology graph {topology.switches} {topology.nodes}"
            yield from (f"edge {a} {b}" for a, b in topology.edges)
            yield from (f"via {route[0]} {route[-1]} {_listed(route[1:-1])}" for route in topology.via)


def _listed(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))


def grid_edges(dimensions: Sequence[int], *, is_ring: bool) -> Iterator[tuple[int, int, int]]:
    """Edges from each place to the next one of each dimension, and from the last to the first of a ring."""
    stride = 1
    for level, length in enumerate(dimensions, 1):
        for place in range(math.prod(dimensions)):
            at = place // stride % length
            if at < length - 1:
                yield place, place + stride, level
            elif is_ring and length > 2:  # of two, one link leads both ways
                yield place, place - at * stride, level
        stride *= length


def level_of(link: Link, machine: MachineModel) -> int:
    """Which level of the topology a link is of, counted from 1; 0: all."""
    return link.level if isinstance(link.level, int) else 1 + _level_names(machine).index(link.level)


def _level_names(machine: MachineModel) -> list[str]:
    return [level.name for level in machine.topology.level] if isinstance(machine.topology, Hierarchy) else []


# ---- places and costs ----------------------------------------------------------------------------------------------


def places(machine: MachineModel, ranks: int) -> list[int]:
    """The node of each rank."""
    placement = machine.placement
    if placement is None:
        return [rank // machine.ranks_per_node for rank in range(ranks)]
    if placement.second_half is None:
        return list(placement.nodes[:ranks])
    half = ranks // 2
    return [*placement.nodes[: ranks - half], *placement.second_half[:half]]


def _classes(prefix: str, classes: Mapping[str, CostClass], machine: MachineModel) -> Iterator[str]:
    for name, pair_class in classes.items():
        yield f"class {prefix}{name} {_condition(pair_class, machine)}"
        for segment in pair_class.segment:
            yield f"segment {segment.up_to_bytes} {segment.protocol} {segment.packet_bytes}"
            for which, cost in segment.costs().items():
                numbers = (cost.fixed_ns, cost.per_byte_ns, cost.per_packet_ns)
                yield f"cost {which} {' '.join(map(_number, numbers))}"


def _stream(machine: MachineModel) -> Iterator[str]:
    stream = machine.stream
    if stream is not None:
        yield f"stream {stream.buffer_bytes}"
        for which in ("write", "read", "poll", "drain", "ack"):
            cost = getattr(stream, which)
            yield f"stream_cost {which} {_number(cost.fixed_ns)} {_number(cost.per_byte_ns)}"


def _condition(pair_class: CostClass, machine: MachineModel) -> str:
    if pair_class.same_node:
        return "same_node"
    if pair_class.within is not None:
        return f"switches 0 {2 * _level_names(machine).index(pair_class.within) + 1}"
    if pair_class.switches is not None:
        return f"switches {min(pair_class.switches)} {max(pair_class.switches)}"
    return "any"
