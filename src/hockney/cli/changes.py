"""What `compare` and `check` share: the lines below their series, and their JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hockney.cli import render
from hockney.cli.rerun import command_line, fix_text
from hockney.report.changes import environment_lines, protocol_text, range_sentence, reason_text
from hockney.stats import CONFIDENCE

if TYPE_CHECKING:
    from hockney.analysis.compare import Comparison, Range, SeriesChange
    from hockney.model import Point


def say_environment(found: Comparison, *, everything: bool) -> int:
    """Print a line for what changed and one for what disturbed the runs, or one for each item; returns how many."""
    lines = 0
    for word, items in environment_lines(found):
        if everything:
            for item in items:
                render.say(f"{word}: {item}")
            lines += len(items)
            continue
        shown = 1
        while shown < len(items) and len("; ".join(items[: shown + 1])) < render.line_width() - 30:
            shown += 1
        more = f"; {len(items) - shown} more in --json" if shown < len(items) else ""
        render.say(f"{word}: {'; '.join(items[:shown])}{more}")
        lines += 1
    return lines


def comparison_json(found: Comparison) -> dict[str, Any]:
    """All that a comparison says; `sentence` is for people."""
    return {
        "base": found.base,
        "new": found.new,
        "launches": {"base": found.launches[0], "new": found.launches[1]},
        "interleaved": found.interleaved,
        "margin": found.margin,
        "differences": [asdict(difference) for difference in found.differences],
        "disturbances": [asdict(disturbance) for disturbance in found.disturbances],
        "counts": {verdict.value: count for verdict, count in found.counts.items()},
        "explained_by_chance": found.by_chance,
        "confidence": CONFIDENCE,
        "ranges": [_range_json(one, found) for one in found.ranges],
        "series": [_series_json(change) for change in found.changes],
        "only_base": [point_json(point) for point in found.only_base],
        "only_new": [point_json(point) for point in found.only_new],
        "remedies": [fix_text(fix) for fix in found.fixes],
        "commands": [command_line(fix) for fix in found.fixes if fix.argv],
        "drifting": found.drifting,
    }


def point_json(point: Point) -> dict[str, Any]:
    """A point with its options by name."""
    known = {name: value for name, value in asdict(point).items() if name != "traits"}
    return {**known, "options": dict(point.options)}


def _range_json(found: Range, of: Comparison) -> dict[str, Any]:
    point, runs = found.first.point, (of.base, of.new)
    return {
        "verdict": found.verdict.value,
        "sentence": range_sentence(found, runs),
        "transport": point.transport,
        "pattern": point.pattern,
        "ranks": point.ranks,
        "options": dict(point.options),
        "bytes": [change.point.bytes for change in found.changes],
        "states": found.states,
        "protocol": protocol_text(found, runs),
        "reason": reason_text(found.first.reasons),
        "reason_codes": [reason.code.value for reason in found.first.reasons],
    }


def _series_json(change: SeriesChange) -> dict[str, Any]:
    return {
        "point": point_json(change.point),
        "verdict": change.verdict.value,
        "reason": reason_text(change.reasons),
        "reason_codes": [reason.code.value for reason in change.reasons],
        "states": [] if change.state is None else [change.state],
        "base_ns": change.base_ns,
        "new_ns": change.new_ns,
        "short": change.is_short,
        "shift": None if change.shift is None else asdict(change.shift),
        "chance": change.chance,
    }
