"""The verdicts of `hockney check`: series that became slower than in a baseline, and limits in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hockney.analysis.compare import Comparison, SeriesChange, Verdict
from hockney.analysis.compare.values import VARIABLE
from hockney.analysis.expect import (
    Expectations,
    Judged,
    LimitReason,
    Outcome,
    judge_expectations,
    load_expectations,
    read_expectations,
)
from hockney.analysis.health.faults import weak_hosts
from hockney.analysis.host_series import SUITE, series_of
from hockney.cli.junit import JUnitCase, JUnitReport
from hockney.cli.measuring import measuring
from hockney.cli.progress import VerdictDisplay
from hockney.errors import ExitCode, UsageError
from hockney.measure.check import PATIENCE_S, check, plan_of_baseline, plan_of_limits
from hockney.measure.check import check_expectations as measure_expectations
from hockney.measure.plan import Plan
from hockney.model import Point
from hockney.report.changes import change_percent
from hockney.report.document import Sentence
from hockney.report.documents.comparison import (
    NOTES_MAX,
    bound_text,
    comparison_json,
    notes,
    only_in_sentence,
    range_sentence,
    range_sentences,
    states_text,
    worst_table,
)
from hockney.report.documents.runs import no_baseline
from hockney.report.words import cell_text
from hockney.results.export import figure_json
from hockney.results.runs import Run, open_results
from hockney.results.store import Store
from hockney.stats.figures import ONE_LAUNCH
from hockney.stats.states import CONTENTION
from hockney.units import counted, format_bytes, format_ns, format_rate, ordinal
from hockney.worker.catalogue import Catalogue, load

_JUNIT_KINDS = {Verdict.SLOWER: "failure", Verdict.INCONCLUSIVE: "skipped"}

# ---- against a baseline ---------------------------------------------------------------------------------------------


def check_baseline(
    reference: str | None,
    max_slowdown: float | None,
    time_s: float | None,
    patience_s: float | None,
    store: Path | None,
    *,
    quiet: bool = False,
) -> JUnitReport:
    """Measure the plan of a run again and compare; None: of the accepted one. Raises UsageError for an unusable one."""
    with measuring("check", store, load(), create=False, quiet=quiet, make_display=VerdictDisplay) as lab:
        comparison = check(
            reference or _accepted(lab.store),
            lab,
            max_slowdown=0.05 if max_slowdown is None else max_slowdown,
            time_s=time_s,
            patience_s=PATIENCE_S if patience_s is None else patience_s,
        )
        return report_of(comparison, _sampled_s(Run(lab.store, comparison.new)))


def _accepted(store: Store) -> str:
    accepted = store.accepted()
    if accepted is None:
        raise UsageError(f"{no_baseline()}; or name one with --baseline")
    return str(accepted.id)


def plan_of_check(path: Path | None, reference: str | None, time_s: float | None, store: Path | None) -> Plan:
    """What a check of limits, or else against a baseline, would measure. Raises UsageError."""
    if path is not None:
        return plan_of_limits(*_limits_of(path, is_measured=True), time_s)
    with Store.open(store, readonly=True) as results:
        base_id = results.find_run(reference or _accepted(results))
        if results.run(base_id).info.suite == SUITE:
            raise UsageError(f"run {base_id} is of hosts, whose pairs are chosen as it measures: leave out --dry-run")
        plan = plan_of_baseline(results, base_id, load())
    return plan if time_s is None else plan.within(time_s=time_s)


def _sampled_s(run: Run) -> dict[Point, float]:
    """How long the samples of each point took."""
    return {
        series.point: 1e-9
        * sum(each.samples * each.batch * each.definition.divisor * (each.median_ns or 0.0) for each, _ in series.pairs)
        for series in run.series
    }


def report_of(comparison: Comparison, sampled_s: Mapping[Point, float] = MappingProxyType({})) -> JUnitReport:
    """The printed form of a check: on the screen a line for each range that is slower or inconclusive."""
    is_open = comparison.counts[Verdict.INCONCLUSIVE] or comparison.only_base or comparison.other_cpu
    code = ExitCode.WORSE if comparison.counts[Verdict.SLOWER] else ExitCode.INCOMPLETE if is_open else ExitCode.DONE
    failing = [alike for alike in comparison.ranges if alike.verdict in _JUNIT_KINDS]
    below = [f"inconclusive: {_other_cpu_sentence(comparison)}"] if comparison.other_cpu else []
    is_changed = any(each.what.startswith(VARIABLE) for each in comparison.differences)
    below += [*notes(comparison)[: NOTES_MAX if code != ExitCode.DONE else is_changed], _summary(comparison)]
    document = {"judged_again": comparison.judged_again, "may_hide": _hidden_json(comparison)}
    return JUnitReport(
        f"hockney check against run {comparison.base}",
        comparison.new,
        code,
        [*range_sentences(failing, comparison), *below],
        {**document, **comparison_json(comparison)},
        _cases(comparison, sampled_s),
        [*worst_table(comparison), *map(Sentence, below)],
    )


def _summary(comparison: Comparison) -> str:
    """`2 slower, 41 ok (a slowdown above 6.3 % would have shown), 1 inconclusive: run 7 against run 3, limit +5 %`."""
    counts = comparison.counts
    inconclusive = counts[Verdict.INCONCLUSIVE] + len(comparison.only_base)
    fine = counts[Verdict.SAME] + counts[Verdict.FASTER]
    again = f", {comparison.judged_again} judged again" if comparison.judged_again else ""
    limit = change_percent(comparison.margin).replace(".0", "")
    hidden = f" ({bound_text('slowdown', widest.reach - 1)})" if (widest := comparison.widest) else ""
    return (
        f"{counts[Verdict.SLOWER]} slower, {fine} ok{hidden}, {inconclusive} inconclusive{again}: "
        f"run {comparison.new} against run {comparison.base}, limit {limit}"
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
    sentence = f"{group}, {name}: {bound_text('slowdown', hidden.reach - 1)}"
    return {"sentence": sentence, "ratio": hidden.reach, "point": hidden.point}


def _cases(comparison: Comparison, sampled_s: Mapping[Point, float]) -> list[JUnitCase]:
    """One for each series, so that a CI system can follow it from check to check."""
    cases = [
        JUnitCase(
            *_case_name(change.point),
            _JUNIT_KINDS.get(change.verdict, ""),
            range_sentence(replace(alike, changes=(change,)), comparison),
            _figures(change, comparison),
            sampled_s.get(change.point, 0.0),
        )
        for alike in comparison.ranges
        for change in alike.changes
    ]
    cases += [
        JUnitCase(*_case_name(point), "skipped", only_in_sentence(comparison.base, [point]))
        for point in comparison.only_base
    ]
    if comparison.other_cpu:
        cases.append(JUnitCase("baseline", "CPU", "skipped", _other_cpu_sentence(comparison)))
    return cases


def _figures(change: SeriesChange, comparison: Comparison) -> dict[str, float | str | None]:
    ratio = change.shift and {"ratio": change.shift.ratio, "low": change.shift.low, "high": change.shift.high}
    state = states_text(change, comparison) if change.states else None
    return {"base_ns": change.base_ns, "new_ns": change.new_ns, **(ratio or {}), "state": state}


def _case_name(point: Point) -> tuple[str, str]:
    """`pingpong on tcp` and `2 ranks, window=4, 8 KiB`; a library's transport has its version, as in the new run."""
    options = [f"{name}={value}" for name, value in point.options]
    size = [format_bytes(point.bytes)] if point.is_sized else []
    return f"{point.pattern} on {point.transport}", ", ".join([point.ranks_text, *options, *size])


