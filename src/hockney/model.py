"""Values that describe measurements: a point names the request, measurements answer it, a run holds them all.

Times are integers in ns as the worker gave them; nothing is averaged before it is stored. Arrays are numpy's, which is
imported only where arrays are made, so that commands that measure nothing start fast.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from hockney.units import counted, format_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Int64Array = NDArray[np.int64]
    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class PatternTraits:
    """Properties of a pattern, from its C file (`worker --describe`); stored with each run.

    `sized`: has a message size. `stream`: repetitions follow each other without a pause (docs/metrics.md). `payload`:
    bytes arrive, and the worker verifies them. `events`: its time is that of an event. `once`: a launch has one sample.
    `law`: the variable in which its time is linear as ranks are added ("messages", "rounds", "senders"), "constant", or
    None. `links`: the two ranks that a rank's time belongs to: "ends" (one pair alone), "halves", "ring" or "round"
    (many pairs concurrently), None (more than two ranks). `alone`: the pattern in which one pair does the same with no
    other traffic. `summary`: a line on what it does and whose time it is; empty in imports.
    """

    sized: bool = True
    stream: bool = False
    payload: bool = True
    events: bool = False
    once: bool = False
    law: str | None = None
    links: str | None = None
    alone: str | None = None
    summary: str = ""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A message size above which a transport works differently: `bytes`, or the network fact named `fact` if 0."""

    name: str
    bytes: int
    fact: str | None
    meaning: str
    see: str
    source: str


@dataclass(frozen=True, kw_only=True)
class TransportTraits:
    """Properties of a transport, from its C file (`worker --describe`); stored with each run.

    `caps` are its promises (worker/csrc/transport.h). `carrier` moves the bytes within a host: "memory", "kernel",
    "library" (the library chooses) or "nothing". `below` is the transport whose cost it adds to within a host,
    `below_remote` between hosts. `limits` are documented sizes at which it works differently.
    """

    caps: frozenset[str] = frozenset(("payload", "spins"))
    carrier: str = "library"
    below: str | None = None
    below_remote: str | None = None
    limits: tuple[Limit, ...] = ()

    @property
    def sleeps(self) -> bool:
        """Whether a rank that waits sleeps in the kernel."""
        return "syscalls" in self.caps and "spins" not in self.caps

    @property
    def is_harness(self) -> bool:
        """Whether it carries nothing in real time, so that its times are those of the harness itself."""
        return self.carrier == "nothing" and "virtual" not in self.caps

    @property
    def is_paced(self) -> bool:
        """Whether the kernel sends between hosts and loses nothing: congestion control then decides how fast."""
        return self.carrier == "kernel" and "hosts" in self.caps and "lossy" not in self.caps


BACKGROUND = "background"
FROM, TO = "from", "to"
"""Options of no pattern: the host or the link that a series of a health run is about."""

_PLACED = re.compile(r"((?!sim@)(?:[^/]*|.*:[^/]*))/([1-9]\d{0,4}|\*)", re.ASCII)


def placed(transport: str, per_host: int | str) -> str:
    """`tcp` -> `tcp/2`: with two ranks on each host. A path ends with a colon: `mpi@/opt/a:/2`."""
    return f"{transport}{':' if '/' in transport and ':' not in transport else ''}/{per_host}"


def split_placed(transport: str) -> tuple[str, str]:
    """`tcp/2` -> `tcp`, `2`: the transport, and how many ranks each host has; `tcp` -> `tcp` and an empty text."""
    match = _PLACED.fullmatch(transport)
    return (match[1].removesuffix(":"), match[2]) if match else (transport, "")


