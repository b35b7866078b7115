"""The sentences of findings: `WORDING` has templates for each code; a code without them is printed by its facts.

In a template `{name}` is a fact of the finding, formatted by the unit that its key ends with, or a field of its
subject. A template that names a fact that the finding does not have is left out, and so is one with `{name?value}`
where the fact has another value. Alternatives are separated by `|`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import Any

from hockney.analysis.explain.layers import Layer
from hockney.analysis.finding import Finding, Note
from hockney.report.findings_archive import ARCHIVE
from hockney.report.findings_curves import CURVES, NOTES
from hockney.report.findings_pairs import PAIRS
from hockney.report.wording import Wording
from hockney.stats.fit import Estimate
from hockney.units import format_bytes, format_ns, format_rate

_LIST_MAX = 5


WORDING: dict[str, Wording] = {**CURVES, **PAIRS, **ARCHIVE}


def title_of(finding: Finding) -> str:
    """The title in one line, without transport and state."""
    wording = WORDING.get(finding.code)
    return (wording and fill(wording.title, finding)) or finding.code


def evidence_of(finding: Finding) -> str:
    """The figures that show it; "" where the title says all."""
    wording = WORDING.get(finding.code)
    if wording is None:
        return "; ".join(f"{_words(key)} {fact_text(key, fact)}" for key, fact in finding.facts.items())
    return " ".join(filter(None, (fill(template, finding) for template in wording.evidence)))


def cause_of(finding: Finding) -> str:
    """The likely cause as a sentence, "" where none is known; its code where that has no wording."""
    wording = WORDING.get(finding.code)
    template = None if wording is None else wording.causes.get(finding.cause)
    return finding.cause if template is None else fill(template, finding)


def sentence_of(finding: Finding) -> str:
    """Title, evidence and cause in one line."""
    title = title_of(finding)
    return " ".join(filter(None, (f"{title[0].upper()}{title[1:]}.", evidence_of(finding), cause_of(finding))))


def note_text(note: Note) -> str:
    """What limits the findings of a run, as a sentence; its fix is not part of it."""
    return _filled(NOTES[note.code], note.facts)


def layer_text(layer: Layer) -> str:
    """One line: `mpich adds 110 ns (105 ns to 116 ns) to shm, 8 B to 64 B (near)`."""
    low, high = format_ns(layer.low_ns), format_ns(layer.high_ns)
    name, lower = layer.upper, layer.lower
    sizes = format_bytes(layer.first_bytes)
    sizes = f"at {sizes}" if layer.first_bytes == layer.last_bytes else f"{sizes} to {format_bytes(layer.last_bytes)}"
    if not layer.is_seen:
        least = "" if layer.low_ns <= 0 <= layer.high_ns else " of 3 % or more"
        text = f"{name}: no difference{least} from {lower} ({low} to {high})"
    elif layer.floor_ns is not None and layer.added_ns < 0:
        text = f"{name} is {format_ns(-layer.added_ns)} below the floor of {format_ns(layer.floor_ns)}, which changed"
    else:
        low, high = (format_ns(value) for value in sorted((abs(layer.low_ns), abs(layer.high_ns))))
        verb, word = ("adds", "to") if layer.added_ns > 0 else ("saves", "compared with")
        text = f"{name} {verb} {format_ns(abs(layer.added_ns))} ({low} to {high}) {word} {lower}"
        text += "" if layer.floor_ns is None else f" of {format_ns(layer.floor_ns)}"
    unsure = ", ".join(map(format_bytes, layer.unsure_bytes))
    more = f"; too noisy at {unsure}" if unsure else ""
    return f"{text}, {sizes}{more} ({layer.state})"


def fill(template: str, finding: Finding) -> str:
    """The first alternative of a template that the finding has all facts of, with these; "" where there is none."""
    subject = finding.subject
    facts: dict[str, Any] = {"transport": subject.transport, "pattern": subject.pattern, "state": subject.state}
    facts |= {} if subject.ranks is None else {"ranks": subject.ranks}
    facts |= finding.facts
    return next(filter(None, (_filled(one, facts) for one in template.split("|"))), "")


def _filled(template: str, facts: Mapping[str, Any]) -> str:
    """A name may end with `?value`: the template counts only if the fact is that text, which is not printed."""
    for name, value in re.findall(r"{(\w+)\?([^}]+)}", template):
        if facts.get(name) != value:
            return ""
    template = re.sub(r"{\w+\?[^}]+}", "", template)
    names = [name for _, name, _, _ in Formatter().parse(template) if name]
    if any(name not in facts for name in names):
        return ""
    return template.format(**{name: fact_text(name, facts[name]) for name in names})


def fact_text(key: str, fact: Any) -> str:
    """A value, or a value with its interval, in the unit of its key."""
    if isinstance(fact, str):
        return fact
    if isinstance(fact, Sequence):
        texts = [fact_text(key, one) for one in fact]
        more = f" and {len(texts) - _LIST_MAX} more" if len(texts) > _LIST_MAX else ""
        return ", ".join(texts[:_LIST_MAX]) + more
    unit = next((text for end, text in _UNITS if key.endswith(end)), _number)
    return interval_text(fact, unit) if isinstance(fact, Estimate) else unit(fact)


def interval_text(value: Estimate, text: Callable[[float], str]) -> str:
    """`1.90 us (1.72 to 2.05 us)`; the value alone where its digits hold the interval; a bound as `1 us to 2 us`."""
    middle, low, high = map(text, (value.value, value.low, value.high))
    if low == high:
        return middle
    (number, _, unit), (_, _, high_unit) = low.partition(" "), high.partition(" ")
    low = number if unit == high_unit else low
    return f"{low} to {high}" if middle in (low, high) else f"{middle} ({low} to {high})"


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else _ratio(value)


def _ratio(value: float) -> str:
    return f"{value:#.3g}" if abs(value) < 99.95 else f"{value:,.0f}"


def _share(value: float) -> str:
    return f"{value:.2g}%" if (value := 100 * value) < 9.5 else f"{value:.0f}%"


def _words(key: str) -> str:
    end = next((end for end, _ in _UNITS if key.endswith(end)), "")
    return key.removesuffix(end).replace("_", " ")


# The longest end first.
_UNITS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_bytes_per_s", format_rate),
    ("_ns_per_byte", lambda value: f"{value:.3g} ns/B"),
    ("_bytes", lambda value: format_bytes(round(value))),
    ("_ratio", _ratio),
    ("_share", _share),
    ("_ns", format_ns),
)
