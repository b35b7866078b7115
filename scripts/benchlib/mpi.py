"""The part `mpi`: each MPI that is here against bare C programs over the same library."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Sequence

from scripts.benchlib.contests import Absent, Contest, Measured, Question, Series
from scripts.benchlib.place import Place, Shot, measure, numbers, times_ns
from scripts.benchlib.table import Target

from hockney.units import format_bytes
from hockney.worker.catalogue import TransportInfo

_SAMPLES, _WARMUP = 101, 100
_BATCHES = {8: 500, 1 << 10: 300, 1 << 16: 20, 1 << 20: 2}
_SHOTS = [Shot(size, batch, _SAMPLES, _WARMUP) for size, batch in _BATCHES.items()]
_PAIRS = 2  # a round
_WITHIN = Target("0.98–1.02 × bare C", low=0.98, high=1.02)

# NetPIPE's method differs: it reports the best of a few trials, each a mean over many repetitions. It sends back the
# very buffer that it has received into, which was just written on another CPU. Hockney, OSU and bare C send a separate
# buffer, which the copying CPU has in its cache. Up to 1 KiB that makes no difference, because the library copies the
# message into memory that it shares; above, the measures differ.
_NETPIPE_TRIALS = 3
_NETPIPE_BATCHES = {8: 4_000, 1 << 10: 2_000, 1 << 16: 200, 1 << 20: 20}
_NETPIPE_SHOTS = [Shot(size, batch, _NETPIPE_TRIALS, _WARMUP) for size, batch in _NETPIPE_BATCHES.items()]
_NETPIPE = Target("≤ 1.02 × NetPIPE", high=1.02)
_NETPIPE_ELSE = Target("none: NetPIPE moves fresh data")
_NETPIPE_COMPARABLE_BYTES = 1 << 10
_BITS_PER_MBPS = 1 << 20  # its megabit


def mpi(place: Place) -> list[Series]:
    """The part `mpi`."""
    infos = place.mpis()
    if not infos:
        return [Absent("mpi", "mpi: half round trip", _WITHIN, "no MPI is here")]
    return [*(_against_bare(place, info) for info in infos), _against_netpipe(place)]


def _question(what: str, size: int, target: Target, peer: str) -> Question:
    return Question(f"{what} {format_bytes(size)}", target, "hockney", peer, fractional=True)


def _hockney(
    place: Place, info: TransportInfo, shots: Sequence[Shot], pick: Callable[[list[float]], float]
) -> Measured:
    with place.worker(info.name) as session:
        return {shot.bytes: pick(times_ns(measure(session, "pingpong", shot))) for shot in shots}


def _against_bare(place: Place, info: TransportInfo) -> Contest:
    assert info.library is not None
    compiler = info.library.recipe.compiler
    cpus = ",".join(map(str, place.cpus))
    words = [cpus, str(_SAMPLES), str(_WARMUP), *(f"{size}:{batch}" for size, batch in _BATCHES.items())]

    def theirs() -> Measured:
        lines = place.mpiexec(info.name, [str(place.built("mpi_bare.c", compiler)), *words])
        return {int(size): median_ns for size, median_ns in numbers(lines, 2)}

    return Contest(
        info.name,
        {size: _question(f"{info.name}: half round trip,", size, _WITHIN, "bare C") for size in _BATCHES},
        lambda: _hockney(place, info, _SHOTS, pick=lambda times: times[_SAMPLES // 2]),
        theirs,
        _PAIRS,
    )


def _against_netpipe(place: Place) -> Series:
    program = shutil.which("NPopenmpi")
    # It is linked with the system's Open MPI, never with a wheel.
    info = next(
        (info for info in place.mpis("openmpi") if info.library is not None and not info.library.is_wheel), None
    )
    if program is None or info is None:
        why = "NPopenmpi is not installed" if info is not None else "the system has no Open MPI"
        return Absent("NetPIPE", f"mpi: best of {_NETPIPE_TRIALS}", _NETPIPE, why)
    what = f"{info.name}: best of {_NETPIPE_TRIALS},"
    targets = {size: _NETPIPE if size <= _NETPIPE_COMPARABLE_BYTES else _NETPIPE_ELSE for size in _NETPIPE_BATCHES}
    return Contest(
        "NetPIPE",
        {size: _question(what, size, target, "NetPIPE") for size, target in targets.items()},
        lambda: _hockney(place, info, _NETPIPE_SHOTS, pick=min),
        lambda: {shot.bytes: _netpipe(place, info, program, shot) for shot in _NETPIPE_SHOTS},
    )


def _netpipe(place: Place, info: TransportInfo, program: str, shot: Shot) -> float:
    """Half a round trip in ns, from the rate, which has more digits. NetPIPE can't pin itself, so a shell does it."""
    page = place.folder / "netpipe.out"
    words = [program, "-l", str(shot.bytes), "-u", str(shot.bytes), "-p", "0", "-n", str(shot.batch), "-o", str(page)]
    cpus = " ".join(map(str, place.cpus))
    script = f"set -- {cpus}; shift $OMPI_COMM_WORLD_LOCAL_RANK; exec taskset -c $1 {shlex.join(words)}"
    place.mpiexec(info.name, ["sh", "-c", script])
    ((_, mbps, _),) = numbers(page.read_text().splitlines(), 3)
    return shot.bytes * 8 / (mbps * _BITS_PER_MBPS) * 1e9
