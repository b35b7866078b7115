"""`hockney check --expect`: thresholds in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hockney.analysis.compare.expect import Judged, LimitReason, Outcome, judge, load_expectations
from hockney.cli import render
from hockney.cli.changes import point_json
from hockney.cli.curves import format_interval, say_one_launch
from hockney.cli.junit import Case, write_junit
from hockney.cli.measuring import command_line, measuring
from hockney.errors import ExitCode, UsageError
from hockney.measure.check import check_expectations as measure_expectations
from hockney.results.runs import open_results
from hockney.units import counted, format_ns, format_rate
from hockney.worker.catalogue import load


def check_expectations(
    path: Path, reference: str | None, time_s: float | None, junit: Path | None, *, as_json: bool, store: Path | None
) -> int:
    """Look at every limit of the file, in a stored run or in one that is measured now; gives the exit code."""
    if reference is not None:
        if time_s is not None:
            raise UsageError("--time is for measuring, and a named RUN is measured already: leave one of them out")
        catalogue = load()
        expectations = load_expectations(path, catalogue)
        with open_results(store) as results:
            run = results.run(reference)
            run_id, judged = run.id, judge(run, expectations, catalogue)
    else:
        expectations = load_expectations(path, load())
        with measuring(store, create=True) as (catalogue, opened, display):
            run_id, judged = measure_expectations(
                expectations, catalogue, opened, display, command=command_line("check"), time_s=time_s
            )
    outcomes = [one.outcome for one in judged]
    code: int = ExitCode.DONE
    if Outcome.MISSED in outcomes:
        code = ExitCode.WORSE
    elif Outcome.INCONCLUSIVE in outcomes:
        code = ExitCode.INCOMPLETE
    if as_json:
        limits = [_judged_json(one, run_id) for one in judged]
        render.print_json("check", {"run": run_id, "exit_code": code, "limits": limits})
    else:
        _print(run_id, judged)
    if junit is not None:  # last, so that nothing keeps the verdict back
        code = write_junit(junit, f"hockney check --expect {path.name}", _cases(judged, run_id), code)
    return code


def _print(run_id: int, judged: Sequence[Judged]) -> None:
    for one in judged:
        if one.outcome is not Outcome.MET:
            render.say(f"{one.outcome.value}: {limit_sentence(one, run_id)}")
    figures = [one.figure for one in judged if one.figure is not None and one.outcome is not Outcome.MET]
    say_one_launch(figure.interval_over for figure in figures if figure.low_ns is not None)
    counts = Counter(one.outcome for one in judged)
    listed = ", ".join(
        f"{counts[outcome]} {outcome.value}" for outcome in (Outcome.MISSED, Outcome.MET, Outcome.INCONCLUSIVE)
    )
    render.say(f"{listed}: {counted(len(judged), 'limit')}, run {run_id}")


def limit_sentence(one: Judged, run_id: int) -> str:
    """`pingpong of 8 B on shm, 2 ranks: latency 45.0 ns (44.1 - 46.2 ns, near), expected <= 40.0 ns`."""
    limit = f"<= {format_ns(one.limit)}" if one.what == "latency" else f">= {format_rate(one.limit)}"
    value = f"{one.what} {_value(one)}" if one.figure is not None else one.what
    reason = f"; {_reason(one, run_id)}" if one.reason else ""
    return f"{one.subject if one.point is None else one.point}: {value}, expected {limit} ({one.place}){reason}"


def _reason(one: Judged, run_id: int) -> str:
    state = f"state {one.of.state.name}" if one.of.state else "any one machine state"
    between = f" between ranks of the class '{one.of.pair_class}'" if one.of.pair_class else ""
    known = f"; it has the classes {', '.join(one.classes) or 'none'}" if between and one.classes else ""
    return {
        LimitReason.NO_SERIES: f"run {run_id} has no such series{between}{known}",
        LimitReason.NOT_MEASURED: one.message,
        LimitReason.FEW_MEASUREMENTS: f"too few measurements{between} in {state} for an interval",
        LimitReason.OTHER_STATE: "the limit is met in other machine states; this one has too few measurements",
        LimitReason.UNCERTAIN: "the interval contains the limit; a longer --time narrows it",
        None: "",
    }[one.reason]


def _value(one: Judged) -> str:
    figure = one.figure
    assert figure is not None
    if one.what == "latency":
        return f"{format_ns(figure.value_ns)} ({format_interval(figure.low_ns, figure.high_ns)}, {figure.state})"
    rates = (figure.rate_bytes_per_s, figure.rate_low_bytes_per_s, figure.rate_high_bytes_per_s)
    value, low, high = (format_rate(rate or 0.0) for rate in rates)
    interval = "too few measurements" if figure.low_ns is None else f"{low} to {high}"
    return f"{value} ({interval}, {figure.state})"


def _judged_json(one: Judged, run_id: int) -> dict[str, Any]:
    """Of the two limits only one is there, because their units differ."""
    return {
        "place": one.place,
        "subject": one.subject,
        "what": one.what,
        "outcome": one.outcome.value,
        "sentence": limit_sentence(one, run_id),
        "point": None if one.point is None else point_json(one.point),
        "figure": None if one.figure is None else asdict(one.figure),
        "reason": _reason(one, run_id) or None,
        "reason_code": one.reason.value if one.reason else None,
        "limit_ns": one.limit if one.what == "latency" else None,
        "limit_bytes_per_s": one.limit if one.what == "bandwidth" else None,
    }


def _cases(judged: Sequence[Judged], run_id: int) -> list[Case]:
    """A test for each limit, whose name neither its outcome nor another table of the file changes.

    Where two tables say the same of the same point, both names have the place.
    """
    names = [f"{one.what}: {one.subject}" for one in judged]
    count = Counter(names)
    cases = []
    for one, name in zip(judged, names, strict=True):
        sentence = limit_sentence(one, run_id)
        cases.append(
            Case(
                "expectations",
                name if count[name] == 1 else f"{name} ({one.place})",
                missed=sentence if one.outcome is Outcome.MISSED else None,
                inconclusive=sentence if one.outcome is Outcome.INCONCLUSIVE else None,
            )
        )
    return cases
