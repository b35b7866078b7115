"""Verdicts as a JUnit file, which the test reports of CI systems read."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hockney.errors import HockneyError


@dataclass(frozen=True)
class Case:
    """One test case: `group` is what CI systems call a class. `missed` and `undecided` are sentences, at most one."""

    group: str
    name: str
    missed: str | None = None
    undecided: str | None = None


def write_junit(path: Path, title: str, cases: Sequence[Case]) -> None:
    """Undecided is a skipped test: the report shows it, and the exit code says it. Raises HockneyError."""
    suite = ET.Element(
        "testsuite",
        name=title,
        tests=str(len(cases)),
        failures=str(sum(case.missed is not None for case in cases)),
        skipped=str(sum(case.undecided is not None for case in cases)),
        errors="0",
    )
    for case in cases:
        element = ET.SubElement(suite, "testcase", classname=case.group, name=case.name)
        if case.missed is not None:
            ET.SubElement(element, "failure", message=case.missed)
        elif case.undecided is not None:
            ET.SubElement(element, "skipped", message=case.undecided)
    try:
        ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise HockneyError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from error
