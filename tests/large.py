"""A large made-up run, to measure how fast a command reads one: `python -m tests.large FILE [LAUNCHES]`.

5,000 series (10 transports, 5 patterns, 100 sizes), 10 visits each, 200 samples a visit: 10 million samples. Each call
adds a run to the file; of several launches each has its part of the visits.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.builders import make_info, make_launch

from hockney.model import Definition, Point, PointStatus, RunStatus, Visit
from hockney.store import Store

PATTERNS = {
    "pingpong": Definition("root", 2, 2, 2),
    "oneway": Definition("root", 1, 1, 1),
    "twoway": Definition("root", 2, 2, 2),
    "pairs": Definition("sources", 1, 1, 1),
    "bisection": Definition("slowest", 2, 2, 2),
}


def store_large_run(
    path: Path,
    transports: Sequence[str],
    sizes: Sequence[int],
    visits: int = 10,
    samples: int = 200,
    launches: int = 1,
) -> None:
    """Each point's time is a straight line over its size, with 1 % of noise."""
    with Store.open(path) as store:
        run = store.create_run(make_info(facts={"memory": {"page_bytes": 4096}}))
        random = np.random.default_rng(run)
        points = [
            Point(transport, pattern, 2, size) for transport in transports for pattern in PATTERNS for size in sizes
        ]
        store.add_points(run, points)
        for round_ in range(visits):
            if round_ * launches % visits < launches:
                started = {name: store.add_launch(run, make_launch(name, index=round_)) for name in transports}
            store.write_round(
                run, [_visit(point, started[point.transport], round_, samples, random) for point in points]
            )
        for point in points:
            store.set_status(run, point, PointStatus.PRECISE)
        store.finish_run(run, RunStatus.DONE)


def _visit(point: Point, launch_id: int, round_: int, samples: int, random: np.random.Generator) -> Visit:
    line = PATTERNS[point.pattern]
    batch = 10
    time_ns = (100 + point.bytes * 0.05) * line.divisor * batch
    return Visit(
        point=point,
        launch_id=launch_id,
        round=round_,
        started_unix_s=1000.5 + round_,
        batch=batch,
        definition=Definition(
            line.timed, line.divisor, line.bytes_per_rep * point.bytes, line.messages_per_rep, line.algorithm
        ),
        elapsed_ns=(time_ns * random.normal(1, 0.01, (point.ranks, samples))).astype(np.int64),
        cpu_user_ns=(1_000_000,) * point.ranks,
        cpu_system_ns=(0,) * point.ranks,
        wall_ns=(1_000_000,) * point.ranks,
        floor_ns=(30.0 + random.normal(0, 0.3), 30.0 + random.normal(0, 0.3)),
        floor_kind="line",
        pace_ns=((0.63, 0.63), (0.63, 0.63)),
        verified=True,
    )


if __name__ == "__main__":
    made = sorted({8 * round(1.17**i) for i in range(120)})[:100]
    store_large_run(
        Path(sys.argv[1]), [f"made{i}" for i in range(10)], made, launches=int(sys.argv[2]) if sys.argv[2:] else 1
    )
