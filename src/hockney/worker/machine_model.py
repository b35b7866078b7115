"""A model of a machine: its TOML file, on top of its base's, with the overrides of a variant.

machine_schema.py has the keys. The sim worker reads a model as lines (csrc/sim/model.c).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hockney.errors import HockneyError, UsageError, unknown
from hockney.suites.toml_models import read_toml, toml, validated
from hockney.units import counted
from hockney.worker import cache
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

MODELS = Path(__file__).parents[1] / "archive" / "models"


@dataclass(frozen=True)
class Model:
    """A model by its name, with the overrides of a variant; `content` is its whole file."""

    name: str
    variant: str
    content: Mapping[str, Any]
    machine: MachineModel

    @classmethod
    def from_content(cls, name: str, content: Mapping[str, Any], variant: str = "") -> Model:
        """The model with this content, from a file or not. Raises UsageError with all errors."""
        machine = validated(content, f"{name}:{variant}".rstrip(":"), MachineModel)
        if machine.machine is not None and machine.machine not in (known := _machines_of_archive()):
            raise UsageError(f"{name}: {unknown('machine', machine.machine, known)}")
        return cls(name, variant, content, machine)

    @property
    def record(self) -> dict[str, Any]:
        """The stored form of a model: name, hash, parameters with their sources, and the figures of the fit."""
        machine, everything = self.machine, json.dumps(self.content, sort_keys=True, default=str)
        shape = machine.topology
        return {
            "name": self.name,
            "variant": self.variant,
            "key": hashlib.sha256(everything.encode()).hexdigest()[:16],
            "title": machine.title,
            "machine": machine.machine,
            "exact": machine.noise is None,
            "torus": {"dimensions": list(shape.dimensions), "nodes": nodes_of_ranks(machine, ranks_of(machine))}
            if isinstance(shape, Torus)
            else None,
            "parameters": list(_parameters(self.content)),
            "used": [row.model_dump(by_alias=True) for row in machine.used],
            "structure": [row.model_dump() for row in (*machine.structure, *machine.run)],
            "not_modelled": [row.model_dump() for row in machine.not_modelled],
        }

    def variants_for(self, pattern: str, ranks: int, options: Mapping[str, str]) -> Sequence[str]:
        """Which variants measure a point of a suite; "" is the plain model."""
        fitting = (run.variants for run in self.machine.run if run.fits(pattern, ranks, options))
        return next(fitting, ("",))


def builtin_models() -> list[str]:
    """Names of the models that come with hockney."""
    return sorted(path.stem for path in MODELS.glob("*.toml"))


def _machines_of_archive() -> list[str]:
    """Names of the machines that the classic reports measured, also of those without a model."""
    return [row["name"] for row in read_toml(MODELS.parent / "reports.toml", "list of reports")["machine"]]


def load_model(name: str, variant: str = "") -> Model:
    """The model of that name, or in the file whose name ends in .toml. Raises UsageError with all that is wrong."""
    plain = Model.from_content(name, _content(name, bases_left=8))
    variants = plain.machine.variant
    if not variant:
        return plain
    if variant not in variants:
        raise unknown(f"variant of {name}", variant, variants)
    return Model.from_content(name, _merged(plain.content, variants[variant]), variant)


def write_model(model: Model, path: Path, head: str) -> None:
    """Writes the file of a model; `head` is its comment. Raises HockneyError where it cannot be written."""
    try:
        path.write_text(toml(model.content, head), encoding="utf-8")
    except OSError as error:
        raise HockneyError(f"cannot write {path}: {error.strerror}") from error


def _content(name: str, bases_left: int) -> dict[str, Any]:
    """The content of a file, on top of its base's."""
    if name not in builtin_models() and not name.endswith(".toml"):
        if name in _machines_of_archive():
            raise UsageError(
                f"the archive has published figures of {name}, but no model of it; the machines with a model",
                argv=("hockney", "list", "machines"),
            )
        raise unknown("model", name, builtin_models(), listed_by=("hockney", "list", "machines"))
    path = Path(name) if name.endswith(".toml") else MODELS / f"{name}.toml"
    content = read_toml(path, "model")
    base = content.pop("base", None)
    if base is None:
        return content
    if not isinstance(base, str) or not bases_left:
        raise UsageError(f"{path}: base must name another model, which this one changes")
    is_near = base.endswith(".toml") and not Path(base).is_absolute()
    return _merged(_content(str(path.parent / base) if is_near else base, bases_left - 1), content)


