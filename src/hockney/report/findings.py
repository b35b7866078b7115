"""The sentences of findings: `WORDING` has templates for each code; a code without them is printed by its facts.

In a template `{name}` is a fact of the finding, formatted by the unit that its key ends with, or a field of its
subject. A template that names a fact that the finding does not have is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import Formatter
from typing import Any

from hockney.analysis.finding import Finding
from hockney.report.findings_archive import ARCHIVE
from hockney.report.findings_pairs import PAIRS
from hockney.report.wording import Wording
from hockney.stats.fit import Estimate
from hockney.units import format_bytes, format_ns, format_rate

_LIST_MAX = 5


WORDING: dict[str, Wording] = {
    **PAIRS,
    **ARCHIVE,
    "flat latency": Wording(
        "latency does not depend on the size up to {flat_bytes}",
        (
            "{pattern} takes {first_ns} at {first_bytes} and {last_ns} at {flat_bytes}.",
            "{pattern} takes {plateau_ns} at {first_bytes}, as the line through longer sizes gives for {flat_bytes}.",
        ),
    ),
}


def title_of(finding: Finding) -> str:
    """The title in one line, without transport and state."""
    wording = WORDING.get(finding.code)
    return finding.code if wording is None else fill(wording.title, finding) or finding.code


def evidence_of(finding: Finding) -> str:
    """The figures that show it; "" where the title says all."""
    wording = WORDING.get(finding.code)
    if wording is None:
        return "; ".join(f"{_words(key)} {fact_text(key, fact)}" for key, fact in finding.facts.items())
    return " ".join(filter(None, (fill(template, finding) for template in wording.evidence)))


def cause_of(finding: Finding) -> str:
    """The likely cause as a sentence, "" where none is known."""
    wording = WORDING.get(finding.code)
    template = "" if wording is None else wording.causes.get(finding.cause, "")
    return fill(template, finding) if template else finding.cause


def fill(template: str, finding: Finding) -> str:
    """The template with its facts; "" where the finding does not have all of them."""
    subject = finding.subject
    facts: dict[str, Any] = {"transport": subject.transport, "pattern": subject.pattern, "state": subject.state}
    facts |= {} if subject.ranks is None else {"ranks": subject.ranks}
    facts |= finding.facts
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
    """`1.90 us (1.72 us to 2.05 us)`; the value alone where its digits hold the interval; a bound as `1 us to 2 us`."""
    middle, low, high = map(text, (value.value, value.low, value.high))
    if low == high:
        return middle
    return f"{low} to {high}" if middle in (low, high) else f"{middle} ({low} to {high})"


def _number(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:#.3g}" if abs(value) < 99.95 else f"{value:,.0f}"


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
