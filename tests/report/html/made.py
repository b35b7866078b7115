"""A made-up machine for the page: every section has something to show, and every text from outside is hostile."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest import mock

from tests.builders import make_matrix
from tests.report.runs import FACTS, Made, options, store_run

from hockney.model import Point, Warning_
from hockney.render.html.page import html_page
from hockney.report.documents.pairs import rank_values
from hockney.report.page import page_of
from hockney.report.page.material import Material, material_of
from hockney.results.runs import open_results
from hockney.worker.background import Background

HOSTILE = "<script>alert(1)</script>"
BREAKOUT = '</script><img src=x onerror="alert(2)">' + 80 * "n"  # without a place to break
LIBRARIES = {"mpi@openmpi-4.1.4": f"Open MPI 4.1.4 {BREAKOUT}", "shm": HOSTILE}
SIZES = (0, 8, 64, 512, 2048, 4096, 8192, 32768, 131072, 1 << 20)
TRANSPORTS = {"shm": (50.0, 0.02), "threads": (48.0, 0.02), "mpi@openmpi-4.1.4": (120.0, 0.07), "unix": (14e3, 0.1)}
LOADED = ("mpi@openmpi-4.1.4", "unix")  # take three times as long under the background
BACKGROUND = Background("incast", 3, hosts=("n3", HOSTILE, BREAKOUT))
PATTERNS = {
    "pingpong": {"links": "ends", "summary": f"to and fro; half the round trip {HOSTILE}{BREAKOUT}"},
    "oneway": {"stream": True, "links": "ends", "summary": "one after the other"},
}
MACHINE: dict[str, Any] = {**FACTS, "hostname": HOSTILE, "board": BREAKOUT, "traits": {"patterns": PATTERNS}}


def made_points(slower: float = 1.0) -> Iterator[Made]:
    """The points of a machine whose MPI takes this many times as long."""
    for transport, (latency_ns, ns_per_byte) in TRANSPORTS.items():
        factor = slower if transport.startswith("mpi") else 1.0
        for size in SIZES:
            switch_ns = 1500.0 if transport.startswith("mpi") and size > 2048 else 0.0
            time_ns = factor * (latency_ns + ns_per_byte * size + switch_ns)
            batch = 1 if size >= 131072 else 1000
            point = Point(transport, "pingpong", 2, size)
            of_all = Made(point, time_ns, 2, 2 * size, batch=batch, measurements=40, floor_ns=40.0, scatter=0.03)
            yield of_all
            if transport in LOADED and size in (8, 131072):
                yield replace(of_all, point=point.under(BACKGROUND.name), time_ns=3 * time_ns)
        for size in (65536, 1 << 20):
            point = Point(transport, "oneway", 2, size, options(window=16))
            yield Made(point, factor * ns_per_byte * size, 16, 16 * size, floor_ns=40.0)
        for ranks in (2, 3, 4):
            point = Point(transport, "alltoall", ranks, 1024)
            size = ranks * (ranks - 1) * 1024
            yield Made(point, factor * ranks * latency_ns * 2, 1, size, timed="slowest", floor_ns=40.0)
    for size in SIZES[1:]:
        yield Made(Point("null", "memcpy", 1, size), 2 + 0.01 * size, 1, size)
    for source in range(4):
        for target in range(source + 1, 4):
            slow = 3.0 if (source, target) == (1, 3) else 1.0
            point = Point("shm", "pingpong", 4, 1024, options(source=source, target=target))
            yield Made(point, slow * 70, 2, 2048, floor_ns=40.0)


def store_made(path: Path, label: str = "weekly", slower: float = 1.0) -> None:
    """Store the run of this made page."""
    warning = Warning_("load", "machine", f"Busy: {HOSTILE}.", BREAKOUT)
    store_run(
        path,
        "quick",
        list(made_points(slower)),
        pinned=True,
        facts=MACHINE,
        libraries=LIBRARIES,
        warnings=[warning],
        label=label,
        launches=({"index": 0}, {"index": 1}, {"index": 2}),
        plan={"precision": 0.01, "background": asdict(BACKGROUND)},
        command=f"hockney quick --label {BREAKOUT}",
    )


@contextmanager
def material(path: Path, *made: Made, suite: str = "mine", **info: Any) -> Iterator[Material]:
    """What the page of a run of these points is made of."""
    store_run(path / "r.db", suite, made, **info)
    with open_results(path / "r.db") as results:
        yield material_of(results, results.run(), [])


def pingpong(transport: str, size: int = 8, time_ns: float = 50.0, **more: Any) -> Made:
    """Half a round trip of a message takes this time."""
    return Made(Point(transport, "pingpong", 2, size), time_ns, 2, 2 * size, **more)


def write_large_page(folder: Path, ranks: int = 256, transports: int = 100) -> Path:
    """The page of a run with many curves of 7 sizes, and a matrix of many ranks; pair (3, 5) takes 4 us."""
    store_run(
        folder / "large.db",
        "mine",
        [
            pingpong(f"made{i}", 1 << power, 50.0 + i + (1 << power) / (i + 1), measurements=6)
            for i in range(transports)
            for power in range(0, 20, 3)
        ],
    )
    times_ns = {(a, b): 1000.0 + a * b % 997 for a, b in itertools.permutations(range(ranks), 2)} | {(3, 5): 4000.0}
    matrix = make_matrix(ranks, times_ns, transport="made0")
    page = folder / "large.html"
    with (
        open_results(folder / "large.db") as results,
        mock.patch("hockney.report.page.matrices_of", return_value=[rank_values(matrix, str)]),
    ):
        text = html_page(page_of(results, results.run("last"), []))
    page.write_text(text, encoding="utf-8")
    return page
