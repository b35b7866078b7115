"""Points, measurements and runs for tests, with defaults for everything that a test does not set."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import shutil
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from hockney.analysis.pairs import PairMatrix
from hockney.model import IMPORTED, Definition, Launch, Measurement, Point, PointStatus, RunInfo, RunStatus
from hockney.results.figures import Figure, Frame
from hockney.results.runs import Run, Series
from hockney.results.store import StoredPoint, StoredRun, schema, summary_of
from hockney.results.traits import pattern_traits, traits_json
from hockney.stats import classify
from hockney.stats.interval import Interval
from hockney.suites import Limits
from hockney.worker.build import Recipe, build_worker
from hockney.worker.catalogue import OptionInfo, PatternInfo, TransportInfo, load
from hockney.worker.libraries import Library
from hockney.worker.placement import Placement, listed_hosts

HALF_ROUND_TRIP = Definition(timed="root", divisor=2, bytes_per_rep=16, messages_per_rep=2)
SLOWEST = Definition(timed="slowest", divisor=1, bytes_per_rep=0, messages_per_rep=2, algorithm="portable")


@functools.cache
def traits_here() -> dict[str, Any]:
    """The traits of patterns and transports in the facts of a run: what the worker says of itself."""
    known = load(libraries=())
    return {"traits": traits_json(known.patterns.values(), known.transports.values())}


def make_point(size_bytes: int = 8, transport: str = "shm", pattern: str = "pingpong", **more: Any) -> Point:
    traits = more.pop("traits", None) or pattern_traits(traits_here(), pattern)
    return Point(transport, pattern, more.pop("ranks", 2), size_bytes, traits=traits, **more)


def make_library(
    its_id: str = "mpi@openmpi-4", kind: str = "openmpi", program: Path = Path("mpiexec"), *, is_wheel: bool = False
) -> Library:
    return Library(its_id, its_id, kind, program, Recipe(family="mpi", compiler=("mpicc",)), is_wheel)


def make_measurement(
    point: Point | None = None,
    elapsed_ns: Sequence[Sequence[int]] | np.ndarray[Any, Any] = ((200, 210, 220), (201, 211, 221)),
    *,
    launch_id: int = 1,
    round_: int = 0,
    batch: int = 1,
    definition: Definition = HALF_ROUND_TRIP,
    floor_ns: tuple[float, float] | None = (27.0, 28.0),
    **more: Any,
) -> Measurement:
    samples = np.asarray(elapsed_ns, dtype=np.int64)
    ranks = len(samples)
    known: dict[str, Any] = {
        "started_unix_s": 1000.5 + round_,
        "cpu_user_ns": tuple(range(10, 10 + ranks)),
        "cpu_system_ns": tuple(range(20, 20 + ranks)),
        "wall_ns": tuple(range(30, 30 + ranks)),
        "verified": True,
        "floor_kind": None if floor_ns is None else "line",
        "places": make_launch().places,
    }
    return Measurement(
        point=point or make_point(),
        launch_id=launch_id,
        round=round_,
        batch=batch,
        definition=definition,
        elapsed_ns=samples,
        floor_ns=floor_ns,
        **(known | more),
    )


def measurements_with_medians(
    medians_ns: Iterable[float], point: Point | None = None, definition: Definition = HALF_ROUND_TRIP, **more: Any
) -> list[Measurement]:
    """One measurement for each median of the pattern's time; its three samples lie 10 below, at and 10 above it."""
    scale = definition.divisor
    return [
        make_measurement(
            point,
            [[round(scale * (median_ns + away)) for away in (-10, 0, 10)]] * 2,
            definition=definition,
            round_=i,
            **more,
        )
        for i, median_ns in enumerate(medians_ns)
    ]


class MadeSeries(Series):
    """A point of a run that is in no file, with these measurements."""

    def __init__(self, run: Run, point: Point, measurements: Sequence[Measurement]) -> None:
        super().__init__(run, StoredPoint(1, point, PointStatus.PRECISE, None))
        self.measurements = tuple(measurements)
        self.numbered = dict(enumerate(measurements))
        self.states = tuple(classify([measurement.probe for measurement in measurements]))
        summaries = (summary_of(measurement)._replace(id=number) for number, measurement in self.numbered.items())
        self.pairs = list(zip(summaries, self.states, strict=True))


def figures_of(
    measurements: Sequence[Measurement], precision: float | None = None, *, imported: bool = False
) -> list[Figure]:
    """The figures of one point, as a run with these measurements alone has them."""
    plan: dict[str, Any] = {"precision": precision, **({IMPORTED: []} if imported else {})}
    run: Any = SimpleNamespace(info=make_info(plan=plan), launches={}, harness=frozenset())
    series = MadeSeries(run, measurements[0].point if measurements else make_point(), measurements)
    run.series = [series]
    run.frame = Frame(run)
    return series.figures()


