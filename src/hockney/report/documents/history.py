"""Series over runs, and the changes in them, as a document and as JSON."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hockney.analysis.compare.history import History, Track
from hockney.analysis.compare.values import Comparison, Range
from hockney.machine.facts import fact
from hockney.report.changes import change_text, curve_name, names_of, range_name, times_text
from hockney.report.document import Block, Column, Plot, Sentence, Table, Text
from hockney.report.documents.comparison import differences_texts
from hockney.stats.changes import RUNS_MIN
from hockney.units import counted, format_bytes, format_ns, listed, local_time

_PLOTS_MAX = 2
_DIFFERENCES_MAX = 3
_COLUMNS = (
    Column("started", key=True),
    Column("series", wrap=True),
    Column("before", right=True, optional=True),
    Column("after", right=True, optional=True),
    Column("change (95 % CI)", wrap=True),
)


def history_document(history: History) -> Iterator[Block]:
    """Plots of few series, or of the largest changes; the changes, and what else differed; the summary last."""
    yield from map(_plot, _plotted(history))
    if history.events:
        yield Sentence()
        yield Table(_COLUMNS, [row for event in history.events for row in _rows(event, history)])
        yield Sentence()
        yield from (Sentence(_differences(event)) for event in history.events)
    yield from map(Text, filter(None, (_machine(history), *_conditions(history))))
    yield Sentence(_summary(history))


def chart_notes(history: History) -> list[str]:
    """What a chart of a history has below it."""
    return [*map(_differences, history.events), *_conditions(history), _summary(history)]


def chart_labels(track: Track, history: History) -> dict[int, str]:
    """The changes of a series, and what else differed, by the number of the first run after each."""
    moved = {(each.point, each.shift): (each, event) for event in history.events for each in event.changes}
    labels = {}
    for change in track.fit.changes:
        each, event = moved[track.point, change.shift]
        size = change_text(Range((each,)), by_factor=event.is_by_factor)
        labels[track.runs[change.index].run] = f"{size}; {_differences(event)}"
    return labels


def _conditions(history: History) -> list[str]:
    return [*filter(None, (_machines(history), _states(history), _dates(history)))]


def is_long_enough(history: History) -> bool:
    """Whether any series has enough runs to show a change."""
    return any(track.fit.least for track in history.tracks)


def _plotted(history: History) -> Sequence[Track]:
    """The series, if there are few; else those with the largest changes."""
    if len(history.tracks) <= _PLOTS_MAX:
        return history.tracks
    moved = [track for track in history.tracks if track.fit.changes]
    return sorted(moved, key=lambda of: -max(abs(math.log(each.shift.ratio)) for each in of.fit.changes))[:_PLOTS_MAX]


def _plot(track: Track) -> Plot:
    """Times, floor and pace in per cent of their medians."""
    runs = [(int(run.started_unix_s), {"time": run.time_ns.value, **run.machine_ns}) for run in track.runs]
    known = {name: [(date, values[name]) for date, values in runs if name in values] for name in runs[-1][1]}
    usual = {name: statistics.median(value for _, value in points) for name, points in known.items()}
    curves = {name: [(date, 100 * value / usual[name]) for date, value in points] for name, points in known.items()}
    size = f", {format_bytes(track.point.bytes)}" if track.point.is_sized else ""
    title = f"{curve_name(track.point)}{size}: 100 % is {format_ns(usual['time'])}"
    return Plot(title, curves, "%", "date", [runs[change.index][0] for change in track.fit.changes])


def _rows(event: Comparison, history: History) -> Iterator[list[str]]:
    """A row for each range of sizes that changed alike."""
    names, info = names_of(event), event.infos[1]
    known = ", ".join(filter(None, (info.facts.get("hostname"), fact(info.facts, "cpu.model"))))
    where = f" ({known})" if known and _machines(history) else ""
    for number, alike in enumerate(event.ranges):
        times = [times_text(alike, side) for side in (0, 1)]
        started = "" if number else local_time(info.started_unix_s)
        yield [started, range_name(alike, names) + where, *times, change_text(alike, by_factor=event.is_by_factor)]


def _differences(event: Comparison) -> str:
    """`2026-11-12 03:30, run 17 -> run 18: kernel: Linux 6.1 -> Linux 6.6`."""
    texts = differences_texts(event)
    more = [f"{len(texts) - _DIFFERENCES_MAX} more: --json"] if len(texts) > _DIFFERENCES_MAX else []
    what = "; ".join([*texts[:_DIFFERENCES_MAX], *more]) or "no known difference"
    return f"{local_time(event.infos[1].started_unix_s)}, run {event.base} -> run {event.new}: {what}"


def _machine(history: History) -> str:
    """`The machine over these runs: floor 38.2 ns to 41.0 ns, pace …`: of the longest series."""
    runs = max(history.tracks, key=lambda track: len(track.runs)).runs
    ranges = []
    for what in runs[-1].machine_ns:
        values = [run.machine_ns[what] for run in runs if what in run.machine_ns]
        ranges.append(f"{what} {' to '.join(dict.fromkeys(map(format_ns, (min(values), max(values)))))}")
    return f"The machine over these runs: {', '.join(ranges)}." if ranges else ""


def _machines(history: History) -> str:
    """The machines, where there are several, or one whose CPU or host got another name; else empty."""
    runs: dict[tuple[str | None, str | None], set[int]] = {}
    for track in history.tracks:
        runs.setdefault((track.cpu, track.machine), set()).update(run.run for run in track.runs)
    named = [
        f"{cpu or 'unknown CPU'} in {(machine or 'unknown host')[:16]} ({counted(len(of_machine), 'run')})"
        for (cpu, machine), of_machine in runs.items()
    ]
    return f"{len(named)} machines, each with separate series: {listed(named)}." if len(named) > 1 else ""


def _states(history: History) -> str:
    states = Counter(track.state for track in history.tracks if not track.point.hosts).most_common()
    if not states:
        return ""
    named = "; ".join(f"{state} ({count} series)" if len(states) > 1 else state for state, count in states[:2])
    elsewhere = sum(track.elsewhere for track in history.tracks)
    figures = elsewhere + sum(len(track.runs) for track in history.tracks)
    more = f" {elsewhere} of {counted(figures, 'figure')} are of other states, and left out." if elsewhere else ""
    others = sum(run.is_of_other_state for track in history.tracks for run in track.runs)
    more += f" `show` has {counted(others, 'figure')} in another state." if others else ""
    return f"Machine state: {named}{'; …' if len(states) > 2 else '.'}{more}"


def _dates(history: History) -> str:
    """What is odd about the dates of runs; empty of none."""
    odd = [f"run {number} begins before the one before it ended" for number in history.overlaps[:1]]
    odd += [f"run {number} is dated in the future" for number in history.future[:1]]
    more = len({*history.overlaps, *history.future}) - len(odd)
    others = f" ({counted(more, 'more run')})" if more > 0 else ""
    why = "a clock was set, or runs are of several files"
    return f"By its date {listed(odd)}{others}: {why}. Runs are in the order of dates." if odd else ""


def _summary(history: History) -> str:
    """`2 changes in 7 of 24 series over 31 runs, 2026-10-01 to 2026-11-28; changes below 5.2 % may not show`."""
    runs, tracks = history.runs, history.tracks
    first, last = (local_time(run.started_unix_s).partition(" ")[0] for run in (runs[0], runs[-1]))
    span = f"{counted(len(tracks), 'series', 'series')} over {counted(len(runs), 'run')}, {first} to {last}"
    if not is_long_enough(history):
        longest = max(len(track.runs) for track in tracks)
        return f"{span}: changes show from {RUNS_MIN} runs on, and the longest series has {longest}"
    moved = sum(bool(track.fit.changes) for track in tracks)
    count = f"{counted(len(history.events), 'change')} in {moved} of" if moved else "no change in"
    least = statistics.median(track.fit.least for track in tracks if track.fit.least)
    return f"{count} {span}; changes below {100 * (least - 1):.1f} % may not show"


def history_json(history: History) -> dict[str, Any]:
    """All of a history."""
    return {
        "runs": [run.id for run in history.runs],
        "overlaps": history.overlaps,
        "future": history.future,
        "series": history.tracks,
        "events": [
            {
                "before": event.base,
                "after": event.new,
                "started_unix_s": event.infos[1].started_unix_s,
                "differences": event.differences,
                "points": [change.point for change in event.changes],
            }
            for event in history.events
        ],
    }
