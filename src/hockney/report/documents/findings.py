"""The findings of `hockney explain` as a document and as JSON, with its fits: lines through the times, and LogGP."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hockney.analysis.explain import Explanation, FittedLine, OffLine, Parameters
from hockney.analysis.finding import Finding, NotChecked
from hockney.errors import Fix
from hockney.report.commands import command_line, fix_text, typed
from hockney.report.document import (
    Block,
    Bullet,
    Column,
    Document,
    Item,
    More,
    Section,
    Table,
    Text,
    Title,
)
from hockney.report.findings import (
    cause_of,
    check_name,
    evidence_of,
    fix_sentence,
    gap_text,
    grouped,
    layer_text,
    note_text,
    others_of,
    sentence_of,
    title_of,
)
from hockney.report.notes import fixed
from hockney.report.words import whole_text
from hockney.stats.fit import Estimate, LogGP
from hockney.units import counted, format_bytes, format_ns, format_rate

_FINDINGS_MAX, _FINDING_LINES_MAX, _LINES_MAX = 10, 3, 40  # of a screen without --all
_FIX_MAX = 98  # more have no room in a line of 100 columns
_NOTES_MAX, _NAMES_MAX = 3, 6
_HOLDS = {True: "yes", False: "no", None: "unknown"}
_OF_LINE: dict[str, Callable[[FittedLine], str]] = {
    "t_0": lambda line: with_half_width(line.t0_ns, format_ns),
    "r_inf": lambda line: with_half_width(line.r_inf_bytes_per_s, format_rate),
    "n_1/2": lambda line: with_half_width(line.n_half_bytes, lambda value: format_bytes(round(value))),
    "misses": lambda line: f"{line.relative_rms:.1%}",
}
_OF_LOGGP: dict[str, Callable[[LogGP], str]] = {
    "L": lambda fit: with_half_width(fit.latency_ns, format_ns),
    "o_s": lambda fit: with_half_width(fit.send_ns, format_ns),
    "o_r": lambda fit: with_half_width(fit.receive_ns, format_ns),
    "g": lambda fit: with_half_width(fit.gap_ns, format_ns),
    "1/G": lambda fit: with_half_width(fit.rate_bytes_per_s, format_rate),
    "misses": lambda fit: f"{fit.relative_rms:.1%}",
    "holds": lambda fit: _HOLDS[fit.holds],
}


# ---- JSON -----------------------------------------------------------------------------------------------------------


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Everything, with each finding and note also as a sentence, and each fix also as the command to type."""
    return {
        **asdict(explanation),
        "findings": findings_json(explanation.findings),
        "notes": [{**asdict(note), "text": note_text(note), "fix": _fix_json(note.fix)} for note in explanation.notes],
        "not_checked": gaps_json(explanation.not_checked),
    }


