"""Findings in the published figures of the archive's machines (`hockney explain --machine`).

The figures are fixed, and so are the oddities in them: oddities.json has them, as the detectors of tests/archive find
them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hockney.analysis.explain import DETECTORS, Explanation, explain
from hockney.analysis.finding import Absence, Detector, Finding, NotChecked, Subject
from hockney.archive import Machine
from hockney.archive.curves import read_machine
from hockney.machine.files import rows_of
from hockney.stats.fit import Estimate

_FOLDER = Path(__file__).parent


def explain_machine(machine: Machine) -> Explanation:
    """Findings in the published figures, and statements of the report without figures (unseen.toml)."""
    explanation = explain(read_machine(machine), (*DETECTORS, *oddities(machine.name)))
    rows = [row for row in rows_of(_FOLDER / "unseen.toml") if row["machine"] == machine.name]
    unseen = {
        row["what"]: NotChecked(Absence.INSUFFICIENT_DATA, row["what"], "of report", {"reason": row["why"]})
        for row in rows
    }
    rest = [gap for gap in explanation.not_checked if gap.what not in unseen]
    return replace(explanation, not_checked=(*unseen.values(), *rest))


def oddities(machine: str) -> Iterator[Detector]:
    """A record for each kind of oddity in this machine's figures: its findings, or why there can be none."""
    for row in json.loads((_FOLDER / "oddities.json").read_text(encoding="utf-8"))[machine]:
        gap = row.get("gap")
        found: list[Finding] | NotChecked = [_finding(row["code"], **each) for each in row.get("findings", ())]
        if gap:
            found = NotChecked(Absence(gap["reason"]), why=gap["why"], facts=gap["facts"])
        yield Detector(row["code"], row["what"], functools.partial(lambda given, _: given, found))


def _finding(code: str, subject: Mapping[str, Any], facts: Mapping[str, Any], **rest: Any) -> Finding:
    about = Subject(**{**subject, "sizes_bytes": tuple(subject["sizes_bytes"])})
    known = {name: _fact(fact) for name, fact in facts.items()}
    return Finding(code, about, known, **{**rest, "sources": tuple(rest["sources"])})


def _fact(fact: Any) -> Any:
    if isinstance(fact, list):
        return [_fact(each) for each in fact]
    return Estimate(**fact) if isinstance(fact, dict) else fact
