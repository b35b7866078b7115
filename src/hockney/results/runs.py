"""The library: open a results file, walk its runs and their series, get arrays and figures.

A series is one point of a run (a pattern on a number of ranks over a transport with one message size) and all its
measurements. Reading is lazy: samples come from the file when they are first needed, and stay with their series. All
times are in ns. Everything raises StoreError if the file can't be used; names that match nothing raise UsageError.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from hockney import stats
from hockney.errors import UsageError
from hockney.model import Launch, Measurement, Point, PointStatus, RunInfo, RunStatus
from hockney.results.figures import SEVERAL_STATES, Figure, Frame
from hockney.results.store import MeasurementSummary, RunSummary, Store, StoredPoint
from hockney.results.traits import transport_traits
from hockney.stats.rates import misses_of

if TYPE_CHECKING:
    from hockney.model import FloatArray, Int64Array


def open_results(path: Path | str | None = None) -> Results:
    """Open a results file for reading; it may be read while a run writes to it.

    `path` defaults to HOCKNEY_STORE where that is set, else to `results.db` in the user's data folder. Raises
    StoreError where there is no file, or one that is not hockney's, is damaged, or was written by another version.
    The result is a context manager; runs and series taken from it read from the file while it is open.
    """
    return Results(Store.open(path, readonly=True))


class Results:
    """An open results file; made by `hockney.open`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def path(self) -> Path:
        """The file that is open."""
        return self._store.path

    @property
    def store(self) -> Store:
        """The file itself, as comparisons read it."""
        return self._store

    def runs(self) -> list[RunSummary]:
        """One summary per run, oldest first: number, label, command, times, status, transports, points by status."""
        return self._store.runs()

    def run(self, reference: str | int = "last") -> Run:
        """One run, by its number, its label (the newest that has it), `last`, or `last~2`, the second before that.

        Raises UsageError with the nearest run.
        """
        return Run(self._store, self._store.find_run(str(reference)))

    def close(self) -> None:
        """Close the file; values that were not read before cannot be read any more."""
        self._store.close()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Value = TypeVar("Value")


