"""The parts about hockney's own transports: null, shm, pipe, unix, tcp; streams of events, and loads from memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from scripts.benchlib.contests import Absent, Contest, Measured, Quadruple, Question, Series
from scripts.benchlib.place import BareFailed, Place, Shot, measure, middle_ns, output_of, times_ns
from scripts.benchlib.table import INCONCLUSIVE, Row, Target, show_interval

from hockney.machine.topology import read_topology
from hockney.stats import median
from hockney.suites import CacheShare, load_suite
from hockney.units import format_bytes

_WINDOW = 16  # the stream bandwidth of the data sheet
_STREAM = (Shot(1 << 16, 8, 41), Shot(1 << 22, 1, 15))
_COPIES = {1 << 16: 64, 1 << 22: 4}  # batches
_COPY_SAMPLES = 41
_BLOCKS = 20  # of stream_bare.c
_SOCKET_TARGET = Target("≤ 1.05 × bare C", high=1.05)
_PINGPONG_REPS = {8: 2000, 1 << 16: 1000}
_SOCKET_PAIRS = 3  # a round
_MEASUREMENTS = 3  # a round, to shm's latency
# Starts a program in a separate network namespace, where the kernel does not choose a connection's receive buffer by
# its earlier traffic: that size alone makes a message take up to a quarter longer.
_BUFFERS_FIXED = (
    *("unshare", "--map-root-user", "--net", "sh", "-c"),
    'ip link set lo up && echo 0 > /proc/sys/net/ipv4/tcp_moderate_rcvbuf && exec "$@"',
    "sh",
)


@dataclass
class Harness:
    """The cost of the measuring loop: a ping-pong over a transport that does nothing."""

    place: Place
    name: str = "null"
    costs_ns: list[float] = field(default_factory=list)

    def measure(self, number: int) -> None:
        with self.place.worker("null") as session:
            answer = measure(session, "pingpong", Shot(8, 10_000, 21))
            self.costs_ns.append(middle_ns(answer) * answer.divisor)  # a repetition is there and back

    def rows(self) -> list[Row]:
        target = Target("≤ 5 ns per repetition", high=5.0)
        what = "null: cost of the harness, a send and a receive"
        if not self.costs_ns:
            return [Row(what, target.text, "nothing was measured", "any", INCONCLUSIVE)]
        cost = median(self.costs_ns)
        return [Row(what, target.text, f"{show_interval(cost, 2)} ns", f"any; {cost.n} starts", target.judge(cost))]


@dataclass
class OverFloor:
    """shm's shortest message between two measurements of the floor, just before and just after."""

    place: Place
    name: str = "shm 8 B"
    quadruples: list[Quadruple] = field(default_factory=list)

    def measure(self, number: int) -> None:
        with self.place.worker("shm") as session:
            for _ in range(_MEASUREMENTS):
                answer = measure(session, "pingpong", Shot(8, 500, 41))
                if answer.floor_ns is not None:
                    self.quadruples.append(Quadruple((middle_ns(answer),), answer.floor_ns))

    def rows(self) -> list[Row]:
        target = Target("≤ 1.5 × the floor", high=1.5)
        return [Question("shm: half round trip, 8 B", target, "shm", "floor").row(self.quadruples)]


def null(place: Place) -> list[Series]:
    """The part `null`."""
    return [Harness(place)]


def shm(place: Place) -> list[Series]:
    """The part `shm`: latency over the floor, streams against Open MPI and against a bare memcpy."""
    peer = next(iter(place.mpis("openmpi")), None)
    against_mpi = Target("≥ 3 × Open MPI", low=3.0)
    streams: Series = Absent("shm stream", "shm: stream bandwidth", against_mpi, "no Open MPI is here")
    if peer is not None and peer.library is not None:
        streams = Contest(
            f"shm stream against {peer.name}",
            _stream_questions(against_mpi, peer.library.name, fractional=False),
            lambda: _streams(place, "shm"),
            lambda: _streams(place, peer.name),
        )
    copies = Contest(
        "shm stream against memcpy",
        _stream_questions(Target("≥ 0.9 × memcpy", low=0.9), "memcpy", fractional=True),
        lambda: _streams(place, "shm"),
        lambda: _copies(place),
    )
    return [OverFloor(place), streams, copies]


def _stream_questions(target: Target, peer: str, *, fractional: bool) -> dict[int, Question]:
    return {
        shot.bytes: Question(
            f"shm: stream of {format_bytes(shot.bytes)}, oneway window={_WINDOW}",
            target,
            "shm",
            peer,
            rate_bytes=shot.bytes,
            fractional=fractional,
        )
        for shot in _STREAM
    }


def _streams(place: Place, transport: str) -> Measured:
    with place.worker(transport) as session:
        options = [("window", str(_WINDOW))]
        return {shot.bytes: middle_ns(measure(session, "oneway", shot, options)) for shot in _STREAM}


def _copies(place: Place) -> Measured:
    """On the CPU of rank 1: in a single copy it is the receiver who copies."""
    sizes = [f"{size}:{batch}" for size, batch in _COPIES.items()]
    copies = place.bare("memcpy_bare.c", place.cpus[1], _COPY_SAMPLES, *sizes, columns=2)
    return {int(size): copy_ns for size, copy_ns in copies}


def sockets(transport: str) -> Callable[[Place], Sequence[Series]]:
    """The parts `pipe`, `unix` and `tcp`: a transport against the bare loop of the same system calls."""

    def part(place: Place) -> list[Series]:
        found: list[Series] = [_against_bare(place, transport, transport, size) for size in _PINGPONG_REPS]
        if transport == "tcp":
            found.append(_with_fixed_buffers(place, 1 << 16))
        return found

    return part


