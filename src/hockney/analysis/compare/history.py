"""Series over the runs of a machine, and the changes in them.

A machine is a CPU model in a host, by the host's id, else by its name. Figures are those of each run, all in one
machine state. Levels of the floor are found over all runs together: alone, a run does not show that it was far
throughout. What changed within two runs is one event.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hockney.analysis.compare.differences import differences, renamed, unversioned
from hockney.analysis.compare.drift import SHOWN_BY
from hockney.analysis.compare.values import Comparison, SeriesChange, Verdict
from hockney.analysis.host_series import series_of
from hockney.analysis.repeat import INTERLEAVED
from hockney.errors import HockneyError, UsageError, unknown
from hockney.machine.facts import fact
from hockney.model import CurveKey, Definition, Point, PointStatus, RunStatus, curve_of
from hockney.results.figures import main_state
from hockney.results.runs import Run, Series
from hockney.results.store import RunSummary, Store
from hockney.stats import MIXED, UNKNOWN, Estimate, State
from hockney.stats.changes import LevelChange, LevelFit, changes
from hockney.stats.states import CONTENDED, levels_of
from hockney.units import parse_bytes
from hockney.worker.catalogue import matches

_TOGETHER = 2  # runs: how near each other changes are one event
_WIDTH = 2 * 1.96  # of a 95 % interval, in standard deviations
_AHEAD_S = 60.0  # how much clocks of two hosts may differ


@dataclass(frozen=True)
class RunFigure:
    """A series in one run. `scatter`: the standard deviation of the time's logarithm within the run, 0: unknown.

    `machine_ns`: its floor, pace and wake-ups, as far as they are known. `is_of_other_state`: tables of the run show it
    in another machine state, or in several.
    """

    run: int
    started_unix_s: float
    time_ns: Estimate
    bytes_per_s: Estimate | None
    scatter: float
    machine_ns: Mapping[str, float]
    is_of_other_state: bool = False


@dataclass(frozen=True)
class Track:
    """A series over the runs in `state`, by date. `elsewhere`: how many runs have it in other states only.

    `machine`: the host's id, or its name; None, as `cpu`, if it is not known.
    """

    point: Point
    cpu: str | None
    machine: str | None
    state: str
    runs: tuple[RunFigure, ...]
    elsewhere: int
    fit: LevelFit


@dataclass(frozen=True)
class History:
    """The chosen runs by date, their series, and the events by date.

    An event compares the last run before with the first one after; its launches are runs.
    """

    runs: tuple[RunSummary, ...]
    tracks: tuple[Track, ...]
    events: tuple[Comparison, ...]

    @property
    def overlaps(self) -> list[int]:
        """Runs that begin, by their dates, before the run with the number before was measured."""
        pairs = itertools.pairwise(sorted(self.runs, key=lambda run: run.id))
        return [run.id for before, run in pairs if run.started_unix_s < before.started_unix_s + before.measured_least_s]

    @property
    def future(self) -> list[int]:
        """Runs that are dated in the future."""
        return [run.id for run in self.runs if run.started_unix_s > time.time() + _AHEAD_S]


class _Seen(NamedTuple):
    """A figure of a run in one state. `reference`: the transport whose own round trip is the floor."""

    figure: RunFigure
    point: Point
    state: State
    reference: str | None
    definition: Definition
    weight: int


_Machine = tuple[str | None, str | None]  # CPU model and machine, as in Track
_Key = tuple[_Machine, CurveKey, int]  # the curve without its library's version; size


def history_of(store: Store, words: Sequence[str] = (), label: str | None = None) -> History:
    """The history of the series that `words` select, over all runs or those with a label.

    Raises UsageError for words that select nothing, and HockneyError if there is one run only.
    """
    points: set[Point] = set()

    def is_asked(point: Point) -> bool:
        points.add(point)
        return selects(words, point)

    with store.snapshot():
        runs = runs_with(store, label)
        if not runs:
            labels = {run.label: None for run in store.runs() if run.label}
            if label is not None and label not in labels:
                raise unknown("label", label, labels, listed_by=("hockney", "runs"))
            raise UsageError(f"there are no measurements in {store.path} yet; make some", argv=("hockney", "quick"))
        if len(runs) == 1:
            only = f"run {runs[0].id} is the only one, and a history has several"
            raise HockneyError(f"{only}: repeat it every night with `{runs[0].command}`")
        made = history_over(store, runs, is_asked)
    for word in words:
        if not any(selects([word], point) for point in points):
            raise unknown(
                "pattern, size or host in these runs",
                word,
                sorted({each for of in points for each in (of.pattern, *of.hosts)}),
            )
    if not made.tracks and not words:
        raise HockneyError("no series of these runs was measured in one machine state: measure it for longer")
    if not made.tracks:
        raise UsageError(f"no series of these runs is of {' and '.join(words)}: leave one of them out")
    return made


def runs_with(store: Store, label: str | None) -> tuple[RunSummary, ...]:
    """The runs with measurements by date, without those of compare --interleave, whose settings differ on purpose."""
    listed = [run for run in store.runs() if run.measured and run.status is not RunStatus.RUNNING]
    named = [run for run in listed if label in (None, run.label)]
    runs = [run for run in named if INTERLEAVED not in store.run(run.id).info.plan]
    return tuple(sorted(runs, key=lambda run: (run.started_unix_s, run.id)))


def history_over(store: Store, runs: Sequence[RunSummary], is_asked: Callable[[Point], bool]) -> History:
    """The history of the asked series over these runs, which are by date; the state is that of all series."""
    seen: dict[_Key, list[_Seen]] = defaultdict(list)
    asked: set[_Key] = set()
    for summary in runs:
        run = Run(store, summary.id)
        machine = machine_of(run.facts)
        listed = series_of(run)
        versions = Counter(unversioned(name) for name in {series.point.transport for series in listed})
        for series in listed:
            if not (series.is_harness or series.is_exact):
                kind, curve = unversioned(series.point.transport), curve_of(series.point)
                key = machine, (kind, *curve[1:]) if versions[kind] == 1 else curve, series.point.bytes
                seen[key] += _seen(series)
                if is_asked(series.point):
                    asked.add(key)
    tracks = tuple(_tracks({key: figures for key, figures in seen.items() if figures}, asked))
    return History(tuple(runs), tracks, tuple(_events(store, runs, tracks)))


def machine_of(facts: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The CPU model and the machine, as in Track."""
    return fact(facts, "cpu.model"), facts.get("machine_id") or facts.get("hostname")