@dataclass(frozen=True, order=True)
class Point:
    """One thing to measure: a pattern over a transport, with one number of ranks and one message size.

    `transport` is `name[@library][:variant][/N]`: `shm`, `tcp:spin`, `mpi@openmpi-4.1.4`; N ranks fill each host in
    turn, without it they are spread evenly. `options` are the pattern's options, as sorted (name, value) pairs without
    the defaults. `role` says why the point was added: "asked", "refined" if the sampler added it at a bend of the
    curve, "basic" for predictions only, or "first": measured before others and more often. `traits` are those of the
    pattern on this transport.
    The option BACKGROUND is of no pattern: it names the traffic of other ranks meanwhile. Nor are FROM and TO.
    """

    transport: str
    pattern: str
    ranks: int
    bytes: int
    options: tuple[tuple[str, str], ...] = ()
    role: str = field(default="asked", compare=False)
    traits: PatternTraits = field(default=PatternTraits(), compare=False, repr=False)

    def __str__(self) -> str:
        """`pingpong of 64 KiB on shm, 2 ranks`, for messages."""
        return self.text(self.transport, format_bytes(self.bytes) if self.is_sized else "")

    def text(self, transport: str = "", size: str = "") -> str:
        """The same with these words for the transport and the size; without what is empty or 0."""
        of = f" of {size}" if size else ""
        on = f" on {transport}" if transport else ""
        return f"{self.pattern_text}{of}{on}{f', {self.ranks_text}' if self.ranks else ''}"

    @property
    def pattern_text(self) -> str:
        """`oneway window=16`: the pattern with its options."""
        return pattern_text(self.pattern, self.options)

    @property
    def is_sized(self) -> bool:
        """Whether its pattern has a size at all: 0 B of a barrier are none."""
        return self.traits.sized

    @property
    def is_stream(self) -> bool:
        """Whether its repetitions follow each other without a pause."""
        return self.traits.stream

    @property
    def rate_hz(self) -> int:
        """How many events a second start on schedule; 0: each starts as soon as it may."""
        return int(dict(self.options).get("rate_hz", 0))

    @property
    def per_host(self) -> int | None:
        """How many ranks fill each host; None: they are spread evenly."""
        number = split_placed(self.transport)[1]
        return int(number) if number else None

    @property
    def background(self) -> str | None:
        """The name of the traffic that other ranks make meanwhile; None: they make none."""
        return dict(self.options).get(BACKGROUND)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host or the two of a link that it is about, in a health run; else ()."""
        return tuple(value for name, value in self.options if name in (FROM, TO))

    def having(self, option: str, value: str = "") -> Point:
        """The same point with this value of an option; "": with its default."""
        others = tuple(pair for pair in self.options if pair[0] != option)
        return replace(self, options=tuple(sorted((*others, (option, value)))) if value else others)

    @property
    def idle(self) -> Point:
        """The same point without a background."""
        return self.having(BACKGROUND)

    def under(self, background: str) -> Point:
        return self.having(BACKGROUND, background)

    def as_json(self) -> dict[str, Any]:
        """Its fields without the traits, and the options by name."""
        known = {name: value for name, value in vars(self).items() if name != "traits"}
        return {**known, "options": dict(self.options)}

    @property
    def ranks_text(self) -> str:
        """`2 ranks`."""
        return counted(self.ranks, "rank")


def pattern_text(pattern: str, options: Iterable[tuple[str, str]]) -> str:
    """`oneway window=16`: a pattern with its options."""
    return " ".join([pattern, *(f"{name}={value}" for name, value in options)])


CurveKey = tuple[str, str, int, tuple[tuple[str, str], ...]]
"""Transport, pattern, ranks and options of a curve."""


def curve_of(point: Point) -> CurveKey:
    """The key of a point's curve: everything except the size."""
    return (point.transport, point.pattern, point.ranks, point.options)


@dataclass(frozen=True)
class Definition:
    """How a pattern's samples become its time and its rate (docs/metrics.md); it comes from the worker's `describe`.

    `timed` is whose samples count: "root" (rank 0's), "rank 3" (that one's), "sources" (mean over ranks 0 .. size/2-1),
    "mean" (over all ranks) or "slowest" (maximum over ranks, sample by sample). A repetition's time is divided by
    `divisor`. Rates count `bytes_per_rep` payload bytes.
    """

    timed: str
    divisor: int
    bytes_per_rep: int
    messages_per_rep: int
    algorithm: str | None = None

    @property
    def timed_rank(self) -> int | None:
        """The one rank whose samples count; None where those of several do."""
        if self.timed == "root":
            return 0
        word, _, number = self.timed.partition(" ")
        return int(number) if word == "rank" else None


Place = tuple[str, int]
"""Host and CPU of a rank. If the CPU is not known, a negative number, unique within the job."""


class MachineProbe(NamedTuple):
    """Measured state of the machine just before and just after a measurement; None: not measured.

    `floor_ns`, `solo_ns` (rank 0's pace while rank 1 rests) and `wake_ns` (half a round trip of a wake-up, where ranks
    sleep while they wait) hold (before, after), `pace_ns` the same for each rank.
    `reference` names the transport whose round trip gave the floor; None for a cache line. `places` are the ranks'
    hosts and CPUs; empty: unknown, and each rank counts as a CPU.
    """

    floor_ns: tuple[float, float] | None
    pace_ns: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    solo_ns: tuple[float, float] | None = None
    reference: str | None = None
    places: tuple[Place, ...] = ()
    wake_ns: tuple[float, float] | None = None


