"""Where ranks run, and what starts them: made once from the options of a command, then handed on whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.worker.hosts import Host, fill, parse_hosts

_STORED = ("one_per_host", "cpus", "map_by", "launcher", "interface")  # with a plan, besides the hosts


@dataclass(frozen=True)
class Placement:
    """The hosts or CPUs of ranks; without any hockney chooses CPUs of this host.

    On `hosts` ranks are spread in blocks, and each host pins them to its CPUs by `map_by`: core, socket or node; empty:
    not pinned. On this host rank r is pinned to `cpus[r % len(cpus)]`, else as `map_by` says if that is not core.

    `per_host`: how many ranks each host gets, one placement for each; () has two ranks both on two hosts and on one.
    `one_per_host`: "cpus" ranks are one for each host, not one for each slot. `launcher`: as --launcher says.
    `interface`: the one that sockets between hosts use; None: any.
    """

    hosts: tuple[Host, ...] = ()
    per_host: tuple[int, ...] = ()
    one_per_host: bool = False
    cpus: tuple[int, ...] = ()
    map_by: str = "core"
    launcher: str = "auto"
    interface: str | None = None

    @classmethod
    def of_plan(cls, stored: Mapping[str, Any]) -> Placement:
        """That of a stored plan. Raises UsageError for hosts that are none."""
        known = {name: stored[name] for name in _STORED if name in stored}
        return cls(hosts=listed_hosts(stored.get("hosts") or ()), **known | {"cpus": tuple(stored.get("cpus") or ())})

    def as_json(self) -> dict[str, Any]:
        """What is stored with a plan; `per_host` is in the names of its transports."""
        return {"hosts": list(map(str, self.hosts)), **{name: getattr(self, name) for name in _STORED}}

    @property
    def bind(self) -> str:
        """How ranks are pinned: `0,2` or socket; empty: hockney chooses, or they are not pinned."""
        return ",".join(map(str, self.cpus)) or (self.map_by if self.hosts or self.map_by != "core" else "")

    def hosts_of(self, ranks: int, per_host: int | None = None) -> tuple[Host, ...]:
        """The hosts of this many ranks, each with their number; () for this host. Raises UsageError."""
        return fill(ranks, self.hosts, per_host) if self.hosts else ()

    def cpus_for(self, ranks: int, here: int) -> int:
        """The number of CPUs for this many ranks: of those that are named, or all that are `here`."""
        return len(set(self.cpus[:ranks])) or here

    def every(self, here: int) -> int:
        """The number of ranks that "cpus" means: one for each CPU; on hosts one for each slot, or each host."""
        of_hosts = sum(1 if self.one_per_host else host.slots or 1 for host in self.hosts)
        return of_hosts or len(set(self.cpus)) or here


def listed_hosts(words: Sequence[str]) -> tuple[Host, ...]:
    """Hosts as a plan stores them; () for none. Raises UsageError."""
    return parse_hosts(",".join(words)) if words else ()