class Run:
    """A snapshot of one stored run.

    `label` is None without one; several runs may have the same label. `info` holds the facts known at its start:
    command, suite, seed, version of hockney, plan; `facts` are the machine's: CPU, caches, kernel, governor, versions,
    as nested dictionaries. `status` is RUNNING while a program measures it, KILLED if that program is gone;
    `finished_unix_s` is None for a run that has not ended. `rounds` counts the stored ones. `launches` are by the
    `launch_id` of measurements. `warnings` limit the figures; each kind is there once for its subject.
    """

    def __init__(self, store: Store, run_id: int) -> None:
        stored = store.run(run_id)
        self._store = store
        self.id = run_id
        self.info: RunInfo = stored.info
        self.label = stored.info.label
        self.facts: dict[str, Any] = stored.info.facts
        self.status: RunStatus = stored.status
        self.finished_unix_s, self.measured_s = stored.finished_unix_s, stored.measured_s
        self.rounds = stored.rounds
        self.launches: Mapping[int, Launch] = stored.launches
        self.warnings = stored.warnings

    def __repr__(self) -> str:
        return f"<hockney run {self.id}{f' {self.label}' if self.label else ''}: {self.info.command}>"

    @property
    def name(self) -> str:
        """`run 7 (before)`: its number, and its label if it has one."""
        return f"run {self.id}" + (f" ({self.label})" if self.label else "")

    @property
    def ending(self) -> str:
        """How it ended, in the word of its points."""
        return self.status.ending({series.status for series in self.series})

    @property
    def launch_count(self) -> int:
        """How often each job was launched, at most."""
        return len({launch.index for launch in self.launches.values()})

    @property
    def libraries(self) -> dict[str, str]:
        """The library of each transport, as its ranks name it: where jobs differ, that of two ranks, else of most."""
        ordered = sorted(self.launches.values(), key=lambda each: (each.library != "", each.ranks == 2, each.ranks))
        return {launch.transport: launch.library for launch in ordered}

    @functools.cached_property
    def harness(self) -> frozenset[str]:
        """The transports, ready or used, whose times are those of the harness itself: they carry nothing."""
        used = {launch.transport for launch in self.launches.values()} | {
            series.point.transport for series in self.series
        }
        names = used.union(self.facts.get("transports", ()))
        return frozenset(name for name in names if transport_traits(self.facts, name).is_harness)

    @functools.cached_property
    def series(self) -> tuple[Series, ...]:
        """All series in the order of the plan, also those without samples (skipped, failed, not reached)."""
        return tuple(self.each_series())

    @property
    def shown(self) -> list[Figure]:
        """The figures that tables show, without those of the harness itself if there are others."""
        figures = [series.shown for series in self.series if series.shown is not None]
        return [figure for figure in figures if not figure.is_harness] or figures

    def each_series(self) -> Iterator[Series]:
        """The same, one after the other: their samples do not stay in memory."""
        return (Series(self, stored) for stored in self._store.points(self.id))

    def find(
        self,
        *,
        transport: str | None = None,
        pattern: str | None = None,
        ranks: int | None = None,
        bytes: int | None = None,  # noqa: A002  # as Point calls it
        options: Mapping[str, str] | None = None,
    ) -> list[Series]:
        """The series that match all that is given; [] if none do.

        `transport` selects as `-t` does: `tcp`, `tcp:*`, `mpi` (every MPI), `mpi@openmpi`, `mpi@openmpi-4.1.4`.
        `options` are compared as a whole, `{}` finds the series without any.
        """
        from hockney.worker.catalogue import matches  # 25 ms

        wanted = None if options is None else tuple(sorted(options.items()))
        return [
            series
            for series in self.series
            if (transport is None or matches(transport, series.point.transport))
            and pattern in (None, series.point.pattern)
            and ranks in (None, series.point.ranks)
            and bytes in (None, series.point.bytes)
            and wanted in (None, series.point.options)
        ]

    def select(self, **where: Any) -> Series:
        """The one series that matches, as `find`. Raises UsageError where none or several do, and says which."""
        return self._only("series", {str(series.point): series for series in self.find(**where)})

    def curve(
        self,
        pattern: str,
        transport: str,
        *,
        ranks: int | None = None,
        options: Mapping[str, str] | None = None,
        state: str | None = None,
    ) -> Curve:
        """The times of all sizes of one curve as arrays; see Curve. `transport` and `options` as for `find`.

        `state` is a state of the machine; None takes the figures that tables show. Raises UsageError where no curve
        matches, or several do, and says which.
        """
        import numpy as np

        curves: dict[str, list[Series]] = {}
        for member in self.find(pattern=pattern, transport=transport, ranks=ranks, options=options):
            curves.setdefault(member.point.text(member.point.transport), []).append(member)
        members = self._only("curve", curves)
        rows = [
            figure
            for member in sorted(members, key=lambda member: member.point.bytes)
            for figure in member.figures_in(state)
        ]
        if state is not None and not rows:
            seen = sorted({figure.state for member in members for figure in member.figures()})
            raise UsageError(f"no figure of state '{state}': there are {'; '.join(seen) or 'none of any state'}")
        times = np.array([(row.time.value, row.time.low, row.time.high) for row in rows], dtype=float)
        states = tuple(row.state for row in rows)
        name = states[0] if len(set(states)) == 1 else SEVERAL_STATES
        sizes = np.array([row.point.bytes for row in rows], dtype=np.int64)
        values, low, high = times.reshape(-1, 3).T
        return Curve(sizes, values, low, high, name, states)

    def _only(self, kind: str, matching: Mapping[str, Value]) -> Value:
        if len(matching) == 1:
            return next(iter(matching.values()))
        if matching:
            shown = "; ".join([*itertools.islice(matching, 3), *(["…"] if len(matching) > 3 else [])])
            raise UsageError(f"several match in run {self.id}: {shown}. Ask for one of them")
        points = [series.point for series in self.series]
        known = "; ".join(
            f"{name}: {', '.join(map(str, sorted({getattr(point, name) for point in points})))}"
            for name in ("transport", "pattern", "bytes")
        )
        raise UsageError(f"no {kind} of run {self.id} matches; it has {known}")

    @functools.cached_property
    def frame(self) -> Frame:
        """What makes the figures of the run: it chooses the machine states that tables show."""
        return Frame(self)

    def state_of(self, transport: str, ranks: int) -> str | None:
        """The machine state that tables show of a job; None without measurements."""
        return self.frame.states.get((transport, ranks))

    @functools.cached_property
    def _measured(self) -> list[MeasurementSummary]:
        return self._store.summaries(self.id)

    @functools.cached_property
    def _states(self) -> list[stats.State]:
        """Of each measurement: levels of floor and pace are determined over all of the run."""
        return stats.classify([each.probe for each in self._measured])

    @functools.cached_property
    def _by_point(self) -> dict[int, list[tuple[MeasurementSummary, stats.State]]]:
        by_point: dict[int, list[tuple[MeasurementSummary, stats.State]]] = {}
        for pair in zip(self._measured, self._states, strict=True):
            by_point.setdefault(pair[0].point_id, []).append(pair)
        return by_point


def states_together(base: Run, new: Run) -> list[dict[int, stats.State]]:
    """The machine states of each run's measurements, by their numbers, with the same names in both.

    Alone, a run that was slow throughout is quiet. Runs on two CPU models keep the names that each has alone.
    """
    from hockney.machine.facts import fact  # 20 ms, and few commands need it

    runs, models = (base, new), {fact(run.facts, "cpu.model") for run in (base, new)}
    probes = ([each.probe for each in run._measured] for run in runs)
    states = stats.classify_both(*probes) if len(models) == 1 else (base._states, new._states)
    return [
        {each.id: state for each, state in zip(run._measured, of_run, strict=True)}
        for run, of_run in zip(runs, states, strict=True)
    ]


