"""`hockney check`: a verdict that a script can use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli import complete, render
from hockney.cli.common import command
from hockney.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hockney.analysis.compare import Comparison, Range, SeriesChange
    from hockney.cli.junit import Case
    from hockney.measure.check import Checked
    from hockney.model import Point


@command(
    "check",
    example="""hockney check --baseline before --max-slowdown 5%
    hockney check --baseline nightly --junit hockney.xml
    hockney check --expect expect.toml
    hockney check --expect expect.toml last""",
    codes=tuple(ExitCode),
)
@click.argument("reference", metavar="[RUN]", required=False, shell_complete=complete.runs)
@click.option("--baseline", metavar="RUN", help="Measure this run's plan again.", shell_complete=complete.runs)
@click.option(
    "--max-slowdown",
    metavar="PERCENT",
    help="Fail if a series is slower by more than this, with 95 % confidence. [default: 5%]",
)
@click.option(
    "--expect",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.toml",
    help="Check the limits of this file, on RUN or by measuring.",
)
@click.option(
    "--time", "time_", metavar="DURATION", help="How long to measure at first. [default: the baseline's time]"
)
@click.option(
    "--patience",
    metavar="DURATION",
    help="How long to go on measuring what is inconclusive. [default: 2m]",
)
@click.option(
    "--junit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also write a JUnit file."
)
def check(
    reference: str | None,
    baseline: str | None,
    max_slowdown: str | None,
    expect: Path | None,
    time_: str | None,
    patience: str | None,
    junit: Path | None,
    *,
    as_json: bool,
    store: Path | None,
) -> int:
    """Check for slowdowns against a baseline, or limits in a file.

    With --baseline, measures a run's plan again in 6 launches or more, then judges what looks slower by as many new
    launches, and by more while --patience lasts. A change that drift of the machine may explain is inconclusive. With
    --expect, checks the limits of a file. A baseline from a different CPU is never fine: exit code 3.
    """
    from hockney.cli.junit import reported
    from hockney.measure.check import PATIENCE_S
    from hockney.results.store import default_path
    from hockney.units import parse_duration_s, parse_increase

    with reported(junit, [store or default_path(), *([] if expect is None else [expect])]):
        _refuse_contradictions(reference, baseline, max_slowdown, expect, patience)
        time_s = None if time_ is None else parse_duration_s(time_)
        slowdown = parse_increase("5%" if max_slowdown is None else max_slowdown)
        patience_s = PATIENCE_S if patience is None else parse_duration_s(patience)
        if baseline is not None:
            return _check_baseline(baseline, slowdown, time_s, patience_s, junit, as_json=as_json, store=store)
        assert expect is not None
        from hockney.cli.expectations import check_expectations

        return check_expectations(expect, reference, time_s, junit, as_json=as_json, store=store)


def _refuse_contradictions(
    reference: str | None, baseline: str | None, max_slowdown: str | None, expect: Path | None, patience: str | None
) -> None:
    if baseline is not None and expect is not None:
        raise UsageError("give --baseline or --expect: give one of them, not both")
    if baseline is None and expect is None:
        raise UsageError("say what to check against: --baseline RUN or --expect FILE.toml")
    if baseline is not None and reference is not None:
        raise UsageError("--baseline measures, so it takes no RUN; to compare two stored runs: `hockney compare`")
    if expect is not None and max_slowdown is not None:
        raise UsageError("--max-slowdown goes with --baseline; the limits of --expect are in its file")
    if expect is not None and patience is not None:
        raise UsageError("--patience goes with --baseline; for --expect use --time")


def _check_baseline(
    reference: str,
    slowdown: float,
    time_s: float | None,
    patience_s: float,
    junit: Path | None,
    *,
    as_json: bool,
    store: Path | None,
) -> int:
    from hockney.cli.changes import comparison_json
    from hockney.cli.junit import write_junit
    from hockney.cli.measuring import command_line, measuring
    from hockney.measure.check import check as measure_again
    from hockney.report.changes import difference_text

    with measuring(store, create=False) as (catalogue, results, display):
        checked = measure_again(
            str(results.find_run(reference)),
            catalogue,
            results,
            display,
            command=command_line("check"),
            max_slowdown=slowdown,
            time_s=time_s,
            patience_s=patience_s,
        )
    found = checked.comparison
    code = exit_code(checked)
    if as_json:
        document = {
            "run": checked.run_id,
            "exit_code": code,
            "judged_again": checked.judged_again,
            "may_hide": _hidden_json(found),
            **comparison_json(found),
        }
        render.print_json("check", document)
    else:
        print_check(checked)
    if junit is not None:  # last, so that nothing keeps the verdict back
        properties = [(f"changed: {one.what}", difference_text(one)) for one in found.differences]
        properties += [(f"disturbed: run {one.run}", one.cause) for one in found.disturbances]
        code = write_junit(junit, f"hockney check against run {found.base}", junit_cases(found), code, properties)
    return code


def exit_code(checked: Checked) -> int:
    """What a check against a baseline ends with."""
    is_fine = checked.is_whole and checked.comparison.other_cpu is None
    return ExitCode.WORSE if checked.is_worse else ExitCode.DONE if is_fine else ExitCode.INCOMPLETE


def print_check(checked: Checked) -> None:
    """A line for each range that is slower or inconclusive, what may be the cause, and a summary."""
    from hockney.analysis.compare import Verdict
    from hockney.cli.changes import say_environment
    from hockney.cli.rerun import fix_text
    from hockney.report import changes

    found = checked.comparison
    counts, names = found.counts, changes.names_of(found)
    for one in found.ranges:
        if one.verdict in (Verdict.SLOWER, Verdict.INCONCLUSIVE):
            change = changes.change_text(one).replace("(", "(95 % CI ")
            why = changes.reason_text(one.first.reasons) or changes.protocol_text(one, (found.base, found.new))
            details = ", ".join(text for text in (change, why) if text and text != "-")
            render.say(f"{one.verdict.value}: {changes.range_name(one, names)}: {details}")
    if found.only_base:
        render.say(f"inconclusive: {changes.only_in_sentence(found.base, found.only_base)}")
    if found.other_cpu:
        render.say(f"inconclusive: {_other_cpu_sentence(found)}")
    if exit_code(checked) != ExitCode.DONE:
        say_environment(found, everything=False)
    for fix in found.fixes:
        render.say(f"Fix: {fix_text(fix)}")
    inconclusive = counts[Verdict.INCONCLUSIVE] + len(found.only_base)
    fine = counts[Verdict.SAME] + counts[Verdict.FASTER]
    reach = f" (CI up to {changes.percent_text(found.widest.reach)})" if found.widest else ""
    again = f", {checked.judged_again} judged again" if checked.judged_again else ""
    limit = changes.percent_text(found.margin).replace(".0", "")
    render.say(
        f"{counts[Verdict.SLOWER]} slower, {fine} ok{reach}, {inconclusive} inconclusive{again}: "
        f"run {checked.run_id} against run {found.base}, limit {limit}"
    )


def _other_cpu_sentence(found: Comparison) -> str:
    cpu = found.other_cpu
    assert cpu is not None
    return (
        f"run {found.base} was measured on a different CPU ({cpu.base}; this is {cpu.new}), which may hide or explain "
        "any change: take a baseline on this machine"
    )


def _hidden_json(found: Comparison) -> dict[str, Any] | None:
    """The largest slowdown that what is called fine may hide; None where all intervals end within the limit."""
    from hockney.cli.changes import point_json
    from hockney.report.changes import curve_name, percent_text
    from hockney.units import format_bytes

    hidden = found.widest
    if hidden is None:
        return None
    where = curve_name(hidden.point) + (f", {format_bytes(hidden.point.bytes)}" if hidden.point.is_sized else "")
    sentence = f"an interval reaches as far as {percent_text(hidden.reach)}: {where}"
    return {"sentence": sentence, "ratio": hidden.reach, "point": point_json(hidden.point)}


def junit_cases(found: Comparison) -> list[Case]:
    """One for each series, so that a CI system can follow it from check to check."""
    from hockney.cli.junit import Case
    from hockney.report.changes import only_in_sentence

    cases = [_case(change, one, found) for one in found.ranges for change in one.changes]
    cases += [Case(*_case_name(point), inconclusive=only_in_sentence(found.base, [point])) for point in found.only_base]
    if found.other_cpu:
        cases.append(Case("baseline", "CPU", inconclusive=_other_cpu_sentence(found)))
    return cases


def _case(change: SeriesChange, of: Range, found: Comparison) -> Case:
    from hockney.analysis.compare import Verdict
    from hockney.cli.junit import Case
    from hockney.report.changes import range_sentence

    runs = found.base, found.new
    sentence = range_sentence(replace(of, changes=(change,)), runs)
    return Case(
        *_case_name(change.point),
        missed=sentence if change.verdict is Verdict.SLOWER else None,
        inconclusive=sentence if change.verdict is Verdict.INCONCLUSIVE else None,
        remark=sentence if found.may_hide(change) else None,
        details=range_sentence(of, runs) if len(of.changes) > 1 else None,
    )


def _case_name(point: Point) -> tuple[str, str]:
    """`pingpong on tcp` and `2 ranks, window=4, 8 KiB`; a library's transport has its version, as in the new run."""
    from hockney.units import format_bytes

    options = [f"{name}={value}" for name, value in point.options]
    size = [format_bytes(point.bytes)] if point.is_sized else []
    return f"{point.pattern} on {point.transport}", ", ".join([point.ranks_text, *options, *size])