def _against_bare(place: Place, name: str, transport: str, size: int, before: Sequence[str] = ()) -> Contest:
    reps = _PINGPONG_REPS[size]
    shot = Shot(size, reps // _BLOCKS + 1, _BLOCKS)  # as stream_bare.c divides them

    def ours() -> Measured:
        with place.worker(transport, before=before) as session:
            return {size: times_ns(measure(session, "pingpong", shot))[_BLOCKS // 2]}

    def theirs() -> Measured:
        ((median_ns,),) = place.bare("stream_bare.c", transport, size, reps, *place.cpus, columns=1, before=before)
        return {size: median_ns}

    what = f"{name}: half round trip, {format_bytes(size)}"
    question = Question(what, _SOCKET_TARGET, transport, "bare C", fractional=True)
    return Contest(f"{name} {size} B", {size: question}, ours, theirs, _SOCKET_PAIRS)


def _with_fixed_buffers(place: Place, size: int) -> Series:
    name = "tcp, receive buffers of one size"
    try:
        output_of([*_BUFFERS_FIXED, "true"])
    except (OSError, BareFailed) as error:
        what = f"{name}: half round trip, {format_bytes(size)}"
        return Absent(name, what, _SOCKET_TARGET, f"no network namespace: {error}")
    return _against_bare(place, name, "tcp", size, _BUFFERS_FIXED)


# ---- events: against bare programs that have no harness at all ------------------------------------------------------

_EVENTS_TARGET = Target("0.95 to 1.05 × bare C", low=0.95, high=1.05)
_EVENTS_QUADRUPLES = 3  # a round


@dataclass(frozen=True)
class _Stream:
    """Events of one pattern; a delay is spent reading the clock, as in the bare program."""

    pattern: str
    bytes: int
    ranks: int
    events: int
    delay_us: int = 0
    buffers: int = 1

    @property
    def options(self) -> list[tuple[str, str]]:
        if self.pattern != "robpull":
            return []
        return [("delay_us", str(self.delay_us)), ("delay_kind", "clock"), ("buffers", str(self.buffers))]


_STREAMS = (
    _Stream("robpull", 1 << 16, 2, 200, delay_us=100, buffers=1),
    _Stream("robpull", 1 << 16, 2, 200, delay_us=100, buffers=2),
    _Stream("pushfarm", 16, 3, 1000),
    _Stream("pairs", 1024, 2, 4000),
    _Stream("pairs", 1024, 4, 4000),
)


def events(place: Place) -> Sequence[Series]:
    """Each stream a contest; ranks of both are pinned alike, to two CPUs in turn."""
    return [_of_events(place, stream) for stream in _STREAMS]


def _of_events(place: Place, stream: _Stream) -> Contest:
    shot = Shot(stream.bytes, stream.events, 1, stream.events // 4)

    def ours() -> Measured:
        with place.worker("unix", stream.ranks) as session:
            return {stream.bytes: middle_ns(measure(session, stream.pattern, shot, stream.options))}

    def theirs() -> Measured:
        words = (stream.pattern, stream.bytes, stream.events, stream.delay_us, stream.buffers)
        ((each_ns,),) = place.bare("events_bare.c", *words, *place.cpus_of(stream.ranks), columns=1)
        return {stream.bytes: each_ns}

    options = "".join(f" {name}={value}" for name, value in stream.options if name != "delay_kind")
    what = f"{stream.pattern}{options}, {format_bytes(stream.bytes)}, {stream.ranks} ranks on unix: time of an event"
    question = Question(what, _EVENTS_TARGET, "unix", "bare C", fractional=True)
    return Contest(what, {stream.bytes: question}, ours, theirs, _EVENTS_QUADRUPLES)


# ---- loads: against a bare pointer chase, at each level of this machine ----------------------------------------------

_LOADS_TARGET = Target("within 10 % of bare C", low=0.9, high=1.1)
_LINE_BYTES = 64
_LOADS, _LOADS_SAMPLES = 20_000, 21


def loads(place: Place, access: str = "chase") -> list[Series]:
    """One contest for each working set of the load table, as the suite has them."""
    every = [one for one in load_suite("t3d").series if one.pattern == "memload"]
    of_access = [one for one in every if one.options.get("access", "chase") == access]
    shares = [size for one in of_access for size in one.bytes if isinstance(size, CacheShare)]
    caches = read_topology().cache_sizes()
    return [_of_loads(place, access, share, share.resolve(caches, _LINE_BYTES)) for share in shares]


def _of_loads(place: Place, access: str, share: CacheShare, size: int | None) -> Series:
    name = f"memload: {access} in {share}"
    if size is None:
        return Absent(name, name, _LOADS_TARGET, f"the size of the level {share.level} cache is not known")
    # Warmed up by one way through the whole set, as the bare program is.
    shot = Shot(size, _LOADS, _LOADS_SAMPLES, size // _LINE_BYTES)

    def ours() -> Measured:
        with place.worker("null", ranks=1) as session:
            return {size: middle_ns(measure(session, "memload", shot, [("access", access)]))}

    def theirs() -> Measured:
        """On the CPU of rank 0."""
        ((load_ns,),) = place.bare("chase_bare.c", place.cpus[0], size, _LOADS, _LOADS_SAMPLES, access, columns=1)
        return {size: load_ns}

    question = Question(f"{name}, {format_bytes(size)}", _LOADS_TARGET, "memload", "bare C", fractional=True)
    return Contest(name, {size: question}, ours, theirs)
