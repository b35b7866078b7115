"""`hockney explain`: findings about a run, or about the published figures of a machine of the archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli import complete, render
from hockney.cli.common import command
from hockney.errors import UsageError, unknown
from hockney.units import counted

if TYPE_CHECKING:
    from hockney.analysis.explain import Explanation
    from hockney.analysis.finding import Finding, Fix, NotChecked, Note

_FINDINGS_MAX, _LINES_MAX = 10, 40  # of a screen without --all
_NOTES_MAX = 3
_WIDE = 100  # columns, in which a table of fits has two parts at most


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
            from hockney.cli.rerun import typed

            if reference not in machines():
                raise
            raise UsageError(
                f"no run is called '{reference}', but a machine of the archive is: "
                f"{typed('explain', '--machine', reference)}"
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

    if fix is None:
        return None
    return {"text": fix.text, "argv": list(fix.argv), "command": command_line(fix) or None}


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
    while shown < min(len(texts), _FINDINGS_MAX) and len(texts[shown]) <= room:
        room -= len(texts[shown])
        shown += 1
    shown = max(shown, min(1, len(texts)))
    _print_head(found)
    for lines in (*notes, *texts[:shown]):
        render.lines(lines)
    more = [counted(len(groups) - shown, "finding")] if shown < len(groups) else []
    for noun, members in (("LogGP fit", found.loggp), ("layer", found.layers), ("line", found.lines)):
        height = 2 * len(members) + 5  # a table may be in two parts
        if members and not more and height <= room and render.line_width() >= _WIDE:
            room -= height
            _print_fits(found, noun)
        elif members:
            more.append(counted(len(members), noun))
    if more:
        render.note(f"More with --all: {', '.join(more)}.", style="dim")
    if gaps:
        render.title("Not checked")
        render.lines(gaps)


def _print_all(found: Explanation) -> None:
    _print_head(found)
    for note in found.notes:
        render.note(_note_text(note))
    for finding in found.findings:
        render.lines(_finding_lines([finding], with_state=True))
        for source in finding.sources:
            render.item(f"Source: {source}", style="dim")
    for noun in ("line", "LogGP fit", "layer"):
        _print_fits(found, noun)
    if found.not_checked:
        render.title("Not checked")
        for gap in found.not_checked:
            how = f"; {_fix_text(gap.how)}" if gap.how else ""
            render.item(f"{gap.what}: {gap.reason.value}: {gap.detail}{how}", style="dim")


def _print_fits(found: Explanation, noun: str) -> None:
    from hockney.cli import fits
    from hockney.report.findings import layer_text

    if noun == "line":
        fits.print_lines(found.lines)
        fits.print_off_lines(found.off_lines)
    elif noun == "LogGP fit":
        fits.print_loggp(found.loggp)
    elif found.layers:
        render.title("What each layer adds to half a round trip")
        for layer in found.layers:
            render.item(layer_text(layer))


def _print_head(found: Explanation) -> None:
    count = len(found.findings)
    states = {finding.subject.state for finding in found.findings} - {""}
    state = f", state {states.pop()}" if len(states) == 1 else ""
    render.title(f"{found.subject}: {counted(count, 'finding') if count else 'no findings'}{state}", first=True)


def grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings of one kind and cause on several transports together, strongest first.

    That a library yields is left out where it is the cause of another finding.
    """
    yielding = {finding.subject.transport for finding in findings if finding.cause == "yields"}
    groups: dict[tuple[object, ...], list[Finding]] = {}
    repeats: dict[tuple[object, ...], int] = {}
    for finding in findings:
        about, facts = finding.subject, finding.facts
        if finding.code == "yielding library" and about.transport in yielding:
            continue
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