# ---- limits in a file -----------------------------------------------------------------------------------------------


def _limits_of(path: Path, *, is_measured: bool) -> tuple[Expectations, Catalogue]:
    """The limits in a file. Raises UsageError: for mistakes of its form before workers are built."""
    tables = read_expectations(path).expect
    of_hosts = [number for number, table in enumerate(tables, start=1) if table.hosts]
    if of_hosts and is_measured:
        place = f"the {ordinal(of_hosts[0])} [[expect]] of {path}"
        raise UsageError(f"{place} is for hosts: measure them with", argv=("hockney", "health", "--expect", str(path)))
    catalogue = load()
    return load_expectations(path, catalogue), catalogue


def check_expectations(
    path: Path, reference: str | None, time_s: float | None, store: Path | None, *, quiet: bool = False
) -> JUnitReport:
    """Check every limit of the file, in a stored run or in a new one. Raises UsageError."""
    expectations, catalogue = _limits_of(path, is_measured=reference is None)
    if reference is None:
        with measuring("check", store, catalogue, quiet=quiet) as lab:
            run_id, judged = measure_expectations(expectations, lab, time_s=time_s)
            sampled_s = _sampled_s(Run(lab.store, run_id))
    else:
        with open_results(store) as results:
            run = results.run(reference)
            judged = judge_expectations(run, expectations, catalogue, series_of(run, weak_hosts(run)))
            run_id, sampled_s = run.id, _sampled_s(run)
    counts = Counter(limit.outcome for limit in judged)
    code = ExitCode.INCOMPLETE if counts[Outcome.INCONCLUSIVE] else ExitCode.DONE
    code = ExitCode.WORSE if counts[Outcome.MISSED] else code
    return JUnitReport(
        f"hockney check --expect {path.name}",
        run_id,
        code,
        _limit_lines(judged, run_id),
        {"limits": [_judged_json(limit, run_id) for limit in judged]},
        [_limit_case(limit, run_id, sampled_s) for limit in judged],
    )