def make_info(label: str | None = None, **more: Any) -> RunInfo:
    known: dict[str, Any] = {
        "command": "hockney quick",
        "suite": "quick",
        "label": label,
        "started_unix_s": 1000.25,
        "seed": 7,
        "version": "0.1.0",
        "facts": {"cpu": {"model": "Ω-9", "cores": 2}, "governor": None},
        "plan": {"precision": 0.01},
    }
    made = RunInfo(**(known | more))
    return dataclasses.replace(made, facts={**traits_here(), **made.facts})


def make_stored(suite: str, plan: dict[str, Any]) -> StoredRun:
    """A stored run with this plan, without launches."""
    return StoredRun(1, make_info(suite=suite, plan=plan), RunStatus.DONE, None, 0.0, 0, {}, ())


def make_placement(hosts: Sequence[str] = (), **more: Any) -> Placement:
    """Hosts by their words, and fields of a placement."""
    return Placement(listed_hosts(hosts), **more)


def make_settings(**fields: Any) -> dict[str, Any]:
    """Fields of plans and of their limits, as a plan takes them."""
    known = {each.name for each in dataclasses.fields(Limits)}
    limits = Limits(**{name: value for name, value in fields.items() if name in known})
    return {"limits": limits, **{name: value for name, value in fields.items() if name not in known}}


def make_launch(transport: str = "shm", **more: Any) -> Launch:
    known: dict[str, Any] = {
        "transport": transport,
        "library": "hockney shm",
        "ranks": 2,
        "started_unix_s": 1000.5,
        "argv": ("worker", "--ranks", "2"),
        "cpus": (0, -1),
        "hosts": ("here", "here"),
        "oversubscribed": False,
        "clock_ns": 21.5,
        "index": 1,
    }
    return Launch(**(known | more))


def make_matrix(ranks: int, times_ns: Mapping[tuple[int, int], float], **more: Any) -> PairMatrix:
    """The idle half round trips of 8 B between these pairs of ranks of one host."""
    known: dict[str, Any] = {
        "transport": "shm",
        "pattern": "pingpong",
        "options": (),
        "bytes": 8,
        "load": "idle",
        "state": "near",
        "floor_ns": 40.0,
        "hosts": ("here",) * ranks,
        "cpus": tuple(range(ranks)),
        "oversubscribed": False,
        "missing": 0,
        "classes": (),
        "outliers": (),
        "inconclusive": (),
    }
    times = {pair: Interval(time_ns, time_ns, time_ns, 9, 0.95) for pair, time_ns in times_ns.items()}
    return PairMatrix(ranks=ranks, shown=times, others=0, times=times, **(known | more))


def make_pattern(
    name: str,
    needs: Iterable[str] = ("send",),
    ranks: tuple[int, int, int] = (2, 0, 1),
    timed: str = "root",
    options: tuple[OptionInfo, ...] = (),
    **more: Any,
) -> PatternInfo:
    """A pattern as a worker would describe it."""
    made = {
        "summary": f"what {name} does",
        "kind": "point-to-point",
        "needs": frozenset(needs),
        "ranks": ranks,
        "timed": timed,
    }
    return PatternInfo(**{"name": name, **made, "options": options, **more})


_native = functools.cache(build_worker)  # looking it up reads all its sources


def make_transport(name: str, caps: Iterable[str] = ("send", "nonblocking", "payload"), **more: Any) -> TransportInfo:
    """A transport as a worker would describe it. The native worker checks its points, as of its `worker_name`."""
    made = {"summary": f"how {name} sends", "native": frozenset(), "max_bytes": 0, "executable": _native()}
    return TransportInfo(**{"name": name, "worker_name": "shm", "caps": frozenset(caps), **made, **more})


def run_sql(path: Path, *statements: str) -> list[Any]:
    """The rows of the last statement; each is its own transaction."""
    rows: list[Any] = []
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            rows = db.execute(statement).fetchall()
    return rows


def set_columns(db: sqlite3.Connection, table: str, columns: str, *values: object) -> None:
    """Change columns of all rows of a table of a store, as if hockney had written them."""
    db.create_function("checksum", -1, schema.checksum)
    db.execute(f"UPDATE {table} SET {columns}", values)
    for (row_id,) in db.execute(f"SELECT id FROM {table}").fetchall():
        schema.seal(db, table, row_id)


def copied_tree(copy: Path) -> Path:
    """A copy of the sources, tests and documents, to be changed, in this folder."""
    root = Path(__file__).parents[1]
    for name in ("src", "tests", "docs", "contrib"):
        shutil.copytree(root / name, copy / name)  # with Python's caches: times and sizes are kept
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml"):
        shutil.copy(root / name, copy / name)
    (copy / "scripts").symlink_to(root / "scripts")
    return copy
