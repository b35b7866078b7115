"""A comparison as a document and as JSON; `check` has its sentences and notes, too."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hockney.analysis.compare.values import MOVED, Comparison, Range, Reason, ReasonCode, SeriesChange, Verdict
from hockney.machine.files import read_toml
from hockney.model import Point, curve_of
from hockney.report.changes import (
    change_percent,
    change_text,
    curve_name,
    factor_text,
    names_of,
    range_name,
    times_text,
)
from hockney.report.commands import command_line, fix_text, typed
from hockney.report.document import Block, Column, Sentence, Table
from hockney.report.notes import SHORT_NOTE
from hockney.report.words import NOTHING
from hockney.stats import CONFIDENCE
from hockney.units import counted, format_bytes, percent_digits

NOTES_MAX = 3  # on a screen
_WORST_MAX = 20  # rows, of a check
_REASONS: Mapping[str, str] = read_toml(Path(__file__).with_suffix(".toml"))["reason"]  # by the code


def reason_text(reasons: Sequence[Reason]) -> str | None:
    """The reasons why a series is inconclusive, as one sentence; None without reasons."""
    return "; ".join(_REASONS[reason.code.value].format(**_texts(reason.facts)) for reason in reasons) or None


def _texts(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: " / ".join(fact) if isinstance(fact, list) else fact for name, fact in facts.items()}


def _codes_text(reasons: Iterable[Reason]) -> str:
    """`few launches`: the names of reasons alone."""
    return ", ".join(reason.code.value for reason in reasons)


def row(alike: Range, comparison: Comparison, names: Mapping[str, str]) -> list[str]:
    """The cells of a range: series, base, new, change or why there is none, verdict. `names` of transports."""
    change = _codes_text(alike.first.reasons) or change_text(alike, by_factor=comparison.is_by_factor)
    verdict = "no difference" if alike.verdict is Verdict.SAME else alike.verdict.value
    seen = [each.seen_ratio for each in alike.changes if each.seen_ratio and comparison.has_no_verdict]
    if seen:
        text = factor_text if comparison.is_by_factor else change_percent
        change = text(statistics.median(seen))
    return [range_name(alike, names), times_text(alike, 0), times_text(alike, 1), change, verdict]


def narrow_rows(ranges: Iterable[Range], comparison: Comparison, names: Mapping[str, str]) -> list[list[str]]:
    """The same for a narrow screen: no options that a whole pattern shares, and only the times of the first size."""
    kinds = Counter(pattern for pattern, _ in {(each.point.pattern, each.point.options) for each in comparison.changes})
    rows = []
    for alike in ranges:
        (name, _, _, *verdict), point = row(alike, comparison, names), alike.first.point
        if kinds[point.pattern] == 1:
            name = name.replace(point.pattern_text, point.pattern, 1)
        times = [times_text(Range((alike.first,)), side) for side in (0, 1)]
        more = "…" if len(alike.changes) > 1 else ""
        rows.append([name, *(time if time == NOTHING else f"{time}{more}" for time in times), *verdict])
    return rows


def protocol_text(alike: Range) -> str | None:
    """`the change begins above btl_vader_eager_limit`: the documented limit just below the range, if it changed."""
    return f"the change begins above {alike.limit}" if alike.limit and alike.verdict in MOVED else None


def states_text(change: SeriesChange, comparison: Comparison) -> str:
    """`near`: the machine state compared; `near in run 1 and far in run 2` where the runs name it differently."""
    base, new = change.states
    return base if base == new else f"{base} in run {comparison.base} and {new} in run {comparison.new}"


def footer(comparison: Comparison) -> str:
    """`Machine state: near. In rows of several sizes: the median change, the outermost interval.`; "" of no change."""
    states = Counter(states_text(change, comparison) for change in comparison.changes if change.states)
    named = [f"{text} ({count} series)" if len(states) > 1 else text for text, count in states.most_common(2)]
    sentences = [f"Machine state: {'; '.join(named)}{'; …' if len(states) > 2 else '.'}"] if states else []
    if any(alike.ratio and len(alike.changes) > 1 and not alike.first.is_exact for alike in comparison.ranges):
        of = "hosts or links" if comparison.is_of_hosts else "sizes"
        sentences.append(f"In rows of several {of}: the median change, the outermost interval.")
    if any(change.is_apart for change in comparison.changes):
        of_rounds = "Changes compare both sides round by round, in any machine state; base and new are of one state."
        unit = "measurements" if comparison.is_of_hosts else "launches"
        of_launches = f"Changes leave out extreme {unit}, base and new do not."
        sentences.append(of_rounds if comparison.interleaved else of_launches)
    if any(change.is_of_other_state for change in comparison.changes):
        sentences.append("`show` has some of these series in another machine state.")
    return " ".join(sentences)


def range_sentence(alike: Range, comparison: Comparison, *, explain: bool = True) -> str:
    """All that is known of a range: `slower: pingpong on tcp, 8-32 KiB: +8.0 % (95 % CI …), 1.83-4.28 us -> …`.

    Without `explain` the reason is only named, not explained.
    """
    change = change_text(alike, by_factor=comparison.is_by_factor)
    times = [times_text(alike, side) for side in (0, 1)]
    texts = [
        change.replace("(", "(95 % CI ") if change != NOTHING else None,
        " -> ".join(times) if NOTHING not in times else None,
        " / ".join(dict.fromkeys(states_text(each, comparison) for each in alike.changes if each.states)) or None,
        protocol_text(alike),
        reason_text(alike.first.reasons) if explain else _codes_text(alike.first.reasons),
    ]
    name = range_name(alike, names_of(comparison))
    return f"{alike.verdict.value}: {name}: {', '.join(text for text in texts if text)}"


def range_sentences(ranges: Iterable[Range], comparison: Comparison) -> list[str]:
    """A sentence for each range, but one for all without a common machine state; each reason in full only once."""
    sentences, explained = [], set[str | None]()
    for alike in ranges:
        if not alike.first.has(ReasonCode.NO_COMMON_STATE):
            is_known = (why := reason_text(alike.first.reasons)) in explained
            explained.add(why)
            sentences.append(range_sentence(alike, comparison, explain=not is_known))
    return [*sentences, *states_sentence(comparison)]


def states_sentence(comparison: Comparison) -> list[str]:
    """One sentence for all series without a common machine state: which states, and which series; none without any."""
    changes = comparison.without_common_state
    pairs: Counter[str] = Counter()
    for change in changes:
        facts = next(_texts(each.facts) for each in change.reasons if each.code is ReasonCode.NO_COMMON_STATE)
        pairs[f"run {comparison.base}: {facts['base']}, run {comparison.new}: {facts['new']}"] += 1
    states = "; ".join(text for text, _ in pairs.most_common(2)) + ("; …" if len(pairs) > 2 else "")
    have = f"{counted(len(changes), 'series has', 'series have')} no common machine state ({states})"
    curves = _curves_text([change.point for change in changes], names_of(comparison))
    return [f"inconclusive: {have}, so their times cannot be compared: {curves}"] if changes else []


def nothing_sentence(comparison: Comparison) -> str | None:
    """Why no series has a verdict: the reason of most. None where one has, and of series that states_sentence names."""
    changes = [change for change in comparison.changes if not change.has(ReasonCode.NO_COMMON_STATE)]
    reasons = Counter(reason_text(change.reasons) for change in changes).most_common(1)
    return f"Inconclusive: {reasons[0][0]}." if comparison.has_no_verdict and reasons else None


_WORDS = {Verdict.SAME: "equal"}


def bound_text(what: str, by: float) -> str:
    """`a difference above 4.3 % would have shown`: of a fraction, to three digits."""
    return f"a {what} above {percent_digits(float(f'{by:.3g}'))} % would have shown"


def counts_text(comparison: Comparison) -> str:
    """`New is slower at 4 KiB (+25.1 %), equal at 5 sizes (a difference above 4.3 % would have shown)`.

    Of several curves `slower in 3 series, equal in 12`; of one series by its verdict alone its change is added.
    """
    by_verdict: dict[Verdict, list[SeriesChange]] = {}
    for change in comparison.changes:
        by_verdict.setdefault(change.verdict, []).append(change)
    is_curve = len({curve_of(change.point) for change in comparison.changes}) == 1
    text = factor_text if comparison.is_by_factor else change_percent
    most = comparison.equal_within
    bound = f" ({bound_text('difference', most)})" if most else ""
    parts: list[str] = []
    for verdict in filter(by_verdict.__contains__, Verdict):
        first, *more = by_verdict[verdict]
        where = f"at {len(more) + 1} sizes" if is_curve else f"in {len(more) + 1}{'' if parts else ' series'}"
        if is_curve and not more and first.point.is_sized:
            ratio = first.ratio if verdict in MOVED else None
            where = f"at {format_bytes(first.point.bytes)}" + (f" ({text(ratio.value)})" if ratio else "")
        parts.append(f"{_WORDS.get(verdict, verdict.value)} {where}{bound if verdict is Verdict.SAME else ''}")
    return f"New is {', '.join(parts)}"


def differences_texts(comparison: Comparison) -> list[str]:
    """`kernel: Linux 6.1 -> Linux 6.6`: the differences around the runs."""
    return [
        f"{changed.what}: {changed.base or 'not known'} -> {changed.new or 'not known'}"
        for changed in comparison.differences
    ]


def only_in_sentence(run: int, points: Sequence[Point]) -> str:
    """`only in run 3: 13 series (pingpong on tcp, pingpong on unix, barrier on tcp)`."""
    return f"only in run {run}: {counted(len(points), 'series', 'series')} ({_curves_text(points)})"


def _curves_text(points: Iterable[Point], names: Mapping[str, str] | None = None) -> str:
    """`pingpong on tcp, pingpong on unix, barrier on tcp, …`: the first curves of some points."""
    curves = list(dict.fromkeys(curve_name(point, names) for point in points))
    return ", ".join(curves[:3]) + (", …" if len(curves) > 3 else "")


# ---- the document ---------------------------------------------------------------------------------------------------


def notes(comparison: Comparison, *, everything: bool = False, more: str = "--json") -> list[str]:
    """Notes for the reader besides the series, the most important first; the option `more` has those left out."""

    def first(items: list[str], limit: int, joint: str) -> str:
        shown = items if everything else items[:limit]
        return joint.join(shown) + (f" ({len(items) - len(shown)} more: {more})" if len(shown) < len(items) else "")

    differences = differences_texts(comparison)
    loads = [f"Run {event.run}: {event.cause}" for event in comparison.contention]  # what else ran, and an early end
    lines = [f"changed: {first(differences, 3, '; ')}"] if differences else []
    lines += [f"Fix: {fix_text(fix)}" for fix in comparison.fixes]
    lines += [first(loads, 1, " ")] if loads else []
    warning = caution(comparison)
    lines += [warning] if warning else []
    for run, points in ((comparison.base, comparison.only_base), (comparison.new, comparison.only_new)):
        lines += [only_in_sentence(run, points)] if points else []
    listed = (change for change in comparison.changes if everything or not change.has(ReasonCode.NO_COMMON_STATE))
    return [*lines, SHORT_NOTE] if any(change.is_short for change in listed) else lines


def caution(comparison: Comparison) -> str | None:
    """A warning that drift of the machine may explain the changes; None if that is unlikely."""
    if comparison.interleaved or comparison.is_of_hosts or not (comparison.has_no_cause or comparison.drifting):
        return None
    sleeping = ", ".join(comparison.drifting)
    why = "No known cause" if comparison.has_no_cause else f"Ranks sleep while they wait on {sleeping}"
    is_measured = not any(info.is_imported for info in comparison.infos)  # hockney cannot measure an import again
    confirm = f" To confirm, measure with --interleave ({typed('compare', '--help')})." if is_measured else ""
    return f"{why}: it may be drift.{confirm}"


def _columns(comparison: Comparison) -> list[Column | str]:
    return [
        Column("series", wrap=True, key=True),
        Column("base", right=True, optional=True),
        Column("new", right=True, optional=True),
        Column("change" if comparison.has_no_verdict else "change (95 % CI)", wrap=True),
        "verdict",
    ]


def worst_table(comparison: Comparison) -> Iterator[Block]:
    """The ranges of a check, the worst first, and how many more there are."""
    kinds, names = (Verdict.SLOWER, Verdict.INCONCLUSIVE, Verdict.SAME, Verdict.FASTER), names_of(comparison)
    by_change = sorted(comparison.ranges, key=lambda alike: -(alike.ratio.value if alike.ratio else 0.0))
    ranges = sorted(by_change, key=lambda alike: kinds.index(alike.verdict))
    yield Table(_columns(comparison), [row(alike, comparison, names) for alike in ranges[:_WORST_MAX]])
    if len(ranges) > _WORST_MAX:
        yield Sentence(f"{len(ranges) - _WORST_MAX} more.")


def comparison_document(comparison: Comparison, *, everything: bool) -> Iterator[Block]:
    """The series of `compare`, as ranges of sizes, and notes; `everything`: all of both, each in full."""
    names = names_of(comparison)
    ranges = [each for each in comparison.ranges if everything or not each.first.has(ReasonCode.NO_COMMON_STATE)]
    rows = [row(alike, comparison, names) for alike in ranges]
    yield Table(_columns(comparison), rows, narrow=narrow_rows(ranges, comparison, names))
    said = [footer(comparison)] if ranges else []
    below = [note for note in notes(comparison, everything=everything, more="--all") if ranges or note != SHORT_NOTE]
    if everything:
        others = [alike for alike in ranges if alike.verdict is not Verdict.SAME]
        said += below + range_sentences(others, comparison)
    else:
        nothing = nothing_sentence(comparison)
        said += [nothing or "", *states_sentence(comparison), *below[:NOTES_MAX]]
    hidden = 0 if everything else len(below[NOTES_MAX:])
    launches = "" if comparison.is_of_hosts else ", {} and {} launches".format(*comparison.launches)
    summary = f"run {comparison.base} -> run {comparison.new}{launches}"
    if everything or not nothing:
        summary = f"{counts_text(comparison)}; {summary}"
    said.append(summary + (f"; {counted(hidden, 'more note')}: --all" if hidden else ""))
    yield from map(Sentence, filter(None, said))


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """All that a comparison says; `sentence` is for people."""
    return {
        "base": comparison.base,
        "new": comparison.new,
        "launches": {"base": comparison.launches[0], "new": comparison.launches[1]},
        "interleaved": comparison.interleaved,
        "margin": comparison.margin,
        "differences": comparison.differences,
        "contention": comparison.contention,
        "only_base": comparison.only_base,
        "only_new": comparison.only_new,
        "drifting": comparison.drifting,
        "counts": {verdict.value: count for verdict, count in comparison.counts.items()},
        "explained_by_chance": comparison.by_chance,
        "confidence": CONFIDENCE,
        "ranges": [_range_json(alike, comparison) for alike in comparison.ranges],
        "series": [_series_json(change) for change in comparison.changes],
        "remedies": [fix_text(fix) for fix in comparison.fixes],
        "commands": [command_line(fix) for fix in comparison.fixes if fix.argv],
    }


def _range_json(alike: Range, comparison: Comparison) -> dict[str, Any]:
    point = alike.first.point
    return {
        "verdict": alike.verdict.value,
        "sentence": range_sentence(alike, comparison),
        "transport": point.transport,
        "pattern": point.pattern,
        "ranks": point.ranks,
        "options": dict(point.options),
        "bytes": [change.point.bytes for change in alike.changes],
        "states": alike.states,
        "protocol": protocol_text(alike),
        "reason": reason_text(alike.first.reasons),
        "reason_codes": [reason.code.value for reason in alike.first.reasons],
    }


def _series_json(change: SeriesChange) -> dict[str, Any]:
    return {
        "point": change.point,
        "verdict": change.verdict.value,
        "reason": reason_text(change.reasons),
        "reason_codes": [reason.code.value for reason in change.reasons],
        "states": Range((change,)).states,
        "base_ns": change.base_ns,
        "new_ns": change.new_ns,
        "short": change.is_short,
        "shift": change.shift,
        "chance": change.chance,
    }