def findings_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Each finding, also as a sentence."""
    return [{**asdict(finding), "text": sentence_of(finding), "fix": _fix_json(finding.fix)} for finding in findings]


def gaps_json(gaps: Iterable[NotChecked]) -> list[dict[str, Any]]:
    """The checks that were not made, and why."""
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
    return {"code": fix.code, "text": fix_sentence(fix), "argv": list(fix.argv), "command": command_line(fix) or None}


# ---- the document ---------------------------------------------------------------------------------------------------


def strongest_document(explanation: Explanation, names: Mapping[str, str]) -> Document:
    """At most ten findings, each once for all transports that have it, and LogGP if it fits, in at most 40 lines."""
    return Document(tuple(_strongest(explanation, names)), lines_max=_LINES_MAX)


def _strongest(explanation: Explanation, names: Mapping[str, str]) -> Iterator[Block]:
    groups = grouped(explanation.findings)
    state = _main_state(explanation)
    yield _head(explanation, groups)
    yield from (Text(note_text(note) + fixed(note.fix)) for note in explanation.notes[:_NOTES_MAX])
    for number, group in enumerate(groups[:_FINDINGS_MAX]):
        yield replace(finding_bullet(group, names, state, is_short=True), priority=number, noun="finding")
    if explanation.loggp:
        fits = tuple(loggp_blocks(explanation.loggp))
        yield Section("", fits, priority=_FINDINGS_MAX, noun="LogGP fit", count=len(explanation.loggp))
    hidden = {"finding": groups[_FINDINGS_MAX:], "layer cost": explanation.layers, "line fit": explanation.lines}
    yield More("--all", {noun: len(members) for noun, members in hidden.items()})
    gaps = _short_gaps(explanation.not_checked)
    yield from [Title("Not checked"), *map(Item, gaps)] if gaps else []
    yield from _oddities(explanation)


def _oddities(explanation: Explanation) -> Iterator[Section]:
    items, of = tuple(map(Item, explanation.oddities)), "on the printed figures"
    if items:
        yield Section(f"Notes {of}", items, priority=_FINDINGS_MAX - 1, noun=f"note {of}", count=len(items))


def whole_document(explanation: Explanation, names: Mapping[str, str]) -> Iterator[Block]:
    """Every finding on each transport with its sources, fit and layer, and every check that was not made."""
    groups = grouped(explanation.findings)
    yield _head(explanation, groups)
    yield from (Text(note_text(note) + fixed(note.fix)) for note in explanation.notes)
    for group in groups:
        yield finding_bullet(group, names, _main_state(explanation))
        for source in dict.fromkeys(source for finding in group for source in finding.sources):
            yield Item(f"Source: {source}", tone="quiet")
    yield from line_blocks(explanation.lines)
    yield from off_line_blocks(explanation.off_lines)
    yield from loggp_blocks(explanation.loggp)
    if explanation.layers:
        yield Title("Time that each layer adds to half a round trip")
    for layer in explanation.layers:
        text = layer_text(layer, lambda name: names.get(name, name))
        yield Item(f"{text}, at {format_bytes(layer.bytes)} ({layer.state})")
    if not all(layer.is_seen for layer in explanation.layers):
        yield Text(f"No difference: measure both in alternation, with --interleave ({typed('compare', '--help')}).")
    if explanation.not_checked:
        yield Title("Not checked")
        yield from (Item(gap_line(gap), tone="quiet") for gap in explanation.not_checked)
    yield from _oddities(explanation)


def _head(explanation: Explanation, groups: Sequence[Sequence[Finding]]) -> Title:
    """The heading with the number of findings; load of the machine is a reason for their absence."""
    state, count = _main_state(explanation), sum(group[0].code != "busy machine" for group in groups)
    none = "no findings but a busy machine" if groups else "no findings"
    text = f"{explanation.subject}: {counted(count, 'finding') if count else none}"
    return Title(f"{text}, state {state}" if state else text)


def _main_state(explanation: Explanation) -> str:
    """The state of most findings, which is named once; "" where none has one."""
    states = Counter(finding.subject.state for finding in explanation.findings if finding.subject.state)
    return max(states, key=lambda state: states[state], default="")


@dataclass(frozen=True)
class FindingTexts:
    """What is said of a finding on the transport that it is `about`; `also` names the others. "" where not known."""

    about: str
    title: str
    evidence: str
    cause: str
    fix: str
    also: str

    @property
    def head(self) -> str:
        """The title with the evidence and the other transports."""
        return " ".join(filter(None, (f"{self.about}: {self.title}.".removeprefix(": "), self.evidence, self.also)))


def finding_texts(group: Sequence[Finding], name_of: Callable[[Finding], str]) -> FindingTexts:
    """Those of a finding and others like it on other transports."""
    finding, also = group[0], ", ".join(others_of(group, name_of))
    fix = fix_text(finding.fix) if finding.fix else ""
    fix = fix if not fix or fix.endswith((".", "`")) else f"{fix}."
    texts = (name_of(finding), title_of(finding), evidence_of(finding), cause_of(finding), fix)
    return FindingTexts(*texts, f"Also on {also}." if also else "")


def finding_bullet(
    group: Sequence[Finding], names: Mapping[str, str] | None = None, state: str = "", *, is_short: bool = False
) -> Bullet:
    """The first finding, and the others of its group with the machine states other than this one.

    Where it `is_short`, others are only named, and all takes at most three lines.
    """

    def name_of(finding: Finding) -> str:
        about = finding.subject
        name = (names or {}).get(about.transport, about.transport)
        return f"{name} ({about.state})" if about.transport and about.state not in ("", state) else name

    texts = finding_texts(group if is_short else group[:1], name_of)
    fix = f"Fix: {texts.fix}" * bool(texts.fix)
    if group[0].fix and group[0].fix.argv[:1] == ("hockney",) and len(fix) > _FIX_MAX:
        fix = f"Try: `{command_line(group[0].fix)}`"
    below = [] if is_short else [finding_texts([other], name_of) for other in group[1:]]
    others = [f"{other.head} {other.cause * (other.cause != texts.cause)}".rstrip() for other in below]
    return Bullet(texts.head, (texts.cause, fix), tuple(others), lines_max=_FINDING_LINES_MAX if is_short else None)


def gap_line(gap: NotChecked) -> str:
    """`duplex limits: not measured: needs twoway and oneway on one transport. Measure …`."""
    how = f". {fix_text(gap.how)}" if gap.how else ""
    return f"{check_name(gap)}: {gap.reason.value}: {gap_text(gap)}{how}"


def _short_gaps(gaps: Sequence[NotChecked]) -> list[str]:
    """Why hosts failed, one line for each other reason, and one with the commands that measure the most."""
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
    return texts


# ---- fits -----------------------------------------------------------------------------------------------------------


def line_blocks(lines: Sequence[FittedLine]) -> Iterator[Block]:
    """One row for each segment of a curve."""
    if lines:
        yield Title("Straight lines through the times (t_0 + size / r_inf), by segment")
        yield _fits([(line, line) for line in lines], _OF_LINE)
        yield Text("misses: weighted root mean square of (measured - line) / line. -: not determined by the data.")


def loggp_blocks(fits: Sequence[Parameters]) -> Iterator[Block]:
    """One row for each segment of the round trips of prtt."""
    if fits:
        yield Title("LogGP by segment of the half round trip")
        yield _fits([(fit, fit.loggp) for fit in fits], _OF_LOGGP)
        yield Text("holds: whether L, o_s and o_r are all above zero, as LogGP assumes (docs/methods.md).")


def off_line_blocks(off_lines: Sequence[OffLine]) -> Iterator[Block]:
    """A sentence for each curve that has sizes on no line."""
    for name, points in itertools.groupby(off_lines, key=lambda point: f"{_name(point)} ({point.state})"):
        sizes = ", ".join(f"{format_bytes(point.bytes)} ({format_ns(point.time_ns.value)})" for point in points)
        yield Text(f"Off every line of {name}: {sizes}.")


def _fits(
    fits: Sequence[tuple[FittedLine | Parameters, FittedLine | LogGP]], texts: Mapping[str, Callable[..., str]]
) -> Table:
    """A row for each fit: its curve and state, and the fitted parameters."""
    columns = [
        Column("of", wrap=True, key=True),
        Column("sizes", right=True, key=True),
        *(Column(title, right=True) for title in texts),
        Column("ranks share", optional=True),
    ]
    rows = [
        [
            f"{_name(curve)} ({curve.state})",
            f"{format_bytes(fit.first_bytes)} - {format_bytes(fit.last_bytes)}",
            *(text(fit) for text in texts.values()),
            curve.pair_class or "-",
        ]
        for curve, fit in fits
    ]
    return Table(columns, rows)


def _name(curve: FittedLine | OffLine | Parameters) -> str:
    ranks = f", {counted(curve.ranks, 'rank')}" if curve.ranks != 2 else ""
    return f"{curve.pattern} on {curve.transport}{ranks}"


def with_half_width(value: Estimate | None, text: Callable[[float], str]) -> str:
    """`133 ns ±2%`, or `1.2 us (0.7–1.9)` as tables of figures have it."""
    if value is None:
        return "-"
    if value.low <= 0:  # none of these values can be
        return f"at most {text(value.high)}" if value.high > 0 else "below 0"
    return whole_text(value, text)
