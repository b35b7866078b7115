"""The sentences of findings and the like by the templates of findings.toml; without one a code is printed by facts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any

from hockney.analysis.explain.layers import Layer
from hockney.analysis.finding import Finding, NotChecked, Note, Subject
from hockney.analysis.pair_classes import Inconclusive, Outlier, PairClass
from hockney.analysis.pairs import whole_hosts
from hockney.errors import Fix
from hockney.machine.files import read_toml
from hockney.report.words import percent_text, ratio_text
from hockney.stats.fit import Estimate
from hockney.units import counted, format_bytes, format_ns, format_rate

_TEMPLATES: Mapping[str, Any] = read_toml(Path(__file__).with_name("findings.toml"))
WORDING: Mapping[str, Mapping[str, Any]] = _TEMPLATES["finding"]  # by code


def title_of(finding: Finding) -> str:
    """The title in one line, without transport and state."""
    facts = {"cause": finding.cause, **finding.facts}
    return _filled(WORDING.get(finding.code, {}).get("title", ""), facts, finding.subject) or finding.code


def evidence_of(finding: Finding) -> str:
    """The figures that show the finding; "" if the title is enough."""
    if finding.code not in WORDING:
        names = {key: key.removesuffix(_unit(key)[0]).replace("_", " ") for key in finding.facts}
        return "; ".join(f"{names[key]} {fact_text(key, fact)}" for key, fact in finding.facts.items())
    templates = WORDING[finding.code].get("evidence", ())
    return " ".join(filter(None, (_filled(template, finding.facts, finding.subject) for template in templates)))


def cause_of(finding: Finding) -> str:
    """The likely cause as a sentence, "" where none is known; its code where that has no wording."""
    template = WORDING.get(finding.code, {}).get("causes", {}).get(finding.cause)
    if template is None:
        return finding.cause and f"{finding.cause}."
    return _filled(template, finding.facts, finding.subject)


def sentence_of(finding: Finding) -> str:
    """Title, evidence and cause in one line. A name at its beginning keeps its letters."""
    title = title_of(finding)
    words = (finding.subject.pattern, *finding.facts.values())
    names = [word for word in words if isinstance(word, str) and word]
    begins = title if title.startswith(tuple(names)) else f"{title[0].upper()}{title[1:]}"
    return " ".join(filter(None, (f"{begins}.", evidence_of(finding), cause_of(finding))))


def grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings of one kind, cause and fix on several transports together, in the order of the strongest.

    That a library yields is left out where it is the cause of another finding. Screens count what is listed: these.
    """
    yielding = {finding.subject.transport for finding in findings if finding.cause == "yields"}
    groups: dict[tuple[object, ...], list[Finding]] = {}
    repeats: Counter[tuple[object, ...]] = Counter()
    for finding in findings:
        about, facts = finding.subject, finding.facts
        if finding.code == "yielding library" and about.transport in yielding:
            continue
        fix = fix_sentence(finding.fix) if finding.fix else ""
        kind = (finding.code, finding.cause, facts.get("answer"), facts.get("threshold"), "fall_ns" in facts, fix)
        of_transport = (*kind, about.transport, about.state)
        groups.setdefault((*kind, not about.transport, repeats[of_transport]), []).append(finding)
        repeats[of_transport] += 1
    return list(groups.values())


def others_of(group: Sequence[Finding], name_of: Callable[[Finding], str]) -> list[str]:
    """`unix (310 us longer)`: the others that have a finding, each with its figure where findings.toml has one."""
    texts: dict[str, str] = {}
    for finding in group:
        values = {key: getattr(fact, "value", fact) for key, fact in finding.facts.items()}  # without intervals
        figure = _filled(WORDING.get(finding.code, {}).get("also", ""), values, finding.subject)
        texts.setdefault(name_of(finding), f" ({figure})" if figure else "")
    return [name + figure for name, figure in texts.items() if name not in ("", name_of(group[0]))]


def fix_sentence(fix: Fix) -> str:
    """One imperative sentence without its full stop."""
    return (_filled(_TEMPLATES["fixes"].get(fix.code, ""), fix.facts) or fix.code).removesuffix(".")


def check_name(gap: NotChecked) -> str:
    """The name of a check that was not made: `lines through pingpong on tcp`."""
    return _filled(_TEMPLATES["checks"].get(gap.what, ""), {}, gap.subject) or gap.what


def gap_text(gap: NotChecked) -> str:
    """Why it was not checked, as a phrase: `needs three sizes or more`."""
    return _filled(_TEMPLATES["gaps"].get(gap.why, ""), gap.facts) or gap.why


def note_text(note: Note) -> str:
    """A caveat on the findings of a run, as a sentence without its fix."""
    return _filled(_TEMPLATES["notes"][note.code], note.facts)


def layer_text(layer: Layer, name_of: Callable[[str], str]) -> str:
    """`MPICH 4.0.2 adds 110 ns ±5% to shm`."""
    upper, lower = name_of(layer.upper), name_of(layer.lower)
    if not layer.is_seen:
        least = "" if layer.low_ns <= 0 <= layer.high_ns else " of 3 % or more"
        bounds = f"{format_ns(layer.low_ns)} to {format_ns(layer.high_ns)}"
        return f"{upper}: no difference{least} from {lower} (95 % CI {bounds})"
    low, high = sorted((abs(layer.low_ns), abs(layer.high_ns)))
    verb, word = ("adds", "to") if layer.added_ns > 0 else ("saves", "compared with")
    floor = "" if layer.floor_ns is None else f" of {format_ns(layer.floor_ns)}"
    added = interval_text(Estimate(abs(layer.added_ns), low, high), format_ns)
    return f"{upper} {verb} {added} {word} {lower}{floor}"


