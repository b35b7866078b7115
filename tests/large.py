"""A large made-up run, to measure how fast a command reads one: `python -m tests.large FILE [LAUNCHES [KIND]]`.

5,000 series of 10 transports, 10 measurements each, 200 samples a measurement: 10 million samples. KIND is `plain` (5
patterns, 100 sizes each) or `varied` (all that `explain` searches: 16 patterns, up to 8 ranks, options, pairs of ranks,
switches). Each call adds a run to the file; several launches share the measurements evenly.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from tests.builders import make_info, make_launch, make_measurement

from hockney.model import Definition, Measurement, Point, PointStatus, RunStatus
from hockney.results.store import Store

MEASUREMENTS = 10
SAMPLES = 200
BATCH = 10
DELAY_NS = 1_000_000
SIZES = sorted({8 * round(1.17**i) for i in range(120)})[:100]
TRANSPORTS = [f"made{i}" for i in range(10)]

Options = tuple[tuple[str, str], ...]
Series = tuple[str, int, int, Options]  # pattern, ranks, bytes, options

DEFINITIONS = {
    "pingpong": Definition("root", 2, 2, 2),
    "oneway": Definition("root", 1, 1, 1),
    "twoway": Definition("root", 2, 2, 2),
    "pairs": Definition("sources", 1, 1, 1),
    "bisection": Definition("slowest", 2, 2, 2),
    "prtt": Definition("root", 1, 0, 2),
    "rounds": Definition("slowest", 2, 2, 2),
    "outfarm": Definition("slowest", 1, 1, 1),
    "multicast": Definition("slowest", 1, 1, 1),
    "alltoall": Definition("slowest", 1, 1, 1),
    "barrier": Definition("slowest", 1, 0, 1),
    "ring": Definition("slowest", 1, 1, 1),
    "putring": Definition("slowest", 1, 1, 1),
    "put": Definition("root", 1, 1, 1),
    "robpush": Definition("root", 1, 1, 1),
    "stream": Definition("root", 1, 1, 1),
}


def plain() -> Iterator[Series]:
    """One transport's 500 series."""
    for pattern, size in itertools.product(("pingpong", "oneway", "twoway", "pairs", "bisection"), SIZES):
        yield pattern, 2, size, ()


def varied() -> Iterator[Series]:
    """One transport's 500 series."""
    yield from (("pingpong", 2, size, ()) for size in SIZES[::2])
    for pattern, options in (("oneway", ()), ("twoway", ()), ("oneway", (("window", "16"),)), ("put", ())):
        yield from ((pattern, 2, size, options) for size in SIZES[::4])
    for messages, delay, size in itertools.product(("1", "16"), ("0", str(DELAY_NS)), SIZES[:60:4]):
        yield "prtt", 2, size, (("delay_ns", delay), ("messages", messages))
    for source, target in itertools.combinations(range(8), 2):
        yield "pingpong", 8, 1024, (("source", str(source)), ("target", str(target)))
    yield from (("rounds", 8, 1024, (("round", str(round_)),)) for round_ in range(1, 8))
    for pattern, ranks in itertools.product(("outfarm", "multicast", "alltoall", "pairs", "robpush"), (2, 4, 5, 6, 8)):
        yield from ((pattern, ranks, size, ()) for size in SIZES[:100:15])
    yield from (("barrier", ranks, 0, ()) for ranks in (2, 4, 5, 6, 8))
    for pattern, ranks in itertools.product(("bisection", "ring", "putring"), (4, 8)):
        yield from ((pattern, ranks, size, ()) for size in SIZES[::13])
    for write in ("blocking", "nonblocking"):
        yield from (("stream", 2, size, (("write", write),)) for size in SIZES[6::10])
    yield from (("robpush", ranks, 1024, (("delay_us", "10"),)) for ranks in range(2, 9))


KINDS = {"plain": plain, "varied": varied}


def store_large_run(path: Path, kind: str, launches: int = 1, transports: Sequence[str] = TRANSPORTS) -> None:
    """With 1 % of noise."""
    points = [Point(transport, *one) for transport in transports for one in KINDS[kind]()]
    places = sorted({(point.transport, point.ranks) for point in points})
    with Store.open(path) as store:
        run = store.create_run(make_info(facts={"memory": {"page_bytes": 4096}}), points)
        random = np.random.default_rng(run)
        for round_ in range(MEASUREMENTS):
            if round_ * launches % MEASUREMENTS < launches:
                started = {
                    (transport, ranks): store.add_launch(
                        run,
                        make_launch(
                            transport, index=round_, ranks=ranks, cpus=tuple(range(ranks)), hosts=("node",) * ranks
                        ),
                    )
                    for transport, ranks in places
                }
            store.write_round(
                run, [_measurement(point, started[point.transport, point.ranks], round_, random) for point in points]
            )
        for point in points:
            store.set_status(run, point, PointStatus.PRECISE)
        store.finish_run(run, RunStatus.DONE)


def _measurement(point: Point, launch_id: int, round_: int, random: np.random.Generator) -> Measurement:
    line = DEFINITIONS[point.pattern]
    ranks = point.ranks
    options = dict(point.options)
    time_ns = _time_ns(point, options) * line.divisor * BATCH
    paces_ns = random.normal(0.63, 0.002, (2, ranks)).tolist()
    delayed = options.get("delay_ns", "0") != "0"
    return make_measurement(
        point,
        (time_ns * random.normal(1, 0.01, (ranks, SAMPLES))).astype(np.int64),
        launch_id=launch_id,
        round_=round_,
        batch=BATCH,
        definition=Definition(line.timed, line.divisor, line.bytes_per_rep * point.bytes, line.messages_per_rep),
        cpu_user_ns=(1_000_000,) * ranks,
        cpu_system_ns=(0,) * ranks,
        wall_ns=(1_000_000,) * ranks,
        floor_ns=(30.0 + random.normal(0, 0.3), 30.0 + random.normal(0, 0.3)),
        started_ns=1_000_003 * round_,
        pace_ns=(tuple(paces_ns[0]), tuple(paces_ns[1])),
        counters={"delays": (BATCH, 0), "delay_ns": (BATCH * float(DELAY_NS), 0.0)} if delayed else {},
    )


def _time_ns(point: Point, options: Mapping[str, str]) -> float:
    """A straight line from 100 ns on, with steps at 4 KiB and at 64 KiB, times the number of messages."""
    size = point.bytes
    one_ns = 100 + 0.05 * size + (300 if size > 4096 else 0) + (2000 if size > 65536 else 0)
    if point.pattern == "prtt":
        messages, delay_ns = int(options["messages"]), int(options["delay_ns"])
        busy_ns = messages * (30 + delay_ns)
        return busy_ns + 2 * one_ns if delay_ns else 2 * one_ns + (messages - 1) * (50 + 0.04 * size)
    return one_ns * max(1, point.ranks - 1)


if __name__ == "__main__":
    file, launches, kind = (*sys.argv[1:], *("1", "plain")[len(sys.argv) - 2 :])
    store_large_run(Path(file), kind, int(launches))
