"""The part `layers`: UCX and libfabric's providers against their own benchmarks, ucx_perftest and fi_pingpong."""

from __future__ import annotations

import re
import shutil
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence

from scripts.benchlib.contests import Absent, Contest, Question, Series
from scripts.benchlib.place import BareFailed, Place, Shot, measure, output_of, times_ns
from scripts.benchlib.table import Target

from hockney.units import format_bytes
from hockney.worker.catalogue import TransportInfo

# Both give means over all repetitions, so ours are means, too.
_SAMPLES = 20
_ROUNDS = 8  # a quadruple starts ten programs: of all providers a round takes a minute
_BATCHES = {8: 2_000, 1 << 10: 1_000, 1 << 16: 100, 1 << 20: 10}
_SLOWER = 8  # through the kernel, so many times fewer repetitions
_TARGET = Target("0.98–1.02 × {}", low=0.98, high=1.02)
_LIMIT_S, _PAUSE_S = 15.0, 0.05  # of a peer with its start; between two tries, until its server listens


def layers(place: Place) -> list[Series]:
    """The part `layers`: the plain transports of both."""
    found = [info for name, info in place.catalogue.transports.items() if re.match("(ucx|ofi)@", name)]
    plain = [info for info in found if ":" not in info.name]
    whose: dict[str, Callable[[Place, TransportInfo, Shot], float]] = {"ucx": _ucx_perftest, "ofi": _fi_pingpong}
    series: list[Series] = [_contest(place, info, whose[info.name[:3]]) for info in plain]
    absent = [base for base in whose if not any(info.name.startswith(base) for info in plain)]
    return [*series, *(Absent(base, f"{base}: half round trip", _TARGET, f"no {base} is here") for base in absent)]


def _contest(place: Place, info: TransportInfo, peer: Callable[[Place, TransportInfo, Shot], float]) -> Series:
    name = peer.__name__.removeprefix("_")
    target = Target(_TARGET.text.format(name), _TARGET.low, _TARGET.high)
    if shutil.which(name) is None:
        return Absent(info.name, f"{info.name}: half round trip", target, f"{name} is not installed")
    through_kernel = re.search("tcp|udp|net|sockets", info.name) is not None
    shots = [Shot(size, batch // (_SLOWER if through_kernel else 1) + 1, _SAMPLES) for size, batch in _BATCHES.items()]

    def ours() -> dict[int, float]:
        with place.worker(info.name) as session:
            return {shot.bytes: statistics.fmean(times_ns(measure(session, "pingpong", shot))) for shot in shots}

    return Contest(
        info.name,
        {
            shot.bytes: Question(
                f"{info.name}: half round trip, {format_bytes(shot.bytes)}", target, "hockney", name, fractional=True
            )
            for shot in shots
        },
        ours,
        lambda: {shot.bytes: peer(place, info, shot) for shot in shots},
        rounds_max=_ROUNDS,
    )


def _ucx_perftest(place: Place, info: TransportInfo, shot: Shot) -> float:
    """Half a round trip in ns, with messages by tag."""
    count, port = str(shot.batch * shot.samples), str(_free_port())
    words = ["-t", "tag_lat", "-s", str(shot.bytes), "-n", count, "-w", str(shot.batch), "-p", port]
    said = _between(place, ["ucx_perftest", *words], ["127.0.0.1"])
    final = re.search(r"^Final:\s+\d+\s+\S+\s+\S+\s+(\S+)", said, re.MULTILINE)
    if final is None:
        raise BareFailed(f"ucx_perftest says no time: {said[-300:]}")
    return float(final[1]) * 1e3


def _fi_pingpong(place: Place, info: TransportInfo, shot: Shot) -> float:
    """Half a round trip in ns, from the rate, which has more digits."""
    assert info.library is not None
    count, port = str(shot.batch * shot.samples), str(_free_port())
    provider = dict(info.library.environment)["HOCKNEY_OFI_PROVIDER"]
    words = ["-p", provider, "-e", "rdm", "-m", "tagged", "-I", count, "-S", str(shot.bytes)]
    said = _between(place, ["fi_pingpong", *words], ["-P", port, "127.0.0.1"], ["-B", port])
    row = re.search(r"^\S+\s+\S+\s+=\S+\s+\S+\s+\S+s\s+(\S+)\s+(\S+)", said, re.MULTILINE)
    if row is None:
        raise BareFailed(f"fi_pingpong says no rate: {said[-300:]}")
    return shot.bytes / float(row[1]) * 1e3


def _between(place: Place, words: Sequence[str], client: Sequence[str], server: Sequence[str] = ()) -> str:
    """The output of a client, whose server runs on the other CPU."""
    first, second = ([shutil.which("taskset") or "taskset", "-c", str(cpu), *words] for cpu in place.cpus)
    with subprocess.Popen([*first, *server], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until_s = time.monotonic() + _LIMIT_S
            while True:
                time.sleep(_PAUSE_S)
                try:
                    return "\n".join(output_of([*second, *client], limit_s=until_s - time.monotonic()))
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
