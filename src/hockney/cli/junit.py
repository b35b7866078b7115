"""Verdicts as a JUnit file, which the test reports of CI systems read."""

from __future__ import annotations

import contextlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from hockney.cli.common import refuse_loss, refuse_unwritable
from hockney.cli.streams import remark
from hockney.errors import ExitCode, HockneyError, UsageError
from hockney.units import printable

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # 1.0, section 2.2


@dataclass(frozen=True)
class Case:
    """One test case: `group` is what CI systems call a class. At most one of the next four is there, a sentence.

    `details` go with what is missed or inconclusive.
    """

    group: str
    name: str
    missed: str | None = None
    inconclusive: str | None = None
    remark: str | None = None  # of what is fine
    error: str | None = None
    details: str | None = None


@contextlib.contextmanager
def reported(path: Path | None, needed: Collection[Path] = ()) -> Iterator[None]:
    """Inside, a check that writes this file when it is done: until then, and if it never is, the file says just that.

    So nobody takes the report of an earlier check for that of this one. Raises UsageError where it can't be written, or
    is one of the files that the check needs.
    """
    if path is None:
        yield
        return
    refuse_unwritable(path)
    refuse_loss("--junit", path, needed)
    try:
        _write_unfinished(path, "the check has not come to its end: it is going on, or was killed")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {_why(error)}; name another file") from error
    try:
        yield
    except BaseException as error:
        why = str(error) if isinstance(error, HockneyError) else "it broke off; what it printed says why"
        with contextlib.suppress(OSError):  # it says already that the check has not come to its end
            _write_unfinished(path, why)
        raise


def _write_unfinished(path: Path, why: str) -> None:
    _write(path, "hockney check", [Case("check", "came to its end", error=why)])


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def write_junit(
    path: Path, title: str, cases: Sequence[Case], code: int, properties: Sequence[tuple[str, str]] = ()
) -> int:
    """Inconclusive is a skipped test: the report shows it, and the exit code says it.

    Gives the exit code: the verdict's, which is told already, so that a file that can't be written is only remarked;
    but without it not all is well.
    """
    try:
        _write(path, title, cases, properties)
    except OSError as error:
        remark(f"hockney: cannot write {path}: {_why(error)}")
        return code or ExitCode.INCOMPLETE
    return code


def _write(path: Path, title: str, cases: Sequence[Case], properties: Sequence[tuple[str, str]] = ()) -> None:
    suite = ET.Element(
        "testsuite",
        name=_text(title),
        timestamp=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        tests=str(len(cases)),
        failures=str(sum(case.missed is not None for case in cases)),
        skipped=str(sum(case.inconclusive is not None for case in cases)),
        errors=str(sum(case.error is not None for case in cases)),
    )
    if properties:
        listed = ET.SubElement(suite, "properties")
        for name, value in properties:
            ET.SubElement(listed, "property", name=_text(name), value=_text(value))
    for case in cases:
        element = ET.SubElement(suite, "testcase", classname=_text(case.group), name=_text(case.name))
        for kind, sentence in (("failure", case.missed), ("error", case.error), ("skipped", case.inconclusive)):
            if sentence is not None:
                found = ET.SubElement(element, kind, message=_text(sentence))
                found.text = None if case.details is None else _text(case.details)
        if case.remark is not None:
            ET.SubElement(element, "system-out").text = _text(case.remark)
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _text(text: str) -> str:
    """A library's words may hold what no XML may, not even escaped, or what steers who reads it on a terminal."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", printable(text))
