"""Series grouped and worded for people: one curve is all sizes of a pattern over a transport."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hockney.cli import render
from hockney.cli.rerun import going_on
from hockney.machine.files import format_cpus, named_cpus
from hockney.measure.estimate import MIN_MEASUREMENTS, enough_text, first_rounds_s
from hockney.model import Definition, Launch, Point, PointStatus, RunStatus
from hockney.stats.figures import LAUNCHES, ONE_LAUNCH
from hockney.stats.npb import ft_class
from hockney.stats.states import MIXED, UNKNOWN
from hockney.units import counted, format_bytes, format_duration_s, format_messages, format_ns, format_rate

if TYPE_CHECKING:
    from hockney.results.runs import Run, Series
    from hockney.stats import Figure

SHORT_MARK = "†"
SHORT_NOTE = (
    "†: fewer than 8 events in a row, so their start and end weigh in the time. Try: a longer --limit or --time."
)
_WHOSE = {
    "root": "rank 0's time",
    "sources": "the mean time of the sending ranks",
    "mean": "the mean time of all ranks",
    "slowest": "the slowest rank's time",
}


_CPUS_NAMED_MAX = 8  # of more, those in ascending order are said as ranges


@dataclass(frozen=True)
class Curve:
    """One curve: its name, and the figures of its series by size, then state."""

    name: str
    figures: tuple[tuple[Series, Figure], ...]
    launches: int  # of its job in the run
    oversubscribed: bool
    hidden: int  # figures of states with too few measurements, where another state of the same point has enough


def curves_of(
    series: Iterable[Series], launches: Iterable[Launch], *, every_state: bool = False, state: str | None = None
) -> list[Curve]:
    """The curves that have figures, in the order of the plan; sizes ascend, whenever they were added.

    A point's figures without an interval stand back behind one that has it, unless `every_state` is asked for. Where
    one `state` is, its figures alone.
    """
    started = [((launch.transport, launch.ranks), launch.oversubscribed) for launch in launches]
    starts = Counter(job for job, _ in started)
    crowded = {job for job, oversubscribed in started if oversubscribed}
    groups: dict[tuple[object, ...], list[Series]] = {}
    for one in series:
        point = one.point
        groups.setdefault((point.transport, point.pattern, point.ranks, point.options), []).append(one)
    curves = []
    for members in groups.values():
        members.sort(key=lambda one: one.point.bytes)
        figures = [(one, figure) for one in members for figure in figures_in(one, state)]
        known = {one for one, figure in figures if figure.low_ns is not None}
        shown = [pair for pair in figures if every_state or pair[1].low_ns is not None or pair[0] not in known]
        if figures:
            job = (members[0].point.transport, members[0].point.ranks)
            hidden = len(figures) - len(shown)
            curves.append(Curve(_name(members[0]), tuple(shown), starts[job], job in crowded, hidden))
    return curves


def figures_in(series: Series, state: str | None) -> list[Figure]:
    """A series' figures in one state of the machine, or in each (None)."""
    return [figure for figure in series.figures() if state in (None, figure.state)]


def _name(series: Series) -> str:
    point = series.point
    options = "".join(f" {name}={value}" for name, value in point.options)
    return f"{point.pattern}{options} on {point.transport}, {point.ranks_text}"


def size_text(point: Point) -> str:
    """The size of the messages, or what stands for it; empty where nothing does."""
    class_ = ft_class(point)
    if class_ is not None:
        return f"class {class_}"
    return format_bytes(point.bytes) if point.is_sized else ""


def has_window(point: Point) -> bool:
    """Whether several messages are under way at once, so that their rate says more than a time."""
    return "window" in dict(point.options)


