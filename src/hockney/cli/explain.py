"""`hockney explain`: findings about a run, or about the published figures of a machine of the archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli import render
from hockney.cli.common import command
from hockney.cli.complete import complete
from hockney.cli.rerun import command_line, fix_text
from hockney.errors import UsageError, unknown
from hockney.units import counted

if TYPE_CHECKING:
    from hockney.analysis.explain import Explanation
    from hockney.analysis.finding import Finding, NotChecked, Note
    from hockney.errors import Fix

_FINDINGS_MAX, _FINDING_LINES_MAX, _LINES_MAX = 10, 3, 40  # of a screen without --all
_NOTES_MAX, _NAMES_MAX = 3, 6


@command("explain", example="hockney explain last\nhockney explain --machine t3d")
@click.argument("reference", required=False, metavar="[RUN]", shell_complete=complete("run"))
@click.option(
    "-m",
    "--machine",
    metavar="NAME",
    help="A machine of the archive instead of a run: its published figures.",
    shell_complete=complete("machine"),
)
@click.option("--all", "everything", is_flag=True, help="Every finding, fit and layer, and every check not made.")
def explain(reference: str | None, machine: str | None, everything: bool, *, as_json: bool, store: Path | None) -> None:
    """Explain the figures of a run.

    Prints the ten strongest findings: protocol switches, bends, cache limits, slow ranks, outliers and others. Each has
    the evidence, the likely cause and the fix. Then it lists the checks that were not possible, and why. RUN is a
    number, a label, `last` (the default), or `last~1` for the one before. docs/explain.md describes each finding.
    """
    if reference is not None and machine is not None:
        raise UsageError("explain takes a run or a machine of the archive (--machine NAME): give one of them, not both")
    explanation, names = (_of_machine(machine), {}) if machine is not None else _of_run(reference, store)
    if as_json:
        render.print_json("explain", explanation_json(explanation))
    elif everything:
        _print_all(explanation, names)
    else:
        _print_strongest(explanation, names)


def _of_run(reference: str | None, store: Path | None) -> tuple[Explanation, dict[str, str]]:
    """The explanation of a run, with the readable names of its transports."""
    from hockney.analysis.explain import explain_run
    from hockney.report.names import readable_names
    from hockney.results.runs import open_results

    with open_results(store) as results:
        run = results.run(reference or "last")
        return explain_run(run), readable_names(run.launches.values())


def _of_machine(name: str) -> Explanation:
    from hockney.archive import machines
    from hockney.archive.oddities import explain_machine
    from hockney.worker.machine_model import builtin_models

    if name not in machines() and (name.endswith(".toml") or name in builtin_models()):
        raise UsageError(
            f"{name} is a model, and --machine explains published figures: run the model, and explain the run",
            argv=("hockney", "run", "quick", "-t", f"sim@{name}"),
        )
    if name not in machines():
        raise unknown("machine", name, machines())
    return explain_machine(machines()[name])


# ---- JSON -----------------------------------------------------------------------------------------------------------


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Everything, with each finding and note also as a sentence, and each fix also as the command to type."""
    from hockney.report.findings import note_text

    return {
        **asdict(explanation),
        "findings": findings_json(explanation.findings),
        "notes": [{**asdict(note), "text": note_text(note), "fix": _fix_json(note.fix)} for note in explanation.notes],
        "not_checked": gaps_json(explanation.not_checked),
    }


