"""`hockney check`: a verdict that a script can use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli import complete, render
from hockney.cli.common import FINE, UNDECIDED, WORSE, command, refuse_unwritable
from hockney.errors import UsageError

if TYPE_CHECKING:
    from hockney.check import Checked
    from hockney.cli.junit import Case
    from hockney.compare import Comparison, Range, SeriesChange


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
    help="How long to go on with what is undecided against a baseline; 2m if not said.",
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

    With --baseline a run's plan is measured again, in six launches beside a run of five, what looks slower once more in
    as many new ones, what they leave undecided until --patience is over, and only what is surely slower than allowed is
    worse. With --expect the thresholds of a file are looked at. Ends with 0: all is well, 1: something is worse or
    missed, 3: something could not be decided or measured.
    """
    from hockney.check import PATIENCE_S
    from hockney.units import parse_duration_s, parse_increase

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
    time_s = None if time_ is None else parse_duration_s(time_)
    if junit is not None:
        refuse_unwritable(junit)
    if baseline is not None:
        slowdown = parse_increase("5%" if max_slowdown is None else max_slowdown)
        patience_s = PATIENCE_S if patience is None else parse_duration_s(patience)
        return _check_baseline(baseline, slowdown, time_s, patience_s, junit, as_json=as_json, store=store)
    assert expect is not None
    from hockney.cli.expectations import check_expectations

    return check_expectations(expect, reference, time_s, junit, as_json=as_json, store=store)


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
    from hockney.check import check as look
    from hockney.cli.changes import comparison_json
    from hockney.cli.junit import write_junit
    from hockney.cli.labels import find_run
    from hockney.cli.measuring import command_line, measuring

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
    ranges = checked.comparison.ranges
    code = exit_code(checked)
    if as_json:
        document = {
            "run": checked.run_id,
            "exit_code": code,
            "remeasured": checked.remeasured,
            "may_hide": _hidden_json(checked.comparison),
            **comparison_json(checked.comparison),
        }
        render.print_json("check", document)
    else:
        _print(checked, ranges, slowdown)
    if junit is not None:  # last, so that nothing keeps the verdict back
        title = f"hockney check against run {checked.comparison.base}"
        code = write_junit(junit, title, [_case(one, checked.comparison) for one in ranges], code)
    return code


def exit_code(checked: Checked) -> int:
    """What a check against a baseline ends with."""
    return WORSE if checked.is_worse else FINE if checked.is_whole else UNDECIDED


def _print(checked: Checked, ranges: Sequence[Range], slowdown: float) -> None:
    """One line for each finding, then one for what is well: what a log is searched for stands at the beginning."""
    from hockney.cli.changes import alone_sentence, range_sentence
    from hockney.cli.compare import difference_text
    from hockney.compare import Verdict
    from hockney.units import percent_digits

    found = checked.comparison
    words = {Verdict.SLOWER: "worse", Verdict.UNDECIDED: "undecided"}
    for difference in found.differences:
        render.say(f"changed: {difference_text(difference)}")
    for one in ranges:
        if one.verdict in words:
            render.say(f"{words[one.verdict]}: {range_sentence(one, found.confidence)}")
    if found.only_base:
        render.say(f"undecided: {alone_sentence(found.base, found.only_base)}")
    fine = len(found.changes) - sum(found.counts[verdict] for verdict in words)
    hidden = f"; {_hidden_sentence(found.widest)}" if found.widest else ""
    again = f"; {checked.remeasured} measured again" if checked.remeasured else ""
    render.say(
        f"ok: {fine} of {len(found.changes)} series not seen to be slower than run {found.base} by more than "
        f"{percent_digits(slowdown)} %{hidden}{again}; the check is run {checked.run_id}"
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


def _case(one: Range, found: Comparison) -> Case:
    from hockney.cli.changes import curve_name, range_sentence, sizes_text
    from hockney.cli.junit import Case
    from hockney.compare import Verdict

    sentence = range_sentence(one, found.confidence)
    return Case(
        curve_name(one.first),
        sizes_text(one) or one.first.point.pattern,
        missed=sentence if one.verdict is Verdict.SLOWER else None,
        undecided=sentence if one.verdict is Verdict.UNDECIDED else None,
        remark=sentence if any(map(found.may_hide, one.changes)) else None,
    )