def figure_row(series: Series, figure: Figure, launches: int, asked_precision: float | None) -> list[str]:
    """Size, time, interval, rate, messages/s (with a window only), minimum, state, floor, measurements, status.

    Measurements say in how many launches they were made where the job had several. A rank alone has no floor, so
    nothing is unknown of its state.
    """
    return [
        size_text(series.point),
        format_ns(figure.value_ns) + (SHORT_MARK if figure.is_short else ""),
        format_interval(figure.low_ns, figure.high_ns),
        format_rate(figure.rate_bytes_per_s) if figure.rate_bytes_per_s else "",
        *([format_messages(figure.messages_per_s or 0.0)] if has_window(series.point) else []),
        format_ns(figure.minimum_ns),
        "-" if series.point.ranks == 1 and figure.state == UNKNOWN.name else figure.state,
        format_ns(figure.floor_ns) if figure.floor_ns is not None else "",
        f"{figure.n_measurements} in {figure.n_launches}" if launches > 1 else str(figure.n_measurements),
        _status_text(series.status, figure, asked_precision),
    ]


def _status_text(status: PointStatus, figure: Figure, asked_precision: float | None) -> str:
    """A point is precise as soon as its figure in one state is; of a figure that is not so, how precise it is itself.

    Rounded up, so that it never reads as what was asked. What is of no state has no part in that.
    """
    precision = figure.precision
    if status is not PointStatus.PRECISE or asked_precision is None:
        return status.value
    if precision is None or figure.state == MIXED.name:
        return "-"
    return status.value if precision <= asked_precision else f"±{math.ceil(1000 * precision) / 10}%"


def format_interval(low_ns: float | None, high_ns: float | None) -> str:
    """`26.9 - 27.3 ns`; there are too few measurements for one where both are None."""
    if low_ns is None or high_ns is None:
        return "too few measurements"
    low, high = format_ns(low_ns), format_ns(high_ns)
    number, _, unit = low.partition(" ")
    return f"{number} - {high}" if high.endswith(f" {unit}") else f"{low} - {high}"


def say_one_launch(overs: Iterable[str | None]) -> None:
    """That intervals do not cover the variation between launches; None: there is no interval."""
    found = set(overs) - {None}
    if ONE_LAUNCH in found:
        render.note("Intervals are within one launch." if len(found) == 1 else "Some intervals are within one launch.")


def why_no_intervals(run: Run) -> str | None:
    """Where most points were measured too seldom for an interval: how often, and the remedy. Else None."""
    from hockney.stats.interval import CONFIDENCE, order_ranks

    measured = run.summaries()
    made = [len(measurements) for _, measurements in measured if measurements]
    few = [measurements for measurements in made if order_ranks(measurements, 0.5, CONFIDENCE) is None]
    if 2 * len(few) <= len(made):
        return None
    points = "Each point was" if len(few) == len(made) else f"{len(few)} of {len(made)} points were"
    left = sum(series.status is PointStatus.PENDING and not measurements for series, measurements in measured)
    if left:
        not_reached = f"{left} of {left + len(made)} points {'was' if left == 1 else 'were'} not reached"
        points = f"{not_reached}, and {len(few)} {'was' if len(few) == 1 else 'were'}"
    most = max(few)
    often = "once" if most == 1 else f"{most} times" + (" at most" if min(few) < most else "")
    time_s = run.info.plan.get("time_s")
    until = longer = ""
    if run.status in (RunStatus.DONE, RunStatus.PARTIAL):
        longer = "; a new run needs a longer --time"
        if time_s:
            until = f" within --time {format_duration_s(time_s)}"
            seen = [series.point for series, measurements in measured if measurements]
            first_s = first_rounds_s(seen, run.info.plan.get("launches", 1), time_s)
            longer += f", for example --time {enough_text(first_s, time_s * MIN_MEASUREMENTS / most)}"
    return (
        f"{points} measured only {often}{until}: too few measurements for an interval. "
        f"{going_on(run.id, run.facts)} goes on with it{longer}."
    )


