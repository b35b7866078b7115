"""The keys of a model of a machine (docs/machines.md). Times are ns; each group of numbers names its `source`."""

from __future__ import annotations

import abc
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from hockney.errors import unknown
from hockney.suites.toml_models import listed, some, texts
from hockney.units import RANKS_MAX, counted


def _nodes(value: Any) -> Any:
    """`0-7,16,0-63/8` -> the numbers; a step follows the slash."""
    if not isinstance(value, str):
        return value
    nodes: list[int] = []
    for word in value.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?:/([1-9]\d{0,8}))?)?", word.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if match is None or last < first or last - first > RANKS_MAX:
            raise ValueError(f"'{word.strip()}' is no node: write numbers and ranges as 0-7,16 or 0-63/8")
        nodes += range(first, last + 1, int(match[3] or 1))
    return tuple(nodes)


def _is_name(names: dict[str, Any]) -> dict[str, Any]:
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
            raise ValueError(f"'{name}' is no name: write letters, digits, '-' and '_'")
    return names


Ns = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False, strict=True)]  # strict: true is no number
Factor = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False, strict=True)]
Count = Annotated[int, Field(ge=0, lt=1 << 53, strict=True)]
Positive = Annotated[int, Field(ge=1, lt=1 << 53, strict=True)]
Rate = Annotated[float, Field(ge=1, le=1e18, allow_inf_nan=False, strict=True)]
Text = Annotated[str, Field(min_length=1)]
Numbers = Annotated[tuple[Positive, ...], AfterValidator(some)]
Texts = Annotated[tuple[str, ...], BeforeValidator(listed)]
Where = dict[str, int | float | str | list[int | float | str]]
Nodes = Annotated[tuple[Count, ...], BeforeValidator(_nodes), AfterValidator(some)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class _Sourced(_Table):
    source: Text


class Cost(_Table):
    """A time of a message: fixed + bytes * per_byte + packets * per_packet. A number alone is the fixed part."""

    fixed_ns: Ns = 0.0
    per_byte_ns: Ns = 0.0
    per_packet_ns: Ns = 0.0


def _as_cost(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError(f"'{value}' is no cost: write a number of ns, or {{ fixed_ns = 100, per_byte_ns = 0.5 }}")
    return {"fixed_ns": value} if isinstance(value, int | float) else value


Costs = Annotated[Cost, BeforeValidator(_as_cost)]


class CostSegment(_Sourced):
    """The costs of a message of at most `up_to_bytes` (0: of any size)."""

    up_to_bytes: Count = 0
    protocol: Literal["eager", "rendezvous", "synchronous"] = "eager"
    packet_bytes: Count = 0
    send_cpu: Costs | None = None
    recv_cpu: Costs | None = None
    latency: Costs | None = None
    transfer: Costs | None = None
    out: Costs | None = None
    both: Costs | None = None
    into: Costs | None = Field(default=None, alias="in")
    node: Costs | None = None
    duplex: Costs | None = None
    rest: Costs | None = None
    exchange: Costs | None = None
    late: Costs | None = None
    handshake: Costs | None = None
    ack: Costs | None = None

    def costs(self) -> dict[str, Cost]:
        """The costs that are given, by their names."""
        given = ((field.alias or name, getattr(self, name)) for name, field in CostSegment.model_fields.items())
        return {name: cost for name, cost in given if isinstance(cost, Cost)}

    @model_validator(mode="after")
    def _packets_have_a_size(self) -> CostSegment:
        if not self.packet_bytes and any(cost.per_packet_ns for cost in self.costs().values()):
            raise ValueError("per_packet_ns needs packet_bytes")
        return self


class CostClass(_Table):
    """The pairs of ranks with these costs: the first class that holds counts. Without a condition: all pairs."""

    same_node: Annotated[bool, Field(strict=True)] = False
    switches: Annotated[tuple[Count, ...], BeforeValidator(listed), Field(min_length=1, max_length=2)] | None = None
    within: str | None = None
    segment: Annotated[tuple[CostSegment, ...], AfterValidator(some)]

    @property
    def is_for_all(self) -> bool:
        return not self.same_node and self.switches is None and self.within is None

    @model_validator(mode="after")
    def _segments_end(self) -> CostClass:
        if sum((self.same_node, self.switches is not None, self.within is not None)) > 1:
            raise ValueError("same_node, switches and within exclude each other")
        ends = [segment.up_to_bytes for segment in self.segment]
        if ends[-1] != 0 or 0 in ends[:-1] or sorted(ends[:-1]) != ends[:-1]:
            raise ValueError("its segments need growing up_to_bytes, and the last one none")
        return self


def _classes_end(classes: dict[str, CostClass]) -> dict[str, CostClass]:
    if classes and not list(classes.values())[-1].is_for_all:
        raise ValueError("the last class needs to hold for all pairs: leave same_node, switches and within out")
    return _is_name(classes)


Classes = Annotated[dict[str, CostClass], AfterValidator(_classes_end)]


class Cpu(_Sourced):
    """The CPUs of a node. To compute for d ns takes compute_fixed_ns + compute_factor * d."""

    per_node: Positive = 1
    slice_ns: Ns = 0.0
    compute_fixed_ns: Ns = 0.0
    compute_factor: Factor = 1.0
    flops_per_s: Rate | None = None


class NoiseModel(_Sourced):
    """Each CPU cost and latency times a lognormal factor, or plus an exponential time."""

    law: Literal["lognormal", "exponential"]
    sigma: Annotated[Factor, Field(le=5)] | None = None
    mean_ns: Annotated[float, Field(gt=0, le=1e12, strict=True)] | None = None

    @model_validator(mode="after")
    def _has_its_number(self) -> NoiseModel:
        wanted = "sigma" if self.law == "lognormal" else "mean_ns"
        if {name for name in ("sigma", "mean_ns") if getattr(self, name) is not None} != {wanted}:
            raise ValueError(f"{self.law} needs {wanted}, and nothing else")
        return self


class Link(_Sourced):
    """The links of a level or dimension, counted from 1, or of a hierarchy's level by name; 0: all of them."""

    level: Count | str = 0
    bytes_per_s: Rate | None = None
    latency_ns: Ns = 0.0


class Shape(NamedTuple):
    """The nodes of a topology, the most switches on a route, and the levels of its links; None: they are edges."""

    nodes: int
    switches: int
    levels: int | None = None


class Tree(_Sourced):
    """A tree in other terms: level by level from below, the children of a switch and the parents of each."""

    @property
    @abc.abstractmethod
    def branches(self) -> tuple[Sequence[int], Sequence[int]]:
        """How many children a switch of each level has, and how many parents each child has."""

    @property
    def shape(self) -> Shape:
        down = self.branches[0]
        return Shape(math.prod(down), 2 * len(down) - 1, len(down))


class SingleSwitch(Tree):
    """One switch that all nodes hang on."""

    kind: Literal["switch"] = "switch"
    nodes: Positive

    @property
    def branches(self) -> tuple[Sequence[int], Sequence[int]]:
        return [self.nodes], [1]


class FatTree(Tree):
    """Level by level from below: how many children a switch has, and how many parents each child has."""

    kind: Literal["fat tree"] = "fat tree"
    down: Numbers
    up: Numbers

    @property
    def branches(self) -> tuple[Sequence[int], Sequence[int]]:
        return self.down, self.up

    @model_validator(mode="after")
    def _levels_agree(self) -> FatTree:
        if len(self.down) != len(self.up):
            raise ValueError("down and up need a number for each level")
        return self


class Clos(Tree):
    """Crossbars in two stages: `boards` with `nodes_per_board` nodes each, which `crossbars` connect."""

    kind: Literal["clos"] = "clos"
    boards: Positive
    nodes_per_board: Positive
    crossbars: Positive

    @property
    def branches(self) -> tuple[Sequence[int], Sequence[int]]:
        return [self.nodes_per_board, self.boards], [1, self.crossbars]


class Level(_Table):
    """A level of a hierarchy: the number of parts of the level below."""

    name: Text
    holds: Positive


class Hierarchy(Tree):
    """Levels from below, as sockets of cores, hosts of sockets, racks of hosts; one link leaves each."""

    kind: Literal["hierarchy"] = "hierarchy"
    level: Annotated[tuple[Level, ...], AfterValidator(some)]

    @property
    def branches(self) -> tuple[Sequence[int], Sequence[int]]:
        return [level.holds for level in self.level], [1] * len(self.level)


class Torus(_Sourced):
    """A ring in each dimension; a message goes along the first, then the second … `turn_ns`: each change between."""

    kind: Literal["torus"] = "torus"
    dimensions: Numbers
    turn_ns: Ns = 0.0

    @property
    def shape(self) -> Shape:
        longest = sum(length // 2 for length in self.dimensions)
        return Shape(math.prod(self.dimensions), 1 + longest, len(self.dimensions))


class Mesh(_Sourced):
    """A torus whose ends are open. The worker gets it as a graph."""

    kind: Literal["mesh"] = "mesh"
    dimensions: Numbers

    @property
    def shape(self) -> Shape:
        return Shape(math.prod(self.dimensions), 1 + sum(length - 1 for length in self.dimensions))

    @model_validator(mode="after")
    def _fits(self) -> Mesh:
        if self.shape.nodes > 4096:
            raise ValueError(f"dimensions: a mesh has at most 4096 nodes, not {self.shape.nodes}")
        return self


class Dragonfly(_Sourced):
    """Groups of routers that are all connected; `global_links` leave each router."""

    kind: Literal["dragonfly"] = "dragonfly"
    groups: Positive
    routers_per_group: Positive
    nodes_per_router: Positive
    global_links: Positive

    @property
    def shape(self) -> Shape:
        return Shape(self.groups * self.routers_per_group * self.nodes_per_router, 4, levels=3)


class Graph(_Sourced):
    """Nodes 0 … nodes-1, then switches; edges between two of them, and routes that are not the shortest."""

    kind: Literal["graph"] = "graph"
    nodes: Positive
    switches: Count
    edges: tuple[tuple[Count, Count], ...]
    via: tuple[Annotated[tuple[Count, ...], Field(min_length=3)], ...] = ()

    @property
    def shape(self) -> Shape:
        return Shape(self.nodes, self.switches)

    @model_validator(mode="after")
    def _has_its_edges(self) -> Graph:
        count = self.nodes + self.switches
        last = max(itertools.chain((0,), *self.edges))
        if last >= count:
            raise ValueError(f"edges: there is no {last} among {count} nodes and switches")
        if (loop := next((a for a, b in self.edges if a == b), None)) is not None:
            raise ValueError(f"edges: one leads from {loop} to itself")
        reached = {0}
        while more := [edge for edge in self.edges if len(reached.intersection(edge)) == 1]:
            reached.update(*more)
        lost = next((node for node in range(self.nodes) if node not in reached), None)
        if lost is not None:
            raise ValueError(f"edges: there is no route from node 0 to node {lost}")
        known = {frozenset(edge) for edge in self.edges}
        for route in self.via:
            for a, b in itertools.pairwise(route):
                if frozenset((a, b)) not in known:
                    raise ValueError(f"via {' '.join(map(str, route))}: there is no edge from {a} to {b}")
        return self


Topology = Annotated[
    SingleSwitch | FatTree | Clos | Hierarchy | Torus | Mesh | Dragonfly | Graph, Field(discriminator="kind")
]


class Barrier(_Sourced):
    """The machine's own barrier: fixed + rounds * per_round, with log2(ranks) rounds."""

    fixed_ns: Ns = 0.0
    per_round_ns: Ns = 0.0


class Alltoall(_Sourced):
    """The library's all-to-all: all messages concurrently, and then a copy of the rank's block."""

    own_per_byte_ns: Ns


def _passes_time(cost: Cost) -> Cost:
    if cost.fixed_ns < 1:
        raise ValueError("a call that moves nothing takes 1 ns or more: else ranks that repeat it would never end")
    return cost


class StreamCosts(_Sourced):
    """Costs of a byte stream between two ranks."""

    buffer_bytes: Positive
    write: Costs
    read: Costs
    poll: Annotated[Costs, AfterValidator(_passes_time)]
    drain: Costs
    ack: Costs


class SwitchBuffers(_Sourced):
    """What an output port of a switch holds, or all ports of the switch together."""

    buffer_bytes: Positive
    shared: Annotated[bool, Field(strict=True)] = False


class Tcp(_Sourced):
    """TCP over links with such ports; csrc/sim/tcp.h says how. `window_bytes` absent: no limit but TCP's own."""

    min_rto_ms: Annotated[float, Field(ge=1e-3, le=1e6, allow_inf_nan=False, strict=True)] = 200.0
    probe_ms: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False, strict=True)] = 8.0  # two ticks of 250 Hz
    jitter: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)] = 1.0
    window_bytes: Positive | None = None
    mss_bytes: Annotated[int, Field(ge=1, le=65495, strict=True)] = 1448
    header_bytes: Annotated[int, Field(ge=0, le=4096, strict=True)] = 90
    initial_window: Annotated[int, Field(ge=1, le=65535, strict=True)] = 10