class Curve(NamedTuple):
    """The times of one pattern on one transport by message size, ascending.

    `sizes` are in bytes; `times` are typical times in ns (the median; over launches, the geometric mean of their
    medians), `low` and `high` their confidence intervals, or the extremes seen where there are too few measurements for
    one. All have the shape (sizes,), as have the machine `states` of the figures. `state` is the one of all, or
    "several states".
    """

    sizes: Int64Array
    times: FloatArray
    low: FloatArray
    high: FloatArray
    state: str
    states: tuple[str, ...]


class Series:
    """One `point` of a run and all its measurements; `status` is how far it got, `reason` a sentence with the cause."""

    def __init__(self, run: Run, stored: StoredPoint) -> None:
        self.run = run
        self.id = stored.id
        self._stored = stored
        self.point: Point = stored.point
        self.status: PointStatus = stored.status
        self.reason = stored.reason

    def __repr__(self) -> str:
        return f"<hockney series {self.point}: {self.status.value}>"

    @functools.cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """Every measurement in the order of measuring, with samples, floors, CPU times and definition."""
        return tuple(self.numbered.values())

    @functools.cached_property
    def numbered(self) -> dict[int, Measurement]:
        """The same by the number that its MeasurementSummary has, too."""
        return self.run._store.measurements(self._stored)

    @functools.cached_property
    def states(self) -> tuple[stats.State, ...]:
        """The state of the machine at each measurement, as seen over the whole run."""
        known = {summary.id: state for summary, state in self.pairs}
        # A run that is being measured may have gained measurements since: their state is not known yet.
        return tuple(known.get(number, stats.UNKNOWN) for number in self.numbered)

    @functools.cached_property
    def pairs(self) -> list[tuple[MeasurementSummary, stats.State]]:
        """Every measurement with the machine's state, without samples."""
        return self.run._by_point.get(self.id, [])

    @functools.cached_property
    def counts(self) -> Counter[str]:
        """How many measurements with a time were made in each state of the machine, by its name."""
        return Counter(state.name for measurement, state in self.pairs if measurement.median_ns is not None)

    def unit_of(self, measurement: MeasurementSummary) -> int:
        """The number of the value that it is a part of where runs are compared: of its launch."""
        return self.run.launches[measurement.launch_id].index

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The starts of a job that its measurements belong to."""
        return tuple(self.run.launches[number] for number in dict.fromkeys(each.launch_id for each, _ in self.pairs))

    @property
    def oversubscribed(self) -> bool:
        """Whether there were more ranks than CPUs in one of its launches: its times are then a scheduler's."""
        return any(launch.oversubscribed for launch in self.launches)

    @property
    def is_harness(self) -> bool:
        """Whether its transport measures the harness itself."""
        return self.point.transport in self.run.harness

    @property
    def is_exact(self) -> bool:
        """Whether its clock is a model's without noise: its figures are then their own bounds."""
        return bool(self.run.info.plan.get("virtual", {}).get(self.point.transport))

    @functools.cached_property
    def verdict(self) -> str | None:
        """`held` if its rate of events is sustained, or what it misses, `missed: backlog`; None without a search."""
        deadline_ns = self.run.info.plan.get("deadline_ns")
        if deadline_ns is None or not self.point.rate_hz or not self.measurements:
            return None
        missed = misses_of(self.measurements, deadline_ns)
        return f"missed: {missed}" if missed else "held"

    @property
    def elapsed_ns(self) -> list[Int64Array]:
        """Per measurement the raw samples, ns of `batch` repetitions: shape (ranks, samples), int64."""
        return [measurement.elapsed_ns for measurement in self.measurements]

    @property
    def times_ns(self) -> FloatArray:
        """The pattern's time, one value per sample over all measurements: shape (samples,), float64, ns.

        The pattern's definition (docs/metrics.md) selects the ranks whose samples count, divided by batch and divisor.
        All machine states are included; `states` has the state of each measurement.
        """
        import numpy as np

        return np.concatenate([np.empty(0), *(measurement.times_ns() for measurement in self.measurements)])

    @property
    def job(self) -> tuple[str, int]:
        return self.point.transport, self.point.ranks

    def figures(self) -> list[Figure]:
        """Time with its interval, minimum, p99 and rate, one figure per state of the machine; [] without samples.

        One of them is shown: see `hockney.results.figures`. Samples are read where a value needs them.
        """
        return list(self._figures)

    def figures_in(self, state: str | None) -> list[Figure]:
        """The figure of a machine state, None: the one that tables show; [] without one."""
        return [each for each in self._figures if (each.is_shown if state is None else each.state == state)]

    @property
    def shown(self) -> Figure | None:
        """The figure that tables show; None without measurements."""
        return next(iter(self.figures_in(None)), None)

    @functools.cached_property
    def _figures(self) -> tuple[Figure, ...]:
        return self.run.frame.rows_of(self, self.pairs)
