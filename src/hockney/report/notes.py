"""Words that several screens share: sizes, states, intervals, endings, advice and caveats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hockney.analysis.repeat import further
from hockney.errors import Fix
from hockney.model import CurveKey, Point, PointStatus, Warning_, curve_of
from hockney.report.commands import fix_text, typed
from hockney.report.document import Block, Cell, Text, Title
from hockney.report.words import RANGE_MARK, SHORT_MARK, size_text
from hockney.results.figures import Figure
from hockney.results.runs import Run, Series
from hockney.stats import EXACT, ONE_LAUNCH, RANGE, State
from hockney.stats.interval import LAUNCHES_USEFUL
from hockney.stats.states import CONTENDED, CONTENTION
from hockney.units import format_share

SHORT_NOTE = (
    f"{SHORT_MARK}: fewer than 8 events in a row, so start and end weigh in the time. "
    "Try: an idle machine, a longer --limit or --time."
)
Caveat = tuple[str, str]
"""A sentence in short, and in full with its fix."""

_CAVEATS_MAX, _CURVES_MAX = 5, 3


def sizes_text(points: Iterable[Point]) -> str:
    """The sizes of one curve, four at most."""
    ordered = sorted(points, key=lambda point: point.bytes)
    return ", ".join(size_text(point) for point in ordered[:4]) + ("…" if len(ordered) > 4 else "")


def state_text(counts: Mapping[str, int], state: str, how: str = "--states") -> str:
    """A sentence, `Machine state: near (94% of measurements); --states lists the others (4% far).`.

    Others below 1 % are left out; `how` is what lists them.
    """
    total = sum(counts.values())
    meaning = f"; {CONTENDED}: {CONTENTION}" if State(state, None).is_contended else ""
    few = "only " if counts[state] < total / 3 else ""
    text = f"Machine state: {state} ({few}{format_share(counts[state] / total)} of measurements{meaning})"
    often = [(name, count) for name, count in Counter(counts).most_common() if name != state and count >= total / 100]
    others = [f"{format_share(count / total)} {name}" for name, count in often]
    more = f"; {len(others) - 2} more" if len(others) > 2 else ""
    return f"{text}; {how} lists the others ({'; '.join(others[:2])}{more})." if others else f"{text}."


def status_text(figure: Figure) -> str:
    """How its point ended; `-` where the point is as precise as asked in another state only."""
    status, asked = figure.series.status, figure.series.run.info.plan.get("precision")
    if status is PointStatus.PRECISE and asked is not None and (figure.precision is None or figure.precision > asked):
        return "-"
    return str(status.value)


def one_launch(overs: Iterable[str | None]) -> Iterator[Block]:
    """The note that intervals do not cover the variation between launches."""
    kinds = set(overs) - {None, RANGE}
    if ONE_LAUNCH in kinds:
        yield Text("Intervals are within one launch." if len(kinds) == 1 else "Some intervals are within one launch.")


def padded(shown: str, bounds: str, mark: str = "", *, is_best: bool = False) -> Cell:
    """A cell, `41.9 ns ±2% °`, in which bounds of one and of two digits are as wide."""
    width = 0 if bounds == RANGE_MARK else 4
    return Cell(shown, f"{bounds:<{width}}{mark}", is_best=is_best) if bounds else Cell(shown + mark, is_best=is_best)


def fixed(fix: Fix | None) -> str:
    """A fix as the next sentence; empty without one."""
    return "" if fix is None else f" {fix_text(fix)}."


def launches_advice(run: Run, figures: Iterable[Figure]) -> str | None:
    """What the launches of these points leave open, by the figures that all screens show, with the command for more.

    None: nothing. Two launches do not show how many are needed, so there the advice is a third.
    """
    shown = [figure for series in dict.fromkeys(each.series for each in figures) if (figure := series.shown)]
    known = [figure for figure in shown if figure.has_interval and figure.interval_over != EXACT]
    of_one = [figure for figure in known if figure.interval_over == ONE_LAUNCH]
    if of_one:
        which = "Intervals" if len(of_one) == len(known) else f"{len(of_one)} of {len(known)} intervals"
        return f"{which} cover one launch only, not the variation between launches.{fixed(further(run))}"
    if max((figure.n_launches for figure in known), default=0) > 2:
        return precision_text(known, run.info.plan.get("precision"))
    more = fixed(further(run)) if known else ""
    return f"After 2 launches an interval is about 6 times as wide as after 3.{more}" if more else None


def precision_text(figures: Iterable[Figure], asked: float | None) -> str | None:
    """How many launches would reach the precision; None where all reached it, or that is not known."""
    missed = [figure for figure in figures if (figure.precision or 0) > (asked or 1)]
    needed = max((figure.launches_needed for figure in missed if figure.launches_needed is not None), default=None)
    if asked is None or needed is None:
        return None
    advice = f"about {needed}" if needed <= LAUNCHES_USEFUL else f"more than {LAUNCHES_USEFUL}"
    return f"Not all reached ±{asked:.1%}: that takes {advice} launches."


def by_reason(points: Iterable[tuple[str, Point]]) -> dict[str, list[Point]]:
    """Points by the reason why each was not measured; reasons that differ by the pattern's name alone are one.

    `form=persistent needs the library's own …, and mpi has no persistent …`.
    """
    whole: dict[str, dict[str, list[Point]]] = {}
    for why, point in points:
        without = re.sub(rf"(?<![\w-]){re.escape(point.pattern)}(?![\w-])", "…", why)
        whole.setdefault(without, {}).setdefault(why, []).append(point)
    return {
        next(iter(alike)) if len(alike) == 1 else without: [point for each in alike.values() for point in each]
        for without, alike in whole.items()
    }


def folded(points: Iterable[Point]) -> tuple[str, str, str] | None:
    """All patterns of more than three curves, their transports, and their sizes if these are alike; else None."""
    curves: dict[CurveKey, list[Point]] = {}
    for point in points:
        curves.setdefault(curve_of(point), []).append(point)
    if len(curves) <= _CURVES_MAX:
        return None
    sizes = {sizes_text(of_curve) for of_curve in curves.values()}
    named = [", ".join(dict.fromkeys(names)) for names in zip(*((key[1], key[0]) for key in curves), strict=True)]
    return named[0], named[1], sizes.pop() if len(sizes) == 1 else ""


def is_unreached(series: Series) -> bool:
    """Whether the run ended before a measurement of this point was made."""
    return series.status in (PointStatus.PENDING, PointStatus.TIME_UP) and not series.measurements


def endings_of(series: Iterable[Series]) -> list[list[str] | str]:
    """Points without figures: each reason as a heading, below it a row for each curve, or one with many names."""
    ended = []
    for member in series:
        if member.status is PointStatus.PENDING and member.measurements:
            continue  # the run was killed; the point is among the figures
        if is_unreached(member):
            why = member.reason if member.status is PointStatus.PENDING else None
            ended.append((": ".join(filter(None, ("not reached", why))), member.point))
        elif member.status in (PointStatus.FAILED, PointStatus.SKIPPED):
            ended.append((": ".join(filter(None, (member.status.value, member.reason))), member.point))
    rows: list[list[str] | str] = []
    for ending, points in by_reason(ended).items():
        curves: dict[str, list[Point]] = {}
        for point in points:
            curves.setdefault(point.text(point.transport), []).append(point)
        few = folded(points)
        sized = [(f"{few[0]} on {few[1]}", few[2])] if few else [(name, sizes_text(of)) for name, of in curves.items()]
        rows += [ending, *([f"  {name}: {sizes}" if sizes else f"  {name}"] for name, sizes in sized)]
    return rows


def caveat_notes(caveats: Sequence[Caveat], *, verbose: bool = False) -> tuple[list[Text], int]:
    """One line for each of the first five, and how many are left out; `verbose`: all in full."""
    if verbose:
        return [Text(f"! {full}") for _, full in caveats], 0
    notes = [Text(f"! {short}", is_cut=True) for short, _ in caveats]
    return notes[:_CAVEATS_MAX], len(notes[_CAVEATS_MAX:])


def of_warnings(seen: Sequence[Warning_]) -> list[Caveat]:
    """The caveats of warnings."""
    return [(warning.cause, str(warning)) for warning in seen]


def caveats_of(run: Run, *, verbose: bool = False) -> Iterator[Block]:
    """Those of a run below a heading, and the command that prints all with their fixes; nothing without any."""
    caveats = of_warnings(run.warnings)
    notes, left = caveat_notes(caveats, verbose=verbose)
    yield from [Title("Caveats"), *notes] if notes else []
    if not verbose and (left or any(short != full for short, full in caveats)):
        yield Text(f"Fixes{f' and {left} more' if left else ''}: {typed('show', run.id, '-v')}", "quiet")
