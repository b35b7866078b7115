"""Words that several screens share: sizes, states, intervals, endings, advice and caveats."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from hockney.analysis.repeat import resume
from hockney.cli import render
from hockney.cli.rerun import fix_text, typed
from hockney.model import NOT_MEASURED, Point, PointStatus, RunStatus, Warning_
from hockney.report.words import ROUGH, SHORT_MARK, size_text
from hockney.results.figures import Figure
from hockney.results.runs import Run, Series
from hockney.stats import ONE_LAUNCH, RANGE, Estimate, State
from hockney.stats.interval import LAUNCHES_USEFUL
from hockney.units import format_ns, format_share, printable

SHORT_NOTE = (
    f"{SHORT_MARK}: fewer than 8 events in a row, so start and end weigh in the time. Try: a longer --limit or --time."
)
Caveat = tuple[str, str]
"""A sentence in short, and in full with its fix."""

_CAVEATS_MAX = 5


def sizes_text(points: Iterable[Point]) -> str:
    """The sizes of one curve, four at most."""
    ordered = sorted(points, key=lambda point: point.bytes)
    return ", ".join(size_text(point) for point in ordered[:4]) + ("…" if len(ordered) > 4 else "")


def state_text(counts: Mapping[str, int], state: str) -> str:
    """A sentence, `Machine state: near (94% of measurements); --states lists the others (4% far).`.

    Others below 1 % are left out.
    """
    total = sum(counts.values())
    meaning = "; contended: another program shares a core" if State(state, None).is_contended else ""
    few = "only " if counts[state] < total / 3 else ""
    text = f"Machine state: {state} ({few}{format_share(counts[state] / total)} of measurements{meaning})"
    often = [(name, count) for name, count in Counter(counts).most_common() if name != state and count >= total / 100]
    others = [f"{format_share(count / total)} {name}" for name, count in often]
    more = f"; {len(others) - 2} more" if len(others) > 2 else ""
    return f"{text}; --states lists the others ({'; '.join(others[:2])}{more})." if others else f"{text}."


def status_text(status: PointStatus, figure: Figure, asked_precision: float | None) -> str:
    """How the point ended. One that is precise in another state gets the precision of this figure, rounded up."""
    if status is PointStatus.BUDGET:
        return "time up"
    if status is not PointStatus.PRECISE or asked_precision is None:
        return str(status.value)
    if figure.precision is None:
        return "-"
    if figure.precision <= asked_precision:
        return str(status.value)
    return f"±{math.ceil(1000 * figure.precision) / 10}%" if figure.precision <= ROUGH else "rough"


def format_interval(time: Estimate, *, is_range: bool = False) -> str:
    """`26.9 - 27.3 ns`; in brackets where it is not an interval of one machine state."""
    if time.low == time.high:
        return "" if is_range else "exact"  # a single imported figure, or a model without noise
    low, high = format_ns(time.low), format_ns(time.high)
    number, _, unit = low.partition(" ")
    text = f"{number} - {high}" if high.endswith(f" {unit}") else f"{low} - {high}"
    return f"({text})" if is_range else text


def say_one_launch(overs: Iterable[str | None]) -> None:
    """Note that intervals do not cover the variation between launches."""
    kinds = set(overs) - {None, RANGE}
    if ONE_LAUNCH in kinds:
        render.note("Intervals are within one launch." if len(kinds) == 1 else "Some intervals are within one launch.")


def launches_advice(run: Run, figures: Iterable[Figure] = ()) -> str | None:
    """How many launches would make a run of several as precise as asked; None if it is.

    Two launches do not show how many the `figures` need, so there the advice is a third.
    """
    if run.launch_count > 2:
        return precision_text(figures, run.info.plan.get("precision"))
    left = {series.status for series in run.series} - {PointStatus.PRECISE, *NOT_MEASURED}
    if run.launch_count < 2 or not left:
        return None
    fix = fix_text(resume(run.id, run.info))
    return f"After 2 launches an interval is about 6 times as wide as after 3. {fix}."


def precision_text(figures: Iterable[Figure], asked: float | None) -> str | None:
    """How many launches would reach the precision; None where all reached it, or that is not known."""
    missed = [figure for figure in figures if (figure.precision or 0) > (asked or 1)]
    needed = max((figure.launches_needed for figure in missed if figure.launches_needed is not None), default=None)
    if asked is None or needed is None:
        return None
    advice = f"about {needed}" if needed <= LAUNCHES_USEFUL else f"more than {LAUNCHES_USEFUL}"
    return f"Not all reached ±{asked:.1%}: that takes {advice} launches."


def ending_text(status: RunStatus) -> str:
    """How a run ended, in the word that its points have, too."""
    return PointStatus.STOPPED.value if status is RunStatus.INTERRUPTED else status.value


def endings_of(series: Iterable[Series]) -> list[list[str] | str]:
    """Points that failed, were skipped or not reached: each reason as a heading, with a row for each curve below."""
    alike: dict[str, dict[str, list[Point]]] = {}
    for member in series:
        if member.status is PointStatus.PENDING and member.measurements:
            continue  # the run was killed; the point is among the figures
        if member.status in (PointStatus.FAILED, PointStatus.SKIPPED, PointStatus.PENDING):
            ending = "not reached" if member.status is PointStatus.PENDING else member.status.value
            curves = alike.setdefault(": ".join(filter(None, (ending, member.reason))), {})
            curves.setdefault(member.point.text(member.point.transport), []).append(member.point)
    rows: list[list[str] | str] = []
    for ending, curves in alike.items():
        sized = ((name, sizes_text(points)) for name, points in curves.items())
        rows += [ending, *([f"  {name}: {sizes}" if sizes else f"  {name}"] for name, sizes in sized)]
    return rows


def known_text(value: float | None, text: Callable[[float], str], unknown: str = "") -> str:
    """The value as a text; `unknown` of None."""
    return unknown if value is None else text(value)


def caveat_lines(caveats: Iterable[Caveat], *, verbose: bool = False) -> tuple[list[str], int]:
    """One line for each of the first five, and how many are left out; `verbose`: all in full."""
    if verbose:
        return [line for _, full in caveats for line in render.wrapped(f"! {full}", rest="  ")], 0
    lines = [
        textwrap.shorten(printable(f"! {short}"), render.line_width(), placeholder=" …", break_on_hyphens=False)
        for short, _ in caveats
    ]
    return lines[:_CAVEATS_MAX], len(lines[_CAVEATS_MAX:])


def of_warnings(seen: Sequence[Warning_]) -> list[Caveat]:
    """The caveats of warnings, each kind once; the load before the run is left out if there was load during it."""
    by_kind = {(warning.kind, warning.subject): warning for warning in seen}
    if ("others", "machine") in by_kind:
        by_kind.pop(("load", "machine"), None)
    return [(warning.cause, str(warning)) for warning in by_kind.values()]


def print_caveats(run: Run, *, verbose: bool = False) -> None:
    """Print those of a run below a heading, and the command that prints all with their fixes; nothing without any."""
    caveats = of_warnings(run.warnings)
    lines, left = caveat_lines(caveats, verbose=verbose)
    if lines:
        render.title("Caveats")
        render.lines(lines)
    if not verbose and (left or any(short != full for short, full in caveats)):
        render.note(f"Fixes{f' and {left} more' if left else ''}: {typed('show', run.id, '-v')}", style="dim")