@dataclass(frozen=True)
class Measurement:
    """The result of one `measure` command.

    `elapsed_ns` has the shape (ranks, samples): ns of one batch of `batch` repetitions.

    `floor_ns` is the floor just before and just after, or None if it can't be measured. `floor_kind` is "line", a cache
    line bounced between the CPUs of ranks 0 and 1, or "transport", half a round trip of 8 B on the transport itself,
    between hosts. `pace_ns` is the time of a step of a fixed loop on the CPU of each rank, just before and just after;
    `solo_ns` is that of rank 0 while rank 1 rests, `wake_ns` half a round trip of a wake-up between ranks 0 and 1, None
    where ranks do not sleep while they wait. `places` are those of its launch.

    CPU times and wall time are per rank, over all samples of the measurement. `steal` is the fraction of CPU time that
    a hypervisor took since the previous measurement, None if unknown or too short to measure. `counters` are sums over
    all samples by name, a number per rank: events that the pattern or the transport counts (docs/metrics.md).
    `started_ns` is the CLOCK_MONOTONIC time at which rank 0's wall time began; None for virtual time and imports.
    """

    point: Point
    launch_id: int
    round: int
    started_unix_s: float
    batch: int
    definition: Definition
    elapsed_ns: Int64Array
    cpu_user_ns: tuple[int, ...]
    cpu_system_ns: tuple[int, ...]
    wall_ns: tuple[int, ...]
    floor_ns: tuple[float, float] | None
    verified: bool
    steal: float | None = None
    counters: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    floor_kind: str | None = None
    pace_ns: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    solo_ns: tuple[float, float] | None = None
    wake_ns: tuple[float, float] | None = None
    started_ns: int | None = None
    places: tuple[Place, ...] = ()

    @property
    def has_payload(self) -> bool:
        """Whether bytes arrive that can be checked: not of a barrier, nor over the null transport."""
        return self.point.traits.payload and self.definition.bytes_per_rep > 0

    @property
    def probe(self) -> MachineProbe:
        reference = self.point.transport if self.floor_kind == "transport" else None
        return MachineProbe(self.floor_ns, self.pace_ns, self.solo_ns, reference, self.places, self.wake_ns)

    def times_ns(self) -> FloatArray:
        """The pattern's time of each sample, by its definition: shape (samples,), ns per repetition / divisor."""
        ranks, timed_rank = self.elapsed_ns, self.definition.timed_rank
        if timed_rank is not None:
            batch_ns = ranks[min(timed_rank, len(ranks) - 1)].astype(float)  # one row may stand for all
        elif self.definition.timed == "mean":
            batch_ns = ranks.mean(axis=0)
        elif self.definition.timed == "sources":
            batch_ns = ranks[: max(1, len(ranks) // 2)].mean(axis=0)
        else:
            batch_ns = ranks.max(axis=0).astype(float)
        result: FloatArray = batch_ns / (self.batch * self.definition.divisor)
        return result


class PointStatus(enum.Enum):
    """How far a point got; the reason stored with it is a sentence."""

    PENDING = "pending"
    PRECISE = "precise"  # the interval is as narrow as asked
    TIME_UP = "time up"  # before the interval was narrow enough
    STOPPED = "stopped"  # by Ctrl-C, before either; likewise
    IMPORTED = "imported"  # the output of another benchmark
    FAILED = "failed"
    SKIPPED = "skipped"


NOT_MEASURED = (PointStatus.FAILED, PointStatus.SKIPPED)
"""Such a point has no figure for a verdict, even if it has samples from before."""


class RunStatus(enum.Enum):
    """How a run ended."""

    RUNNING = "running"
    KILLED = "killed"  # never stored: a run that is stored as running, and that nobody measures any more
    DONE = "done"
    STOPPED = "stopped"  # by Ctrl-C; its measurements are stored
    PARTIAL = "partial"  # some point failed, or none could be measured

    def ending(self, points: Collection[PointStatus]) -> str:
        """How a run with such points ended, in the word that these have: `done` has nothing left to measure."""
        is_early = self is RunStatus.DONE and PointStatus.TIME_UP in points
        return PointStatus.TIME_UP.value if is_early else self.value


@dataclass(frozen=True)
class Launch:
    """One start of a job: its library, its ranks' CPUs and hosts, its command line."""

    transport: str
    library: str
    ranks: int
    started_unix_s: float
    argv: tuple[str, ...]
    cpus: tuple[int, ...]  # the CPU of each rank when it said hello; -1 if unknown
    hosts: tuple[str, ...]
    oversubscribed: bool
    clock_ns: float
    index: int = 0  # which of the asked --launches this is
    bound: tuple[str, ...] = ()  # the CPUs that each rank may run on: `0-3,8`, or their number; empty: not recorded

    @functools.cached_property
    def places(self) -> tuple[Place, ...]:
        each = zip(self.hosts, self.cpus, strict=False)  # a store may have fewer of one
        return tuple((host, cpu if cpu >= 0 else -1 - rank) for rank, (host, cpu) in enumerate(each))


@dataclass(frozen=True)
class Warning_:
    """A condition that limits the value of a figure: cause and remedy. Stored with the run."""

    kind: str  # "pinning", "governor", "steal", "oversubscription", "yield", …
    subject: str  # a transport, a CPU, or "machine"
    cause: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.cause} {self.remedy}".strip()


IMPORTED = "imported"
"""In the stored plan of a run that another benchmark measured: the file, tool and number of points of each output."""
DIGITS = "digits_ns"
"""The counter for the rounding error of printed figures."""


@dataclass(frozen=True)
class RunInfo:
    """Facts about a run at its start. `facts` is machine.facts(); `plan` can rebuild the run for --resume."""

    command: str
    suite: str
    label: str | None
    started_unix_s: float
    seed: int
    version: str
    facts: dict[str, Any]
    plan: dict[str, Any]

    @property
    def is_imported(self) -> bool:
        """Whether another benchmark measured it: its plan then holds the outputs."""
        return IMPORTED in self.plan
