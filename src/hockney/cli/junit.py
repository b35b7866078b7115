"""Verdicts as a JUnit file, which the test reports of CI systems read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hockney.cli.common import UNDECIDED
from hockney.cli.streams import remark

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # 1.0, section 2.2


@dataclass(frozen=True)
class Case:
    """One test case: `group` is what CI systems call a class. At most one of the others is there, a sentence."""

    group: str
    name: str
    missed: str | None = None
    undecided: str | None = None
    remark: str | None = None  # of what is fine


def write_junit(path: Path, title: str, cases: Sequence[Case], code: int) -> int:
    """Undecided is a skipped test: the report shows it, and the exit code says it.

    Gives the exit code: the verdict's, which is told already, so that a file that can't be written is only remarked;
    but without it not all is well.
    """
    suite = ET.Element(
        "testsuite",
        name=_text(title),
        tests=str(len(cases)),
        failures=str(sum(case.missed is not None for case in cases)),
        skipped=str(sum(case.undecided is not None for case in cases)),
        errors="0",
    )
    for case in cases:
        element = ET.SubElement(suite, "testcase", classname=_text(case.group), name=_text(case.name))
        if case.missed is not None:
            ET.SubElement(element, "failure", message=_text(case.missed))
        elif case.undecided is not None:
            ET.SubElement(element, "skipped", message=_text(case.undecided))
        elif case.remark is not None:
            ET.SubElement(element, "system-out").text = _text(case.remark)
    try:
        ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        remark(f"hockney: cannot write {path}: {(error.strerror or str(error)).lower()}")
        return code or UNDECIDED
    return code


def _text(text: str) -> str:
    """A library's words may hold what no XML may, not even escaped."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