def selects(words: Sequence[str], point: Point) -> bool:
    """Whether words such as `pingpong`, `pingpong@tcp` and `64K` select a point; those of one kind are alternatives.

    Of health runs the name of a host, too.
    """
    sizes = {size for word in words if (size := _size(word)) is not None}
    names = [word.partition("@")[::2] for word in words if _size(word) is None]
    is_named = (
        pattern in (point.pattern, *point.hosts) and (not transport or matches(transport, point.transport))
        for pattern, transport in names
    )
    return (not sizes or point.bytes in sizes) and (not names or any(is_named))


def _size(word: str) -> int | None:
    with contextlib.suppress(UsageError):
        return parse_bytes(word)
    return None


def _seen(series: Series) -> Iterator[_Seen]:
    run, shown = series.run, series.shown
    for figure in series.figures() if series.status is not PointStatus.FAILED else ():
        if figure.is_mixed or figure.time.value <= 0:
            continue
        machine = {
            what: statistics.median(values)
            for what, values_of in SHOWN_BY.items()
            if (values := [value for each in figure.measurements for value in values_of(each.probe)])
        }
        is_known = figure.has_interval and figure.time.low > 0
        scatter = math.log(figure.time.high / figure.time.low) / _WIDTH if is_known else 0.0
        figures, is_other = (figure.time, figure.bytes_per_s), shown is not None and shown.state != figure.state
        of_run = RunFigure(run.id, run.info.started_unix_s, *figures, scatter, machine, is_other)
        state = State(figure.state, figure.floor_ns)
        reference = series.point.transport if state.is_reference else None
        yield _Seen(of_run, series.point, state, reference, figure.definition, figure.n_measurements)