def class_text(pair_class: PairClass) -> str:
    """`one host: 1.00 us (10 pairs, 1.00 us to 1.40 us)`."""
    count = counted(len(pair_class.pairs), "pair")
    span = f", {format_ns(pair_class.fastest_ns)} to {format_ns(pair_class.slowest_ns)}"
    return f"{pair_class.name}: {format_ns(pair_class.median_ns)} ({count}{span if len(pair_class.pairs) > 1 else ''})"


def outlier_text(outlier: Outlier, hosts: Sequence[str]) -> str:
    """`ranks 1 and 3: 1.30 us, 1.30x their class (one host, 1.00 us)`."""
    who = who_text(outlier.ranks, hosts)
    whose = "its" if len(outlier.ranks) == 1 else "their"
    if outlier.reach:
        who += f" with {outlier.reach}"
    elif len(outlier.ranks) == 1:
        who += f" with {outlier.of_pairs} others"
    doubt = "; they may be more distant (topology unknown)" if outlier.may_be_farther else ""
    than = f"{whose} class ({outlier.class_name}, {format_ns(outlier.class_ns)})"
    return f"{who}: {format_ns(outlier.time.value)}, {outlier.factor:.2f}x {than}{doubt}"


def inconclusive_text(pair: Inconclusive, hosts: Sequence[str]) -> str:
    """`ranks 1 and 3 may be slow (inconclusive): 1.30 us, 1.30x their class (one host, 1.00 us); why. Fix.`."""
    time = pair.time.estimate
    why = (
        f"{pair.time.n} measurements are too few for an interval"
        if time is None
        else f"the interval is {format_ns(time.low)} to {format_ns(time.high)}"
    )
    than = f"{pair.time.value / pair.class_ns:.2f}x their class ({pair.class_name}, {format_ns(pair.class_ns)})"
    return (
        f"{who_text(pair.ranks, hosts)} may be slow (inconclusive): "
        f"{format_ns(pair.time.value)}, {than}; {why}. Measure longer with --time."
    )


def who_text(ranks: Sequence[int], hosts: Sequence[str]) -> str:
    """`host n3`, `hosts n1 and n2` where these are all of their ranks; else `ranks 0 (n1) and 3 (n2)`, `rank 2`."""
    names = whole_hosts(ranks, hosts)
    noun = "host" if names else "rank"
    names = names or rank_names(ranks, hosts)
    return f"{noun}{'s' if len(names) > 1 else ''} {' and '.join(names)}"


def rank_names(ranks: Iterable[int], hosts: Sequence[str]) -> list[str]:
    """`0 (n1)`: ranks with their hosts, where there are several."""
    return [f"{rank} ({hosts[rank]})" if len(set(hosts)) > 1 else str(rank) for rank in ranks]


def _filled(template: str, facts: Mapping[str, Any], about: Subject | None = None) -> str:
    """The first alternative of a template that has all its facts; "" where there is none."""
    if about is not None:
        of_subject = {"transport": about.transport, "pattern": about.pattern, "state": about.state}
        facts = {**of_subject, **({} if about.ranks is None else {"ranks": about.ranks}), **facts}
    for name, fact in [(name, fact) for name, fact in facts.items() if isinstance(fact, Estimate)]:
        ends = f"{_unit(name)[1](fact.low)}-{_unit(name)[1](fact.high)}"
        facts = {**facts, f"value_of_{name}": fact.value, f"ends_of_{name}": ends}
    return next(filter(None, (_alternative(each, facts) for each in template.split("|"))), "")


def _alternative(template: str, facts: Mapping[str, Any]) -> str:
    """A name may end with `?value`: the template counts only if the fact is that text, which is not printed."""
    if any(str(facts.get(name)) != value for name, value in re.findall(r"{(\w+)\?([^}]+)}", template)):
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
        texts = [fact_text(key, item) for item in fact]
        return ", ".join(texts[:5]) + (f" and {len(texts) - 5} more" if len(texts) > 5 else "")
    unit = _unit(key)[1]
    return interval_text(fact, unit) if isinstance(fact, Estimate) else unit(fact)


def interval_text(value: Estimate, text: Callable[[float], str]) -> str:
    """`1.90 us ±10%`; the value alone where its digits hold the interval; a bound as `1 us to 2 us`.

    An interval that reaches farther than half the value has both ends, `1.90 us (95 % CI 720 ns to 2.05 us)`, and so
    has that of a share.
    """
    middle, low, high = map(text, (value.value, value.low, value.high))
    if low == high:
        return middle
    reach = max(value.high - value.value, value.value - value.low)
    if middle not in (low, high) and text is not _share and reach <= value.value / 2:
        return f"{middle} {percent_text(reach / value.value)}"
    (number, _, unit), (_, _, high_unit) = low.partition(" "), high.partition(" ")
    bounds = f"{number if unit == high_unit else low} to {high}"
    return bounds if middle in (low, high) else f"{middle} (95 % CI {bounds})"


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else ratio_text(value)


def _share(value: float) -> str:
    return f"{value:.2g}%" if (value := 100 * value) < 9.5 else f"{value:.0f}%"


def _unit(key: str) -> tuple[str, Callable[[float], str]]:
    """The end of a key that is its unit, and the text of a value in it."""
    return next(((end, text) for end, text in _UNITS if key.endswith(end)), ("", _number))


# The longest end first.
_UNITS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_bytes_per_s", format_rate),
    ("_ns_per_byte", lambda value: f"{value:.3g} ns/B"),
    ("_bytes", lambda value: format_bytes(round(value))),
    ("_ratio", ratio_text),
    ("_share", _share),
    ("_ns", format_ns),
    ("run", str),
)