def placement_text(run: Run) -> str | None:
    """`Ranks on CPUs 0 and 2.`: where they ran, in their order; None of several hosts, or where it is not known."""
    placed = {launch.cpus: None for launch in run.launches.values() if launch.transport != "null"}
    hosts = {host for launch in run.launches.values() for host in launch.hosts}
    if not placed or len(hosts) > 1 or any(cpu < 0 for cpus in placed for cpu in cpus):
        return None
    # Fewer ranks are mostly on the first of the CPUs that more have.
    longest = [cpus for cpus in placed if not any(cpus == other[: len(cpus)] for other in placed if other != cpus)]
    if len(longest) == 1:
        return f"Ranks on {_cpus_text(longest[0])}."
    words = [f"{counted(len(cpus), 'rank')} on {_cpus_text(cpus)}" for cpus in sorted(longest, key=len)]
    return f"{'; '.join(words)}."


def _cpus_text(cpus: Sequence[int]) -> str:
    """`CPUs 0, 2 and 4`; `CPUs 0 and 1 in turn` where they are fewer than the ranks."""
    each = tuple(dict.fromkeys(cpus))
    *most, last = map(str, each)
    in_turn = " in turn" if 1 < len(each) < len(cpus) else ""
    if len(each) > _CPUS_NAMED_MAX and each == tuple(sorted(each)):
        return f"{named_cpus(format_cpus(each))}{in_turn}"
    return f"CPUs {', '.join(most)} and {last}{in_turn}" if most else f"CPU {last}"


def definition_text(definition: Definition, over: Collection[str] = (ONE_LAUNCH,)) -> str:
    """How the samples became the time and the rate, as a sentence; intervals are `over` launches, one, or both."""
    several = "geometric mean of launch medians, interval over launches"
    one = "median and interval within one launch"
    value = ", or ".join([several] * (LAUNCHES in over) + [one] * (ONE_LAUNCH in over))
    divided = f", divided by {definition.divisor}" if definition.divisor > 1 else ""
    whose = _WHOSE.get(definition.timed, f"{definition.timed}'s time")
    text = f"Time: {whose} for one repetition{divided}; {value}."
    if definition.algorithm:
        text += f" Algorithm: {definition.algorithm}."
    return f"{text} Rate: payload bytes of one repetition over its whole time." if definition.bytes_per_rep else text


def precision_text(figures: Iterable[Figure], asked: float | None) -> str | None:
    """How launches and measurements vary where the precision was not reached, and how many launches would.

    Else None.
    """
    missed = [figure for figure in figures if figure.state != MIXED.name and (figure.precision or 0) > (asked or 1)]
    between = max((one.between_launches for one in missed if one.between_launches is not None), default=None)
    within = max((one.within_launches for one in missed if one.within_launches is not None), default=None)
    needed = max((one.launches_needed for one in missed if one.launches_needed is not None), default=None)
    if asked is None or between is None or within is None or needed is None:
        return None
    return (
        f"Not all reached ±{asked:.1%}: launches vary by up to {between:.1%}, measurements within a launch by up to "
        f"{within:.1%}; about {needed} launches reach it."
    )


def endings_of(series: Iterable[Series], *, stopped: bool) -> list[list[str]]:
    """What failed, was skipped, or was not reached: name, end and reason, with sizes of one reason together.

    `stopped`: the run was, so that nothing else is the reason why a point was not reached.
    """
    not_reached = "the run was stopped before it was reached" if stopped else "not reached"
    found: dict[tuple[str, str, str], list[Point]] = {}
    for one in series:
        if one.status is PointStatus.PENDING and one.measurements:
            continue  # the run was killed; what it has is among the figures
        if one.status in (PointStatus.FAILED, PointStatus.SKIPPED, PointStatus.PENDING):
            reason = one.reason or (not_reached if one.status is PointStatus.PENDING else "no reason was stored")
            found.setdefault((_name(one), one.status.value, reason), []).append(one.point)
    named = ((name, sizes_text(points), rest) for (name, *rest), points in found.items())
    return [[f"{name}: {sizes}" if sizes else name, *rest] for name, sizes, rest in named]


def sizes_text(points: Iterable[Point]) -> str:
    """Those of one curve: the least four."""
    ordered = sorted(points, key=lambda point: point.bytes)
    return ", ".join(size_text(point) for point in ordered[:4]) + ("…" if len(ordered) > 4 else "")
