"""Made-up runs of `hockney health`: rates, latencies and losses from each host to each other are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.report.runs import FACTS, Made, options, store_run

from hockney.analysis.clusters import Pair
from hockney.analysis.health import Health, health_of
from hockney.analysis.health.matrices import UNUSABLE
from hockney.analysis.pairs import partners
from hockney.model import Point
from hockney.results.runs import open_results

BYTES, WINDOW = 16384, 16
RATE, LATENCY_NS, SEGMENTS = 100e6, 20_000.0, 1000.0  # usual, bytes/s; segments of each measurement


def store_health(
    path: Path,
    hosts: int,
    *,
    rates: Mapping[Pair, float] | None = None,
    latencies: Mapping[Pair, float] | None = None,
    lost: Mapping[Pair, float] | None = None,
    needless: float = 0.0,
    unmeasured: Sequence[int] = (),
    down: Sequence[Pair] = (),
    known: Sequence[Mapping[str, Any]] = (),
    unusable: Mapping[str, str] | None = None,
    clocks: Sequence[Mapping[str, Any]] = (),
    counted: Sequence[Mapping[str, Any]] = (),
    worse: Sequence[Mapping[str, Any]] = (),
    plan: Mapping[str, Any] | None = None,
    started_unix_s: float = 1e9,
    **made: Any,
) -> None:
    """Store a run of hosts n1, n2, …, counted from 0 here.

    `rates` and `latencies` are parts or multiples of the usual ones, by pair, `lost` segments of each measurement.
    `down`: pairs of which a measurement each loses a tenth of its segments. `unmeasured` are rounds that were not
    reached, `known` what hosts said of themselves, `clocks` comparisons of theirs, `counted` by interfaces, `worse`
    than in earlier runs, `made` of every point, `plan` of the run.
    """
    rates, latencies, lost = rates or {}, latencies or {}, lost or {}
    points = []
    for round_ in range(1, hosts + hosts % 2):
        if round_ in unmeasured:
            continue
        met = partners(hosts, round_)
        times_ns = [LATENCY_NS] * hosts
        for a, b in met:
            times_ns[a] = times_ns[b] = LATENCY_NS * latencies.get((a, b), 1.0)
        ping = Point("tcp", "rounds", hosts, 8, _options(round=round_, default={"round": 1}))
        points.append(Made(ping, max(times_ns), divisor=2, by_rank=times_ns, timed="slowest"))
        for direction in ("up", "down"):
            by_rank, again = [1e9 * BYTES / RATE] * hosts, [0.0] * hosts
            for a, b in met:
                pair = (a, b) if direction == "up" else (b, a)
                by_rank[a] = by_rank[b] = 1e9 * BYTES / RATE / rates.get(pair, 1.0)
                again[pair[0]] = lost.get(pair, 0.0) + needless
            default = {"round": 1, "direction": "up"}
            flow = Point(
                "tcp",
                "flows",
                hosts,
                BYTES,
                _options(round=round_, direction=direction, window=WINDOW, default=default),
            )
            counters = {
                "segments": (SEGMENTS,) * hosts,
                "retransmits": tuple(again),
                "needless_retransmits": (needless,) * hosts,
            }
            whole = Made(
                flow, max(by_rank), divisor=WINDOW, by_rank=by_rank, timed="slowest", counters=counters, batch=4
            )
            for pair in down:
                if pair in ([(a, b) for a, b in met] if direction == "up" else [(b, a) for a, b in met]):
                    gone = tuple(SEGMENTS / 10 * (rank == pair[0]) for rank in range(hosts))
                    with_loss = replace(whole, measurements=1, counters={**counters, "retransmits": gone})
                    whole = replace(with_loss, then=whole)
            points.append(whole)
    names = [f"n{number + 1}" for number in range(hosts)]
    planned = {"hosts": names, "precision": 0.05, UNUSABLE: dict(unusable or {}), **(plan or {})}
    command = f"hockney health --hosts {','.join(names)}"
    facts = {
        **FACTS,
        "traits": {"transports": {"tcp": {}}},
        "hosts": list(known),
        "clocks": list(clocks),
        "counters": list(counted),
        "worse_hosts": list(worse),
    }
    listed = [replace(point, **made) for point in points]
    store_run(path, "health", listed, facts=facts, plan=planned, command=command, started_unix_s=started_unix_s)


def _options(*, default: Mapping[str, object], **given: object) -> tuple[tuple[str, str], ...]:
    return options(**{name: value for name, value in given.items() if default.get(name) != value})


def read_health(path: Path) -> Health:
    """The health that the last run shows."""
    with open_results(path) as results:
        return health_of(results.run("last"))


def known_host(name: str, **more: Any) -> dict[str, Any]:
    """What a host says of itself."""
    return {
        "name": name,
        "kernel": "Linux 6.1",
        "libc": "glibc 2.36",
        "congestion": "cubic",
        "cpu": "Test CPU",
        "libraries": {"mpi@mpich": "4.0"},
        "clock_offset_s": 0.0,
        "clock_error_s": 0.01,
        "interfaces": [{"name": "eth0", "mtu_bytes": 1500, "bits_per_s": 10**9, "address": "10.0.0.1"}],
        **more,
    }
