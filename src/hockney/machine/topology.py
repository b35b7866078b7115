"""The topology of CPUs from Linux's sysfs: hardware threads of a core, caches, NUMA nodes, packages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hockney.machine.files import ROOT, format_cpus, parse_cpus, read_int, read_text

Cpus = tuple[int, ...]


@dataclass(frozen=True)
class Cache:
    """One cache and the CPUs that share it. `kind` is data, instruction or unified."""

    level: int
    kind: str
    size_bytes: int | None
    line_bytes: int | None
    cpus: Cpus


@dataclass(frozen=True)
class Node:
    """One NUMA node: its CPUs (none: memory only) and its own memory."""

    cpus: Cpus
    memory_bytes: int | None


@dataclass(frozen=True)
class Topology:
    """The CPUs of this machine. `source` is "sysfs", None where nothing is known.

    `cores` holds the hardware threads of each core; `slower` the CPUs of a slower kind than the fastest ones here.
    """

    source: str | None = None
    cores: tuple[Cpus, ...] = ()
    packages: tuple[Cpus, ...] = ()
    nodes: tuple[Node, ...] = ()
    caches: tuple[Cache, ...] = ()
    slower: Cpus = ()

    def cache_sizes(self) -> dict[int, int]:
        """Bytes of the cache that holds data, by level; the smallest of several kinds; unknown ones left out."""
        sizes: dict[int, int] = {}
        for cache in self.caches:
            if cache.kind != "instruction" and cache.size_bytes:
                sizes[cache.level] = min(cache.size_bytes, sizes.get(cache.level, cache.size_bytes))
        return sizes

    def last_level(self) -> tuple[Cpus, ...]:
        """Groups of CPUs that share their last-level cache; CPUs without a known cache are in none."""
        deepest: dict[int, Cache] = {}
        for cache in sorted(self.caches, key=lambda cache: cache.level):
            deepest.update((cpu, cache) for cpu in cache.cpus)
        return tuple(sorted({cache.cpus for cache in deepest.values()}))

    @property
    def levels(self) -> dict[str, tuple[Cpus, ...]]:
        """Groups of CPUs that share something, from the closest kind to the widest."""
        nodes = tuple(node.cpus for node in self.nodes)
        return {"last-level caches": self.last_level(), "NUMA nodes": nodes, "packages": self.packages}

    def borders(self, cpu: int, other: int) -> int:
        """How many borders lie between two CPUs: of core, last-level cache, memory node and package; 0 within a core.

        Kinds that divide the CPUs alike are one border.
        """
        kinds = {frozenset(groups) for groups in (self.cores, *self.levels.values()) if groups}
        return sum(not any(cpu in group and other in group for group in groups) for groups in kinds)

    def as_json(self) -> dict[str, Any]:
        """Sets of CPUs as `0-7`, caches of one kind together: 256 CPUs make 15 lines, not 1000."""
        kinds: dict[tuple[int, str, int | None, int | None], list[str]] = {}
        for cache in self.caches:
            key = (cache.level, cache.kind, cache.size_bytes, cache.line_bytes)
            kinds.setdefault(key, []).append(format_cpus(cache.cpus))
        return {
            "source": self.source,
            "cores": [format_cpus(cpus) for cpus in self.cores],
            "packages": [format_cpus(cpus) for cpus in self.packages],
            "nodes": [{"cpus": format_cpus(node.cpus), "memory_bytes": node.memory_bytes} for node in self.nodes],
            "caches": [
                {"level": key[0], "kind": key[1], "size_bytes": key[2], "line_bytes": key[3], "shared_by": shared}
                for key, shared in kinds.items()
            ],
            "slower": format_cpus(self.slower),
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Topology:
        """Back from as_json()."""
        return cls(
            source=stored["source"],
            cores=tuple(parse_cpus(text) for text in stored["cores"]),
            packages=tuple(parse_cpus(text) for text in stored["packages"]),
            nodes=tuple(Node(parse_cpus(row["cpus"]), row["memory_bytes"]) for row in stored["nodes"]),
            caches=tuple(
                Cache(row["level"], row["kind"], row["size_bytes"], row["line_bytes"], parse_cpus(text))
                for row in stored["caches"]
                for text in row["shared_by"]
            ),
            slower=parse_cpus(stored["slower"]),
        )


def read_topology(root: Path = ROOT) -> Topology:
    """The topology of this machine from Linux; empty, with the source None, if there is none."""
    folder = root / "sys/devices/system/cpu"
    online = parse_cpus(read_text(folder / "online"))
    if not online:
        return Topology()
    cores, packages = [], []
    caches: dict[tuple[int, str, Cpus], Cache] = {}
    for cpu in online:
        here = folder / f"cpu{cpu}"
        cores.append(_group(here / "topology", ("core_cpus_list", "thread_siblings_list"), online) or (cpu,))
        packages.append(_group(here / "topology", ("package_cpus_list", "core_siblings_list"), online))
        for index in sorted(here.glob("cache/index*")):
            _add_cache(index, online, caches)
    return Topology(
        source="sysfs",
        cores=_unique(cores),
        packages=_unique(packages),
        nodes=_nodes(root),
        caches=tuple(caches[key] for key in sorted(caches)),
        slower=_slower_cpus(root),
    )


def _group(folder: Path, names: Iterable[str], online: Cpus) -> Cpus:
    """The CPUs that a file lists, under its new or its old name."""
    text = next((text for name in names for text in [read_text(folder / name)] if text), None)
    return tuple(cpu for cpu in parse_cpus(text) if cpu in online)


def _add_cache(index: Path, online: Cpus, caches: dict[tuple[int, str, Cpus], Cache]) -> None:
    level, kind = read_int(index / "level"), (read_text(index / "type") or "").lower()
    cpus = _group(index, ("shared_cpu_list",), online)
    # Every CPU lists the caches it shares; the sizes of one need reading once only.
    if level is None or not kind or not cpus or (level, kind, cpus) in caches:
        return
    kib = (read_text(index / "size") or "").removesuffix("K")
    size_bytes = int(kib) * 1024 if kib.isdigit() else None
    caches[level, kind, cpus] = Cache(level, kind, size_bytes, read_int(index / "coherency_line_size"), cpus)


def _nodes(root: Path) -> tuple[Node, ...]:
    nodes = []
    folders = (root / "sys/devices/system/node").glob("node[0-9]*")
    for folder in sorted(folders, key=lambda path: int(path.name.removeprefix("node"))):
        total = next((line for line in (read_text(folder / "meminfo") or "").splitlines() if "MemTotal" in line), "")
        kib = [word for word in total.split() if word.isdigit()]  # `Node 0 MemTotal:  5597400 kB`
        cpus = parse_cpus(read_text(folder / "cpulist"))
        nodes.append(Node(cpus, int(kib[-1]) * 1024 if len(kib) > 1 else None))
    return tuple(nodes)


def _slower_cpus(root: Path) -> Cpus:
    """CPUs of a slower kind: with less capacity (Arm), or called an atom among cores (Intel)."""
    atoms = parse_cpus(read_text(root / "sys/devices/cpu_atom/cpus"))
    if atoms and read_text(root / "sys/devices/cpu_core/cpus"):
        return atoms
    folder = root / "sys/devices/system/cpu"
    capacity = {int(path.parent.name[3:]): read_int(path) or 0 for path in folder.glob("cpu[0-9]*/cpu_capacity")}
    fastest = max(capacity.values(), default=0)
    return tuple(sorted(cpu for cpu, value in capacity.items() if value < fastest))


def _unique(groups: Iterable[Cpus]) -> tuple[Cpus, ...]:
    return tuple(sorted({cpus for cpus in groups if cpus}))
