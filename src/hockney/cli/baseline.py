"""`hockney check --baseline`: measures a run's plan again, and lists the series that became slower."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from hockney.analysis.compare import Comparison, Verdict
from hockney.cli.changes import comparison_json, notes
from hockney.cli.check import JUnitCase, JUnitReport
from hockney.cli.measuring import command_line, measuring
from hockney.errors import ExitCode
from hockney.measure.check import PATIENCE_S, CheckResult, check
from hockney.model import Point
from hockney.report import changes
from hockney.units import format_bytes

_JUNIT_KINDS = {Verdict.SLOWER: "failure", Verdict.INCONCLUSIVE: "skipped"}


def check_baseline(
    reference: str, max_slowdown: float | None, time_s: float | None, patience_s: float | None, store: Path | None
) -> JUnitReport:
    """Measure the plan of a run again and compare. Raises UsageError for an unusable baseline."""
    with measuring(store, create=False) as (catalogue, results, display):
        checked = check(
            str(results.find_run(reference)),
            catalogue,
            results,
            display,
            command=command_line("check"),
            max_slowdown=0.05 if max_slowdown is None else max_slowdown,
            time_s=time_s,
            patience_s=PATIENCE_S if patience_s is None else patience_s,
        )
    return report_of(checked)


def report_of(checked: CheckResult) -> JUnitReport:
    """The printed form of a check: on the screen a line for each range that is slower or inconclusive."""
    comparison = checked.comparison
    is_fine = checked.is_whole and comparison.other_cpu is None
    code = ExitCode.WORSE if checked.is_worse else ExitCode.DONE if is_fine else ExitCode.INCOMPLETE
    failing = [alike for alike in comparison.ranges if alike.verdict in _JUNIT_KINDS]
    lines = changes.range_sentences(failing, comparison)
    lines += [f"inconclusive: {_other_cpu_sentence(comparison)}"] if comparison.other_cpu else []
    lines += notes(comparison)[:3] if code != ExitCode.DONE else []
    document = {"judged_again": checked.judged_again, "may_hide": _hidden_json(comparison)}
    return JUnitReport(
        f"hockney check against run {comparison.base}",
        checked.run_id,
        code,
        [*lines, _summary(checked)],
        {**document, **comparison_json(comparison)},
        _cases(comparison),
    )


def _summary(checked: CheckResult) -> str:
    """`2 slower, 41 ok (a slowdown up to 6.3 % could hide), 1 inconclusive: run 7 against run 3, limit +5 %`."""
    comparison, counts = checked.comparison, checked.comparison.counts
    inconclusive = counts[Verdict.INCONCLUSIVE] + len(comparison.only_base)
    fine = counts[Verdict.SAME] + counts[Verdict.FASTER]
    again = f", {checked.judged_again} judged again" if checked.judged_again else ""
    limit = changes.percent_text(comparison.margin).replace(".0", "")
    hidden = changes.hidden_text(comparison)
    return (
        f"{counts[Verdict.SLOWER]} slower, {fine} ok{hidden}, {inconclusive} inconclusive{again}: "
        f"run {checked.run_id} against run {comparison.base}, limit {limit}"
    )


def _other_cpu_sentence(comparison: Comparison) -> str:
    cpu = comparison.other_cpu
    assert cpu is not None
    return (
        f"run {comparison.base} was measured on a different CPU ({cpu.base}; this is {cpu.new}), which may hide or "
        "explain any change: take a baseline on this machine"
    )


def _hidden_json(comparison: Comparison) -> dict[str, Any] | None:
    """The largest slowdown that a fine series may hide; None if all intervals end within the limit."""
    hidden = comparison.widest
    if hidden is None:
        return None
    group, name = _case_name(hidden.point)
    sentence = f"an interval reaches as far as {changes.percent_text(hidden.reach)}: {group}, {name}"
    return {"sentence": sentence, "ratio": hidden.reach, "point": hidden.point}


def _cases(comparison: Comparison) -> list[JUnitCase]:
    """One for each series, so that a CI system can follow it from check to check."""
    cases = [
        JUnitCase(
            *_case_name(change.point),
            _JUNIT_KINDS.get(change.verdict, ""),
            changes.range_sentence(replace(alike, changes=(change,)), comparison),
        )
        for alike in comparison.ranges
        for change in alike.changes
    ]
    cases += [
        JUnitCase(*_case_name(point), "skipped", changes.only_in_sentence(comparison.base, [point]))
        for point in comparison.only_base
    ]
    if comparison.other_cpu:
        cases.append(JUnitCase("baseline", "CPU", "skipped", _other_cpu_sentence(comparison)))
    return cases


def _case_name(point: Point) -> tuple[str, str]:
    """`pingpong on tcp` and `2 ranks, window=4, 8 KiB`; a library's transport has its version, as in the new run."""
    options = [f"{name}={value}" for name, value in point.options]
    size = [format_bytes(point.bytes)] if point.is_sized else []
    return f"{point.pattern} on {point.transport}", ", ".join([point.ranks_text, *options, *size])