def _limit_lines(judged: Sequence[Judged], run_id: int) -> list[str]:
    others = [limit for limit in judged if limit.outcome is not Outcome.MET]
    lines = [f"{limit.outcome.value}: {limit_sentence(limit, run_id)}" for limit in others]
    figures = [limit.figure for limit in others if limit.figure is not None and limit.figure.has_interval]
    if any(figure.interval_over == ONE_LAUNCH for figure in figures):
        lines.append("Intervals are within one launch.")
    counts = Counter(limit.outcome for limit in judged)
    listed = ", ".join(
        f"{counts[outcome]} {outcome.value}" for outcome in (Outcome.MISSED, Outcome.MET, Outcome.INCONCLUSIVE)
    )
    return [*lines, f"{listed}: {counted(len(judged), 'limit')}, run {run_id}"]


def _limit_case(limit: Judged, run_id: int, sampled_s: Mapping[Point, float]) -> JUnitCase:
    kinds = {Outcome.MET: "", Outcome.MISSED: "failure", Outcome.INCONCLUSIVE: "skipped"}
    name = f"{limit.what}: {limit.subject}"
    names = ("value_ns", "low_ns", "high_ns", "rate_bytes_per_s", "state")
    columns = limit.figure.columns() if limit.figure is not None else {}
    figures = {name: columns[name] for name in names if name in columns}
    time_s = sampled_s.get(limit.point, 0.0) if limit.point else 0.0
    return JUnitCase("expectations", name, kinds[limit.outcome], limit_sentence(limit, run_id), figures, time_s)


def limit_sentence(limit: Judged, run_id: int) -> str:
    """`pingpong of 8 B on shm, 2 ranks: latency 45.0 ns ±3% (near), expected <= 40.0 ns`."""
    expected = f"<= {format_ns(limit.limit)}" if limit.what == "latency" else f">= {format_rate(limit.limit)}"
    value = f"{limit.what} {_value(limit)}" if limit.figure is not None else limit.what
    reason = f"; {_reason(limit, run_id)}" if limit.reason else ""
    return (
        f"{limit.subject if limit.point is None else limit.point}: {value}, expected {expected} ({limit.place}){reason}"
    )


def _reason(limit: Judged, run_id: int) -> str:
    state = f"state {limit.of.state.name}" if limit.of.state else "any one machine state"
    between = f" between ranks of the class '{limit.of.pair_class}'" if limit.of.pair_class else ""
    known = f"; it has the classes {', '.join(limit.classes) or 'none'}" if between and limit.classes else ""
    return {
        LimitReason.NO_SERIES: f"run {run_id} has no such series{between}{known}",
        LimitReason.NOT_MEASURED: limit.message,
        LimitReason.FEW_MEASUREMENTS: f"too few measurements{between} in {state} for an interval",
        LimitReason.CONTENDED: f"{CONTENTION}, so this decides nothing; `state` would count it",
        LimitReason.OTHER_STATE: "the limit is met in other machine states; this state has too few measurements",
        LimitReason.UNCERTAIN: "the interval contains the limit; a longer --time narrows it",
        None: "",
    }[limit.reason]


def _value(limit: Judged) -> str:
    figure = limit.figure
    assert figure is not None
    rate = None if limit.what == "latency" else figure.bytes_per_s
    cell = cell_text(figure, figure.time, format_ns) if rate is None else cell_text(figure, rate, format_rate)
    return " ".join(filter(None, cell)) + ("" if limit.of.hosts else f" ({figure.state})")


def _judged_json(limit: Judged, run_id: int) -> dict[str, Any]:
    """A judged limit as JSON. It has only one of the two limits, because their units differ."""
    return {
        "place": limit.place,
        "subject": limit.subject,
        "what": limit.what,
        "outcome": limit.outcome.value,
        "sentence": limit_sentence(limit, run_id),
        "point": limit.point,
        "figure": limit.figure and figure_json(limit.figure),
        "reason": _reason(limit, run_id) or None,
        "reason_code": limit.reason.value if limit.reason else None,
        "limit_ns": limit.limit if limit.what == "latency" else None,
        "limit_bytes_per_s": limit.limit if limit.what == "bandwidth" else None,
    }
