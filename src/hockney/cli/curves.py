"""Series grouped into curves and put into words: one curve is all sizes of a pattern over a transport."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hockney.analysis.repeat import resume
from hockney.cli import render
from hockney.cli.rerun import fix_text
from hockney.machine.files import format_cpus, named_cpus
from hockney.measure.estimate import MIN_MEASUREMENTS, enough_text, first_rounds_s
from hockney.model import Definition, Point, PointStatus, RunStatus, curve_of
from hockney.report.names import readable_names
from hockney.stats.figures import LAUNCHES, ONE_LAUNCH
from hockney.stats.npb import ft_class
from hockney.stats.states import MIXED
from hockney.units import counted, format_bytes, format_ns

if TYPE_CHECKING:
    from hockney.results.runs import Run, Series
    from hockney.stats import Figure

SHORT_MARK = "†"
SHORT_NOTE = "†: fewer than 8 events in a row, so start and end weigh in the time. Try: a longer --limit or --time."
_WHOSE = {
    "root": "rank 0's time",
    "sources": "the mean time of the sending ranks",
    "mean": "the mean time of all ranks",
    "slowest": "the slowest rank's time",
}
_CPUS_NAMED_MAX = 8  # more are printed as ranges


@dataclass(frozen=True)
class Curve:
    """The figures of one curve by size, then state; `launches` of its job in the run."""

    name: str
    figures: tuple[tuple[Series, Figure], ...]
    launches: int
    oversubscribed: bool


def curves_of(run: Run, series: Iterable[Series], figures: Mapping[Series, Sequence[Figure]]) -> list[Curve]:
    """The curves that have figures, in the order of the plan, sizes ascending."""
    launches = Counter((launch.transport, launch.ranks) for launch in run.launches.values())
    crowded = {(launch.transport, launch.ranks) for launch in run.launches.values() if launch.oversubscribed}
    transports = readable_names(run.launches.values())
    groups: dict[object, list[Series]] = {}
    for one in series:
        groups.setdefault(curve_of(one.point), []).append(one)
    curves = []
    for members in groups.values():
        shown = [(one, figure) for one in sorted(members, key=lambda one: one.point.bytes) for figure in figures[one]]
        if shown:
            point = members[0].point
            job = (point.transport, point.ranks)
            name = _name(point, transports.get(point.transport))
            curves.append(Curve(name, tuple(shown), launches[job], job in crowded))
    return curves


def figures_in(series: Series, state: str | None) -> list[Figure]:
    """Those of one state of the machine; of every one where that is None."""
    return [figure for figure in series.figures() if state in (None, figure.state)]


def figures_in_or_most(series: Series, state: str) -> list[Figure]:
    """Those in one state; where the point has none, those in the state with most of its measurements."""
    figures = series.figures()
    most = max(figures, key=lambda figure: figure.n_measurements, default=None)
    in_state = [figure for figure in figures if figure.state == state]
    return in_state or [figure for figure in figures if most and figure.state == most.state]


def state_text(counts: Mapping[str, int], state: str, *, option: str = "--states") -> str:
    """A sentence: `Machine state: near (94% of measurements); --states lists the others (4% far).`."""
    from hockney.results.runs import is_contended

    total = sum(counts.values())
    meaning = "; contended: another program shares a core" if is_contended(state) else ""
    text = f"Machine state: {state} ({counts[state] / total:.0%} of measurements{meaning})"
    others = [f"{count / total:.0%} {name}" for name, count in Counter(counts).most_common() if name != state]
    more = f"; {len(others) - 2} more" if len(others) > 2 else ""
    return f"{text}; {option} lists the others ({'; '.join(others[:2])}{more})." if others else f"{text}."


def _name(point: Point, transport: str | None = None) -> str:
    options = "".join(f" {name}={value}" for name, value in point.options)
    return f"{point.pattern}{options} on {transport or point.transport}, {point.ranks_text}"


def size_text(point: Point) -> str:
    """The size of the messages, or what stands for it; empty where nothing does."""
    class_ = ft_class(point)
    if class_ is not None:
        return f"class {class_}"
    return format_bytes(point.bytes) if point.is_sized else ""


def sizes_text(points: Iterable[Point]) -> str:
    """The sizes of one curve, four at most."""
    ordered = sorted(points, key=lambda point: point.bytes)
    return ", ".join(size_text(point) for point in ordered[:4]) + ("…" if len(ordered) > 4 else "")


def has_window(point: Point) -> bool:
    """Whether several messages are in flight at once, so that a rate says more than a time."""
    return "window" in dict(point.options)


def status_text(status: PointStatus, figure: Figure, asked_precision: float | None) -> str:
    """How the point ended. One that is precise in another state gets the precision of this figure, rounded up."""
    precision = figure.precision
    if status is not PointStatus.PRECISE or asked_precision is None:
        return status.value
    if precision is None or figure.state == MIXED.name:
        return "-"
    return status.value if precision <= asked_precision else f"±{math.ceil(1000 * precision) / 10}%"


def format_interval(low_ns: float | None, high_ns: float | None) -> str:
    """`26.9 - 27.3 ns`; both are None where there are too few measurements."""
    if low_ns is None or high_ns is None:
        return "too few measurements"
    low, high = format_ns(low_ns), format_ns(high_ns)
    number, _, unit = low.partition(" ")
    return f"{number} - {high}" if high.endswith(f" {unit}") else f"{low} - {high}"


def say_one_launch(overs: Iterable[str | None]) -> None:
    """Note that intervals do not cover the variation between launches; None: there is no interval."""
    found = set(overs) - {None}
    if ONE_LAUNCH in found:
        render.note("Intervals are within one launch." if len(found) == 1 else "Some intervals are within one launch.")


def why_no_intervals(run: Run) -> str | None:
    """Where most points have no interval: how often they were measured, and the fix. Else None."""
    from hockney.stats.interval import CONFIDENCE, order_ranks

    measured = [(series, found) for series, found in run.summaries() if found]
    few = []
    for _, found in measured:
        states = {state.name for _, state in found}
        in_states = [[summary.launch_id for summary, state in found if state.name == name] for name in states]
        if all(len(set(ids)) < 2 and order_ranks(len(ids), 0.5, CONFIDENCE) is None for ids in in_states):
            few.append(len(found))
    if 2 * len(few) <= len(measured):
        return None
    left = sum(series.status is PointStatus.PENDING and not found for series, found in run.summaries())
    were = "Each point was" if len(few) == len(measured) else f"{len(few)} of {len(measured)} points were"
    not_reached = f"{left} of {left + len(measured)} points were not reached. " if left else ""
    often = "once" if max(few) == 1 else f"{max(few)} times" + (" at most" if min(few) < max(few) else "")
    text = f"{not_reached}{were} measured {often}: too few measurements for an interval. "
    text += fix_text(resume(run.id, run.info))
    time_s = run.info.plan.get("time_s")
    if run.status not in (RunStatus.DONE, RunStatus.PARTIAL) or not time_s:
        return f"{text}."
    first_s = first_rounds_s([series.point for series, _ in measured], run.info.plan.get("launches", 1), time_s)
    return f"{text}, or start a new run with --time {enough_text(first_s, time_s * MIN_MEASUREMENTS / min(few))}."


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
    """How samples become the time and the rate, as a sentence; intervals are `over` launches, one, or both."""
    several = "geometric mean of launch medians, interval over launches"
    one = "median and interval within one launch"
    value = ", or ".join([several] * (LAUNCHES in over) + [one] * (ONE_LAUNCH in over))
    divided = f", divided by {definition.divisor}" if definition.divisor > 1 else ""
    whose = _WHOSE.get(definition.timed, f"{definition.timed}'s time")
    text = f"{whose} for one repetition{divided}; {value}."
    if definition.algorithm:
        text += f" Algorithm: {definition.algorithm}."
    return f"{text} Rate: payload bytes of one repetition over its whole time." if definition.bytes_per_rep else text


def precision_text(figures: Iterable[Figure], asked: float | None) -> str | None:
    """How launches and measurements vary where the precision was not reached, and how many launches would reach it.

    None where all reached it, or there were too few launches.
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
    """Curve, status and reason of points that failed, were skipped or not reached, alike ones together.

    `stopped`: the run was, which is why points were not reached.
    """
    not_reached = "the run was stopped before it was reached" if stopped else "not reached"
    found: dict[tuple[str, str, str], list[Point]] = {}
    for one in series:
        if one.status is PointStatus.PENDING and one.measurements:
            continue  # the run was killed; the point is among the figures
        if one.status in (PointStatus.FAILED, PointStatus.SKIPPED, PointStatus.PENDING):
            reason = one.reason or (not_reached if one.status is PointStatus.PENDING else "no reason was stored")
            found.setdefault((_name(one.point), one.status.value, reason), []).append(one.point)
    named = ((name, sizes_text(points), rest) for (name, *rest), points in found.items())
    return [[f"{name}: {sizes}" if sizes else name, *rest] for name, sizes, rest in named]
