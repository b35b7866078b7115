"""`hockney explain`: findings about a run, or about the published figures of a machine of the archive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli import complete, render
from hockney.cli.common import command
from hockney.cli.render import Column
from hockney.errors import UsageError, unknown
from hockney.units import counted, format_bytes, format_ns, format_rate

if TYPE_CHECKING:
    from hockney.analysis.explain import Explanation, Line, OffLine, Parameters
    from hockney.analysis.finding import Finding, Fix, NotChecked, Note
    from hockney.stats.fit import Estimate

_FINDINGS_MAX, _LINES_MAX = 10, 40  # of a screen without --all
_NOTES_MAX = 3
_RANGE_MIN = 0.5  # an interval whose longer arm is this fraction of the value is printed as a range,
_BOUND_MIN = 10.0  # and one whose ends differ by this factor as a bound
_HOLDS = {True: "yes", False: "no", None: "unknown"}


@command("explain", example="hockney explain last\nhockney explain --machine t3d")
@click.argument("reference", required=False, metavar="[RUN]", shell_complete=complete.runs)
@click.option(
    "-m",
    "--machine",
    metavar="NAME",
    help="A machine of the archive instead of a run: its published figures.",
    shell_complete=complete.machines,
)
@click.option("--all", "everything", is_flag=True, help="Every finding, all fits and layers, and every gap.")
def explain(reference: str | None, machine: str | None, everything: bool, *, as_json: bool, store: Path | None) -> None:
    """Explain the figures of a run.

    Prints the ten strongest findings: protocol switches, bends, cache limits, slow ranks, outliers and others, each
    with the evidence, the likely cause and what to do; then what was not checked, and why. RUN is a number, a label,
    `last` (the default), or `last~1` for the one before. docs/explain.md describes each finding.
    """
    if reference is not None and machine is not None:
        raise UsageError("explain takes a run or a machine of the archive (--machine NAME): give one of them, not both")
    found = _of_machine(machine) if machine is not None else _of_run(reference, store)
    if as_json:
        render.print_json("explain", explanation_json(found))
    elif everything:
        _print_all(found)
    else:
        _print_strongest(found)


def _of_run(reference: str | None, store: Path | None) -> Explanation:
    from hockney.analysis.explain import explain_run
    from hockney.results.runs import open_results

    with open_results(store) as results:
        try:
            run = results.run("last" if reference is None else reference)
        except UsageError as error:
            from hockney.archive import machines

            if reference not in machines():
                raise
            raise UsageError(
                f"no run is called '{reference}', but a machine of the archive is: "
                f"`hockney explain --machine {reference}`"
            ) from error
        return explain_run(run)


def _of_machine(name: str) -> Explanation:
    from hockney.archive import machines

    if name not in machines():
        raise unknown("machine", name, machines())
    from hockney.archive.explain import explain_machine

    return explain_machine(machines()[name])


# ---- JSON -----------------------------------------------------------------------------------------------------------


def explanation_json(found: Explanation) -> dict[str, Any]:
    """Everything, with each finding and note also as a sentence, and each fix also as the command to type."""
    from hockney.report.findings import note_text, sentence_of

    document = asdict(found)
    document["findings"] = [
        {**asdict(one), "text": sentence_of(one), "fix": _fix_json(one.fix)} for one in found.findings
    ]
    document["notes"] = [{**asdict(one), "text": note_text(one), "fix": _fix_json(one.fix)} for one in found.notes]
    document["not_checked"] = [
        {"what": gap.what, "reason": gap.reason.value, "detail": gap.detail, "how": _fix_json(gap.how)}
        for gap in found.not_checked
    ]
    return document


def _fix_json(fix: Fix | None) -> dict[str, Any] | None:
    from hockney.cli.rerun import command_line

    return None if fix is None else {"text": fix.text, "argv": list(fix.argv), "command": command_line(fix) or None}


# ---- the screen -----------------------------------------------------------------------------------------------------


def _print_strongest(found: Explanation) -> None:
    """At most ten findings, each once for all transports that have it, in at most 40 lines."""
    groups = grouped(found.findings)
    states = {finding.subject.state for finding in found.findings} - {""}
    texts = [_finding_lines(group, with_state=len(states) > 1) for group in groups]
    notes = [render.wrapped(_note_text(note), rest="  ") for note in found.notes[:_NOTES_MAX]]
    gaps = _gap_lines(found.not_checked)
    room = _LINES_MAX - 3 - sum(map(len, notes)) - (len(gaps) + 2 if gaps else 0)
    shown = 0
    while shown < min(len(texts), _FINDINGS_MAX) and (room := room - len(texts[shown])) >= 0:
        shown += 1
    shown = max(shown, min(1, len(texts)))
    _print_head(found)
    for lines in (*notes, *texts[:shown]):
        render.lines(lines)
    more = [counted(len(groups) - shown, "finding")] if shown < len(groups) else []
    fits = {"line": found.lines, "LogGP fit": found.loggp, "layer": found.layers}
    more += [counted(len(members), noun) for noun, members in fits.items() if members]
    if more:
        render.note(f"More with --all: {', '.join(more)}.", style="dim")
    if gaps:
        render.title("Not checked")
        render.lines(gaps)


def _print_all(found: Explanation) -> None:
    from hockney.report.findings import layer_text

    _print_head(found)
    for note in found.notes:
        render.note(_note_text(note))
    for finding in found.findings:
        render.lines(_finding_lines([finding], with_state=True))
        for source in finding.sources:
            render.item(f"Source: {source}", style="dim")
    _print_lines(found.lines)
    _print_off_lines(found.off_lines)
    _print_loggp(found.loggp)
    if found.layers:
        render.title("What each layer adds to half a round trip")
        for layer in found.layers:
            render.item(layer_text(layer))
    if found.not_checked:
        render.title("Not checked")
        for gap in found.not_checked:
            how = f"; {_fix_text(gap.how)}" if gap.how else ""
            render.item(f"{gap.what}: {gap.reason.value}: {gap.detail}{how}", style="dim")


def _print_head(found: Explanation) -> None:
    count = len(found.findings)
    states = {finding.subject.state for finding in found.findings} - {""}
    state = f", state {states.pop()}" if len(states) == 1 else ""
    render.title(f"{found.subject}: {counted(count, 'finding') if count else 'no findings'}{state}", first=True)


def grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings of one kind and cause on several transports together, strongest first."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    repeats: dict[tuple[object, ...], int] = {}
    for finding in findings:
        about, facts = finding.subject, finding.facts
        kind = (finding.code, finding.cause, facts.get("answer"), facts.get("threshold"), "fall_ns" in facts)
        of_transport = (*kind, about.transport, about.state)
        repeats[of_transport] = repeats.get(of_transport, -1) + 1
        groups.setdefault((*kind, not about.transport, repeats[of_transport]), []).append(finding)
    return list(groups.values())


def _finding_lines(group: Sequence[Finding], *, with_state: bool) -> list[str]:
    """At most three paragraphs: the title with the evidence, the likely cause, the fix."""
    from hockney.cli.rerun import command_line
    from hockney.report.findings import cause_of, evidence_of, title_of

    finding = group[0]
    names = [_where(one, with_state=with_state) for one in group]
    also = ", ".join(dict.fromkeys(name for name in names if name != names[0]))
    head = f"{names[0]}: {title_of(finding)}. {evidence_of(finding)}".removeprefix(": ")
    lines = render.wrapped(head + (f" Also on {also}." if also else ""), first="- ", rest="  ")
    cause, fix = cause_of(finding), finding.fix
    lines += render.wrapped(cause, first="  ", rest="    ") if cause else []
    if fix is not None:
        text = f"Fix: {_fix_text(fix)}"
        is_long = fix.argv and len(text) + 2 > render.line_width()
        lines += render.wrapped(f"Try: `{command_line(fix)}`" if is_long else text, first="  ", rest="    ")
    return lines


def _where(finding: Finding, *, with_state: bool) -> str:
    about = finding.subject
    return f"{about.transport} ({about.state})" if about.transport and about.state and with_state else about.transport


def _gap_lines(gaps: Sequence[NotChecked]) -> list[str]:
    """One line for each reason, and one with the commands that measure the most."""
    from hockney.cli.rerun import command_line

    reasons: dict[str, dict[str, None]] = {}
    for gap in gaps:
        reasons.setdefault(gap.reason.value, {})[gap.what] = None
    lines = [
        line
        for reason, names in reasons.items()
        for line in render.wrapped(f"{reason}: {_first_names(list(names))}", first="  ", rest="    ")
    ]
    commands = dict.fromkeys(command_line(gap.how) for gap in gaps if gap.how)
    if any(commands):
        lines += render.wrapped(
            f"To measure: {'; '.join(f'`{one}`' for one in commands if one)}", first="  ", rest="    "
        )
    return lines


def _first_names(names: Sequence[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more (--all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _note_text(note: Note) -> str:
    from hockney.report.findings import note_text

    return note_text(note) + (f" {_fix_text(note.fix)}" if note.fix else "")


def _fix_text(fix: Fix) -> str:
    from hockney.cli.rerun import fix_text

    text = fix_text(fix)
    return text if text.endswith((".", "`")) else f"{text}."


# ---- tables of fits -------------------------------------------------------------------------------------------------


def _print_lines(lines: Sequence[Line]) -> None:
    if not lines:
        return
    render.title("Straight lines through the times (t_0 + size / r_inf), by segment")
    rows = [
        (
            *_fit_head(line, line.first_bytes, line.last_bytes),
            _with_arm(line.t0_ns, format_ns),
            _with_arm(line.r_inf_bytes_per_s, format_rate),
            _with_arm(line.n_half_bytes, lambda value: format_bytes(round(value))),
            f"{line.relative_rms:.1%}",
            line.state,
            line.pair_class or "-",
        )
        for line in lines
    ]
    render.table(_fit_columns("t_0", "r_inf", "n_1/2", "misses"), rows)
    render.note("misses: weighted root mean square of (measured - line) / line. -: not determined by the data.")


def _print_off_lines(off_lines: Sequence[OffLine]) -> None:
    curves: dict[tuple[object, ...], list[OffLine]] = {}
    for one in off_lines:
        curves.setdefault((one.transport, one.pattern, one.ranks, one.pair_class, one.state), []).append(one)
    for members in curves.values():
        sizes = ", ".join(f"{format_bytes(one.bytes)} ({format_ns(one.time_ns.value)})" for one in members)
        first = members[0]
        where = ", ".join(filter(None, (first.state, first.pair_class)))
        render.note(f"Off every line of {_of(first)}{f' ({where})' if where else ''}: {sizes}.")


def _print_loggp(found: Sequence[Parameters]) -> None:
    if not found:
        return
    render.title("LogGP by segment of the half round trip")
    rows = [
        (
            *_fit_head(one, one.loggp.first_bytes, one.loggp.last_bytes),
            *(
                _with_arm(value, format_ns)
                for value in (one.loggp.latency_ns, one.loggp.send_ns, one.loggp.receive_ns, one.loggp.gap_ns)
            ),
            _with_arm(one.loggp.rate_bytes_per_s, format_rate),
            f"{one.loggp.relative_rms:.1%}",
            _HOLDS[one.loggp.holds],
            one.state,
            one.pair_class or "-",
        )
        for one in found
    ]
    render.table(_fit_columns("L", "o_s", "o_r", "g", "1/G", "misses", "holds"), rows)
    render.note("holds: whether L, o_s and o_r are all above zero, as LogGP assumes (docs/methods.md).")


def _of(one: Line | OffLine | Parameters) -> str:
    ranks = f", {counted(one.ranks, 'rank')}" if one.ranks != 2 else ""
    return f"{one.pattern} on {one.transport}{ranks}"


def _fit_head(one: Line | Parameters, first_bytes: int, last_bytes: int) -> tuple[str, str]:
    return _of(one), f"{format_bytes(first_bytes)} - {format_bytes(last_bytes)}"


def _fit_columns(*titles: str) -> list[Column]:
    return [
        Column("of", wrap=True, key=True),
        Column("sizes", right=True, key=True),
        *(Column(title, right=True) for title in titles),
        Column("state", key=True),
        Column("ranks share", optional=True),
    ]


def _with_arm(value: Estimate | None, text: Callable[[float], str]) -> str:
    """`133 ns ±1.2%`: the longer arm of the interval; a range or a bound where that is half the value or more.

    None of these values can be below zero.
    """
    from hockney.analysis.estimates import relative

    if value is None:
        return "-"
    if value.low <= 0:
        return f"at most {text(value.high)}" if value.high > 0 else "below 0"
    arm = relative(value)
    if arm < _RANGE_MIN:
        return f"{text(value.value)} ±{arm:.1%}"
    is_vague = value.high >= _BOUND_MIN * value.low
    return f"at least {text(value.low)}" if is_vague else f"{text(value.low)} to {text(value.high)}"
