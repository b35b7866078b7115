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
)
@click.argument("reference", metavar="[RUN]", required=False, shell_complete=complete.runs)
@click.option("--baseline", metavar="RUN", help="Measure this run's plan again.", shell_complete=complete.runs)
@click.option(
    "--max-slowdown", metavar="PERCENT", help="What is surely slower by more than this is worse; 5% if not said."
)
@click.option(
    "--expect",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.toml",
    help="Measure what this file has thresholds for, or look at RUN.",
)
@click.option("--time", "time_", metavar="DURATION", help="How long to measure before anything looks suspicious.")
@click.option(
    "--patience",
    metavar="DURATION",
    help="How long to go on with what is inconclusive against a baseline; 2m if not said.",
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
    """Measure again, and say whether anything got slower, or misses what is expected.

    With --baseline, a run's plan is measured again in 6 launches or more. What looks slower is judged by as many new
    ones, and by more while --patience lasts. A series is worse if it is slower than allowed with 95 % confidence, and
    no drift of the machine explains it. With --expect the thresholds of a file are looked at. Ends with 0: all is well,
    1: something is worse or missed, 2: the command line, a file or the baseline is not usable, 3: something could not
    be decided or measured, or the baseline is of another CPU.
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
        raise UsageError("check goes against a baseline or a file of expectations: give one of them, not both")
    if baseline is None and expect is None:
        raise UsageError("say what to check against: --baseline RUN, or --expect FILE.toml")
    if baseline is not None and reference is not None:
        raise UsageError("--baseline measures anew, so it takes no RUN; to look at two stored runs: `hockney compare`")
    if expect is not None and max_slowdown is not None:
        raise UsageError("--max-slowdown goes with --baseline; the limits of --expect stand in its file")
    if expect is not None and patience is not None:
        raise UsageError("--patience goes with --baseline; --time says how long to measure for --expect")


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
    from hockney.cli.changes import comparison_json, difference_text
    from hockney.cli.junit import write_junit
    from hockney.cli.labels import find_run
    from hockney.cli.measuring import command_line, measuring
    from hockney.measure.check import check as look

    with measuring(store, create=False) as (catalogue, results, display):
        checked = look(
            str(find_run(results, reference)),
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
        _print(checked, slowdown)
    if junit is not None:  # last, so that nothing keeps the verdict back
        properties = [(f"changed: {one.what}", difference_text(one)) for one in found.differences]
        properties += [(f"disturbed: run {one.run}", one.cause) for one in found.disturbances]
        code = write_junit(junit, f"hockney check against run {found.base}", _cases(found), code, properties)
    return code


def exit_code(checked: Checked) -> int:
    """What a check against a baseline ends with."""
    is_fine = checked.is_whole and checked.comparison.other_cpu is None
    return ExitCode.WORSE if checked.is_worse else ExitCode.DONE if is_fine else ExitCode.INCOMPLETE


def _print(checked: Checked, slowdown: float) -> None:
    """One line for each finding, then one for what is well: what a log is searched for stands at the beginning."""
    from hockney.analysis.compare import Verdict
    from hockney.cli.changes import alone_sentence, range_sentence, surroundings_lines
    from hockney.units import percent_digits

    found = checked.comparison
    words = {Verdict.SLOWER: "worse", Verdict.INCONCLUSIVE: "inconclusive"}
    for line in surroundings_lines(found):
        render.say(line)
    for one in found.ranges:
        if one.verdict in words:
            render.say(f"{words[one.verdict]}: {range_sentence(one, found.confidence)}")
    if found.only_base:
        render.say(f"inconclusive: {alone_sentence(found.base, found.only_base)}")
    if found.other_cpu:
        render.say(f"inconclusive: {_other_cpu_sentence(found)}")
    for remedy in found.remedies:
        render.say(f"remedy: {remedy}")
    fine = len(found.changes) - sum(found.counts[verdict] for verdict in words)
    hidden = f"; {_hidden_sentence(found.widest)}" if found.widest else ""
    again = f"; {checked.judged_again} judged again" if checked.judged_again else ""
    host = f"; run {found.base} was measured on another host, {found.other_host.base}" if found.other_host else ""
    told = f"none of {len(found.changes)} series can be called ok against run {found.base}"
    if fine:
        ok = "" if found.other_cpu else "ok: "
        limit = f"{percent_digits(slowdown)} % against run {found.base}"
        told = f"{ok}{fine} of {len(found.changes)} series: no slowdown beyond {limit} seen"
    render.say(f"{told}{hidden}{again}{host}; the check is run {checked.run_id}")


def _other_cpu_sentence(found: Comparison) -> str:
    cpu = found.other_cpu
    assert cpu is not None
    return (
        f"run {found.base} was measured on another CPU ({cpu.base}, and this is {cpu.new}), so what differs may be the "
        "machine, and what does not may be slower than it should be here; take a baseline on this machine"
    )


def _hidden_sentence(change: SeriesChange) -> str:
    """`an interval reaches as far as +30.2 %: pingpong on tcp, 2 ranks, 1 MiB`: so large a slowdown could hide."""
    from hockney.cli.changes import change_text, curve_name
    from hockney.units import format_bytes

    assert change.shift is not None
    assert change.shift.high is not None
    where = curve_name(change) + (f", {format_bytes(change.point.bytes)}" if change.point.is_sized else "")
    return f"an interval reaches as far as {change_text(change.shift.high)}: {where}"


def _hidden_json(found: Comparison) -> dict[str, Any] | None:
    """The largest slowdown that what is called fine may still hide; None where all intervals end within the limit."""
    from hockney.cli.changes import point_json

    hidden = found.widest
    if hidden is None or hidden.shift is None:
        return None
    return {"sentence": _hidden_sentence(hidden), "ratio": hidden.shift.high, "point": point_json(hidden.point)}


def _cases(found: Comparison) -> list[Case]:
    """One for each series, whatever became of it, so that a CI system can follow it from check to check."""
    from hockney.cli.changes import alone_sentence
    from hockney.cli.junit import Case

    cases = [_case(change, one, found) for one in found.ranges for change in one.changes]
    cases += [Case(*_case_name(point), inconclusive=alone_sentence(found.base, [point])) for point in found.only_base]
    if found.other_cpu:
        cases.append(Case("baseline", "CPU", inconclusive=_other_cpu_sentence(found)))
    return cases


def _case(change: SeriesChange, of: Range, found: Comparison) -> Case:
    from hockney.analysis.compare import Verdict
    from hockney.cli.changes import range_sentence
    from hockney.cli.junit import Case

    sentence = range_sentence(replace(of, changes=(change,)), found.confidence, found.margin)
    return Case(
        *_case_name(change.point),
        missed=sentence if change.verdict is Verdict.SLOWER else None,
        inconclusive=sentence if change.verdict is Verdict.INCONCLUSIVE else None,
        remark=sentence if found.may_hide(change) else None,
        details=range_sentence(of, found.confidence, found.margin) if len(of.changes) > 1 else None,
    )


def _case_name(point: Point) -> tuple[str, str]:
    """`pingpong on tcp` and `2 ranks, window=4, 8 KiB`; a library's transport has its version, as in the new run."""
    from hockney.units import format_bytes

    options = [f"{name}={value}" for name, value in point.options]
    size = [format_bytes(point.bytes)] if point.is_sized else []
    return f"{point.pattern} on {point.transport}", ", ".join([point.ranks_text, *options, *size])
