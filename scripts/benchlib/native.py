"""The parts about hockney's own transports: null, shm, pipe, unix, tcp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from scripts.benchlib import bare
from scripts.benchlib.pairs import Quadruple, Question, row, show_interval
from scripts.benchlib.place import Place, Shot, measure, middle_ns, take
from scripts.benchlib.series import Absent, Contest, Measured, Series
from scripts.benchlib.table import INCONCLUSIVE, Row, Target

from hockney.stats import median
from hockney.units import format_bytes
from hockney.worker.compiler import find_c_compiler

_WINDOW = 16  # the stream bandwidth of the data sheet
_STREAM = (Shot(1 << 16, 8, 41), Shot(1 << 22, 1, 15))
_COPIES = (Shot(1 << 16, 64, 41), Shot(1 << 22, 4, 41))
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
        return [row(Question("shm: half round trip, 8 B", target, "shm", "floor"), self.quadruples)]


def null(place: Place) -> list[Series]:
    """The part `null`."""
    return [Harness(place)]


def shm(place: Place) -> list[Series]:
    """The part `shm`: latency over the floor, streams against Open MPI and against a bare memcpy."""
    found: list[Series] = [OverFloor(place)]
    peer = next(iter(place.mpis("openmpi")), None)
    against_mpi = Target("≥ 3 × Open MPI", low=3.0)
    if peer is None or peer.library is None:
        found.append(Absent("shm stream", "shm: stream bandwidth", against_mpi, "no Open MPI is here"))
    else:
        found.append(
            Contest(
                f"shm stream against {peer.name}",
                _stream_questions(against_mpi, peer.library.name, fractional=False),
                _streams(place, "shm"),
                _streams(place, peer.name),
            )
        )
    found.append(
        Contest(
            "shm stream against memcpy",
            _stream_questions(Target("≥ 0.9 × memcpy", low=0.9), "memcpy", fractional=True),
            _streams(place, "shm"),
            _copies(place),
        )
    )
    return found


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


def _streams(place: Place, transport: str) -> Callable[[], Measured]:
    def run() -> Measured:
        with place.worker(transport) as session:
            return {
                shot.bytes: middle_ns(measure(session, "oneway", shot, [("window", str(_WINDOW))])) for shot in _STREAM
            }

    return run


def _copies(place: Place) -> Callable[[], Measured]:
    """On the CPU of rank 1: in a single copy it is the receiver who copies."""
    sizes = [f"{shot.bytes}:{shot.batch}" for shot in _COPIES]
    samples = ["--samples", str(_COPIES[0].samples)]

    def run() -> Measured:
        program = place.bare(find_c_compiler(), "memcpy_bare.c")
        lines = bare.run([str(program), str(place.cpus[1]), str(place.cpus[0]), *samples, *sizes])
        return {int(size): copy_ns for size, copy_ns, *_ in bare.numbers(lines, 4)}

    return run


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
    what = f"{name}: half round trip, {format_bytes(size)}"
    shot = Shot(size, reps // _BLOCKS + 1, _BLOCKS)  # as stream_bare.c divides them
    return Contest(
        f"{name} {size} B",
        {size: Question(what, _SOCKET_TARGET, transport, "bare C", fractional=True)},
        _pingpong(place, transport, shot, before),
        _bare_pingpong(place, transport, size, reps, before),
        _SOCKET_PAIRS,
    )


def _with_fixed_buffers(place: Place, size: int) -> Series:
    name = "tcp, receive buffers of one size"
    try:
        bare.run([*_BUFFERS_FIXED, "true"])
    except (OSError, bare.BareFailed) as error:
        what = f"{name}: half round trip, {format_bytes(size)}"
        return Absent(name, what, _SOCKET_TARGET, f"no network namespace: {error}")
    return _against_bare(place, name, "tcp", size, _BUFFERS_FIXED)


def _pingpong(place: Place, transport: str, shot: Shot, before: Sequence[str]) -> Callable[[], Measured]:
    def run() -> Measured:
        with place.worker(transport, before=before) as session:
            return {shot.bytes: take(session, "pingpong", shot)[_BLOCKS // 2]}

    return run


def _bare_pingpong(place: Place, transport: str, size: int, reps: int, before: Sequence[str]) -> Callable[[], Measured]:
    def run() -> Measured:
        program = place.bare(find_c_compiler(), "stream_bare.c")
        argv = [*before, str(program), transport, str(size), str(reps), *map(str, place.cpus)]
        ((_, median_ns),) = bare.numbers(bare.run(argv), 2)
        return {size: median_ns}

    return run
