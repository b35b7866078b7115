"""Facts of findings as text: every value in the unit of its key, with its interval."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hockney
from hockney.analysis.finding import Absence, Finding, NotChecked, Subject
from hockney.errors import Fix
from hockney.machine.files import read_toml
from hockney.report.findings import check_name, fact_text, fix_sentence, gap_text, others_of, sentence_of
from hockney.stats.fit import Estimate


def test_a_gap_and_a_fix_without_words_are_their_codes() -> None:
    gap = NotChecked(Absence.NOT_MEASURED, "a new check", "rank 1 hung")
    assert (check_name(gap), gap_text(gap), fix_sentence(Fix("Wait."))) == ("a new check", "rank 1 hung", "Wait")


@pytest.mark.parametrize(
    ("code", "facts", "begins"),
    [
        ("late host", {"host": "n3"}, "n3 answers late."),
        ("far above the floor", {"path": "tcp"}, "Slow for short messages."),
        ("slower than its parts", {}, "barrier slower than its parts."),
    ],
)
def test_a_sentence_begins_with_a_capital_unless_with_a_name(code: str, facts: dict[str, Any], begins: str) -> None:
    assert sentence_of(Finding(code, Subject(pattern="barrier"), facts)).startswith(begins)


@pytest.mark.parametrize(
    ("code", "key", "others"),
    [
        ("outliers", "excess_ns", ["unix (1.00 us longer)", "shm (39.9 ns longer)"]),
        ("yielding library", "seen", ["unix", "shm"]),
    ],
)
def test_others_that_have_a_finding_are_named_with_their_own_figure(code: str, key: str, others: list[str]) -> None:
    sizes = {"pipe": 333e3, "unix": 1000.0, "shm": 39.9}
    group = [Finding(code, Subject(name), {key: Estimate(size, size / 2, size * 3)}) for name, size in sizes.items()]
    assert others_of([*group, group[1]], lambda finding: finding.subject.transport) == others


def test_a_finding_of_several_patterns_names_them() -> None:
    of = {"shm": ("barrier", 2.0), "tcp": ("allreduce", 1.5)}
    group = [
        Finding("slower than its parts", Subject(name, pattern, 2), {"slower_ratio": ratio})
        for name, (pattern, ratio) in of.items()
    ]
    assert others_of(group, lambda finding: finding.subject.transport) == ["tcp (allreduce, 1.50 times)"]


@pytest.mark.parametrize("count", [1, 5, 6, 12])
def test_of_a_long_list_the_first_five_are_printed_and_the_others_counted(count: int) -> None:
    numbers = [int(word) for word in re.findall(r"\d+", fact_text("ranks", range(100, 100 + count)))]
    assert numbers == [*range(100, 100 + min(count, 5)), *([count - 5] if count > 5 else [])]


@pytest.mark.parametrize(
    ("key", "fact", "text"),
    [
        ("receivers", 26, "26"),
        ("turns", 12_500, "12,500"),
        ("slope", 0.25, "0.250"),
        ("size_bytes", 2048, "2 KiB"),
        ("time_ns", 1500.0, "1.50 us"),
        ("start_ns_per_byte", 0.25, "0.25 ns/B"),
        ("rate_bytes_per_s", 2e9, "2.00 GB/s"),
        ("times_ratio", 2.0, "2.00"),
        ("busy_share", 0.25, "25%"),
        ("cause", "luck", "luck"),
        ("sizes_bytes", (8, 2048), "8 B, 2 KiB"),
        ("time_ns", Estimate(1900.0, 1720.0, 2050.0), "1.90 us ±10%"),
        ("change_ns", Estimate(19.0, -1.0, 25.0), "19.0 ns (95 % CI -1.00 to 25.0 ns)"),
        ("busy_share", Estimate(0.25, 0.20, 0.28), "25% (95 % CI 20% to 28%)"),
        ("time_ns", Estimate(1900.0, 720.0, 2050.0), "1.90 us (95 % CI 720 ns to 2.05 us)"),
        ("time_ns", Estimate(1900.0, 1900.0, 1900.0), "1.90 us"),
        ("time_ns", Estimate(2050.0, 1720.0, 2050.0), "1.72 to 2.05 us"),
        ("time_ns", Estimate(720.0, 720.0, 2050.0), "720 ns to 2.05 us"),
    ],
)
def test_a_fact_has_the_unit_that_its_key_ends_with(key: str, fact: Any, text: str) -> None:
    assert fact_text(key, fact) == text


# ---- templates ------------------------------------------------------------------------------------------------------

SOURCES = Path(hockney.__file__).parent


def facts_of_analysis() -> set[str]:
    """Every name that a fact or a field of a subject may have: texts and keywords of the code, and of rules."""
    rules = read_toml(SOURCES / "analysis/hardware.toml")["row"]
    names = {name for row in rules for name in row.get("facts", ())}
    for path in [*(SOURCES / "analysis").rglob("*.py"), *(SOURCES / "archive").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                names.add(node.value)
            elif isinstance(node, ast.keyword) and node.arg is not None:
                names.add(node.arg)
    return names


def unknown_facts(templates: Any) -> Iterator[str]:
    """A template with an unknown fact is silently left out, like one whose fact a finding does not have."""
    known = facts_of_analysis()
    texts, parts = [templates], []
    while texts:
        text = texts.pop()
        if isinstance(text, str):
            parts.append(text)
        else:
            texts += text.values() if isinstance(text, dict) else text
    return (name for part in parts for name in re.findall(r"{(?:value_of_|ends_of_)?(\w+)", part) if name not in known)


def codes_of(call: str, place: int) -> set[str]:
    """The codes that the program gives to a class in this place of its arguments; several in a conditional."""
    codes: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == call:
                given = [*node.args[place : place + 1], *(each.value for each in node.keywords if each.arg == "why")]
                codes |= {
                    part.value
                    for each in given
                    for part in (each, *(vars(each).get(name) for name in ("body", "orelse")))
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                }
    return codes


def test_every_fix_and_gap_has_a_sentence_and_no_sentence_is_left_over() -> None:
    """A code of three words or more may be its own sentence: it is printed as it is."""
    templates = read_toml(SOURCES / "report/findings.toml")
    fixes, gaps = codes_of("Fix", 0) - {""}, codes_of("NotChecked", 2)
    assert len(fixes) > 15
    assert len(gaps) > 10
    assert [code for code in fixes - {*templates["fixes"]} if len(code.split()) < 3] == []
    assert [code for code in gaps - {*templates["gaps"]} if len(code.split()) < 3] == []
    # Some codes are chosen before.
    assert {*templates["fixes"], *templates["gaps"], *templates["checks"]} <= facts_of_analysis() | fixes | gaps


def test_every_fact_in_a_template_is_one_that_findings_have() -> None:
    assert list(unknown_facts(read_toml(SOURCES / "report/findings.toml"))) == []
    assert list(unknown_facts({"evidence": ["{pattern} jumps by {jmup_ns}.", "{jump_ns}"]})) == ["jmup_ns"]