class Slower(_Sourced):
    """Nodes whose CPU, ports and streams take `factor` times as long."""

    nodes: Nodes
    factor: Factor


class RankNodes(_Sourced):
    """The nodes of the ranks in order; with `second_half`, that is where the second half of the ranks goes."""

    nodes: Nodes
    second_half: Nodes | None = None


class VariantChoice(_Table):
    """Which variants measure a suite's points; the first that fits a point counts, without any the plain model."""

    pattern: Texts = ()
    ranks: Annotated[tuple[Count, ...], BeforeValidator(listed)] = ()
    options: Annotated[dict[str, str], BeforeValidator(texts)] = Field(default_factory=dict)
    variants: Annotated[Texts, AfterValidator(some)]
    read_from: Text

    def fits(self, pattern: str, ranks: int, options: Mapping[str, str]) -> bool:
        """Whether it is for such a point."""
        is_named = (not self.pattern or pattern in self.pattern) and (not self.ranks or ranks in self.ranks)
        return is_named and self.options.items() <= options.items()


class Used(_Table):
    """Published figures that the fit used, by the archive's columns, and their purpose."""

    where: Where
    for_: Text = Field(alias="for")


class Structure(_Table):
    """A choice that is no number and was read from a report, such as a flow or an order of reading."""

    what: Text
    read_from: Text