def _tracks(seen: Mapping[_Key, Sequence[_Seen]], asked: Collection[_Key]) -> Iterator[Track]:
    """The asked series, each in the state of most series of its machine, or where it was never in this one, its own."""
    names = _state_names(seen)
    by_key: dict[_Key, dict[str, dict[int, _Seen]]] = {key: defaultdict(dict) for key in seen}
    for key, figures in seen.items():
        for each in figures:
            runs, run = by_key[key][names[key[0], each.reference, each.state]], each.figure.run
            if each.definition == figures[-1].definition and (run not in runs or each.weight > runs[run].weight):
                runs[run] = each
    counts = {key: Counter({name: len(runs) for name, runs in states.items()}) for key, states in by_key.items()}
    usual = {machine: main_state(of for key, of in counts.items() if key[0] == machine) for machine, _, _ in counts}
    for key, states in ((key, states) for key, states in by_key.items() if key in asked):
        chosen = str(usual[key[0]])
        state = chosen if counts[key][chosen] else str(main_state([counts[key]]))
        shown = [each.figure for each in states[state].values()]
        elsewhere = len({each.figure.run for each in seen[key]} - {each.run for each in shown})
        fit = changes([each.time_ns.value for each in shown], [each.scatter for each in shown], _machine(shown))
        yield Track(seen[key][-1].point, *key[0], state, tuple(shown), elsewhere, fit)


def _machine(runs: Sequence[RunFigure]) -> dict[str, list[float]]:
    """What shows drift, of each run."""
    known = {what for each in runs for what in each.machine_ns}
    return {what: [each.machine_ns.get(what, math.nan) for each in runs] for what in SHOWN_BY if what in known}


def _state_names(seen: Mapping[_Key, Sequence[_Seen]]) -> dict[tuple[_Machine, str | None, State], str]:
    """The name of each state by its floor among those of all runs of its machine."""
    groups: dict[tuple[_Machine, str | None], set[State]] = defaultdict(set)
    for key, figures in seen.items():
        for each in figures:
            groups[key[0], each.reference].add(each.state)
    names = {}
    for (machine, reference), found in groups.items():
        states = sorted(found, key=lambda state: state.name)
        floors = [None if state.floor_ns is None else (state.floor_ns, state.floor_ns) for state in states]
        for state, level in zip(states, levels_of(floors, reference), strict=True):
            is_contended = state.is_contended and level not in (None, MIXED.name)
            names[machine, reference, state] = f"{level}, {CONTENDED}" if is_contended else level or UNKNOWN.name
    return names


def _events(store: Store, runs: Sequence[RunSummary], tracks: Sequence[Track]) -> Iterator[Comparison]:
    """The changes of each run with those of runs near it: where most series changed, the event is."""
    order = {run.id: number for number, run in enumerate(runs)}
    by_run: dict[tuple[_Machine, int], list[tuple[Track, LevelChange]]] = defaultdict(list)
    for track in tracks:
        for change in track.fit.changes:
            by_run[(track.cpu, track.machine), order[track.runs[change.index].run]].append((track, change))
    merged: dict[tuple[_Machine, int], list[tuple[Track, LevelChange]]] = {}
    for (machine, run), moved in sorted(by_run.items(), key=lambda item: (-len(item[1]), item[0][1])):
        near = (key for key in merged if key[0] == machine and abs(key[1] - run) <= _TOGETHER)
        merged.setdefault(next(near, (machine, run)), []).extend(moved)
    for (_, run), moved in sorted(merged.items(), key=lambda item: item[0][1]):
        yield _event(store, runs[run].id, moved)


def _event(store: Store, after: int, moved: Sequence[tuple[Track, LevelChange]]) -> Comparison:
    """The runs around an event compared, with the changes over all runs in place of those between the two."""
    befores = [track.runs[each.index - 1].run for track, each in moved if track.runs[each.index].run == after]
    base, new = Run(store, statistics.mode(befores)), Run(store, after)
    names = renamed(*({series.point.transport for series in run.series} for run in (base, new)))
    listed = tuple(
        SeriesChange(
            track.point,
            Verdict.SLOWER if change.shift.ratio > 1 else Verdict.FASTER,
            states=(track.state,),
            shift=change.shift,
            base_ns=change.before_ns,
            new_ns=change.after_ns,
        )
        for track, change in moved
    )
    libraries = {**base.libraries, **new.libraries}
    infos, differ = (base.info, new.info), differences(base, new, names)
    return Comparison(base.id, after, (0, 0), 1.0, differ, listed, infos, libraries=libraries, renamed=names)
