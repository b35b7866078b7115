"""The part `layers`: UCX against its own benchmark, ucx_perftest, libfabric's providers against bare C."""

from __future__ import annotations

import re
import shutil
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence

from scripts.benchlib.contests import Absent, Contest, Measured, Question, Series
from scripts.benchlib.place import BareFailed, Place, Shot, measure, output_of, times_ns
from scripts.benchlib.table import Target

from hockney.units import format_bytes
from hockney.worker.catalogue import TransportInfo

_SAMPLES = 20
_ROUNDS = 16  # a round of all takes 17 s
_BATCHES = {8: 2_000, 1 << 10: 1_000, 1 << 16: 100, 1 << 20: 10}
_SLOWER = 8  # through the kernel, so many times fewer repetitions
_TARGET = Target("0.98–1.02 × {}", low=0.98, high=1.02)
_LIMIT_S, _PAUSE_S = 15.0, 0.05  # of a peer with its start; between two tries, until its server listens


def layers(place: Place) -> list[Series]:
    """The part `layers`: the plain transports of both."""
    found = [info for name, info in place.catalogue.transports.items() if re.match("(ucx|ofi)@", name)]
    plain = [info for info in found if ":" not in info.name]
    series: list[Series] = [
        _of_ucx(place, info) if info.name.startswith("ucx") else _of_ofi(place, info) for info in plain
    ]
    absent = [base for base in ("ucx", "ofi") if not any(info.name.startswith(base) for info in plain)]
    return [*series, *(Absent(base, f"{base}: half round trip", _TARGET, f"no {base} is here") for base in absent)]


def _of_ucx(place: Place, info: TransportInfo) -> Series:
    """Against ucx_perftest, which gives means over all repetitions."""
    if shutil.which("ucx_perftest") is None:
        return Absent(info.name, f"{info.name}: half round trip", _TARGET, "ucx_perftest is not installed")
    shots = [Shot(size, batch, _SAMPLES) for size, batch in _BATCHES.items()]

    def theirs() -> Measured:
        return {shot.bytes: _ucx_perftest(place, shot) for shot in shots}

    return _contest(place, info, "ucx_perftest", shots, statistics.fmean, theirs)


def _of_ofi(place: Place, info: TransportInfo) -> Series:
    """Against the same calls in bare C: fi_pingpong times the making of its connection, too."""
    assert info.library is not None
    provider, recipe = dict(info.library.environment)["HOCKNEY_OFI_PROVIDER"], info.library.recipe
    slower = 1 if provider == "shm" else _SLOWER
    shots = [Shot(size, batch // slower + 1, _SAMPLES) for size, batch in _BATCHES.items()]
    cpus, sizes = ",".join(map(str, place.cpus)), [f"{shot.bytes}:{shot.batch}" for shot in shots]

    def theirs() -> Measured:
        rows = place.bare("ofi_bare.c", provider, cpus, _SAMPLES, *sizes, columns=2, recipe=recipe)
        return {int(size): half_ns for size, half_ns in rows}

    return _contest(place, info, "bare C", shots, statistics.median, theirs)


def _contest(
    place: Place,
    info: TransportInfo,
    peer: str,
    shots: Sequence[Shot],
    middle: Callable[[list[float]], float],
    theirs: Callable[[], Measured],
) -> Series:
    target = Target(_TARGET.text.format(peer), _TARGET.low, _TARGET.high)

    def ours() -> Measured:
        with place.worker(info.name) as session:
            return {shot.bytes: middle(times_ns(measure(session, "pingpong", shot))) for shot in shots}

    questions = {
        shot.bytes: Question(
            f"{info.name}: half round trip, {format_bytes(shot.bytes)}", target, "hockney", peer, fractional=True
        )
        for shot in shots
    }
    return Contest(info.name, questions, ours, theirs, rounds_max=_ROUNDS)


def _ucx_perftest(place: Place, shot: Shot) -> float:
    """Half a round trip in ns, with messages by tag."""
    count, port = str(shot.batch * shot.samples), str(_free_port())
    words = ["-t", "tag_lat", "-s", str(shot.bytes), "-n", count, "-w", str(shot.batch), "-p", port]
    said = _between(place, ["ucx_perftest", *words])
    final = re.search(r"^Final:\s+\d+\s+\S+\s+\S+\s+(\S+)", said, re.MULTILINE)
    if final is None:
        raise BareFailed(f"ucx_perftest says no time: {said[-300:]}")
    return float(final[1]) * 1e3


def _between(place: Place, words: Sequence[str]) -> str:
    """The output of a client, whose server runs on the other CPU."""
    first, second = ([shutil.which("taskset") or "taskset", "-c", str(cpu), *words] for cpu in place.cpus)
    with subprocess.Popen(first, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until_s = time.monotonic() + _LIMIT_S
            while True:
                time.sleep(_PAUSE_S)
                try:
                    return "\n".join(output_of([*second, "127.0.0.1"], limit_s=until_s - time.monotonic()))
                except BareFailed as error:
                    is_late = time.monotonic() + _PAUSE_S >= until_s
                    if is_late or process.poll() is not None:
                        why = f"it did not end within {_LIMIT_S:g} s" if is_late else error
                        raise BareFailed(f"{' '.join(words)}: {why}") from error
        finally:
            process.kill()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