def _parameters(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Key, value and source of everything that has a source."""
    for name, value in table.items():
        if name in ("source", "run", "used", "structure", "not_modelled", "variant"):
            continue
        key = f"{prefix}.{name}".lstrip(".")
        if isinstance(value, dict) and "source" not in table:
            yield from _parameters(value, key)
        elif isinstance(value, list) and value and isinstance(value[0], dict) and "source" not in table:
            for number, item in enumerate(value, 1):
                yield from _parameters(item, f"{key}[{number}]")
        elif "source" in table:
            yield key, _text(value), table["source"]


def _text(value: Any) -> str:
    """A cost as `100 + 0.5/B + 32/packet`, else unchanged from the file."""
    units = {"fixed_ns": "", "per_byte_ns": "/B", "per_packet_ns": "/packet"}
    if isinstance(value, dict) and units.keys() >= value.keys():
        return " + ".join(f"{value[name]}{unit}" for name, unit in units.items() if name in value)
    return value if isinstance(value, str) else json.dumps(value)


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of both; a value or list of the changes replaces the base's."""
    merged = dict(base)
    for name, value in changes.items():
        known = merged.get(name)
        merged[name] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


# ---- the lines of a model -------------------------------------------------------------------------------------------


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
    return "".join(f"{' '.join(map(_word, line))}\n" for line in _lines(model, ranks))


@contextlib.contextmanager
def compiled_file(model: Model, ranks: int) -> Iterator[Path]:
    """A file with these lines; a worker that has said hello has read it. Raises CacheUnusable if it can't be made."""
    with contextlib.ExitStack() as whole:
        with cache.scratch(cache.default_folder()) as room:
            path = room.with_name(f"model-{room.name}")
            whole.callback(path.unlink, missing_ok=True)
            path.write_text(compiled(model, ranks), encoding="utf-8")
        yield path  # outside: the errors of what uses it are not the folder's


_Line = Sequence[str | int | float]


def _word(word: str | float) -> str:
    if isinstance(word, int | str):
        return str(word)
    return str(int(word)) if word.is_integer() and abs(word) < 1e15 else repr(word)


def _lines(model: Model, ranks: int) -> Iterator[_Line]:
    machine = model.machine
    yield "hockney-model", 1
    yield "name", re.sub(r"[^A-Za-z0-9_.-]", "_", Path(model.name).stem)[:40]
    yield "ranks", ranks_of(machine)
    yield "ranks_per_node", machine.ranks_per_node
    if (cpu := machine.cpu) is not None:
        yield "node_cpus", cpu.per_node
        yield "slice_ns", cpu.slice_ns
        yield "compute", cpu.compute_fixed_ns, cpu.compute_factor
        if cpu.flops_per_s is not None:
            yield "flops_per_s", cpu.flops_per_s
    if (noise := machine.noise) is not None:
        yield "noise", noise.law, noise.sigma or noise.mean_ns or 0.0
    yield from _topology(machine)
    for link in machine.link:
        yield "link", level_of(link, machine), link.bytes_per_s or 0.0, link.latency_ns
    if machine.placement is not None:
        yield from (("place", rank, node) for rank, node in enumerate(nodes_of_ranks(machine, ranks)))
    for prefix, classes in (("", machine.classes), ("put:", machine.put), ("get:", machine.get)):
        for name, pair_class in classes.items():
            yield "class", f"{prefix}{name}", *_condition(pair_class, machine)
            for segment in pair_class.segment:
                yield "segment", segment.up_to_bytes, segment.protocol, segment.packet_bytes
                for which, cost in segment.costs().items():
                    yield "cost", which, cost.fixed_ns, cost.per_byte_ns, cost.per_packet_ns
    if machine.barrier is not None:
        yield "barrier", machine.barrier.fixed_ns, machine.barrier.per_round_ns
    if machine.alltoall is not None:
        yield "alltoall", machine.alltoall.own_per_byte_ns
    if (switch := machine.switch) is not None and (tcp := machine.tcp) is not None:
        yield "switch", switch.buffer_bytes, "shared" if switch.shared else "port"
        in_bytes = tcp.window_bytes or 0, tcp.mss_bytes, tcp.header_bytes
        yield "tcp", tcp.min_rto_ms * 1e6, *in_bytes, tcp.initial_window, tcp.probe_ms * 1e6, tcp.jitter
    for slower in machine.slower:
        yield "node_factor", slower.factor, *slower.nodes
    if (stream := machine.stream) is not None:
        yield "stream", stream.buffer_bytes
        for which in ("write", "read", "poll", "drain", "ack"):
            cost = getattr(stream, which)
            yield "stream_cost", which, cost.fixed_ns, cost.per_byte_ns


def _topology(machine: MachineModel) -> Iterator[_Line]:
    topology = machine.topology
    match topology:
        case SingleSwitch():
            yield "topology", "switch"
        case Tree():
            down, up = (",".join(map(str, numbers)) for numbers in topology.branches)
            yield "topology", "tree", topology.shape.levels or 0, f"down:{down}", f"width:{up}"
        case Torus():
            yield "topology", "torus", *topology.dimensions
            yield "turn", topology.turn_ns
        case Mesh():  # as a graph: on switch s hangs node s
            count = topology.shape.nodes
            yield "topology", "graph", count, count
            yield from (("edge", node, count + node) for node in range(count))
            edges = grid_edges(topology.dimensions, is_ring=False)
            yield from (("edge", count + a, count + b) for a, b, _ in edges)
        case Dragonfly():
            routers = topology.routers_per_group, topology.nodes_per_router, topology.global_links
            yield "topology", "dragonfly", topology.groups, *routers
        case Graph():
            yield "topology", "graph", topology.switches, topology.nodes
            yield from (("edge", a, b) for a, b in topology.edges)
            for first, *way, last in topology.via:
                yield "via", first, last, *way


def _condition(pair_class: CostClass, machine: MachineModel) -> _Line:
    if pair_class.same_node:
        return ("same_node",)
    if pair_class.within is not None:
        return "switches", 0, 2 * _level_names(machine).index(pair_class.within) + 1
    if pair_class.switches is not None:
        return "switches", min(pair_class.switches), max(pair_class.switches)
    return ("any",)


def grid_edges(dimensions: Sequence[int], *, is_ring: bool) -> Iterator[tuple[int, int, int]]:
    """Edges from each node to the next one of each dimension, and from the last to the first of a ring."""
    stride = 1
    for level, length in enumerate(dimensions, 1):
        for node in range(math.prod(dimensions)):
            at = node // stride % length
            if at < length - 1:
                yield node, node + stride, level
            elif is_ring and length > 2:  # of two, one link leads both ways
                yield node, node - at * stride, level
        stride *= length


def level_of(link: Link, machine: MachineModel) -> int:
    """Which level of the topology a link is of, counted from 1; 0: all."""
    return link.level if isinstance(link.level, int) else 1 + _level_names(machine).index(link.level)


def _level_names(machine: MachineModel) -> list[str]:
    return [level.name for level in machine.topology.level] if isinstance(machine.topology, Hierarchy) else []


def nodes_of_ranks(machine: MachineModel, ranks: int) -> list[int]:
    """The node of each rank."""
    placement = machine.placement
    if placement is None:
        return [rank // machine.ranks_per_node for rank in range(ranks)]
    if placement.second_half is None:
        return list(placement.nodes[:ranks])
    half = ranks // 2
    return [*placement.nodes[: ranks - half], *placement.second_half[:half]]
