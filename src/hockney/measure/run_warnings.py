"""Warnings of what a run measured: time in the kernel, lost messages, stolen CPU time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hockney.model import Measurement, Warning_
from hockney.results.store import Store
from hockney.worker.catalogue import Catalogue
from hockney.worker.launch import YIELDS

_SYSTEM_SHARE_MAX = 0.2  # a library that spins in user space stays far below
_SHARE_WALL_MIN_NS = 50_000_000  # in less time, one or two clock ticks would make a share
_SHORT_BYTES_MAX = 1024
_STEAL_MAX = 0.02
# What helps against a library that yields while it waits.
_WHEEL = "No setting of the PyPI wheel of MPICH changes this; compare with {}."
_INSTALL = "another MPI (apt install libopenmpi-dev openmpi-bin)"
_SPIN = f"Look for the library's setting that makes waits spin; of Open MPI, leave {YIELDS} unset."


class KernelShare:
    """How much of its time rank 0 of each transport spends in the kernel while it sends short messages."""

    def __init__(self) -> None:
        self.system_ns: Counter[str] = Counter()
        self.wall_ns: Counter[str] = Counter()

    def add(self, measurement: Measurement) -> None:
        point = measurement.point
        if point.pattern == "pingpong" and point.bytes <= _SHORT_BYTES_MAX:
            self.system_ns[point.transport] += measurement.cpu_system_ns[0]
            self.wall_ns[point.transport] += measurement.wall_ns[0]

    def warnings(self, catalogue: Catalogue) -> Iterator[Warning_]:
        """A library that makes system calls although its transport needs none."""
        for name, wall_ns in self.wall_ns.items():
            share = self.system_ns[name] / max(1, wall_ns)
            info = catalogue.transports.get(name)
            if wall_ns < _SHARE_WALL_MIN_NS or share < _SYSTEM_SHARE_MAX or info is None or "syscalls" in info.caps:
                continue
            if info.library is not None:
                cause = f"{name} spends {share:.0%} of its time in system calls: it yields the CPU while it waits."
                others = sorted(
                    other.library.id
                    for other in catalogue.transports.values()
                    if other.library is not None and not other.library.is_wheel and other.name.startswith("mpi@")
                )
                wheel = _WHEEL.format(" or ".join(dict.fromkeys(others)) or _INSTALL)
                yield Warning_("yield", name, cause, wheel if info.library.is_wheel else _SPIN)


def loss_warnings(lost: Counter[tuple[str, str]]) -> Iterator[Warning_]:
    """`lost`: messages by transport and pattern."""
    for name in sorted({transport for transport, _ in +lost}):
        counts = ", ".join(
            f"{count:,} in {pattern}" for (transport, pattern), count in sorted((+lost).items()) if transport == name
        )
        yield Warning_(
            "loss",
            name,
            f"{name} lost messages ({counts}), and its times and rates count those as if they had arrived.",
            "Shorter messages, a smaller window or longer socket buffers (net.core.rmem_max) lose fewer; the export "
            "has the losses of each measurement.",
        )


def steal_warning(store: Store, run_id: int) -> Iterator[Warning_]:
    """CPU time that a hypervisor took during the run."""
    known = [summary.steal for summary in store.summaries(run_id) if summary.steal is not None]
    share = sum(known) / len(known) if known else 0.0
    if share > _STEAL_MAX:
        cause = f"While this run measured, the hypervisor took {share:.0%} of the CPU time."
        remedy = "Measure when other virtual machines are idle, or on an instance with dedicated cores."
        yield Warning_("steal", "machine", cause, remedy)