class NotModelled(_Table):
    """Published figures that the model says nothing of, and why."""

    where: Where
    why: Text


class MachineModel(_Table):
    """A whole model. `machine`: the archive's name of the machine whose report it rebuilds."""

    title: Text
    about: str = ""
    machine: str | None = None
    ranks: Count = 0
    default_ranks: Count = 0
    ranks_per_node: Positive = 1
    topology: Topology
    cpu: Cpu | None = None
    noise: NoiseModel | None = None
    link: tuple[Link, ...] = ()
    classes: Classes = Field(default_factory=dict, alias="class")
    put: Classes = Field(default_factory=dict)
    get: Classes = Field(default_factory=dict)
    barrier: Barrier | None = None
    alltoall: Alltoall | None = None
    stream: StreamCosts | None = None
    switch: SwitchBuffers | None = None
    tcp: Tcp | None = None
    slower: tuple[Slower, ...] = ()
    placement: RankNodes | None = None
    run: tuple[VariantChoice, ...] = ()
    used: tuple[Used, ...] = ()
    structure: tuple[Structure, ...] = ()
    not_modelled: tuple[NotModelled, ...] = ()
    variant: Annotated[dict[str, dict[str, Any]], AfterValidator(_is_name)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_are_known(self) -> MachineModel:
        if not self.classes:
            raise ValueError("it has no [class.NAME]: give what a message costs")
        levels = [level.name for level in self.topology.level] if isinstance(self.topology, Hierarchy) else []
        of_pairs = (each for classes in (self.classes, self.put, self.get) for each in classes.values())
        named = [each.within for each in of_pairs if each.within is not None]
        named += [link.level for link in self.link if isinstance(link.level, str)]
        for what, words, known in (
            ("level of the hierarchy", named, levels),
            ("variant", [name for run in self.run for name in run.variants if name], list(self.variant)),
        ):
            for word in words:
                if word not in known:
                    raise ValueError(str(unknown(what, word, known)))
        last = self.topology.shape.levels
        for link in self.link:
            if last is not None and isinstance(link.level, int) and link.level > last:
                raise ValueError(f"link: there is no level {link.level}: a {self.topology.kind} like this has {last}")
        return self

    @model_validator(mode="after")
    def _buffers_can_fill(self) -> MachineModel:
        switch, tcp = self.switch, self.tcp
        if switch is None and tcp is None:
            return self
        if switch is None or tcp is None:
            have, lack = ("switch", "tcp") if switch else ("tcp", "switch")
            raise ValueError(f"[{have}] needs [{lack}]: what a full buffer drops is sent again by TCP")
        frame_bytes = tcp.mss_bytes + tcp.header_bytes
        if switch.buffer_bytes < frame_bytes:
            raise ValueError(f"switch.buffer_bytes: {switch.buffer_bytes} hold no frame, which has {frame_bytes} B")
        if tcp.window_bytes is not None and tcp.window_bytes < tcp.mss_bytes:
            raise ValueError(f"tcp.window_bytes: {tcp.window_bytes} hold no segment of {tcp.mss_bytes} B")
        if switch.shared and not isinstance(self.topology, SingleSwitch):
            raise ValueError(f"switch.shared: only for the topology switch, not for a {self.topology.kind}")
        if not any(link.bytes_per_s for link in self.link):
            raise ValueError("[switch] needs links with a rate: give bytes_per_s of a [[link]]")
        of_pairs = (each for classes in (self.classes, self.put, self.get) for each in classes.values())
        if any(segment.protocol == "synchronous" for each in of_pairs for segment in each.segment):
            raise ValueError("[tcp] has no synchronous messages: use eager or rendezvous")
        return self

    @model_validator(mode="after")
    def _nodes_are_known(self) -> MachineModel:
        placement, nodes = self.placement, self.topology.shape.nodes
        most = nodes * self.ranks_per_node
        if most > RANKS_MAX:
            raise ValueError(f"it has room for {most:,} ranks: at most {RANKS_MAX:,} can be simulated")
        named = [(f"placement.{key}", getattr(placement, key, None)) for key in ("nodes", "second_half")]
        named += [("slower.nodes", slower.nodes) for slower in self.slower]
        for key, numbers in named:
            last = max(numbers or (0,))
            if last >= nodes:
                raise ValueError(f"{key}: there is no node {last} among {nodes}")
        for key in ("ranks", "default_ranks") if placement is None else ():
            if getattr(self, key) > most:
                raise ValueError(f"{key}: {getattr(self, key)} do not fit: the nodes take {counted(most, 'rank')}")
        return self

    @model_validator(mode="after")
    def _routes_are_long_enough(self) -> MachineModel:
        most = self.topology.shape.switches
        for kind, classes in (("class", self.classes), ("put", self.put), ("get", self.get)):
            for name, pair_class in classes.items():
                least = min(pair_class.switches or (0,))
                if least > most:
                    raise ValueError(f"{kind}.{name}.switches: a route has at most {most}, not {least}")
        return self