def findings_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Each finding, also as a sentence."""
    from hockney.report.findings import sentence_of

    return [{**asdict(finding), "text": sentence_of(finding), "fix": _fix_json(finding.fix)} for finding in findings]


def gaps_json(gaps: Iterable[NotChecked]) -> list[dict[str, Any]]:
    """The checks that were not made, and why."""
    from hockney.report.findings import check_name, gap_text

    return [
        {
            "what": check_name(gap),
            "reason": gap.reason.value,
            "code": gap.why,
            "detail": gap_text(gap),
            "how": _fix_json(gap.how),
        }
        for gap in gaps
    ]


def _fix_json(fix: Fix | None) -> dict[str, Any] | None:
    if fix is None:
        return None
    from hockney.report.findings import fix_sentence

    return {
        "code": fix.code,
        "text": fix_sentence(fix),
        "argv": list(fix.argv),
        "command": command_line(fix) or None,
    }


# ---- the screen -----------------------------------------------------------------------------------------------------


def _print_strongest(explanation: Explanation, names: Mapping[str, str]) -> None:
    """At most ten findings, each once for all transports that have it, and LogGP if it fits, in at most 40 lines."""
    from hockney.cli import fits
    from hockney.report.findings import grouped, is_notable

    groups = sorted(grouped(explanation.findings), key=lambda group: not is_notable(group[0]))
    state = _main_state(explanation)
    notes = [render.wrapped(_note_text(note), rest="  ") for note in explanation.notes[:_NOTES_MAX]]
    gaps = _gap_lines(explanation.not_checked)
    room = _LINES_MAX - 3 - sum(map(len, notes)) - (len(gaps) + 2 if gaps else 0)
    shown: list[list[str]] = []
    for group in groups[:_FINDINGS_MAX]:
        lines = finding_lines(group, names, state, is_short=True)
        if not is_notable(group[0]) or (shown and len(lines) > room):
            break
        room -= len(lines)
        shown.append(lines)
    _print_head(explanation)
    for lines in (*notes, *shown):
        render.lines(lines)
    hidden: dict[str, Sequence[object]] = {"finding": groups[len(shown) :], "layer": explanation.layers}
    # Around the table: a blank line, the title, the heads of the columns, and the note.
    if len(explanation.loggp) + 5 <= room:
        fits.print_loggp(explanation.loggp)
    else:
        hidden["LogGP fit"] = explanation.loggp
    hidden["line"] = explanation.lines
    more = [counted(len(members), noun) for noun, members in hidden.items() if members]
    if more:
        render.note(f"More with --all: {', '.join(more)}.", style="dim")
    if gaps:
        render.title("Not checked")
        render.lines(gaps)


def _print_all(explanation: Explanation, names: Mapping[str, str]) -> None:
    from hockney.cli import fits
    from hockney.report.findings import layer_text

    _print_head(explanation)
    for note in explanation.notes:
        render.note(_note_text(note))
    for finding in explanation.findings:
        render.lines(finding_lines([finding], names, _main_state(explanation)))
        for source in finding.sources:
            render.item(f"Source: {source}", style="dim")
    fits.print_lines(explanation.lines)
    fits.print_off_lines(explanation.off_lines)
    fits.print_loggp(explanation.loggp)
    if explanation.layers:
        render.title("Time that each layer adds to half a round trip")
    for layer in explanation.layers:
        render.item(layer_text(layer))
    if explanation.not_checked:
        render.title("Not checked")
        for gap in explanation.not_checked:
            render.item(gap_line(gap), style="dim")


def _print_head(explanation: Explanation) -> None:
    count = len(explanation.findings)
    state = _main_state(explanation)
    text = f"{explanation.subject}: {counted(count, 'finding') if count else 'no findings'}"
    render.title(f"{text}, state {state}" if state else text, first=True)


def _main_state(explanation: Explanation) -> str:
    """The state of most findings, which is named once; "" where none has one."""
    states = Counter(finding.subject.state for finding in explanation.findings if finding.subject.state)
    return max(states, key=lambda state: states[state], default="")


def finding_parts(group: Sequence[Finding], name_of: Callable[[Finding], str]) -> tuple[str, str, str]:
    """The title with the evidence and the other transports, the likely cause, and the fix; "" where there is none."""
    from hockney.report.findings import cause_of, evidence_of, title_of

    finding = group[0]
    also = ", ".join(dict.fromkeys(name for name in map(name_of, group) if name != name_of(finding)))
    head = f"{name_of(finding)}: {title_of(finding)}. {evidence_of(finding)}".removeprefix(": ").strip()
    fix = f"Fix: {_sentence(finding.fix)}" if finding.fix else ""
    return head + (f" Also on {also}." if also else ""), cause_of(finding), fix


def finding_lines(
    group: Sequence[Finding], names: Mapping[str, str] | None = None, state: str = "", *, is_short: bool = False
) -> list[str]:
    """At most three paragraphs, with the machine states other than this one.

    Where it `is_short`, they take at most three lines of 100 columns: the cause follows the evidence on its line where
    they would take more, and is cut where both are still longer.
    """

    def name_of(finding: Finding) -> str:
        about = finding.subject
        name = (names or {}).get(about.transport, about.transport)
        return f"{name} ({about.state})" if about.transport and about.state not in ("", state) else name

    head, cause, fix = finding_parts(group, name_of)
    if group[0].fix and group[0].fix.argv[:1] == ("hockney",) and len(fix) + 2 > render.line_width():
        fix = f"Try: `{command_line(group[0].fix)}`"
    room = _FINDING_LINES_MAX * max(100, render.line_width()) // render.line_width()
    lines, below = _wrapped_parts(head, cause, fix)
    if is_short and len(lines) + len(below) > room:
        lines, below = _wrapped_parts(f"{head} {cause}".rstrip(), fix)
        room = max(1, room - len(below))
        if len(lines) > room:
            lines[room - 1 :] = [lines[room - 1].rpartition(" ")[0] + " …"]
    return lines + below


def _wrapped_parts(head: str, *parts: str) -> tuple[list[str], list[str]]:
    """The lines of a finding's first paragraph, and those of the others."""
    below = [line for part in parts if part for line in render.wrapped(part, first="  ", rest="    ")]
    return render.wrapped(head, first="- ", rest="  "), below


def gap_line(gap: NotChecked) -> str:
    """`duplex limits: not measured: needs twoway and oneway on one transport. Measure …`."""
    from hockney.report.findings import check_name, gap_text

    how = f". {fix_text(gap.how)}" if gap.how else ""
    return f"{check_name(gap)}: {gap.reason.value}: {gap_text(gap)}{how}"


def _gap_lines(gaps: Sequence[NotChecked]) -> list[str]:
    """Why hosts failed, one line for each other reason, and one with the commands that measure the most."""
    from hockney.report.findings import check_name

    reasons: dict[str, dict[str, None]] = {}
    for gap in gaps:
        if gap.why != "failed":
            reasons.setdefault(gap.reason.value, {})[check_name(gap)] = None
    texts = [gap_line(gap) for gap in gaps if gap.why == "failed"]  # a host may have died
    for reason, names in reasons.items():
        more = f" and {len(names) - _NAMES_MAX} more (--all)" if len(names) > _NAMES_MAX else ""
        texts.append(f"{reason}: {', '.join([*names][:_NAMES_MAX])}{more}")
    commands = dict.fromkeys(f"`{command_line(gap.how)}`" for gap in gaps if gap.how and gap.how.argv)
    if commands:
        texts.append(f"To measure: {'; '.join(commands)}")
    return [line for text in texts for line in render.wrapped(text, first="  ", rest="    ")]


def _note_text(note: Note) -> str:
    from hockney.report.findings import note_text

    return note_text(note) + (f" {_sentence(note.fix)}" if note.fix else "")


def _sentence(fix: Fix) -> str:
    text = fix_text(fix)
    return text if text.endswith((".", "`")) else f"{text}."
