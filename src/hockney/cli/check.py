"""`hockney check`: a verdict that a script can use."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.cli.clashes import refuse_clashes
from hockney.cli.common import command, complete, dry_run_option, duration_option, file_option, quiet_option
from hockney.cli.junit import junit_error, markdown_error, reported, write_junit, write_markdown
from hockney.errors import ExitCode
from hockney.render.json import print_json
from hockney.render.text import say
from hockney.report.document import Sentence
from hockney.results.store import default_path
from hockney.units import parse_increase


@command(
    "check",
    example="""hockney check --max-slowdown 5%
    hockney check --baseline nightly --junit hockney.xml
    hockney check --expect expect.toml
    hockney check --expect expect.toml last""",
    codes=tuple(ExitCode),
)
@click.argument("reference", metavar="[RUN]", required=False, shell_complete=complete("run"))
@click.option(
    "--baseline",
    metavar="RUN",
    help="Measure this run's plan again. [default: the run that was accepted]",
    shell_complete=complete("run"),
)
@click.option(
    "--max-slowdown",
    type=parse_increase,
    metavar="PERCENT",
    help="Fail if a series is slower by more than this, with 95 % confidence. [default: 5%]",
)
@file_option("--expect", metavar="FILE.toml", help="Check the limits of this file, on RUN or by measuring.")
@duration_option("--time", "time_s", help="How long to measure at most. [default: the baseline's time]")
@duration_option("--patience", "patience_s", help="How much longer if series are inconclusive then. [default: 2m]")
@file_option("--junit", help="Also write a JUnit file.")
@file_option("--markdown", help="Also write the verdicts as Markdown: a table, the worst first.")
@quiet_option
@dry_run_option
def check(
    reference: str | None,
    baseline: str | None,
    max_slowdown: float | None,
    expect: Path | None,
    time_s: float | None,
    patience_s: float | None,
    junit: Path | None,
    markdown: Path | None,
    quiet: bool,
    dry_run: bool,
    *,
    as_json: bool,
    store: Path | None,
) -> int:
    """Check for slowdowns against a baseline, or limits in a file.

    Measures a baseline's plan again, in 6 launches or more. It ends before if the answer is certain: a series is slower
    by far, or none is slower. Small slowdowns take the whole --time. A change that drift of the machine may explain is
    inconclusive. With --expect, checks the limits of a file. A baseline from a different CPU is inconclusive: exit
    code 3.
    """
    needed = [store or default_path(), *([] if expect is None else [expect])]
    with (
        reported("--junit", junit, junit_error, needed),
        reported("--markdown", markdown, markdown_error, [*needed, *([junit] if junit else [])]),
    ):
        from hockney.cli.measuring import show_plan
        from hockney.cli.progress import VerdictDisplay
        from hockney.cli.verdicts import check_baseline, check_expectations, plan_of_check

        refuse_clashes(click.get_current_context(), as_json=as_json)
        if dry_run:
            goal = "" if expect else VerdictDisplay.goal
            return show_plan(plan_of_check(expect, baseline, time_s, store), as_json=as_json, goal=goal)
        if expect is not None:
            report = check_expectations(expect, reference, time_s, store, quiet=quiet)
        else:
            report = check_baseline(baseline, max_slowdown, time_s, patience_s, store, quiet=quiet)
        if as_json:
            print_json("check", {"run": report.run_id, "exit_code": report.code, **report.document})
        else:
            for line in report.lines:
                say(line)
        if junit is not None:
            write_junit(junit, report.title, report.cases)
        if markdown is not None:
            write_markdown(markdown, report.blocks or map(Sentence, report.lines))
    return report.code
