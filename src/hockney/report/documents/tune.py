"""A race of settings as a document and as JSON."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hockney.analysis.tune.rules import GAIN_MIN, Rule
from hockney.machine.facts import facts
from hockney.measure.tune import HIDDEN, Contest, Tuned
from hockney.report.document import Block, Column, Item, Sentence, Table, Title
from hockney.report.documents.comparison import comparison_document, comparison_json
from hockney.report.words import machine_text
from hockney.units import counted, format_duration_s
from hockney.version import __version__


def head_lines(contest: Contest, tuned: Tuned, command: str, now_s: float) -> list[str]:
    """The first comments of a rules file."""
    day = time.strftime("%Y-%m-%d", time.localtime(now_s))
    written = f"{contest.library.name}, {day}, hockney {__version__}: {command}"
    return [written, machine_text(facts()), f"proof: {proof_text(tuned)}"]


def contest_document(contest: Contest) -> Iterator[Block]:
    """The choices, and the time."""
    for pattern, choices in contest.choices.items():
        yield Title(f"{pattern} on {contest.library.name}: {counted(len(choices), 'choice')} besides the default")
        yield Sentence(", ".join(choice.name for choice in choices))
        if references := ", ".join(choice.word for choice in contest.references[pattern]):
            yield Sentence(f"References over the library's own messages, which are not written: {references}")
    points, least, time_s = contest.plan.points, contest.least(), contest.plan.limits.time_s
    least_s = sum(each.time_s for each in least)
    yield Sentence(
        f"{counted(len(points), 'point')}, about {format_duration_s(max(time_s, least_s))}: two thirds of --time are "
        f"for the race, one is for the proof. About {format_duration_s(least_s)} of it is measured in any case:"
    )
    for each in least:
        yield Item(f"{each}{'' if each.is_enough else '; --time may be too short for certainty'}")


def proof_text(tuned: Tuned) -> str:
    """What the proof says of slowdowns, in one sentence without its full stop; "" without a proof."""
    slower, undecided, proof = tuned.slower, tuned.undecided, tuned.proof
    if proof is None:
        return ""
    hidden = max(HIDDEN, proof.widest.reach if proof.widest is not None else 0.0)
    bound = f"a slowdown up to {math.ceil((hidden - 1) * 100 - 1e-6)} % could hide"
    if not undecided:
        return f"{slower or 'nothing'} slower ({bound})"
    decided = len(proof.changes) - undecided
    if not decided:
        return f"all {undecided} undecided"
    return f"{undecided} undecided; of {counted(decided, 'decided point')} {slower or 'none'} slower ({bound})"


def tuned_document(contest: Contest, tuned: Tuned, written: str | None) -> Iterator[Block]:
    """The rules, what was left out, and the proof."""
    if tuned.rules:
        columns: list[Column | str] = [
            "operation",
            Column("ranks", right=True),
            "sizes",
            "faster with",
            Column("gain (at least)", right=True),
        ]
        yield Table(columns, [_row(rule) for rule in tuned.rules])
    elif tuned.proof is None and contest.is_raced and not contest.too_short:
        library = contest.library.name
        yield Sentence(
            f"Nothing is certainly {(GAIN_MIN - 1) * 100:.0f} % faster than the defaults of {library}: keep them."
        )
    for pattern, (made, needed) in contest.too_short.items():
        yield Sentence(
            f"{pattern}: {counted(made, 'launch', 'launches')}, but certainty takes {needed}; give more --time."
        )
    for (pattern, choice), why in contest.left_out.items():
        yield Item(f"left out: {pattern} with {choice.name}: {why}")
    for rule in {each.operation: each for each in sorted(tuned.references, key=lambda each: max(each.gains))}.values():
        sizes, span, _ = rule.words
        text = f"{rule.operation} {sizes}, {rule.ranks} ranks: {rule.winner.name} is {span} as fast as the best choice"
        yield Item(f"reference: {text} of the library")
    if tuned.proof is not None:
        yield Title("Proof: the default (base) against the rules (new), also between the sizes of the race")
        yield from comparison_document(tuned.proof, everything=False)
        text = f"{proof_text(tuned)}{'' if tuned.rules else '; no rule is confirmed'}"
        yield Sentence(f"{text[0].upper()}{text[1:]}{': nothing is written' if tuned.slower else ''}.")
        if unruled := tuned.slower_without_rule:
            yield Sentence(f"{unruled} of the slower keep the default: reading the file costs their time.")
    if written is None and tuned.rules and not tuned.slower:
        yield Sentence("Nothing is written: repeat the command with --resume and --write FILE.")
    if written is not None:
        yield Sentence(f"Wrote {written}. Use it: {_how(contest, tuned, written)}")


def _row(rule: Rule) -> list[str]:
    sizes, span, least = rule.words
    return [rule.operation, str(rule.ranks), sizes, rule.winner.name, f"{span} ({least})"]


def _how(contest: Contest, tuned: Tuned, written: str) -> str:
    files, path = contest.files(tuned.rules), str(Path(written).resolve())
    return f". {shlex.quote(path)}" if files.is_sourced else "; ".join(files.exports(path))


def tune_json(contest: Contest, tuned: Tuned | None) -> dict[str, Any]:
    """Everything; without `tuned` the choices alone."""
    found: dict[str, Any] = {
        "library": contest.library.name,
        "choices": {name: [choice.name for choice in choices] for name, choices in contest.choices.items()},
        "references": {name: [choice.word for choice in known] for name, known in contest.references.items()},
        "points": contest.plan.points,
        "time_s": contest.plan.limits.time_s,
        "least": [vars(each) for each in contest.least()],
    }
    if tuned is None:
        return found
    return found | {
        "rules": [_rule_json(rule) for rule in tuned.rules],
        "faster_references": [_rule_json(rule) for rule in tuned.references],
        "left_out": [
            {"pattern": name, "choice": choice.name, "reason": why} for (name, choice), why in contest.left_out.items()
        ],
        "too_short": [
            {"pattern": name, "launches": made, "needed": needed} for name, (made, needed) in contest.too_short.items()
        ],
        "proof": comparison_json(tuned.proof) if tuned.proof is not None else None,
    }


def _rule_json(rule: Rule) -> dict[str, Any]:
    names = ("operation", "ranks", "least", "most", "gains")
    return {name: getattr(rule, name) for name in names} | {"choice": rule.winner.name}
